"""Convolutions in one, two and three dimensions, in any layout."""

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
from relaylab.op.window import Pads, each, pads, spread, spread_padding, window_extent


class Conv(OutElementwiseFusable):
    """What convolutions share. Positions along axes have letters: data N C and the spatial ones, weight O I and those.

    Output channel o lies in group o // (O / groups) and reads the input channels of its group. In the depthwise form
    (O = groups = C) the weight's I is a multiplier: output channel o reads channel o // I with weight [o // I, o % I].
    """

    strides: ClassVar[Any]
    padding: ClassVar[Any]
    dilation: ClassVar[Any]
    groups: ClassVar[Any]
    channels: ClassVar[Any]
    kernel_size: ClassVar[Any]
    data_layout: ClassVar[Any]
    kernel_layout: ClassVar[Any]
    out_layout: ClassVar[Any]
    out_dtype: ClassVar[Any]
    spatial: ClassVar[str] = "HW"
    inputs = ("data", "weight")

    # ---- geometry
    @property
    def pads(self) -> Pads:
        """(before, after) of each spatial axis."""
        return pads(self.padding, len(self.spatial))

    @property
    def steps(self) -> list[tuple[int, int]]:
        """(stride, dilation) of each spatial axis."""
        n = len(self.spatial)
        return list(zip(spread(self.strides, n), spread(self.dilation, n)))

    @property
    def layouts(self) -> tuple[Layout, Layout, Layout]:
        """The layouts of data, weight and result."""
        return tuple(map(parse_layout, (self.data_layout, self.kernel_layout, self.out_layout or self.data_layout)))  # type: ignore[return-value]

    def is_depthwise(self, channels: Dim, kernel: dict[str, Dim]) -> bool:
        """Whether the weight has the depthwise form, (C, multiplier, ...)."""
        return self.groups > 1 and channels == self.groups and kernel["O"] == self.groups

    # ---- types
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
        if self.groups > 1:
            s.fail("Weight shape must be specified when groups is greater than 1.", help="give the weight a shape")
        layout = rules.layout(s, self.kernel_layout, "OI" + self.spatial, None, "weight")
        size = each(s, self.kernel_size, len(self.spatial), "kernel_size")
        extents = {"O": IntImm(self.channels), "I": whole["C"], **dict(zip(self.spatial, map(IntImm, size)))}
        return rules.tensor(s, s.unify(given, TensorType(rules.laid_out(s, layout, extents), x.dtype)))

    def _channels(self, s: Any, whole: dict[str, Dim], kernel: dict[str, Dim], x: TensorType, w: TensorType) -> Dim:
        """The number of output channels, checked against everything that is known of it."""
        channels, reads = kernel["O"], derive(lambda n: n * self.groups, kernel["I"])
        if self.is_depthwise(whole["C"], kernel):
            channels = product((kernel["O"], kernel["I"]))
        elif not same_dim(reads, whole["C"]):
            s.fail(
                f"the weight {type_text(w)} reads {reads} channels, but {type_text(x)} has {whole['C']}",
                help=self._reading(),
            )
        if self.channels is not None and not same_dim(channels, IntImm(self.channels)):
            s.fail(
                f"{self.op_name} has channels={self.channels}, but the weight {type_text(w)} makes {channels}",
                help=self._reading(),
            )
        if isinstance(channels, int) and channels % self.groups:
            s.fail(f"{channels} output channels do not split into {self.groups} groups")
        wanted = spread(self.kernel_size, len(self.spatial)) if self.kernel_size is not None else ()
        if any(not same_dim(IntImm(k), kernel[a]) for k, a in zip(wanted, self.spatial)):
            s.fail(
                f"{self.op_name} has kernel_size={list(wanted)}, but its weight is {type_text(w)}", help=self._reading()
            )
        return channels

    def _reading(self) -> str:
        return f"data_layout={self.data_layout}, kernel_layout={self.kernel_layout}, groups={self.groups}"

    def _extent(self, s: Any, k: int, extent: Dim, kernel: Dim) -> Dim:
        stride, dilation = self.steps[k]
        return window_extent(s, extent, kernel, stride, dilation, self.pads[k])

    # ---- meaning
    def reference(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        dtype = self.out_dtype or data.dtype.name
        layouts = self.layouts
        x, w = exact(dtype, data, weight)
        x = transform(x, layouts[0], parse_layout("NC" + self.spatial))
        w = transform(w, layouts[1], parse_layout("OI" + self.spatial))
        if self.is_depthwise(IntImm(x.shape[1]), {"O": IntImm(w.shape[0])}):
            w = w.reshape(-1, 1, *w.shape[2:])
        out = convolve(x, w, self.steps, self.pads, self.groups)
        return stored(transform(out, parse_layout("NC" + self.spatial), layouts[2]), dtype)

    def lower(self, b: Any, out: Any, i: tuple, data: Any, weight: Any) -> Any:
        data_layout, kernel_layout, out_layout = self.layouts
        at = out_layout.at(i)
        whole, kernel = data_layout.whole(data.shape), kernel_layout.whole(weight.shape)
        depthwise = self.is_depthwise(whole["C"], kernel)
        multiplier = int(kernel["I"])  # type: ignore[arg-type]
        per_group = int(kernel["O"]) // self.groups  # type: ignore[arg-type]

        def term(k: Any, *taps: Any) -> Any:
            o = at["C"]
            first = o // per_group * multiplier + k if self.groups > 1 else k
            source = {"N": at["N"], "C": o // multiplier if depthwise else first}
            tap = {"O": o // multiplier, "I": o % multiplier} if depthwise else {"O": o, "I": k}
            inside = self._place(b, at, taps, whole, source)
            tap.update(zip(self.spatial, taps))
            read = lambda: b.cast(data(*data_layout.index(source)), out.dtype)
            return b.guard(inside, read, b.const(0, out.dtype)) * b.cast(weight(*kernel_layout.index(tap)), out.dtype)

        sizes = [int(kernel[a]) for a in self.spatial]  # type: ignore[arg-type]
        if depthwise:
            return b.sum(sizes, lambda *taps: term(b.index(0), *taps))
        return b.sum([multiplier, *sizes], term)

    def _place(self, b: Any, at: dict, taps: Sequence[Any], whole: dict, source: dict) -> Any:
        """Puts the spatial positions that the taps read into `source`; the condition that they are not padding."""
        conditions = []
        for a, tap, (stride, dilation), (before, after) in zip(self.spatial, taps, self.steps, self.pads):
            source[a] = at[a] * stride + tap * dilation - before
            if before or after:
                conditions.append(b.inside(source[a], int(whole[a])))
        return b.all_of(*conditions)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        kernel = self.layouts[1].whole(types[1].shape)  # type: ignore[attr-defined]
        channels = self.layouts[0].whole(types[0].shape)["C"]  # type: ignore[attr-defined]
        taps = [kernel[a] for a in (self.spatial if self.is_depthwise(channels, kernel) else "I" + self.spatial)]
        count = product(taps)
        return elements(out) * int(count) if isinstance(count, int) else 0

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        n = len(cls.spatial)
        sizes = {k: spread(attrs[k], n) for k in ("strides", "dilation", "kernel_size") if attrs.get(k) is not None}
        return {**attrs, **sizes, "padding": spread_padding(attrs.get("padding", 0), n)}


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

    strides: Ints = (1,)
    padding: Ints = (0, 0)
    dilation: Ints = (1,)
    groups: int = 1
    channels: int | None = None
    kernel_size: Ints | None = None
    data_layout: str = "NCW"
    kernel_layout: str = "OIW"
    out_layout: str = ""
    out_dtype: Dtype = None
    spatial = "W"

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

    strides: Ints = (1, 1)
    padding: Ints = (0, 0)
    dilation: Ints = (1, 1)
    groups: int = 1
    channels: int | None = None
    kernel_size: Ints | None = None
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_layout: str = ""
    out_dtype: Dtype = None

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

    strides: Ints = (1, 1, 1)
    padding: Ints = (0, 0, 0)
    dilation: Ints = (1, 1, 1)
    groups: int = 1
    channels: int | None = None
    kernel_size: Ints | None = None
    data_layout: str = "NCDHW"
    kernel_layout: str = "OIDHW"
    out_layout: str = ""
    out_dtype: Dtype = None
    spatial = "DHW"

    @classmethod
    def samples(cls) -> list[Sample]:
        ndhwc = {"data_layout": "NDHWC", "kernel_layout": "DHWIO"}
        return [
            sample((1, 2, 4, 5, 6), (3, 2, 2, 3, 3), padding=(0, 1, 1)),
            sample((1, 4, 5, 4, 3), (4, 2, 3, 1, 2), strides=(2, 1, 1), groups=2, padding=(1, 0, 0, 1, 0, 1)),
            sample((1, 4, 5, 4, 2), (2, 2, 2, 2, 3), **ndhwc),
        ]
