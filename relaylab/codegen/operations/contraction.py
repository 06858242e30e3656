"""Convolutions and matrix products as template kernels: the views they need, how weights are packed, which one pays.

`contraction_of(call)` gives a `Contraction` for a call of a convolution or matrix product, or None for what the
templates do not do. Its methods speak of the operator's own axes; the views that they hand to the templates are
permuted to [batch, *space, channels].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, MemoryView, channel_pitch
from relaylab.codegen.kernels.views import Halo, laid_out, merged_front, permuted, with_front
from relaylab.codegen.network.network import tensor_type
from relaylab.codegen.templates.byte_products import FACTORS
from relaylab.codegen.templates.choose import choose_winograd
from relaylab.codegen.templates.conv import ConvSpec, conv, needed_halo, pack_conv_weight, supports_conv
from relaylab.codegen.templates.conv_transpose import (
    conv_transpose,
    needed_transpose_halo,
    pack_conv_transpose,
    supports_conv_transpose,
)
from relaylab.codegen.templates.depthwise import depthwise, pack_depthwise, supports_depthwise
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.gemm import GemmSpec, gemm, pack_gemm, supports_gemm
from relaylab.codegen.templates.pack import Packing
from relaylab.codegen.templates.problem import Choices
from relaylab.codegen.templates.winograd import needed_winograd_halo, pack_winograd, winograd_workspace
from relaylab.codegen.templates.winograd_kernel import winograd
from relaylab.ir import Call, Op, TensorType
from relaylab.op.window import spread, spread_padding
from relaylab.support.errors import RelayError, RelayValueError

SPACES = ("W", "HW", "DHW")
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KernelSequence:
    """Kernels to run one after another, and the bytes of the workspaces that they share by role."""

    kernels: tuple[Kernel, ...]
    workspaces: tuple[tuple[str, int], ...] = ()


class Contraction(Protocol):
    """A convolution or matrix product that a template computes.

    `data_order` and `out_order` are the memory orders of the axes, outermost first, that the template likes.
    """

    @property
    def call(self) -> Call: ...

    @property
    def data_order(self) -> tuple[int, ...]: ...

    @property
    def out_order(self) -> tuple[int, ...]: ...

    @property
    def packs(self) -> bool:
        """Must the weight be a constant, laid out at build time? Else it may be, and is read where it lies if not."""
        ...

    @property
    def weight_axes(self) -> tuple[int, ...]:
        """The order in which `pack` takes the weight's axes: kernels of packed weights do not tell it."""
        ...

    def halo(self) -> Halo:
        """The zeros that the template reads around each axis of the data."""
        ...

    def accepts(self, data: MemoryView) -> bool:
        """Can the template read data that lies like this?"""
        ...

    def out_view(self, out: MemoryView) -> MemoryView:
        """A view over the result, axes as the template walks them; for the output and for side inputs."""
        ...

    def places(self, side: MemoryView) -> bool:
        """Can the template read a side input that lies like this over the axes of the result?"""
        ...

    @property
    def row_major(self) -> bool:
        """Must the result and full side inputs be row-major, without zeros around them?"""
        ...

    def build(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, target: CpuTarget, epilogue: Epilogue
    ) -> KernelSequence:
        """The kernels for these views; `weight` is None when it is packed."""
        ...

    def pack(self, data: MemoryView, out: MemoryView, target: CpuTarget, weight: np.ndarray) -> Packing:
        """The constant weight as the kernels for these views read it."""
        ...

    def chosen(self, choices: Choices) -> Contraction:
        """The same with numbers of its plan that are chosen, and without minimal products."""
        ...


def contraction_of(call: Call, target: CpuTarget, minimal: bool = True) -> Contraction | None:
    """The contraction that a call of an operator is; None when no template does it.

    `minimal` allows algorithms with fewer products (Winograd's, Strassen's), which round differently.
    """
    make = _CONTRACTIONS.get(call.op.name) if isinstance(call.op, Op) else None
    return make(call, target, minimal) if make else None


# ---- convolutions


