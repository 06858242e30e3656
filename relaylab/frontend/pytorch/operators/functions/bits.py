"""Functions of a float's parts: its neighbour, its fraction and exponent."""

from __future__ import annotations

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import Operand, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.operators.pointwise import both
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr


def _word(dtype: str) -> str:
    """The integer as wide as a float."""
    return f"int{np.dtype(dtype).itemsize * 8}"


@converts("nextafter")
def nextafter(g: TorchGraph, node: AtenNode, a: Operand, b: Operand) -> Expr:
    """The nearest float on the way to another: one more or less, of the bits without the sign."""
    x, to = both(g, node, a, b)
    word, zero = _word(node.dtype), g.const(0, node.dtype)
    bits = op.reinterpret(x, dtype=word)
    one = g.const(1, word)
    outwards = op.equal(op.less(x, to), op.greater(x, zero))
    moved = op.reinterpret(op.where(outwards, op.add(bits, one), op.subtract(bits, one)), dtype=node.dtype)
    least = op.reinterpret(op.ones_like(bits), dtype=node.dtype)
    from_zero = op.where(op.greater(to, zero), least, op.negative(least))
    out = op.where(op.equal(x, to), to, op.where(op.equal(x, zero), from_zero, moved))
    return op.where(op.logical_or(op.isnan(x), op.isnan(to)), op.add(x, to), out)


@converts("frexp.Tensor")
def frexp(g: TorchGraph, node: AtenNode, x: Expr) -> list[Expr]:
    """A fraction of 1/2 to 1 and the power of two that it is multiplied with, read from the bits of a normal number."""
    own = g.dtype(x)
    kind = "float64" if own == "float64" else "float32"  # those of 16 bits are normal in 32
    stored, bias = (52, 1022) if kind == "float64" else (23, 126)
    wide, word = g.to(x, kind), _word(kind)
    small = op.less(op.abs(wide), g.const(np.finfo(kind).tiny, kind))
    shift = 2 * stored
    scaled = op.where(small, op.multiply(wide, g.const(2.0**shift, kind)), wide)
    bits = op.reinterpret(scaled, dtype=word)
    exponent = op.bitwise_and(op.right_shift(bits, g.const(stored, word)), g.const(2 * bias + 3, word))
    mask = ~((2 * bias + 3) << stored)
    fraction = op.bitwise_or(op.bitwise_and(bits, g.const(mask, word)), g.const(bias << stored, word))
    power = op.cast(op.subtract(exponent, g.const(bias, word)), "int32")
    power = op.where(small, op.subtract(power, g.const(shift, "int32")), power)
    plain = op.logical_and(op.isfinite(wide), op.not_equal(wide, g.const(0, kind)))
    found = op.where(plain, op.reinterpret(fraction, dtype=kind), wide)
    return [g.to(found, own), op.where(plain, power, g.const(0, "int32"))]
