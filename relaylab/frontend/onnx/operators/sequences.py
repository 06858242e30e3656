"""Sequences of tensors: while a model is imported they are Python lists, so their lengths are known."""

from __future__ import annotations

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.table import converts
from relaylab.ir import Constant, Expr

MOST = 4096
"""Into how many pieces a tensor is split at most."""


def _items(node: OnnxNode, sequence: Expr | list[Expr]) -> list[Expr]:
    if not isinstance(sequence, list):
        raise node.error("a sequence is needed here, not a tensor", code="import.not-a-sequence")
    return sequence


def _place(g: Graph, node: OnnxNode, position: Expr | None, count: int, last: int) -> int:
    at = last if position is None else g.ints(position, "position")[0]
    if not -count <= at <= last:
        raise node.error(f"there is no place {at} among {count}", code="import.index")
    return at + count if at < 0 else at


@converts("SequenceConstruct", since=11)
def construct(g: Graph, node: OnnxNode, *tensors: Expr) -> list[list[Expr]]:
    return [list(tensors)]


@converts("SequenceEmpty", since=11, unused=("dtype",))
def empty(g: Graph, node: OnnxNode) -> list[list[Expr]]:
    return [[]]


@converts("Optional", "OptionalGetElement", since=15, unused=("type",))
def optional(g: Graph, node: OnnxNode, x: Expr | list[Expr]) -> list[Expr | list[Expr]]:
    """What may be missing is there while a model is read, or its operator is refused."""
    return [x]


@converts("OptionalHasElement", since=15)
def has_element(g: Graph, node: OnnxNode, x: Expr | list[Expr] | None = None) -> Expr:
    return Constant(np.array(x is not None))


@converts("SequenceInsert", since=11)
def insert(
    g: Graph, node: OnnxNode, sequence: Expr | list[Expr], tensor: Expr, position: Expr | None = None
) -> list[list[Expr]]:
    items = _items(node, sequence)
    at = _place(g, node, position, len(items), len(items))
    return [[*items[:at], tensor, *items[at:]]]


@converts("SequenceErase", since=11)
def erase(g: Graph, node: OnnxNode, sequence: Expr | list[Expr], position: Expr | None = None) -> list[list[Expr]]:
    items = _items(node, sequence)
    at = _place(g, node, position, len(items), len(items) - 1)
    return [items[:at] + items[at + 1 :]]


@converts("SequenceAt", since=11)
def item(g: Graph, node: OnnxNode, sequence: Expr | list[Expr], position: Expr) -> Expr:
    items = _items(node, sequence)
    return items[_place(g, node, position, len(items), len(items) - 1)]


@converts("SequenceLength", since=11)
def length(g: Graph, node: OnnxNode, sequence: Expr | list[Expr]) -> Expr:
    return Constant(np.array(len(_items(node, sequence)), "int64"))


@converts("ConcatFromSequence", since=11)
def concat(g: Graph, node: OnnxNode, sequence: Expr | list[Expr]) -> Expr:
    items, axis = _items(node, sequence), node.need("axis")
    return op.stack(items, axis) if node.get("new_axis", 0) else op.concatenate(items, axis)


@converts("SplitToSequence", since=11)
def split(g: Graph, node: OnnxNode, x: Expr, sizes: Expr | None = None) -> list[list[Expr]]:
    """Pieces of given sizes, of one size, or single slices."""
    axis, keep = g.axis(node.get("axis", 0), g.rank(x)), node.get("keepdims", 1)
    extent = g.shape(x)[axis]
    if sizes is None or g.rank(sizes) == 0:
        size = 1 if sizes is None else g.ints(sizes, "split")[0]
        if size < 1 or extent > size * MOST:
            raise node.error(f"pieces of {size} of the {extent} of axis {axis}; up to {MOST}", code="import.shape")
        each = [min(size, extent - k) for k in range(0, extent, size)]
    else:
        each = g.ints(sizes, "split")
    if sum(each) != extent or min(each, default=0) < 0:
        raise node.error(f"pieces of {each} do not make the {extent} of axis {axis}", code="import.shape")
    ends = np.cumsum([0, *each]).tolist()
    pieces = [op.strided_slice(x, [a], [b], [1], axes=[axis]) for a, b in zip(ends, ends[1:])]
    return [[op.squeeze(p, axis=[axis]) if sizes is None and not keep else p for p in pieces]]
