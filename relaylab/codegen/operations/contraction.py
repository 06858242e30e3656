"""Convolutions and matrix products as template kernels: the views they need, how weights are packed, which one pays.

`contraction_of(call)` gives a `Contraction` for a call of a convolution or matrix product, or None for what the
templates do not do. Its methods speak of the operator's own axes; the views that they hand to the templates are
permuted to [batch, *space, channels].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView, dense_strides
from relaylab.codegen.kernels.views import Halo, laid_out, merged_front, permuted, with_front
from relaylab.codegen.network.network import tensor_type
from relaylab.codegen.templates import (
    CONVOLUTIONS,
    PRODUCTS,
    TRANSPOSED,
    ConvolutionFamily,
    ConvSpec,
    Epilogue,
    GemmSpec,
    gemm_kernels,
    pack_gemm,
    supports_gemm,
)
from relaylab.codegen.templates.byte_products import FACTORS
from relaylab.codegen.templates.family import FamilyTable
from relaylab.codegen.templates.pack import Packing
from relaylab.codegen.templates.problem import Choices
from relaylab.ir import Call, Op, TensorType
from relaylab.op.window import spread, spread_padding
from relaylab.support.errors import RelayError, RelayValueError

LEAST_PIXELS = 16  # that weights are laid out for while the program runs
SPACES = ("W", "HW", "DHW")
Shape = tuple[int, ...]


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

    def with_input(self) -> Contraction | None:
        """The same for a weight that is an input, of what `packs`; None where there is none."""
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


def families_are_own() -> bool:
    """Are all families of kernels the house's own? The code of others may change between two builds."""
    return CONVOLUTIONS.own and TRANSPOSED.own and PRODUCTS.own


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

    `family` computes it; of its `spec` the zeros around the data are not known. `weight_axes` bring the weight's axes
    into the order that families expect.
    """

    call: Call
    spec: ConvSpec
    data_axes: ConvolutionAxes
    out_axes: ConvolutionAxes
    weight_axes: tuple[int, ...]
    family: ConvolutionFamily
    target: CpuTarget
    transposed: bool = False

    @property
    def packs(self) -> bool:
        return self.spec.weight is None

    @property
    def data_order(self) -> tuple[int, ...]:
        return self.data_axes.template

    @property
    def out_order(self) -> tuple[int, ...]:
        return self.out_axes.template

    def halo(self) -> Halo:
        found = self.family.halo(self.spec)
        return tuple(found[self.data_order.index(axis)] for axis in range(len(found)))

    def accepts(self, data: MemoryView) -> bool:
        if not _readable(permuted(data, self.data_order), self.spec.data.shape[-1], self.halo(), data):
            return False
        return not self.family.declines(self.placed(data, _dense_result(self.call)), self.target)

    def out_view(self, out: MemoryView) -> MemoryView:
        return permuted(out, self.out_order)

    def places(self, side: MemoryView) -> bool:
        return True

    @property
    def row_major(self) -> bool:
        return False

    def placed(self, data: MemoryView, out: MemoryView, weight: MemoryView | None = None) -> ConvSpec:
        """The spec with the operands where they lie; `weight` is None when it is packed."""
        data, out = permuted(data, self.data_order), permuted(out, self.out_order)
        weight = self.spec.weight if weight is None else permuted(weight, self.weight_axes)
        return replace(self.spec, data=data, out=out, weight=weight)

    def with_input(self) -> Contraction | None:
        shape, spec = tensor_type(self.call.args[1]).concrete_shape, self.spec
        plain = (spec.out.shape[-1], spec.in_channels, *spec.kernel)
        if self.transposed or tuple(shape[axis] for axis in self.weight_axes) != plain:
            return None
        # As the pass for layouts leaves it: output channels side by side.
        strides = (1, plain[0], *(step * plain[0] * plain[1] for step in dense_strides(spec.kernel)))
        spec = replace(spec, weight=MemoryView(spec.data.dtype, plain, strides))
        found = CONVOLUTIONS.choose(spec, self.target)
        # Weights that few pixels meet are read once by other loops too.
        if found is None or math.prod(spec.out.shape[:-1]) < LEAST_PIXELS:
            return None
        return replace(self, family=found.family, spec=spec)

    def build(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, target: CpuTarget, epilogue: Epilogue
    ) -> KernelSequence:
        return self.family.build(self.placed(data, out, weight), target, epilogue)

    def pack(self, data: MemoryView, out: MemoryView, target: CpuTarget, weight: np.ndarray) -> Packing:
        spec, plain = self.placed(data, out), weight.transpose(self.weight_axes)
        if not self.transposed:  # outer channels may be two axes
            plain = plain.reshape(spec.out.shape[-1], spec.in_channels, *spec.kernel)
        return self.family.pack(spec, target, plain)

    def alternatives(self) -> list[str]:
        """The families that were considered, as lines of text."""
        return _families(self.transposed).table(self.spec, self.target, self.family)

    def chosen(self, choices: Choices) -> Contraction:
        exact = replace(self.spec, minimal=False)
        found = _families(self.transposed).choose(exact, self.target)
        if found is None:
            raise RelayValueError(f"no other family does what {self.family.name} does", code="schedule.illegal")
        other = [name for name, _ in choices if name not in found.family.choices]
        if other:
            raise RelayValueError(
                f"a kernel of the family `{found.family.name}` has no choice `{other[0]}`",
                code="schedule.illegal",
                help=f"its choices are {', '.join(sorted(found.family.choices))}" if found.family.choices else "",
            )
        return replace(self, family=found.family, spec=replace(exact, choices=choices))


def _families(transposed: bool) -> FamilyTable[ConvSpec, ConvolutionFamily]:
    return TRANSPOSED if transposed else CONVOLUTIONS


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
    ).anywhere()  # the planner lays the data out after this choice
    dtypes = (data.dtype, weight.dtype, out.dtype)
    found = None if len(set(dtypes)) > 1 and dtypes != FACTORS else _families(transposed).choose(spec, target)
    if found is None:
        return None
    weight_axes = tuple(kernel_layout.index(c) for c in (*channels, *axes.space))
    return ConvolutionKernel(call, spec, axes, out_axes, weight_axes, found.family, target, transposed)


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
        b = _flat(_swapped(weight, self.transpose_b))
        return GemmSpec(a, b, o, packed=False, minimal=self.minimal, choices=self.choices)

    def build(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, target: CpuTarget, epilogue: Epilogue
    ) -> KernelSequence:
        return gemm_kernels(self.placed(data, weight, out), target, epilogue)

    def pack(self, data: MemoryView, out: MemoryView, target: CpuTarget, weight: np.ndarray) -> Packing:
        matrix = weight.swapaxes(-1, -2) if self.transpose_b else weight
        matrix = matrix if matrix.ndim == 3 else matrix[None]
        return pack_gemm(self.placed(data, None, out), target, matrix)

    def with_input(self) -> Contraction | None:
        return None

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
