"""Families of convolutions: the spec that all have, the zeros that they read around their data, their tables.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView
from relaylab.codegen.kernels.views import Halo
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.family import FamilyTable, KernelFamily
from relaylab.codegen.templates.pack import Packing, WeightPacking
from relaylab.codegen.templates.problem import DTYPES, Choices
from relaylab.support.errors import RelayValueError


@dataclass(frozen=True, slots=True)
class ConvSpec:
    """out[n, *o, c] = sum over taps t, channels i of data[n, *(o * strides + t * dilation - padding), i] * w[c, i, t].

    `data` is [N, *spatial, C] and `out` [N, *output spatial, OC], both with any strides. `kernel`, `strides`,
    `dilation` and `padding` (before each axis) have one entry per spatial axis. What padding reaches must be zero
    memory: `data.halo` says that it is. `minimal` allows the direct kernel to use algorithms with fewer products.
    `weight` is [OC, IC / groups, *kernel], of a transposed one [C, OC / groups, *kernel], where that is an input, and
    None where it is a constant.
    Transposed convolutions have the same spec (see `conv_transpose`).
    """

    data: MemoryView
    out: MemoryView
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    groups: int = 1
    minimal: bool = False
    choices: Choices = ()
    weight: MemoryView | None = None

    roles: ClassVar = ("in0", "weight0", "out0")
    """The kernel's operands before those of the epilogue."""

    @property
    def in_channels(self) -> int:
        """Input channels of one group."""
        return self.data.shape[-1] // self.groups

    @property
    def out_channels(self) -> int:
        """Output channels of one group."""
        return self.out.shape[-1] // self.groups

    @property
    def by_pixels(self) -> bool:
        """Do neighbours along the last spatial axis of the result lie side by side, and its channels apart?"""
        return self.out.strides[-1] != 1 == self.out.strides[-2]

    @property
    def bytes(self) -> int:
        """Bytes of the data, the weights and the results."""
        weights = math.prod(self.kernel) * self.in_channels * self.out.shape[-1] * self.data.itemsize
        return self.data.bytes + weights + self.out.bytes

    def anywhere(self) -> ConvSpec:
        """The same with as many zeros around its data as one may want."""
        halo = ((0, 0), *(((1 << 30, 1 << 30),) * len(self.kernel)), (0, 0))
        return replace(self, data=replace(self.data, halo=halo))


def needed_halo(spec: ConvSpec) -> Halo:
    """The zero elements (before, after) that the convolution reads around each axis of its data."""
    found = [(0, 0)]
    for n, o, k, s, d, p in zip(
        spec.data.shape[1:-1], spec.out.shape[1:-1], spec.kernel, spec.strides, spec.dilation, spec.padding
    ):
        found.append((p, max(0, (o - 1) * s + (k - 1) * d - p - (n - 1))))
    return (*found, (0, 0))


def missing_halo(view: MemoryView, needed: Halo) -> str:
    """Where a view has fewer zeros around it than are needed; nothing if there are enough."""
    for axis, (before, after) in enumerate(needed):
        have = view.halo_of(axis)
        if before > have[0] or after > have[1]:
            return f"a halo of {have} where axis {axis} needs {(before, after)}"
    return ""


class ConvolutionFamily(KernelFamily[ConvSpec]):
    """One way to compute convolutions: its kernels, and how it lays out their weights.

    `inputs` says that it computes those whose weights are an input: their kernels begin with what lays them out.
    """

    inputs = False

    def unwanted(self, spec: ConvSpec) -> str:
        return super().unwanted(spec) or ("" if spec.weight is None or self.inputs else "it packs constants only")

    def reads(self, spec: ConvSpec) -> Halo:
        """The zero elements (before, after) that are read around each axis of the data."""
        return needed_halo(spec)

    def halo(self, spec: ConvSpec) -> Halo:
        """The zeros that should lie there: what is read, or more where that is faster."""
        return self.reads(spec)

    def declines(self, spec: ConvSpec, target: CpuTarget) -> str:
        """What any family declines: another dtype, and what is `unfit`."""
        return self.unfit(spec) if spec.data.dtype in DTYPES else f"dtype {spec.data.dtype}"

    def unfit(self, spec: ConvSpec) -> str:
        """Why none computes it in any dtype: an empty extent, groups that divide nothing, too few zeros."""
        if 0 in (*spec.out.shape, *spec.kernel, spec.data.shape[-1]):
            return "an empty extent"
        if spec.data.shape[-1] % spec.groups or spec.out.shape[-1] % spec.groups:
            return "channels that the groups do not divide"
        return missing_halo(spec.data, self.reads(spec))

    def build(self, spec: ConvSpec, target: CpuTarget, epilogue: Epilogue | None = None) -> KernelSequence:
        """The kernels, to run one after another. Raises RelayValueError `codegen.family` for what it declines."""
        if reason := self.declines(spec, target):
            raise RelayValueError(f"no {self.title} kernel for {reason}", code="codegen.family")
        made = self.kernels(spec, target, epilogue or Epilogue())
        if spec.weight is None:
            return made
        before, work = self.packing(spec, target).kernels(self.matrix(spec.weight, spec), target)
        return KernelSequence((*before, *made.kernels), (*made.workspaces, *work))

    def kernels(self, spec: ConvSpec, target: CpuTarget, epilogue: Epilogue) -> KernelSequence:
        """The kernels of what it does not decline; their operands are `spec.roles` and those of the epilogue."""
        raise NotImplementedError

    def pack(self, spec: ConvSpec, target: CpuTarget, weight: np.ndarray) -> Packing:
        """Weights [OC, IC / groups, *kernel], those of transposed ones [C, OC / groups, *kernel], as they are read."""
        raise NotImplementedError

    def packing(self, spec: ConvSpec, target: CpuTarget) -> WeightPacking:
        """The same for weights that are an input, as `matrix` gives them; of families with `inputs`."""
        raise NotImplementedError

    def matrix(self, weight: MemoryView, spec: ConvSpec) -> MemoryView:
        """Weights [OC, IC / groups, *kernel] as [groups, digits of *kernel x IC / groups, OC / groups]."""
        outer, inner, *taps = weight.strides
        counts, steps = merged_digits((*zip(spec.kernel, taps), (spec.in_channels, inner)))
        shape, strides = (spec.groups, *counts, spec.out_channels), (outer * spec.out_channels, *steps, outer)
        return replace(weight, shape=shape, strides=strides)

    def packing_cycles(self, spec: ConvSpec, target: CpuTarget) -> float:
        """Estimated cycles of laying out weights that are an input; 0 for constants."""
        if spec.weight is None:
            return 0.0
        return self.packing(spec, target).cycles(self.matrix(spec.weight, spec), target)


def merged_digits(axes: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Extents and steps of axes (extent, step) of memory, those that are evenly spaced walked as one."""
    merged: list[tuple[int, int]] = []
    for count, step in axes:
        if merged and merged[-1][1] == step * count:
            count *= merged.pop()[0]
        merged.append((count, step))
    return tuple(n for n, _ in merged), tuple(step for _, step in merged)


CONVOLUTIONS = FamilyTable[ConvSpec, ConvolutionFamily]()
TRANSPOSED = FamilyTable[ConvSpec, ConvolutionFamily]()
