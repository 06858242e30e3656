"""SinkReshape: elementwise operators work on a product as it is, and its result is reshaped after them.

A product of matrices of more axes is written as a reshape, `nn.dense` and a reshape. The second one stands between the
product and what could be its epilogue: bias, activation, the sum with what went around it.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeGuard, cast

from relaylab.ir import Call, Expr, Function, IRModule, Op, TensorType, is_call_to, rebuild, rewrite, users, walk
from relaylab.op.base import OpPattern
from relaylab.transform.engine.build import reshaped
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.manager import FunctionPass

Shape = tuple[int, ...]
PRODUCTS = ("nn.dense", "nn.matmul", "nn.batch_matmul")
BY_PLACE = ("broadcast_to", "tile", "trilu")
"""Operators of one element at a time, which depends on where it stands; those with an `axis` do too."""
FAR = 32  # operators between a value and where all that is made of it meets


def _shape(x: Expr) -> Shape | None:
    """The extents of a tensor that are all known and above 0."""
    found = type_of(x)
    if not isinstance(found, TensorType) or found.is_dynamic or 0 in found.concrete_shape:
        return None
    return found.concrete_shape


def regrouped(part: Shape, whole: Shape, other: Shape) -> Shape | None:
    """The shape of `part`, which broadcasts to `whole`, beside `whole` reshaped to `other`; None if it has none."""
    part, found = (1,) * (len(whole) - len(part)) + part, list[int]()
    at, to = 0, 0
    while at < len(whole) or to < len(other):
        start, begin = at, to
        at, to = min(at + 1, len(whole)), min(to + 1, len(other))
        # axes with the same elements before and after
        while (here := math.prod(whole[start:at])) != (there := math.prod(other[begin:to])):
            at, to = (at + 1, to) if here < there else (at, to + 1)
        if part[start:at] == whole[start:at]:
            found += other[begin:to]
        elif set(part[start:at]) == {1}:
            found += [1] * (to - begin)
        else:
            return None
    return tuple(found)


def _elementwise(x: Expr) -> TypeGuard[Call]:
    """Is it a call whose elements depend on the same elements of its operands, wherever they stand?"""
    if not isinstance(x, Call) or not isinstance(x.op, Op) or x.op.pattern > OpPattern.BROADCAST:
        return False
    return x.op.name not in BY_PLACE and "axis" not in x.op.definition.fields


def _reshaped_product(x: Expr) -> bool:
    return is_call_to(x, "reshape") and is_call_to(x.args[0], *PRODUCTS)


class Sunk(NamedTuple):
    """What an expression is a reshape of; `leads` says that what is made of it meets after elementwise operators."""

    product: Expr
    shape: Shape
    leads: bool


class _Sinking:
    """One function; `below` has the new expressions that are the reshape of a product or of what became of it."""

    def __init__(self, func: Function, nodes: Sequence[Expr]):
        self.users = users(func, nodes)
        self.order = {node: k for k, node in enumerate(nodes)}
        self.below: dict[Expr, Sunk] = {}

    def at(self, new: Expr, old: Expr) -> Expr:
        whole = _shape(old) if isinstance(old, Call) else None
        if whole is None or not isinstance(old, Call) or not isinstance(new, Call):
            return new
        if is_call_to(old, "reshape"):
            return self._reshape(new, old, whole)
        return self._after(new, old, whole) if _elementwise(old) else new

    def _reshape(self, new: Call, old: Call, whole: Shape) -> Expr:
        given = _shape(old.args[0])
        if new.args[0] in self.below:
            product, given, _ = self.below[new.args[0]]
        elif _reshaped_product(old) and given is not None:
            product = new.args[0]
        else:
            return new
        if given == whole:
            return product
        return self._note(new if product is new.args[0] else reshaped(product, whole), old, product, given)

    def _after(self, new: Call, old: Call, whole: Shape) -> Expr:
        """An elementwise call on a product, before the reshape that came before it."""
        sunk = [self.below[a] for a, was in zip(new.args, old.args) if a in self.below and _shape(was) == whole]
        shape = next((s.shape for s in sunk if s.leads), None)
        args = [shape and self._operand(a, was, whole, shape) for a, was in zip(new.args, old.args)]
        if shape is None or any(a is None for a in args):
            return new
        product = rebuild(new, (new.op, *cast("list[Expr]", args)))
        return self._note(reshaped(product, whole), old, product, shape)

    def _operand(self, arg: Expr, old: Expr, whole: Shape, shape: Shape) -> Expr | None:
        """An operand beside the product; None if it has no shape that fits."""
        if arg in self.below and self.below[arg].shape == shape and _shape(old) == whole:
            return self.below[arg].product
        given = _shape(old)
        wanted = regrouped(given, whole, shape) if given is not None else None
        if given is None or wanted is None:
            return None
        return arg if (1,) * (len(wanted) - len(given)) + given == wanted else reshaped(arg, wanted)

    def _note(self, found: Expr, old: Expr, product: Expr, shape: Shape) -> Expr:
        self.below[found] = Sunk(product, shape, self._leads(old))
        return found

    def _leads(self, old: Expr) -> bool:
        """Does all that is made of a value meet again, after elementwise operators only?"""
        ahead = set(self.users[old])
        for _ in range(FAR):
            first = min(ahead, key=self.order.__getitem__)
            if not _elementwise(first):
                return False
            if len(ahead) == 1:
                return True
            ahead.remove(first)
            ahead.update(self.users[first])
        return False


@pass_(level=3, requires=("InferType",), idempotent=True)
class SinkReshape(FunctionPass):
    """Moves reshapes of matrix products behind the elementwise operators that follow, which then become epilogues."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        nodes = list(walk((func,)))
        return rewrite(func, _Sinking(func, nodes).at) if any(map(_reshaped_product, nodes)) else func
