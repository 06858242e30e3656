"""Rows of tiles in registers: `sum[c] += x * w[c]` for the lanes of a loop, without a look at the address of each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relaylab.codegen.llvm.text import Value
from relaylab.codegen.loops.contexts import Ramp, VectorContext
from relaylab.codegen.loops.emit import Emitter
from relaylab.loop.expr import Axis, Load, ScalarExpr, Tensor
from relaylab.loop.program import For, Store


@dataclass(frozen=True, slots=True)
class TileRow:
    """Neighbours in a buffer in registers: where they begin, and how far each loop around them moves that."""

    tensor: Tensor
    start: int
    steps: tuple[int, ...]

    def at(self, turn: Sequence[int]) -> int:
        """Where they begin in a turn of the loops."""
        return self.start + sum(i * step for i, step in zip(turn, self.steps))


def add_products(emitter: Emitter, loop: For, at: VectorContext, width_of: Callable[[For], int]) -> bool:
    """Emit a loop of lanes, or loops written out around one, if all that it does is to add products in registers.

    Returns whether it does.
    """
    around: list[Axis] = []
    while loop.kind == "unrolled" and len(loop.body) == 1 and isinstance(loop.body[0], For):
        around.append(loop.axis)
        loop = loop.body[0]
    store, axis = loop.body[0] if len(loop.body) == 1 else None, loop.axis
    if loop.kind != "vectorized" or not isinstance(store, Store) or axis.extent < 2 or axis.size is not None:
        return False
    products = emitter.fused(store.value)
    to = None if products is None else _row(emitter, store.buffer, store.address, axis, at, around)
    if products is None or to is None:
        return False
    rows: list[TileRow | Value] = []
    for node in products:
        found = _part(emitter, node, axis, at, around)
        if found is None:
            return False
        rows.append(found)
    cells, width = emitter.cells, width_of(loop)
    for turn in itertools.product(*(range(a.extent) for a in around)):
        starts = [row.at(turn) if isinstance(row, TileRow) else 0 for row in (to, *rows)]
        for first in range(0, axis.extent, width):
            count = min(width, axis.extent - first)
            total, x, w = (
                cells.read(row.tensor, start + first, count, width)
                if isinstance(row, TileRow)
                else emitter.spread(row, width)
                for row, start in zip(rows, starts[1:])
            )
            product = emitter.add_product(store.value.dtype, total, x, w)
            cells.write(store.buffer, starts[0] + first, count, product)
    return True


def _part(
    emitter: Emitter, node: ScalarExpr, axis: Axis, at: VectorContext, around: Sequence[Axis]
) -> TileRow | Value | None:
    if isinstance(node, Load):
        return _row(emitter, node.tensor, node.indices[0], axis, at, around)
    x = at.env.get(node)
    return x if isinstance(x, Value) else None


def _row(
    emitter: Emitter, tensor: Tensor, address: ScalarExpr, axis: Axis, at: VectorContext, around: Sequence[Axis]
) -> TileRow | None:
    """Neighbours along an axis in a buffer in registers; None if they are no such thing."""
    if tensor not in emitter.cells.tensors:
        return None
    if address is axis:
        return TileRow(tensor, 0, ())
    found = emitter.axis_sum(address)
    if found is None:
        return None
    steps, (terms, start), lanes = [0] * len(around), found, 0
    for atom, factor in terms:
        if atom is axis:
            lanes = factor
        elif atom in around:
            steps[around.index(atom)] = factor
        else:
            x = at.env.get(atom)
            if not isinstance(x, Ramp) or x.step or not isinstance(x.base, int):
                return None
            start += x.base * factor
    return TileRow(tensor, start, tuple(steps)) if lanes == 1 else None
