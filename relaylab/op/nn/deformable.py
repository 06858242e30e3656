"""Convolution-like operators that read at displaced places: deformable_conv2d, correlation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from relaylab.ir.dims import larger
from relaylab.ir.types import Dim, IntImm, TensorType, Type, type_text
from relaylab.loop.expr import Tensor
from relaylab.loop.scalar import compute_dtype
from relaylab.op import rules
from relaylab.op.base import Dtype, Input, Ints, OutElementwiseFusable, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import unravel
from relaylab.op.layout import parse_layout, transform
from relaylab.op.nn.conv import Convolution
from relaylab.op.products import dims, elements
from relaylab.op.shapes import derive, extent, product
from relaylab.op.window import each, pads, spread, spread_padding, window_extent

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure

BESIDE = 4
"""How many results next to each other share what is read of the weights."""


@op("nn.deformable_conv2d", level=5, attrs_key="DeformableConv2D")
class deformable_conv2d(Convolution):
    """Convolution whose taps are moved by `offset`, (N, deformable_groups * taps * 2, H, W) with (y, x) last, and read
    bilinearly; each neighbour outside is 0.
    """

    data: Input = arg("the batch of images, laid out as `data_layout`", "(N, C, H, W)", "floats")
    offset: Input = arg(
        "how far each tap moves, (y, x) last among the channels, laid out as `data_layout`; typed by data if untyped",
        "(N, deformable_groups * KH * KW * 2, height, width)",
        "that of data",
    )
    weight: Input = arg(
        "the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped",
        "(O, C / groups, KH, KW)",
        "any but bool",
    )
    strides: Ints = (1, 1)
    padding: Ints = (0, 0)
    dilation: Ints = (1, 1)
    deformable_groups: int = attr(1, "into how many groups the channels split, each with offsets of its own")
    groups: int = 1
    channels: int | None = None
    kernel_size: Ints | None = None
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_layout: str = attr("", "without effect: the axes of the result are those of data")
    out_dtype: Dtype = None
    errors = {}
    yields = (
        "(N, O, height, width) laid out as `data_layout`, of `out_dtype`; along both axes "
        "extent = (extent + before + after - dilation * (kernel - 1) - 1) // stride + 1"
    )
    source = "Dai et al., Deformable convolutional networks, 2017"

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        return attrs

    def relation(self, s: TypeSolver, data: Type, offset: Type, weight: Type) -> Type | None:
        x = rules.tensor(s, data)
        if x is None:
            return None
        each(s, self.strides, 2, "strides"), each(s, self.dilation, 2, "dilation")
        rules.positive(s, self.groups, "groups"), rules.positive(s, self.deformable_groups, "deformable_groups")
        layout = rules.layout(s, self.data_layout, "NCHW", x)
        whole = layout.whole(x.shape)
        w = self._weight(s, whole, x, weight)
        if w is None:
            return None
        kernel = rules.layout(s, self.kernel_layout, "OIHW", w, "weight").whole(w.shape)
        reads = derive(lambda n: n * self.groups, kernel["I"])
        if isinstance(kernel["O"], int) and kernel["O"] % self.groups:
            s.fail(f"{kernel['O']} output channels do not split into {self.groups} groups")
        if isinstance(whole["C"], int) and whole["C"] % self.deformable_groups:
            s.fail(f"{whole['C']} channels do not split into {self.deformable_groups} deformable groups")
        rules.equal_dims(s, reads, whole["C"], f"the channels that {type_text(w)} reads and those of {type_text(x)}")
        for a, stride, dilation, pad in self._axes():
            whole[a] = window_extent(s, whole[a], kernel[a], stride, dilation, pad)
        moves = derive(lambda h, k: 2 * h * k * self.deformable_groups, kernel["H"], kernel["W"])
        s.unify(offset, TensorType(rules.laid_out(s, layout, {**whole, "C": moves}), x.dtype))
        dtype = rules.summed(s, self.out_dtype or x.dtype, rules.floats(s, x), w)
        return TensorType(rules.laid_out(s, layout, {**whole, "C": kernel["O"]}), dtype)

    def _weight(self, s: TypeSolver, whole: dict, x: TensorType, given: Type) -> TensorType | None:
        known = rules.tensor(s, given, "weight")
        if known is not None or self.channels is None or self.kernel_size is None:
            return known
        extents = {
            "O": self.channels,
            "I": derive(lambda n: n // self.groups, whole["C"]),
            **dict(zip("HW", self.kernel_size)),
        }
        shape = parse_layout(self.kernel_layout).shape(
            {k: IntImm(v) if isinstance(v, int) else v for k, v in extents.items()}
        )
        return rules.tensor(s, s.unify(given, TensorType(shape, x.dtype)))

    def _axes(self) -> list[tuple]:
        """(letter, stride, dilation, (before, after)) of both axes."""
        return list(zip("HW", spread(self.strides, 2), spread(self.dilation, 2), pads(self.padding, 2)))

    def reference(self, data: np.ndarray, offset: np.ndarray, weight: np.ndarray) -> np.ndarray:
        layout, plain = parse_layout(self.data_layout), parse_layout("NCHW")
        x, moves = (transform(v.astype("float64"), layout, plain) for v in (data, offset))
        w = transform(weight.astype("float64"), parse_layout(self.kernel_layout), parse_layout("OIHW"))
        n, c, groups = x.shape[0], x.shape[1], self.groups
        out = np.zeros((n, groups, w.shape[0] // groups, *moves.shape[2:]))
        moves = moves.reshape(n, self.deformable_groups, *w.shape[2:], 2, *moves.shape[2:])
        for ky, kx in np.ndindex(*w.shape[2:]):
            seen = self._seen(x, moves[:, :, ky, kx], (ky, kx)).reshape(n, groups, c // groups, *out.shape[3:])
            part = w[:, :, ky, kx].reshape(groups, w.shape[0] // groups, w.shape[1])
            out += np.einsum("goc,ngcyx->ngoyx", part, seen)
        whole = out.reshape(n, w.shape[0], *out.shape[3:])
        return transform(whole, plain, layout).astype(self.out_dtype or data.dtype)

    def _seen(self, x: np.ndarray, move: np.ndarray, tap: tuple[int, int]) -> np.ndarray:
        """What one tap reads: (N, C, H, W), for moves (N, deformable_groups, 2, H, W)."""
        cells = np.indices(move.shape[3:])
        axes = list(zip(self._axes(), tap, cells))
        places = [move[:, :, d] + (cell * st - pad[0] + t * dil) for d, ((_, st, dil, pad), t, cell) in enumerate(axes)]
        places = [np.repeat(p, x.shape[1] // self.deformable_groups, axis=1) for p in places]
        total = np.zeros(places[0].shape)
        lead = np.indices(places[0].shape[:2])[..., None, None]
        for corner in np.ndindex(2, 2):
            index, weight, inside = [], 1.0, True
            for p, k, n in zip(places, corner, x.shape[2:]):
                low = np.floor(p)
                weight = weight * (p - low if k else 1 - (p - low))
                within = (low + k >= 0) & (low + k < n)
                inside = inside & within
                index.append(np.where(within, low + k, 0).astype(int))
            total += np.where(inside, weight * x[lead[0], lead[1], index[0], index[1]], 0.0)
        return total

    def procedure(self, p: Procedure, out: Tensor, data: Tensor, offset: Tensor, weight: Tensor) -> None:
        """What the taps of a few results read, once for all channels of the result, then products with the weights."""
        layout, kernel_layout = parse_layout(self.data_layout), parse_layout(self.kernel_layout)
        whole, target, kernel = (
            y.extents(x.shape) for x, y in ((data, layout), (out, layout), (weight, kernel_layout))
        )
        per_group, taps = kernel["O"] // self.groups, kernel["H"] * kernel["W"]
        reads, wide, b = kernel["I"] * taps, compute_dtype(out.dtype), p.b
        with p.parallel(whole["N"] * target["H"]) as line, p.loop((target["W"] + (BESIDE - 1)) // BESIDE) as block:
            # the last ones may be computed twice
            spots = [
                {
                    "N": line // target["H"],
                    "H": line % target["H"],
                    "W": p.let(b.min(block * BESIDE + k, target["W"] - 1)),
                }
                for k in range(BESIDE)
            ]
            seen = [p.scratch(self.groups * reads, wide) for _ in spots]
            for at, columns in zip(spots, seen):
                self._read(p, at, columns, data, offset, kernel)
            with p.loop(kernel["O"]) as o:
                totals = [p.let(b.const(0, wide)) for _ in spots]
                with p.loop(reads, kind="vectorized") as k:
                    c, ky, kx = unravel(b, k, [kernel[a] for a in "IHW"])
                    w = b.cast(weight(*kernel_layout.index({"O": o, "I": c, "H": ky, "W": kx})), wide)
                    for total, columns in zip(totals, seen):
                        p.add(total, w * columns(o // per_group * reads + k))
                for at, total in zip(spots, totals):
                    p.store(out, layout.index({**at, "C": o}), b.cast(total, out.dtype))

    def _read(
        self,
        p: Procedure,
        at: dict[str, Element],
        columns: Tensor,
        data: Tensor,
        offset: Tensor,
        kernel: dict[str, int],
    ) -> None:
        """What all taps of one place read, by channel and tap."""
        layout, b = parse_layout(self.data_layout), p.b
        whole, taps = layout.extents(data.shape), kernel["H"] * kernel["W"]
        share = whole["C"] // self.deformable_groups
        with p.loops((self.deformable_groups, kernel["H"], kernel["W"])) as (group, ky, kx):
            tap, place = ky * kernel["W"] + kx, []
            for d, ((a, stride, dilation, pad), t) in enumerate(zip(self._axes(), (ky, kx))):
                move = offset(*layout.index({**at, "C": (group * taps + tap) * 2 + d}))
                still = b.cast(at[a] * stride + t * dilation - pad[0], "float64")
                place.append(p.let(b.cast(move, "float64") + still))
            with p.loop(share) as k:
                c = group * share + k
                read = lambda y, x: data(*layout.index({"N": at["N"], "C": c, "H": y, "W": x}))
                value = self._bilinear(b, place, [whole[a] for a in "HW"], read)
                p.store(columns, c * taps + tap, b.cast(b.cast(value, data.dtype), columns.dtype))

    @staticmethod
    def _bilinear(b: ElementBuilder, place: list[Element], extents: list[int], read: Callable[..., Element]) -> Element:
        """The value at a place, where each of its four neighbours is 0 if it lies outside; a float64."""
        total = b.const(0.0, "float64")
        for corner in np.ndindex(2, 2):
            index, inside, weight = [], [], b.const(1.0, "float64")
            for p, k, n in zip(place, corner, extents):
                low = b.floor(p)
                weight = weight * (p - low if k else 1.0 - (p - low))
                inside += [low >= float(-k), low < b.number(n - k, "float64")]
                index.append(b.clamp_index(b.cast(low, "int64") + k, n))
            total = total + b.select(b.all_of(*inside), weight * b.cast(read(*index), "float64"), 0.0)
        return total

    def macs(self, types: Sequence[Type], out: Type) -> int:
        kernel = parse_layout(self.kernel_layout).whole(dims(types[2]))
        return elements(out) * extent(product([kernel[a] for a in "IHW"]))

    @classmethod
    def samples(cls) -> list[Sample]:
        nhwc = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        return [
            sample((1, 4, 5, 6), (1, 18, 5, 6), (3, 4, 3, 3), padding=(1, 1), low=-1.5, high=1.5),
            sample((2, 4, 5, 5), (2, 16, 2, 4), (4, 2, 2, 2), strides=(2, 1), groups=2, deformable_groups=2),
            sample((1, 5, 5, 2), (1, 3, 3, 18), (3, 3, 2, 3), **nhwc),
        ]


@op(
    "nn.correlation",
    level=2,
    attrs_key="Correlation",
    required="kernel_size max_displacement stride1 stride2 padding is_multiply layout",
)
class correlation(OutElementwiseFusable):
    """How patches of data1 match displaced patches of data2: products (or absolute differences) averaged over
    channels and a kernel, one output channel per displacement. Dosovitskiy et al., 2015.
    """

    data1: Input = arg("the images whose patches stay in place", "(N, C, H, W)", "floats")
    data2: Input = arg(
        "the images whose patches are displaced; typed by data1 if untyped", "that of data1", "that of data1"
    )
    kernel_size: int = attr(1, "the height and width of a patch, odd")
    max_displacement: int = attr(1, "the largest displacement in each direction, in elements")
    stride1: int = attr(1, "steps between the patches of data1")
    stride2: int = attr(1, "steps between displacements")
    padding: Ints = attr((0, 0), "zeros around height and width: one number, one per axis, or befores then afters")
    is_multiply: bool = attr(True, "whether elements are multiplied; else their absolute difference is taken")
    layout: str = attr("NCHW", "the axes of data1, data2 and result: only NCHW")
    yields = (
        "(N, (2 * (max_displacement // stride2) + 1)^2, height, width), dtype of data1; with border = "
        "max_displacement + (kernel_size - 1) // 2, extent = ceil((extent + before + after - 2 * border) / stride1)"
    )
    source = "Dosovitskiy et al., FlowNet: learning optical flow with convolutional networks, 2015"

    @property
    def radius(self) -> int:
        """Displacements per direction."""
        return self.max_displacement // self.stride2

    def relation(self, s: TypeSolver, data1: Type, data2: Type) -> Type | None:
        x = rules.tensor(s, data1, "data1")
        if x is None:
            return None
        s.unify(data2, rules.floats(s, x, "data1"))
        rules.layout(s, self.layout, "NCHW", x)
        for name in ("kernel_size", "stride1", "stride2"):
            rules.positive(s, getattr(self, name), name)
        each(s, (self.max_displacement,), 1, "max_displacement", 0)
        each(s, spread_padding(self.padding, 2), 4, "padding", 0)
        if self.layout != "NCHW":
            s.fail(f"nn.correlation knows only the layout NCHW, not {self.layout}")
        sizes = [self._extent(n, pad) for n, pad in zip(x.shape[2:], pads(self.padding, 2))]
        if any(isinstance(n, int) and n < 1 for n in sizes):
            s.fail(f"the displacements of nn.correlation leave nothing of {type_text(x)}")
        return TensorType((x.shape[0], (2 * self.radius + 1) ** 2, *sizes), x.dtype)

    def _extent(self, extent: Dim, pad: tuple[int, int]) -> Dim:
        less = 2 * (self.max_displacement + (self.kernel_size - 1) // 2) - sum(pad)
        return derive(lambda n: cast(int, larger((n - less + self.stride1 - 1) // self.stride1, 0)), extent)

    def reference(self, data1: np.ndarray, data2: np.ndarray) -> np.ndarray:
        widths = [(0, 0), (0, 0), *pads(self.padding, 2)]
        grown = self.max_displacement + self.kernel_size
        a = np.pad(data1.astype("float64"), widths)
        c = np.pad(data2.astype("float64"), widths)
        a, c = (np.pad(v, [(0, 0), (0, 0), (grown, grown), (grown, grown)]) for v in (a, c))
        height, width = (extent(self._extent(IntImm(n), p)) for n, p in zip(data1.shape[2:], pads(self.padding, 2)))
        out = np.zeros((len(data1), (2 * self.radius + 1) ** 2, height, width))
        for q, y, x in np.ndindex(*out.shape[1:]):
            top, left = (k * self.stride1 + self.max_displacement + grown for k in (y, x))
            move = [(k - self.radius) * self.stride2 for k in divmod(q, 2 * self.radius + 1)]
            one = a[:, :, top : top + self.kernel_size, left : left + self.kernel_size]
            two = c[:, :, top + move[0] :, left + move[1] :][:, :, : self.kernel_size, : self.kernel_size]
            out[:, q, y, x] = (one * two if self.is_multiply else np.abs(one - two)).mean(axis=(1, 2, 3))
        return out.astype(data1.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data1: Readable, data2: Readable) -> Element:
        n, q, y, x = i
        size, before = 2 * self.radius + 1, [p[0] for p in pads(self.padding, 2)]
        channels, *extents = data1.shape[1:]
        moves = [(q // size - self.radius) * self.stride2, (q % size - self.radius) * self.stride2]

        def read(data: Readable, c: Element, place: list[Element]) -> Element:
            inside = b.all_of(*(b.inside(k, m) for k, m in zip(place, extents)))
            return b.guard(inside, lambda: data(n, c, *place), b.const(0, out.dtype))

        def term(c: Element, ky: Element, kx: Element) -> Element:
            first = [k * self.stride1 + self.max_displacement + t - p for k, t, p in zip((y, x), (ky, kx), before)]
            one, two = read(data1, c, first), read(data2, c, [k + m for k, m in zip(first, moves)])
            return one * two if self.is_multiply else b.abs(one - two)

        box = [channels, self.kernel_size, self.kernel_size]
        return b.sum(box, term) / b.number(math.prod(box), out.dtype)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        """Absolute differences are no products."""
        box = [dims(types[0])[1], self.kernel_size, self.kernel_size]
        return elements(out) * extent(product(box)) if self.is_multiply else 0

    @classmethod
    def samples(cls) -> list[Sample]:
        wide = {"kernel_size": 3, "max_displacement": 2, "stride2": 2, "padding": (2, 2)}
        return [
            sample((1, 3, 5, 6), (1, 3, 5, 6)),
            sample((2, 2, 6, 7), (2, 2, 6, 7), stride1=2, is_multiply=False, **wide),
        ]
