"""Transposed convolution over channels-last tensors: any stride, padding, output padding, dilation and groups.

Output pixels with the same remainder modulo the stride use the same taps, so each such phase is a direct convolution
of stride one that writes every stride-th pixel. Nothing is scattered and no zeros are multiplied.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from relaylab.codegen.kernel import Kernel, View
from relaylab.codegen.target import Target
from relaylab.codegen.templates.assemble import DTYPES, contractions
from relaylab.codegen.templates.dots import pack_weights, weights_size
from relaylab.codegen.templates.problem import UNIT, Axis, Problem, Tap, Weights, merge_axes, merge_taps
from relaylab.codegen.templates.site import Epilogue
from relaylab.support.errors import RelayValueError


@dataclass(frozen=True, slots=True)
class ConvTransposeSpec:
    """out[n, *o, c] = sum over pixels i, taps t with i * strides + t * dilation - padding = o of data[n, *i, k] * w.

    `data` is [N, *spatial, C], `out` is [N, *output spatial, OC] (its extents include any output padding), weights
    are [C, OC / groups, *kernel]. What the taps reach outside of `data` must be zero memory, as `data.halo` says.
    """

    data: View
    out: View
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    groups: int = 1

    @property
    def roles(self) -> tuple[str, str, str]:
        """The kernel's operands before those of the epilogue."""
        return ("in0", "weight0", "out0")


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
        found.append(Phase(first, -(-(out - first) // stride), tap, every, len(fitting), source,
                           dilation * every // stride))
    return found


def axis_phases(spec: ConvTransposeSpec) -> list[list[Phase]]:
    """The phases of every spatial axis."""
    axes = zip(spec.out.shape[1:-1], spec.kernel, spec.strides, spec.dilation, spec.padding)
    return [phases(*axis) for axis in axes]


def needed_transpose_halo(spec: ConvTransposeSpec) -> tuple[tuple[int, int], ...]:
    """The zero elements (before, after) that the kernel reads around each axis of its data."""
    found = [(0, 0)]
    for extent, options in zip(spec.data.shape[1:-1], axis_phases(spec)):
        used = [phase for phase in options if phase.taps]
        low = min((p.source - (p.taps - 1) * p.back for p in used), default=0)
        high = max((p.count - 1 + p.source for p in used), default=0)
        found.append((max(0, -low), max(0, high - (extent - 1))))
    return (*found, (0, 0))


def supports_conv_transpose(spec: ConvTransposeSpec) -> str:
    """Why this template does not do the convolution; empty when it does."""
    if spec.data.dtype not in DTYPES:
        return f"dtype {spec.data.dtype}"
    if 0 in (*spec.out.shape, *spec.kernel, *spec.data.shape):
        return "an empty extent"
    if spec.data.shape[-1] % spec.groups or spec.out.shape[-1] % spec.groups:
        return "channels that the groups do not divide"
    for axis, (before, after) in enumerate(needed_transpose_halo(spec)):
        have = spec.data.halo_of(axis)
        if before > have[0] or after > have[1]:
            return f"a halo of {have} where axis {axis} needs {(before, after)}"
    return ""


@lru_cache(maxsize=256)
def _problems(spec: ConvTransposeSpec, target: Target) -> tuple[tuple[tuple[Phase, ...], Problem], ...]:
    """Every combination of phases with its contraction; their packed weights follow each other."""
    start, found = 0, []
    for combination in itertools.product(*axis_phases(spec)):
        problem = _problem(spec, combination, start)
        found.append((combination, problem))
        start += weights_size(problem, target)
    return tuple(found)


def transpose_problems(spec: ConvTransposeSpec, target: Target) -> list[Problem]:
    """The convolutions of stride 1 that a transposed convolution is, one per phase of the strides."""
    return [problem for _, problem in _problems(spec, target)]


def _problem(spec: ConvTransposeSpec, combination: tuple[Phase, ...], start: int) -> Problem:
    data, out = spec.data, spec.out
    in_channels, out_channels = data.shape[-1] // spec.groups, out.shape[-1] // spec.groups
    rows, taps, origin, target = [Axis(out.shape[0], data.strides[0], out.strides[0], 0, out.shape[:1])], [], 0, 0
    for axis, (phase, stride) in enumerate(zip(combination, spec.strides), start=1):
        x, o = data.strides[axis], out.strides[axis]
        rows.append(Axis(phase.count, x, o * stride, 0, (out.shape[axis],), stride, phase.first))
        taps.append(Tap(phase.taps, -phase.back * x))
        origin += phase.source * x
        target += phase.first * o
    taps.append(Tap(in_channels, data.strides[-1]))
    member = UNIT if spec.groups == 1 else Axis(spec.groups, in_channels * data.strides[-1], 0)
    return Problem(data.dtype, out.dtype, member, merge_axes(rows), merge_taps(taps), out_channels,
                   channel=out_channels, channels=out.shape[-1], x_start=data.offset + origin,
                   out_start=out.offset + target, out_column=out.strides[-1], weights=Weights(start=start))


def conv_transpose(spec: ConvTransposeSpec, target: Target, epilogue: Epilogue | None = None) -> Kernel:
    """The kernel of a transposed convolution. Raises RelayValueError for what `supports_conv_transpose` declines."""
    reason = supports_conv_transpose(spec)
    if reason:
        raise RelayValueError(f"no transposed convolution kernel for {reason}", code="codegen.conv-transpose")
    problems = [problem for _, problem in _problems(spec, target)]
    weights = math.prod(spec.kernel) * spec.data.shape[-1] * spec.out.shape[-1] // spec.groups * spec.data.itemsize
    return contractions("conv_transpose", problems, target, epilogue or Epilogue(), spec.roles,
                        spec.data.bytes + weights + spec.out.bytes)


def pack_conv_transpose(spec: ConvTransposeSpec, target: Target, weight: np.ndarray) -> np.ndarray:
    """Weights [C, OC / groups, *kernel] as the kernel of this spec reads them, flat."""
    return np.concatenate([*_packed_phases(spec, target, weight)])


def _packed_phases(spec: ConvTransposeSpec, target: Target, weight: np.ndarray) -> Iterator[np.ndarray]:
    in_channels = weight.shape[0] // spec.groups
    grouped = weight.reshape(spec.groups, in_channels, *weight.shape[1:])
    for combination, problem in _problems(spec, target):
        cut = tuple(slice(p.tap, p.tap + p.every * p.taps, p.every) if p.taps else slice(0) for p in combination)
        taps = np.moveaxis(grouped[(slice(None),) * 3 + cut], (1, 2), (-2, -1))
        yield pack_weights(problem, target, taps.reshape(spec.groups, problem.depth, problem.columns))