class ConvolutionAttrs(Protocol):
    """The attributes that all convolutions have; layouts are letters, numbers one per spatial axis or side."""

    data_layout: str
    out_layout: str
    kernel_layout: str
    strides: Sequence[int]
    dilation: Sequence[int]
    padding: Sequence[int]
    groups: int


class TransposedAttrs(ConvolutionAttrs, Protocol):
    """`ins` and `outs` are the letters of the weight's axes of input and output channels."""

    ins: str
    outs: str


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
class ConvolutionKernel:
    """A convolution, transposed or not, of any rank, layout, stride, dilation and number of groups.

    `method` is "direct", "depthwise", "transposed", or "winograd" and its tile; `weight_axes` bring the weight's axes
    into the order that the template's packer expects.
    """

    call: Call
    spec: ConvSpec
    data_axes: ConvolutionAxes
    out_axes: ConvolutionAxes
    weight_axes: tuple[int, ...]
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
        found = self._template_halo()
        return tuple(found[self.data_order.index(axis)] for axis in range(len(found)))

    def _template_halo(self) -> Halo:
        match self.method:
            case "transposed":
                return needed_transpose_halo(self.spec)
            case "direct":
                return needed_halo(self.spec)
            case "depthwise":  # keep pixels out of each other's cache sets
                channels = self.spec.data.shape[-1]
                gap = channel_pitch(channels, self.spec.data.dtype) - channels
                return (*needed_halo(self.spec)[:-1], (0, gap))
        return needed_winograd_halo(self.spec, self.m)

    def accepts(self, data: MemoryView) -> bool:
        if not _readable(permuted(data, self.data_order), self.spec.data.shape[-1], self.halo(), data):
            return False
        return data.dtype != FACTORS[0] or not supports_conv(self.placed(data, _dense_result(self.call)))

    def out_view(self, out: MemoryView) -> MemoryView:
        return permuted(out, self.out_order)

    def places(self, side: MemoryView) -> bool:
        return True

    @property
    def row_major(self) -> bool:
        return False

    def placed(self, data: MemoryView, out: MemoryView) -> ConvSpec:
        """The spec with the operands where they lie."""
        return replace(self.spec, data=permuted(data, self.data_order), out=permuted(out, self.out_order))

    def build(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, target: CpuTarget, epilogue: Epilogue
    ) -> KernelSequence:
        spec = self.placed(data, out)
        single = {"direct": conv, "depthwise": depthwise, "transposed": conv_transpose}.get(self.method)
        if single is not None:
            return KernelSequence((single(spec, target, epilogue),))
        work = zip(("work0", "work1"), winograd_workspace(spec, self.m))
        return KernelSequence(winograd(spec, self.m, target, epilogue), tuple((role, n) for role, n in work if n))

    def pack(self, data: MemoryView, out: MemoryView, target: CpuTarget, weight: np.ndarray) -> Packing:
        spec, plain = self.placed(data, out), weight.transpose(self.weight_axes)
        if self.method == "transposed":  # [C, OC / groups, *kernel]
            return pack_conv_transpose(spec, target, plain)
        plain = plain.reshape(spec.out.shape[-1], spec.in_channels, *spec.kernel)  # [OC, IC / groups, *kernel]
        match self.method:
            case "direct":
                return pack_conv_weight(spec, target, plain)
            case "depthwise":
                return pack_depthwise(spec, target, plain)
        return pack_winograd(spec, self.m, target, plain)

    def chosen(self, choices: Choices) -> Contraction:
        if self.method == "depthwise" and (other := [name for name, _ in choices if name != "rows"]):
            message = f"a depthwise convolution has no choice `{other[0]}`"
            raise RelayValueError(message, code="schedule.illegal", help="from picked rows=5: the pixels of a tile")
        method = self.method if self.method in ("transposed", "depthwise") else "direct"
        return replace(self, method=method, spec=replace(self.spec, minimal=False, choices=choices))


def _convolution(call: Call, target: CpuTarget, minimal: bool) -> Contraction | None:
    return _convolution_of(call, cast("ConvolutionAttrs", call.attrs), ("O", "I"), target, minimal)


