"""Convolutions in one, two and three dimensions, in any layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from relaylab.ir.expr import Expr
from relaylab.ir.types import Dim, IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dtype, Input, Ints, OutElementwiseFusable, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.layout import Layout, parse_layout, transform
from relaylab.op.products import dims, exact, in_float32, products, stored
from relaylab.op.shapes import derive, product, same_dim
from relaylab.op.window import Pads, each, pads, spread, spread_padding, window_extent


class Convolution(OutElementwiseFusable):
    """What convolutions and transposed ones share. Positions along axes have letters: data N C and the spatial ones,
    weight O I and those.
    """

    data: Input = arg("the batch of images, laid out as `data_layout`", "(N, C, *extents)", "any but bool")
    weight: Input = arg("the kernels, laid out as `kernel_layout`; typed by the attributes if untyped")
    strides: Ints = attr((1, 1), "steps of the window along each spatial axis")
    padding: Ints = attr((0, 0), "zeros around each spatial axis: one number, one per axis, or befores then afters")
    dilation: Ints = attr((1, 1), "distance between the kernel's elements along each spatial axis")
    groups: int = attr(1, "into how many groups the channels split, each with kernels of its own")
    channels: int | None = attr(None, "the number O of output channels; None: that of the weight")
    kernel_size: Ints | None = attr(None, "the kernel's spatial extents; None: those of the weight")
    data_layout: str = attr("NCHW", "the axes of data; channels may be in blocks, as in NCHW16c")
    kernel_layout: str = attr("OIHW", "the axes of weight, O for output and I for input channels")
    out_layout: str = attr("", "the axes of the result; empty: those of data")
    out_dtype: Dtype = attr(None, "the data type of sums and result; None or empty: that of data")
    defaults = {"out_dtype": ""}
    spatial: ClassVar[str] = "HW"
    sized: ClassVar[tuple[str, ...]] = ("strides", "dilation", "kernel_size")
    """Attributes with a value per spatial axis, for which the builder takes one number too."""
    errors = {"op.padding": "`padding` has neither 1, n nor 2n values for n spatial axes"}

    # ---- geometry
    @property
    def pads(self) -> Pads:
        """(before, after) of each spatial axis."""
        return pads(self.padding, len(self.spatial))

    @property
    def layouts(self) -> tuple[Layout, Layout, Layout]:
        """The layouts of data, weight and result."""
        data = parse_layout(self.data_layout)
        return data, parse_layout(self.kernel_layout), parse_layout(self.out_layout) if self.out_layout else data

    # ---- types
    def relation(self, s: TypeSolver, data: Type, weight: Type) -> Type | None:
        x = rules.tensor(s, data)
        if x is None:
            return None
        n = len(self.spatial)
        each(s, self.strides, n, "strides"), each(s, self.dilation, n, "dilation")
        rules.positive(s, self.groups, "groups")
        whole = rules.layout(s, self.data_layout, "NC" + self.spatial, x).whole(x.shape)
        w = self._weight(s, whole, x, weight)
        if w is None:
            return None
        kernel = rules.layout(s, self.kernel_layout, "OI" + self.spatial, w, "weight").whole(w.shape)
        channels = self._channels(s, whole, kernel, x, w)
        sizes = [self._extent(s, k, whole[a], kernel[a]) for k, a in enumerate(self.spatial)]
        to = rules.layout(s, self.out_layout or self.data_layout, "NC" + self.spatial, None, "result")
        return TensorType(
            rules.laid_out(s, to, {"N": whole["N"], "C": channels, **dict(zip(self.spatial, sizes))}),
            rules.summed(s, self.out_dtype or x.dtype, x, w),
        )

    def _weight(self, s: TypeSolver, whole: dict[str, Dim], x: TensorType, given: Type) -> TensorType | None:
        """The type of the weight, made from `channels` and `kernel_size` where it has none."""
        known = rules.tensor(s, given, "weight")
        if known is not None or self.channels is None or self.kernel_size is None:
            return known
        layout = rules.layout(s, self.kernel_layout, "OI" + self.spatial, None, "weight")
        size = each(s, self.kernel_size, len(self.spatial), "kernel_size")
        extents = self._kernel_channels(s, whole["C"], self.channels) | dict(zip(self.spatial, map(IntImm, size)))
        return rules.tensor(s, s.unify(given, TensorType(rules.laid_out(s, layout, extents), x.dtype)))

    def _kernel_channels(self, s: TypeSolver, ins: Dim, outs: int) -> dict[str, Dim]:
        """The extents O and I of a weight that has no type yet."""
        raise NotImplementedError

    def _channels(
        self, s: TypeSolver, whole: dict[str, Dim], kernel: dict[str, Dim], x: TensorType, w: TensorType
    ) -> Dim:
        """The number of output channels, checked against everything that is known of it."""
        raise NotImplementedError

    def _extent(self, s: TypeSolver, k: int, extent: Dim, kernel: Dim) -> Dim:
        """The extent of the result along spatial axis `k`."""
        raise NotImplementedError

    def _same_channels(self, s: TypeSolver, made: Dim, w: TensorType) -> None:
        if self.channels is not None and not same_dim(made, IntImm(self.channels)):
            s.fail(
                f"{self.op_name} has channels={self.channels}, but the weight {type_text(w)} makes {made}",
                help=self._reading(),
            )

    def _reading(self) -> str:
        return f"data_layout={self.data_layout}, kernel_layout={self.kernel_layout}, groups={self.groups}"

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        n = len(cls.spatial)
        sizes = {k: spread(attrs[k], n) for k in cls.sized if attrs.get(k) is not None}
        return {**attrs, **sizes, "padding": spread_padding(attrs.get("padding", 0), n)}


class Conv(Convolution):
    """Output channel o lies in group o // (O / groups) and reads the input channels of its group. In the depthwise form
    (O = groups = C) the weight's I is a multiplier: output channel o reads channel o // I with weight [o // I, o % I].
    """

    weight: Input = arg(
        "the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped",
        "(O, C / groups, *kernel), or (C, multiplier, *kernel) if groups = C",
        "any but bool",
    )
    yields = (
        "(N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis "
        "extent = (extent + before + after - dilation * (kernel - 1) - 1) // stride + 1"
    )
    source = "Dumoulin and Visin, A guide to convolution arithmetic for deep learning, 2016; ONNX Conv"

    def legal(self, inputs: Sequence[Expr], types: Sequence[TensorType]) -> Expr | None:
        return in_float32(self, inputs, types)

    @property
    def steps(self) -> list[tuple[int, int]]:
        """(stride, dilation) of each spatial axis."""
        n = len(self.spatial)
        return list(zip(spread(self.strides, n), spread(self.dilation, n)))

    def is_depthwise(self, channels: Dim | int, outs: Dim | int) -> bool:
        """Whether the weight has the depthwise form, (C, multiplier, ...)."""
        return self.groups > 1 and channels == self.groups and outs == self.groups

    def _kernel_channels(self, s: TypeSolver, ins: Dim, outs: int) -> dict[str, Dim]:
        if self.groups > 1:
            s.fail("Weight shape must be specified when groups is greater than 1.", help="give the weight a shape")
        return {"O": IntImm(outs), "I": ins}

    def _channels(
        self, s: TypeSolver, whole: dict[str, Dim], kernel: dict[str, Dim], x: TensorType, w: TensorType
    ) -> Dim:
        """The number of output channels, checked against everything that is known of it."""
        channels, reads = kernel["O"], derive(lambda n: n * self.groups, kernel["I"])
        if self.is_depthwise(whole["C"], kernel["O"]):
            channels = product((kernel["O"], kernel["I"]))
        elif not same_dim(reads, whole["C"]):
            s.fail(
                f"the weight {type_text(w)} reads {reads} channels, but {type_text(x)} has {whole['C']}",
                help=self._reading(),
            )
        self._same_channels(s, channels, w)
        if isinstance(channels, int) and channels % self.groups:
            s.fail(f"{channels} output channels do not split into {self.groups} groups")
        wanted = spread(self.kernel_size, len(self.spatial)) if self.kernel_size is not None else ()
        if any(not same_dim(IntImm(k), kernel[a]) for k, a in zip(wanted, self.spatial)):
            s.fail(
                f"{self.op_name} has kernel_size={list(wanted)}, but its weight is {type_text(w)}", help=self._reading()
            )
        return channels

    def _extent(self, s: TypeSolver, k: int, extent: Dim, kernel: Dim) -> Dim:
        stride, dilation = self.steps[k]
        return window_extent(s, extent, kernel, stride, dilation, self.pads[k])

    # ---- meaning
    def reference(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        dtype = self.out_dtype or data.dtype.name
        layouts = self.layouts
        x, w = exact(dtype, data, weight)
        x = transform(x, layouts[0], parse_layout("NC" + self.spatial))
        w = transform(w, layouts[1], parse_layout("OI" + self.spatial))
        if self.is_depthwise(x.shape[1], w.shape[0]):
            w = w.reshape(w.shape[0] * w.shape[1], 1, *w.shape[2:])
        out = convolve(x, w, self.steps, self.pads, self.groups)
        return stored(transform(out, parse_layout("NC" + self.spatial), layouts[2]), dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, weight: Readable) -> Element:
        data_layout, kernel_layout, out_layout = self.layouts
        at = out_layout.at(i)
        whole, kernel = data_layout.extents(data.shape), kernel_layout.extents(weight.shape)
        depthwise = self.is_depthwise(whole["C"], kernel["O"])
        multiplier, per_group = kernel["I"], kernel["O"] // self.groups

        def term(k: Element, *taps: Element) -> Element:
            o = at["C"]
            first = o // per_group * multiplier + k if self.groups > 1 else k
            source = {"N": at["N"], "C": o // multiplier if depthwise else first}
            tap = {"O": o // multiplier, "I": o % multiplier} if depthwise else {"O": o, "I": k}
            inside = self._place(b, at, taps, whole, source)
            tap.update(zip(self.spatial, taps))
            read = lambda: b.cast(data(*data_layout.index(source)), out.dtype)
            return b.guard(inside, read, b.const(0, out.dtype)) * b.cast(weight(*kernel_layout.index(tap)), out.dtype)

        sizes = [kernel[a] for a in self.spatial]
        if depthwise:
            return b.sum(sizes, lambda *taps: term(b.index(0), *taps))
        return b.sum([multiplier, *sizes], term)

    def _place(
        self,
        b: ElementBuilder,
        at: dict[str, Element],
        taps: Sequence[Element],
        whole: dict[str, int],
        source: dict[str, Element],
    ) -> Element:
        """Puts the spatial positions that the taps read into `source`; the condition that they are not padding."""
        conditions = []
        for a, tap, (stride, dilation), (before, after) in zip(self.spatial, taps, self.steps, self.pads):
            source[a] = at[a] * stride + tap * dilation - before
            if before or after:
                conditions.append(b.inside(source[a], whole[a]))
        return b.all_of(*conditions)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        kernel, channels = self.layouts[1].whole(dims(types[1])), self.layouts[0].whole(dims(types[0]))["C"]
        letters = self.spatial if self.is_depthwise(channels, kernel["O"]) else "I" + self.spatial
        return products(out, [kernel[a] for a in letters])


def convolve(x: np.ndarray, w: np.ndarray, steps: Sequence[tuple[int, int]], pad: Pads, groups: int) -> np.ndarray:
    """The convolution of x (N, C, ...) with w (O, C / groups, ...): one product of matrices per tap of the kernel."""
    x = np.pad(x, [(0, 0), (0, 0), *pad])
    n, outs, taps = x.shape[0], w.shape[0], w.shape[2:]
    sizes = [(e - (k - 1) * d - 1) // st + 1 for e, k, (st, d) in zip(x.shape[2:], taps, steps)]
    total = np.zeros((n, groups, outs // groups, math.prod(sizes)), x.dtype)
    for tap in np.ndindex(*taps):
        window = tuple(slice(t * d, t * d + (m - 1) * st + 1, st) for t, m, (st, d) in zip(tap, sizes, steps))
        seen = x[(slice(None), slice(None), *window)].reshape(n, groups, w.shape[1], math.prod(sizes))
        total += w[(slice(None), slice(None), *tap)].reshape(groups, outs // groups, w.shape[1]) @ seen
    return total.reshape(n, outs, *sizes)


@op("nn.conv1d", level=2, attrs_key="Conv1D")
class conv1d(Conv):
    """Convolution over one spatial axis: data `NCW`, weight `OIW`; zero padding, groups, dilation."""

    strides, padding, dilation = (1,), (0, 0), (1,)
    data_layout, kernel_layout, spatial = "NCW", "OIW", "W"

    @classmethod
    def samples(cls) -> list[Sample]:
        nwc = {"data_layout": "NWC", "kernel_layout": "WIO"}
        return [
            sample((2, 3, 9), (4, 3, 3), padding=(1, 1)),
            sample((1, 4, 11), (6, 2, 3), strides=(2,), dilation=(2,), groups=2, padding=(2, 1)),
            sample((1, 9, 3), (3, 3, 4), padding=(0, 2), **nwc),
        ]


@op("nn.conv2d", level=2, attrs_key="Conv2D")
class conv2d(Conv):
    """Convolution over two spatial axes: data `NCHW` or any other layout, weight `OIHW`; zero padding, groups,
    dilation.
    """

    @classmethod
    def samples(cls) -> list[Sample]:
        nhwc = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        int8 = TensorType((1, 3, 5, 5), "int8"), TensorType((2, 3, 3, 3), "int8")
        return [
            sample((1, 3, 7, 6), (4, 3, 3, 3), padding=(1, 1)),
            sample((2, 4, 8, 7), (6, 2, 3, 2), strides=(2, 1), padding=(1, 0, 2, 1), groups=2),
            sample((1, 2, 9, 9), (3, 2, 3, 3), dilation=(2, 3), padding=(2,)),
            sample((1, 7, 6, 3), (3, 3, 3, 4), padding=(1, 1), out_layout="NCHW", **nhwc),
            sample((1, 5, 5, 4), (3, 3, 4, 1), groups=4, data_layout="NHWC", kernel_layout="HWOI", padding=(1, 1)),
            sample((1, 3, 5, 5), (3, 2, 3, 3), groups=3, channels=6, kernel_size=(3, 3)),
            sample((1, 4, 5, 5), (4, 1, 3, 3), groups=4, strides=(2, 2), padding=(1, 1)),
            sample((1, 5, 5, 2), (3, 3, 3, 2), data_layout="NHWC", kernel_layout="OHWI"),
            sample(
                (1, 2, 4, 4, 2),
                (2, 2, 3, 3, 2, 4),
                data_layout="NCHW2c",
                kernel_layout="OIHW2i4o",
                out_layout="NCHW4c",
                padding=(1, 1),
            ),
            sample(*int8, out_dtype="int32", low=-128, high=127),
        ]


@op("nn.conv3d", level=2, attrs_key="Conv3D")
class conv3d(Conv):
    """Convolution over three spatial axes: data `NCDHW`, weight `OIDHW`; zero padding, groups, dilation."""

    strides, padding, dilation = (1, 1, 1), (0, 0, 0), (1, 1, 1)
    data_layout, kernel_layout, spatial = "NCDHW", "OIDHW", "DHW"

    @classmethod
    def samples(cls) -> list[Sample]:
        ndhwc = {"data_layout": "NDHWC", "kernel_layout": "DHWIO"}
        return [
            sample((1, 2, 4, 5, 6), (3, 2, 2, 3, 3), padding=(0, 1, 1)),
            sample((1, 4, 5, 4, 3), (4, 2, 3, 1, 2), strides=(2, 1, 1), groups=2, padding=(1, 0, 0, 1, 0, 1)),
            sample((1, 4, 5, 4, 2), (2, 2, 2, 2, 3), **ndhwc),
        ]
