"""The passes against what the reference implementation answered.

Texts are compared without comments, variables numbered by first appearance.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.recorded import recorded

import relaylab.text  # noqa: F401
from relaylab.ir import IRModule
from relaylab.transform import PASSES, Pass, PassContext, bind_params_by_name, create

PROGRAMS = "adt closure closure_graph constfold conv cse dead ifscope parallel_conv poly recur share tuple".split()
NETWORKS = "dcgan dqn lstm mlp synthetic".split()
LATER = {"FoldConstant2": "FoldConstant"}
MAKE = {
    "EtaExpand": lambda: create("EtaExpand", True, True),
    "ConvertLayoutNHWC": lambda: create("ConvertLayout", {"nn.conv2d": ["NHWC", "default"]}),
    "ToMixedPrecision": lambda: create("ToMixedPrecision", missing_op_mode=2),
    **{f"FuseOps{level}": (lambda level=level: create("FuseOps", level)) for level in range(3)},
}
DIFFERENT_WORK = {"PartialEvaluate", "FirstOrderGradient"}
"""Passes whose result is another program with the same meaning (checked elsewhere)."""
KEEPS_TYPES = {("ToMixedPrecision", "closure_graph"), ("ToMixedPrecision", "lstm")}
"""Functions inside a function keep their types here; the reference changes them."""


def make(name: str) -> Pass:
    return MAKE[name]() if name in MAKE else create(LATER.get(name, name))


def typed(mod: IRModule) -> IRModule:
    return create("InferType")(mod)


def after(name: str, mod: IRModule) -> IRModule:
    with PassContext(opt_level=4):
        return typed(make(name)(mod))


def normal(text: str) -> list[str]:
    """The functions of a text, names and spaces aside, in the order of their text."""
    text = re.sub(r"/\*.*?\*/|#\[version[^\]]*\]", "", text, flags=re.S).split("#[metadata]")[0]
    return sorted(_normal_function(f) for f in re.split(r"\n(?=def )", text))


def _normal_function(text: str) -> str:
    names: dict[str, str] = {}
    text = re.sub(r"%\w+", lambda m: names.setdefault(m.group(), f"%{len(names)}"), text)
    text = re.sub(r"@lifted_name\d+", "@lifted", re.sub(r"meta\[relay.Constant\]\[\d+\]", "meta", text))
    return re.sub(r"\s+", " ", re.sub(r" +(?=[,;)\n])", "", text)).strip()


@pytest.mark.parametrize("program", PROGRAMS)
def test_passes_on_small_programs(program: str) -> None:
    case = recorded("program", program)
    mod = typed(IRModule.from_text(case["src"]))
    for name, want in case["passes"].items():
        if want is not None and name in PASSES and name not in DIFFERENT_WORK and (name, program) not in KEEPS_TYPES:
            assert normal(after(name, mod).astext(False)) == normal(want), name


@pytest.mark.parametrize("network", NETWORKS)
def test_single_passes_on_networks(network: str) -> None:
    case = recorded("network", network)
    mod = typed(IRModule.from_text(case["text"]))
    for name, want in case["other"].items():
        if want and (name in PASSES or name in MAKE) and (name, network) not in KEEPS_TYPES:
            assert normal(after(name, mod).astext(False)) == normal(want["text"]), name


@pytest.mark.parametrize("bound", [False, True], ids=["free", "bound"])
@pytest.mark.parametrize("network", NETWORKS)
def test_the_pipeline_on_networks(network: str, bound: bool) -> None:
    case = recorded("network", network)
    mod = typed(IRModule.from_text(case["text"]))
    if bound:
        params = {
            p.name_hint: np.full([int(d) for d in p.type_annotation.shape], 0.5, "float32") for p in mod["main"].params
        }
        params = {name: array for name, array in params.items() if name in case["params"]}
        mod = typed(IRModule.from_expr(bind_params_by_name(mod["main"], params)))
    record = case["pipeline_bound" if bound else "pipeline"]
    for name, key, _ in record["steps"]:
        mod = after(name, mod)
        assert normal(mod.astext(False)) == normal(record["texts"][key]), name
