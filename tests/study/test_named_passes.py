"""The pass that is named is the pass that ran: options, text, branches, comparisons, copies of passes of one's own."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from relaylab import relay, study
from relaylab.ir import Call, rewrite
from relaylab.study.pipeline import Pipeline, options_of, text_of
from relaylab.transform import PASSES, FunctionPass, PassInfo, register_pass

TEXT = '#[version = "0.0.5"] def @main(%x: Tensor[(2, 3), float32]) { nn.relu(add(%x, add(1f, 2f))) }'


@pytest.fixture
def mod():
    return relay.parse(TEXT)


def after_relu(func, change):
    return rewrite(func, lambda n, o: change(n) if isinstance(n, Call) and n.op.name == "nn.relu" else n)


@register_pass(replace=True)
def Scale(limit=3):
    """Makes results smaller."""
    level = limit * 2

    def run(func, mod, ctx):
        return after_relu(func, lambda n: relay.multiply(n, relay.const(1 / level)))

    return FunctionPass(PassInfo(1, "Scale"), run)


PASSES.remove("Scale")  # registered where a test needs it, so that nobody else meets it


@pytest.fixture
def scale():
    made = register_pass()(Scale.__wrapped__)
    yield made
    PASSES.remove("Scale")


@relay.transform.function_pass(opt_level=1)
class ReluToLeaky:
    """Its option is known to nobody but the class."""

    def __init__(self, alpha):
        self.slope = alpha / 2

    def transform_function(self, func, mod, ctx):
        return after_relu(func, lambda n: relay.nn.leaky_relu(n.args[0], alpha=self.slope))


def test_a_registered_pass_says_what_it_was_made_with(scale):
    made = scale(limit=7)
    assert text_of(made) == "Scale(limit=7)"
    assert [(o.name, o.value, o.default) for o in options_of(made)] == [("limit", "7", "3")]
    assert text_of(ReluToLeaky(0.25)) == "ReluToLeaky(alpha=0.25)"


def test_a_branch_runs_the_pass_that_is_named(mod, scale):
    pipeline = Pipeline(mod, [scale(limit=7)])
    branch = pipeline.branch(["Scale()"])
    assert "0.0714" in str(pipeline.history.mod) and "0.1666" in str(branch.history.mod)


def test_comparisons_with_text_and_with_objects_agree(scale):
    def error(b):
        found = {q.name: (q.a, q.b) for q in study.compare(TEXT_PROGRAM(), [scale(limit=7)], b).quantities}
        return found["numeric error"]

    assert error(["Scale()"]) == error([scale()]) and error(["Scale()"])[0] != error(["Scale()"])[1]


def TEXT_PROGRAM():
    return relay.parse(TEXT)


def test_passes_that_only_python_knows_are_never_merged(mod):
    def made(factor):
        return FunctionPass(
            PassInfo(0, "Times"),
            lambda func, mod, ctx: after_relu(func, lambda n: relay.multiply(n, relay.const(factor))),
        )

    two, three = made(2.0), made(3.0)
    assert two != three and two == two and len({two, three}) == 2
    pipeline = Pipeline(mod, [two])
    branch = pipeline.branch([three])
    assert "2f" in str(pipeline.history.mod) and "3f" in str(branch.history.mod) and branch.runs == 1


def test_equal_passes_share_their_runs(mod):
    pipeline = Pipeline(mod, ["FoldConstant", "FuseOps(fuse_opt_level=2)"])
    assert pipeline.segments
    branch = pipeline.branch([relay.transform.FoldConstant(), relay.transform.FuseOps(2)])
    assert branch.segments == pipeline.segments and branch.runs == 0


def cell(code, number):
    """Run code as a cell of a notebook is run: its source is known to `linecache`, and there is no file."""
    name = f"/tmp/ipykernel_0/{number}.py"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    names = {"__name__": "__main__"}
    exec(compile(code, name, "exec"), names)
    return names


CELL = """
import numpy as np
from relaylab import relay
from relaylab.ir import Call, rewrite
from relaylab.transform import pass_, FunctionPass

unrelated = print

def is_relu(node):
    return isinstance(node, Call) and node.op.name == "nn.relu"

@pass_(level=1)
class TimesInCell:
    limit: int = 3

    def run(self, func, mod, ctx):
        half = relay.const(np.float32(self.limit / 2))
        return rewrite(func, lambda n, o: relay.multiply(n, half) if is_relu(n) else n)
