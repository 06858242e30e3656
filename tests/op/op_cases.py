"""What the tests of operators share: every sample of every operator, seeded arguments, a small solver of relations."""

from __future__ import annotations

from functools import cache

import numpy as np

import relaylab.op  # noqa: F401  (registers the operators)
from relaylab.op.rounding import evaluated
from relaylab.ir import OPERATORS, Constant, IncompleteType, TensorType, Tuple, TupleType, Type, facets, post_order
from relaylab.ir.expr import Expr
from relaylab.ir.types import AnyDim
from relaylab.loop.builder import OutSpec
from relaylab.loop.evaluate import compute
from relaylab.loop.procedure import perform
from relaylab.op.base import RelationError

OF_PLACES = ("op.coordinates", "op.new-shape", "op.slice-shape")
"""The codes of what the reference refuses because of values, which say places as indices do."""


class Solver:
    """Solves one relation: arguments may be incomplete; `found` keeps what they became."""

    def __init__(self):
        self.out: Type = IncompleteType()
        self.found: dict[Type, Type] = {}

    def resolve(self, t: Type) -> Type:
        while t in self.found:
            t = self.found[t]
        return t

    def unify(self, a: Type, b: Type) -> Type:
        a, b = self.resolve(a), self.resolve(b)
        if a is b:
            return a
        if isinstance(a, IncompleteType):
            self.found[a] = b
            return b
        if isinstance(b, IncompleteType):
            return self.unify(b, a)
        if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.fields) == len(b.fields):
            return TupleType([self.unify(x, y) for x, y in zip(a.fields, b.fields)])
        if isinstance(a, TensorType) and isinstance(b, TensorType):
            return self._tensors(a, b)
        return self.fail(f"{a} and {b} do not match")

    def _tensors(self, a: TensorType, b: TensorType) -> TensorType:
        fits = len(a.shape) == len(b.shape) and a.dtype == b.dtype
        if not fits or any(
            x != y and not isinstance(x, AnyDim) and not isinstance(y, AnyDim) for x, y in zip(a.shape, b.shape)
        ):
            self.fail(f"{a} and {b} do not match")
        return TensorType([y if isinstance(x, AnyDim) else x for x, y in zip(a.shape, b.shape)], a.dtype)

    def fail(self, message: str, help: str = ""):
        raise RelationError(message, code="type.relation", help=help)


def infer(record, *types: Type) -> Type | None:
    """The type that a relation finds, or None for "not yet"."""
    solver = Solver()
    found = record.relation(solver, *types)
    return found if found is None else solver.resolve(found)


def array_of(arg, rng: np.random.Generator, low: float, high: float):
    """A seeded array for one argument of a sample (arrays stand for themselves, tuples are mapped)."""
    if isinstance(arg, tuple):
        return tuple(array_of(a, rng, low, high) for a in arg)
    if not isinstance(arg, TensorType):
        return np.asarray(arg)
    shape = arg.concrete_shape
    if arg.dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "int" in arg.dtype:
        least = max(low, np.iinfo(arg.dtype).min)
        return rng.integers(int(np.ceil(least)), int(min(high, np.iinfo(arg.dtype).max)) + 1, shape).astype(arg.dtype)
    return np.asarray(rng.uniform(low, high, shape)).astype(arg.dtype)


def arrays_of(case, seed: int = 7) -> list:
    """The seeded arguments of a sample."""
    rng = np.random.default_rng(seed)
    return [array_of(a, rng, case.low, case.high) for a in case.args]


def type_of(value) -> Type:
    """The type of an array or of a tuple of arrays."""
    if isinstance(value, tuple):
        return TupleType([type_of(v) for v in value])
    return TensorType(value.shape, value.dtype)


@cache
def cases():
    """(operator name, number, sample) of all samples."""
    return [(n, k, c) for n in sorted(OPERATORS) for k, c in enumerate(OPERATORS[n].definition.samples())]


def lowered(record, args: list, out: Type):
    """The result of the loop-level form, evaluated: an array or a tuple of them."""
    fields = out.fields if isinstance(out, TupleType) else [out]
    specs = [OutSpec(t.concrete_shape, t.dtype, k) for k, t in enumerate(fields)]
    values = (
        perform(specs, record.procedure, args)
        if record.is_procedure()
        else [compute(spec, record.lower, args) for spec in specs]
    )
    return tuple(values) if isinstance(out, TupleType) else values[0]


def evaluate(root: Expr):
    """The value of an expression of operators and constants."""
    done: dict[Expr, object] = {}
    for node in post_order(root):
        if isinstance(node, Constant):
            done[node] = node.data.numpy()
        elif isinstance(node, Tuple):
            done[node] = tuple(done[f] for f in node.fields)
        elif hasattr(node, "args"):
            done[node] = np.asarray(evaluated(facets(node), [done[a] for a in node.args]))
    return done[root]
