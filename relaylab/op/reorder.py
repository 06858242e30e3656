"""Operators that move or repeat elements: transpose, layout_transform, reverse, repeat, tile."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dims, Injective, Ints, OpPattern, Sample, op, sample
from relaylab.op.indexing import place, unravel
from relaylab.op.layout import parse_layout, transform
from relaylab.op.shapes import derive, product


@op("transpose", inputs=("data",), level=3, attrs_key="Transpose")
class transpose(Injective):
    """Axes in a new order: axis k of the result is axis `axes[k]` of `data`; without `axes`, all reversed."""

    defaults = {"axes": None}

    axes: Ints | None

    def order(self, rank: int) -> tuple[int, ...]:
        """The axes of `data` in the order of the result."""
        return tuple(a % rank for a in self.axes) if self.axes else tuple(reversed(range(rank)))

    def relation(self, s: Any, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        rank = len(found.shape)
        chosen = [rules.axis(s, a, rank, "axis") for a in self.axes or range(rank)]
        if sorted(chosen) != list(range(rank)):
            s.fail(f"axes {list(self.axes or ())} must name each axis of {type_text(found)} once")
        return TensorType([found.shape[a] for a in self.order(rank)], found.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return data.transpose(self.order(data.ndim))

    def lower(self, b: Any, out: Any, i: tuple, data: Any) -> Any:
        at = dict(zip(self.order(len(i)), i))
        return data(*(at[d] for d in range(len(i))))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 4), axes=a) for a in [None, (), (1, 2, 0), (-1, 0, 1)]] + [sample((), axes=None)]


@op("layout_transform", inputs=("data",), level=5, attrs_key="LayoutTransform")
class layout_transform(Injective):
    """The same tensor in another layout: `NCHW` to `NCHW16c` splits the channels into blocks of 16, `NHWC` moves
    them.
    """

    src_layout: str
    dst_layout: str

    def relation(self, s: Any, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        letters = "".join(parse_layout(self.src_layout).letters)
        src = rules.layout(s, self.src_layout, letters, found)
        return TensorType(
            rules.laid_out(s, rules.layout(s, self.dst_layout, letters), src.whole(found.shape)), found.dtype
        )

    def reference(self, data: np.ndarray) -> np.ndarray:
        return transform(data, parse_layout(self.src_layout), parse_layout(self.dst_layout))

    def lower(self, b: Any, out: Any, i: tuple, data: Any) -> Any:
        return data(*parse_layout(self.src_layout).index(parse_layout(self.dst_layout).at(i)))

    @classmethod
    def samples(cls) -> list[Sample]:
        pairs = [("NCHW", "NHWC"), ("NCHW", "NCHW4c"), ("NHWC", "NCHW2c"), ("NCHW", "NCHW")]
        cases = [sample((2, 8, 3, 5) if a != "NHWC" else (2, 3, 5, 8), src_layout=a, dst_layout=c) for a, c in pairs]
        return cases + [
            sample((2, 2, 3, 5, 4), src_layout="NCHW4c", dst_layout="NCHW8c"),
            sample((8, 4, 3, 3), src_layout="OIHW", dst_layout="OIHW2i4o"),
            sample((2, 2, 3, 3, 2, 4), src_layout="OIHW2i4o", dst_layout="HWIO"),
        ]


@op("reverse", inputs=("data",), level=3, attrs_key="Reverse")
class reverse(Injective):
    """The elements in opposite order along an axis."""

    axis: int | None = None

    def relation(self, s: Any, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is not None:
            rules.axis(s, self.at, len(found.shape))
        return found

    @property
    def at(self) -> int:
        """The axis (0 if none is given)."""
        return self.axis or 0

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.flip(data, self.at)

    def lower(self, b: Any, out: Any, i: tuple, data: Any) -> Any:
        axis = self.at % len(i)
        return data(*place(i, axis, (out.shape[axis] - 1) - i[axis]))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), axis=0), sample((2, 3, 4), axis=-1)]


@op("repeat", inputs=("data",), level=3, attrs_key="Repeat")
class repeat(Injective):
    """Each element `repeats` times in a row along an axis (of the flattened tensor if there is none)."""

    repeats: int
    axis: int | None = None
    pattern = OpPattern.BROADCAST

    def relation(self, s: Any, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        rules.positive(s, self.repeats, "repeats")
        shape = found.shape if self.axis is not None else (product(found.shape),)
        axis = rules.axis(s, self.axis or 0, len(shape))
        return TensorType(place(shape, axis, derive(lambda n: n * self.repeats, shape[axis])), found.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.repeat(data, self.repeats, self.axis)

    def lower(self, b: Any, out: Any, i: tuple, data: Any) -> Any:
        if self.axis is None:
            return data(*unravel(b, i[0] // self.repeats, data.shape))
        axis = self.axis % len(i)
        return data(*place(i, axis, i[axis] // self.repeats))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), repeats=2, axis=1), sample((2, 3), repeats=3, axis=-2), sample((2, 3), repeats=2)]


@op("tile", inputs=("data",), level=3, attrs_key="Tile")
class tile(Injective):
    """The whole tensor repeated `reps[k]` times along axis k, aligned right as in numpy."""

    dynamic = ("reps",)

    reps: Dims
    pattern = OpPattern.BROADCAST

    def relation(self, s: Any, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        if not self.reps or any(r < 0 for r in self.reps):
            s.fail(f"`reps` of tile must be at least one number, none negative: {self.reps}")
        rank = max(len(found.shape), len(self.reps))
        shape = (IntImm(1),) * (rank - len(found.shape)) + found.shape
        reps = (IntImm(1),) * (rank - len(self.reps)) + tuple(map(IntImm, self.reps))
        return TensorType([product(pair) for pair in zip(shape, reps)], found.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.tile(data, self.reps)

    def lower(self, b: Any, out: Any, i: tuple, data: Any) -> Any:
        tail = i[len(i) - len(data.shape) :]
        return data(*(k % int(n) for k, n in zip(tail, data.shape)))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), reps=r) for r in [(2,), (2, 1), (2, 1, 3), (3,)]] + [sample((), reps=(2,))]
