"""Regions of interest of feature maps: roi_pool, roi_align, yolo_reorg.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.loop.expr import Tensor
from relaylab.loop.scalar import compute_dtype
from relaylab.op import rules
from relaylab.op.base import Injective, Input, Ints, OutElementwiseFusable, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.image.crop import precision
from relaylab.op.indexing import ints, ravel, unravel
from relaylab.op.layout import parse_layout, transform
from relaylab.op.nn.resample import Expressions, ResamplingArrays, settled
from relaylab.op.shapes import derive, product
from relaylab.op.tensor.casts import as_dtype
from relaylab.op.window import each, spread

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure

MOST_SAMPLES = 4096  # along an axis of a cell: regions beyond any image take no longer


class Roi(OutElementwiseFusable):
    """A pool of regions: rois are (R, 5) rows (batch, x1, y1, x2, y2); the result is (R, C, height, width) in the
    layout.
    """

    data: Input = arg("the feature maps, laid out as `layout`", "(N, C, H, W)")
    rois: Input = arg(
        "the regions: image (limited to those there are), x1, y1, x2, y2, in pixels before `spatial_scale`", "(R, 5)"
    )
    pooled_size: Ints = attr(doc="the height and width of the grid that is laid over each region; one number: both")
    spatial_scale: float = attr(doc="what the corners of regions are multiplied with")
    layout: str = attr("NCHW", "the axes of data and result")
    yields = "(R, C, *pooled_size) laid out as `layout`, of the dtype of data"

    def result_type(self, s: TypeSolver, data: TensorType, rois: TensorType) -> Type | None:
        layout = rules.layout(s, self.layout, "NCHW", data)
        rules.shaped(s, rois, (None, 5), "rois")
        if 0 in data.shape:
            s.fail(f"{self.op_name} has nothing to read in {type_text(data)}", help="give an image with elements")
        height, width = each(s, self.pooled_size, 2, "pooled_size", one_for_all=False)
        channels = layout.whole(data.shape)["C"]
        return TensorType(
            rules.laid_out(s, layout, {"N": rois.shape[0], "C": channels, "H": IntImm(height), "W": IntImm(width)}),
            data.dtype,
        )

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        return {**attrs, "pooled_size": spread(ints(attrs["pooled_size"]), 2)}

    @staticmethod
    def _image(given: float, count: int) -> int:
        """The index of the image that a region lies in."""
        return int(np.clip(np.nan_to_num(given), 0, count - 1))


@op("vision.roi_pool", level=5, attrs_key="ROIPool", meta_attrs=True)
class roi_pool(Roi):
    """The maximum over each cell of a grid of `pooled_size` laid over each region."""

    source = "Girshick, Fast R-CNN, 2015; ONNX MaxRoiPool"

    def reference(self, data: np.ndarray, rois: np.ndarray) -> np.ndarray:
        layout, plain = parse_layout(self.layout), parse_layout("NCHW")
        x = transform(data, layout, plain)
        out = np.zeros((len(rois), x.shape[1], *self.pooled_size), data.dtype)
        ys, xs = (self._bounds(rois.astype(precision(rois.dtype.name)), axis, x.shape[2 + axis]) for axis in range(2))
        for n, row, column in np.ndindex(len(rois), *self.pooled_size):
            (y1, y2), (x1, x2) = ys[n, row], xs[n, column]
            cell = x[self._image(rois[n, 0], len(x)), :, y1:y2, x1:x2]
            if cell.size:
                out[n, :, row, column] = cell.max(axis=(1, 2))
        return transform(out, plain, layout)

    def _bounds(self, rois: np.ndarray, axis: int, extent: int) -> np.ndarray:
        """Begin and end of each cell of each region along an axis: (R, cells, 2)."""
        scaled = rois[:, [2 - axis, 4 - axis]] * self.spatial_scale
        begin, end = np.where(scaled < 0, np.ceil(scaled - 0.5), np.floor(scaled + 0.5)).T[..., None]
        size, k = np.maximum(end - begin + 1, 1) / self.pooled_size[axis], np.arange(self.pooled_size[axis])
        bounds = np.stack([np.floor(k.astype(size.dtype) * size), np.ceil((k + 1).astype(size.dtype) * size)], -1)
        bounds = np.clip(bounds + begin[..., None], 0, extent)
        return np.where(np.isnan(bounds), (extent, 0), bounds).astype("int64")

    def procedure(self, p: Procedure, out: Tensor, data: Tensor, rois: Tensor) -> None:
        b, layout = p.b, parse_layout(self.layout)
        whole, channels = layout.extents(data.shape), layout.extents(out.shape)["C"]
        kind = "uint8" if data.dtype == "bool" else compute_dtype(data.dtype)
        with p.parallel(rois.shape[0]) as n:
            best, image = p.scratch(channels, kind), p.let(b.clamp_index(b.cast(rois(n, 0), "int64"), whole["N"]))
            with p.loops(self.pooled_size) as (row, column):
                down, right = (self._range(p, rois, n, k, d, whole["HW"[d]]) for d, k in enumerate((row, column)))
                empty = p.let(b.lor(down[1] <= 0, right[1] <= 0))
                with p.loop(channels, kind="vectorized") as c:
                    p.store(best, c, b.select(empty, b.const(0, kind), b.lowest(kind)))
                with p.loop(whole["H"], stop=down[1]) as y, p.loop(whole["W"], stop=right[1]) as x:
                    pixel = {"N": image, "H": down[0] + y, "W": right[0] + x}
                    with p.loop(channels, kind="vectorized") as c:
                        p.store(best, c, b.max(best(c), b.cast(data(*layout.index({**pixel, "C": c})), kind)))
                with p.loop(channels, kind="vectorized") as c:
                    at = layout.index({"N": n, "C": c, "H": row, "W": column})
                    p.store(out, at, b.cast(best(c), out.dtype))

    def _range(
        self, p: Procedure, rois: Tensor, n: Element, k: Element, axis: int, extent: int
    ) -> tuple[Element, Element]:
        """Where cell `k` begins along an axis, and how many pixels it has there."""
        b, exactness = p.b, precision(rois.dtype)
        corners = [b.cast(rois(n, c), exactness) for c in (2 - axis, 4 - axis)]
        begin, end = (p.let(b.round(v * self.spatial_scale)) for v in corners)
        size = p.let(b.max(end - begin + 1.0, 1.0) / float(self.pooled_size[axis]))
        place = b.cast(k, exactness)
        low, high = b.floor(place * size) + begin, b.ceil((place + 1.0) * size) + begin
        # what is no number is none of the pixels
        most = b.number(extent, exactness)
        first = p.let(b.cast(b.select(low < most, b.max(low, 0.0), most), "int64"))
        last = b.cast(b.select(high > 0.0, b.min(high, most), 0.0), "int64")
        return first, p.let(last - first)

    @classmethod
    def samples(cls) -> list[Sample]:
        rois = np.array([[0, 1, 1, 6, 5], [1, 0, 0, 12, 9], [0, 3, 2, 3, 2]], "float32")
        return [
            sample((2, 3, 8, 9), rois, pooled_size=(2, 3), spatial_scale=1.0),
            sample((2, 4, 5, 2), rois, pooled_size=(2, 2), spatial_scale=0.5, layout="NHWC"),
        ]


@op("vision.roi_align", level=5, attrs_key="ROIAlign", meta_attrs=True)
class roi_align(Roi):
    """The mean (or maximum) of bilinear samples in each cell of a grid over each region."""

    sample_ratio: int = attr(
        -1, "samples per cell along each axis; below 1: as many as the cell has pixels, rounded up (4096 at most)"
    )
    layout: str = "NCHW"
    mode: str = attr("avg", "avg or max")
    aligned: bool = attr(
        False, "pixels have their centres at halves, and regions may be smaller than a pixel (ONNX: half_pixel)"
    )
    source = "He et al., Mask R-CNN, 2017; ONNX RoiAlign"

    def reference(self, data: np.ndarray, rois: np.ndarray) -> np.ndarray:
        layout, plain = parse_layout(self.layout), parse_layout("NCHW")
        x = transform(data.astype("float64"), layout, plain)
        out = np.zeros((len(rois), x.shape[1], *self.pooled_size))
        for n, row, column in np.ndindex(len(rois), *self.pooled_size):
            ys = self._samples(float(rois[n, 2]), float(rois[n, 4]), row, 0)
            xs = self._samples(float(rois[n, 1]), float(rois[n, 3]), column, 1)
            image = x[self._image(rois[n, 0], len(x))]
            seen = np.array([_bilinear(image, y, z) for y in ys for z in xs])
            if len(seen):  # an aligned region of no extent has no samples of its own
                out[n, :, row, column] = seen.mean(axis=0) if self.mode == "avg" else seen.max(axis=0)
        dtype = data.dtype.name
        return as_dtype(settled(ResamplingArrays(), transform(out, plain, layout), dtype), dtype)

    def _samples(self, first: float, last: float, k: int, axis: int) -> list[float]:
        """The sample positions of cell `k` along an axis."""
        begin, size = first * self.spatial_scale, (last - first) * self.spatial_scale
        begin, size = (begin - 0.5, size) if self.aligned else (begin, max(size, 1.0))
        cell, none = size / self.pooled_size[axis], 0 if self.aligned else 1
        count = self.sample_ratio if self.sample_ratio > 0 else math.ceil(min(cell, MOST_SAMPLES)) if cell > 0 else none
        return [begin + k * cell + (j + 0.5) * cell / count for j in range(count)]

    def procedure(self, p: Procedure, out: Tensor, data: Tensor, rois: Tensor) -> None:
        b, layout = p.b, parse_layout(self.layout)
        whole, channels = layout.extents(data.shape), layout.extents(out.shape)["C"]
        with p.parallel(rois.shape[0]) as n:
            totals = p.scratch(channels, "float64")
            image = p.let(b.clamp_index(b.cast(rois(n, 0), "int64"), whole["N"]))
            with p.loops(self.pooled_size) as (row, column):
                with p.loop(channels, kind="vectorized") as c:
                    p.store(totals, c, 0.0 if self.mode == "avg" else b.lowest("float64"))
                down, right = (self._positions(p, rois, n, k, axis) for axis, k in enumerate((row, column)))
                many = p.let(down[0] * right[0])
                with p.loop(MOST_SAMPLES, stop=down[0]) as i, p.loop(MOST_SAMPLES, stop=right[0]) as j:
                    corners = self._bilinear(p, down[1](i), right[1](j), whole["H"], whole["W"])
                    with p.loop(channels, kind="vectorized") as c:
                        read = lambda y, x, c=c: b.cast(
                            data(*layout.index({"N": image, "C": c, "H": y, "W": x})), "float64"
                        )
                        x = corners(read)
                        p.store(totals, c, totals(c) + x if self.mode == "avg" else b.max(totals(c), x))
                with p.loop(channels, kind="vectorized") as c:
                    mean = totals(c) / b.cast(b.max(many, 1), "float64") if self.mode == "avg" else totals(c)
                    mean = b.select(many > 0, mean, 0.0) if self.aligned else mean
                    at = layout.index({"N": n, "C": c, "H": row, "W": column})
                    p.store(out, at, b.cast(settled(Expressions(b), mean, out.dtype), out.dtype))

    def _positions(
        self, p: Procedure, rois: Tensor, n: Element, k: Element, axis: int
    ) -> tuple[Element, Callable[[Element], Element]]:
        """How many samples cell `k` has along an axis, and the position of each."""
        b = p.b
        first, last = (b.cast(rois(n, c), "float64") for c in (2 - axis, 4 - axis))
        size = (last - first) * self.spatial_scale
        cell = p.let((size if self.aligned else b.max(size, 1.0)) / float(self.pooled_size[axis]))
        begin = first * self.spatial_scale + b.cast(k, "float64") * cell
        begin = p.let(begin - 0.5 if self.aligned else begin)
        if self.sample_ratio > 0:
            count: Element = b.index(self.sample_ratio)
        else:
            whole = b.select(cell > 0.0, b.ceil(b.min(cell, float(MOST_SAMPLES))), 0.0 if self.aligned else 1.0)
            count = p.let(b.cast(whole, "int64"))
        return count, lambda j: p.let(begin + (b.cast(j, "float64") + 0.5) * cell / b.cast(count, "float64"))

    @staticmethod
    def _bilinear(
        p: Procedure, y: Element, x: Element, height: int, width: int
    ) -> Callable[[Callable[[Element, Element], Element]], Element]:
        """How a place between pixels is read; 0 more than one pixel outside."""
        b = p.b
        high, wide = (b.number(n, "float64") for n in (height, width))
        inside = p.let(b.all_of(y >= -1.0, x >= -1.0, y <= high, x <= wide))
        y, x = (p.let(b.min(b.max(v, 0.0), n - 1.0)) for v, n in ((y, high), (x, wide)))
        top, left = (p.let(b.clamp_index(b.cast(b.floor(v), "int64"), n)) for v, n in ((y, height), (x, width)))
        bottom, right = p.let(b.min(top + 1, height - 1)), p.let(b.min(left + 1, width - 1))
        down, along = p.let(y - b.cast(top, "float64")), p.let(x - b.cast(left, "float64"))

        def value(read: Callable[[Element, Element], Element]) -> Element:
            sides = [read(top, k) * (1.0 - down) + read(bottom, k) * down for k in (left, right)]
            return b.select(inside, sides[0] * (1.0 - along) + sides[1] * along, 0.0)

        return value

    @classmethod
    def samples(cls) -> list[Sample]:
        rois = np.array([[0, 1.3, 1.1, 6.2, 5], [1, 0, 0, 12, 9]], "float32")
        return [
            sample((2, 3, 8, 9), rois, pooled_size=(2, 3), spatial_scale=1.0),
            sample(
                (2, 4, 5, 2), rois, pooled_size=(2, 2), spatial_scale=0.5, sample_ratio=2, layout="NHWC", mode="max"
            ),
            sample(
                (2, 3, 8, 9),
                np.concatenate([rois, [[1, 3.5, 2, 3.5, 7], [0, 4, 4.25, 4.5, 4.5]]]).astype("float32"),
                pooled_size=(2, 3),
                spatial_scale=1.0,
                aligned=True,
            ),  # fmt: skip
        ]


def _bilinear(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """The channels of (C, H, W) at a place; 0 more than one pixel outside."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(len(image))
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    top, left = math.floor(y), math.floor(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    rows = image[:, top] * (1 - (y - top)) + image[:, bottom] * (y - top)
    return rows[:, left] * (1 - (x - left)) + rows[:, right] * (x - left)


@op("vision.yolo_reorg", level=5, attrs_key="YoloReorg", required="stride")
class yolo_reorg(Injective):
    """Darknet's reorganisation of (N, C, H, W) to (N, C stride^2, H / stride, W / stride)."""

    data: Input = arg("the feature maps", "(N, C, H, W)")
    stride: int = attr(1, "by how much height and width shrink")
    yields = "(N, C * stride^2, H / stride, W / stride), of the dtype of data"
    source = "Redmon and Farhadi, YOLO9000: better, faster, stronger, 2017"

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        batch, c, h, w = rules.rank(s, data, 4).shape
        k = rules.positive(s, self.stride, "stride")
        if any(isinstance(n, int) and n % by for n, by in ((c, k * k), (h, k), (w, k))):
            s.fail(f"{type_text(data)} cannot be reorganised with a stride of {k}")
        return TensorType((batch, product((c, k * k)), *(derive(lambda n: n // k, d) for d in (h, w))), data.dtype)

    def _source(self, at: Sequence[Any], shape: Sequence[int]) -> tuple[list[Any], list[int]]:
        """Where the element `at` (c, y, x) of the input's own shape comes from, and the shape that this index is in."""
        (c, y, x), (channels, height, width), k = at, shape, self.stride
        kept = channels // (k * k)
        block = c // kept
        return [c % kept, y * k + block // k, x * k + block % k], [kept, height * k, width * k]

    def reference(self, data: np.ndarray) -> np.ndarray:
        n, c, h, w = data.shape
        out = np.zeros((n, c * h * w), data.dtype)
        flat = data.reshape(n, c * h * w)
        for at in np.ndindex(c, h, w):
            source, shape = self._source(at, (c, h, w))
            out[:, np.ravel_multi_index(at, (c, h, w))] = flat[:, np.ravel_multi_index(source, shape)]
        return out.reshape(n, c * self.stride**2, h // self.stride, w // self.stride)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        shape = data.shape[1:]
        at = unravel(b, b.index(ravel(i[1:], out.shape[1:])), shape)
        source, inner = self._source(at, shape)
        return data(i[0], *unravel(b, b.index(ravel(source, inner)), shape))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 4, 4, 6), stride=2), sample((1, 3, 2, 2), stride=1)]