def _transposed_convolution(call: Call, target: CpuTarget, minimal: bool) -> Contraction | None:
    attrs = cast("TransposedAttrs", call.attrs)
    same = (attrs.out_layout or attrs.data_layout) == attrs.data_layout
    return _convolution_of(call, attrs, (attrs.ins, attrs.outs), target, False, True) if same else None


def _convolution_of(
    call: Call,
    attrs: ConvolutionAttrs,
    channels: tuple[str, str],
    target: CpuTarget,
    minimal: bool,
    transposed: bool = False,
) -> ConvolutionKernel | None:
    """The convolution; `channels` are the letters of the weight's outer and inner axis of channels."""
    axes = ConvolutionAxes(attrs.data_layout)
    out_axes = ConvolutionAxes(attrs.out_layout or attrs.data_layout)
    kernel_layout = attrs.kernel_layout
    if not (axes.plain() and out_axes.plain() and sorted(kernel_layout) == sorted(f"OI{axes.space}")):
        return None
    data, weight, out = (tensor_type(e) for e in (*call.args[:2], call))
    kernel = tuple(weight.concrete_shape[kernel_layout.index(c)] for c in axes.space)
    spec = ConvSpec(
        _ideal(data, axes.template),
        _ideal(out, out_axes.template),
        kernel,
        strides=spread(attrs.strides, len(kernel)),
        dilation=spread(attrs.dilation, len(kernel)),
        padding=spread_padding(attrs.padding, len(kernel))[: len(kernel)],
        groups=attrs.groups,
        minimal=minimal,
    )
    needed, supports = (needed_transpose_halo, supports_conv_transpose) if transposed else (needed_halo, supports_conv)
    spec = replace(spec, data=replace(spec.data, halo=needed(spec)))
    dtypes = (data.dtype, weight.dtype, out.dtype)
    if (len(set(dtypes)) > 1 and (transposed or dtypes != FACTORS)) or supports(spec):
        return None
    weight_axes = tuple(kernel_layout.index(c) for c in (*channels, *axes.space))
    method = "transposed" if transposed else _method(spec, target)
    return ConvolutionKernel(call, spec, axes, out_axes, weight_axes, method)


def _method(spec: ConvSpec, target: CpuTarget) -> str:
    """ "depthwise", "direct", or "winograd" and its tile."""
    if not supports_depthwise(spec):
        return "depthwise"
    # Without `minimal` (relay.codegen.winograd: False) nobody asked for other rounding.
    m = choose_winograd(spec, target) if spec.minimal else 0
    return f"winograd{m}" if m else "direct"


def _ideal(type: TensorType, template: Sequence[int]) -> MemoryView:
    """A dense channels-last view of a tensor type, axes as the template has them."""
    shape = type.concrete_shape
    return MemoryView.dense(tuple(shape[axis] for axis in template), type.dtype)


def _dense_result(call: Call) -> MemoryView:
    """Where a result may lie."""
    type = tensor_type(call)
    return MemoryView.dense(type.concrete_shape, type.dtype)


# The input is the broadcast side, one scalar at a time: three channels far apart (an image as it is given) cost less
# than a copy; many would touch a cache line each.
FEW_CHANNELS = 8


def _readable(template: MemoryView, channels: int, halo: Halo, data: MemoryView) -> bool:
    """Enough zeros around it, and channels side by side unless they are few."""
    have = data.halo or ((0, 0),) * len(data.shape)
    zeros = all(h[0] >= w[0] and h[1] >= w[1] for h, w in zip(have, halo)) if halo else True
    return zeros and (template.strides[-1] == 1 or channels <= FEW_CHANNELS)


# ---- matrix products


class MatrixProductAttrs(Protocol):
    """The attributes that all operators of this kind have."""

    transpose_a: bool
    transpose_b: bool


