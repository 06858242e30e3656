"""The register tile: rows x vectors of accumulators that stay in registers over the whole reduction.

The input is the broadcast side (one scalar per row, rows at static displacements of one pointer), the weights are
the vector side. Each step of the reduction loads the weight vectors once and reuses them for every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylab.codegen.llvm.text import IRFunction, Value, constant, vector
from relaylab.codegen.templates.problem import Tap

UNROLLED_PRODUCTS = 28  # vector products in a loop body: more gains nothing measurable and costs compile time


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """What a register tile computes. Steps and offsets are in bytes; `active` are the real lanes of the last vector."""

    type: str
    itemsize: int
    width: int
    vectors: int
    active: int
    rows: tuple[int, ...]
    taps: tuple[Tap, ...]
    w_step: int

    def zeros(self) -> list[Value]:
        """Accumulators that start from nothing."""
        return [constant(vector(self.type, self.width), 0)] * (len(self.rows) * self.vectors)


@dataclass(frozen=True, slots=True)
class PanelPrefetch:
    """Memory to bring closer during the reduction: from where, how many bytes per step of it."""

    pointer: Value
    bytes: int


def unroll(count: int, products: int) -> int:
    """How many reduction steps a loop body holds."""
    best = max(1, min(4, UNROLLED_PRODUCTS // max(1, products)))
    return count if count <= best else max(u for u in range(1, best + 1) if u == 1 or count // u > 1)


def accumulate(
    f: IRFunction, tile: RegisterTile, x: Value, w: Value, acc: Sequence[Value], prefetch: PanelPrefetch | None = None
) -> tuple[Value, ...]:
    """The accumulators after the whole reduction, starting at input pointer `x` and weight pointer `w`."""
    start = (x, w, prefetch.pointer) if prefetch else (x, w)
    return _nest(f, tile, 0, start, tuple(acc), prefetch.bytes if prefetch else 0)[1]


def _nest(
    f: IRFunction, tile: RegisterTile, level: int, at: tuple[Value, ...], acc: tuple[Value, ...], prefetch: int
) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Reduce over the taps from `level` on; (weight and prefetch pointers afterwards, accumulators)."""
    if level == len(tile.taps) - 1:
        return _innermost(f, tile, at, acc, prefetch)
    tap, moving = tile.taps[level], len(at)

    def body(_: object, *carried: Value) -> tuple[Value, ...]:
        x = carried[0]
        rest, after = _nest(f, tile, level + 1, carried[:moving], carried[moving:], prefetch)
        return (f.offset(x, tap.x * tile.itemsize), *rest, *after)

    out = f.loop(0, tap.count, body, (*at, *acc))
    return out[1:moving], out[moving:]


def _innermost(
    f: IRFunction, tile: RegisterTile, at: tuple[Value, ...], acc: tuple[Value, ...], prefetch: int
) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    tap, moving = tile.taps[-1], len(at)
    turn = unroll(tap.count, len(acc))

    def steps(carried: tuple[Value, ...], count: int) -> tuple[Value, ...]:
        results = carried[moving:]
        for k in range(count):
            results = _step(f, tile, carried[0], carried[1], k, results)
        if prefetch:
            # Every line exactly once over all tiles: fewer lose most of the gain, more cost loads (49 x 512 x 4608:
            # 65 to 87 % of peak).
            for line in range(-(-prefetch * count // 64)):
                f.prefetch(f.offset(carried[2], line * 64))
        moves = (tap.x * tile.itemsize, tile.w_step, prefetch)
        return (*(f.offset(p, count * move) for p, move in zip(carried[:moving], moves)), *results)

    out = f.loop(0, tap.count // turn, lambda _, *carried: steps(carried, turn), (*at, *acc))
    if tap.count % turn:
        out = steps(out, tap.count % turn)
    return out[1:moving], out[moving:]


def _step(f: IRFunction, tile: RegisterTile, x: Value, w: Value, k: int, acc: Sequence[Value]) -> tuple[Value, ...]:
    """One step of the reduction: load the weight vectors, broadcast each row's scalar, multiply and add."""
    step = tile.width * tile.itemsize  # panels are padded to whole vectors
    weights = [
        f.load(vector(tile.type, tile.width), f.offset(w, k * tile.w_step + j * step), step)
        for j in range(tile.vectors)
    ]
    results = []
    for row, offset in enumerate(tile.rows):
        where = f.offset(x, offset + k * tile.taps[-1].x * tile.itemsize)
        wide = f.splat(f.load(tile.type, where, tile.itemsize), tile.width)
        sums = acc[row * tile.vectors : (row + 1) * tile.vectors]
        results.extend(f.fma(wide, v, total) for v, total in zip(weights, sums))
    return tuple(results)
