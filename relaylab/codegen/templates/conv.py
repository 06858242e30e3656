"""Direct convolution over channels-last tensors: 1, 2 or 3 spatial axes, strides, dilation, groups, any kernel.

The input view carries a halo of zeros, so no bounds are checked. Neighbouring kernel columns and input channels form
one reduction loop, which makes this the register tile of the matrix product with output pixels as rows.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence
from relaylab.codegen.templates.byte_products import FACTORS, in_words, uneven_words
from relaylab.codegen.templates.convolution_family import CONVOLUTIONS, ConvolutionFamily, ConvSpec
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.pack import Packing, WeightPacking, tap_matrix
from relaylab.codegen.templates.problem import UNIT, Border, OutputAxis, Problem, Tap, Weights, merge_axes, merge_taps
from relaylab.codegen.templates.product_family import (
    contractions,
    pack_weights,
    packing_of,
    product_cycles,
    product_reasons,
)
from relaylab.codegen.templates.schedule import CHOICES


def contraction_of(
    spec: ConvSpec, pixels: Sequence[OutputAxis], taps: Sequence[Tap], corner: int, first: int = 0, start: int = 0
) -> Problem:
    """The sums over some taps and all input channels, for some pixels of every image.

    The first tap of the first pixel is `corner` elements from where the data begin, its result `first` from where the
    output does, and its weight `start` from where the packed ones do.
    """
    data, out = spec.data, spec.out
    images = OutputAxis(out.shape[0], data.strides[0], out.strides[0], 0, out.shape[:1])
    return Problem(
        data.dtype,
        out.dtype,
        UNIT if spec.groups == 1 else OutputAxis(spec.groups, spec.in_channels * data.strides[-1], 0),
        merge_axes([images, *pixels]),
        merge_taps([*taps, Tap(spec.in_channels, data.strides[-1])]),
        spec.out_channels,
        channel=spec.out_channels,
        channels=out.shape[-1],
        x_start=data.offset + corner,
        out_start=out.offset + first,
        out_column=out.strides[-1],
        choices=spec.choices,
        minimal=spec.minimal,
        weights=Weights(start=start, constant=spec.weight is None),
    )


@lru_cache(maxsize=1024)
def conv_problem(spec: ConvSpec) -> Problem:
    """The convolution as a contraction."""
    steps = spec.data.strides[1:-1]
    spatial = zip(spec.out.shape[1:-1], steps, spec.strides, spec.out.strides[1:-1])
    pixels = [OutputAxis(n, x * s, o, 0, (n,)) for n, x, s, o in spatial]
    taps = [Tap(k, x * d) for k, x, d in zip(spec.kernel, steps, spec.dilation)]
    problem = contraction_of(spec, pixels, taps, -sum(p * x for p, x in zip(spec.padding, steps)))
    kept = list(problem.taps)
    for k, (tap, pixel) in enumerate(zip(taps, pixels)):
        border = _border(spec, k, problem.rows, pixel)
        if tap in kept[:-1] and border is not None:
            kept[kept.index(tap)] = replace(tap, border=border)
    return in_words(replace(problem, taps=tuple(kept)))


def _border(spec: ConvSpec, k: int, rows: Sequence[OutputAxis], pixel: OutputAxis) -> Border | None:
    """The zeros around a spatial axis; None where there are none, or where its pixels are walked with others."""
    at = [r for r, row in enumerate(rows) if (row.extent, row.x) == (pixel.extent, pixel.x)]
    border = _zeros_around(spec, k, at[0]) if len(at) == 1 else None
    return border if border and border.reads_zeros(pixel.extent, spec.kernel[k]) else None


def _zeros_around(spec: ConvSpec, k: int, row: int = 0) -> Border:
    """Where a spatial axis, which is that row axis, reads zeros."""
    return Border(row, spec.strides[k], spec.dilation[k], spec.padding[k], spec.data.shape[k + 1])


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
        inside = 1.0
        for k, (pixels, taps) in enumerate(zip(spec.out.shape[1:-1], spec.kernel)):
            if spec.dilation[k] > 1:  # taps that are far apart often read zeros only: those are left out
                inside *= _zeros_around(spec, k).inside(pixels, taps)
        return inside * product_cycles(conv_problem(spec), target) + self.packing_cycles(spec, target)

    def reasons(self, spec: ConvSpec, target: CpuTarget) -> list[str]:
        return product_reasons(conv_problem(spec), target)

    def kernels(self, spec: ConvSpec, target: CpuTarget, epilogue: Epilogue) -> KernelSequence:
        problems = (conv_problem(spec),)
        return KernelSequence((contractions("conv", problems, target, epilogue, spec.roles, spec.bytes),))

    def pack(self, spec: ConvSpec, target: CpuTarget, weight: np.ndarray) -> Packing:
        grouped = weight.reshape(spec.groups, spec.out_channels, *weight.shape[1:])
        return pack_weights(conv_problem(spec), target, tap_matrix(grouped))

    def packing(self, spec: ConvSpec, target: CpuTarget) -> WeightPacking:
        return packing_of(conv_problem(spec), target)


DIRECT = CONVOLUTIONS.declare(Direct())
