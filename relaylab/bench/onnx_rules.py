"""How Relay operators are said in ONNX (opset 17): one rule per operator, from a call's attributes to nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from relaylab.ir import Call, TupleType
from relaylab.support.errors import RelayValueError

Names = list[Any]


class Writer(Protocol):
    """What a rule writes to."""

    def emit(self, op_type: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[str]:
        """Add a node; the names of its outputs."""

    def constant(self, value: np.ndarray) -> str:
        """The name of a constant."""


Rule = Callable[[Writer, Call, Names], Any]
RULES: dict[str, Rule] = {}

_SAME = {
    "nn.relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "exp": "Exp", "sqrt": "Sqrt", "log": "Log",
    "abs": "Abs", "negative": "Neg", "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div",
    "maximum": "Max", "minimum": "Min", "power": "Pow", "nn.batch_flatten": "Flatten",
    "nn.global_avg_pool2d": "GlobalAveragePool", "nn.global_max_pool2d": "GlobalMaxPool",
}


def _direct(op_type: str) -> Rule:
    return lambda w, call, ins: w.emit(op_type, ins)[0]


RULES |= {name: _direct(op_type) for name, op_type in _SAME.items()}


def rule(name: str) -> Callable[[Rule], Rule]:
    """Register the rule of an operator."""
    def register(fn: Rule) -> Rule:
        RULES[name] = fn
        return fn
    return register


def shape_of(node: Any) -> tuple[int, ...]:
    """The static shape of a typed expression."""
    return node.checked_type.concrete_shape


def ints(value: Any, count: int = 2) -> list[int]:
    """`count` integers from one number or a sequence of them."""
    values = [int(v) for v in value] if isinstance(value, (tuple, list)) else [int(value)]
    return values * count if len(values) == 1 else values


def pads(padding: Any) -> list[int]:
    """ONNX pads (top, left, bottom, right) from Relay's 1, 2 or 4 numbers."""
    values = ints(padding)
    return values * 2 if len(values) == 2 else values


def _only(call: Call, **wanted: Any) -> None:
    for name, value in wanted.items():
        if getattr(call.attrs, name) != value:
            raise RelayValueError(f"{call.op.name} with {name}={getattr(call.attrs, name)!r} has no ONNX form here",
                                  code="onnx.attribute", help=f"it is written for {name}={value!r}")


@rule("nn.conv2d")
def _conv2d(w: Writer, call: Call, ins: Names) -> str:
    _only(call, data_layout="NCHW", kernel_layout="OIHW")
    a = call.attrs
    return w.emit("Conv", ins, strides=ints(a.strides), pads=pads(a.padding), dilations=ints(a.dilation),
                  group=int(a.groups), kernel_shape=list(shape_of(call.args[1])[2:]))[0]


@rule("nn.conv2d_transpose")
def _conv2d_transpose(w: Writer, call: Call, ins: Names) -> str:
    _only(call, data_layout="NCHW", kernel_layout="IOHW")
    a = call.attrs
    return w.emit("ConvTranspose", ins, strides=ints(a.strides), pads=pads(a.padding), dilations=ints(a.dilation),
                  group=int(a.groups), output_padding=ints(a.output_padding),
                  kernel_shape=list(shape_of(call.args[1])[2:]))[0]


def _pool(op_type: str, w: Writer, call: Call, ins: Names, **more: Any) -> str:
    _only(call, layout="NCHW")
    a = call.attrs
    return w.emit(op_type, ins, kernel_shape=ints(a.pool_size), strides=ints(a.strides), pads=pads(a.padding),
                  ceil_mode=int(a.ceil_mode), **more)[0]


@rule("nn.max_pool2d")
def _max_pool2d(w: Writer, call: Call, ins: Names) -> str:
    return _pool("MaxPool", w, call, ins)


@rule("nn.avg_pool2d")
def _avg_pool2d(w: Writer, call: Call, ins: Names) -> str:
    return _pool("AveragePool", w, call, ins, count_include_pad=int(call.attrs.count_include_pad))


@rule("nn.batch_norm")
def _batch_norm(w: Writer, call: Call, ins: Names) -> list[str]:
    _only(call, axis=1)
    data, gamma, *rest = ins
    gamma = gamma if call.attrs.scale else w.constant(np.ones(shape_of(call.args[1]), "float32"))
    return w.emit("BatchNormalization", [data, gamma, *rest], epsilon=float(call.attrs.epsilon)) + rest[1:]


@rule("nn.layer_norm")
def _layer_norm(w: Writer, call: Call, ins: Names) -> str:
    return w.emit("LayerNormalization", ins, axis=int(call.attrs.axis), epsilon=float(call.attrs.epsilon))[0]


@rule("nn.dense")
def _dense(w: Writer, call: Call, ins: Names) -> str:
    if len(shape_of(call.args[0])) == 2:
        return w.emit("Gemm", ins, transB=1)[0]
    return w.emit("MatMul", [ins[0], w.emit("Transpose", [ins[1]], perm=[1, 0])[0]])[0]


def _swapped(w: Writer, name: str, rank: int, wanted: bool) -> str:
    perm = [*range(rank - 2), rank - 1, rank - 2]
    return w.emit("Transpose", [name], perm=perm)[0] if wanted else name


@rule("nn.matmul")
@rule("nn.batch_matmul")
def _matmul(w: Writer, call: Call, ins: Names) -> str:
    flags = (call.attrs.transpose_a, call.attrs.transpose_b)
    return w.emit("MatMul", [_swapped(w, n, len(shape_of(a)), bool(f)) for n, a, f in zip(ins, call.args, flags)])[0]


@rule("nn.bias_add")
def _bias_add(w: Writer, call: Call, ins: Names) -> str:
    rank = len(shape_of(call.args[0]))
    after = rank - 1 - int(call.attrs.axis) % rank
    if not after:
        return w.emit("Add", ins)[0]
    shape = w.constant(np.array([-1, *[1] * after], "int64"))
    return w.emit("Add", [ins[0], w.emit("Reshape", [ins[1], shape])[0]])[0]


@rule("nn.softmax")
def _softmax(w: Writer, call: Call, ins: Names) -> str:
    return w.emit("Softmax", ins, axis=int(call.attrs.axis))[0]


@rule("nn.dropout")
def _dropout(w: Writer, call: Call, ins: Names) -> list[str]:
    return [ins[0], ins[0]]


@rule("concatenate")
def _concatenate(w: Writer, call: Call, ins: Names) -> str:
    return w.emit("Concat", ins[0], axis=int(call.attrs.axis))[0]


@rule("split")
def _split(w: Writer, call: Call, ins: Names) -> list[str]:
    axis, found = int(call.attrs.axis), call.checked_type
    fields = found.fields if isinstance(found, TupleType) else (found,)
    sizes = w.constant(np.array([f.concrete_shape[axis] for f in fields], "int64"))
    return w.emit("Split", [ins[0], sizes], outputs=len(fields), axis=axis)


@rule("reshape")
def _reshape(w: Writer, call: Call, ins: Names) -> str:
    return w.emit("Reshape", [ins[0], w.constant(np.array(shape_of(call), "int64"))])[0]


@rule("transpose")
def _transpose(w: Writer, call: Call, ins: Names) -> str:
    axes = call.attrs.axes or range(len(shape_of(call)))[::-1]
    return w.emit("Transpose", ins, perm=[int(a) for a in axes])[0]


@rule("zeros")
def _zeros(w: Writer, call: Call, ins: Names) -> str:
    return w.constant(np.zeros(shape_of(call), call.checked_type.dtype))
