"""Transposed convolutions: the gradient of a convolution with respect to its data, used to enlarge images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from relaylab.ir.types import Dim, IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dtype, Ints, OutElementwiseFusable, Sample, op, sample
from relaylab.op.layout import Layout, parse_layout, transform
from relaylab.op.nn_dense import elements, exact, stored
from relaylab.op.shapes import derive, product, same_dim
from relaylab.op.window import Pads, each, pads, reach, spread, spread_padding

TRANSPOSED = (
    "data weight strides padding dilation channels kernel_size groups "
    "data_layout kernel_layout out_layout output_padding out_dtype"
)


class ConvTranspose(OutElementwiseFusable):
    """Input element y adds its product with the kernel to output elements y * stride + k * dilation - pad.

    The weight has one axis of input channels and one of output channels per group; `ins` and `outs` are their letters.
    """

    channels: ClassVar[Any]
    kernel_size: ClassVar[Any]
    strides: ClassVar[Any]
    output_padding: ClassVar[Any]
    padding: ClassVar[Any]
    dilation: ClassVar[Any]
    groups: ClassVar[Any]
    data_layout: ClassVar[Any]
    kernel_layout: ClassVar[Any]
    out_layout: ClassVar[Any]
    out_dtype: ClassVar[Any]
    spatial: ClassVar[str] = "HW"
    ins: ClassVar[str] = "O"
    outs: ClassVar[str] = "I"
    inputs = ("data", "weight")

    @property
    def pads(self) -> Pads:
        """(before, after) of each spatial axis: what is cut from the result."""
        return pads(self.padding, len(self.spatial))

    @property
    def steps(self) -> list[tuple[int, int, int]]:
        """(stride, dilation, output padding) of each spatial axis."""
        n = len(self.spatial)
        return list(zip(spread(self.strides, n), spread(self.dilation, n), spread(self.output_padding, n)))

    @property
    def layouts(self) -> tuple[Layout, Layout, Layout]:
        """The layouts of data, weight and result."""
        return tuple(map(parse_layout, (self.data_layout, self.kernel_layout, self.out_layout or self.data_layout)))  # type: ignore[return-value]

    def relation(self, s: Any, data: Type, weight: Type) -> Type | None:
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

    def _weight(self, s: Any, whole: dict[str, Dim], x: TensorType, given: Type) -> TensorType | None:
        """The type of the weight, made from `channels` and `kernel_size` where it has none."""
        known = rules.tensor(s, given, "weight")
        if known is not None or self.channels is None or self.kernel_size is None:
            return known
        layout = rules.layout(s, self.kernel_layout, "OI" + self.spatial, None, "weight")
        size = each(s, self.kernel_size, len(self.spatial), "kernel_size")
        extents = {
            self.ins: whole["C"],
            self.outs: IntImm(self.channels // self.groups),
            **dict(zip(self.spatial, map(IntImm, size))),
        }
        return rules.tensor(s, s.unify(given, TensorType(rules.laid_out(s, layout, extents), x.dtype)))

    def _channels(self, s: Any, whole: dict[str, Dim], kernel: dict[str, Dim], x: TensorType, w: TensorType) -> Dim:
        reading = f"data_layout={self.data_layout}, kernel_layout={self.kernel_layout}, groups={self.groups}"
        if not same_dim(kernel[self.ins], whole["C"]):
            s.fail(
                f"the weight {type_text(w)} reads {kernel[self.ins]} channels, but {type_text(x)} has {whole['C']}",
                help=reading,
            )
        if isinstance(whole["C"], int) and whole["C"] % self.groups:
            s.fail(f"{whole['C']} channels do not split into {self.groups} groups")
        channels = derive(lambda n: n * self.groups, kernel[self.outs])
        if self.channels is not None and not same_dim(channels, IntImm(self.channels)):
            s.fail(
                f"{self.op_name} has channels={self.channels}, but the weight {type_text(w)} makes {channels}",
                help=reading,
            )
        for a in self.spatial:
            if whole[a] == 0:
                s.fail(f"{type_text(x)} has nothing to enlarge along {a}", help="give data with elements")
        return channels

    def _extent(self, s: Any, k: int, extent: Dim, kernel: Dim) -> Dim:
        stride, dilation, extra = self.steps[k]
        out = derive(
            lambda n, m: max(stride * (n - 1) + reach(m, dilation) - sum(self.pads[k]) + extra, 0), extent, kernel
        )
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

    def lower(self, b: Any, out: Any, i: tuple, data: Any, weight: Any) -> Any:
        data_layout, kernel_layout, out_layout = self.layouts
        at, whole, kernel = out_layout.at(i), data_layout.whole(data.shape), kernel_layout.whole(weight.shape)
        per_group, reads = int(kernel[self.outs]), int(whole["C"]) // self.groups  # type: ignore[arg-type]

        def term(k: Any, *taps: Any) -> Any:
            channel = at["C"] // per_group * reads + k if self.groups > 1 else k
            source, conditions = {"N": at["N"], "C": channel}, []
            for a, tap, (stride, dilation, _), (before, _) in zip(self.spatial, taps, self.steps, self.pads):
                position = at[a] + before - tap * dilation
                source[a] = position // stride
                hit = b.eq(position % stride, 0) if stride > 1 else b.const(True, "bool")
                conditions += [hit, b.inside(source[a], int(whole[a]))]  # type: ignore[arg-type]
            tap_at = {self.ins: channel, self.outs: at["C"] % per_group, **dict(zip(self.spatial, taps))}
            read = lambda: b.cast(data(*data_layout.index(source)), out.dtype)
            value = b.guard(b.all_of(*conditions), read, b.const(0, out.dtype))
            return value * b.cast(weight(*kernel_layout.index(tap_at)), out.dtype)

        return b.sum([reads, *(int(kernel[a]) for a in self.spatial)], term)  # type: ignore[arg-type]

    def macs(self, types: Sequence[Type], out: Type) -> int:
        kernel = self.layouts[1].whole(types[1].shape)  # type: ignore[attr-defined]
        taps = product([kernel[self.outs], *(kernel[a] for a in self.spatial)])
        return elements(types[0]) * int(taps) if isinstance(taps, int) else 0

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        n, names = len(cls.spatial), ("strides", "dilation", "output_padding", "kernel_size")
        sizes = {k: spread(attrs[k], n) for k in names if attrs.get(k) is not None}
        return {**attrs, **sizes, "padding": spread_padding(attrs.get("padding", 0), n)}


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
        window = tuple(slice(t * d, t * d + max((e - 1) * st + 1, 0), st) for t, e, (st, d, _) in zip(tap, sizes, steps))
        total[(slice(None), slice(None), *window)] += part.reshape(n, total.shape[1], *sizes)
    return total[(slice(None), slice(None), *(slice(low, e - high) for e, (low, high) in zip(full, pad)))]


@op("nn.conv1d_transpose", level=2, attrs_key="Conv1DTranspose")
class conv1d_transpose(ConvTranspose):
    """Transposed convolution over one axis: data `NCW`; weight (in channels, out channels / groups, width), called
    `OIW`.
    """

    parameters = TRANSPOSED

    channels: int | None = None
    kernel_size: Ints | None = None
    strides: Ints = (1,)
    output_padding: Ints = (0,)
    padding: Ints = (0,)
    dilation: Ints = (1,)
    groups: int = 1
    data_layout: str = "NCW"
    kernel_layout: str = "OIW"
    out_layout: str = ""
    out_dtype: Dtype = None
    spatial = "W"

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

    parameters = TRANSPOSED
    defaults = {"kernel_layout": "IOHW"}

    channels: int | None = None
    kernel_size: Ints | None = None
    strides: Ints = (1, 1)
    output_padding: Ints = (0, 0)
    padding: Ints = (0, 0)
    dilation: Ints = (1, 1)
    groups: int = 1
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_layout: str = ""
    out_dtype: Dtype = None
    ins = "I"
    outs = "O"

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

    parameters = TRANSPOSED.replace("channels kernel_size groups", "groups channels kernel_size")

    channels: int | None = None
    kernel_size: Ints | None = None
    strides: Ints = (1, 1, 1)
    output_padding: Ints = (0, 0, 0)
    padding: Ints = (0, 0, 0)
    dilation: Ints = (1, 1, 1)
    groups: int = 1
    data_layout: str = "NCDHW"
    kernel_layout: str = "OIDHW"
    out_layout: str = ""
    out_dtype: Dtype = None
    spatial = "DHW"

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((1, 2, 2, 3, 2), (2, 3, 2, 2, 3), strides=(1, 2, 2), padding=(0, 1, 1), output_padding=(0, 1, 1))
        ]
