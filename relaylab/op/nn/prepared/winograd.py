"""Winograd's convolutions with the transforms of the weight and of the data apart, in two and three dimensions.

Along each spatial axis a tile of neighbouring results is computed from its points (`toom_cook`): the transformed
weight has the points of each axis first, then the channels. In three dimensions the depth is transformed only if the
kernel has 3 to 7 elements along it; else its elements stand in place of points, after those of height and width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from relaylab.ir.types import Dim, IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dtype, Input, Ints, Opaque, OutElementwiseFusable, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.layout import parse_layout, transform
from relaylab.op.nn.conv import Conv
from relaylab.op.nn.prepared.toom_cook import POINTS, Transforms, direct, entry, transforms
from relaylab.op.products import dims, elements
from relaylab.op.shapes import derive, extent, product
from relaylab.op.window import each, spread

Axes = dict[str, Transforms]
"""The transforms of each spatial axis, in the order in which the transformed weight has them."""
SOURCE = "Lavin and Gray, Fast algorithms for convolutional neural networks, 2016; points of Barabasz et al., 2020"


def axes_of(tile: int, kernel: Mapping[str, int]) -> Axes:
    """The transforms for a kernel with these extents along its spatial axes."""
    made = {a: transforms(tile, n) for a, n in kernel.items()}
    if "D" in made and not 2 < kernel["D"] < 8:
        made["D"] = direct(kernel["D"])
        return {a: made[a] for a in "HWD"}
    return made


def check_tile(s: TypeSolver, tile: int, kernel: Sequence[int]) -> None:
    """Fails where there are not enough points for tiles of this size."""
    rules.positive(s, tile, "tile_size")
    longest = max(kernel)
    if tile + longest - 2 > len(POINTS):
        s.fail(
            f"tiles of {tile} results of a kernel of {longest} elements need {tile + longest - 1} points",
            help=f"there are {len(POINTS) + 1}: choose a smaller `tile_size`",
        )


def along(x: np.ndarray, axis: int, matrix: np.ndarray) -> np.ndarray:
    """The product of a matrix with the elements along an axis, in their place."""
    return np.moveaxis(np.tensordot(x, matrix, ([axis], [1])), -1, axis)


def single(dtype: str) -> str:
    """The data type in which transforms sum: their terms are larger than what is left of them."""
    return dtype if dtype in ("float32", "float64") else "float32"


class WeightTransform(OutElementwiseFusable):
    """What the transforms of a weight share."""

    tile_size: int = attr(doc="how many neighbouring results a tile has along each axis that is transformed")
    source = SOURCE
    spatial: ClassVar[str] = "HW"

    def result_type(self, s: TypeSolver, weight: TensorType) -> Type | None:
        rules.rank(s, rules.floats(s, weight, "weight"), 2 + len(self.spatial), "weight")
        if any(not isinstance(n, int) or n < 1 for n in weight.shape[2:]):
            s.fail(f"the extents of the kernels must be known and positive, not {type_text(weight)}")
        check_tile(s, self.tile_size, [extent(n) for n in weight.shape[2:]])
        return TensorType((*(t.points for t in self._axes(weight.shape).values()), *weight.shape[:2]), weight.dtype)

    def _axes(self, shape: Sequence[Dim | int]) -> Axes:
        return axes_of(self.tile_size, dict(zip(self.spatial, map(extent, shape[2:]))))

    def reference(self, weight: np.ndarray) -> np.ndarray:
        axes, out = self._axes(weight.shape), weight.astype("float64")
        for k, a in enumerate(self.spatial):
            out = along(out, 2 + k, axes[a].weight)
        return out.transpose([*(2 + self.spatial.index(a) for a in axes), 0, 1]).astype(weight.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, weight: Readable) -> Element:
        axes = self._axes(weight.shape)
        points = dict(zip(axes, i))

        def term(*taps: Element) -> Element:
            value = b.cast(weight(*i[-2:], *taps), exact)
            for a, tap in zip(self.spatial, taps):
                value = value * entry(b, axes[a].weight, points[a], tap, exact)
            return value

        exact = single(out.dtype)
        return b.cast(b.sum([int(n) for n in weight.shape[2:]], term), out.dtype)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        return elements(out) * math.prod(map(extent, dims(types[0])[2:]))


@op("nn.contrib_conv2d_winograd_weight_transform", level=10, attrs_key="ConvWinogradWeightTransform")
class contrib_conv2d_winograd_weight_transform(WeightTransform):
    """The weight of a two-dimensional convolution at the points of Winograd's algorithm: 0, -1, 1, 1/2, -2, -1/2, 2,
    ..., as many as are needed, and infinity.
    """

    weight: Input = arg("the kernels", "(O, I, KH, KW)", "floats")
    yields = "(tile_size + KH - 1, tile_size + KW - 1, O, I), dtype of weight"

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 2, 3, 3), tile_size=2), sample((2, 1, 5, 3), tile_size=4)]


@op("nn.contrib_conv3d_winograd_weight_transform", level=10, attrs_key="ConvWinogradWeightTransform")
class contrib_conv3d_winograd_weight_transform(WeightTransform):
    """The weight of a three-dimensional convolution at the points of Winograd's algorithm, those of the
    two-dimensional one; its depth is transformed only if it is 3 to 7.
    """

    weight: Input = arg("the kernels", "(O, I, KD, KH, KW)", "floats")
    yields = (
        "(tile_size + KD - 1, tile_size + KH - 1, tile_size + KW - 1, O, I) if 2 < KD < 8, else "
        "(tile_size + KH - 1, tile_size + KW - 1, KD, O, I); dtype of weight"
    )
    spatial = "DHW"

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 2, 3, 3, 3), tile_size=2), sample((2, 3, 2, 3, 3), tile_size=3)]


@op("nn.contrib_conv2d_winograd_nnpack_weight_transform", level=10, attrs_key="Conv2DWinogradNNPACKWeightTransform")
class contrib_conv2d_winograd_nnpack_weight_transform(Opaque):
    """The weight of a convolution with kernels of 3 x 3 for tiles of 6 x 6 results, as NNPACK's points make it: 0, 1,
    -1, 2, -2, 1/2, -1/2 and infinity.
    """

    weight: Input = arg("the kernels", "(O, I, 3, 3)", "floats")
    convolution_algorithm: int = attr(doc="NNPACK's number of the algorithm: 3, or 6, which keeps half precision")
    out_dtype: Dtype = attr(None, "the data type of the result; None or empty: that of weight")
    defaults = {"out_dtype": ""}
    yields = "(O, I, 8, 8), of `out_dtype`"
    source = "Lavin and Gray, Fast algorithms for convolutional neural networks, 2016: F(6 x 6, 3 x 3); NNPACK"

    def result_type(self, s: TypeSolver, weight: TensorType) -> Type | None:
        rules.shaped(s, rules.floats(s, weight, "weight"), (None, None, 3, 3), "weight")
        if self.convolution_algorithm not in (3, 6):
            s.fail(
                f"the algorithm {self.convolution_algorithm} of NNPACK transforms no weight of 3 x 3 to 8 x 8",
                help="give 3, or 6, which keeps half precision",
            )
        out = TensorType((*weight.shape[:2], 8, 8), self.out_dtype or weight.dtype)
        rules.floats(s, out, "out_dtype")
        return out

    @property
    def matrix(self) -> np.ndarray:
        """What makes 8 numbers of 3, along both axes."""
        return transforms(6, 3, tuple(map(Fraction, ("0", "1", "-1", "2", "-2", "1/2", "-1/2")))).weight

    def reference(self, weight: np.ndarray) -> np.ndarray:
        out = along(along(weight.astype("float64"), 2, self.matrix), 3, self.matrix)
        return (out.astype("float16") if self.convolution_algorithm == 6 else out).astype(
            self.out_dtype or weight.dtype
        )

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, weight: Readable) -> Element:
        exact, g = "float64" if "float64" in (weight.dtype, out.dtype) else "float32", self.matrix
        part = lambda y, x: entry(b, g, i[2], y, exact) * entry(b, g, i[3], x, exact)
        total = b.sum([3, 3], lambda y, x: b.cast(weight(*i[:2], y, x), exact) * part(y, x))
        return b.cast(b.cast(total, "float16") if self.convolution_algorithm == 6 else total, out.dtype)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        return 9 * elements(out)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((3, 2, 3, 3), convolution_algorithm=3),
            sample((1, 2, 3, 3), convolution_algorithm=6, out_dtype="float16"),
            sample((2, 1, 3, 3), convolution_algorithm=3, out_dtype="float64"),
        ]


class Winograd(Conv):
    """What convolutions of transformed weights share."""

    weight: Input = arg("the transformed kernels; typed by `channels` and `kernel_size` if untyped")
    tile_size: int = attr(doc="how many neighbouring results a tile has along each axis that is transformed")
    strides: Ints = attr((1, 1), "steps of the window along each spatial axis, which must be 1")
    padding: Ints = (0, 0)
    dilation: Ints = attr((1, 1), "distance between the kernel's elements, which must be 1")
    groups: int = attr(1, "into how many groups the channels split: only 1")
    channels: int | None = None
    kernel_size: Ints | None = attr(None, "the spatial extents of the kernel before the transform; it must be given")
    data_layout: str = "NCHW"
    kernel_layout: str = attr("OIHW", "the axes of the kernels before the transform; without effect")
    out_layout: str = ""
    out_dtype: Dtype = None
    source = SOURCE

    @property
    def axes(self) -> Axes:
        """The transforms of each spatial axis, in the order in which the weight has them."""
        return axes_of(self.tile_size, dict(zip(self.spatial, spread(self.kernel_size or (), len(self.spatial)))))

    def relation(self, s: TypeSolver, data: Type, weight: Type) -> Type | None:
        n, x = len(self.spatial), rules.tensor(s, data)
        if self.kernel_size is None:
            return s.fail(f"{self.op_name} needs `kernel_size`: the transformed weight does not tell it")
        kernel = each(s, self.kernel_size, n, "kernel_size")
        check_tile(s, self.tile_size, kernel)
        if {*self.strides, *self.dilation, self.groups} != {1}:
            s.fail(
                f"{self.op_name} knows only strides, dilation and groups of 1: not {self.strides}, {self.dilation} "
                f"and {self.groups}",
                help="nn.conv2d and nn.conv3d know others",
            )
        w = None if x is None else self._transformed(s, rules.floats(s, x), weight)
        if w is None:
            return None
        whole = {"O": w.shape[n], "I": w.shape[n + 1], **dict(zip(self.spatial, map(IntImm, kernel)))}
        layout = rules.layout(s, self.kernel_layout, "OI" + self.spatial, None, "weight")
        return super().relation(s, data, TensorType(rules.laid_out(s, layout, whole), w.dtype))

    def _transformed(self, s: TypeSolver, x: TensorType, weight: Type) -> TensorType | None:
        """The type of the weight, made from `channels` where it has none."""
        points = tuple(t.points for t in self.axes.values())
        found = rules.tensor(s, weight, "weight")
        if found is None and self.channels is not None:
            ins = rules.layout(s, self.data_layout, "NC" + self.spatial, x).whole(x.shape)["C"]
            found = rules.tensor(s, s.unify(weight, TensorType((*points, self.channels, ins), x.dtype)))
        return found and rules.shaped(s, rules.floats(s, found, "weight"), (*points, None, None), "weight")

    def reference(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        plain, (layout, _, to) = parse_layout("NC" + self.spatial), self.layouts
        x = transform(data.astype("float64"), layout, plain)
        kernel = spread(self.kernel_size or (), len(self.spatial))
        sizes = [n + sum(p) - k + 1 for n, p, k in zip(x.shape[2:], self.pads, kernel)]
        points, each_tile = self._points(x, sizes), (Ellipsis, *[None] * len(kernel), slice(None), slice(None))
        out = points @ weight.astype("float64").swapaxes(-1, -2)[each_tile]
        for t in self.axes.values():  # each takes the points in front away, and puts the elements of tiles behind
            out = np.tensordot(out, t.result, ([0], [0]))
        tiles, places = range(1, len(kernel) + 1), {a: len(kernel) + 2 + k for k, a in enumerate(self.axes)}
        order = [d for k, a in zip(tiles, self.spatial) for d in (k, places[a])]
        whole = out.transpose([0, len(kernel) + 1, *order])
        whole = whole.reshape(*whole.shape[:2], *(math.prod(whole.shape[d : d + 2]) for d in range(2, whole.ndim, 2)))
        cut = whole[(slice(None), slice(None), *map(slice, sizes))]
        return transform(cut, plain, to).astype(self.out_dtype or data.dtype)

    def _points(self, x: np.ndarray, sizes: list[int]) -> np.ndarray:
        """The data at its points: those of each axis as in the weight, then N, the tiles of each axis, C."""
        n = len(self.spatial)
        for k, a in reversed(list(enumerate(self.spatial))):  # the axes in front of this one stay where they are
            t = self.axes[a]
            first = np.arange(0, sizes[k], t.tile)[:, None] + np.arange(t.data.shape[1])
            behind = int(first.max()) + 1 - x.shape[2 + k] - self.pads[k][0]
            widths = [(0, 0)] * x.ndim
            widths[2 + k] = (self.pads[k][0], max(behind, 0))
            x = along(np.take(np.pad(x, widths), first, 2 + k), 3 + k, t.data)
        points = {a: 3 + 2 * k for k, a in enumerate(self.spatial)}
        return x.transpose([*(points[a] for a in self.axes), 0, *range(2, 2 + 2 * n, 2), 1])

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, weight: Readable) -> Element:
        layout, _, to = self.layouts
        at, whole, axes = to.at(i), layout.extents(data.shape), self.axes
        before = dict(zip(self.spatial, (p[0] for p in self.pads)))

        def seen(c: Element, points: tuple[Element, ...], places: tuple[Element, ...]) -> Element:
            source = {a: at[a] // t.tile * t.tile + k - before[a] for (a, t), k in zip(axes.items(), places)}
            inside = b.all_of(*(b.inside(k, whole[a]) for a, k in source.items()))
            read = lambda: b.cast(data(*layout.index({**source, "N": at["N"], "C": c})), exact)
            value = b.guard(inside, read, b.const(0, exact))
            for t, point, place in zip(axes.values(), points, places):
                value = value * entry(b, t.data, point, place, exact)
            return value

        def term(c: Element, *points: Element) -> Element:
            value = b.cast(weight(*points, at["C"], c), exact)
            value = value * b.sum([t.data.shape[1] for t in axes.values()], lambda *places: seen(c, points, places))
            for (a, t), point in zip(axes.items(), points):
                value = value * entry(b, t.result, point, at[a] % t.tile, exact)
            return value

        exact = single(out.dtype)
        return b.cast(b.sum([whole["C"], *(t.points for t in axes.values())], term), out.dtype)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        whole, weight = self.layouts[2].whole(dims(out)), dims(types[1])
        tiles = [derive(lambda n, m=t.tile: -(-n // m), whole[a]) for a, t in self.axes.items()]
        count = product([whole["N"], *tiles, *weight])
        return int(count) if isinstance(count, int) else 0


@op("nn.contrib_conv2d_winograd_without_weight_transform", level=10, attrs_key="Conv2DWinograd")
class contrib_conv2d_winograd_without_weight_transform(Winograd):
    """Two-dimensional convolution by Winograd's algorithm, of a weight that
    nn.contrib_conv2d_winograd_weight_transform has transformed. Each element is computed on its own: nn.conv2d, for
    which relaylab chooses the algorithm itself, is much faster.
    """

    weight: Input = arg(
        "the kernels as nn.contrib_conv2d_winograd_weight_transform makes them; typed by `channels` if untyped",
        "(tile_size + KH - 1, tile_size + KW - 1, O, C)",
        "floats",
    )

    @classmethod
    def samples(cls) -> list[Sample]:
        three = {"kernel_size": (3, 3), "padding": (1, 1, 1, 1)}
        nhwc = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        return [
            sample((1, 3, 5, 6), (4, 4, 2, 3), tile_size=2, channels=2, **three),
            sample((2, 7, 5, 2), (6, 6, 3, 2), tile_size=4, **three, **nhwc),
            sample((1, 1, 6, 7), (3, 6, 2, 1), tile_size=2, kernel_size=(2, 5), padding=(1, 0, 0, 2)),
        ]


@op("nn.contrib_conv3d_winograd_without_weight_transform", level=10, attrs_key="Conv3DWinograd")
class contrib_conv3d_winograd_without_weight_transform(Winograd):
    """Three-dimensional convolution by Winograd's algorithm, of a weight that
    nn.contrib_conv3d_winograd_weight_transform has transformed. Each element is computed on its own: nn.conv3d is
    much faster.
    """

    weight: Input = arg(
        "the kernels as nn.contrib_conv3d_winograd_weight_transform makes them; typed by `channels` if untyped",
        "as that operator says, with I = C",
        "floats",
    )
    strides, padding, dilation = (1, 1, 1), (0, 0, 0), (1, 1, 1)
    data_layout, kernel_layout, spatial = "NCDHW", "OIDHW", "DHW"

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((1, 1, 3, 4, 4), (4, 4, 4, 2, 1), tile_size=2, kernel_size=(3, 3, 3), padding=(1, 1, 1)),
            sample((1, 2, 3, 4, 5), (4, 4, 2, 2, 2), tile_size=2, kernel_size=(2, 3, 3), channels=2),
        ]
