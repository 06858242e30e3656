"""Pooling to a given output size: adaptive and global pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from relaylab.ir.expr import Expr
from relaylab.ir.types import IntImm, TensorType, Type
from relaylab.loop.scalar import lowest
from relaylab.op import rules
from relaylab.op.base import Dims, Input, OutElementwiseFusable, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.nn.pool import check_layouts, positions
from relaylab.op.tensor.moments import divided, quotient


class SizedPool(OutElementwiseFusable):
    """Output position y of m pools the inputs floor(y n / m) .. ceil((y + 1) n / m) - 1 of n."""

    data: Input = arg("the batch of images, laid out as `layout`", "(N, C, *extents)", "any; for means any but bool")
    layout: str = attr("NCHW", "the axes of data; channels may be in blocks, as in NCHW16c")
    out_layout: str = attr("", "the axes of the result: those of data, or empty")
    spatial: ClassVar[str] = "HW"
    kind: ClassVar[str] = "avg"

    def target(self) -> tuple[Any, ...]:
        """The wanted extents of the pooled axes; empty: those of the input."""
        return (1,) * len(self.spatial)

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        check_layouts(s, self, data if self.kind == "max" else rules.numbers(s, data))
        shape, target = list(data.shape), self.target()
        if len(target) not in (0, 1, len(self.spatial)):
            s.fail(f"`output_size` of {self.op_name} must have {len(self.spatial)} values, not {len(target)}")
        for k, m in zip(positions(self.layout, self.spatial), self._each(target)):
            shape[k] = IntImm(rules.positive(s, int(m), "output_size"))
        return TensorType(shape, data.dtype)

    def _each(self, target: tuple[Any, ...]) -> tuple[Any, ...]:
        return target * len(self.spatial) if len(target) == 1 else target

    def reference(self, data: np.ndarray) -> np.ndarray:
        at = positions(self.layout, self.spatial)
        sizes = [int(m) for m in self._each(self.target())] or [data.shape[k] for k in at]
        out = np.zeros([sizes[at.index(k)] if k in at else n for k, n in enumerate(data.shape)], data.dtype)
        cells = [self.cells(data.shape[k], m) for k, m in zip(at, sizes)]
        for cell in np.ndindex(*sizes):
            here, there = [slice(None)] * data.ndim, [slice(None)] * data.ndim
            for k, y, part in zip(at, cell, cells):
                here[k], there[k] = slice(y, y + 1), slice(*part[y])
            out[tuple(here)] = self._pool(data[tuple(there)], tuple(at))
        return out

    @staticmethod
    def cells(n: int, m: int) -> list[tuple[int, int]]:
        """First and end of each of the `m` windows along an axis of `n` elements."""
        return [(y * n // m, -(-(y + 1) * n // m)) for y in range(m)]

    def _pool(self, window: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        if self.kind == "max":
            return window.max(axis=axes, keepdims=True, initial=lowest(window.dtype.name))
        wide = "float64" if window.dtype.kind == "f" else window.dtype
        total, count = window.sum(axis=axes, keepdims=True, dtype=wide), math.prod(window.shape[k] for k in axes)
        return divided(total, count, total.dtype.name)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        at = positions(self.layout, self.spatial)
        bounds = [self._bounds(b, i[k], data.shape[k], out.shape[k]) for k in at]
        empty = b.lowest(out.dtype) if self.kind == "max" else b.const(0, out.dtype)

        def element(*taps: Element) -> Element:
            index, inside = list(i), []
            for k, tap, (first, end, _, fixed) in zip(at, taps, bounds):
                index[k] = first + tap
                inside += [] if fixed else [index[k] < end]
            return b.guard(b.all_of(*inside), lambda: data(*index), empty)

        extents = [most for _, _, most, _ in bounds]
        if self.kind == "max":
            return b.rmax(extents, element)
        return quotient(b, b.sum(extents, element), self._count(b, bounds), out.dtype)

    @staticmethod
    def _bounds(b: ElementBuilder, y: Element, n: int, m: int) -> tuple[Any, Any, int, bool]:
        """First and end of the window at `y`, the largest window, and whether all are that large."""
        known = isinstance(n, int)  # of a size that only a run tells no more is known
        if m is n or m in (0, 1) or (known and n % m == 0):
            size = 1 if m is n else n // max(m, 1)
            return y * size, y * size + size, size, True
        most = max(end - first for first, end in SizedPool.cells(n, m)) if known else n // m + 2
        return y * n // m, ((y + 1) * n + (m - 1)) // m, most, False

    @staticmethod
    def _count(b: ElementBuilder, bounds: Sequence[tuple]) -> Element:
        count: Any = b.index(1)
        for first, end, most, fixed in bounds:
            count = count * (most if fixed else end - first)
        return count

    @classmethod
    def samples(cls) -> list[Sample]:
        n = len(cls.spatial)
        shape = (2, 3, *(7, 6, 5)[:n])
        last = (1, *(4, 5, 3)[:n], 3)
        return [
            sample(shape, output_size=(3, 2, 4)[:n]),
            sample(shape, output_size=(1,)),
            sample(shape, output_size=()),
            sample(last, output_size=(2,), layout=f"N{cls.spatial}C"),
        ]


class Adaptive(SizedPool):
    """A pool whose output size is an attribute."""

    output_size: Dims = attr((), "the extents of the pooled axes; one number stands for all, none for those of data")
    layout: str = "NCHW"
    out_layout: str = ""
    yields = "(N, C, *output_size) laid out as `layout`, dtype of data"
    defaults = {"output_size": None}
    source = "torch.nn.AdaptiveAvgPool2d and its kin; He et al., Spatial pyramid pooling, 2014"

    def target(self) -> tuple[Any, ...]:
        return self.output_size

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        size = attrs.get("output_size")
        return {**attrs, "output_size": () if size is None else size}


@op("nn.adaptive_avg_pool1d", level=10, attrs_key="AdaptivePool1D")
class adaptive_avg_pool1d(Adaptive):
    """Mean over as many equal windows as the output has positions, one axis."""

    layout, spatial = "NCW", "W"


@op("nn.adaptive_avg_pool2d", level=10, attrs_key="AdaptivePool2D")
class adaptive_avg_pool2d(Adaptive):
    """Mean over as many equal windows as the output has positions, two axes."""


@op("nn.adaptive_avg_pool3d", level=10, attrs_key="AdaptivePool3D")
class adaptive_avg_pool3d(Adaptive):
    """Mean over as many equal windows as the output has positions, three axes."""

    layout, spatial = "NCDHW", "DHW"


@op("nn.adaptive_max_pool1d", level=10, attrs_key="AdaptivePool1D", kind="max")
class adaptive_max_pool1d(adaptive_avg_pool1d.definition):
    """Maximum over as many equal windows as the output has positions, one axis."""


@op("nn.adaptive_max_pool2d", level=10, attrs_key="AdaptivePool2D", kind="max")
class adaptive_max_pool2d(adaptive_avg_pool2d.definition):
    """Maximum over as many equal windows as the output has positions, two axes."""


@op("nn.adaptive_max_pool3d", level=10, attrs_key="AdaptivePool3D", kind="max")
class adaptive_max_pool3d(adaptive_avg_pool3d.definition):
    """Maximum over as many equal windows as the output has positions, three axes."""


@op("nn.global_avg_pool2d", level=2, attrs_key="GlobalPool2D")
class global_avg_pool2d(SizedPool):
    """Mean over height and width, which stay with extent 1."""

    yields = "(N, C, 1, 1) laid out as `layout`, dtype of data"
    source = "Lin, Chen and Yan, Network in network, 2013; ONNX GlobalAveragePool"

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 7, 5)), sample((1, 4, 3, 2), layout="NHWC"), sample((1, 2, 3, 3, 4), layout="NCHW4c")]


@op("nn.global_max_pool2d", level=2, attrs_key="GlobalPool2D", kind="max")
class global_max_pool2d(global_avg_pool2d.definition):
    """Maximum over height and width, which stay with extent 1."""

    source = "ONNX GlobalMaxPool"


def global_max_pool1d(data: Expr, layout: str = "NCW", out_layout: str = "") -> Expr:
    """Maximum over the width, which stays with extent 1."""
    return adaptive_max_pool1d(data, (1,), layout, out_layout)


def global_avg_pool1d(data: Expr, layout: str = "NCW", out_layout: str = "") -> Expr:
    """Mean over the width, which stays with extent 1."""
    return adaptive_avg_pool1d(data, (1,), layout, out_layout)


def global_max_pool3d(data: Expr, layout: str = "NCDHW", out_layout: str = "") -> Expr:
    """Maximum over depth, height and width, which stay with extent 1."""
    return adaptive_max_pool3d(data, (1, 1, 1), layout, out_layout)


def global_avg_pool3d(data: Expr, layout: str = "NCDHW", out_layout: str = "") -> Expr:
    """Mean over depth, height and width, which stay with extent 1."""
    return adaptive_avg_pool3d(data, (1, 1, 1), layout, out_layout)
