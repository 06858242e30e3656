"""Transposed convolutions: the gradient of a convolution with respect to its data, used to enlarge images.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from relaylab.ir.expr import Expr
from relaylab.ir.types import Dim, IntImm, TensorType, Type, type_text
from relaylab.op.base import Dtype, Input, Ints, Sample, arg, attr, call_operator, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.layout import parse_layout, transform
from relaylab.op.nn.conv import Convolution
from relaylab.op.products import dims, elements, exact, in_float32, stored
from relaylab.op.shapes import derive, product, same_dim
from relaylab.op.window import Pads, each, reach, spread, spread_padding

MOST_ZEROS = 16  # times as many elements with zeros between them
TRANSPOSED = (
    "data weight strides padding dilation groups channels kernel_size "
    "data_layout kernel_layout out_layout output_padding out_dtype"
)


class ConvTranspose(Convolution):
    """Input element y adds its product with the kernel to output elements y * stride + k * dilation - pad.

    The weight has one axis of input channels and one of output channels per group; `ins` and `outs` are their letters.
    """

    weight: Input = arg(
        "the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped",
        "(C, O / groups, *kernel)",
        "any but bool",
    )
    channels: int | None = None
    kernel_size: Ints | None = None
    strides: Ints = attr((1, 1), "how far neighbours of data lie apart in the result, along each spatial axis")
    output_padding: Ints = attr((0, 0), "elements added after the result along each spatial axis")
    padding: Ints = attr((0, 0), "what is cut from the result: one number, one per axis, or befores then afters")
    dilation: Ints = (1, 1)
    groups: int = 1
    data_layout: str = "NCHW"
    kernel_layout: str = attr("OIHW", "the axes of weight; the builder's default names input channels first")
    out_layout: str = ""
    out_dtype: Dtype = None
    parameters = TRANSPOSED
    sized = (*Convolution.sized, "output_padding")
    ins: ClassVar[str] = "O"
    outs: ClassVar[str] = "I"
    yields = (
        "(N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = "
        "stride * (extent - 1) + dilation * (kernel - 1) + 1 - before - after + output_padding"
    )
    source = "Zeiler et al., Deconvolutional networks, 2010; ONNX ConvTranspose"

    def legal(self, inputs: Sequence[Expr], types: Sequence[TensorType]) -> Expr | None:
        found = in_float32(self, inputs, types)
        return found if found is not None or self.op_name.startswith("qnn.") else self._spread(inputs, types)

    def _spread(self, inputs: Sequence[Expr], types: Sequence[TensorType]) -> Expr | None:
        """With a filter for each channel a convolution by it turned round, of data with zeros between its elements:
        more products, but of vectors of channels.
        """
        data, weight, out = types
        layout, kernel_layout, out_layout = self.layouts
        plain = layout.is_plain() and kernel_layout.is_plain() and out_layout.is_plain()
        if data.is_dynamic or weight.is_dynamic or out.dtype not in ("float32", "float64") or not plain:
            return None
        kernel = kernel_layout.extents(weight.concrete_shape)
        if self.groups == 1 or kernel[self.ins] != self.groups or kernel[self.outs] != 1:
            return None
        reaches = [d * (kernel[a] - 1) for a, (_, d, _) in zip(self.spatial, self.steps)]
        before = [r - low for r, (low, _) in zip(reaches, self.pads)]
        after = [r - high + extra for r, (_, high), (_, _, extra) in zip(reaches, self.pads, self.steps)]
        if min(*before, *after) < 0 or math.prod(st for st, _, _ in self.steps) > MOST_ZEROS:
            return None
        x, w = inputs
        strides = dict(zip(self.spatial, (st for st, _, _ in self.steps)))
        if max(strides.values()) > 1:
            x = call_operator("nn.dilate", x, strides=[strides.get(a.letter, 1) for a in layout.axes])
        for a in self.spatial:
            w = call_operator("reverse", w, axis=kernel_layout.position(a)) if kernel[a] > 1 else w
        return call_operator(
            f"nn.conv{len(self.spatial)}d",
            x,
            w,
            strides=(1,) * len(self.spatial),
            padding=(*before, *after),
            dilation=tuple(d for _, d, _ in self.steps),
            groups=self.groups,
            channels=self.groups,
            kernel_size=tuple(kernel[a] for a in self.spatial),
            data_layout=self.data_layout,
            kernel_layout=self.kernel_layout.translate(str.maketrans(self.ins + self.outs, "OI")),
            out_layout=self.out_layout,
            out_dtype=self.out_dtype,
        )

    @property
    def steps(self) -> list[tuple[int, int, int]]:
        """(stride, dilation, output padding) of each spatial axis."""
        n = len(self.spatial)
        return list(zip(spread(self.strides, n), spread(self.dilation, n), spread(self.output_padding, n)))

    def _kernel_channels(self, s: TypeSolver, ins: Dim, outs: int) -> dict[str, Dim]:
        return {self.ins: ins, self.outs: IntImm(outs // self.groups)}

    def _channels(
        self, s: TypeSolver, whole: dict[str, Dim], kernel: dict[str, Dim], x: TensorType, w: TensorType
    ) -> Dim:
        n = len(self.spatial)
        each(s, self.output_padding, n, "output_padding", 0)
        each(s, spread_padding(self.padding, n), 2 * n, "padding", 0)
        if not same_dim(kernel[self.ins], whole["C"]):
            s.fail(
                f"the weight {type_text(w)} reads {kernel[self.ins]} channels, but {type_text(x)} has {whole['C']}",
                help=self._reading(),
            )
        if isinstance(whole["C"], int) and whole["C"] % self.groups:
            s.fail(f"{whole['C']} channels do not split into {self.groups} groups")
        channels = derive(lambda n: n * self.groups, kernel[self.outs])
        self._same_channels(s, channels, w)
        for a in self.spatial:
            if whole[a] == 0:
                s.fail(f"{type_text(x)} has nothing to enlarge along {a}", help="give data with elements")
        return channels

    def _extent(self, s: TypeSolver, k: int, extent: Dim, kernel: Dim) -> Dim:
        stride, dilation, extra = self.steps[k]
        more = extra - sum(self.pads[k])
        out = derive(lambda n, m: stride * (n - 1) + reach(m, dilation) + more, extent, kernel)
        if isinstance(out, int) and out < 1:
            s.fail(f"the padding {list(self.padding)} leaves nothing of the result along {self.spatial[k]}")
        return out

    def reference(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        dtype = self.out_dtype or data.dtype.name
        layouts = self.layouts
        x, w = exact(dtype, data, weight)
        x = transform(x, layouts[0], parse_layout("NC" + self.spatial))
        w = transform(w, layouts[1], parse_layout(self.ins + self.outs + self.spatial))
        out = spread_out(x, w, self.steps, self.pads, self.groups)
        return stored(transform(out, parse_layout("NC" + self.spatial), layouts[2]), dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, weight: Readable) -> Element:
        data_layout, kernel_layout, out_layout = self.layouts
        at, whole, kernel = out_layout.at(i), data_layout.extents(data.shape), kernel_layout.extents(weight.shape)
        per_group, reads = kernel[self.outs], whole["C"] // self.groups

        def term(k: Element, *taps: Element) -> Element:
            channel = at["C"] // per_group * reads + k if self.groups > 1 else k
            source, conditions = {"N": at["N"], "C": channel}, []
            for a, tap, (stride, dilation, _), (before, _) in zip(self.spatial, taps, self.steps, self.pads):
                position = at[a] + before - tap * dilation
                source[a] = position // stride
                hit = b.eq(position % stride, 0) if stride > 1 else b.const(True, "bool")
                conditions += [hit, b.inside(source[a], whole[a])]
            tap_at = {self.ins: channel, self.outs: at["C"] % per_group, **dict(zip(self.spatial, taps))}
            read = lambda: b.cast(data(*data_layout.index(source)), out.dtype)
            value = b.guard(b.all_of(*conditions), read, b.const(0, out.dtype))
            return value * b.cast(weight(*kernel_layout.index(tap_at)), out.dtype)

        return b.sum([reads, *(kernel[a] for a in self.spatial)], term)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        kernel = self.layouts[1].whole(dims(types[1]))
        taps = product([kernel[self.outs], *(kernel[a] for a in self.spatial)])
        return elements(types[0]) * int(taps) if isinstance(taps, int) else 0


def spread_out(
    x: np.ndarray, w: np.ndarray, steps: Sequence[tuple[int, int, int]], pad: Pads, groups: int
) -> np.ndarray:
    """The transposed convolution of x (N, C, ...) with w (C, O / groups, ...): one product of matrices per tap."""
    n, c, sizes, taps = x.shape[0], x.shape[1], x.shape[2:], w.shape[2:]
    full = [(e - 1) * st + reach(k, d) + extra for e, k, (st, d, extra) in zip(sizes, taps, steps)]
    total = np.zeros((n, groups * w.shape[1], *full), x.dtype)
    flat = x.reshape(n, groups, c // groups, math.prod(sizes))
    for tap in np.ndindex(*taps):
        part = w[(slice(None), slice(None), *tap)].reshape(groups, c // groups, w.shape[1]).swapaxes(1, 2) @ flat
        window = tuple(
            slice(t * d, t * d + max((e - 1) * st + 1, 0), st) for t, e, (st, d, _) in zip(tap, sizes, steps)
        )
        total[(slice(None), slice(None), *window)] += part.reshape(n, total.shape[1], *sizes)
    return total[(slice(None), slice(None), *(slice(low, e - high) for e, (low, high) in zip(full, pad)))]


@op("nn.conv1d_transpose", level=2, attrs_key="Conv1DTranspose")
class conv1d_transpose(ConvTranspose):
    """Transposed convolution over one axis: data `NCW`; weight (in channels, out channels / groups, width), called
    `OIW`.
    """

    strides, padding, dilation, output_padding = (1,), (0,), (1,), (0,)
    data_layout, kernel_layout, spatial = "NCW", "OIW", "W"

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((1, 3, 5), (3, 2, 3), strides=(2,), padding=(1, 0), output_padding=(1,)),
            sample((2, 4, 4), (4, 3, 2), groups=2, dilation=(2,)),
        ]


@op("nn.conv2d_transpose", level=2, attrs_key="Conv2DTranspose")
class conv2d_transpose(ConvTranspose):
    """Transposed convolution over two axes: data `NCHW`; weight `IOHW` is (in channels, out channels / groups, h,
    w).
    """

    defaults = {"kernel_layout": "IOHW", "out_dtype": ""}

    ins, outs = "I", "O"

    @classmethod
    def samples(cls) -> list[Sample]:
        iohw = {"kernel_layout": "IOHW"}
        return [
            sample((1, 3, 4, 5), (3, 2, 3, 3), strides=(2, 2), padding=(1, 1), output_padding=(1, 0), **iohw),
            sample((1, 4, 3, 3), (4, 3, 2, 3), groups=2, dilation=(1, 2), padding=(0, 1, 1, 0), **iohw),
            sample((1, 4, 4, 3), (3, 3, 2, 3), strides=(2, 1), data_layout="NHWC", kernel_layout="HWOI"),
            sample((1, 3, 4, 4), (2, 3, 2, 2)),
        ]


@op("nn.conv3d_transpose", level=2, attrs_key="Conv3DTranspose")
class conv3d_transpose(ConvTranspose):
    """Transposed convolution over three axes: data `NCDHW`; weight (in channels, out channels / groups, d, h, w),
    called `OIDHW`.
    """

    strides, padding, dilation, output_padding = (1, 1, 1), (0, 0, 0), (1, 1, 1), (0, 0, 0)
    data_layout, kernel_layout, spatial = "NCDHW", "OIDHW", "DHW"

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((1, 2, 2, 3, 2), (2, 3, 2, 2, 3), strides=(1, 2, 2), padding=(0, 1, 1), output_padding=(0, 1, 1))
        ]
