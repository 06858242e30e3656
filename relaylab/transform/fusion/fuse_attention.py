"""FuseAttention: products, masks, softmax and products again become one operator that keeps no matrix of scores.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Annotated, cast

import numpy as np

from relaylab.ir import Call, Expr, Function, IRModule, TensorType, facets, is_call_to, rewrite, users
from relaylab.ir.visit import operators_in
from relaylab.transform.engine.build import call, reshaped, scalar, scalar_value
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.manager import FunctionPass

Users = Mapping[Expr, Sequence[Expr]]
SOFTMAX = ("nn.softmax", "nn.fast_softmax")
DTYPES = ("float32", "float64")


def _type(x: Expr) -> TensorType | None:
    """The type of a tensor whose shape is known."""
    found = type_of(x)
    return found if isinstance(found, TensorType) and not found.is_dynamic else None


def _shape(x: Expr) -> tuple[int, ...]:
    """The extents of a tensor; none if they are not all known."""
    found = _type(x)
    return found.concrete_shape if found is not None else ()


def _keeps_matrices(x: Expr) -> bool:
    """Is it a reshape that leaves the last two axes as they are?"""
    return is_call_to(x, "reshape") and len(_shape(x)) > 1 and _shape(x)[-2:] == _shape(x.args[0])[-2:]


def _factor(x: Expr) -> tuple[Expr, float] | None:
    """What a tensor is times a number, and the number."""
    if not is_call_to(x, "multiply", "divide"):
        return None
    sides = [x.args] if is_call_to(x, "divide") else [x.args, x.args[::-1]]
    for tensor, by in sides:
        number = scalar_value(by)
        if number is not None and _shape(tensor) == _shape(x):
            return tensor, float(number) if is_call_to(x, "multiply") else 1 / number if number else math.nan
    return None


@dataclass
class _Scores:
    """How scores come about, walked from the softmax towards the product; `inner` are the nodes on the way."""

    product: Expr
    scale: float = 1.0
    masks: list[Expr] = field(default_factory=list)
    lead: tuple[int, ...] = ()
    inner: list[Expr] = field(default_factory=list)

    def walk(self) -> Call | None:
        """The product; None if the scores are anything else."""
        while not is_call_to(self.product, "nn.batch_matmul"):
            self.inner.append(self.product)
            if _keeps_matrices(self.product):
                self.product = cast(Call, self.product).args[0]
            elif found := _factor(self.product):
                self.product, by = found
                self.scale *= by
            elif not self._masked():
                return None
        self.inner.append(self.product)
        return self.product

    def _masked(self) -> bool:
        """Take an addition; what is multiplied after it is none."""
        shape = _shape(self.product)
        if not is_call_to(self.product, "add") or self.scale != 1 or self.lead not in ((), shape[:-2]):
            return False
        sides = [a for a in self.product.args if _shape(a) == shape and is_call_to(a, *WAY)]
        if not sides:
            return False
        self.masks += [a for a in self.product.args if a is not sides[0]]
        self.product, self.lead = sides[0], shape[:-2]
        return len(self.masks) > 0


WAY = ("nn.batch_matmul", "reshape", "multiply", "divide", "add")


def _empty_as_zero(x: Expr) -> tuple[Expr, list[Expr]]:
    """Softmax below `where(no score is above -inf, 0, softmax)`, and the nodes on the way; else `x` and none."""
    if not is_call_to(x, "where") or not _zeros(x.args[1]) or not is_call_to(x.args[2], *SOFTMAX):
        return x, []
    inner: list[Expr] = [x]
    at: Expr = x.args[0]
    for name in ("logical_not", "any", "logical_not", "equal"):
        if not is_call_to(at, name):
            return x, []
        if name == "any" and (not facets(at).keepdims or _shape(at) != (*_shape(x)[:-1], 1)):
            return x, []
        inner.append(at)
        if name == "equal":
            same = at.args[0] is x.args[2].args[0] and scalar_value(at.args[1]) == -math.inf
            return (x.args[2], inner) if same else (x, [])
        at = at.args[0]
    return x, []


def _zeros(x: Expr) -> bool:
    """Is it 0 all over? Large constants are not folded."""
    return scalar_value(x.args[0] if is_call_to(x, "full") else x) == 0


@dataclass(frozen=True)
class _Factor:
    """An operand of a product: the expression that has its rows last but one, and what it is still multiplied by."""

    source: Expr
    scale: float = 1.0
    swapped: bool = False

    @staticmethod
    def of(x: Expr, swapped: bool, scaled: bool) -> _Factor:
        """The operand `x`, whose rows are its columns if `swapped`; before what moved or (`scaled`) multiplied it."""
        best, scale = _Factor(x, 1.0, swapped), 1.0
        while True:
            if _keeps_matrices(x):
                x = cast(Call, x).args[0]
            elif is_call_to(x, "transpose") and _swaps(x):
                x, swapped = x.args[0], not swapped
            elif scaled and (found := _factor(x)):
                x, by = found
                scale *= by
            else:
                return best
            if not swapped:
                best = _Factor(x, scale)

    def built(self, done: Mapping[Expr, Expr], lead: Sequence[int]) -> Expr:
        """It in the new program, with these axes before those of its matrices."""
        x, (*_, a, b) = done[self.source], _shape(self.source)
        x = x if _shape(self.source) == (*lead, a, b) else reshaped(x, (*lead, a, b))
        rank = len(lead)
        return call("transpose", x, axes=[*range(rank), rank + 1, rank]) if self.swapped else x


def _swaps(x: Call) -> bool:
    rank = len(_shape(x))
    axes = [int(a) % rank for a in facets(x).axes or range(rank)[::-1]] if rank else []
    return axes == [*range(rank - 2), rank - 1, rank - 2]


@dataclass(frozen=True)
class _Attention:
    """The parts of an attention that a product ends, as they are in the old program."""

    root: Call
    query: _Factor
    key: _Factor
    value: _Factor
    scores: _Scores
    zero_empty: bool

    @staticmethod
    def of(root: Expr, used: Users) -> _Attention | None:
        """What ends in a product, if its left side are weights and nothing else reads what leads to them."""
        if not is_call_to(root, "nn.batch_matmul") or facets(root).transpose_a or not _own_dtype(root):
            return None
        at, inner = root.args[0], list[Expr]()
        while _keeps_matrices(at):
            inner.append(at)
            at = cast(Call, at).args[0]
        weights, more = _empty_as_zero(at)
        if not is_call_to(weights, *SOFTMAX) or facets(weights).axis not in (-1, len(_shape(weights)) - 1):
            return None
        scores = _Scores(weights.args[0])
        product = scores.walk()
        within = {*inner, *more, weights, *scores.inner, root}
        if product is None or facets(product).transpose_a or not _own_dtype(product):
            return None
        if any(user not in within for node in within - {root} for user in used[node]):
            return None
        query, key = (
            _Factor.of(product.args[0], False, True),
            _Factor.of(product.args[1], not facets(product).transpose_b, True),
        )
        value = _Factor.of(root.args[1], bool(facets(root).transpose_b), False)
        found = _Attention(root, query, key, value, scores, bool(more))
        return found if found._fits(product) else None

    def _fits(self, product: Call) -> bool:
        """Do the operands have one batch, and the masks the axes of the scores?"""
        batches = {_shape(x)[0] for x in (*product.args, self.root.args[1], self.root)}
        m, n = _shape(product)[1:]
        lead = self.scores.lead or _shape(product)[:1]
        masks = [_type(x) for x in self.scores.masks]
        whole = (*lead, m, n)
        return (
            len(batches) == 1
            and math.prod(lead) == _shape(product)[0]
            and math.isfinite(self.scale)
            and all(t is not None and np.broadcast_shapes(t.concrete_shape, whole) == whole for t in masks)
        )

    @property
    def scale(self) -> float:
        """What the products of queries and keys are multiplied by."""
        return self.scores.scale * self.query.scale * self.key.scale

    def built(self, done: Mapping[Expr, Expr]) -> Expr:
        """The operator in its place."""
        dtype, shape = cast(TensorType, _type(self.root)).dtype, _shape(self.root)
        lead = self.scores.lead or shape[:1]
        parts = [part.built(done, lead) for part in (self.query, self.key, self.value)]
        masks = [done[mask] for mask in self.scores.masks] or [scalar(0, dtype)]
        mask = reduce(lambda a, b: cast(Expr, call("add", a, b)), masks)
        made = call("nn.attention", *parts, mask, scale=self.scale, zero_empty=self.zero_empty)
        return made if (*lead, *shape[1:]) == shape else reshaped(made, shape)


def _own_dtype(product: Call) -> bool:
    """Are its numbers and sums of one data type that is not narrow?"""
    types = [_type(x) for x in (*product.args, product)]
    return len({t and t.dtype for t in types}) == 1 and types[0] is not None and types[0].dtype in DTYPES


@pass_(level=3, requires=("InferType",), idempotent=True)
class FuseAttention(FunctionPass):
    """Writes softmax(query key' * scale + mask) value as `nn.attention` where the scores are many and read once."""

    min_bytes: Annotated[int, "The bytes that all scores must take, more than a second-level cache has."] = 2 << 20
    min_queries: Annotated[int, "How many queries there must be: the lanes of vectors."] = 64

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        if not any(op.name in SOFTMAX for op in operators_in(func)):
            return func
        done: dict[Expr, Expr] = {}
        used = users(func)

        def at(new: Expr, old: Expr) -> Expr:
            found = _Attention.of(old, used)
            if found is None:
                return new
            scores = cast(TensorType, _type(found.scores.product))
            size = math.prod(scores.concrete_shape) * np.dtype(scores.dtype).itemsize
            pays = size >= self.min_bytes and scores.concrete_shape[1] >= self.min_queries
            return found.built(done) if pays else new

        return rewrite(func, at, memo=done)
