"""Making small ONNX models, running them through the importer, and through ONNX's own evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylab import relay

onnx = pytest.importorskip("onnx", reason="reads ONNX models")
from onnx import helper, numpy_helper  # noqa: E402


def number_of(dtype: Any) -> int:
    """The number of a data type in ONNX."""
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def model(
    nodes: list,
    inputs: dict[str, np.ndarray],
    outputs: list[str],
    constants: dict[str, np.ndarray] | None = None,
    opset: int = 17,
    shapes: dict[str, Any] | None = None,
    domain: str = "",
) -> Any:
    """A model; `shapes` replaces the shapes of inputs (strings stand for open dimensions)."""
    infos = [
        helper.make_tensor_value_info(n, number_of(a.dtype), (shapes or {}).get(n, a.shape)) for n, a in inputs.items()
    ]
    results = [helper.make_empty_tensor_value_info(o) for o in outputs]
    tensors = [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "main", infos, results, tensors)
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def node_model(
    op_type: str,
    inputs: dict[str, np.ndarray | None],
    outputs: int = 1,
    constants: tuple[str, ...] = (),
    opset: int = 17,
    domain: str = "",
    **attributes: Any,
) -> tuple[Any, dict[str, np.ndarray]]:
    """A model of one node; None is an input that is left out. Also the values of its inputs."""
    names = ["" if a is None else n for n, a in inputs.items()]
    outs = [f"out{k}" for k in range(outputs)]
    node = helper.make_node(op_type, names, outs, domain=domain, **attributes)
    free = {n: a for n, a in inputs.items() if a is not None and n not in constants}
    return model([node], free, outs, {n: inputs[n] for n in constants}, opset, domain=domain), free


def imported(proto: Any, **options: Any) -> Any:
    """The module."""
    return relay.frontend.from_onnx(proto, **options)[0]


def run(mod: Any, inputs: dict[str, np.ndarray], executor: str = "debug") -> list[np.ndarray]:
    """What the module gives for inputs by name."""
    names = [p.name_hint for p in mod["main"].params]
    out = relay.create_executor(executor, mod=mod).evaluate()(*(inputs[n] for n in names))
    return [v.numpy() for v in out] if isinstance(out, (tuple, list)) else [out.numpy()]


def reference(proto: Any, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What onnxruntime gives, or, where it is not installed, ONNX's own evaluator."""
    inputs = {n: np.asarray(a) for n, a in inputs.items()}
    try:
        import onnxruntime
    except ImportError:
        return evaluated(proto, inputs)
    onnxruntime.set_default_logger_severity(4)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return [np.asarray(v) for v in session.run(None, inputs)]


def evaluated(proto: Any, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What ONNX's own evaluator gives; it does not know every form of every operator."""
    from onnx.reference import ReferenceEvaluator

    [node] = proto.graph.node[:1]
    attributes = {a.name: a.s for a in node.attribute}
    # a cubic place outside: the evaluator takes the border's, onnxruntime and torch that of each tap
    moved = node.op_type == "GridSample" and attributes["mode"] == b"cubic" and attributes["padding_mode"] == b"border"
    if moved or node.op_type in ("LRN", "MaxPool", "RNN", "GRU", "LSTM"):
        pytest.skip("needs onnxruntime: ONNX's own evaluator gives something else for some forms")
    try:
        return [np.asarray(v) for v in ReferenceEvaluator(proto).run(None, inputs)]
    except (RuntimeError, TypeError, ValueError) as error:
        pytest.skip(f"ONNX's own evaluator cannot run it: {error}"[:80])


def compare(got: list[np.ndarray], want: list[np.ndarray], tolerance: float = 1e-5) -> None:
    """Shapes and data types are equal, floats nearly so, the rest exactly."""
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        if w.dtype.kind == "f":
            np.testing.assert_allclose(g, w, rtol=tolerance * 10, atol=tolerance)
        else:
            np.testing.assert_array_equal(g, w)
