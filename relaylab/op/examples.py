"""Which operators compute an example of a batch from that example alone, told by their loop forms.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import cast

from relaylab.ir.dims import AnyDim, SizeVar
from relaylab.ir.types import TensorType, TupleType, Type
from relaylab.loop.builder import OutSpec, b
from relaylab.loop.expr import Axis, Load, ScalarExpr, Size, Tensor, axis_over, children
from relaylab.loop.simplify import Simplifier
from relaylab.op.base import Operator
from relaylab.support.errors import RelayError


def keeps_examples(record: Operator, args: Sequence[Type], held: Sequence[bool], out: Type, field: int) -> bool:
    """Whether `out`, a tensor that an operator gives (its `field` of several), has at `n` of its first axis what is
    computed from elements `n` of the arguments that are `held`, and of the others in the same way for each `n`.

    A size with a name is whatever a call says it is.
    """
    operands = [_readable(f"x{k}", t) for k, t in enumerate(args)]
    shape = _extents(out)
    if record.stateful or shape is None or not all(operands):
        return False
    axes = tuple(axis_over(f"i{d}", n) for d, n in enumerate(shape))
    reads = [x if isinstance(t, TupleType) else x[0] for x, t in zip(operands, args)]
    try:
        value = record.lower(b, OutSpec(shape, cast(TensorType, out).dtype, field), axes, *reads)
    except RelayError:  # nothing says what one element of it is
        return False
    return _keeps(value, axes[0], {tensor for x, has in zip(operands, held) if has for tensor in x})


def _extents(t: Type) -> tuple[int, ...] | None:
    """The shape of a tensor as loops have it; None for one with extents that are neither numbers nor named sizes."""
    if not isinstance(t, TensorType):
        return None
    found = [_size(d) if isinstance(d, SizeVar) else d for d in t.shape]
    return None if any(isinstance(d, AnyDim) for d in found) else tuple(cast("list[int]", found))


_size = lru_cache(maxsize=64)(lambda d: Size(d.name, 0))


def _readable(name: str, t: Type) -> tuple[Tensor, ...]:
    """What a loop form reads of an operand of a type, one tensor or several; nothing if it cannot be told."""
    found: list[Tensor] = []
    for k, part in enumerate(t.fields if isinstance(t, TupleType) else (t,)):
        shape = _extents(part)
        if shape is None:
            return ()
        found.append(Tensor(f"{name}.{k}", shape, cast(TensorType, part).dtype))
    return tuple(found)


def _keeps(value: ScalarExpr, example: Axis, batched: Collection[Tensor]) -> bool:
    """Whether an element reads the batched tensors at `example` only, and uses `example` for nothing else."""
    stack, seen = [Simplifier()(value)], set[ScalarExpr]()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        below = children(node)
        if isinstance(node, Load) and node.tensor in batched:
            if node.indices[0] is not example:
                return False
            below = node.indices[1:]
        elif node is example:
            return False
        stack.extend(below)
    return True
