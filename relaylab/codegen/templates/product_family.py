"""Families of products: what computes a contraction in the common shape (`Problem`), alone or beside others.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.family import Family, FamilyTable
from relaylab.codegen.templates.pack import Packing, WeightMatrix
from relaylab.codegen.templates.problem import Problem
from relaylab.codegen.templates.program_parts import ProgramParts
from relaylab.loop.program import LoopNest
from relaylab.support.errors import RelayError


class ProductFamily(Family[Problem]):
    """One way to compute a contraction: its loops, and how it lays out constant weights."""

    def nest(self, problem: Problem, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts) -> LoopNest:
        """The parallel loop over work items; operands are `parts.buffers`' "x", "w" and "out"."""
        raise NotImplementedError

    def packed(self, problem: Problem, target: CpuTarget) -> int:
        """Elements of the packed weights."""
        raise NotImplementedError

    def pack(self, problem: Problem, target: CpuTarget, matrix: WeightMatrix) -> Packing:
        """The constant right side [batch, K, N] as the loops read it."""
        raise NotImplementedError


PRODUCTS = FamilyTable[Problem, ProductFamily]()


def product_of(problem: Problem, target: CpuTarget) -> ProductFamily:
    """The family that computes a contraction."""
    found = PRODUCTS.choose(problem, target)
    if found is None:
        raise RelayError("no family computes this contraction", code="codegen.family")
    return found.family


def pack_weights(problem: Problem, target: CpuTarget, matrix: WeightMatrix) -> Packing:
    """The constant right side [batch, K, N] as the kernel of this problem reads it."""
    return product_of(problem, target).pack(problem, target, matrix)


def product_cycles(problem: Problem, target: CpuTarget) -> float:
    """Estimated cycles of a contraction."""
    found = PRODUCTS.choose(problem, target)
    return found.cycles if found is not None and found.cycles is not None else float("inf")


def product_reasons(problem: Problem, target: CpuTarget) -> list[str]:
    """The families that were considered for a contraction, and what the chosen one says."""
    family = product_of(problem, target)
    return [*PRODUCTS.table(problem, target, family), *family.reasons(problem, target)]
