"""Sequences of tensors: while a model is imported they are Python lists, so their lengths are known; those that a loop
makes as long as data says are one tensor, whose rows they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph, is_open
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.arithmetic import same
from relaylab.frontend.onnx.table import converts
from relaylab.frontend.open_loops import turns_of
from relaylab.ir import Call, Constant, Expr, const, is_call_to

MOST = 4096
"""Into how many pieces a tensor is split at most."""


class OpenSequence(list[Expr]):
    """A sequence whose length only run time knows: `whole` has its tensors along a new first axis, or joined along
    `joined`, and what is inserted behind them are the items. None: there is nothing but items.
    """

    def __init__(self, whole: Expr | None, joined: int | None = None, items: Sequence[Expr] = ()):
        super().__init__(items)
        self.whole, self.joined = whole, joined


def _rows(node: OnnxNode, sequence: OpenSequence) -> Expr:
    if sequence.whole is None or sequence.joined is not None or sequence:
        raise node.error("which tensors a sequence has, only run time knows", code="import.not-a-sequence")
    return sequence.whole


def _items(node: OnnxNode, sequence: Expr | list[Expr]) -> list[Expr]:
    if not isinstance(sequence, list):
        raise node.error("a sequence is needed here, not a tensor", code="import.not-a-sequence")
    if isinstance(sequence, OpenSequence):
        _rows(node, sequence)
        raise node.error("it is not imported for a sequence of unknown length", code="import.not-a-sequence")
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
    if isinstance(sequence, OpenSequence) and position is None:
        return [OpenSequence(sequence.whole, sequence.joined, [*sequence, tensor])]
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
    if isinstance(sequence, OpenSequence):
        rows, at = _rows(node, sequence), same(g, op.reshape(position, ()), "int64")
        behind = op.add(at, turns_of(rows, 0))
        return op.take(rows, op.where(op.less(at, const(0, "int64")), behind, at), axis=0)
    items = _items(node, sequence)
    return items[_place(g, node, position, len(items), len(items) - 1)]


@converts("SequenceLength", since=11)
def length(g: Graph, node: OnnxNode, sequence: Expr | list[Expr]) -> Expr:
    if isinstance(sequence, OpenSequence):
        return turns_of(_rows(node, sequence), 0)
    return Constant(np.array(len(_items(node, sequence)), "int64"))


@converts("ConcatFromSequence", since=11)
def concat(g: Graph, node: OnnxNode, sequence: Expr | list[Expr]) -> Expr:
    axis = node.need("axis")
    if isinstance(sequence, OpenSequence):
        return _joined(g, node, sequence, axis, bool(node.get("new_axis", 0)))
    items = _items(node, sequence)
    return op.stack(items, axis) if node.get("new_axis", 0) else op.concatenate(items, axis)


def _joined(g: Graph, node: OnnxNode, sequence: OpenSequence, axis: int, new: bool) -> Expr:
    """All tensors of a sequence one behind another, along a new axis or one that they have."""
    if sequence.whole is not None and sequence.joined is not None and not sequence and not new:
        if g.axis(axis, g.rank(sequence.whole)) == sequence.joined:
            return sequence.whole
    rows = _rows(node, sequence)
    axis = g.axis(axis, g.rank(rows) - (not new))
    order = list(range(1, g.rank(rows)))
    order.insert(axis, 0)
    moved = op.transpose(rows, order)
    if new:
        return moved
    shape = [*g.dims(moved)[:axis], -1, *g.dims(moved)[axis + 2 :]]
    return op.reshape(moved, shape)


def _is_one(g: Graph, sizes: Expr) -> bool:
    """Whether pieces have one element each: a number, or as many ones as there are elements."""
    known = g.value(sizes)
    if known is None and (is_call_to(sizes, "full") or is_call_to(sizes, "broadcast_to")):
        known = g.value(cast(Call, sizes).args[0])
    return known is not None and known.size == 1 and int(known.reshape(())) == 1


@converts("SplitToSequence", since=11)
def split(g: Graph, node: OnnxNode, x: Expr, sizes: Expr | None = None) -> list[list[Expr]]:
    """Pieces of given sizes, of one size, or single slices."""
    axis, keep = g.axis(node.get("axis", 0), g.rank(x)), node.get("keepdims", 1)
    if is_open(g.dims(x)[axis]) and (sizes is None or _is_one(g, sizes)):
        rest = [k for k in range(g.rank(x)) if k != axis]
        rows = op.transpose(x, [axis, *rest])
        return [OpenSequence(rows if sizes is None and not keep else op.expand_dims(rows, axis + 1))]
    found = g.dims(x)[axis]
    extent = g.shape(x)[axis] if is_open(found) else found
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
