"""Relay's heavy operators as template kernels: which views a template needs, how weights are packed, which one pays.

`contraction_of(call)` gives a `Contraction` for a call of a convolution or matrix product, or None for what the
templates do not do. Its methods speak of the operator's own axes; the views that they hand to the templates are
permuted to [batch, *space, channels].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from relaylab.codegen.kernel import Kernel, View, channel_pitch
from relaylab.codegen.target import Target
from relaylab.codegen.templates import (
    ConvSpec,
    ConvTransposeSpec,
    Epilogue,
    GemmSpec,
    choose_winograd,
    conv,
    conv_transpose,
    depthwise,
    gemm,
    needed_halo,
    needed_transpose_halo,
    needed_winograd_halo,
    pack_conv_transpose,
    pack_conv_weight,
    pack_depthwise,
    pack_gemm,
    pack_winograd,
    supports_conv,
    supports_conv_transpose,
    supports_depthwise,
    supports_gemm,
    winograd,
    winograd_workspace,
)
from relaylab.codegen.views import Halo, laid_out, merged_front, permuted, with_front
from relaylab.ir import Call, Op
from relaylab.op.window import spread, spread_padding
from relaylab.support.errors import RelayError

SPACES = ("W", "HW", "DHW")
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """Kernels to run one after another, and the bytes of the workspaces that they share by role."""

    kernels: tuple[Kernel, ...]
    workspaces: tuple[tuple[str, int], ...] = ()


class Contraction(Protocol):
    """A heavy operator that a template computes.

    `data_order` and `out_order` are the memory orders of the axes, outermost first, that the template likes.
    """

    call: Call

    @property
    def data_order(self) -> tuple[int, ...]: ...

    @property
    def out_order(self) -> tuple[int, ...]: ...

    @property
    def packs(self) -> bool:
        """Must the weight be a constant, laid out at build time? Else it may be, and is read where it lies if not."""

    def halo(self) -> Halo:
        """The zeros that the template reads around each axis of the data."""

    def accepts(self, data: View) -> bool:
        """Can the template read data that lies like this?"""

    def out_view(self, out: View) -> View:
        """A view over the result, axes as the template walks them; for the output and for side inputs."""

    def places(self, side: View) -> bool:
        """Can the template read a side input that lies like this over the axes of the result?"""

    @property
    def row_major(self) -> bool:
        """Must the result and full side inputs be row-major, without zeros around them?"""

    def build(self, data: View, weight: View | None, out: View, target: Target, epilogue: Epilogue) -> Made:
        """The kernels for these views; `weight` is None when it is packed."""

    def pack(self, data: View, out: View, target: Target, weight: np.ndarray) -> np.ndarray:
        """The constant weight as the kernels for these views read it, flat."""


def contraction_of(call: Call, target: Target, minimal: bool = True) -> Contraction | None:
    """The contraction that a call of an operator is; None when no template does it.

    `minimal` allows algorithms with fewer products (Winograd's, Strassen's), which round differently.
    """
    make = _KINDS.get(call.op.name) if isinstance(call.op, Op) else None
    return make(call, target, minimal) if make else None


# ---- convolutions


@dataclass(frozen=True, slots=True)
class ConvolutionAxes:
    """Where batch, space and channels are in a layout such as "NCHW"."""

    layout: str

    @property
    def space(self) -> str:
        """The letters of the spatial axes."""
        return "".join(c for c in "DHW" if c in self.layout)

    @property
    def template(self) -> tuple[int, ...]:
        """The operator's axes in the order [batch, *space, channels]."""
        return tuple(self.layout.index(c) for c in f"N{self.space}C")

    def plain(self) -> bool:
        """Is it a permutation of batch, channels and one to three spatial axes?"""
        return sorted(self.layout) == sorted(f"NC{self.space}") and self.space in SPACES