@dataclass(frozen=True, slots=True)
class MatrixProductKernel:
    """dense, matmul and batch_matmul with all transposes."""

    call: Call
    transpose_a: bool
    transpose_b: bool
    minimal: bool = True
    packs: bool = False
    choices: Choices = ()

    @property
    def data_order(self) -> tuple[int, ...]:
        return tuple(range(len(tensor_type(self.call.args[0]).shape)))

    @property
    def out_order(self) -> tuple[int, ...]:
        return tuple(range(len(tensor_type(self.call).shape)))

    @property
    def weight_axes(self) -> tuple[int, ...]:
        return (-1, -2) if self.transpose_b else (-2, -1)

    def halo(self) -> Halo:
        return ()

    def accepts(self, data: MemoryView) -> bool:
        found = _batched(_swapped(data, self.transpose_a))
        if found is None or data.dtype != FACTORS[0]:
            return found is not None
        return not supports_gemm(self.placed(data, None, _dense_result(self.call)))

    def out_view(self, out: MemoryView) -> MemoryView:
        return _flat(out)

    def places(self, side: MemoryView) -> bool:
        return _batched(side) is not None

    @property
    def row_major(self) -> bool:
        return len(self.out_order) > 3

    def placed(self, data: MemoryView, weight: MemoryView | None, out: MemoryView) -> GemmSpec:
        """The spec with the operands where they lie; `weight` is None when it is packed."""
        a, o = _flat(_swapped(data, self.transpose_a)), _flat(out)
        if weight is None:
            shape = tensor_type(self.call.args[1]).concrete_shape
            weight = laid_out(shape, tensor_type(self.call.args[1]).dtype, range(len(shape)))
            b = _flat(_swapped(weight, self.transpose_b))
            return GemmSpec(a, b, o, packed=True, minimal=self.minimal, choices=self.choices)
        return GemmSpec(a, _flat(_swapped(weight, self.transpose_b)), o, packed=False, choices=self.choices)

    def build(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, target: CpuTarget, epilogue: Epilogue
    ) -> KernelSequence:
        return KernelSequence((gemm(self.placed(data, weight, out), target, epilogue),))

    def pack(self, data: MemoryView, out: MemoryView, target: CpuTarget, weight: np.ndarray) -> Packing:
        matrix = weight.swapaxes(-1, -2) if self.transpose_b else weight
        matrix = matrix if matrix.ndim == 3 else matrix[None]
        return pack_gemm(self.placed(data, None, out), target, matrix)

    def chosen(self, choices: Choices) -> Contraction:
        return replace(self, minimal=False, choices=choices)


def _swapped(view: MemoryView, transpose: bool) -> MemoryView:
    rank = len(view.shape)
    return permuted(view, (*range(rank - 2), rank - 1, rank - 2)) if transpose else view


def _batched(view: MemoryView) -> MemoryView | None:
    """The view with three axes: leading ones merged, or of extent 1 in front; None if they do not lie evenly."""
    while len(view.shape) < 3:
        view = with_front(view)
    return view if len(view.shape) == 3 else merged_front(view, 2)


def _flat(view: MemoryView) -> MemoryView:
    """`_batched` for a view that the planner has found to lie evenly."""
    found = _batched(view)
    if found is None:
        raise RelayError("a matrix product was given an operand with gaps", code="codegen.operand")
    return found


def _product(call: Call, target: CpuTarget, minimal: bool) -> Contraction | None:
    left, right, out = (tensor_type(e) for e in (*call.args[:2], call))
    attrs = cast("MatrixProductAttrs", call.attrs)
    dtypes = (left.dtype, right.dtype, out.dtype)
    if (len(set(dtypes)) > 1 and dtypes != FACTORS) or len(left.shape) < 2:
        return None
    packs = dtypes == FACTORS
    product = MatrixProductKernel(call, bool(attrs.transpose_a), bool(attrs.transpose_b), minimal, packs)
    data, weight, result = (MemoryView.dense(t.concrete_shape, t.dtype) for t in (left, right, out))
    return None if supports_gemm(product.placed(data, None if packs else weight, result)) else product


_CONTRACTIONS = {
    **{f"nn.conv{rank}d": _convolution for rank in (1, 2, 3)},
    **{f"nn.conv{rank}d_transpose": _transposed_convolution for rank in (1, 2, 3)},
    **dict.fromkeys(("nn.dense", "nn.matmul", "nn.batch_matmul"), _product),
}
