"""Pooling over sliding windows in one, two and three dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from relaylab.ir.types import IntImm, TensorType
from relaylab.loop.scalar import is_float, lowest
from relaylab.op import rules
from relaylab.op.base import Input, Ints, OutElementwiseFusable, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.layout import parse_layout
from relaylab.op.tensor.moments import divided, quotient
from relaylab.op.window import Pads, each, pads, reach, spread, spread_padding, window_extent
from relaylab.support.dtypes import finfo


def positions(layout: str, spatial: str) -> list[int]:
    """Where the spatial axes are in a layout."""
    return [parse_layout(layout).position(a) for a in spatial]


class Pool(OutElementwiseFusable):
    """What sliding-window pooling shares; `spatial` are the letters of the pooled axes."""

    data: Input = arg("the batch of images, laid out as `layout`", "(N, C, *extents)")
    pool_size: Ints = attr(doc="the extents of the window along the pooled axes")
    strides: Ints = attr((1, 1), "steps of the window along each pooled axis")
    dilation: Ints = attr((1, 1), "distance between the elements of a window along each pooled axis")
    padding: Ints = attr((0, 0), "border of each pooled axis: one number, one per axis, or befores then afters")
    layout: str = attr("NCHW", "the axes of data; channels may be in blocks, as in NCHW16c")
    out_layout: str = attr("", "the axes of the result: those of data, or empty")
    ceil_mode: bool = attr(False, "whether a last window that does not fit whole counts too")
    spatial: ClassVar[str] = "HW"
    yields = (
        "(N, C, *extents) laid out as `layout`, dtype of data; along each pooled axis extent = "
        "(extent + before + after - dilation * (pool_size - 1) - 1) // stride + 1, rounded up if `ceil_mode`"
    )
    errors = {"op.padding": "`padding` has neither 1, n nor 2n values for n pooled axes"}

    @property
    def pads(self) -> Pads:
        """(before, after) of each pooled axis."""
        return pads(self.padding, len(self.spatial))

    @property
    def windows(self) -> list[tuple[int, int, int]]:
        """(size, stride, dilation) of each pooled axis."""
        n = len(self.spatial)
        return list(zip(spread(self.pool_size, n), spread(self.strides, n), spread(self.dilation, n)))

    def result_type(self, s: TypeSolver, data: TensorType) -> TensorType:
        n = len(self.spatial)
        for name in ("pool_size", "strides", "dilation"):
            each(s, getattr(self, name), n, name)
        check_layouts(s, self, data)
        return TensorType(self._shape(s, data.shape), data.dtype)

    def _shape(self, s: TypeSolver, shape: Sequence[Any]) -> list[Any]:
        out = list(shape)
        for at, (size, stride, dilation), pad in zip(positions(self.layout, self.spatial), self.windows, self.pads):
            out[at] = window_extent(s, out[at], IntImm(size), stride, dilation, pad, self.ceil_mode)
        return out

    def sizes(self, extents: Sequence[int]) -> list[int]:
        """The output extents of the pooled axes."""
        spare = [st - 1 if self.ceil_mode else 0 for _, st, _ in self.windows]
        parts = zip(extents, self.pads, self.windows, spare)
        return [(n + sum(p) - reach(k, d) + e) // st + 1 for n, p, (k, st, d), e in parts]

    def taps(self, data: np.ndarray, fill: Any) -> Iterator[np.ndarray]:
        """For each position inside the window the elements there, for all windows at once; padding reads as `fill`."""
        at = positions(self.layout, self.spatial)
        sizes = self.sizes([data.shape[k] for k in at])
        widths = [(0, 0)] * data.ndim
        for k, m, pad, (size, stride, dilation) in zip(at, sizes, self.pads, self.windows):
            needed = (m - 1) * stride + reach(size, dilation)
            widths[k] = (pad[0], max(needed - pad[0] - data.shape[k], 0))
        padded = np.pad(data, widths, constant_values=fill)
        for tap in np.ndindex(*(size for size, _, _ in self.windows)):
            window = [slice(None)] * data.ndim
            for k, t, m, (_, stride, dilation) in zip(at, tap, sizes, self.windows):
                window[k] = slice(t * dilation, t * dilation + (m - 1) * stride + 1, stride)
            yield padded[tuple(window)]

    def read(self, b: ElementBuilder, i: Index, data: Readable, taps: Sequence[Any]) -> tuple[Any, tuple]:
        """Whether the taps at output index `i` are inside `data`, and the index there."""
        index, conditions = list(i), []
        parts = zip(positions(self.layout, self.spatial), taps, self.windows, self.pads)
        for k, tap, (_, stride, dilation), (before, after) in parts:
            index[k] = i[k] * stride + tap * dilation - before
            if before or after or self.ceil_mode:
                conditions.append(b.inside(index[k], data.shape[k]))
        return b.all_of(*conditions), tuple(index)

    def whole(self, b: ElementBuilder, i: Index, data: Readable) -> Element:
        """Whether the window at `i` is inside `data` as a whole: loops are cut where it begins to be."""
        ends = ([0] * len(self.spatial), [size - 1 for size, _, _ in self.windows])
        return b.all_of(*(self.read(b, i, data, taps)[0] for taps in ends))

    def counts(self, b: ElementBuilder, i: Index, data: Readable, whole: bool = False) -> list[Element]:
        """How many positions of the window at `i` are inside `data` along each pooled axis, or are inside it and its
        padding (`whole`)."""
        found: list[Element] = []
        parts = zip(positions(self.layout, self.spatial), self.windows, self.pads)
        for k, (size, stride, dilation), (before, after) in parts:
            if not before and not after and not self.ceil_mode:
                found.append(b.index(size))
                continue
            low, end = (-before, data.shape[k] + after) if whole else (0, data.shape[k])
            place = i[k] * stride - before - (dilation - 1)
            found.append(b.min((end - place) // dilation, size) - b.max((low - place) // dilation, 0))
        return found

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        n = len(cls.spatial)
        sizes = {k: spread(attrs[k], n) for k in ("pool_size", "strides", "dilation") if k in attrs}
        return {**attrs, **sizes, "padding": spread_padding(attrs.get("padding", 0), n)}

    @classmethod
    def samples(cls) -> list[Sample]:
        n = len(cls.spatial)
        shape, last = (2, 3, *(7, 6, 5)[:n]), f"N{cls.spatial}C"
        return [
            sample(shape, pool_size=(2,) * n, strides=(2,) * n),
            sample(shape, pool_size=(3, 2, 2)[:n], strides=(2,) * n, padding=(1,) * n, ceil_mode=True),
            sample(
                (1, *(6, 5, 4)[:n], 2), pool_size=(2,), dilation=(2,), padding=(0, 1, 1, 0, 1, 1)[: 2 * n], layout=last
            ),
            *cls.more(shape),
        ]

    @classmethod
    def more(cls, shape: tuple[int, ...]) -> list[Sample]:
        return [sample(TensorType(shape, "int8"), pool_size=(2,), low=-128, high=127)]


def check_layouts(s: TypeSolver, record: Any, x: TensorType) -> None:
    """Fails unless the layouts fit, the spatial axes are whole, and the result has the layout of the data."""
    layout = rules.layout(s, record.layout, "NC" + record.spatial, x)
    if any(layout.factor(a) > 1 for a in record.spatial):
        s.fail(f"the layout {record.layout} splits a pooled axis")
    if record.out_layout not in ("", record.layout):
        s.fail(
            f"{record.op_name} cannot change the layout {record.layout} to {record.out_layout}",
            help="use layout_transform",
        )


def border(dtype: str) -> float | int:
    """What padding reads as under a maximum: the lowest finite number, which alone a window in the padding gives."""
    return float(finfo(dtype).min) if is_float(dtype) else lowest(dtype)


class MaxPool(Pool):
    """The largest element of each window; padding reads as the lowest finite number."""

    source = "ONNX MaxPool"

    def reference(self, data: np.ndarray) -> np.ndarray:
        out: Any = None
        for seen in self.taps(data, border(data.dtype.name)):
            out = seen.copy() if out is None else np.maximum(out, seen)
        return out

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        sizes, none = [size for size, _, _ in self.windows], b.lowest(out.dtype)

        def element(*taps: Element) -> Element:
            inside, index = self.read(b, i, data, taps)
            return b.guard(inside, lambda: data(*index), none)  # which ends the loops over taps

        most, whole = b.rmax(sizes, element), self.whole(b, i, data)
        if not is_float(out.dtype):
            return most
        return b.max(most, b.select(whole, none, b.const(border(out.dtype), out.dtype)))


class AvgPool(Pool):
    """The mean of each window: of the elements inside the data, or of all inside data and padding, which reads as 0
    (`count_include_pad`). What `ceil_mode` adds behind the padding never counts.
    """

    count_include_pad: bool = attr(False, "whether the padding counts, as zeros")
    source = "ONNX AveragePool"

    def result_type(self, s: TypeSolver, data: TensorType) -> TensorType:
        return rules.numbers(s, super().result_type(s, data))

    def reference(self, data: np.ndarray) -> np.ndarray:
        wide = data.astype("float64") if data.dtype.kind == "f" else data
        total: Any = sum(seen for seen in self.taps(wide, 0))
        counts = np.ones((1,) * data.ndim, "int64")
        at = positions(self.layout, self.spatial)
        extents = [data.shape[k] for k in at]
        for k, m, n, window, pad in zip(at, self.sizes(extents), extents, self.windows, self.pads):
            counts = counts * self._counted(m, n, window, pad).reshape([-1 if d == k else 1 for d in range(data.ndim)])
        return divided(total, np.maximum(counts, 1), data.dtype.name)

    def _counted(self, m: int, n: int, window: tuple[int, int, int], pad: tuple[int, int]) -> np.ndarray:
        """How many positions count in each of the `m` windows along an axis of `n` elements."""
        size, stride, dilation = window
        place = np.arange(m)[:, None] * stride + np.arange(size) * dilation - pad[0]
        low, high = (-pad[0], n + pad[1]) if self.count_include_pad else (0, n)
        return ((place >= low) & (place < high)).sum(axis=1)

    def matrices(self, shape: Sequence[int]) -> dict[int, np.ndarray]:
        """For each pooled axis of data of a shape the matrix whose product with that axis is the mean along it."""
        found: dict[int, np.ndarray] = {}
        at = positions(self.layout, self.spatial)
        for k, m, window, pad in zip(at, self.sizes([shape[k] for k in at]), self.windows, self.pads):
            size, stride, dilation = window
            place = np.arange(m)[:, None] * stride + np.arange(size) * dilation - pad[0]
            hits = (place[..., None] == np.arange(shape[k])).sum(axis=1)
            found[k] = hits / np.maximum(self._counted(m, shape[k], window, pad), 1)[:, None]
        return found

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        sizes = [size for size, _, _ in self.windows]

        def element(*taps: Element) -> Element:
            inside, index = self.read(b, i, data, taps)
            return b.guard(inside, lambda: data(*index), b.const(0, out.dtype))

        return quotient(b, b.sum(sizes, element), self._count(b, i, data), out.dtype)

    def _count(self, b: ElementBuilder, i: Index, data: Readable) -> int | Element:
        """How many elements the mean is of."""
        sizes = [size for size, _, _ in self.windows]
        padded = any(p for pair in self.pads for p in pair) or self.ceil_mode
        if not padded or (self.count_include_pad and not self.ceil_mode):
            return math.prod(sizes)
        count = math.prod((b.max(n, 1) for n in self.counts(b, i, data, self.count_include_pad)), start=b.index(1))
        return b.select(self.whole(b, i, data), b.index(math.prod(sizes)), count)

    @classmethod
    def more(cls, shape: tuple[int, ...]) -> list[Sample]:
        n = len(cls.spatial)
        include = {"pool_size": (3,), "strides": (2,), "padding": (1,) * (2 * n), "count_include_pad": True}
        ceil = sample(shape[:2] + (6, 5, 8)[:n], ceil_mode=True, **include)
        return [sample(shape, **include), ceil, sample(TensorType(shape, "int32"), pool_size=(2,), low=-50, high=50)]


@op("nn.max_pool1d", level=2, attrs_key="MaxPool1D", defaults={"pool_size": (1,)})
class max_pool1d(MaxPool):
    """Maximum over sliding windows of one axis."""

    strides, dilation, padding = (1,), (1,), (0,)
    layout, spatial = "NCW", "W"


@op("nn.max_pool2d", level=2, attrs_key="MaxPool2D", defaults={"pool_size": (1, 1)})
class max_pool2d(MaxPool):
    """Maximum over sliding windows of two axes."""


@op("nn.max_pool3d", level=2, attrs_key="MaxPool3D", defaults={"pool_size": (1, 1, 1)})
class max_pool3d(MaxPool):
    """Maximum over sliding windows of three axes."""

    strides, dilation, padding = (1, 1, 1), (1, 1, 1), (0, 0, 0)
    layout, spatial = "NCDHW", "DHW"


@op("nn.avg_pool1d", level=2, attrs_key="AvgPool1D", defaults={"pool_size": (1,)})
class avg_pool1d(AvgPool):
    """Mean over sliding windows of one axis."""

    strides, dilation, padding = (1,), (1,), (0,)
    layout, spatial = "NCW", "W"


@op("nn.avg_pool2d", level=2, attrs_key="AvgPool2D", defaults={"pool_size": (1, 1)})
class avg_pool2d(AvgPool):
    """Mean over sliding windows of two axes."""


@op("nn.avg_pool3d", level=2, attrs_key="AvgPool3D", defaults={"pool_size": (1, 1, 1)})
class avg_pool3d(AvgPool):
    """Mean over sliding windows of three axes."""

    strides, dilation, padding = (1, 1, 1), (1, 1, 1), (0, 0, 0)
    layout, spatial = "NCDHW", "DHW"
