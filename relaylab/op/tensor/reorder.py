"""Operators that move or repeat elements: transpose, layout_transform, reverse, repeat, tile."""

from __future__ import annotations

import math
import re

import numpy as np

from relaylab.ir.dims import dim
from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dims, Injective, Input, Ints, OpPattern, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import length, place, unravel
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

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        rank = len(data.shape)
        chosen = [rules.axis(s, a, rank, "axis") for a in self.axes or range(rank)]
        if sorted(chosen) != list(range(rank)):
            s.fail(f"axes {list(self.axes or ())} must name each axis of {type_text(data)} once")
        return TensorType([data.shape[a] for a in self.order(rank)], data.dtype)

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

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        letters = "".join(parse_layout(self.src_layout).letters)
        src = rules.layout(s, self.src_layout, letters, data)
        return TensorType(
            rules.laid_out(s, rules.layout(s, self.dst_layout, letters), src.whole(data.shape)), data.dtype
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


_AXES = re.compile(r"(\d+)([A-Za-z]+)")


@op("auto_scheduler_layout_transform", level=5, attrs_key="AutoSchedulerLayoutTransform")
class auto_scheduler_layout_transform(Injective):
    """The same tensor in another layout whose extents are written: `1N8C3H` to `1N2C3H4c` splits the channels into
    blocks of 4. Programs have it that TVM's auto-scheduler printed.
    """

    yields = "the extents that `dst_layout` writes, of the dtype of data"
    source = "TVM 0.10, auto_scheduler"

    data: Input = arg("the tensor, laid out as `src_layout`")
    src_layout: str = attr(doc="the axes of data, each an extent and a name of letters, such as 1N8C3H")
    dst_layout: str = attr(doc="the axes of the result; a name again, in capitals or not, is an axis of blocks, inside")

    @staticmethod
    def axes(layout: str) -> list[tuple[int, str]]:
        """The extent and the name of each axis."""
        return [(int(n), name.upper()) for n, name in _AXES.findall(layout)]

    @property
    def places(self) -> list[list[int]]:
        """For each axis of data those of the result that it became, the outermost first."""
        to = self.axes(self.dst_layout)
        return [[k for k, (_, other) in enumerate(to) if other == name] for _, name in self.axes(self.src_layout)]

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        layouts = (self.src_layout, self.dst_layout)
        for text in layouts:
            if not text or _AXES.sub("", text):
                s.fail(f"`{text}` is not a layout with extents", help="write e.g. 1N8C3H, or 1N2C3H4c")
        src, dst = map(self.axes, layouts)
        rules.shaped(s, data, [n for n, _ in src])
        names = [name for _, name in src]
        fits = len(set(names)) == len(names) and {name for _, name in dst} == set(names)
        if not fits or any(n != math.prod(dst[k][0] for k in ks) for (n, _), ks in zip(src, self.places)):
            s.fail(f"{self.src_layout} cannot be laid out as {self.dst_layout}: each axis must be split as a whole")
        return TensorType([IntImm(n) for n, _ in dst], data.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        places, to = [k for ks in self.places for k in ks], self.axes(self.dst_layout)
        return data.reshape([to[k][0] for k in places]).transpose(np.argsort(places))

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        index = []
        for ks in self.places:
            at = i[ks[0]]
            for k in ks[1:]:
                at = at * int(out.shape[k]) + i[k]
            index.append(at)
        return data(*index)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((1, 8, 3, 5), src_layout="1N8C3H5W", dst_layout="1N3H5W8C"),
            sample((2, 8, 3), src_layout="2n8c3h", dst_layout="2C2n2c3h2c"),
            sample((6, 4), src_layout="6io4ki", dst_layout="2ki3io2KI2io"),
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

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        rules.positive(s, self.repeats, "repeats")
        shape = data.shape if self.axis is not None else (product(data.shape),)
        axis = rules.axis(s, self.axis or 0, len(shape))
        return TensorType(place(shape, axis, derive(lambda n: n * self.repeats, shape[axis])), data.dtype)

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

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        if not self.reps or any(isinstance(r, int) and r < 0 for r in self.reps):
            s.fail(f"`reps` of tile must be at least one number, none negative: {self.reps}")
        rank = max(len(data.shape), len(self.reps))
        shape = (IntImm(1),) * (rank - len(data.shape)) + data.shape
        reps = (IntImm(1),) * (rank - len(self.reps)) + tuple(map(dim, self.reps))
        return TensorType([product(pair) for pair in zip(shape, reps)], data.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.tile(data, tuple(map(extent, self.reps)))

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        tail = i[len(i) - len(data.shape) :]
        return data(*(k % length(n) for k, n in zip(tail, data.shape)))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), reps=r) for r in [(2,), (2, 1), (2, 1, 3), (3,)]] + [sample((), reps=(2,))]
