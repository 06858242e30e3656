"""Families of products, which compute contractions in the common shape (`Problem`), and kernels of one or a few.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, MemoryView
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates.byte_products import FACTORS, WORD
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.family import FamilyTable, KernelFamily
from relaylab.codegen.templates.pack import PackedBlock, Packing, WeightMatrix, WeightPacking
from relaylab.codegen.templates.problem import Problem
from relaylab.codegen.templates.program_parts import ProgramParts, epilogue_buffers
from relaylab.loop.expr import Tensor
from relaylab.loop.program import LoopNest, LoopProgram
from relaylab.support.errors import RelayError


class ProductFamily(KernelFamily[Problem]):
    """One way to compute a contraction: its loops, and how it lays out weights.

    With `mixes`, an element of packed weights that are an input is made of several; `widens` are the sides,
    "x" and "w", that may be of a narrower data type.
    """

    mixes = False
    widens: Container[str] = ()

    def nest(self, problem: Problem, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts) -> LoopNest:
        """The parallel loop over work items; operands are `parts.buffers`' "x", "w" and "out"."""
        raise NotImplementedError

    def packed(self, problem: Problem, target: CpuTarget) -> int:
        """Elements of the packed weights."""
        raise NotImplementedError

    def pack(self, problem: Problem, target: CpuTarget, matrix: WeightMatrix) -> Packing:
        """The constant right side [batch, K, N] as the loops read it."""
        raise NotImplementedError

    def blocks(self, problem: Problem, target: CpuTarget, weights: MemoryView) -> list[PackedBlock]:
        """The same where the right side [batch, digits of K, N] is an input, which a kernel lays out.

        What has none computes products with constants only. Sums of several elements are of `weights` whose columns
        lie side by side.
        """
        raise NotImplementedError

    def unwanted(self, spec: Problem) -> str:
        if not spec.weights.constant and type(self).blocks is ProductFamily.blocks:
            return "it packs constants only"
        narrow = {"x": spec.given, "w": spec.weights.stored}
        if other := next((dtype for side, dtype in narrow.items() if dtype and side not in self.widens), ""):
            return f"it reads no {other} there"
        return super().unwanted(spec)


PRODUCTS = FamilyTable[Problem, ProductFamily]()


def product_of(problem: Problem, target: CpuTarget) -> ProductFamily:
    """The family that computes a contraction."""
    found = PRODUCTS.choose(problem, target)
    if found is None:
        raise RelayError("no family computes this contraction", code="codegen.family")
    return found


def pack_weights(problem: Problem, target: CpuTarget, matrix: WeightMatrix) -> Packing:
    """The constant right side [batch, K, N] as the kernel of this problem reads it."""
    family = product_of(problem, target)
    found = family.pack(problem, target, matrix)
    if found.size != (size := family.packed(problem, target)):
        message = f"the family `{family.name}` packs {found.size} elements where its loops read {size}"
        raise RelayError(message, code="codegen.family")
    return found


def packing_of(problem: Problem, target: CpuTarget) -> WeightPacking:
    """How a kernel lays out the right side of a contraction that is an input."""
    family = product_of(problem, target)
    blocks = lambda weights: family.blocks(problem, target, weights)
    return WeightPacking(family.packed(problem, target), blocks, family.mixes)


def product_cycles(problem: Problem, target: CpuTarget) -> float:
    """Estimated cycles of a contraction."""
    return product_of(problem, target).cycles(problem, target)


def product_reasons(problem: Problem, target: CpuTarget) -> list[str]:
    """The families that were considered for a contraction, and what the chosen one says."""
    family = product_of(problem, target)
    return [*PRODUCTS.table(problem, target, family), *family.reasons(problem, target)]


# ---- kernels


def contractions(
    prefix: str,
    problems: Sequence[Problem],
    target: CpuTarget,
    epilogue: Epilogue,
    roles: tuple[str, ...],
    traffic: int,
    by: ProductFamily | None = None,
) -> Kernel:
    """A kernel of contractions with common operands: input, weights, output, side inputs, scratch where needed."""
    program = contraction_program(prefix, problems, target, epilogue, roles, by)
    return lower_program(program, target, True, (sum(p.flops for p in problems), traffic)).by_content(prefix)


def contraction_program(
    name: str,
    problems: Sequence[Problem],
    target: CpuTarget,
    epilogue: Epilogue,
    roles: tuple[str, ...],
    by: ProductFamily | None = None,
) -> LoopProgram:
    """The contractions as a loop program with these operands: input, weights, output, side inputs.

    Each is computed by the family that is chosen for it, or all `by` the one that is given.
    """
    families = [by or product_of(p, target) for p in problems]
    packed = [family.packed(p, target) for family, p in zip(families, problems)]
    buffers = _buffers(problems, packed, epilogue, roles)
    parts = ProgramParts({**buffers, **dict(zip(("x", "w", "out"), (buffers[role] for role in roles)))})
    nests = [family.nest(p, target, epilogue, parts) for family, p in zip(families, problems)]
    return LoopProgram(name, tuple(buffers.items()), tuple(parts.scratch), tuple(nests), tuple(parts.registers))


def _buffers(
    problems: Sequence[Problem], packed: Sequence[int], epilogue: Epilogue, roles: tuple[str, ...]
) -> dict[str, Tensor]:
    """The operands by role, with as many elements as are read or written."""
    first = problems[0]
    sizes = [max(map(_x_reach, problems)), max(map(_w_reach, problems, packed)), max(map(_out_reach, problems))]
    found = {role: Tensor(role, (size,), first.dtype) for role, size in zip(roles, sizes)}
    found[roles[0]] = Tensor(roles[0], (sizes[0],), first.given or first.dtype)
    found[roles[2]] = Tensor(roles[2], (sizes[2],), first.out_dtype)
    if first.weights.kind == "bytes" or first.weights.stored:
        found[roles[1]] = Tensor(roles[1], (sizes[1],), first.weights.stored or FACTORS[1])
    return found | epilogue_buffers(epilogue, first.channels or first.columns, first.dtype)


def _x_reach(p: Problem) -> int:
    """Elements of the input up to the last that is read."""
    steps = [(axis.extent, axis.x) for axis in (p.batch, *p.rows)] + [(tap.count, tap.x) for tap in p.taps]
    return p.x_start + 1 + sum((n - 1) * step for n, step in steps if step > 0)


def _w_reach(p: Problem, packed: int) -> int:
    if p.weights.kind == "packed":
        return p.weights.start + packed
    steps = ((p.batch.extent, p.batch.w), (p.depth, p.weights.k), (p.columns, p.weights.n))
    last = p.weights.k // WORD * (WORD - 1) if p.weights.kind == "bytes" else 0
    return p.weights.start + 1 + last + sum((n - 1) * step for n, step in steps)


def _out_reach(p: Problem) -> int:
    steps = [(axis.extent, axis.out) for axis in (p.batch, *p.rows)]
    steps += [(p.batch.extent, p.channel * p.out_column), (p.columns, p.out_column)]
    return p.out_start + 1 + sum((n - 1) * step for n, step in steps)
