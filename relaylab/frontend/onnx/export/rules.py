"""How Relay operators are said in ONNX (opset 17): one rule per operator, from a typed call to nodes.

A rule gets the names of the call's operands (the fields of tuples in a row) and gives the name of the result. What
ONNX would compute otherwise than Relay is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relaylab.frontend.onnx.export.writer import Value, Writer
from relaylab.ir import Attrs, Call, Expr, Op, TensorType, TupleType
from relaylab.support.errors import RelayValueError

Rule = Callable[[Writer, Call, list[str]], Value]
RULES: dict[str, Rule] = {}

_ALIKE = {
    "nn.relu": "Relu",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "erf": "Erf",
    "exp": "Exp",
    "sqrt": "Sqrt",
    "log": "Log",
    "abs": "Abs",
    "negative": "Neg",
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "maximum": "Max",
    "minimum": "Min",
    "power": "Pow",
}


def _alike(op_type: str) -> Rule:
    return lambda w, call, ins: w.emit(op_type, ins)


RULES |= {name: _alike(op_type) for name, op_type in _ALIKE.items()}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of operators."""

    def register(fn: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, fn))
        return fn

    return register


def attributes(call: Call) -> Attrs:
    """The attributes of a call of an operator that has some."""
    assert isinstance(call.attrs, Attrs)
    return call.attrs


def type_of(expr: Expr) -> TensorType:
    """The type of a tensor."""
    assert isinstance(expr.checked_type, TensorType)
    return expr.checked_type


def shape_of(expr: Expr) -> tuple[int, ...]:
    """The static shape of a tensor."""
    return type_of(expr).concrete_shape


def ints(value: int | Sequence[int], count: int = 2) -> list[int]:
    """`count` integers from one number or a sequence of them."""
    values = [int(v) for v in value] if isinstance(value, Sequence) else [int(value)]
    return values * count if len(values) == 1 else values


def pads(padding: int | Sequence[int]) -> list[int]:
    """ONNX pads (top, left, bottom, right) from Relay's 1, 2 or 4 numbers."""
    values = ints(padding)
    return values * 2 if len(values) == 2 else values


def _refused(call: Call, what: str, help: str) -> RelayValueError:
    name = call.op.name if isinstance(call.op, Op) else "a call"
    return RelayValueError(f"{name} with {what} has no ONNX form here", code="export.attribute", help=help)


def _only(call: Call, **wanted: object) -> None:
    for name, value in wanted.items():
        found = attributes(call)[name]
        if found != value and not (name == "out_layout" and not found):
            raise _refused(call, f"{name}={found!r}", f"it is written for {name}={value!r}")


def _one_dtype(call: Call) -> None:
    """ONNX's products have the data type of their operands."""
    dtypes = {type_of(arg).dtype for arg in call.args} | {type_of(call).dtype}
    if len(dtypes) > 1:
        raise _refused(call, f"the data types {', '.join(sorted(dtypes))}", "operands and result have one data type")


@rule("nn.conv2d")
def _conv2d(w: Writer, call: Call, ins: list[str]) -> Value:
    _only(call, data_layout="NCHW", kernel_layout="OIHW", out_layout="NCHW")
    _one_dtype(call)
    a, weight = attributes(call), shape_of(call.args[1])
    outputs = shape_of(call)[1]
    if weight[0] != outputs:  # depthwise: Relay says (channels, multiplier, …), ONNX says (channels · multiplier, 1, …)
        shape = w.constant(np.array([outputs, 1, *weight[2:]], "int64"))
        ins = [ins[0], w.emit("Reshape", [ins[1], shape])]
    return w.emit(
        "Conv",
        ins,
        strides=ints(a["strides"]),
        pads=pads(a["padding"]),
        dilations=ints(a["dilation"]),
        group=int(a["groups"]),
        kernel_shape=list(weight[2:]),
    )


@rule("nn.conv2d_transpose")
def _conv2d_transpose(w: Writer, call: Call, ins: list[str]) -> Value:
    _only(call, data_layout="NCHW", kernel_layout="IOHW", out_layout="NCHW")
    _one_dtype(call)
    a = attributes(call)
    return w.emit(
        "ConvTranspose",
        ins,
        strides=ints(a["strides"]),
        pads=pads(a["padding"]),
        dilations=ints(a["dilation"]),
        group=int(a["groups"]),
        output_padding=ints(a["output_padding"]),
        kernel_shape=list(shape_of(call.args[1])[2:]),
    )


def _windows(call: Call) -> dict[str, list[int]]:
    """The windows of pooling; `ceil_mode` is said as padding behind, since ONNX drops some of its windows."""
    _only(call, layout="NCHW", out_layout="NCHW")
    a = attributes(call)
    sizes, strides, around, dilation = ints(a["pool_size"]), ints(a["strides"]), pads(a["padding"]), ints(a["dilation"])
    for k, (n, m) in enumerate(zip(shape_of(call.args[0])[2:], shape_of(call)[2:])):
        reach = (m - 1) * strides[k] + (sizes[k] - 1) * dilation[k] + 1
        around[k + 2] = max(around[k + 2], reach - n - around[k])
    return {"kernel_shape": sizes, "strides": strides, "pads": around}


