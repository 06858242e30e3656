"""ByteProducts: products of integers that come from bytes read the bytes.

    sum (x - zero) (w + offset)  =  sum x w  +  offset sum x  -  zero sum (w + offset)

The last sum is known when the program is built if the weights are, the first one is a product of bytes, for which CPUs
have instructions.
The one between is needed where weights less their zero point span a byte and are no signed bytes.
Source: Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference,
CVPR 2018, section 2.3. Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from relaylab.ir import Call, Constant, Expr, Function, IRModule, TensorType, facets, is_call_to, op_name, rewrite
from relaylab.op.layout import parse_layout
from relaylab.op.window import spread_padding
from relaylab.transform.engine.build import call, scalar, scalar_value
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.quantized.products_of_bytes import (
    BYTES,
    LIMIT,
    PRODUCTS,
    WORD,
    depth,
    integer_attrs,
    moved_from,
    offset_of,
    out_axis,
    static_type,
    sums_words,
    units_axis,
)
from relaylab.transform.simplify.simplify_shapes import swaps_last


def _bytes(new: Expr, old: Expr) -> Expr:
    """A product of int32 numbers that come from bytes as one of the bytes."""
    if is_call_to(new, "nn.dense", "nn.batch_matmul") and not isinstance(new.args[1], Constant):
        return _of_inputs(new, cast(Call, old))
    if not is_call_to(new, *PRODUCTS) or not sums_words(cast(Call, old)) or _dtype(old) != "int32":
        return new
    w = new.args[1]
    offset = offset_of(w.data.numpy(), new) if isinstance(w, Constant) else None
    source = moved_from(new.args[0], cast(Call, old).args[0])
    found = _shifted(source.start, source.typed)
    if offset is None or found is None:
        return new
    x, zero = found
    known = scalar_value(zero)
    attrs = integer_attrs(new)
    x = source.moved(x)
    widths = _border(new) if known != 0 else {}
    if widths:
        if not _is_byte(source.typed, known):
            return new
        attrs["padding"] = (0, 0, 0, 0)
    axes, inner = _letters(cast(Call, old))
    missing = -depth(cast(Call, old)) % WORD
    if missing:  # numbers that no weight takes fill the last word
        widths["C"] = (0, missing)
    if widths:
        border = call("reshape", zero, newshape=()) if known is None else scalar(int(known), "int32")
        x = call("nn.pad", x, border, pad_width=[widths.get(c, (0, 0)) for c in axes])
    weights = cast(Constant, w).data.numpy()
    filled = np.pad(weights, [(0, missing if k == inner else 0) for k in range(weights.ndim)]) - offset
    product = call(op_name(new), x, Constant(filled.astype("int8")), **attrs)
    if offset:
        product = call("add", product, call("multiply", _windows(x, axes, attrs, filled), scalar(offset, "int32")))
    return product if known == 0 else _less(product, zero, _sums(cast(Call, old), weights))


def _of_inputs(new: Call, old: Call) -> Expr:
    """A product of bytes of which no factor is a constant: all sums are computed as it runs."""
    k, along = _inner(old)
    left, right = (moved_from(x, was) for x, was in zip(new.args, old.args))
    data, weight = (_shifted(left.start, left.typed), _signed(right.start, right.typed)) if k else (None, None)
    if data is None or weight is None:
        return new
    (x, zero), (w, offset) = (left.moved(data[0]), data[1]), (right.moved(weight[0]), weight[1])
    axes, sides = (len(cast("TensorType", type_of(e)).shape) for e in old.args)
    if missing := -k % WORD:
        widths = lambda rank, at: [(0, missing if d == at else 0) for d in range(rank)]
        x = call("nn.pad", x, scalar(0, "uint8"), pad_width=widths(axes, axes - 1))
        w = call("nn.pad", w, scalar(0, "int8"), pad_width=widths(sides, along))
    product: Expr = call(op_name(new), x, w, **integer_attrs(new))
    if scalar_value(offset) != 0:
        total = call("sum", call("cast", x, dtype="int32"), axis=[axes - 1], keepdims=True)
        product = call("add", product, call("multiply", total, _number(offset)))
    if scalar_value(zero) == 0:
        return product
    last = right.moves[0] if len(right.moves) == 1 and is_call_to(right.moves[0], "transpose") else None
    if last is not None and swaps_last(last, sides):  # where rows of weights lie side by side
        w, along = weight[0], 2 * sides - 3 - along
    sums = call("add", call("sum", call("cast", w, dtype="int32"), axis=[along]), _times(_number(offset), k))
    sums = call("expand_dims", sums, axis=1) if sides > 2 else sums
    return call("subtract", product, call("multiply", sums, _number(zero)))


def _inner(node: Call) -> tuple[int, int]:
    """How many numbers a product of matrices sums, and along which axis of the second; 0 if no bytes make it."""
    types = [static_type(e) for e in (node, *node.args)]
    if None in types or _dtype(node) != "int32" or getattr(facets(node), "transpose_a", False):
        return 0, 0
    shape = cast("TensorType", types[2]).concrete_shape
    along = len(shape) - 1 if op_name(node) == "nn.dense" or facets(node).transpose_b else len(shape) - 2
    k = shape[along]
    return (k if k >= WORD - 1 and k * 255 * 255 < LIMIT and 0 not in shape else 0), along


def _number(x: Expr) -> Expr:
    """One number, known or not, without axes."""
    return call("reshape", x, newshape=()) if scalar_value(x) is None else scalar(_int32(scalar_value(x)), "int32")


def _times(x: Expr, k: int) -> Expr:
    known = scalar_value(x)
    return call("multiply", x, scalar(k, "int32")) if known is None else scalar(_int32(int(known) * k), "int32")


def _plus(x: Expr, more: int) -> Expr:
    known = scalar_value(x)
    return call("add", x, scalar(more, "int32")) if known is None else scalar(_int32(int(known) + more), "int32")


def _int32(value: float | None) -> int:
    """A whole number as int32 wraps it."""
    return int(np.int64(value or 0).astype("int32"))


def _windows(x: Expr, axes: str, attrs: dict[str, Any], w: np.ndarray) -> Expr:
    """The sums of the data that each place of a product takes."""
    total = call("sum", call("cast", x, dtype="int32"), axis=[axes.index("C")], keepdims=True)
    if "kernel_layout" not in attrs:
        return total
    shape = [n if c in "HW" else 1 for c, n in zip(attrs["kernel_layout"], w.shape)]
    return call("nn.conv2d", total, Constant(np.ones(shape, "int32")), **{**attrs, "channels": 1})


def _is_byte(data: Expr, known: float | None) -> bool:
    """Is the number that is taken off the data within the bytes that it is taken off?"""
    if known is not None:
        return 0 <= known <= 255
    x, zero = cast(Call, data).args
    made = moved_from(zero, zero).start
    come = static_type(made.args[0]) if is_call_to(made, "cast") else None
    return come is not None and come.dtype == _dtype(cast(Call, x).args[0])


def _letters(node: Call) -> tuple[str, int]:
    """The axes of the data, C those that are summed with neighbours, and the axis of the weight that goes with C."""
    if op_name(node) == "nn.dense":
        rank = len(cast("TensorType", type_of(node)).shape)
        return "N" * (rank - 1) + "C", 1
    record = facets(node)
    return record.data_layout, parse_layout(record.kernel_layout).position("I")


def _border(node: Call) -> dict[str, tuple[int, int]]:
    """What a convolution's padding adds (before, after) each axis."""
    if op_name(node) == "nn.dense":
        return {}
    top, left, bottom, right = spread_padding(facets(node).padding, 2)
    return {c: w for c, w in {"H": (top, bottom), "W": (left, right)}.items() if any(w)}


