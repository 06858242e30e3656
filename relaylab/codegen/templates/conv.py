"""Direct convolution over channels-last tensors: 1, 2 or 3 spatial axes, strides, dilation, groups, any kernel.

The input view carries a halo of zeros, so no bounds are checked. Neighbouring kernel columns and input channels form
one reduction loop, which makes this the register tile of the matrix product with output pixels as rows.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence
from relaylab.codegen.templates.byte_products import FACTORS, in_words, uneven_words
from relaylab.codegen.templates.chosen import CHOICES
from relaylab.codegen.templates.convolution_family import CONVOLUTIONS, ConvolutionFamily, ConvSpec
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.pack import Packing, WeightPacking, conv_matrix
from relaylab.codegen.templates.problem import UNIT, OutputAxis, Problem, Tap, Weights, merge_axes, merge_taps
from relaylab.codegen.templates.product_family import (
    contractions,
    pack_weights,
    packing_of,
    product_cycles,
    product_reasons,
)


def pixel_axes(spec: ConvSpec, steps: Sequence[int]) -> list[OutputAxis]:
    """The batch and output pixel axes; a step along a spatial axis moves the input by `steps` elements of it."""
    batch = OutputAxis(spec.out.shape[0], spec.data.strides[0], spec.out.strides[0], 0, spec.out.shape[:1])
    spatial = zip(spec.out.shape[1:-1], spec.data.strides[1:-1], spec.out.strides[1:-1], steps)
    return [batch, *(OutputAxis(n, x * step, o, 0, (n,)) for n, x, o, step in spatial)]


@lru_cache(maxsize=1024)
def conv_problem(spec: ConvSpec) -> Problem:
    """The convolution as a contraction."""
    data = spec.data
    taps = [Tap(k, x * d) for k, x, d in zip(spec.kernel, data.strides[1:-1], spec.dilation)]
    taps.append(Tap(spec.in_channels, data.strides[-1]))
    start = data.offset - sum(p * x for p, x in zip(spec.padding, data.strides[1:-1]))
    member = UNIT if spec.groups == 1 else OutputAxis(spec.groups, spec.in_channels * data.strides[-1], 0)
    found = Problem(
        data.dtype,
        spec.out.dtype,
        member,
        merge_axes(pixel_axes(spec, spec.strides)),
        merge_taps(taps),
        spec.out_channels,
        channel=spec.out_channels,
        channels=spec.out.shape[-1],
        x_start=start,
        out_start=spec.out.offset,
        out_column=spec.out.strides[-1],
        choices=spec.choices,
        minimal=spec.minimal,
        weights=Weights(constant=spec.weight is None),
    )
    return in_words(found)


class Direct(ConvolutionFamily):
    """One contraction."""

    name = "direct"
    title = "convolution"
    choices = frozenset(CHOICES)
    inputs = True

    def declines(self, spec: ConvSpec, target: CpuTarget) -> str:
        if spec.data.dtype != FACTORS[0] or spec.weight is not None:
            return super().declines(spec, target)
        return self.unfit(spec) or uneven_words(conv_problem(spec))

    def cycles(self, spec: ConvSpec, target: CpuTarget) -> float:
        return product_cycles(conv_problem(spec), target) + self.packing_cycles(spec, target)

    def reasons(self, spec: ConvSpec, target: CpuTarget) -> list[str]:
        return product_reasons(conv_problem(spec), target)

    def kernels(self, spec: ConvSpec, target: CpuTarget, epilogue: Epilogue) -> KernelSequence:
        problem = conv_problem(spec)
        weights = problem.depth * problem.columns * spec.groups * spec.data.itemsize
        traffic = spec.data.bytes + weights + spec.out.bytes
        return KernelSequence((contractions("conv", (problem,), target, epilogue, spec.roles, traffic),))

    def pack(self, spec: ConvSpec, target: CpuTarget, weight: np.ndarray) -> Packing:
        return pack_weights(conv_problem(spec), target, conv_matrix(weight, spec.groups))

    def packing(self, spec: ConvSpec, target: CpuTarget) -> WeightPacking:
        return packing_of(conv_problem(spec), target)


DIRECT = CONVOLUTIONS.declare(Direct())