@rule("nn.max_pool2d")
def _max_pool2d(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("MaxPool", ins, dilations=ints(attributes(call)["dilation"]), **_windows(call))


@rule("nn.avg_pool2d")
def _avg_pool2d(w: Writer, call: Call, ins: list[str]) -> Value:
    _only(call, dilation=(1, 1))
    windows, counts = _windows(call), bool(attributes(call)["count_include_pad"])
    if counts and windows["pads"] != pads(attributes(call)["padding"]):
        raise _refused(call, "ceil_mode and count_include_pad", "ONNX counts what ceil_mode adds")
    return w.emit("AveragePool", ins, count_include_pad=int(counts), **windows)


@rule("nn.global_avg_pool2d", "nn.global_max_pool2d")
def _global_pool(w: Writer, call: Call, ins: list[str]) -> Value:
    _only(call, layout="NCHW", out_layout="NCHW")
    average = isinstance(call.op, Op) and call.op.name == "nn.global_avg_pool2d"
    return w.emit("GlobalAveragePool" if average else "GlobalMaxPool", ins)


def _scale_and_shift(w: Writer, call: Call, ins: list[str]) -> tuple[str, str]:
    """gamma and beta, or what stands for them where they do not count."""
    like = np.ones(shape_of(call.args[1]), type_of(call.args[1]).dtype)
    a = attributes(call)
    return ins[1] if a["scale"] else w.constant(like), ins[2] if a["center"] else w.constant(0 * like)


@rule("nn.batch_norm")
def _batch_norm(w: Writer, call: Call, ins: list[str]) -> Value:
    _only(call, axis=1)
    data, mean, variance = ins[0], ins[3], ins[4]
    inputs = [data, *_scale_and_shift(w, call, ins), mean, variance]
    found = w.emit("BatchNormalization", inputs, epsilon=float(attributes(call)["epsilon"]))
    return [found, mean, variance]


@rule("nn.layer_norm")
def _layer_norm(w: Writer, call: Call, ins: list[str]) -> Value:
    a, rank = attributes(call), len(shape_of(call))
    if int(a["axis"]) % rank != rank - 1:  # ONNX normalizes over all axes from this one on
        raise _refused(call, f"axis={a['axis']}", "it is written for the last axis")
    inputs = [ins[0], *_scale_and_shift(w, call, ins)]
    return w.emit("LayerNormalization", inputs, axis=-1, epsilon=float(a["epsilon"]))


@rule("nn.dense")
def _dense(w: Writer, call: Call, ins: list[str]) -> Value:
    _one_dtype(call)
    if len(shape_of(call.args[0])) == 2:
        return w.emit("Gemm", ins, transB=1)
    return w.emit("MatMul", [ins[0], _swapped(w, ins[1], 2)])


def _swapped(w: Writer, name: str, rank: int) -> str:
    """A value with its last two axes exchanged."""
    return w.emit("Transpose", [name], perm=[*range(rank - 2), rank - 1, rank - 2])


@rule("nn.matmul", "nn.batch_matmul")
def _matmul(w: Writer, call: Call, ins: list[str]) -> Value:
    _one_dtype(call)
    flags = (attributes(call)["transpose_a"], attributes(call)["transpose_b"])
    sides = zip(ins, call.args, flags)
    return w.emit("MatMul", [_swapped(w, n, len(shape_of(a))) if swap else n for n, a, swap in sides])


@rule("nn.bias_add")
def _bias_add(w: Writer, call: Call, ins: list[str]) -> Value:
    rank = len(shape_of(call.args[0]))
    after = rank - 1 - int(attributes(call)["axis"]) % rank
    if not after:
        return w.emit("Add", ins)
    shape = w.constant(np.array([-1, *[1] * after], "int64"))
    return w.emit("Add", [ins[0], w.emit("Reshape", [ins[1], shape])])


@rule("nn.softmax")
def _softmax(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("Softmax", ins, axis=int(attributes(call)["axis"]))


@rule("nn.dropout")
def _dropout(w: Writer, call: Call, ins: list[str]) -> Value:
    data = call.args[0]
    return [ins[0], w.constant(np.ones(shape_of(data), type_of(data).dtype))]


@rule("concatenate")
def _concatenate(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("Concat", ins, axis=int(attributes(call)["axis"]))


@rule("split")
def _split(w: Writer, call: Call, ins: list[str]) -> Value:
    axis, found = int(attributes(call)["axis"]), call.checked_type
    assert isinstance(found, TupleType)
    fields = [f.concrete_shape[axis] for f in found.fields if isinstance(f, TensorType)]
    return list(w.several("Split", [ins[0], w.constant(np.array(fields, "int64"))], len(fields), axis=axis))


@rule("reshape", "nn.batch_flatten")
def _reshape(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("Reshape", [ins[0], w.constant(np.array(shape_of(call), "int64"))], allowzero=1)


@rule("transpose")
def _transpose(w: Writer, call: Call, ins: list[str]) -> Value:
    rank = len(shape_of(call))
    axes = attributes(call)["axes"] or range(rank)[::-1]
    return w.emit("Transpose", ins, perm=[int(a) % rank for a in axes]) if rank else w.emit("Identity", ins)


@rule("zeros")
def _zeros(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.constant(np.zeros(shape_of(call), type_of(call).dtype))
