"""Vectors of every n-th element: taken out of n vectors side by side, where lane by lane takes a load for each.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Callable

from relaylab.codegen.llvm.text import IRFunction, Value, constant

FARTHEST = 8
"""The largest n: with more, most of what is loaded is dropped."""


def strided(
    f: IRFunction, step: int, width: int, wanted: Value | None, load: Callable[[int, Value | None], Value]
) -> Value:
    """Elements 0, `step`, 2 * `step` ... of what `load(first, mask)` gives `width` elements of, in one vector.

    `wanted` is the mask of its lanes (None: all). Nothing behind the last of them is loaded.
    """
    firsts = [k * width for k in range(step - 1)] + [(width - 1) * (step - 1)]
    owner = [min(lane * step // width, step - 1) for lane in range(width)]
    x: Value | None = None
    for k, first in enumerate(firsts):
        mask = wanted
        if wanted is not None:
            places = [divmod(first + at, step) for at in range(width)]
            mask = f.shuffle(wanted, constant(wanted.type, 0), [width if rest else lane for lane, rest in places])
        new = load(first, mask)
        if x is None:
            x = new
            continue
        here = [lane * step if k == 1 else lane for lane in range(width)]  # where lanes of vectors before are
        x = f.shuffle(x, new, [width + n * step - first if owner[n] == k else here[n] % width for n in range(width)])
    assert x is not None
    return x
