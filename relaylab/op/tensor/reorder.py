"""Operators that move or repeat elements: transpose, layout_transform, reverse, repeat, tile."""

from __future__ import annotations

import numpy as np

from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dims, Injective, Input, Ints, OpPattern, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import place, unravel
from relaylab.op.layout import parse_layout, transform
from relaylab.op.shapes import derive, extent, product


@op("transpose", level=3, attrs_key="Transpose")
class transpose(Injective):
    """Axes in a new order: axis k of the result is axis `axes[k]` of `data`; without `axes`, all reversed."""

    yields = "(data.shape[axes[0]], data.shape[axes[1]], ...), of the dtype of data"
    source = "numpy.transpose"

    defaults = {"axes": None}

    data: Input = arg("the tensor whose axes are moved")
    axes: Ints | None = attr(doc="for each axis of the result which one of data it is; None: all reversed")

    def order(self, rank: int) -> tuple[int, ...]:
        """The axes of `data` in the order of the result."""
        return tuple(a % rank for a in self.axes) if self.axes else tuple(reversed(range(rank)))

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
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

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        at = dict(zip(self.order(len(i)), i))
        return data(*(at[d] for d in range(len(i))))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 4), axes=a) for a in [None, (), (1, 2, 0), (-1, 0, 1)]] + [sample((), axes=None)]


@op("layout_transform", level=5, attrs_key="LayoutTransform")
class layout_transform(Injective):
    """The same tensor in another layout: `NCHW` to `NCHW16c` splits the channels into blocks of 16, `NHWC` moves
    them.
    """

    yields = "the extents of data in the order and blocks of `dst_layout`, of the dtype of data"
    source = "TVM 0.10, relay.layout_transform"

    data: Input = arg("the tensor, laid out as `src_layout`")
    src_layout: str = attr(doc="the axes of data as letters, such as NCHW; 16c is a block of 16 of C")
    dst_layout: str = attr(doc="the axes of the result, of the same letters")

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
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

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
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


@op("reverse", level=3, attrs_key="Reverse")
class reverse(Injective):
    """The elements in opposite order along an axis."""

    yields = "the shape of data, and its dtype"
    source = "numpy.flip"

    data: Input = arg("the tensor whose elements are reversed")
    axis: int | None = attr(None, "the axis that is reversed; None: the first")
    required = "axis"

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
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

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        axis = self.at % len(i)
        return data(*place(i, axis, (out.shape[axis] - 1) - i[axis]))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), axis=0), sample((2, 3, 4), axis=-1)]


@op("repeat", level=3, attrs_key="Repeat")
class repeat(Injective):
    """Each element `repeats` times in a row along an axis (of the flattened tensor if there is none)."""

    yields = "data.shape with the extent of `axis` times `repeats`, of the dtype of data"
    source = "numpy.repeat"

    data: Input = arg("the tensor whose elements are repeated")
    repeats: int = attr(doc="how often each element stands in the result")
    axis: int | None = attr(None, "the axis along which elements are repeated; None: that of the flattened tensor")
    required = "axis"
    pattern = OpPattern.BROADCAST

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        rules.positive(s, self.repeats, "repeats")
        shape = found.shape if self.axis is not None else (product(found.shape),)
        axis = rules.axis(s, self.axis or 0, len(shape))
        return TensorType(place(shape, axis, derive(lambda n: n * self.repeats, shape[axis])), found.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.repeat(data, self.repeats, self.axis)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        if self.axis is None:
            return data(*unravel(b, i[0] // self.repeats, data.shape))
        axis = self.axis % len(i)
        return data(*place(i, axis, i[axis] // self.repeats))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), repeats=2, axis=1), sample((2, 3), repeats=3, axis=-2), sample((2, 3), repeats=2)]


@op("tile", level=3, attrs_key="Tile")
class tile(Injective):
    """The whole tensor repeated `reps[k]` times along axis k, aligned right as in numpy."""

    yields = "data.shape and `reps` aligned right and multiplied, of the dtype of data"
    source = "numpy.tile"

    dynamic = ("reps",)

    data: Input = arg("the tensor that is repeated")
    reps: Dims = attr(
        doc="how often along each axis, counted from the last; or an expression that gives it at run time"
    )
    pattern = OpPattern.BROADCAST

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        if not self.reps or any(extent(r) < 0 for r in self.reps):
            s.fail(f"`reps` of tile must be at least one number, none negative: {self.reps}")
        rank = max(len(found.shape), len(self.reps))
        shape = (IntImm(1),) * (rank - len(found.shape)) + found.shape
        reps = (IntImm(1),) * (rank - len(self.reps)) + tuple(IntImm(extent(r)) for r in self.reps)
        return TensorType([product(pair) for pair in zip(shape, reps)], found.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.tile(data, tuple(map(extent, self.reps)))

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        tail = i[len(i) - len(data.shape) :]
        return data(*(k % int(n) for k, n in zip(tail, data.shape)))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), reps=r) for r in [(2,), (2, 1), (2, 1, 3), (3,)]] + [sample((), reps=(2,))]
