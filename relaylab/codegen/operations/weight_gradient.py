"""The gradient of a convolution with respect to its weight as a contraction: pixels are what is summed over.

    result[*k, i, o] = sum over images n, pixels p of  data[n, p * strides + k * dilation - padding, i] * grad[n, p, o]

Rows are taps x input channels, read where they lie with zeros around the image; columns are output channels. The
gradient is laid out in panels by a kernel before, whatever its layout.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView
from relaylab.codegen.kernels.views import Halo, permuted
from relaylab.codegen.network.network import tensor_type
from relaylab.codegen.operations.contraction import Contraction
from relaylab.codegen.operations.convolution import LEAST_PIXELS, ConvolutionAttrs, ConvolutionAxes, convolution_spec
from relaylab.codegen.templates import ConvSpec, Epilogue
from relaylab.codegen.templates.convolution_family import merged_digits, needed_halo
from relaylab.codegen.templates.pack import Packing, WeightMatrix
from relaylab.codegen.templates.problem import (
    DTYPES,
    UNIT,
    Choices,
    OutputAxis,
    Problem,
    Tap,
    Weights,
    merge_axes,
    merge_taps,
)
from relaylab.codegen.templates.product_family import contractions, pack_weights, packing_of
from relaylab.ir import Call

LEAST_COLUMNS = 2  # output channels of a group: one alone has nothing to share rows with


@dataclass(frozen=True, slots=True)
class WeightGradient(Contraction):
    """conv2d_backward_weight; the `out` of its spec is the gradient of the convolution's result."""

    call: Call
    spec: ConvSpec
    data_axes: ConvolutionAxes
    weight_axes: tuple[int, ...]
    out_order: tuple[int, ...]
    packs: bool = False

    @property
    def args(self) -> tuple[int, int]:
        return 1, 0

    @property
    def data_order(self) -> tuple[int, ...]:
        return self.data_axes.template

    def halo(self) -> Halo:
        return self.data_axes.own(needed_halo(self.spec))

    def accepts(self, data: MemoryView) -> bool:
        return self.data_axes.readable(data, self.halo())

    def problem(self, data: MemoryView, out: MemoryView, constant: bool) -> Problem:
        """The contraction for these views; a `constant` gradient is laid out when the program is built."""
        spec, x, result = self.spec, permuted(data, self.data_order), self.out_view(out)
        steps = [step * d for step, d in zip(x.strides[1:-1], spec.dilation)]
        rows = [OutputAxis(n, s, o, 0, (n,)) for n, s, o in zip(result.shape, (*steps, x.strides[-1]), result.strides)]
        taps = [Tap(spec.out.shape[0], x.strides[0])]
        taps += [Tap(n, step * s) for n, step, s in zip(spec.out.shape[1:], x.strides[1:-1], spec.strides)]
        return Problem(
            x.dtype,
            result.dtype,
            UNIT if spec.groups == 1 else OutputAxis(spec.groups, spec.in_channels * x.strides[-1], 0),
            merge_axes(rows),
            merge_taps(taps),
            spec.out_channels,
            channel=spec.out_channels,
            channels=spec.out.shape[-1],
            x_start=x.offset - sum(p * step for p, step in zip(spec.padding, x.strides[1:-1])),
            out_start=result.offset,
            out_column=result.strides[-1],
            weights=Weights(constant=constant),
            choices=spec.choices,
            minimal=spec.minimal,
        )

    def build(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, target: CpuTarget, epilogue: Epilogue
    ) -> KernelSequence:
        problem, roles = self.problem(data, out, weight is None), ("in0", "weight0", "out0")
        traffic = data.bytes + self.spec.out.bytes + out.bytes
        kernel = contractions("conv_backward_weight", (problem,), target, epilogue, roles, traffic)
        if weight is None:
            return KernelSequence((kernel,))
        before, work = packing_of(problem, target).kernels(self._matrix(weight), target)
        return KernelSequence((*before, kernel), work)

    def _matrix(self, grad: MemoryView) -> MemoryView:
        """The gradient as [groups, digits of images x pixels, O / groups]."""
        view, columns = permuted(grad, self.weight_axes), self.spec.out_channels
        counts, steps = merged_digits(zip(view.shape[:-1], view.strides[:-1]))
        shape, strides = (self.spec.groups, *counts, columns), (columns * view.strides[-1], *steps, view.strides[-1])
        return replace(view, shape=shape, strides=strides)

    def pack(self, data: MemoryView, out: MemoryView, target: CpuTarget, weight: np.ndarray) -> Packing:
        pixels = weight.transpose(self.weight_axes).reshape(-1, self.spec.groups, self.spec.out_channels)
        return pack_weights(self.problem(data, out, True), target, WeightMatrix.of(pixels.swapaxes(0, 1)))

    def chosen(self, choices: Choices) -> Contraction:
        return replace(self, spec=replace(self.spec, minimal=False, choices=choices))


def weight_gradient_of(call: Call, target: CpuTarget, minimal: bool) -> Contraction | None:
    """The contraction that a call of conv2d_backward_weight is; None where no template computes it."""
    attrs = cast("ConvolutionAttrs", call.attrs)
    grad, data, out = (tensor_type(e) for e in (*call.args[:2], call))
    described = convolution_spec(attrs, data, grad, out, minimal)
    if described is None or len({grad.dtype, data.dtype, out.dtype}) > 1 or data.dtype not in DTYPES:
        return None
    axes, grad_axes, spec = described
    if 0 in (*out.concrete_shape, *grad.concrete_shape, *data.concrete_shape) or spec.out_channels < LEAST_COLUMNS:
        return None
    if math.prod(spec.out.shape[:-1]) < LEAST_PIXELS:
        return None
    order = tuple(attrs.kernel_layout.index(c) for c in (*axes.space, "I", "O"))
    return WeightGradient(call, spec, axes, grad_axes.template, order)
