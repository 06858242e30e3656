"""A planted wrong rewrite in a pipeline of 25 passes is named, with its rule and its node."""

from __future__ import annotations

import pytest

from relaylab import relay, tour
from relaylab.ir import Call, rewrite
from relaylab.transform.pattern import is_op, wildcard
from relaylab.transform.rules import apply_rules, rule

BODY = "".join(f"%{i + 1} = {op}(%{i});\n" for i, op in enumerate(["exp", "tanh", "sigmoid", "nn.relu", "abs", "negative", "cos", "sin", "atan", "erf"] * 3))
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
    finding = tour.bisect(tour.load(relay.parse(TEXT)), passes=passes)
    assert finding.stage.name == "Wrong" and finding.evaluations <= 6
    assert "cos" in str(finding.node) and "sin" in str(finding.became)
    assert (finding.step.rule if finding.step else None) == says
    assert "Wrong changed the numbers" in str(finding)
    namespace: dict = {}
    exec(finding.save(tmp_path / "show.py").read_text(), namespace)
    assert str(namespace["expected"]) != str(namespace["got"])


def test_all_is_well():
    assert tour.bisect(tour.load("mlp")) is None
