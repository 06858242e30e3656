"""ByteProducts: products of integers that come from bytes read the bytes.

    sum (x - zero) w  =  sum x w  -  zero sum w

The right sum is known when the program is built, the left one is a product of bytes, for which CPUs have instructions.
Source: Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference,
CVPR 2018, section 2.3.
"""

from __future__ import annotations

from typing import cast

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
    PRODUCTS,
    WORD,
    are_bytes,
    depth,
    integer_attrs,
    moved_from,
    out_axis,
    static_type,
    sums_words,
    units_axis,
)


def _bytes(new: Expr, old: Expr) -> Expr:
    """A product of int32 numbers that come from bytes as one of the bytes."""
    if not is_call_to(new, *PRODUCTS) or not sums_words(cast(Call, old)) or _dtype(old) != "int32":
        return new
    w = new.args[1]
    if not isinstance(w, Constant) or not are_bytes(w.data.numpy(), np.zeros((), "int32"), 0):
        return new
    source = moved_from(new.args[0], cast(Call, old).args[0])
    found = _shifted(source.start, source.typed)
    if found is None:
        return new
    x, zero = found
    known = scalar_value(zero)
    attrs = integer_attrs(new)
    x = source.moved(x)
    widths = _border(new) if known != 0 else {}
    if widths:
        if known is None or not 0 <= known <= 255:
            return new
        attrs["padding"] = (0, 0, 0, 0)
    axes, inner = _letters(cast(Call, old))
    missing = -depth(cast(Call, old)) % WORD
    if missing:  # numbers that no weight takes fill the last word
        widths["C"] = (0, missing)
    if widths:
        x = call("nn.pad", x, scalar(int(known or 0), "int32"), pad_width=[widths.get(c, (0, 0)) for c in axes])
    filled = np.pad(w.data.numpy(), [(0, missing if k == inner else 0) for k in range(w.data.ndim)])
    product = call(op_name(new), x, Constant(filled.astype("int8")), **attrs)
    return product if known == 0 else _less(product, zero, _sums(cast(Call, old), w.data.numpy()))


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
    zero: Expr = scalar(0, "int32")
    if is_call_to(old, "subtract"):
        t = static_type(old.args[1])
        if t is None or int(np.prod(t.concrete_shape)) != 1 or len(t.shape) > 1 or t.dtype != "int32":
            return None
        (x, zero), old = cast(Call, x).args, old.args[0]
    if not is_call_to(old, "cast") or facets(old).dtype != "int32" or (t := static_type(old.args[0])) is None:
        return None
    if t.dtype == "uint8":
        return cast(Call, x).args[0], zero
    if t.dtype != "int8":
        return None
    moved = call("cast", call("add", x, scalar(128, "int32")), dtype="uint8")
    value = scalar_value(zero)
    more = call("add", zero, scalar(128, "int32")) if value is None else scalar(int(value) + 128, "int32")
    return moved, more


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
        return rewrite(func, _bytes)
