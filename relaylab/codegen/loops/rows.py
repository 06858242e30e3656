"""Rows of tiles in registers: `sum[c] += x * w[c]` for the lanes of a loop, without a look at the address of each."""

from __future__ import annotations

from relaylab.codegen.llvm.text import Value
from relaylab.codegen.loops.contexts import RowPart, VectorContext
from relaylab.codegen.loops.emit import Emitter
from relaylab.loop.expr import Axis, Load, ScalarExpr, Tensor
from relaylab.loop.program import Store


def add_products(emitter: Emitter, store: Store, axis: Axis, width: int, at: VectorContext) -> bool:
    """Emit a store for all turns of `axis`, if it adds a product of what is in registers; whether it does."""
    row = _product_row(emitter, store.value, axis, at)
    where = _row_start(emitter, store.buffer, store.address, axis, at)
    if row is None or where is None:
        return False
    for first in range(0, axis.extent, width):
        count = min(width, axis.extent - first)
        total, x, w = (part(first, count, width) for part in row)
        emitter.cells.write(store.buffer, where + first, count, emitter.f.fma(x, w, total))
    return True


def _product_row(emitter: Emitter, node: ScalarExpr, axis: Axis, at: VectorContext) -> list[RowPart] | None:
    """A sum and the two factors added to it, along an axis whose turns are lanes, if all are in registers."""
    parts = emitter.fused(node)
    known: list[RowPart] = []
    for part in parts or ():
        found = _row_part(emitter, part, axis, at)
        if found is None:
            return None
        known.append(found)
    return known or None


def _row_part(emitter: Emitter, node: ScalarExpr, axis: Axis, at: VectorContext) -> RowPart | None:
    if isinstance(node, Load):
        start, tensor = _row_start(emitter, node.tensor, node.indices[0], axis, at), node.tensor
        return None if start is None else lambda k, count, width: emitter.cells.read(tensor, start + k, count, width)
    x = at.env.get(node)
    return (lambda k, count, width: emitter.spread(x, width)) if isinstance(x, Value) else None


def _row_start(emitter: Emitter, tensor: Tensor, address: ScalarExpr, axis: Axis, at: VectorContext) -> int | None:
    """Where neighbours along an axis begin in a buffer in registers; None if they are no such thing."""
    if tensor not in emitter.cells.tensors:
        return None
    if address is axis:
        return 0
    found = emitter.axis_sum(address)
    if found is None or (axis, 1) not in found[0]:
        return None
    rest = emitter.total((tuple(term for term in found[0] if term[0] is not axis), found[1]), at)
    return rest.base if rest is not None and isinstance(rest.base, int) and rest.step == 0 else None
