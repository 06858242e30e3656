"""Convolutions as contractions, transposed or not: the views they need, the family that computes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView
from relaylab.codegen.kernels.views import Halo, permuted
from relaylab.codegen.network.network import tensor_type
from relaylab.codegen.operations.contraction import Contraction, dense_view
from relaylab.codegen.operations.pixel_product import PixelProduct, pixel_product_of
from relaylab.codegen.templates import CONVOLUTIONS, TRANSPOSED, ConvolutionFamily, ConvSpec, Epilogue
from relaylab.codegen.templates.byte_products import FACTORS
from relaylab.codegen.templates.convolution_family import missing_halo
from relaylab.codegen.templates.family import FamilyTable
from relaylab.codegen.templates.pack import Packing
from relaylab.codegen.templates.problem import Choices
from relaylab.ir import Call, TensorType
from relaylab.loop.region import dense_strides
from relaylab.op.window import spread, spread_padding
from relaylab.support.errors import RelayValueError

# The input is the broadcast side, one scalar at a time: three channels far apart (an image as it is given) cost less
# than a copy; many would touch a cache line each.
FEW_CHANNELS = 8
LEAST_PIXELS = 16  # that weights are laid out for while the program runs
SPACES = ("W", "HW", "DHW")


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

    def own(self, halo: Halo) -> Halo:
        """The zeros around the template's axes [batch, *space, channels] as those around the operator's."""
        return tuple(halo[self.template.index(axis)] for axis in range(len(halo)))

    def channels_last(self, type: TensorType) -> MemoryView:
        """A dense view of a tensor type, axes as the template has them."""
        return MemoryView.dense(tuple(type.concrete_shape[axis] for axis in self.template), type.dtype)

    def readable(self, data: MemoryView, halo: Halo) -> bool:
        """Has the data enough zeros around it, and channels side by side unless they are few?"""
        channel = self.template[-1]
        return not missing_halo(data, halo) and (data.strides[channel] == 1 or data.shape[channel] <= FEW_CHANNELS)

    def plain(self) -> bool:
        """Is it a permutation of batch, channels and one to three spatial axes?"""
        return sorted(self.layout) == sorted(f"NC{self.space}") and self.space in SPACES


@dataclass(frozen=True, slots=True)
class ChannelsLastContraction(Contraction):
    """A contraction of images whose template has channels last. `weight_axes` bring the weight's axes into the order
    that it expects.
    """

    call: Call
    data_axes: ConvolutionAxes
    out_axes: ConvolutionAxes
    weight_axes: tuple[int, ...]

    @property
    def data_order(self) -> tuple[int, ...]:
        return self.data_axes.template

    @property
    def out_order(self) -> tuple[int, ...]:
        return self.out_axes.template


@dataclass(frozen=True, slots=True)
class ConvolutionKernel(ChannelsLastContraction):
    """A convolution, transposed or not, of any rank, layout, stride, dilation and number of groups.

    `family` computes it; of its `spec` the zeros around the data are not known.
    """

    spec: ConvSpec
    family: ConvolutionFamily
    target: CpuTarget
    transposed: bool = False

    @property
    def packs(self) -> bool:
        return self.spec.weight is None

    def halo(self) -> Halo:
        return self.data_axes.own(self.family.halo(self.spec))

    def accepts(self, data: MemoryView) -> bool:
        readable = self.data_axes.readable(data, self.halo())
        return readable and not self.family.declines(self.placed(data, dense_view(self.call)), self.target)

    def placed(self, data: MemoryView, out: MemoryView, weight: MemoryView | None = None) -> ConvSpec:
        """The spec with the operands where they lie; `weight` is None when it is packed."""
        data, out = permuted(data, self.data_order), permuted(out, self.out_order)
        weight = self.spec.weight if weight is None else permuted(weight, self.weight_axes)
        return replace(self.spec, data=data, out=out, weight=weight)

    def lying(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, sides: Sequence[MemoryView]
    ) -> Contraction:
        if self.transposed:
            return self
        spec = self.placed(data, out)
        pixels = PixelProduct(self.call, self.weight_axes, (self.data_order, self.out_order), spec.choices)
        cycles = self.family.cycles(self.spec, self.target)
        return pixel_product_of(pixels, spec, sides, self.target, cycles) or self

    def with_input(self) -> Contraction | None:
        shape, spec = tensor_type(self.call.args[1]).concrete_shape, self.spec
        plain = (spec.out.shape[-1], spec.in_channels, *spec.kernel)
        if self.transposed:
            plain = (spec.data.shape[-1], spec.out_channels, *spec.kernel)
        if tuple(shape[axis] for axis in self.weight_axes) != plain:
            return None
        # As the pass for layouts leaves it: output channels side by side.
        first, second = (plain[1], 1) if self.transposed else (1, plain[0])
        strides = (first, second, *(step * plain[0] * plain[1] for step in dense_strides(spec.kernel)))
        spec = replace(spec, weight=MemoryView(spec.data.dtype, plain, strides))
        found = _families(self.transposed).choose(spec, self.target)
        # Weights that few pixels meet are read once by other loops too.
        if found is None or math.prod(spec.out.shape[:-1]) < LEAST_PIXELS:
            return None
        return replace(self, family=found, spec=spec)

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
        other = [name for name, _ in choices if name not in found.choices]
        if other:
            raise RelayValueError(
                f"a kernel of the family `{found.name}` has no choice `{other[0]}`",
                code="schedule.illegal",
                help=f"its choices are {', '.join(sorted(found.choices))}" if found.choices else "",
            )
        return replace(self, family=found, spec=replace(exact, choices=choices))


def _families(transposed: bool) -> FamilyTable[ConvSpec, ConvolutionFamily]:
    return TRANSPOSED if transposed else CONVOLUTIONS


def convolution_of(call: Call, target: CpuTarget, minimal: bool) -> Contraction | None:
    """The contraction of a call of conv1d, conv2d or conv3d; None where no template computes it."""
    return _convolution_by(call, cast("ConvolutionAttrs", call.attrs), ("O", "I"), target, minimal)


def transposed_convolution_of(call: Call, target: CpuTarget, minimal: bool) -> Contraction | None:
    """The contraction of a call of a transposed convolution; None where no template computes it."""
    attrs = cast("TransposedAttrs", call.attrs)
    same = (attrs.out_layout or attrs.data_layout) == attrs.data_layout
    return _convolution_by(call, attrs, (attrs.ins, attrs.outs), target, minimal, True) if same else None


def _convolution_by(
    call: Call,
    attrs: ConvolutionAttrs,
    channels: tuple[str, str],
    target: CpuTarget,
    minimal: bool,
    transposed: bool = False,
) -> ConvolutionKernel | None:
    """The convolution; `channels` are the letters of the weight's outer and inner axis of channels."""
    data, weight, out = (tensor_type(e) for e in (*call.args[:2], call))
    described = convolution_spec(attrs, data, out, weight, minimal)
    dtypes = (data.dtype, weight.dtype, out.dtype)
    # Unsigned bytes are read by products of bytes only, whose sums are wide.
    alike = len(set(dtypes)) == 1 and data.dtype != FACTORS[0]
    if described is None or not (alike or dtypes == FACTORS):
        return None
    axes, out_axes, spec = described[0], described[1], described[2].anywhere()  # it is laid out after this choice
    found = _families(transposed).choose(spec, target)
    if found is None:
        return None
    weight_axes = tuple(attrs.kernel_layout.index(c) for c in (*channels, *axes.space))
    return ConvolutionKernel(call, axes, out_axes, weight_axes, spec, found, target, transposed)


def convolution_spec(
    attrs: ConvolutionAttrs, data: TensorType, out: TensorType, weight: TensorType, minimal: bool
) -> tuple[ConvolutionAxes, ConvolutionAxes, ConvSpec] | None:
    """The axes of data and result, and the spec with both channels last; None of layouts that no template takes."""
    axes, out_axes = ConvolutionAxes(attrs.data_layout), ConvolutionAxes(attrs.out_layout or attrs.data_layout)
    if not (axes.plain() and out_axes.plain() and sorted(attrs.kernel_layout) == sorted(f"OI{axes.space}")):
        return None
    kernel = tuple(weight.concrete_shape[attrs.kernel_layout.index(c)] for c in axes.space)
    spec = ConvSpec(
        axes.channels_last(data),
        out_axes.channels_last(out),
        kernel,
        strides=spread(attrs.strides, len(kernel)),
        dilation=spread(attrs.dilation, len(kernel)),
        padding=spread_padding(attrs.padding, len(kernel))[: len(kernel)],
        groups=attrs.groups,
        minimal=minimal,
    )
    return axes, out_axes, spec
