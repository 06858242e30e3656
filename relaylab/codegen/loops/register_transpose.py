"""Vectors whose lanes lie rows apart in memory: loaded and transposed, or stored, several at a time."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.codegen.kernels.kernel import item_bytes
from relaylab.codegen.llvm.text import Index, IRFunction, Value, constant, vector
from relaylab.codegen.loops.contexts import VectorContext, first_lanes, to_storage
from relaylab.codegen.loops.emit import Emitter
from relaylab.loop.expr import Tensor


def transpose_square(f: IRFunction, rows: Sequence[Value]) -> list[Value]:
    """The transpose of a square held as one vector per row (a power of two of them)."""
    # Swapping blocks of 1, 2, 4 ... lanes between rows: n log n shuffles, where lane by lane takes n * n inserts.
    rows, count, step = list(rows), len(rows), 1
    while step < count:
        keep = [lane if not lane & step else count + lane - step for lane in range(count)]
        take = [lane + step if not lane & step else count + lane for lane in range(count)]
        for low in (r for r in range(count) if not r & step):
            a, b = rows[low], rows[low + step]
            rows[low], rows[low + step] = f.shuffle(a, b, keep), f.shuffle(a, b, take)
        step *= 2
    return rows


def load_columns(
    f: IRFunction, pointer: Value, type: str, size: int, width: int, active: int, step: int, count: int
) -> list[Value]:
    """`count` vectors: lane l of vector k is element l * `step` + k after `pointer`; lanes from `active` on are zero.

    `size` is the bytes of an element; `width`, a power of two, the lanes.
    """
    found: list[Value] = []
    for first in range(0, count, width):
        real = min(width, count - first)
        mask = first_lanes(real, width).lanes
        places = [f.offset(pointer, (lane * step + first) * size) for lane in range(active)]
        rows = [f.load(vector(type, width), place, size, mask) for place in places]
        rows += [constant(vector(type, width), 0)] * (width - active)
        found += transpose_square(f, rows)[:real]
    return found


def store_interleaved(emitter: Emitter, tensor: Tensor, base: Index, rows: list[Value], at: VectorContext) -> None:
    """Store lane 0 of every row, then lane 1 of every row ... from element `base` on."""
    width, size, f = at.width, item_bytes(tensor.dtype), emitter.f
    rows = [to_storage(emitter.f, row, tensor.dtype, emitter.halves) for row in rows]
    for k in range(len(rows)):
        source = [divmod(p, len(rows)) for p in range(k * width, (k + 1) * width)]
        x = rows[0]
        for r, row in enumerate(rows[1:], 1):
            kept = [lane for lane, _ in source] if r == 1 else range(width)
            x = f.shuffle(x, row, [width + lane if own == r else old for (lane, own), old in zip(source, kept)])
        pointer = f.offset(emitter.pointers[tensor], f.mul(f.add(base, k * width), size))
        mask = at.mask.lanes
        f.store(x, pointer, size, mask and f.shuffle(mask, mask, [lane for lane, _ in source]))
