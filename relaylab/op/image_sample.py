"""Sampling images at computed places: affine_grid, grid_sample, crop_and_resize; and dilation2d."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.loop.builder import b as scalar_builder
from relaylab.op import rules
from relaylab.op.base import Dims, Dtype, Injective, Ints, OutElementwiseFusable, Sample, op, sample
from relaylab.op.elementwise import as_dtype
from relaylab.op.indexing import ints
from relaylab.op.layout import parse_layout, transform
from relaylab.op.resample import blend, cubic_weights
from relaylab.op.window import each, pads, spread, window_extent


@op("image.affine_grid", inputs=("data",), level=5, attrs_key="AffineGrid")
class affine_grid(Injective):
    """Sampling grids (batch, 2, height, width) for grid_sample from (batch, 2, 3) affine matrices: positions -1 ..
    1.
    """

    target_shape: Ints

    def relation(self, s: Any, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        rules.rank(s, found, 3)
        if tuple(found.shape[1:]) != (2, 3) or len(self.target_shape) != 2:
            s.fail(f"image.affine_grid needs (batch, 2, 3) matrices and a target shape of 2, not {type_text(found)}")
        return TensorType((found.shape[0], 2, *self.target_shape), found.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        height, width = self.target_shape
        y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
        return np.einsum("bij,jhw->bihw", data.astype("float64"), np.stack([x, y, np.ones_like(x)])).astype(data.dtype)

    def lower(self, b: Any, out: Any, i: tuple, data: Any) -> Any:
        n, k, row, column = i
        y, x = (b.cast(c, "float64") * (2.0 / max(m - 1, 1)) - 1.0 for c, m in zip((row, column), self.target_shape))
        term = lambda j: b.cast(data(n, k, j), "float64")
        return b.cast(term(0) * x + term(1) * y + term(2), out.dtype)

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        return {**attrs, "target_shape": ints(attrs["target_shape"])}

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 2, 3), target_shape=(4, 5))]


@op("image.grid_sample", inputs=("data", "grid"), level=5, attrs_key="GridSample")
class grid_sample(Injective):
    """`data` (N, C, H, W) or (N, C, D, H, W) read at the places of `grid` (N, 2 or 3, ...): x, y (, z) of -1 .. 1, by
    nearest, bilinear or bicubic interpolation. Outside: zeros, the border, or a reflection. Jaderberg et al., 2015.
    """

    method: str = "bilinear"
    layout: str = "NCHW"
    padding_mode: str = "zeros"
    align_corners: bool = True

    def relation(self, s: Any, data: Type, grid: Type) -> Type | None:
        x, g = rules.tensor(s, data), rules.tensor(s, grid, "grid")
        if x is None or g is None:
            return None
        spatial = len(self.layout) - 2
        rules.rank(s, x, spatial + 2), rules.rank(s, g, spatial + 2, "grid")
        rules.equal_dims(
            s, g.shape[1], IntImm(spatial), "the second dimension of `grid` must be the number of coordinates"
        )
        for value, known in ((self.layout, ("NCHW", "NCDHW")), (self.method, ("nearest", "bilinear", "bicubic"))):
            if value not in known:
                s.fail(f'image.grid_sample cannot do "{value}"', help="known: " + ", ".join(known))
        if self.padding_mode not in ("zeros", "border", "reflection"):
            s.fail(f'padding_mode must be zeros, border or reflection, not "{self.padding_mode}"')
        return TensorType(
            (rules.equal_dims(s, x.shape[0], g.shape[0], "the batches"), x.shape[1], *g.shape[2:]), x.dtype
        )

    def _taps(self, b: Any, at: Any, extent: int) -> list[tuple[Any, Any]]:
        """The (position, weight) around a place; positions are whole float64 numbers and may lie outside."""
        if self.method == "nearest":
            return [(b.round(at), b.const(1.0, "float64"))]
        low = b.floor(at)
        t = at - low
        weights = [1.0 - t, t] if self.method == "bilinear" else cubic_weights(t, -0.75)
        first = 0.0 if self.method == "bilinear" else -1.0
        return [(low + (first + k), w) for k, w in enumerate(weights)]

    def _place(self, b: Any, g: Any, extent: int) -> Any:
        """The position among `extent` elements of the grid value `g`."""
        if self.align_corners:
            at, low, high = (g + 1.0) * ((extent - 1) / 2), 0.0, extent - 1.0
        else:
            at, low, high = ((g + 1.0) * extent - 1.0) * 0.5, -0.5, extent - 0.5
        if self.padding_mode == "border":
            return b.min(b.max(at, 0.0), extent - 1.0)
        if self.padding_mode == "reflection":
            span = max(high - low, 1e-9)
            folded = b.floormod(at - low, 2.0 * span)
            at = b.select(folded > span, 2.0 * span - folded, folded) + low
            return b.min(b.max(at, 0.0), extent - 1.0)
        return at

    def lower(self, b: Any, out: Any, i: tuple, data: Any, grid: Any) -> Any:
        n, c, *cell = i
        rank = len(cell)
        taps = []
        for d in range(rank):
            extent = int(data.shape[2 + d])
            taps.append(self._taps(b, self._place(b, b.cast(grid(n, rank - 1 - d, *cell), "float64"), extent), extent))

        def read(*at: Any) -> Any:
            extents = [int(m) for m in data.shape[2:]]
            inside = b.all_of(*(c for k, m in zip(at, extents) for c in (k >= 0.0, k <= m - 1.0)))
            index = [b.clamp_index(b.cast(k, "int64"), m) for k, m in zip(at, extents)]
            value = b.cast(data(n, c, *index), "float64")
            return b.select(inside, value, 0.0) if self.padding_mode == "zeros" else value

        return b.cast(blend(read, taps), out.dtype)

    def reference(self, data: np.ndarray, grid: np.ndarray) -> np.ndarray:
        out = np.zeros((*data.shape[:2], *grid.shape[2:]), data.dtype)
        for at in np.ndindex(grid.shape[0], *grid.shape[2:]):
            n, cell = at[0], at[1:]
            out[(n, slice(None), *cell)] = self._value(data[n].astype("float64"), grid[(n, slice(None), *cell)][::-1])
        return out

    def _value(self, image: np.ndarray, g: np.ndarray) -> np.ndarray:
        """The channels at one grid point."""
        weights = [self._weights(float(v), m) for v, m in zip(g, image.shape[1:])]
        for w in weights:
            image = np.tensordot(image, w, axes=(1, 0))
        return image

    def _weights(self, g: float, extent: int) -> np.ndarray:
        """The weight of each element of an axis at one grid value."""
        b = scalar_builder
        at = self._place(b, b.const(g, "float64"), extent)
        out = np.zeros(extent)
        for k, w in self._taps(b, at, extent):
            if 0 <= k.value <= extent - 1 or self.padding_mode != "zeros":
                out[int(np.clip(k.value, 0, extent - 1))] += w.value
        return out

    @classmethod
    def samples(cls) -> list[Sample]:
        data, grid = (2, 3, 4, 5), (2, 2, 3, 4)
        modes = [
            ("bilinear", "zeros", True),
            ("nearest", "border", False),
            ("bicubic", "reflection", True),
            ("bilinear", "reflection", False),
        ]
        cases = [sample(data, grid, method=m, padding_mode=p, align_corners=a, low=-1.4, high=1.4) for m, p, a in modes]
        return [*cases, sample((1, 2, 3, 4, 2), (1, 3, 2, 2, 3), layout="NCDHW", low=-1.2, high=1.2)]


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
        return as_dtype(transform(out, plain, layout), self.out_dtype or data.dtype.name)

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
        return b.cast(b.select(b.all_of(*inside), blend(read, taps), self.extrapolation_value), out.dtype)

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
        return TensorType(rules.laid_out(s, layout, whole), self.out_dtype or x.dtype)

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
            out = np.maximum(out, x[(slice(None), slice(None), *window)] + w[(slice(None), *tap)][:, None, None])
        return transform(out, parse_layout("NCHW"), layout).astype(self.out_dtype or data.dtype)

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
