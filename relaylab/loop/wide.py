"""Copies of small groups as copies of larger numbers: two bytes side by side move as one number of 16 bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from relaylab.loop.expr import Load, ScalarExpr, Tensor
from relaylab.loop.region import Assign, StoreRegion, address
from relaylab.loop.simplify import Simplifier

WORDS = {2: "uint16", 4: "uint32", 8: "uint64"}


@dataclass(frozen=True, slots=True)
class WideCopy:
    """A region of wider elements, and what stands for the buffers that it reads and writes."""

    region: StoreRegion
    buffers: dict[Tensor, Tensor]


def wide_copy(parts: Sequence[tuple[StoreRegion, Simplifier]]) -> WideCopy | None:
    """A copy whose innermost axis is a group of 2, 4 or 8 bytes on both sides, group by group; None for all else."""
    if len(parts) != 1 or len(parts[0][0].stores) != 1:
        return None
    [(region, simplifier)] = parts
    [store] = region.stores
    load = store.value
    if not isinstance(load, Load):
        return None
    to, of = simplifier.linear(store.address), simplifier.linear(load.indices[0])
    inner = next((a for a in region.axes if to.terms.get(a) == of.terms.get(a) == 1 and a.size is None), None)
    size = 0 if inner is None else inner.extent * np.dtype(load.dtype).itemsize
    if inner is None or inner.extent == 1 or size not in WORDS or len(region.axes) < 2:
        return None
    numbers = [n for side in (to, of) for n in (*side.terms.values(), side.const)]
    if not {*to.terms, *of.terms} <= {*region.axes} or sum(n % inner.extent != 0 for n in numbers) != 2:
        return None
    axes = tuple(a for a in region.axes if a is not inner)
    wide = {t: Tensor(t.name, (-(-t.shape[0] // inner.extent),), WORDS[size]) for t in (store.buffer, load.tensor)}

    def place(side: dict[ScalarExpr, int], start: int) -> ScalarExpr:
        return address(axes, tuple(side.get(a, 0) // inner.extent for a in axes), start // inner.extent)

    value = Load(wide[load.tensor], (simplifier(place(of.terms, of.const)),), load.part)
    assign = Assign(wide[store.buffer], simplifier(place(to.terms, to.const)), value)
    return WideCopy(replace(region, axes=axes, stores=(assign,)), wide)
