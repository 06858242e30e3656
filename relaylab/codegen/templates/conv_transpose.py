"""Transposed convolution over channels-last tensors: any stride, padding, output padding, dilation and groups.

Output pixels with the same remainder modulo the stride use the same taps, so each such phase is a direct convolution
of stride one that writes every stride-th pixel. Nothing is scattered and no zeros are multiplied.

    out[n, *o, c] = sum of data[n, *i, k] * w[k, c, t] over k and all i, t with i * strides + t * dilation - padding = o

The spec is that of a convolution; the extents of `out` include any output padding.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView
from relaylab.codegen.kernels.views import Halo
from relaylab.codegen.templates.conv import contraction_of
from relaylab.codegen.templates.convolution_family import TRANSPOSED, ConvolutionFamily, ConvSpec
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.family import generation
from relaylab.codegen.templates.minimal import Filtering
from relaylab.codegen.templates.pack import PackedBlock, Packing, WeightPacking, tap_matrix
from relaylab.codegen.templates.problem import OutputAxis, Problem, Tap
from relaylab.codegen.templates.product_family import contractions, pack_weights, product_cycles, product_of
from relaylab.codegen.templates.schedule import CHOICES
from relaylab.codegen.templates.winograd import (
    TapRow,
    WinogradShape,
    pack_winograd,
    phase_taps,
    transposed_shape,
    turned_taps,
    whole_taps,
)
from relaylab.codegen.templates.winograd_kernel import MINIMAL, MinimalFiltering


@dataclass(frozen=True, slots=True)
class Phase:
    """Along one axis: outputs `first`, `first + stride`, ... (`count` of them) use taps `tap`, `tap + every`, ....

    Output number q reads input pixel `q + source - m * back` for its m-th tap.
    """

    first: int
    count: int
    tap: int
    every: int
    taps: int
    source: int
    back: int


def phases(out: int, kernel: int, stride: int, dilation: int, padding: int) -> list[Phase]:
    """The phases of one spatial axis; together they cover every output once."""
    every = stride // math.gcd(stride, dilation)
    found = []
    for first in range(min(stride, out)):
        fitting = [t for t in range(kernel) if (first + padding - t * dilation) % stride == 0]
        tap = fitting[0] if fitting else 0
        source = (first + padding - tap * dilation) // stride if fitting else 0
        found.append(
            Phase(first, -(-(out - first) // stride), tap, every, len(fitting), source, dilation * every // stride)
        )
    return found


def axis_phases(spec: ConvSpec) -> list[list[Phase]]:
    """The phases of every spatial axis."""
    axes = zip(spec.out.shape[1:-1], spec.kernel, spec.strides, spec.dilation, spec.padding)
    return [phases(*axis) for axis in axes]


def _problems(spec: ConvSpec, target: CpuTarget) -> tuple[tuple[tuple[Phase, ...], Problem], ...]:
    """Every combination of phases with its contraction; their packed weights follow each other."""
    return _known_problems(spec, target, generation())


@lru_cache(maxsize=256)
def _known_problems(
    spec: ConvSpec, target: CpuTarget, generation: int
) -> tuple[tuple[tuple[Phase, ...], Problem], ...]:
    start, found = 0, []
    for combination in itertools.product(*axis_phases(spec)):
        problem = _problem(spec, combination, start)
        found.append((combination, problem))
        start += product_of(problem, target).packed(problem, target)
    return tuple(found)


def transpose_problems(spec: ConvSpec, target: CpuTarget) -> list[Problem]:
    """The convolutions of stride 1 that a transposed convolution is, one per phase of the strides."""
    return [problem for _, problem in _problems(spec, target)]


def _problem(spec: ConvSpec, combination: tuple[Phase, ...], start: int) -> Problem:
    out, corner, target = spec.out, 0, 0
    pixels, taps = list[OutputAxis](), list[Tap]()
    for axis, (phase, stride) in enumerate(zip(combination, spec.strides), start=1):
        x, o = spec.data.strides[axis], out.strides[axis]
        pixels.append(OutputAxis(phase.count, x, o * stride, 0, (out.shape[axis],), stride, phase.first))
        taps.append(Tap(phase.taps, -phase.back * x))
        corner += phase.source * x
        target += phase.first * o
    exact = replace(spec, minimal=False)  # what has fewer products is another family
    return contraction_of(exact, pixels, taps, corner, target, start)


class Transposed(ConvolutionFamily):
    """A direct convolution for each phase."""

    name = "phases"
    title = "transposed convolution"
    choices = frozenset(CHOICES)
    inputs = True

    def reads(self, spec: ConvSpec) -> Halo:
        found = [(0, 0)]
        for extent, options in zip(spec.data.shape[1:-1], axis_phases(spec)):
            used = [phase for phase in options if phase.taps]
            low = min((p.source - (p.taps - 1) * p.back for p in used), default=0)
            high = max((p.count - 1 + p.source for p in used), default=0)
            found.append((max(0, -low), max(0, high - (extent - 1))))
        return (*found, (0, 0))

    def declines(self, spec: ConvSpec, target: CpuTarget) -> str:
        return "an empty extent" if 0 in spec.data.shape else super().declines(spec, target)

    def cycles(self, spec: ConvSpec, target: CpuTarget) -> float:
        products = sum(product_cycles(problem, target) for problem in transpose_problems(spec, target))
        return products + self.packing_cycles(spec, target)

    def reasons(self, spec: ConvSpec, target: CpuTarget) -> list[str]:
        problems = transpose_problems(spec, target)
        return [
            f"it is {len(problems)} convolutions of stride 1, one per phase of the stride",
            *(line for problem in problems for line in product_of(problem, target).reasons(problem, target)),
        ]

    def kernels(self, spec: ConvSpec, target: CpuTarget, epilogue: Epilogue) -> KernelSequence:
        problems = transpose_problems(spec, target)
        return KernelSequence((contractions("conv_transpose", problems, target, epilogue, spec.roles, spec.bytes),))

    def pack(self, spec: ConvSpec, target: CpuTarget, weight: np.ndarray) -> Packing:
        grouped = weight.reshape(spec.groups, spec.in_channels, *weight.shape[1:]).swapaxes(1, 2)
        packed = []
        for combination, problem in _problems(spec, target):
            cut = (slice(p.tap, p.tap + p.every * p.taps, p.every) for p in combination)
            packed.append(pack_weights(problem, target, tap_matrix(grouped[(..., *cut)])))
        return Packing.joined(packed)

    def matrix(self, weight: MemoryView, spec: ConvSpec) -> MemoryView:
        """Weights [C, OC / groups, *kernel] as [groups, *kernel, C / groups, OC / groups]."""
        inner, outer, *taps = weight.strides
        shape = (spec.groups, *spec.kernel, spec.in_channels, spec.out_channels)
        return replace(weight, shape=shape, strides=(inner * spec.in_channels, *taps, inner, outer))

    def packing(self, spec: ConvSpec, target: CpuTarget) -> WeightPacking:
        problems = _problems(spec, target)

        def blocks(weights: MemoryView) -> list[PackedBlock]:
            found = []
            for combination, problem in problems:
                part = _part(weights, combination)
                for block in product_of(problem, target).blocks(problem, target, part):
                    found.append(replace(block, offset=block.offset + problem.weights.start, source=part))
            return found

        return WeightPacking(sum(product_of(p, target).packed(p, target) for _, p in problems), blocks)


def _part(weights: MemoryView, combination: Sequence[Phase]) -> MemoryView:
    """The weights [groups, *kernel, C / groups, OC / groups] that a phase reads."""
    offset, shape, strides = weights.offset, list(weights.shape), list(weights.strides)
    for axis, phase in enumerate(combination, start=1):
        offset += phase.tap * strides[axis]
        shape[axis], strides[axis] = phase.taps, strides[axis] * phase.every
    return replace(weights, shape=tuple(shape), strides=tuple(strides), offset=offset)


class Flipped(MinimalFiltering):
    """Phases that are convolutions by a kernel turned round, with fewer products."""

    title = "flipped"

    def __init__(self, filter: Filtering):
        super().__init__(filter)
        self.name = f"flipped{filter}"

    def shape(self, spec: ConvSpec) -> WinogradShape:
        return transposed_shape(spec, self.filter)

    def declines(self, spec: ConvSpec, target: CpuTarget) -> str:
        if spec.by_pixels and spec.strides[0] > 1:
            return "pixels side by side, which phases are not"
        if any(d > 1 for d in spec.dilation):
            return "dilation"
        return super().declines(spec, target)

    def reasons(self, spec: ConvSpec, target: CpuTarget) -> list[str]:
        return ["a phase is a convolution by the kernel turned round", *super().reasons(spec, target)]

    def pack(self, spec: ConvSpec, target: CpuTarget, weight: np.ndarray) -> Packing:
        shape = self.shape(spec)
        turned = whole_taps(weight.swapaxes(0, 1), shape.phases * self.filter.r)
        taps = (phase_taps(spec, shape, phase) for phase in range(shape.parts))
        return pack_winograd(shape, target, [turned[:, :, rows][..., columns] for rows, columns in taps])

    def matrix(self, weight: MemoryView, spec: ConvSpec) -> MemoryView:
        (inner, outer, *taps), (depth, columns, *kernel) = weight.strides, weight.shape
        shape, strides = (columns, depth, *kernel), (outer, inner, *taps)
        return super().matrix(replace(weight, shape=shape, strides=strides), spec)

    def taps(self, spec: ConvSpec) -> list[TapRow]:
        return turned_taps(spec, self.shape(spec))


PHASES = TRANSPOSED.declare(Transposed())
FLIPPED = {f: TRANSPOSED.declare(Flipped(f)) for f in MINIMAL}
