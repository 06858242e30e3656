"""What is asked of loop programs before code is written: sizes, work, what loops carry, which dtypes lanes hold."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.codegen.kernels.kernel import item_bytes
from relaylab.loop.expr import INDEX, Apply, Axis, Load, Local, ScalarExpr, Tensor, post_order
from relaylab.loop.program import (
    Accumulate,
    Body,
    Define,
    For,
    IfThenElse,
    LoopProgram,
    Statement,
    Store,
    statements,
    values,
)
from relaylab.loop.scalar import is_float as is_float_dtype

ALIGN = 64


def scratch_layout(buffers: Sequence[Tensor]) -> tuple[dict[Tensor, int], int]:
    """Byte offsets of private buffers and their total size, in whole cache lines."""
    offsets, total = {}, 0
    for tensor in buffers:
        offsets[tensor] = total
        total += -(-tensor.shape[0] * item_bytes(tensor.dtype) // ALIGN) * ALIGN
    return offsets, total


def work(program: LoopProgram) -> tuple[int, int]:
    """(floating point operations, bytes of operands) of one run; a loop with a computed end counts one turn."""
    flops = 0
    for nest in program.nests:
        stack: list[tuple[Statement, int]] = [(nest.loop, 1)]
        while stack:
            statement, times = stack.pop()
            if isinstance(statement, (For, IfThenElse)):  # of a condition, what it is there for
                turns = statement.axis.extent if isinstance(statement, For) and statement.stop is None else 1
                stack.extend((s, times * turns) for s in statement.body)
                continue
            nodes = post_order(*values(statement))
            count = sum(isinstance(n, Apply) and is_float_dtype(n.dtype) for n in nodes)
            flops += times * (count + isinstance(statement, Accumulate))
    return flops, sum(t.shape[0] * item_bytes(t.dtype) for _, t in program.operands)


def carried_locals(body: Body) -> list[Local]:
    """The accumulators that a body updates and that exist before it."""
    own = {s.local for s in statements(body) if isinstance(s, Define)}
    found = (s.local for s in statements(body) if isinstance(s, Accumulate) and s.local not in own)
    return list(dict.fromkeys(found))


def read_after_written(body: Sequence[tuple[Statement, Sequence[ScalarExpr]]]) -> frozenset[Tensor]:
    """The buffers that are not written any more once the first of their elements was read, by statements and nodes."""
    read, late = set[Tensor](), set[Tensor]()
    for statement, nodes in body:
        read |= {n.tensor for n in nodes if isinstance(n, Load)}
        if isinstance(statement, Store) and statement.buffer in read:
            late.add(statement.buffer)
    return frozenset(read - late)


def lane_dtypes(loop: For) -> set[str]:
    """The dtypes that the lanes of a loop hold; plain index arithmetic does not count."""
    found: set[str] = set()
    for statement in statements(loop.body):
        if isinstance(statement, Store):
            found.add(statement.buffer.dtype)
        for root in values(statement):
            for node in post_order(root):
                if isinstance(node, Load) or (node.dtype not in (INDEX, "bool") and not isinstance(node, Axis)):
                    found.add(node.dtype)
    return found