def _dtype(x: Expr) -> str:
    return cast("TensorType", type_of(x)).dtype


def _shifted(x: Expr, old: Expr) -> tuple[Expr, Expr] | None:
    """Unsigned bytes and the number that was taken off them to give `x`."""
    found = _taken_off(x, old)
    if found is None or found[1] == "uint8":
        return None if found is None else (found[0].args[0], found[2])
    return call("cast", call("add", found[0], scalar(128, "int32")), dtype="uint8"), _plus(found[2], 128)


def _signed(x: Expr, old: Expr) -> tuple[Expr, Expr] | None:
    """Signed bytes and the number that was added to them to give `x`."""
    found = _taken_off(x, old)
    if found is None:
        return None
    of, dtype, zero = found
    added = _times(zero, -1)
    if dtype == "int8":
        return of.args[0], added
    return call("cast", call("subtract", of, scalar(128, "int32")), dtype="int8"), _plus(added, 128)


def _taken_off(x: Expr, old: Expr) -> tuple[Call, str, Expr] | None:
    """Bytes as int32, what they were, and the number that was taken off them to give `x`; 0 if none was."""
    zero: Expr = scalar(0, "int32")
    if is_call_to(old, "subtract"):
        t = static_type(old.args[1])
        if t is None or int(np.prod(t.concrete_shape)) != 1 or len(t.shape) > 1 or t.dtype != "int32":
            return None
        (x, zero), old = cast(Call, x).args, old.args[0]
    if not is_call_to(old, "cast") or facets(old).dtype != "int32" or (t := static_type(old.args[0])) is None:
        return None
    return (cast(Call, x), t.dtype, zero) if t.dtype in BYTES else None


def _sums(node: Call, w: np.ndarray) -> np.ndarray:
    """The sum of the weights of each unit, as it broadcasts with the result."""
    axis = units_axis(node)
    total = w.astype("int64").sum(axis=tuple(k for k in range(w.ndim) if k != axis)).astype("int32")
    rank, out = len(cast("TensorType", type_of(node)).shape), out_axis(node)
    return total.reshape(-1, *(1,) * (rank - 1 - out % rank))


def _less(product: Expr, zero: Expr, sums: np.ndarray) -> Expr:
    """`product - zero * sums`, as an addition where it is known."""
    known = scalar_value(zero)
    if known is not None:
        return call("add", product, Constant((-sums.astype("int64") * int(known)).astype("int32")))
    return call("subtract", product, call("multiply", zero, Constant(sums)))


@pass_(level=1, requires=("InferType",), idempotent=True)
class ByteProducts(FunctionPass):
    """Lets convolutions and dense layers of int32 read the bytes that their data and constant weights were made of."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return rewrite(func, _bytes, only=("cast",))
