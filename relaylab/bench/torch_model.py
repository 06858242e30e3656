"""An ONNX model as PyTorch functions, for its compiler (inductor): a table of operators, and a graph of functions.

It covers what `frontend.to_onnx` writes. torch is imported when a model is translated.

Choices: docs/choices.md, Measuring.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean

if TYPE_CHECKING:
    from onnx import NodeProto

Function = Callable[..., Any]
torch: Any = None
"""The package, once a model is translated: its compiler follows no import within a function."""


class TorchTensor(Protocol):
    """What is used here of `torch.Tensor`: torch need not be there."""

    @property
    def shape(self) -> Sequence[int]: ...
    def t(self) -> TorchTensor: ...
    def reshape(self, *shape: int) -> TorchTensor: ...
    def permute(self, *axes: int) -> TorchTensor: ...


class FxGraph(Protocol):
    """What is used here of `torch.fx.Graph`."""

    def call_function(
        self, function: Function, args: tuple[object, ...], kwargs: dict[str, object] = ..., /
    ) -> object: ...


def to_torch(path: str) -> tuple[Any, list[str]]:
    """The model in an ONNX file as a `torch.fx.GraphModule`, weights as buffers, and the names of its inputs in order.

    RelayValueError names an operator without a rule.
    """
    import onnx
    from onnx import numpy_helper

    model, rules = onnx.load(path).graph, functions()
    root, graph = torch.nn.Module(), torch.fx.Graph()
    values: dict[str, Any] = {i.name: graph.placeholder(f"input{k}") for k, i in enumerate(model.input)}
    for k, stored in enumerate(model.initializer):
        array = numpy_helper.to_array(stored)
        if array.dtype.kind == "i":  # shapes and sizes: known when the model is translated
            values[stored.name] = [int(v) for v in array.reshape(-1)]
        else:
            root.register_buffer(f"weight{k}", torch.from_numpy(array.copy()))
            values[stored.name] = graph.get_attr(f"weight{k}")
    for node in model.node:
        _add(graph, node, values, rules)
    graph.output(tuple(values[o.name] for o in model.output))
    return torch.fx.GraphModule(root, graph).eval(), [i.name for i in model.input]


def _add(graph: FxGraph, node: NodeProto, values: dict[str, Any], rules: dict[str, Function]) -> None:
    from onnx import helper

    if node.op_type not in rules:
        raise RelayValueError(
            f"the ONNX operator `{node.op_type}` has no PyTorch form here",
            code="torch.operator",
            help=did_you_mean(node.op_type, rules),
        )
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    found = graph.call_function(rules[node.op_type], tuple(values[name] for name in node.input), attributes)
    if len(node.output) == 1:
        values[node.output[0]] = found
    else:
        values |= {name: graph.call_function(operator.getitem, (found, k)) for k, name in enumerate(node.output)}


def functions() -> dict[str, Function]:
    """The function of every ONNX operator: operands by position, attributes by name."""
    global torch
    torch = import_module("torch")

    own = {
        "Conv": _conv,
        "ConvTranspose": _conv_transpose,
        "MaxPool": _max_pool,
        "AveragePool": _average_pool,
        "BatchNormalization": _batch_norm,
        "LayerNormalization": _layer_norm,
        "Gemm": _gemm,
        "Softmax": _softmax,
        "Concat": _concat,
        "Split": _split,
        "Reshape": _reshape,
        "Transpose": _transpose,
        "Flatten": _flatten,
        "GlobalAveragePool": lambda x: x.mean(tuple(range(2, x.ndim)), keepdim=True),
        "GlobalMaxPool": lambda x: x.amax(tuple(range(2, x.ndim)), keepdim=True),
    }
    same = {
        "Relu": torch.relu,
        "Tanh": torch.tanh,
        "Sigmoid": torch.sigmoid,
        "Erf": torch.erf,
        "Exp": torch.exp,
        "Sqrt": torch.sqrt,
        "Log": torch.log,
        "Abs": torch.abs,
        "Neg": torch.neg,
        "Add": torch.add,
        "Sub": torch.sub,
        "Mul": torch.mul,
        "Div": torch.div,
        "Max": torch.maximum,
        "Min": torch.minimum,
        "Pow": torch.pow,
        "MatMul": torch.matmul,
    }
    return own | same


def _padded(x: TorchTensor, pads: Sequence[int], value: float = 0.0) -> tuple[TorchTensor, list[int]]:
    """The data and the padding that is equal on both sides; unequal padding is added to the data."""
    before, after = list(pads[: len(pads) // 2]), list(pads[len(pads) // 2 :])
    if before == after:
        return x, before
    pairs = [n for pair in reversed(list(zip(before, after))) for n in pair]
    return torch.nn.functional.pad(x, pairs, value=value), [0] * len(before)


def _conv(
    x: TorchTensor,
    w: TorchTensor,
    bias: TorchTensor | None = None,
    *,
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    group: int,
    kernel_shape: Sequence[int],
) -> TorchTensor:
    x, padding = _padded(x, pads)
    return torch.convolution(x, w, bias, list(strides), padding, list(dilations), False, [0] * len(padding), group)


def _conv_transpose(
    x: TorchTensor,
    w: TorchTensor,
    bias: TorchTensor | None = None,
    *,
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    group: int,
    output_padding: Sequence[int],
    kernel_shape: Sequence[int],
) -> TorchTensor:
    half = len(pads) // 2
    uneven = [b - a for a, b in zip(pads[:half], pads[half:])]  # the padding cuts the result
    out = torch.nn.functional.conv_transpose2d(
        x,
        w,
        bias,
        list(strides),
        [min(a, b) for a, b in zip(pads[:half], pads[half:])],
        list(output_padding),
        group,
        list(dilations),
    )
    for axis, more in enumerate(uneven, 2):
        size = out.shape[axis] - abs(more)
        out = out.narrow(axis, 0 if more >= 0 else -more, size) if more else out
    return out


def _max_pool(
    x: TorchTensor,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    ceil_mode: int = 0,
    dilations: Sequence[int] = (1, 1),
) -> TorchTensor:
    x, padding = _padded(x, pads, float("-inf"))
    taps, steps, apart = list(kernel_shape), list(strides), list(dilations)
    return torch.nn.functional.max_pool2d(x, taps, steps, padding, apart, ceil_mode=bool(ceil_mode))


def _average_pool(
    x: TorchTensor,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    ceil_mode: int = 0,
    count_include_pad: int,
) -> TorchTensor:
    half = len(pads) // 2
    if pads[:half] != pads[half:] and not count_include_pad:
        raise RelayValueError(
            "an average over unequal padding that does not count has no PyTorch form here", code="torch.attribute"
        )
    x, padding = _padded(x, pads)
    return torch.nn.functional.avg_pool2d(
        x, list(kernel_shape), list(strides), padding, bool(ceil_mode), bool(count_include_pad)
    )


def _batch_norm(
    x: TorchTensor, gamma: TorchTensor, beta: TorchTensor, mean: TorchTensor, variance: TorchTensor, *, epsilon: float
) -> TorchTensor:
    return torch.nn.functional.batch_norm(x, mean, variance, gamma, beta, False, 0.0, epsilon)


def _layer_norm(
    x: TorchTensor, gamma: TorchTensor, beta: TorchTensor, *, axis: int = -1, epsilon: float = 1e-5
) -> TorchTensor:
    return torch.nn.functional.layer_norm(x, x.shape[axis:], gamma, beta, epsilon)


def _gemm(a: TorchTensor, b: TorchTensor, c: TorchTensor | None = None, *, transB: int = 0) -> TorchTensor:
    return torch.nn.functional.linear(a, b if transB else b.t(), c)


def _softmax(x: TorchTensor, *, axis: int) -> TorchTensor:
    return torch.softmax(x, axis)


def _concat(*parts: TorchTensor, axis: int) -> TorchTensor:
    return torch.cat(parts, axis)


def _split(x: TorchTensor, sizes: Sequence[int], *, axis: int) -> TorchTensor:
    return torch.split(x, list(sizes), axis)


def _reshape(x: TorchTensor, shape: Sequence[int], *, allowzero: int = 0) -> TorchTensor:
    return x.reshape(*(n if n or allowzero else x.shape[k] for k, n in enumerate(shape)))


def _transpose(x: TorchTensor, *, perm: Sequence[int]) -> TorchTensor:
    return x.permute(*perm)


def _flatten(x: TorchTensor) -> TorchTensor:
    return x.reshape(x.shape[0], -1)