@dataclass(frozen=True, slots=True)
class Conv:
    """A convolution of any rank, layout, stride, dilation and number of groups."""

    call: Call
    spec: ConvSpec
    data_axes: ConvolutionAxes
    out_axes: ConvolutionAxes
    kernel_layout: str
    method: str
    packs: bool = True

    @property
    def data_order(self) -> tuple[int, ...]:
        return self.data_axes.template

    @property
    def out_order(self) -> tuple[int, ...]:
        return self.out_axes.template

    @property
    def m(self) -> int:
        """The output tile of minimal filtering."""
        return int(self.method[-1])

    def halo(self) -> Halo:
        found = needed_winograd_halo(self.spec, self.m) if self.method[:-1] == "winograd" else needed_halo(self.spec)
        if self.method == "depthwise":  # keep pixels out of each other's cache sets
            channels = self.spec.data.shape[-1]
            found = (*found[:-1], (0, channel_pitch(channels, self.spec.data.dtype) - channels))
        return tuple(found[self.data_order.index(axis)] for axis in range(len(found)))

    def accepts(self, data: View) -> bool:
        return _readable(permuted(data, self.data_order), self.spec.data.shape[-1], self.halo(), data)

    def out_view(self, out: View) -> View:
        return permuted(out, self.out_order)

    def places(self, side: View) -> bool:
        return True

    @property
    def row_major(self) -> bool:
        return False

    def _spec(self, data: View, out: View) -> ConvSpec:
        return replace(self.spec, data=permuted(data, self.data_order), out=permuted(out, self.out_order))

    def build(self, data: View, weight: View | None, out: View, target: Target, epilogue: Epilogue) -> Made:
        spec = self._spec(data, out)
        if self.method == "depthwise":
            return Made((depthwise(spec, target, epilogue),))
        if self.method == "direct":
            return Made((conv(spec, target, epilogue),))
        work = zip(("work0", "work1"), winograd_workspace(spec, self.m))
        return Made(winograd(spec, self.m, target, epilogue), tuple((role, n) for role, n in work if n))

    def pack(self, data: View, out: View, target: Target, weight: np.ndarray) -> np.ndarray:
        spec = self._spec(data, out)
        plain = self._plain_weight(weight)
        if self.method == "depthwise":
            return pack_depthwise(spec, target, plain)
        if self.method == "direct":
            return pack_conv_weight(spec, target, plain)
        return pack_winograd(spec, self.m, target, plain)

    def _plain_weight(self, weight: np.ndarray) -> np.ndarray:
        """The weight as [OC, IC / groups, *kernel]."""
        order = [self.kernel_layout.index(c) for c in f"OI{self.data_axes.space}"]
        return weight.transpose(order).reshape(self.spec.out.shape[-1], self.spec.in_channels, *self.spec.kernel)


def _conv(call: Call, target: Target, minimal: bool) -> Contraction | None:
    attrs = call.attrs
    axes = ConvolutionAxes(attrs.data_layout)
    out_axes = ConvolutionAxes(attrs.out_layout or attrs.data_layout)
    kernel_layout = attrs.kernel_layout
    if not (axes.plain() and out_axes.plain() and sorted(kernel_layout) == sorted(f"OI{axes.space}")):
        return None
    data, weight = (arg.checked_type for arg in call.args[:2])
    kernel = tuple(weight.concrete_shape[kernel_layout.index(c)] for c in axes.space)
    spec = ConvSpec(_ideal(data, axes.template), _ideal(call.checked_type, out_axes.template), kernel,
                    **_geometry(attrs, len(kernel)), groups=attrs.groups, minimal=minimal)
    spec = replace(spec, data=replace(spec.data, halo=needed_halo(spec)))
    if data.dtype != weight.dtype or call.checked_type.dtype != data.dtype or supports_conv(spec):
        return None
    return Conv(call, spec, axes, out_axes, kernel_layout, _method(spec, target))


def _method(spec: ConvSpec, target: Target) -> str:
    """"depthwise", "direct", or "winograd" and its tile."""
    if not supports_depthwise(spec):
        return "depthwise"
    m = choose_winograd(spec, target) if spec.minimal else 0
    return f"winograd{m}" if m else "direct"


def _ideal(type: Any, template: Sequence[int]) -> View:
    """A dense channels-last view of a tensor type, axes as the template has them."""
    shape = type.concrete_shape
    return View.dense(tuple(shape[axis] for axis in template), type.dtype)


def _geometry(attrs: Any, n: int) -> dict[str, Shape]:
    """Strides, dilation and the padding before each spatial axis."""
    return {"strides": spread(attrs.strides, n), "dilation": spread(attrs.dilation, n),
            "padding": spread_padding(attrs.padding, n)[:n]}


FEW_CHANNELS = 8


def _readable(template: View, channels: int, halo: Halo, data: View) -> bool:
    """Enough zeros around it, and channels side by side unless they are few."""
    have = data.halo or ((0, 0),) * len(data.shape)
    zeros = all(h[0] >= w[0] and h[1] >= w[1] for h, w in zip(have, halo)) if halo else True
    return zeros and (template.strides[-1] == 1 or channels <= FEW_CHANNELS)


# ---- transposed convolutions


@dataclass(frozen=True, slots=True)
class ConvTranspose:
    """A transposed convolution."""

    call: Call
    spec: ConvTransposeSpec
    axes: ConvolutionAxes
    kernel_layout: str
    packs: bool = True

    @property
    def data_order(self) -> tuple[int, ...]:
        return self.axes.template

    @property
    def out_order(self) -> tuple[int, ...]:
        return self.axes.template

    def halo(self) -> Halo:
        found = needed_transpose_halo(self.spec)
        return tuple(found[self.data_order.index(axis)] for axis in range(len(found)))

    def accepts(self, data: View) -> bool:
        return _readable(permuted(data, self.data_order), self.spec.data.shape[-1], self.halo(), data)

    def out_view(self, out: View) -> View:
        return permuted(out, self.out_order)

    def places(self, side: View) -> bool:
        return True

    @property
    def row_major(self) -> bool:
        return False

    def _spec(self, data: View, out: View) -> ConvTransposeSpec:
        return replace(self.spec, data=permuted(data, self.data_order), out=permuted(out, self.out_order))

    def build(self, data: View, weight: View | None, out: View, target: Target, epilogue: Epilogue) -> Made:
        return Made((conv_transpose(self._spec(data, out), target, epilogue),))

    def pack(self, data: View, out: View, target: Target, weight: np.ndarray) -> np.ndarray:
        order = [self.kernel_layout.index(c) for c in (self.call.attrs.ins, self.call.attrs.outs, *self.axes.space)]
        return pack_conv_transpose(self._spec(data, out), target, weight.transpose(order))


