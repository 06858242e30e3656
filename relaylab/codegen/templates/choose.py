"""Which algorithm a convolution takes: direct, or minimal filtering F(m, r), by estimated cycles.

Minimal filtering does 2.25 or 4 times fewer products, but transforms its tiles, rounds images up to whole tiles and
reads 1.8 to 4 times as many weight bytes, which inside a network come from memory.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.templates.conv import ConvSpec, conv_problem
from relaylab.codegen.templates.minimal import TAPS
from relaylab.codegen.templates.schedule import estimate
from relaylab.codegen.templates.winograd import point_problem, supports_winograd, winograd_shape

ADVANTAGE = 0.95  # minimal filtering must be estimated this much faster: it rounds more and its kernels are larger


def direct_cycles(spec: ConvSpec, target: CpuTarget, cold: bool = True, threads: int = 1) -> float:
    """Estimated cycles of the direct kernel."""
    problem = conv_problem(spec)
    weight_bytes = problem.depth * problem.columns * spec.groups * spec.data.itemsize
    return estimate(problem, target, weight_bytes, cold, threads)


def winograd_cycles(spec: ConvSpec, m: int, target: CpuTarget, cold: bool = True, threads: int = 1) -> float:
    """Estimated cycles of the F(m, r) kernels."""
    shape, width = winograd_shape(spec, m), target.lanes("float32")
    into, back = target.facts.winograd[m]
    vectors = -(-shape.in_channels // width) * into + -(-shape.out_channels // width) * back
    problem = point_problem(shape)
    products = estimate(problem, target, shape.points * shape.in_channels * shape.out_channels * 4, cold, threads)
    # A blocked kernel walks the weights once per block of tiles, the other form once for all.
    return products * (shape.blocks.count if shape.blocked else 1) + shape.tiles * vectors / threads


@lru_cache(maxsize=1024)
def choose_winograd(
    spec: ConvSpec, target: CpuTarget, cold: bool = True, threads: int = 1, allowed: tuple[int, ...] = tuple(TAPS)
) -> int:
    """The m of the fastest F(m, r), or 0 for the direct kernel.

    Halos are not looked at: ask before the planner has laid out the data, then give it `needed_winograd_halo`.
    """
    options = winograd_options(spec, target, cold, threads, allowed)
    best = min(options, key=options.__getitem__, default=0)
    return best if best and options[best] < ADVANTAGE * direct_cycles(spec, target, cold, threads) else 0


def winograd_options(
    spec: ConvSpec, target: CpuTarget, cold: bool = True, threads: int = 1, allowed: tuple[int, ...] = tuple(TAPS)
) -> dict[int, float]:
    """Estimated cycles of each F(m, r) that can do the convolution."""
    return {m: winograd_cycles(spec, m, target, cold, threads) for m in allowed if not declined(spec, m)}


def declined(spec: ConvSpec, m: int) -> str:
    """Why F(m, r) cannot do the convolution, whatever lies around its data; empty when it can."""
    # The planner lays the data out after this choice, so any halo counts as given.
    halo = ((0, 0), *((1 << 30, 1 << 30) for _ in spec.kernel), (0, 0))
    return supports_winograd(replace(spec, data=replace(spec.data, halo=halo)), m)
