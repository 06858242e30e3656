"""Cutting boxes from images, and grey-scale dilation: crop_and_resize, dilation2d."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dims, Dtype, Injective, Ints, OutElementwiseFusable, Sample, op, sample
from relaylab.op.casts import as_dtype
from relaylab.op.layout import parse_layout, transform
from relaylab.op.nn_dense import stored
from relaylab.op.resample import Arrays, Expressions, blend, settled
from relaylab.op.window import each, pads, spread, window_extent


@op("image.crop_and_resize", inputs=("data", "boxes", "box_indices"), level=5, attrs_key="CropAndResize")
class crop_and_resize(Injective):
    """Boxes (y1, x1, y2, x2, as fractions) cut from images and resized to `crop_size`; box n comes from image
    box_indices[n]; places outside read as `extrapolation_value`.
    """

    crop_size: Dims | None = None
    layout: str = "NCHW"
    method: str = "bilinear"
    extrapolation_value: float = 0.0
    out_dtype: Dtype = None
    parameters = "data boxes box_indices crop_size layout method extrapolation_value out_dtype"

    def relation(self, s: Any, data: Type, boxes: Type, box_indices: Type) -> Type | None:
        x, box, at = (rules.tensor(s, t, n) for t, n in zip((data, boxes, box_indices), self.inputs))
        if x is None or box is None or at is None:
            return None
        layout = rules.layout(s, self.layout, "NCHW", x)
        if 0 in x.shape:
            s.fail(f"{self.op_name} has nothing to resample in {type_text(x)}", help="give an image with elements")
        rules.rank(s, box, 2, "boxes"), rules.integers(s, rules.rank(s, at, 1, "box_indices"), "box_indices")
        each(s, self.crop_size or (), 2, "crop_size")
        if self.method not in ("bilinear", "nearest_neighbor"):
            s.fail(f'method must be bilinear or nearest_neighbor, not "{self.method}"')
        height, width = map(IntImm, self.crop_size or ())
        whole = {"N": box.shape[0], "C": layout.whole(x.shape)["C"], "H": height, "W": width}
        return TensorType(rules.laid_out(s, layout, whole), self.out_dtype or x.dtype)

    def _place(self, first: Any, last: Any, k: Any, extent: int, target: int) -> Any:
        """Where output position `k` lies along an axis."""
        if target == 1:
            return (first + last) * (0.5 * (extent - 1))
        return first * float(extent - 1) + k * ((last - first) * ((extent - 1) / (target - 1)))

    def reference(self, data: np.ndarray, boxes: np.ndarray, box_indices: np.ndarray) -> np.ndarray:
        layout, plain = parse_layout(self.layout), parse_layout("NCHW")
        x = transform(data.astype("float64"), layout, plain)
        out = np.full((len(boxes), x.shape[1], *self.crop_size), self.extrapolation_value)  # type: ignore[misc]
        for n, row, column in np.ndindex(len(boxes), *self.crop_size):  # type: ignore[misc]
            y1, x1, y2, x2 = boxes[n].astype("float64")
            y = self._place(y1, y2, row, x.shape[2], self.crop_size[0])  # type: ignore[index]
            z = self._place(x1, x2, column, x.shape[3], self.crop_size[1])  # type: ignore[index]
            if 0 <= y <= x.shape[2] - 1 and 0 <= z <= x.shape[3] - 1:
                out[n, :, row, column] = self._read(x[box_indices[n]], y, z)
        dtype = self.out_dtype or data.dtype.name
        return as_dtype(settled(Arrays(), transform(out, plain, layout), dtype), dtype)

    def _read(self, image: np.ndarray, y: float, z: float) -> np.ndarray:
        """The channels at one place."""
        if self.method == "nearest_neighbor":
            return image[:, int(np.floor(y + 0.5)), int(np.floor(z + 0.5))]
        top, left = int(np.floor(y)), int(np.floor(z))
        bottom, right = min(top + 1, image.shape[1] - 1), min(left + 1, image.shape[2] - 1)
        rows = image[:, top] * (1 - (y - top)) + image[:, bottom] * (y - top)
        return rows[:, left] * (1 - (z - left)) + rows[:, right] * (z - left)

    def lower(self, b: Any, out: Any, i: tuple, data: Any, boxes: Any, box_indices: Any) -> Any:
        layout = parse_layout(self.layout)
        at, whole = layout.at(i), layout.whole(data.shape)
        taps, inside = [], []
        for d, (letter, target) in enumerate(zip("HW", self.crop_size or ())):
            extent = int(whole[letter])  # type: ignore[arg-type]
            first, last = (b.cast(boxes(at["N"], k), "float64") for k in (d, d + 2))
            place = self._place(first, last, b.cast(at[letter], "float64"), extent, int(target))
            inside += [place >= 0.0, place <= extent - 1.0]
            low = b.floor(place + 0.5) if self.method == "nearest_neighbor" else b.floor(place)
            index = b.cast(low, "int64")
            near, far = b.clamp_index(index, extent), b.clamp_index(index + 1, extent)
            taps.append(
                [(near, None)]
                if self.method == "nearest_neighbor"
                else [(near, 1.0 - (place - low)), (far, place - low)]
            )
        image = b.load_index(box_indices(at["N"]))
        read = lambda y, x: b.cast(data(*layout.index({"N": image, "C": at["C"], "H": y, "W": x})), "float64")
        value = b.select(b.all_of(*inside), blend(read, taps), self.extrapolation_value)
        return b.cast(settled(Expressions(b), value, out.dtype), out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        boxes = np.array([[0.1, 0.2, 0.8, 1.1], [0.0, 0.0, 1.0, 1.0], [0.9, 0.3, 0.2, 0.6]], "float32")
        which = np.array([1, 0, 1], "int32")
        return [
            sample((2, 3, 5, 6), boxes, which, crop_size=(3, 4), extrapolation_value=0.5),
            sample((2, 5, 6, 3), boxes, which, crop_size=(1, 3), layout="NHWC"),
            sample((2, 1, 5, 6), boxes, which, crop_size=(4, 2), method="nearest_neighbor"),
        ]


@op("image.dilation2d", inputs=("data", "weight"), level=2, attrs_key="Dilation2D")
class dilation2d(OutElementwiseFusable):
    """Grey-scale dilation: the largest data + weight over a window, channel by channel; weight is (C, h, w) as
    `IHW`.
    """

    strides: Ints = (1, 1)
    padding: Ints = (0, 0)
    dilations: Ints = (1, 1)
    data_layout: str = "NCHW"
    kernel_layout: str = "IHW"
    out_dtype: Dtype = None

    def relation(self, s: Any, data: Type, weight: Type) -> Type | None:
        x, w = rules.tensor(s, data), rules.tensor(s, weight, "weight")
        if x is None or w is None:
            return None
        layout = rules.layout(s, self.data_layout, "NCHW", x)
        whole, kernel = layout.whole(x.shape), rules.layout(s, self.kernel_layout, "IHW", w, "weight").whole(w.shape)
        rules.equal_dims(s, kernel["I"], whole["C"], "the channels of data and weight")
        for a, step, dilation, pad in self._axes(s):
            whole[a] = window_extent(s, whole[a], kernel[a], step, dilation, pad)
        return TensorType(rules.laid_out(s, layout, whole), rules.summed(s, self.out_dtype or x.dtype, x, w))

    def _axes(self, s: Any = None) -> list[tuple]:
        """(letter, stride, dilation, (before, after)) of both axes."""
        return list(zip("HW", spread(self.strides, 2), spread(self.dilations, 2), pads(self.padding, 2)))

    def reference(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        layout = parse_layout(self.data_layout)
        x = transform(data, layout, parse_layout("NCHW"))
        w = transform(weight, parse_layout(self.kernel_layout), parse_layout("IHW"))
        x = np.pad(x.astype("float64"), [(0, 0), (0, 0), *(a[3] for a in self._axes())], constant_values=-np.inf)
        sizes = [(n - (k - 1) * d - 1) // st + 1 for n, k, (_, st, d, _) in zip(x.shape[2:], w.shape[1:], self._axes())]
        out = np.full((*x.shape[:2], *sizes), -np.inf)
        for tap in np.ndindex(*w.shape[1:]):
            window = [
                slice(t * d, t * d + (m - 1) * st + 1, st) for t, m, (_, st, d, _) in zip(tap, sizes, self._axes())
            ]
            sums = x[(slice(None), slice(None), *window)] + w[(slice(None), *tap)][:, None, None]
            out = np.maximum(out, self._wrapped(sums, self.out_dtype or data.dtype.name))
        return as_dtype(transform(out, parse_layout("NCHW"), layout), self.out_dtype or data.dtype.name)

    @staticmethod
    def _wrapped(sums: np.ndarray, dtype: str) -> np.ndarray:
        """Sums as far as an integer type holds them; where there is only padding they stay minus infinity."""
        return np.where(np.isneginf(sums), sums, stored(np.nan_to_num(sums, neginf=0), dtype)) if "int" in dtype else sums

    def lower(self, b: Any, out: Any, i: tuple, data: Any, weight: Any) -> Any:
        layout, kernel_layout = parse_layout(self.data_layout), parse_layout(self.kernel_layout)
        at, whole, kernel = layout.at(i), layout.whole(data.shape), kernel_layout.whole(weight.shape)

        def term(*taps: Any) -> Any:
            source, inside = dict(at), []
            for (a, step, dilation, pad), tap in zip(self._axes(), taps):
                source[a] = at[a] * step + tap * dilation - pad[0]
                inside.append(b.inside(source[a], int(whole[a])))  # type: ignore[arg-type]
            w = weight(*kernel_layout.index({"I": at["C"], "H": taps[0], "W": taps[1]}))
            read = lambda: b.cast(data(*layout.index(source)), out.dtype) + b.cast(w, out.dtype)
            return b.guard(b.all_of(*inside), read, b.lowest(out.dtype))

        return b.rmax([int(kernel[a]) for a in "HW"], term)  # type: ignore[arg-type]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((1, 2, 5, 6), (2, 3, 2), padding=(1, 1)),
            sample((1, 6, 7, 3), (2, 3, 3), strides=(2, 1), dilations=(1, 2), data_layout="NHWC", kernel_layout="HWI"),
        ]
