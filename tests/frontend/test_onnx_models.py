"""Trained models of other frameworks: their recorded outputs, from the interpreter and from compiled code."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from relaylab import relay, transform
from relaylab.runtime import cpu, graph_executor

pytestmark = pytest.mark.slow

pytest.importorskip("onnx", reason="reads ONNX models")

MODELS = Path(os.environ.get("RELAYLAB_MODELS", Path(__file__).parents[3] / "shared" / "models"))
EXPECTED = MODELS / "refs" / "expected.json"
CASES = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
NAMES = sorted(CASES) or [pytest.param("", marks=pytest.mark.skip(reason="needs the models in RELAYLAB_MODELS"))]
LARGE = (
    "style_candy224",
    "squeezenet_fp32",
    "super_resolution",
    "ultraface_RFB-320",
    "fastestdet",
    "stories260k_prefill256",
)


def recorded(name: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    with np.load(MODELS / "refs" / f"{name}.npz") as data:
        parts = {
            kind: {k.removeprefix(f"c0.{kind}."): data[k] for k in data.files if k.startswith(f"c0.{kind}.")}
            for kind in ("in", "out")
        }
    return parts["in"], parts["out"]


def program(name: str, inputs: dict[str, np.ndarray]):
    return relay.frontend.from_onnx(MODELS / CASES[name]["model"], shape={n: a.shape for n, a in inputs.items()})


def agree(got: list[np.ndarray], want: dict[str, np.ndarray], names: list[str]) -> None:
    assert len(got) == len(names)
    for value, name in zip(got, names):
        expected = want[name]
        assert value.shape == expected.shape and value.dtype == expected.dtype
        assert (np.abs(value - expected) <= 1e-4 * np.abs(expected).max() + 1e-3 * np.abs(expected)).all(), name


@pytest.mark.parametrize("name", [n for n in NAMES if n not in LARGE])
def test_interpreted(name):
    inputs, want = recorded(name)
    mod, _ = program(name, inputs)
    out = relay.create_executor("debug", mod=mod).evaluate()(*(inputs[p.name_hint] for p in mod["main"].params))
    agree([v.numpy() for v in out] if isinstance(out, (tuple, list)) else [out.numpy()], want, CASES[name]["outputs"])


@pytest.mark.parametrize("name", NAMES)
def test_compiled(name):
    inputs, want = recorded(name)
    mod, params = program(name, inputs)
    with transform.PassContext(opt_level=3):
        module = graph_executor.GraphModule(relay.build(mod, target="llvm", params=params)["default"](cpu(0)))
    for key, value in inputs.items():
        module.set_input(key, value)
    module.run()
    agree([module.get_output(k).numpy() for k in range(module.get_num_outputs())], want, CASES[name]["outputs"])


@pytest.mark.parametrize("name", NAMES)
def test_every_expression_names_its_node(name):
    onnx = pytest.importorskip("onnx")
    nodes = {n.name or n.output[0] for n in onnx.load(MODELS / CASES[name]["model"]).graph.node}
    mod, _ = program(name, recorded(name)[0])
    calls: list = []
    relay.analysis.post_order_visit(mod["main"], lambda e: calls.append(e) if isinstance(e, relay.Call) else None)
    assert calls and {str(c.span) for c in calls} <= nodes
