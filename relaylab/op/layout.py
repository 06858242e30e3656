"""Layouts: which axis of a tensor means what, and how channels are blocked.

`NCHW` names four whole axes. In `NCHW16c` the channels are split: axis `C` counts blocks of 16 and
`c`, the last axis, counts inside a block. A small letter with its factor always belongs to the
capital one; several factors of one letter nest from left to right (`OIHW4i16o4i`).
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylab.ir.types import AnyDim, Dim, IntImm
from relaylab.op.shapes import derive, extent
from relaylab.support.errors import RelayValueError

_AXIS = re.compile(r"(\d*)([A-Za-z])")


@dataclass(frozen=True, slots=True)
class LayoutAxis:
    """One axis of a layout: its letter (capital) and, when it counts inside blocks, the size of a block."""

    letter: str
    factor: int = 0

    @property
    def text(self) -> str:
        """How it is written: `C`, or `16c`."""
        return f"{self.factor}{self.letter.lower()}" if self.factor else self.letter


@dataclass(frozen=True, slots=True)
class Layout:
    """A parsed layout."""

    text: str
    axes: tuple[LayoutAxis, ...]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.axes)

    @property
    def letters(self) -> tuple[str, ...]:
        """The capital letters, in order of first appearance."""
        return tuple(dict.fromkeys(a.letter for a in self.axes if not a.factor))

    def factor(self, letter: str) -> int:
        """How many elements one step along the capital axis of `letter` stands for."""
        return math.prod(a.factor for a in self.axes if a.letter == letter and a.factor)

    def is_plain(self) -> bool:
        """Whether no axis is split."""
        return not any(a.factor for a in self.axes)

    def position(self, letter: str) -> int:
        """The position of the capital axis of `letter`; -1 if there is none."""
        return next((k for k, a in enumerate(self.axes) if a.letter == letter and not a.factor), -1)

    def whole(self, shape: Sequence[Dim | int]) -> dict[str, Dim]:
        """The extent of each letter, blocks multiplied out, for a tensor of `shape`."""
        return {x: _times(shape[self.position(x)], self.factor(x)) for x in self.letters}

    def extents(self, shape: Sequence[int]) -> dict[str, int]:
        """The extent of each letter for a static shape."""
        return {x: shape[self.position(x)] * self.factor(x) for x in self.letters}

    def shape(self, whole: Mapping[str, Dim]) -> tuple[Dim, ...]:
        """The shape of a tensor whose letters have these extents; blocks must divide them."""
        return tuple(IntImm(a.factor) if a.factor else self._blocks(a.letter, whole[a.letter]) for a in self.axes)

    def _blocks(self, letter: str, extent: Dim) -> Dim:
        factor = self.factor(letter)
        if factor == 1:
            return extent
        if not isinstance(extent, AnyDim) and int(extent) % factor:
            message = f"{letter} = {extent} cannot be laid out as {self.text}: {factor} does not divide it"
            raise RelayValueError(message, code="op.layout")
        return derive(lambda n: n // factor, extent)

    def index(self, at: Mapping[str, Any]) -> tuple[Any, ...]:
        """The index of an element whose position along each letter is `at`."""
        inner = {x: self.factor(x) for x in self.letters}
        out = []
        for a in self.axes:
            if a.factor:
                inner[a.letter] //= a.factor
                out.append(at[a.letter] // inner[a.letter] % a.factor)
            else:
                out.append(at[a.letter] // inner[a.letter])
        return tuple(out)

    def at(self, index: Sequence[Any]) -> dict[str, Any]:
        """The position along each letter of the element at `index` (inverse of `index`)."""
        out = {x: index[self.position(x)] for x in self.letters}
        for a, k in zip(self.axes, index):
            if a.factor:
                out[a.letter] = out[a.letter] * a.factor + k
        return out

    def __str__(self) -> str:
        return self.text


def _times(extent: Dim | int, factor: int) -> Dim:
    return derive(lambda n: n * factor, extent)


@functools.lru_cache(maxsize=512)
def parse_layout(text: str) -> Layout:
    """The layout that `text` writes; `RelayValueError` if it is not one."""
    axes = []
    for number, letter in _AXIS.findall(text):
        if letter.isupper() == bool(number) or number == "0":
            raise RelayValueError(
                f"`{text}` is not a layout: `{number}{letter}`", code="op.layout", help="write e.g. NCHW or NCHW16c"
            )
        axes.append(LayoutAxis(letter.upper(), int(number or 0)))
    whole = [a.letter for a in axes if not a.factor]
    if "".join(a.text for a in axes) != text or len(set(whole)) != len(whole):
        raise RelayValueError(
            f"`{text}` is not a layout", code="op.layout", help="write each axis once, e.g. NCHW or NCHW16c"
        )
    if not {a.letter for a in axes} <= set(whole):
        raise RelayValueError(f"`{text}` splits an axis that it does not have", code="op.layout")
    return Layout(text, tuple(axes))


def convertible(src: Layout, dst: Layout) -> bool:
    """Whether both layouts have the same letters."""
    return set(src.letters) == set(dst.letters)


def transform_shape(shape: Sequence[Dim], src: Layout, dst: Layout) -> tuple[Dim, ...]:
    """The shape of a tensor after it was laid out anew."""
    return dst.shape(src.whole(shape))


def transform(x: np.ndarray, src: Layout, dst: Layout) -> np.ndarray:
    """The array laid out anew: blocks merged, axes ordered, blocks split again."""
    if src == dst:
        return x
    order = [
        k
        for letter in dst.letters
        for k, a in sorted(enumerate(src.axes), key=lambda p: bool(p[1].factor))
        if a.letter == letter
    ]
    whole = src.extents(x.shape)
    merged = x.transpose(order).reshape([whole[letter] for letter in dst.letters])
    return _split(merged, dst)


def _split(x: np.ndarray, dst: Layout) -> np.ndarray:
    """An array with whole axes in the order of `dst.letters`, with the blocks of `dst` split off."""
    shape = [extent(d) for d in dst.shape(dict(zip(dst.letters, map(IntImm, x.shape))))]
    parts = [
        [k for k, a in sorted(enumerate(dst.axes), key=lambda p: bool(p[1].factor)) if a.letter == letter]
        for letter in dst.letters
    ]
    order = [k for part in parts for k in part]
    return x.reshape([shape[k] for k in order]).transpose(np.argsort(order))
