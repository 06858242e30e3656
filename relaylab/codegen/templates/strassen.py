"""Large matrix products with seven instead of eight half-size products.

Strassen (1969) in Winograd's form, one level: with A and B cut into quarters,

    S1 = A21 + A22   S2 = S1 - A11    S3 = A11 - A21   S4 = A12 - S2
    T1 = B12 - B11   T2 = B22 - T1    T3 = B22 - B12   T4 = T2 - B21
    C11 = A11 B11 + A12 B21                    U2 = A11 B11 + S2 T2     U3 = U2 + S3 T3
    C21 = U3 - A22 T4    C22 = U3 + S1 T1      C12 = U2 + S1 T1 + S4 B22

The sums of B are made when the weights are packed. The sums of A are made per block of rows in scratch. The products
run one after another over all tiles of a block, so that a panel of weights is read from afar once per block; what a
tile has so far waits in two places in scratch, and nothing the size of C is ever written but C.

Error: a few times that of the ordinary product, as F(2, 3) minimal filtering (see the tests). The gain is 1/8 of the
products less the sums, so both halves have to be large.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView, item_bytes
from relaylab.codegen.templates.pack import PackedBlock, Packing, WeightElement, WeightMatrix, pack_panels, panel_blocks
from relaylab.codegen.templates.problem import UNIT, OutputAxis, Problem, Tap
from relaylab.codegen.templates.schedule import FAR_BYTES, Blocking, estimate, schedule_contraction
from relaylab.loop.expr import Load, ScalarExpr, Tensor

SUM_CYCLES = 12.0  # per vector of the four sums
FAR_SUM_CYCLES = 40.0  # per vector of the four sums where what is added comes from beyond the second-level cache
SUPPLY = 4.0  # cycles to get a vector of weights nearer, of which seven panels are used in turn
SEVEN = 7  # products


def supports_strassen(problem: Problem, target: CpuTarget) -> str:
    """Why one level of Strassen's algorithm does not apply; empty when it does."""
    width = target.lanes(problem.dtype)
    if not problem.dtype.startswith("float") or problem.weights.kind != "packed" or problem.batch.extent > 1:
        return "anything but one product of floats by packed weights"
    if len(problem.taps) != 1 or problem.taps[0].x != 1:
        return "a reduction that is not evenly spaced"
    # An odd row can be left out of the lower half; odd columns or taps would need masks in every product.
    if problem.columns % (2 * width) or problem.depth % 2 or halved_axis(problem).extent < 2:
        return "extents that do not halve into whole vectors"
    return ""


def halved_axis(problem: Problem) -> OutputAxis:
    """The row axis that is cut: each image's rows where the output has gaps between them, else all rows as one axis."""
    return problem.rows[-2] if problem.rows[-2].extent > 1 else problem.rows[-1]


@lru_cache(maxsize=1024)
def half_problem(problem: Problem) -> Problem:
    """One of the seven products: a quarter of A times a quarter of B."""
    axis = halved_axis(problem)
    cut = replace(axis, extent=-(-axis.extent // 2))
    rows = tuple(cut if row is axis else row for row in problem.rows)
    taps = (Tap(problem.depth // 2, 1),)
    return replace(problem, rows=rows, columns=problem.columns // 2, taps=taps, minimal=False)


def half_schedule(problem: Problem, target: CpuTarget) -> Blocking:
    """The plan of the products: tiles lie along the last row axis."""
    return schedule_contraction(half_product(problem), target, SUPPLY)


def half_product(problem: Problem) -> Problem:
    """One of the seven products as it is tiled: rows along the last row axis."""
    half = half_problem(problem)
    return replace(half, rows=(UNIT, half.rows[-1]))


def strassen_cycles(problem: Problem, target: CpuTarget) -> float:
    """Estimated cycles: the sums of quarters and the seven products."""
    half, size = half_problem(problem), item_bytes(problem.dtype)
    far = problem.row_count * problem.depth * size > FAR_BYTES
    each = FAR_SUM_CYCLES if far else SUM_CYCLES
    sums = half.row_count * half.depth / target.lanes(problem.dtype) * each
    return sums + SEVEN * estimate(half, target, half.depth * half.columns * size)


def pack_strassen(problem: Problem, target: CpuTarget, matrix: WeightMatrix) -> Packing:
    """The right side [1, K, N] as its seven factors, each in panels."""
    width, (_, depth, columns) = target.lanes(problem.dtype), matrix.shape
    half = columns // 2

    def factors(first: int, last: int) -> np.ndarray:
        halves = (matrix.columns(start + first, start + last)[0] for start in (0, half))
        (b11, b21), (b12, b22) = (np.vsplit(rows, 2) for rows in halves)
        t1 = b12 - b11
        t2 = b22 - t1
        return np.stack([b11, b21, t2, b22 - b12, b21 - t2, t1, b22])

    products = WeightMatrix((SEVEN, depth // 2, half), matrix.dtype, factors)
    return pack_panels(products, half_schedule(problem, target).vectors * width, width)


def strassen_blocks(problem: Problem, target: CpuTarget, weights: MemoryView) -> list[PackedBlock]:
    """What `pack_strassen` gives, of weights [1, K, N] that are an input."""
    width, (_, depth, columns) = target.lanes(problem.dtype), (n // 2 for n in (2, *weights.shape[1:]))
    panel = half_schedule(problem, target).vectors * width
    half = replace(weights, shape=(1, depth, columns))
    quarter = lambda w, i, low, right: Load(w, (i[0], i[1] + low * depth, i[2] + right * columns))

    def factor(number: int) -> WeightElement:
        def element(w: Tensor, i: Sequence[ScalarExpr]) -> ScalarExpr:
            b11, b12, b21, b22 = (quarter(w, i, low, right) for low in (0, 1) for right in (0, 1))
            t1 = b12 - b11
            t2 = b22 - t1
            return (b11, b21, t2, b22 - b12, b21 - t2, t1, b22)[number]

        return element

    size, numbers = depth * columns, range(SEVEN)
    return [block for k in numbers for block in panel_blocks(half, panel, width, factor(k), k * size)]