"""


@pytest.fixture
def written():
    yield cell(CELL, 1)
    PASSES.remove("TimesInCell")


def test_a_pass_of_a_cell_is_copied_with_its_code(mod, written):
    pipeline = Pipeline(mod, [written["TimesInCell"](limit=7), "FoldConstant"])
    copied = pipeline.python()
    assert "TimesInCell(limit=7)" in copied and "def is_relu" in copied and "unrelated" not in copied
    PASSES.remove("TimesInCell")
    namespace = {"mod": mod, "__name__": "__main__"}
    exec(copied, namespace)
    assert str(namespace["mod"]) == str(pipeline.history.mod) and "3.5f" in str(namespace["mod"])


def test_a_cell_that_is_run_again_replaces_its_pass(mod, written):
    first = written["TimesInCell"]()
    second = cell(CELL.replace("limit / 2", "limit * 2"), 2)["TimesInCell"]()
    assert first != second
    assert "6f" in str(Pipeline(mod, ["TimesInCell"]).history.mod)
    assert "limit * 2" in Pipeline(mod, [second]).python() and "limit / 2" in Pipeline(mod, [first]).python()


def test_a_pass_of_a_module_is_imported(mod):
    copied = Pipeline(mod, [ReluToLeaky(0.25), "FuseOps"]).python()
    assert f"from {__name__} import ReluToLeaky\n" in copied and "    ReluToLeaky(alpha=0.25),\n" in copied
    namespace = {"mod": mod}
    exec(copied, namespace)
    assert "alpha=0.125f" in str(namespace["mod"])


def test_what_cannot_be_copied_is_said(mod):
    skip = lambda node: False  # noqa: E731
    passes = [relay.transform.EliminateCommonSubexpr(skip), FunctionPass(PassInfo(0, "Bare"), lambda f, m, c: f)]
    pipeline = Pipeline(mod, ["FoldConstant", *passes])
    copied = pipeline.python()
    assert "# Bare: a pass whose code is not known" in copied and "EliminateCommonSubexpr was made with" in copied
    assert pipeline.command("net").endswith("does not know EliminateCommonSubexpr, Bare: copy as Python")
    assert "does not know" not in Pipeline(mod, ["FoldConstant"]).command("net")


def test_the_command_is_quoted_for_a_shell(mod):
    import shlex

    pipeline = Pipeline(mod, ["FoldConstant", 'ConvertLayout({"nn.conv2d": ["NHWC", "default"]})'])
    words = shlex.split(pipeline.command("net.relay"))
    assert words[-1] == "FoldConstant,ConvertLayout(desired_layouts={'nn.conv2d': ['NHWC', 'default']})"


def test_functions_in_functions_are_copied_and_say_what_they_need(mod):
    factor = 2.0

    @relay.transform.function_pass(opt_level=0)
    def times(func, mod, ctx):
        return after_relu(func, lambda n: relay.multiply(n, relay.const(factor)))

    copied = Pipeline(mod, [times]).python()
    assert "def times(func, mod, ctx):" in copied and "# `factor` is defined elsewhere" in copied
    assert f"from {__name__} import after_relu\n" in copied and "    times,\n" in copied


def replayed(finding, tmp_path):
    """The reproducer, and the names it leaves behind when it is run by itself."""
    path = finding.save(tmp_path / "show.py")
    names: dict = {"__name__": "__main__"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return path.read_text(), names


def test_a_reproducer_runs_the_pass_that_ran(mod, written, tmp_path):
    finding = study.bisect(study.load(mod), passes=[written["TimesInCell"](limit=7)], seed=3)
    PASSES.remove("TimesInCell")
    program, names = replayed(finding, tmp_path)
    assert "after = TimesInCell(limit=7)(before)" in program and "def is_relu" in program
    np.testing.assert_allclose(names["got"], finding.values[0][1])
    np.testing.assert_allclose(names["expected"] * 3.5, names["got"])


def test_a_reproducer_imports_a_pass_of_a_module_with_its_options(mod, tmp_path):
    program, names = replayed(
        study.bisect(study.load(relay.parse(TEXT.replace("add(1f, 2f)", "-9f"))), passes=[ReluToLeaky(0.5)]), tmp_path
    )
    assert f"from {__name__} import ReluToLeaky\n" in program and "ReluToLeaky(alpha=0.5)(before)" in program
    assert (names["got"] != names["expected"]).any()


def test_a_reproducer_of_a_pass_that_no_text_makes_reads_what_it_left(mod, tmp_path):
    bare = FunctionPass(PassInfo(0, "FuseOps"), lambda f, m, c: after_relu(f, lambda n: n.args[0] * relay.const(2.0)))
    program, names = replayed(study.bisect(study.load(mod), passes=[bare]), tmp_path)
    assert "after = relay.parse(AFTER)  # no text makes the pass FuseOps" in program
    assert (names["got"] != names["expected"]).any()
