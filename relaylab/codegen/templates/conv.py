"""Direct convolution over channels-last tensors: 1, 2 or 3 spatial axes, strides, dilation, groups, any kernel.

The input view carries a halo of zeros, so no bounds are checked. Neighbouring kernel columns and input channels form
one reduction loop, which makes this the register tile of the matrix product with output pixels as rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, MemoryView
from relaylab.codegen.kernels.views import Halo
from relaylab.codegen.templates.assemble import DTYPES, contraction
from relaylab.codegen.templates.byte_products import FACTORS, in_words
from relaylab.codegen.templates.dots import pack_weights
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.pack import Packing, conv_matrix
from relaylab.codegen.templates.problem import UNIT, Choices, OutputAxis, Problem, Tap, merge_axes, merge_taps
from relaylab.codegen.templates.strassen import pack_strassen, strassen_pays
from relaylab.codegen.templates.strassen_kernel import strassen
from relaylab.support.errors import RelayValueError


@dataclass(frozen=True, slots=True)
class ConvSpec:
    """out[n, *o, c] = sum over taps t, channels i of data[n, *(o * strides + t * dilation - padding), i] * w[c, i, t].

    `data` is [N, *spatial, C] and `out` [N, *output spatial, OC], both with any strides. `kernel`, `strides`,
    `dilation` and `padding` (before each axis) have one entry per spatial axis. What padding reaches must be zero
    memory: `data.halo` says that it is. `minimal` allows the direct kernel to use algorithms with fewer products.
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

    @property
    def roles(self) -> tuple[str, str, str]:
        """The kernel's operands before those of the epilogue."""
        return ("in0", "weight0", "out0")

    @property
    def in_channels(self) -> int:
        """Input channels of one group."""
        return self.data.shape[-1] // self.groups

    @property
    def out_channels(self) -> int:
        """Output channels of one group."""
        return self.out.shape[-1] // self.groups


def needed_halo(spec: ConvSpec) -> Halo:
    """The zero elements (before, after) that the convolution reads around each axis of its data."""
    found = [(0, 0)]
    for n, o, k, s, d, p in zip(
        spec.data.shape[1:-1], spec.out.shape[1:-1], spec.kernel, spec.strides, spec.dilation, spec.padding
    ):
        found.append((p, max(0, (o - 1) * s + (k - 1) * d - p - (n - 1))))
    return (*found, (0, 0))


def supports_conv(spec: ConvSpec) -> str:
    """Why this template does not do the convolution; empty when it does."""
    reason = declined(
        spec, (*spec.out.shape, *spec.kernel, spec.data.shape[-1]), needed_halo(spec), (*DTYPES, FACTORS[0])
    )
    if reason or spec.data.dtype != FACTORS[0] or in_words(_plain_problem(spec)):
        return reason
    return "bytes that do not lie in words of four"


def declined(spec: ConvSpec, extents: Sequence[int], halo: Halo, dtypes: Sequence[str] = DTYPES) -> str:
    """Why no template that needs these zeros around its data does the convolution; empty when it does."""
    if spec.data.dtype not in dtypes:
        return f"dtype {spec.data.dtype}"
    if 0 in extents:
        return "an empty extent"
    if spec.data.shape[-1] % spec.groups or spec.out.shape[-1] % spec.groups:
        return "channels that the groups do not divide"
    return missing_halo(spec.data, halo)


def missing_halo(data: MemoryView, needed: Halo) -> str:
    """The first axis of the data with fewer zeros around it than needed, in words; empty when there are enough."""
    for axis, (before, after) in enumerate(needed):
        have = data.halo_of(axis)
        if before > have[0] or after > have[1]:
            return f"a halo of {have} where axis {axis} needs {(before, after)}"
    return ""


def pixel_axes(spec: ConvSpec, steps: Sequence[int]) -> list[OutputAxis]:
    """The batch and output pixel axes; a step along a spatial axis moves the input by `steps` elements of it."""
    batch = OutputAxis(spec.out.shape[0], spec.data.strides[0], spec.out.strides[0], 0, spec.out.shape[:1])
    spatial = zip(spec.out.shape[1:-1], spec.data.strides[1:-1], spec.out.strides[1:-1], steps)
    return [batch, *(OutputAxis(n, x * step, o, 0, (n,)) for n, x, o, step in spatial)]


@lru_cache(maxsize=1024)
def conv_problem(spec: ConvSpec) -> Problem:
    """The convolution as a contraction."""
    plain = _plain_problem(spec)
    return (in_words(plain) or plain) if spec.data.dtype == FACTORS[0] else plain


def _plain_problem(spec: ConvSpec) -> Problem:
    data = spec.data
    taps = [Tap(k, x * d) for k, x, d in zip(spec.kernel, data.strides[1:-1], spec.dilation)]
    taps.append(Tap(spec.in_channels, data.strides[-1]))
    start = data.offset - sum(p * x for p, x in zip(spec.padding, data.strides[1:-1]))
    member = UNIT if spec.groups == 1 else OutputAxis(spec.groups, spec.in_channels * data.strides[-1], 0)
    return Problem(
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
    )


def conv(spec: ConvSpec, target: CpuTarget, epilogue: Epilogue | None = None) -> Kernel:
    """The kernel of a direct convolution. Raises RelayValueError for what `supports_conv` declines."""
    reason = supports_conv(spec)
    if reason:
        raise RelayValueError(f"no convolution kernel for {reason}", code="codegen.conv")
    problem = conv_problem(spec)
    weights = problem.depth * problem.columns * spec.groups * spec.data.itemsize
    make = strassen if spec.minimal and strassen_pays(problem, target) else contraction
    return make("conv", problem, target, epilogue or Epilogue(), spec.roles, spec.data.bytes + weights + spec.out.bytes)


def pack_conv_weight(spec: ConvSpec, target: CpuTarget, weight: np.ndarray) -> Packing:
    """Weights [OC, IC / groups, *kernel] as the kernel of this spec reads them, flat."""
    problem = conv_problem(spec)
    if spec.minimal and strassen_pays(problem, target):
        return pack_strassen(problem, target, conv_matrix(weight, spec.groups))
    return pack_weights(problem, target, conv_matrix(weight, spec.groups))
