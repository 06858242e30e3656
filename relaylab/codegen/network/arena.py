"""Where intermediate tensors lie: blocks with life spans are packed into one arena."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

ALIGNMENT = 64
# Kernels may prefetch or read whole vectors a little past the end of an operand.
SLACK = 64


@dataclass(eq=False, slots=True)
class Allocation:
    """`size` bytes that are needed from step `first` to step `last`, both inclusive.

    Blocks with a `halo` key rely on parts that are zero and that nobody writes (zero halos): such a
    block shares memory with blocks of the same key only, at the same place.
    """

    size: int
    first: int
    last: int
    halo: Hashable = None


def place(blocks: Sequence[Allocation]) -> tuple[list[int], int]:
    """(offset of each block, bytes of the arena). Blocks that live at the same time do not overlap.

    Greedy by size: the largest block first, each at the lowest offset that is free during its life
    (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020).
    """
    offsets = [0] * len(blocks)
    total = _place_halos(blocks, offsets)
    taken: dict[int, list[tuple[int, int]]] = {}
    free = [k for k, block in enumerate(blocks) if block.halo is None]
    # Large blocks leave the fewest gaps when they are placed first; equal ones in the order of time, to be the same
    # each run.
    for k in sorted(free, key=lambda k: (-blocks[k].size, blocks[k].first)):
        block, size = blocks[k], _padded(blocks[k].size)
        offsets[k] = _lowest_gap(_neighbours(block, taken), size, total)
        for step in range(block.first, block.last + 1):
            taken.setdefault(step, []).append((offsets[k], size))
    ends = (offsets[k] + _padded(blocks[k].size) for k in free)
    return offsets, max([total, *ends])


def _padded(size: int) -> int:
    return size + SLACK + -(size + SLACK) % ALIGNMENT


def _neighbours(block: Allocation, taken: dict[int, list[tuple[int, int]]]) -> set[tuple[int, int]]:
    """(offset, size) of everything placed that lives while `block` does."""
    return {span for step in range(block.first, block.last + 1) for span in taken.get(step, ())}


def _lowest_gap(spans: set[tuple[int, int]], size: int, start: int) -> int:
    at = start
    for offset, length in sorted(spans):
        if offset - at >= size:
            return at
        at = max(at, offset + length)
    return at


def _place_halos(blocks: Sequence[Allocation], offsets: list[int]) -> int:
    """Give blocks with halos their own places at the start of the arena, reused by blocks of equal key only."""
    places: dict[Hashable, list[tuple[int, int]]] = {}
    total = 0
    order = sorted((k for k, block in enumerate(blocks) if block.halo is not None), key=lambda k: blocks[k].first)
    for k in order:
        block = blocks[k]
        reusable = places.setdefault(block.halo, [])
        for n, (offset, busy_until) in enumerate(reusable):
            if busy_until < block.first:
                offsets[k], reusable[n] = offset, (offset, block.last)
                break
        else:
            offsets[k] = total
            reusable.append((total, block.last))
            total += _padded(block.size)
    return total
