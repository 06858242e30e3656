"""Sampling images at computed places: affine_grid, grid_sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.loop.builder import b as scalar_builder
from relaylab.op import rules
from relaylab.op.base import Injective, Ints, Sample, op, sample
from relaylab.op.indexing import ints
from relaylab.op.resample import blend, cubic_weights


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
        rules.rank(s, rules.floats(s, found), 3)
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
