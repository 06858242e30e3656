"""Pooling over sliding windows in one, two and three dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from relaylab.ir.types import IntImm, TensorType, Type
from relaylab.loop.scalar import lowest
from relaylab.op import rules
from relaylab.op.base import Ints, OutElementwiseFusable, Sample, op, sample
from relaylab.op.layout import parse_layout
from relaylab.op.window import Pads, each, pads, reach, spread, spread_padding, window_extent


def positions(layout: str, spatial: str) -> list[int]:
    """Where the spatial axes are in a layout."""
    return [parse_layout(layout).position(a) for a in spatial]


class Pool(OutElementwiseFusable):
    """What sliding-window pooling shares; `spatial` are the letters of the pooled axes."""

    pool_size: ClassVar[Any]
    strides: ClassVar[Any]
    dilation: ClassVar[Any]
    padding: ClassVar[Any]
    layout: ClassVar[Any]
    out_layout: ClassVar[Any]
    ceil_mode: ClassVar[Any]
    spatial: ClassVar[str] = "HW"
    inputs = ("data",)

    @property
    def pads(self) -> Pads:
        """(before, after) of each pooled axis."""
        return pads(self.padding, len(self.spatial))

    @property
    def windows(self) -> list[tuple[int, int, int]]:
        """(size, stride, dilation) of each pooled axis."""
        n = len(self.spatial)
        return list(zip(spread(self.pool_size, n), spread(self.strides, n), spread(self.dilation, n)))

    def relation(self, s: Any, data: Type) -> Type | None:
        x = rules.tensor(s, data)
        if x is None:
            return None
        n = len(self.spatial)
        for name in ("pool_size", "strides", "dilation"):
            each(s, getattr(self, name), n, name)
        check_layouts(s, self, x)
        return TensorType(self._shape(s, x.shape), x.dtype)

    def _shape(self, s: Any, shape: Sequence[Any]) -> list[Any]:
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

    def read(self, b: Any, i: tuple, data: Any, taps: Sequence[Any]) -> tuple[Any, tuple]:
        """Whether the taps at output index `i` are inside `data`, and the index there."""
        index, conditions = list(i), []
        parts = zip(positions(self.layout, self.spatial), taps, self.windows, self.pads)
        for k, tap, (_, stride, dilation), (before, after) in parts:
            index[k] = i[k] * stride + tap * dilation - before
            if before or after or self.ceil_mode:
                conditions.append(b.inside(index[k], int(data.shape[k])))
        return b.all_of(*conditions), tuple(index)

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


def check_layouts(s: Any, record: Any, x: TensorType) -> None:
    """Fails unless the layouts fit, the spatial axes are whole, and the result has the layout of the data."""
    layout = rules.layout(s, record.layout, "NC" + record.spatial, x)
    if any(layout.factor(a) > 1 for a in record.spatial):
        s.fail(f"the layout {record.layout} splits a pooled axis")
    if record.out_layout not in ("", record.layout):
        s.fail(
            f"{record.op_name} cannot change the layout {record.layout} to {record.out_layout}",
            help="use layout_transform",
        )


class MaxPool(Pool):
    """The largest element of each window; padding never counts."""

    def reference(self, data: np.ndarray) -> np.ndarray:
        fill = data.dtype.type(lowest(data.dtype.name))
        out: Any = None
        for seen in self.taps(data, fill):
            out = seen.copy() if out is None else np.maximum(out, seen)
        return out

    def lower(self, b: Any, out: Any, i: tuple, data: Any) -> Any:
        def element(*taps: Any) -> Any:
            inside, index = self.read(b, i, data, taps)
            return b.guard(inside, lambda: data(*index), b.lowest(out.dtype))

        return b.rmax([size for size, _, _ in self.windows], element)


class AvgPool(Pool):
    """The mean of each window: of the elements inside the data, or of all with padding as 0 (`count_include_pad`)."""

    count_include_pad: ClassVar[Any]

    def relation(self, s: Any, data: Type) -> Type | None:
        found = super().relation(s, data)
        return found and rules.numbers(s, found)  # type: ignore[arg-type]

    def reference(self, data: np.ndarray) -> np.ndarray:
        wide = data.astype("float64") if data.dtype.kind == "f" else data
        total: Any = sum(seen for seen in self.taps(wide, 0))
        counts: Any = sum(seen for seen in self.taps(np.ones(data.shape, "int64"), 0))
        if self.count_include_pad:
            counts = math.prod(size for size, _, _ in self.windows)
        mean = total / np.maximum(counts, 1)
        return (mean if data.dtype.kind == "f" else np.trunc(mean)).astype(data.dtype)

    def lower(self, b: Any, out: Any, i: tuple, data: Any) -> Any:
        sizes = [size for size, _, _ in self.windows]

        def element(*taps: Any) -> Any:
            inside, index = self.read(b, i, data, taps)
            return b.guard(inside, lambda: data(*index), b.const(0, out.dtype))

        return b.sum(sizes, element) / self._count(b, i, data, out.dtype)

    def _count(self, b: Any, i: tuple, data: Any, dtype: str) -> Any:
        """How many elements the mean is of."""
        sizes = [size for size, _, _ in self.windows]
        padded = any(p for pair in self.pads for p in pair) or self.ceil_mode
        if self.count_include_pad or not padded:
            return b.const(math.prod(sizes), dtype)
        count = b.sum(sizes, lambda *taps: b.cast(self.read(b, i, data, taps)[0], "int64"))
        return b.cast(b.max(count, 1), dtype)

    @classmethod
    def more(cls, shape: tuple[int, ...]) -> list[Sample]:
        n = len(cls.spatial)
        include = sample(shape, pool_size=(3,), strides=(2,), padding=(1,) * (2 * n), count_include_pad=True)
        return [include, sample(TensorType(shape, "int32"), pool_size=(2,), low=-50, high=50)]


@op("nn.max_pool1d", level=2, attrs_key="MaxPool1D", defaults={"pool_size": (1,)})
class max_pool1d(MaxPool):
    """Maximum over sliding windows of one axis."""

    pool_size: Ints
    strides: Ints = (1,)
    dilation: Ints = (1,)
    padding: Ints = (0,)
    layout: str = "NCW"
    out_layout: str = ""
    ceil_mode: bool = False
    spatial = "W"


@op("nn.max_pool2d", level=2, attrs_key="MaxPool2D", defaults={"pool_size": (1, 1)})
class max_pool2d(MaxPool):
    """Maximum over sliding windows of two axes."""

    pool_size: Ints
    strides: Ints = (1, 1)
    dilation: Ints = (1, 1)
    padding: Ints = (0, 0)
    layout: str = "NCHW"
    out_layout: str = ""
    ceil_mode: bool = False


@op("nn.max_pool3d", level=2, attrs_key="MaxPool3D", defaults={"pool_size": (1, 1, 1)})
class max_pool3d(MaxPool):
    """Maximum over sliding windows of three axes."""

    pool_size: Ints
    strides: Ints = (1, 1, 1)
    dilation: Ints = (1, 1, 1)
    padding: Ints = (0, 0, 0)
    layout: str = "NCDHW"
    out_layout: str = ""
    ceil_mode: bool = False
    spatial = "DHW"


@op("nn.avg_pool1d", level=2, attrs_key="AvgPool1D", defaults={"pool_size": (1,)})
class avg_pool1d(AvgPool):
    """Mean over sliding windows of one axis."""

    pool_size: Ints
    strides: Ints = (1,)
    dilation: Ints = (1,)
    padding: Ints = (0,)
    layout: str = "NCW"
    out_layout: str = ""
    ceil_mode: bool = False
    count_include_pad: bool = False
    spatial = "W"


@op("nn.avg_pool2d", level=2, attrs_key="AvgPool2D", defaults={"pool_size": (1, 1)})
class avg_pool2d(AvgPool):
    """Mean over sliding windows of two axes."""

    pool_size: Ints
    strides: Ints = (1, 1)
    dilation: Ints = (1, 1)
    padding: Ints = (0, 0)
    layout: str = "NCHW"
    out_layout: str = ""
    ceil_mode: bool = False
    count_include_pad: bool = False


@op("nn.avg_pool3d", level=2, attrs_key="AvgPool3D", defaults={"pool_size": (1, 1, 1)})
class avg_pool3d(AvgPool):
    """Mean over sliding windows of three axes."""

    pool_size: Ints
    strides: Ints = (1, 1, 1)
    dilation: Ints = (1, 1, 1)
    padding: Ints = (0, 0, 0)
    layout: str = "NCDHW"
    out_layout: str = ""
    ceil_mode: bool = False
    count_include_pad: bool = False
    spatial = "DHW"
