"""Two pipelines over one program: figures of both ends, and nodes followed from one branch to the other."""

from __future__ import annotations

import pytest

from relaylab import relay, study
from relaylab.ir import Call, rewrite
from relaylab.support.errors import RelayError
from relaylab.study.compare import Crossing, end_figures
from relaylab.study.stage_text import LONGEST, Constants, printed, text_rows

TEXT = '#[version = "0.0.5"] def @main(%x: Tensor[(2, 3), float32]) { nn.relu(add(%x, add(1f, 2f))) }'


@pytest.fixture
def mod():
    return relay.parse(TEXT)


def figures(comparison):
    return {q.name: (q.a, q.b) for q in comparison.quantities}


def test_figures_of_both_ends(mod):
    found = study.compare(mod, ["FuseOps"], ["FoldConstant", "FuseOps"])
    table = figures(found)
    assert table["passes"] == (1, 2) and table["numeric error"] == (0, 0)
    assert [(q.name, q.a, q.b) for q in found.operators if q.name == "add"] == [("add", 2, 1)]
    assert table["operator calls"][1] < table["operator calls"][0] and table["IR text"][1] != table["IR text"][0]
    assert "FoldConstant" not in str(found) and "numeric error" in str(found)


def test_work_over_open_sizes_is_not_known():
    x = relay.var("x", shape=(relay.Any(), 64))
    open_ = relay.IRModule.from_expr(relay.nn.dense(x, relay.var("w", shape=(8, 64))))
    found = {q.name: (q.a, q.b) for q in study.compare(open_, ["FuseOps"], []).quantities}
    assert found["MACs"] == found["bytes moved"] == (None, None) and found["operator calls"] == (1, 1)


def test_a_wrong_branch_has_an_error(mod):
    @relay.transform.function_pass(opt_level=0)
    def Wrong(func, mod, ctx):
        return rewrite(
            func, lambda n, o: relay.tanh(n.args[0]) if isinstance(n, Call) and n.op.name == "nn.relu" else n
        )

    assert figures(study.compare(mod, [], [Wrong]))["numeric error"][1] > 0.01


def test_numbers_that_became_no_numbers_are_told(mod):
    @relay.transform.function_pass(opt_level=0)
    def Broken(func, mod, ctx):
        return rewrite(func, lambda n, o: n / relay.const(0.0) if isinstance(n, Call) and n.op.name == "nn.relu" else n)

    found = study.compare(mod, [Broken], [Broken])
    (error,) = (q for q in found.quantities if q.name == "numeric error")
    assert error.a == error.b == float("inf") and error.change is None
    assert str(error).split() == ["numeric", "error", "inf", "inf"] and str(error) in str(found)


def test_a_long_line_counts_and_is_compared_whole():
    def program(fields):
        text = ", ".join(f"%a_long_name_of_a_field_{k}" for k in fields)
        params = ", ".join(f"%a_long_name_of_a_field_{k}: int32" for k in range(60))
        return relay.transform.InferType()(relay.parse(f'#[version = "0.0.5"] def @main({params}) {{ ({text}) }}'))

    before, after = (program([*range(59), k]) for k in (58, 59))
    first, second = (printed(m, Constants()) for m in (before, after))
    assert end_figures(before)["IR text"] == len(before.astext().partition("\n")[2])
    rows = text_rows(first, second, lambda node, old: "")
    assert [mark for mark, *_ in rows] == [" ", "-", "+", " "] and max(len(line) for _, line, *_ in rows) == LONGEST


def test_the_default_without_a_pass_shares_what_was_run():
    found = study.compare("mlp", None, "default-FuseOps")
    fuse = next(k for k, item in enumerate(found.a.items) if item.name == "FuseOps")
    assert [s is t for s, t in zip(found.a.segments[:fuse], found.b.segments)] == [True] * fuse
    assert found.b.runs == len(found.a.items) - fuse - 1
    assert found.difference().counts == {"removed": 5, "moved": 10} and found.times().a > 0  # the kernels dissolve
    with pytest.raises(RelayError, match="did you mean `FuseOps`"):
        study.compare("mlp", None, "default-FusOps")