def _conv_transpose(call: Call, target: Target, minimal: bool) -> Contraction | None:
    attrs = call.attrs
    axes = ConvolutionAxes(attrs.data_layout)
    same = (attrs.out_layout or attrs.data_layout) == attrs.data_layout
    kernel_layout = attrs.kernel_layout
    if not (same and axes.plain() and sorted(kernel_layout) == sorted(f"OI{axes.space}")):
        return None
    data, weight = (arg.checked_type for arg in call.args[:2])
    kernel = tuple(weight.concrete_shape[kernel_layout.index(c)] for c in axes.space)
    spec = ConvTransposeSpec(_ideal(data, axes.template), _ideal(call.checked_type, axes.template), kernel,
                             **_geometry(attrs, len(kernel)), groups=attrs.groups)
    spec = replace(spec, data=replace(spec.data, halo=needed_transpose_halo(spec)))
    if data.dtype != weight.dtype or call.checked_type.dtype != data.dtype or supports_conv_transpose(spec):
        return None
    return ConvTranspose(call, spec, axes, kernel_layout)


# ---- matrix products


@dataclass(frozen=True, slots=True)
class Product:
    """dense, matmul and batch_matmul with all transposes."""

    call: Call
    transpose_a: bool
    transpose_b: bool
    minimal: bool = True
    packs: bool = False

    @property
    def data_order(self) -> tuple[int, ...]:
        return tuple(range(len(self.call.args[0].checked_type.shape)))

    @property
    def out_order(self) -> tuple[int, ...]:
        return tuple(range(len(self.call.checked_type.shape)))

    def halo(self) -> Halo:
        return ()

    def accepts(self, data: View) -> bool:
        return _batched(_swapped(data, self.transpose_a)) is not None

    def out_view(self, out: View) -> View:
        return _flat(out)

    def places(self, side: View) -> bool:
        return _batched(side) is not None

    @property
    def row_major(self) -> bool:
        return len(self.out_order) > 3

    def _spec(self, data: View, weight: View | None, out: View) -> GemmSpec:
        a, o = _flat(_swapped(data, self.transpose_a)), _flat(out)
        if weight is None:
            shape = self.call.args[1].checked_type.concrete_shape
            weight = laid_out(shape, data.dtype, range(len(shape)))
            return GemmSpec(a, _flat(_swapped(weight, self.transpose_b)), o, packed=True, minimal=self.minimal)
        return GemmSpec(a, _flat(_swapped(weight, self.transpose_b)), o, packed=False)

    def build(self, data: View, weight: View | None, out: View, target: Target, epilogue: Epilogue) -> Made:
        return Made((gemm(self._spec(data, weight, out), target, epilogue),))

    def pack(self, data: View, out: View, target: Target, weight: np.ndarray) -> np.ndarray:
        matrix = weight.swapaxes(-1, -2) if self.transpose_b else weight
        matrix = matrix if matrix.ndim == 3 else matrix[None]
        return pack_gemm(self._spec(data, None, out), target, matrix)


def _swapped(view: View, transpose: bool) -> View:
    rank = len(view.shape)
    return permuted(view, (*range(rank - 2), rank - 1, rank - 2)) if transpose else view


def _batched(view: View) -> View | None:
    """The view with three axes: leading ones merged, or of extent 1 in front; None if they do not lie evenly."""
    while len(view.shape) < 3:
        view = with_front(view)
    return view if len(view.shape) == 3 else merged_front(view, 2)


def _flat(view: View) -> View:
    """`_batched` for a view that the planner has found to lie evenly."""
    found = _batched(view)
    if found is None:
        raise RelayError("a matrix product was given an operand with gaps", code="codegen.operand")
    return found


def _product(call: Call, target: Target, minimal: bool) -> Contraction | None:
    left, right = (arg.checked_type for arg in call.args[:2])
    transpose_a, transpose_b = call.attrs.transpose_a, call.attrs.transpose_b
    if left.dtype != right.dtype or call.checked_type.dtype != left.dtype or len(left.shape) < 2:
        return None
    product = Product(call, bool(transpose_a), bool(transpose_b), minimal)
    dense = [View.dense(t.concrete_shape, t.dtype) for t in (left, right, call.checked_type)]
    return None if supports_gemm(product._spec(*dense)) else product


_KINDS = {
    **dict.fromkeys(("nn.conv1d", "nn.conv2d", "nn.conv3d"), _conv),
    **dict.fromkeys(("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"), _conv_transpose),
    **dict.fromkeys(("nn.dense", "nn.matmul", "nn.batch_matmul"), _product),
}
