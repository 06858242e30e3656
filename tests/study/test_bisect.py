"""A planted wrong rewrite in a pipeline of 25 passes is named, with its rule and its node."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay, study
from relaylab.ir import Call, rewrite
from relaylab.support.errors import RelayError
from relaylab.transform.pattern import is_op, wildcard
from relaylab.transform.rewriting.rules import apply_rules, rule
from relaylab.viz.draw.tensors import pooled

BODY = "".join(
    f"%{i + 1} = {op}(%{i});\n"
    for i, op in enumerate(["exp", "tanh", "sigmoid", "nn.relu", "abs", "negative", "cos", "sin", "atan", "erf"] * 3)
)
TEXT = f'#[version = "0.0.5"] def @main(%x: Tensor[(4), float32]) {{ %0 = multiply(%x, 0.1f); {BODY} add(%30, %12) }}'


def renamer(k: int):
    """A pass that is right: it adds zero somewhere else each time."""

    @relay.transform.function_pass(opt_level=0, name=f"Pass{k}")
    def made(func, mod, ctx):
        return relay.Function(func.params, func.body + relay.const(0.0)) if k % 2 else func

    return made


@rule(is_op("cos")(wildcard()))
def cos_is_sin(root):
    """It is not."""
    return relay.sin(root.args[0])


@relay.transform.function_pass(opt_level=0, name="Wrong")
def by_rule(func, mod, ctx):
    return apply_rules(func, [cos_is_sin], mod)


@relay.transform.function_pass(opt_level=0, name="Wrong")
def by_hand(func, mod, ctx):
    return rewrite(func, lambda n, o: relay.sin(n.args[0]) if isinstance(n, Call) and n.op.name == "cos" else n)


@pytest.mark.parametrize("wrong, says", [(by_rule, "cos_is_sin"), (by_hand, None)], ids=["rule", "hand"])
def test_the_guilty_rewrite_is_named(wrong, says, tmp_path):
    passes = [renamer(k) for k in range(16)] + [wrong] + [renamer(k) for k in range(17, 25)]
    assert len(passes) == 25
    finding = study.bisect(study.load(relay.parse(TEXT)), passes=passes)
    assert finding.stage.name == "Wrong" and finding.evaluations <= 6
    assert "cos" in str(finding.node) and "sin" in str(finding.became)
    assert (finding.step.rule if finding.step else None) == says
    assert "Wrong changed the numbers" in str(finding)
    namespace: dict = {}
    exec(finding.save(tmp_path / "show.py").read_text(), namespace)
    assert str(namespace["expected"]) != str(namespace["got"])


def test_all_is_well():
    assert study.bisect(study.load("mlp")) is None


@pytest.mark.parametrize("wrong", [by_rule, by_hand], ids=["rule", "hand"])
def test_the_values_are_shown_where_they_first_differ(wrong, tmp_path):
    finding = study.bisect(study.load(relay.parse(TEXT.replace("(4)", "(6, 40)"))), passes=[wrong])
    ((old, new),) = finding.values
    assert old.shape == new.shape == (6, 40) and not np.allclose(old, new)
    labels = [f.label for f in finding.scene.elements if f.kind == "note"]
    assert labels == ["cos under Wrong", "before", "after", "|a - b|"]
    assert sum(f.kind == "node" for f in finding.scene.elements) == 3 * 6 * 24
    for suffix in ("html", "svg", "pdf"):
        assert finding.save(tmp_path / f"b.{suffix}").stat().st_size > 500
    bundle = finding._repr_mimebundle_()
    assert "Wrong changed" in bundle["text/plain"] and "image/svg+xml" in bundle
    with pytest.raises(RelayError, match="cannot tell the format"):
        finding.save(tmp_path / "b.doc")


@pytest.mark.parametrize(
    "shape, cells",
    [((), (1, 1)), ((5,), (1, 5)), ((100,), (1, 24)), ((3, 4), (3, 4)), ((64, 3, 3, 3), (24, 24)), ((0, 3), (0, 0))],
)
def test_a_tensor_is_pooled_to_its_largest(shape, cells):
    data = np.random.default_rng(0).normal(size=shape)
    grid = pooled(data)
    assert grid.shape == cells
    if data.size:
        assert np.abs(grid).max() == np.abs(data).max() and set(grid.ravel()) <= set(np.ravel(data))


def test_one_odd_element_is_seen():
    data = np.zeros((500, 300))
    data[123, 45] = -7
    assert (pooled(data) == -7).sum() == 1
    data[3, 4] = np.nan
    assert np.isnan(pooled(data)).sum() == 1


def test_a_module_is_a_program_and_misplaced_arguments_are_told():
    mod = relay.transform.InferType()(relay.parse(TEXT))
    finding = study.bisect(mod, passes=[by_rule])
    assert finding.stage.name == "Wrong" and finding.step.rule == "cos_is_sin"
    with pytest.raises(RelayError, match="bisect: `opt_level` must be a whole number"):
        study.bisect(mod, [by_rule])
    with pytest.raises(RelayError, match="bisect: `program` must be"):
        study.bisect(3)
