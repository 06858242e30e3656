"""What is asked of loop programs before code is written: sizes, work, what loops carry, which dtypes lanes hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from relaylab.codegen.kernels.kernel import WorkPart, item_bytes
from relaylab.loop.expr import INDEX, MOST_SIZE, Apply, Guard, Load, Local, ScalarExpr, Tensor, children, post_order
from relaylab.loop.listing import only_axes
from relaylab.loop.program import (
    Accumulate,
    Define,
    For,
    IfThenElse,
    LoopProgram,
    Prefetch,
    Statement,
    Store,
    inside,
    statements,
    values,
)
from relaylab.loop.scalar import compute_dtype
from relaylab.loop.scalar import is_float as is_float_dtype

ALIGN = 64


Bytes = ScalarExpr | int


def scratch_layout(buffers: Sequence[Tensor]) -> tuple[dict[Tensor, Bytes], Bytes]:
    """Byte offsets of private buffers and their total size, in whole cache lines; of sizes where these decide."""
    offsets: dict[Tensor, Bytes] = {}
    total: Bytes = 0
    for tensor in sorted(buffers, key=lambda t: t.size is not None):  # known offsets first
        offsets[tensor] = total
        length: Bytes = tensor.shape[0] if tensor.size is None else tensor.size
        total = total + (length * item_bytes(tensor.dtype) + (ALIGN - 1)) // ALIGN * ALIGN
    return offsets, total


class StatementUses(NamedTuple):
    """What a statement does, those in it included: buffers, registers, dtypes in lanes (index arithmetic apart).

    `carried` are the accumulators that it updates and that exist before it. `flops` are its own, once.
    """

    loads: frozenset[Tensor] = frozenset()
    stores: frozenset[Tensor] = frozenset()
    carried: tuple[Local, ...] = ()
    defined: frozenset[Local] = frozenset()
    lanes: frozenset[str] = frozenset()
    guards: bool = False
    flops: int = 0


NOTHING = StatementUses()


def uses_of(program: LoopProgram) -> dict[Statement, StatementUses]:
    """What every statement of a program does."""
    found: dict[Statement, StatementUses] = {}
    plain: set[ScalarExpr] = set()
    for statement in reversed([s for nest in program.nests for s in statements((nest.loop,))]):  # what is inside first
        found[statement] = _with_inside(_own_uses(statement, plain), [found[s] for s in inside(statement)])
    return found


def _own_uses(statement: Statement, plain: set[ScalarExpr]) -> StatementUses:
    """What a statement itself does. `plain` are indices that only axes, registers and numbers are below, of which
    statements share many: it grows."""
    roots = [root for root in values(statement) if root not in plain]
    if not roots and isinstance(statement, (For, Prefetch)):
        return NOTHING
    loads, lanes = set[Tensor](), set[str]()
    guards, flops = False, 0
    for node in post_order(*roots, known=plain):
        if isinstance(node, Load):
            loads.add(node.tensor)
            lanes.add(node.dtype)
        elif node.dtype not in (INDEX, "bool"):
            lanes.add(node.dtype)
            flops += isinstance(node, Apply) and is_float_dtype(node.dtype)
        elif node.dtype == INDEX and not isinstance(node, Guard) and plain.issuperset(children(node)):
            plain.add(node)
        guards |= isinstance(node, Guard)
    stores = {statement.buffer} if isinstance(statement, Store) else set[Tensor]()
    carried = (statement.local,) if isinstance(statement, Accumulate) else ()
    defined = {statement.local} if isinstance(statement, Define) else set[Local]()
    dtypes = lanes | {t.dtype for t in stores}
    return StatementUses(
        frozenset(loads),
        frozenset(stores),
        carried,
        frozenset(defined),
        frozenset(dtypes),
        guards,
        flops + len(carried),
    )


def _with_inside(own: StatementUses, within: Sequence[StatementUses]) -> StatementUses:
    """A statement with those that stand directly in it."""
    if not within:
        return own
    if own is NOTHING and len(within) == 1:
        return within[0]._replace(flops=0)
    every = [own, *within]
    defined = own.defined.union(*(u.defined for u in within))
    carried = dict.fromkeys(local for u in every for local in u.carried if local not in defined)
    return StatementUses(
        own.loads.union(*(u.loads for u in within)),
        own.stores.union(*(u.stores for u in within)),
        tuple(carried),
        defined,
        own.lanes.union(*(u.lanes for u in within)),
        any(u.guards for u in every),
        own.flops,
    )


def work(program: LoopProgram, uses: dict[Statement, StatementUses]) -> tuple[WorkPart, ...]:
    """Floating point operations and bytes of operands of one run, in parts that are as often as sizes say: the first
    is there always. A loop whose end is computed from registers or data counts one turn.

    Operands of unknown extent count by what is stored.
    """
    most = sum(t.shape[0] * item_bytes(t.dtype) for _, t in program.operands if t.shape[0] < MOST_SIZE)
    parts: dict[tuple[ScalarExpr, ...], list[int]] = {(): [0, most]}
    operands = {t for _, t in program.operands if t.shape[0] >= MOST_SIZE}
    for nest in program.nests:
        stack: list[tuple[Statement, int, tuple[ScalarExpr, ...]]] = [(nest.loop, 1, ())]
        while stack:
            statement, times, lengths = stack.pop()
            if isinstance(statement, (For, IfThenElse)):  # of a condition, what it is there for
                if isinstance(statement, For):
                    times, lengths = _turns(statement, times, lengths)
                stack.extend((s, times, lengths) for s in statement.body)
                continue
            kept = statement.buffer.dtype if isinstance(statement, Store) and statement.buffer in operands else None
            flops, moved = uses[statement].flops, 2 * item_bytes(kept) if kept else 0
            if flops or moved:
                part = parts.setdefault(lengths, [0, 0])
                part[0] += times * flops
                part[1] += times * moved
    return tuple((flops, moved, lengths) for lengths, (flops, moved) in parts.items())


def _turns(loop: For, times: int, lengths: tuple[ScalarExpr, ...]) -> tuple[int, tuple[ScalarExpr, ...]]:
    """How often what is in a loop is done, that is done so often: at most, if loops around it say when it ends, and
    once if anything else does."""
    if loop.stop is not None and not only_axes(loop.stop):
        return times, lengths
    return (times * loop.axis.extent, lengths) if loop.axis.size is None else (times, (*lengths, loop.axis.size))


def read_after_written(body: Sequence[Statement], uses: dict[Statement, StatementUses]) -> frozenset[Tensor]:
    """The buffers that are not written any more once the first of their elements was read."""
    read, late = set[Tensor](), set[Tensor]()
    for statement in body:
        own = uses[statement] if not inside(statement) else _own_uses(statement, set())
        read |= own.loads
        if isinstance(statement, Store) and statement.buffer in read:
            late.add(statement.buffer)
        if isinstance(statement, For) and statement.kind == "unrolled":  # its turns follow each other
            late |= uses[statement].loads & uses[statement].stores
    return frozenset(read - late)


@dataclass(frozen=True, slots=True)
class LoopLanes:
    """How loops are written: by how many lanes of a vector of `vector_bytes`, and which of them are about registers."""

    uses: Mapping[Statement, StatementUses]
    registers: frozenset[Tensor]
    vector_bytes: int

    def width(self, loop: For) -> int:
        """Lanes of a vectorised loop: a full register of its widest dtype, no more than the extent asks for."""
        # Halves are floats in registers.
        sizes = [item_bytes(compute_dtype(dtype)) for dtype in self.uses[loop].lanes]
        full = self.vector_bytes // max(sizes, default=4)
        return max(2, min(full, 1 << (loop.axis.extent - 1).bit_length()))

    def in_registers(self, loop: For) -> bool:
        """Whether a loop reads or writes buffers in registers."""
        uses = self.uses[loop]
        return not self.registers.isdisjoint(uses.loads) or not self.registers.isdisjoint(uses.stores)

    def written_out(self, loop: For) -> int:
        """The lanes of a loop that is written out; 0 for any other."""
        width = self.width(loop)
        straight = loop.axis.extent <= width * loop.unroll or self.in_registers(loop)
        return width if straight and loop.axis.size is None else 0
