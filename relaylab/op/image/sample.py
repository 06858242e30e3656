"""Sampling images at computed places: affine_grid, grid_sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.loop.builder import b as scalar_builder
from relaylab.loop.expr import ScalarExpr
from relaylab.loop.scalar import compute_dtype, is_float
from relaylab.op import rules
from relaylab.op.base import Injective, Input, Ints, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import ints, length
from relaylab.op.nn.resample import blend, cubic_weights
from relaylab.op.window import each, spread


@op("image.affine_grid", level=5, attrs_key="AffineGrid")
class affine_grid(Injective):
    """Sampling grids (batch, 2, height, width) for grid_sample from (batch, 2, 3) affine matrices: positions -1 ..
    1.
    """

    data: Input = arg(
        "the matrices that take (x, y, 1) of the result to the (x, y) that is read", "(N, 2, 3)", "floats"
    )
    target_shape: Ints = attr(doc="the height and width of the grids; one number stands for both")
    defaults = {"target_shape": None}
    yields = "(N, 2, *target_shape), of the dtype of data: data @ (x, y, 1) with x and y from -1 to 1"
    source = "Jaderberg et al., Spatial transformer networks, 2015"

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        rules.shaped(s, rules.floats(s, data), (None, 2, 3))
        each(s, self.target_shape, 2, "target_shape", one_for_all=False)
        return TensorType((data.shape[0], 2, *self.target_shape), data.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        height, width = self.target_shape
        y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
        return np.einsum("bij,jhw->bihw", data.astype("float64"), np.stack([x, y, np.ones_like(x)])).astype(data.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        n, k, row, column = i
        y, x = (b.cast(c, "float64") * (2.0 / max(m - 1, 1)) - 1.0 for c, m in zip((row, column), self.target_shape))
        term = lambda j: b.cast(data(n, k, j), "float64")
        return b.cast(term(0) * x + term(1) * y + term(2), out.dtype)

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        shape = ints(attrs["target_shape"])
        return {**attrs, "target_shape": None if shape is None else spread(shape, 2)}

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 2, 3), target_shape=(4, 5))]


@op("image.grid_sample", level=5, attrs_key="GridSample")
class grid_sample(Injective):
    """`data` (N, C, H, W) or (N, C, D, H, W) read at the places of `grid` (N, 2 or 3, ...): x, y (, z) of -1 .. 1, by
    nearest, bilinear or bicubic interpolation.
    """

    data: Input = arg("the batch of images or volumes, laid out as `layout`", "(N, C, H, W) or (N, C, D, H, W)")
    grid: Input = arg("the places: x, y (, z) from -1 to 1 over width, height (, depth)", "(N, 2 or 3, *extents)")
    method: str = attr(
        "bilinear", "how a place between pixels is read: nearest (halves away from 0), bilinear or bicubic"
    )
    layout: str = attr("NCHW", "NCHW, or NCDHW for volumes")
    padding_mode: str = attr("zeros", "what lies outside: zeros, the border, or a reflection")
    align_corners: bool = attr(
        True, "whether -1 and 1 are the middles of the outermost pixels, or else their outer edges"
    )
    yields = "(N, C, *extents), of the dtype of data"
    source = "Jaderberg et al., Spatial transformer networks, 2015; torch.nn.functional.grid_sample"

    def result_type(self, s: TypeSolver, data: TensorType, grid: TensorType) -> Type | None:
        spatial = len(self.layout) - 2
        rules.rank(s, data, spatial + 2), rules.rank(s, grid, spatial + 2, "grid")
        rules.equal_dims(
            s, grid.shape[1], IntImm(spatial), "the second dimension of `grid` must be the number of coordinates"
        )
        if 0 in data.shape[2:]:
            s.fail(f"{self.op_name} has nothing to sample in {type_text(data)}", help="give an image with elements")
        for value, known in ((self.layout, ("NCHW", "NCDHW")), (self.method, ("nearest", "bilinear", "bicubic"))):
            if value not in known:
                s.fail(f'image.grid_sample cannot do "{value}"', help="known: " + ", ".join(known))
        if self.padding_mode not in ("zeros", "border", "reflection"):
            s.fail(f'padding_mode must be zeros, border or reflection, not "{self.padding_mode}"')
        return TensorType(
            (rules.equal_dims(s, data.shape[0], grid.shape[0], "the batches"), data.shape[1], *grid.shape[2:]),
            data.dtype,
        )

    def taps(self, b: ElementBuilder, g: Element, extent: Element | int) -> list[tuple[Any, Any]]:
        """The (position, weight) that the grid value `g` reads; positions are whole float64 numbers, of which those
        outside are zeros. Bicubic interpolation pads each tap, the others the place itself.
        """
        place = (g + 1.0) * ((extent - 1) / 2) if self.align_corners else ((g + 1.0) * extent - 1.0) * 0.5
        if self.method == "bicubic":
            low = b.floor(place)
            weights = cubic_weights(place - low, -0.75)
            return [(self._padded(b, low + (k - 1.0), extent), w) for k, w in enumerate(weights)]
        at = self._padded(b, place, extent)
        if self.method == "nearest":
            return [(b.round(at), b.const(1.0, "float64"))]
        low = b.floor(at)
        return [(low, 1.0 - (at - low)), (low + 1.0, at - low)]

    def _padded(self, b: ElementBuilder, at: Element, extent: Element | int) -> Element:
        """The place inside that stands for `at`; with zeros it stays where it is."""
        if self.padding_mode == "zeros":
            return at
        if self.padding_mode == "reflection":
            most = max(extent - 1.0, 1e-9) if isinstance(extent, int) else b.max(extent - 1.0, 1e-9)
            low, span = (0.0, most) if self.align_corners else (-0.5, extent * 1.0)
            folded = b.floormod(at - low, 2.0 * span)
            at = b.select(folded > span, 2.0 * span - folded, folded) + low
        return b.min(b.max(at, 0.0), extent - 1.0)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, grid: Readable) -> Element:
        n, c, *cell = i
        rank, taps, wide = len(cell), [], compute_dtype(out.dtype) if is_float(out.dtype) else "float64"
        for d in range(rank):
            g, extent = b.cast(grid(n, rank - 1 - d, *cell), "float64"), data.shape[2 + d]
            known = b.number(extent, "float64") if isinstance(extent, ScalarExpr) else int(extent)
            found = self.taps(b, g, known)
            taps.append([(at, b.cast(weight, wide)) for at, weight in found])

        def read(*at: Element) -> Element:
            extents = [length(m) for m in data.shape[2:]]
            last = [b.number(m - 1, "float64") for m in extents]
            inside = b.all_of(*(c for k, m in zip(at, last) for c in (k >= 0.0, k <= m)))
            index = [b.clamp_index(b.cast(k, "int64"), m) for k, m in zip(at, extents)]
            value = b.cast(data(n, c, *index), wide)
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
        b = scalar_builder
        for v, extent in zip(g, image.shape[1:]):
            total = np.zeros_like(image[:, 0])
            for k, w in self.taps(b, b.const(float(v), "float64"), extent):
                seen = 0 <= k.value <= extent - 1 or self.padding_mode != "zeros"
                index = int(np.clip(np.nan_to_num(k.value), 0, extent - 1))
                total = total + (image[:, index] if seen else np.zeros_like(total)) * w.value
            image = total
        return image

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
