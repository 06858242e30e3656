"""Vectors whose lanes lie rows apart in memory: loaded and transposed, or stored, several at a time."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.codegen.kernels.kernel import item_bytes
from relaylab.codegen.llvm.text import Index, IRFunction, Value, constant, lanes, vector
from relaylab.codegen.loops.contexts import Ramp, VectorContext, first_lanes, to_storage
from relaylab.codegen.loops.emit import Emitter
from relaylab.loop.expr import Load, ScalarExpr, Tensor


def transpose_squares(f: IRFunction, rows: Sequence[Value], size: int) -> list[Value]:
    """The transpose of squares side by side: a vector holds one row of each (a power of two of rows), of elements of so
    many bytes.
    """
    # Swapping blocks of 1, 2, 4 ... lanes between rows: n log n shuffles, where lane by lane takes n * n inserts.
    rows, type, block = list(rows), rows[0].type, 1
    while block < len(rows):
        wide = size * block if size * block <= 8 else size  # blocks as lanes of their own: LLVM is done sooner
        width, step = lanes(type) * size // wide, block * size // wide
        kind = type if wide == size else vector(f"i{8 * wide}", width)
        keep = [lane if not lane & step else width + lane - step for lane in range(width)]
        take = [lane + step if not lane & step else width + lane for lane in range(width)]
        for low in (r for r in range(len(rows)) if not r & block):
            a, b = (f.cast("bitcast", x, kind) for x in (rows[low], rows[low + block]))
            rows[low], rows[low + block] = f.shuffle(a, b, keep), f.shuffle(a, b, take)
        block *= 2
    return [f.cast("bitcast", x, type) for x in rows]


def load_columns(
    f: IRFunction, pointer: Value, type: str, size: int, width: int, active: int, step: int, count: int
) -> list[Value]:
    """`count` vectors: lane l of vector k is element l * `step` + k after `pointer`; lanes from `active` on are zero.

    `size` is the bytes of an element; `width`, a power of two, the lanes.
    """
    found: list[Value] = []
    for first in range(0, count, width):
        real = min(width, count - first)
        side = max(2, 1 << (real - 1).bit_length())
        kind = vector(type, side)
        mask = None if real == side else first_lanes(real, side).lanes
        places = [f.offset(pointer, (lane * step + first) * size) for lane in range(active)]
        rows = [f.load(kind, place, size, mask) for place in places]
        rows += [constant(kind, 0)] * (width - active)
        found += transpose_squares(f, [_joined(f, rows[k::side]) for k in range(side)], size)[:real]
    return found


def _joined(f: IRFunction, parts: Sequence[Value]) -> Value:
    """Vectors one after another in one; a power of two of them."""
    while len(parts) > 1:
        both = range(2 * lanes(parts[0].type))
        parts = [f.shuffle(a, b, both) for a, b in zip(parts[::2], parts[1::2])]
    return parts[0]


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


def rows_apart(emitter: Emitter, load: Load, turns: Sequence[VectorContext]) -> Ramp | None:
    """Where a load begins whose lanes are apart and whose turns are neighbours; None for any other."""
    if len(turns) < 2:
        return None
    first = neighbours(emitter, load.indices[0], turns)
    return first if first is not None and first.step not in (0, 1) else None


def neighbours(emitter: Emitter, address: ScalarExpr, turns: Sequence[VectorContext]) -> Ramp | None:
    """The first turn's addresses, if lanes are evenly apart and each turn is one element after the one before."""
    # Of a quotient or remainder any two turns may be neighbours, and the next two not. What this computes is symbolic,
    # or found again later.
    found = list[Ramp]()
    for turn in turns:
        here = emitter.lane(address, turn)
        if not isinstance(here, Ramp) or found and here.step != found[0].step:
            return None
        if found and emitter.f.sub(here.base, found[-1].base) != 1:
            return None
        found.append(here)
    return found[0]
