"""Products of an open program read their operands where they lie: kernels without packing need no transposed copies.

What is multiplied by a number after a product of open columns is multiplied before it, where it is fewer numbers.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

from relaylab.codegen.specialize import with_body
from relaylab.ir.expr import Call, Expr
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op, facets, is_call_to
from relaylab.ir.types import TensorType, is_dynamic
from relaylab.ir.visit import rewrite, users
from relaylab.transform.engine.build import call, scalar, scalar_value
from relaylab.transform.simplify.simplify_shapes import swaps_last

MATRICES = 3  # axes of a batch of matrices
Users = Mapping[Expr, Sequence[Expr]]


def with_plain_products(mod: IRModule) -> IRModule:
    """A typed module whose batched products of open matrices say that a side is transposed, and have no copy of it, and
    whose scores are scaled as queries.
    """
    main = mod["main"]
    used = users(main.body)
    return with_body(mod, rewrite(main.body, lambda new, old: _plain(new, old, used)))


def _plain(new: Expr, old: Expr, used: Users) -> Expr:
    if is_call_to(new, "divide", "multiply"):
        return _scaled_before(new, cast(Call, old), used)
    if not is_call_to(new, "nn.batch_matmul") or not any(is_dynamic(a.checked_type) for a in cast(Call, old).args):
        return new
    left, right = new.args
    if not is_call_to(right, "transpose") or not swaps_last(right, MATRICES):
        return new
    record = facets(new)
    turned = {**dict(record.items()), "transpose_b": not record.transpose_b}
    return Call(new.op, [left, right.args[0]], type(record)(**turned), span=new.span)


def _scaled_before(new: Call, old: Call, used: Users) -> Expr:
    """A product of a known left side and an open right one times a number: that of the left side times the number."""
    t = cast(TensorType, old.checked_type)
    side = 1 if is_call_to(new, "multiply") and scalar_value(old.args[0]) is not None else 0
    by = scalar_value(old.args[1 - side])
    if by is None or not by or not math.isfinite(by) or t.dtype not in ("float32", "float64") or not is_dynamic(t):
        return new
    above: list[Call] = []
    now, was = new.args[side], old.args[side]
    while is_call_to(now, "reshape") and is_call_to(was, "reshape") and len(used[was]) == 1:
        above.append(now)
        now, was = now.args[0], was.args[0]
    if not is_call_to(now, "nn.batch_matmul") or not is_call_to(was, "nn.batch_matmul") or len(used[was]) > 1:
        return new
    if is_dynamic(was.args[0].checked_type) or cast(TensorType, was.args[0].checked_type).dtype != t.dtype:
        return new
    left = cast(Expr, call(cast(Op, new.op).name, now.args[0], scalar(by, t.dtype)))
    found: Expr = Call(now.op, [left, *now.args[1:]], now.attrs, span=now.span)
    for reshape in reversed(above):
        found = Call(reshape.op, [found], reshape.attrs, span=reshape.span)
    return found
