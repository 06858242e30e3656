"""Weights of language models: numbers of a few bits in blocks, each with a scale and a zero point of its own.

Those of 4 bits stay as they are in memory; others become floats when the model is read. Choices: docs/choices.md,
Importing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.model import unpacked
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators import contract
from relaylab.frontend.onnx.table import CONTRIB, converts
from relaylab.ir import Constant, Expr
from relaylab.op import nn
from relaylab.op.nn.prepared.dense_uint4 import PANEL, WORD, in_panels, packed

_INT8 = 4
"""The level of accuracy that allows data of 8 bits; others ask for more."""
_LEAST = 16
"""Columns from which on 4 bits are kept; below, most of a panel would be empty."""


@dataclass(frozen=True)
class Blocks:
    """A matrix `(units, k)` in blocks along k: numbers 0 .. 15, and `(units, blocks)` scales and zero points."""

    numbers: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray

    def layer(self, a: Expr, rounded: bool = False) -> Expr | None:
        """The dense layer with this weight, the data `rounded` to 8 bits if so.

        None where blocks are not of one length or columns are few.
        """
        (units, depth), blocks = self.numbers.shape, self.scales.shape[1]
        if units < _LEAST or depth % (blocks * WORD):
            return None
        zeros = in_panels(self.zeros, PANEL) if np.ptp(self.zeros) else self.zeros[:1, :1, None]
        parts = (packed(self.numbers, PANEL), in_panels(self.scales, PANEL), np.ascontiguousarray(zeros))
        return nn.contrib_dense_uint4(a, *map(Constant, parts), units=units, rounded=rounded)


def blocks_of(x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None) -> Blocks | None:
    """A matrix `(k, units)` of integers whose blocks lie along k; None if 4 bits do not hold them."""
    low = 8 if x.size and x.min() < 0 else 0
    numbers = x.T.astype("int64") + low
    if x.ndim != 2 or numbers.min(initial=0) < 0 or numbers.max(initial=0) > 15:
        return None
    shift = np.zeros(scale.T.shape, "uint8") if zero is None else zero.T
    return Blocks(numbers.astype("uint8"), scale.T, (shift.astype("int64") + low).astype("uint8"))


@converts("MatMulNBits", domain=CONTRIB)
def matmul_n_bits(
    g: Graph, node: OnnxNode, a: Expr, b: Expr, scales: Expr, zeros: Expr | None = None, order: Expr | None = None,
    bias: Expr | None = None,
) -> Expr:  # fmt: skip
    """A product with a weight in blocks of a few bits."""
    rows, depth, bits, block = (node.need(n) for n in ("N", "K", "bits", "block_size"))
    data, by = g.known(b, "B"), g.known(scales, "scales")
    if order is not None or node.get("weight_prepacked", 0) or not 1 <= bits <= 8:
        raise node.error("weights in another order are not imported", code="import.input")
    blocks = -(-depth // block)
    shift = np.full((rows, blocks), 1 << (bits - 1), "uint8")
    if zeros is not None:
        given = g.known(zeros, "zero_points")
        shift = given if given.dtype != np.uint8 else unpacked(given.reshape(rows, -1), bits)[:, :blocks]
        shift = shift.reshape(rows, blocks)
    if data.dtype != np.uint8 or data.size * 8 != rows * blocks * block * bits or by.size != rows * blocks:
        raise node.error(f"{data.shape} bytes are no {rows} x {blocks} blocks of {block}", code="import.shape")
    values, by = unpacked(data.reshape(rows, blocks, -1), bits), by.reshape(rows, blocks)
    rounded = node.get("accuracy_level", 0) == _INT8
    kept = bits == 4 and depth == blocks * block
    out = Blocks(values.reshape(rows, -1), by, shift).layer(a, rounded) if kept else None
    if out is None:
        plain = (values.astype("float32") - shift[..., None].astype("float64")) * by[..., None]
        out = contract.product(g, a, g.const(plain.reshape(rows, -1)[:, :depth].T, a))
    return out if bias is None else op.add(out, bias)
