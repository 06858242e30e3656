"""Cutting boxes from images, and grey-scale dilation: crop_and_resize, dilation2d."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import (
    Dtype,
    Injective,
    Input,
    Ints,
    OutElementwiseFusable,
    Sample,
    arg,
    attr,
    dtype_min,
    op,
    sample,
)
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import ints
from relaylab.op.layout import parse_layout, transform
from relaylab.op.nn.resample import Expressions, ResamplingArrays, blend, settled
from relaylab.op.products import exact, stored
from relaylab.op.tensor.casts import as_dtype
from relaylab.op.window import each, pads, spread, window_extent


def precision(boxes: str) -> str:
    """The data type of places in images, from that of the boxes."""
    return "float64" if boxes == "float64" else "float32"


@op("image.crop_and_resize", level=5, attrs_key="CropAndResize", required="crop_size layout")
class crop_and_resize(Injective):
    """Boxes (y1, x1, y2, x2, as fractions) cut from images and resized to `crop_size`; box n comes from image
    box_indices[n]; places outside read as `extrapolation_value`.
    """

    data: Input = arg("the images, laid out as `layout`", "(N, C, H, W)")
    boxes: Input = arg("corners y1, x1, y2, x2: 0 is the first row or column, 1 the last; y1 > y2 flips", "(R, 4)")
    box_indices: Input = arg("the image that each box is cut from, limited to those there are", "(R,)", "integers")
    crop_size: Ints | None = attr(None, "the height and width of the crops; one number stands for both")
    layout: str = attr("NCHW", "the axes of data and result")
    method: str = attr("bilinear", "how a place between pixels is read: bilinear, or nearest_neighbor (halves go up)")
    extrapolation_value: float = attr(0.0, "what places outside the image read as")
    out_dtype: Dtype = attr(None, "the data type of the result; None: that of data")
    yields = (
        "(R, C, *crop_size) laid out as `layout`, of `out_dtype`; row k of n lies at "
        "(H - 1) * (y1 + k * (y2 - y1) / (n - 1)), the only row at (H - 1) * (y1 + y2) / 2"
    )
    source = "tf.image.crop_and_resize"
    parameters = "data boxes box_indices crop_size layout method extrapolation_value out_dtype"

    @property
    def size(self) -> tuple[int, ...]:
        """The height and width of the crops."""
        return self.crop_size or ()

    def result_type(self, s: TypeSolver, x: TensorType, box: TensorType, at: TensorType) -> TensorType:
        layout = rules.layout(s, self.layout, "NCHW", x)
        if 0 in x.shape:
            s.fail(f"{self.op_name} has nothing to resample in {type_text(x)}", help="give an image with elements")
        rules.shaped(s, box, (None, 4), "boxes")
        rules.integers(s, rules.shaped(s, at, box.shape[:1], "box_indices"), "box_indices")
        each(s, self.size, 2, "crop_size", one_for_all=False)
        if self.method not in ("bilinear", "nearest_neighbor"):
            s.fail(f'method must be bilinear or nearest_neighbor, not "{self.method}"')
        height, width = map(IntImm, self.size)
        whole = {"N": box.shape[0], "C": layout.whole(x.shape)["C"], "H": height, "W": width}
        return TensorType(rules.laid_out(s, layout, whole), self.out_dtype or x.dtype)

    def place(
        self,
        first: Any,
        last: Any,
        k: Any,
        end: Element | float,
        target: int,
        rounded: Callable[[Any], Any] = np.asarray,
    ) -> Any:
        """Where output position `k` lies along an axis whose last position is `end`; `rounded` step by step, it
        decides what is outside.
        """
        if target == 1:
            return (first + last) * (end * 0.5)
        step = (last - first) * end / float(target - 1)
        return rounded(first * end) + rounded(step * k)

    def reference(self, data: np.ndarray, boxes: np.ndarray, box_indices: np.ndarray) -> np.ndarray:
        layout, plain = parse_layout(self.layout), parse_layout("NCHW")
        x = transform(data.astype("float64"), layout, plain)
        out = np.full((len(boxes), x.shape[1], *self.size), self.extrapolation_value)
        at, images = boxes.astype(precision(boxes.dtype.name)), np.clip(box_indices, 0, len(x) - 1)
        rows, columns = (
            self.place(at[:, [d]], at[:, [d + 2]], np.arange(n, dtype=at.dtype), x.shape[2 + d] - 1.0, n)
            for d, n in enumerate(self.size)
        )
        for n, row, column in np.ndindex(len(boxes), *self.size):
            y, z = float(rows[n, row]), float(columns[n, column])
            if 0 <= y <= x.shape[2] - 1 and 0 <= z <= x.shape[3] - 1:
                out[n, :, row, column] = self._read(x[images[n]], y, z)
        dtype = self.out_dtype or data.dtype.name
        return as_dtype(settled(ResamplingArrays(), transform(out, plain, layout), dtype), dtype)

    def _read(self, image: np.ndarray, y: float, z: float) -> np.ndarray:
        """The channels at one place."""
        if self.method == "nearest_neighbor":
            return image[:, int(np.floor(y + 0.5)), int(np.floor(z + 0.5))]
        top, left = int(np.floor(y)), int(np.floor(z))
        bottom, right = min(top + 1, image.shape[1] - 1), min(left + 1, image.shape[2] - 1)
        rows = image[:, top] * (1 - (y - top)) + image[:, bottom] * (y - top)
        return rows[:, left] * (1 - (z - left)) + rows[:, right] * (z - left)

    def lower(
        self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, boxes: Readable, box_indices: Readable
    ) -> Element:
        layout = parse_layout(self.layout)
        at, whole = layout.at(i), layout.extents(data.shape)
        taps, inside, exactness = [], [], precision(boxes.dtype)
        for d, (letter, target) in enumerate(zip("HW", self.size)):
            extent = whole[letter]
            first, last = (b.cast(boxes(at["N"], k), exactness) for k in (d, d + 2))
            alone = lambda product: b.max(product, float("-inf"))  # a fused multiply-add would not round it
            end = b.number(extent - 1, exactness)
            place = self.place(first, last, b.cast(at[letter], exactness), end, int(target), alone)
            place = b.cast(place, "float64")
            inside += [place >= 0.0, place <= b.number(extent - 1, "float64")]
            low = b.floor(place + 0.5) if self.method == "nearest_neighbor" else b.floor(place)
            index = b.cast(low, "int64")
            near, far = b.clamp_index(index, extent), b.clamp_index(index + 1, extent)
            taps.append(
                [(near, None)]
                if self.method == "nearest_neighbor"
                else [(near, 1.0 - (place - low)), (far, place - low)]
            )
        image = b.clamp_index(b.load_index(box_indices(at["N"])), whole["N"])
        read = lambda y, x: b.cast(data(*layout.index({"N": image, "C": at["C"], "H": y, "W": x})), "float64")
        value = b.select(b.all_of(*inside), blend(read, taps), self.extrapolation_value)
        return b.cast(settled(Expressions(b), value, out.dtype), out.dtype)

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        size = ints(attrs["crop_size"])
        return {**attrs, "crop_size": None if size is None else spread(size, 2)}

    @classmethod
    def samples(cls) -> list[Sample]:
        boxes = np.array([[0.1, 0.2, 0.8, 1.1], [0.0, 0.0, 1.0, 1.0], [0.9, 0.3, 0.2, 0.6]], "float32")
        which = np.array([1, 0, 1], "int32")
        return [
            sample((2, 3, 5, 6), boxes, which, crop_size=(3, 4), extrapolation_value=0.5),
            sample((2, 5, 6, 3), boxes, which, crop_size=(1, 3), layout="NHWC"),
            sample((2, 1, 5, 6), boxes, which, crop_size=(4, 2), method="nearest_neighbor"),
        ]


@op("image.dilation2d", level=2, attrs_key="Dilation2D")
class dilation2d(OutElementwiseFusable):
    """Grey-scale dilation: the largest data + weight over a window, channel by channel; weight is (C, h, w) as
    `IHW`.
    """

    data: Input = arg("the batch of images, laid out as `data_layout`", "(N, C, H, W)", "any but bool")
    weight: Input = arg("the structuring element of each channel, laid out as `kernel_layout`", "(C, h, w)")
    strides: Ints = attr((1, 1), "steps of the window along height and width")
    padding: Ints = attr((0, 0), "zeros around height and width: one number, one per axis, or befores then afters")
    dilations: Ints = attr((1, 1), "distance between the window's elements along height and width")
    data_layout: str = attr("NCHW", "the axes of data and result")
    kernel_layout: str = attr("IHW", "the axes of weight, I for the channels")
    out_dtype: Dtype = attr(None, "the data type of sums and result; None: that of data")
    yields = (
        "(N, C, *extents) laid out as `data_layout`, of `out_dtype`; along height and width "
        "extent = (extent + before + after - dilation * (window - 1) - 1) // stride + 1"
    )
    source = "Haralick, Sternberg and Zhuang, Image analysis using mathematical morphology, 1987; tf.nn.dilation2d"

    def result_type(self, s: TypeSolver, data: TensorType, weight: TensorType) -> Type | None:
        layout = rules.layout(s, self.data_layout, "NCHW", data)
        whole = layout.whole(data.shape)
        kernel = rules.layout(s, self.kernel_layout, "IHW", weight, "weight").whole(weight.shape)
        rules.equal_dims(s, kernel["I"], whole["C"], "the channels of data and weight")
        each(s, self.strides, 2, "strides"), each(s, self.dilations, 2, "dilations")
        for a, step, dilation, pad in self.axes():
            whole[a] = window_extent(s, whole[a], kernel[a], step, dilation, pad)
        return TensorType(rules.laid_out(s, layout, whole), rules.summed(s, self.out_dtype or data.dtype, data, weight))

    def axes(self) -> list[tuple[str, int, int, tuple[int, int]]]:
        """(letter, stride, dilation, (before, after)) of both axes."""
        return list(zip("HW", spread(self.strides, 2), spread(self.dilations, 2), pads(self.padding, 2)))

    def reference(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        layout = parse_layout(self.data_layout)
        x = transform(data, layout, parse_layout("NCHW"))
        w = transform(weight, parse_layout(self.kernel_layout), parse_layout("IHW"))
        dtype = self.out_dtype or data.dtype.name
        x, w = exact(dtype, x, w)
        x = np.pad(x, [(0, 0), (0, 0), *(a[3] for a in self.axes())])
        sizes = [(n - (k - 1) * d - 1) // st + 1 for n, k, (_, st, d, _) in zip(x.shape[2:], w.shape[1:], self.axes())]
        out = np.full((*x.shape[:2], *sizes), dtype_min(dtype), dtype)
        for tap in np.ndindex(*w.shape[1:]):
            window = [
                slice(t * d, t * d + (m - 1) * st + 1, st) for t, m, (_, st, d, _) in zip(tap, sizes, self.axes())
            ]
            sums = x[(slice(None), slice(None), *window)] + w[(slice(None), *tap)][:, None, None]
            out = np.maximum(out, stored(sums, dtype))
        return transform(out, parse_layout("NCHW"), layout)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, weight: Readable) -> Element:
        layout, kernel_layout = parse_layout(self.data_layout), parse_layout(self.kernel_layout)
        at, whole, kernel = layout.at(i), layout.extents(data.shape), kernel_layout.extents(weight.shape)

        def term(*taps: Element) -> Element:
            source, inside = dict(at), []
            for (a, step, dilation, pad), tap in zip(self.axes(), taps):
                source[a] = at[a] * step + tap * dilation - pad[0]
                inside.append(b.inside(source[a], whole[a]))
            w = weight(*kernel_layout.index({"I": at["C"], "H": taps[0], "W": taps[1]}))
            read = lambda: b.cast(data(*layout.index(source)), out.dtype)
            return b.guard(b.all_of(*inside), read, b.const(0, out.dtype)) + b.cast(w, out.dtype)

        return b.rmax([kernel[a] for a in "HW"], term)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((1, 2, 5, 6), (2, 3, 2), padding=(1, 1)),
            sample((1, 6, 7, 3), (2, 3, 3), strides=(2, 1), dilations=(1, 2), data_layout="NHWC", kernel_layout="HWI"),
        ]