def test_nodes_are_followed_across_branches(mod):
    found = study.compare(mod, ["FoldConstant", "FuseOps"], ["FoldConstant", "FastMath", "FuseOps"])
    crossing = Crossing(found.a, found.b, 2, 1)
    kernel = found.a.modules[2]["main"].body
    relu = found.b.modules[1]["main"].body
    assert crossing.became(kernel.op.body) is relu or crossing.became(kernel) is relu
    assert set(crossing.parents(relu)) & {kernel, kernel.op.body}


def test_any_stage_of_one_with_any_of_the_other(mod):
    found = study.compare(mod, ["FuseOps"], ["FoldConstant"])
    assert "removed" in found.difference(0, 1).counts
    assert found.difference(0, 0).counts == {}
    assert "by provenance" in found.difference().how
    with pytest.raises(RelayError, match="there are 0 to 1"):
        found.difference(5)


def test_different_programs_cannot_be_compared(mod):
    other = study.explore(relay.parse(TEXT), passes=[]).pipeline
    with pytest.raises(RelayError, match="different programs"):
        study.compare(mod, None, other)


def test_times_have_intervals_and_a_prediction(mod):
    least, spent, apart = study.compare(mod, ["FuseOps"], ["FoldConstant", "FuseOps"]).measured(runs=7)
    assert least.a > 0 and least.b > 0
    assert all(0 < i.low <= v <= i.high for v, i in zip((spent.a, spent.b), spent.spread))
    assert apart.spread[1].low <= apart.b <= apart.spread[1].high and " to " in str(spent)
    loose = relay.parse('#[version = "0.0.5"] def @main(%x: Tensor[(?), float32]) { nn.relu(%x) }')
    assert [q.a for q in study.compare(loose, [], []).measured(runs=2)] == [None, None]  # it needs the virtual machine


@pytest.mark.parametrize(
    "samples, low, high", [([3.0], 3, 3), ([1, 9, 5], 1, 9), (range(1, 16), 4, 12), (range(1, 101), 40, 61)]
)
def test_the_interval_of_a_median(samples, low, high):
    found = study.interval(list(samples))
    assert abs(found.low - low) <= 1 and abs(found.high - high) <= 1 and found.low <= found.median <= found.high


def test_the_interval_of_nothing_is_refused():
    with pytest.raises(RelayError, match="at least one run"):
        study.interval([])


def test_what_each_pass_is_worth():
    found = study.worth("mlp", runs=3)
    rows = {w.name: w for w in found.rows}
    assert {"FuseOps", "CanonicalizeOps"} <= rows.keys()
    for row in rows.values():
        assert row.takes.low <= row.takes.median <= row.takes.high and (row.saves is None) == (row.verdict == row.note)
    assert found.whole.median > 0 and "FuseOps" in str(found)


def test_no_run_is_no_measurement():
    for call in (lambda: study.worth("mlp", runs=0), lambda: study.compare("mlp").times(-1)):
        with pytest.raises(RelayError, match="at least one run"):
            call()


def test_the_default_passes_stand_among_others():
    usual = [row.name for row in study.explore("mlp").rows]
    assert [row.name for row in study.explore("mlp", passes="ToMixedPrecision,default").rows] == [
        "ToMixedPrecision", *usual
    ]  # fmt: skip
    assert study.explore("mlp", passes=["default-FuseOps", "FuseOps"]).rows[-1].name == "FuseOps"
    found = study.compare("mlp", "default", "ToMixedPrecision,default")
    casts = next(q for q in found.quantities if q.name == "numeric error")
    assert casts.a < 1e-6 < casts.b < 1e-2


def test_programs_of_other_inputs_are_not_compared():
    program = study.load("mlp")
    bound = relay.transform.BindParams(dict(program.params))(program.mod)
    with pytest.raises(RelayError, match="cannot be given the same inputs: one takes 7, the other 1"):
        study.difference(program.mod, bound)
