"""Sizes with names across a call: the arguments say what the sizes in a function's type are at this call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from relaylab.analysis.infer.solver import Conflict, Constraint
from relaylab.ir.dims import Dim, SizeVar, differ
from relaylab.ir.expr import Call
from relaylab.ir.free import with_sizes
from relaylab.ir.types import FuncType, IncompleteType, TensorType, TupleType, Type, renew_type
from relaylab.op.shapes import better_known
from relaylab.support.errors import RelayError

if TYPE_CHECKING:
    from relaylab.analysis.infer.typer import Typer

Sizes = dict[SizeVar, Dim]


def result_of_call(t: Typer, call: Call, callee: FuncType, args: Iterable[Type]) -> Type:
    """The type of a call: that of the function's result, with the sizes that its parameters name as the arguments have
    them.
    """
    found: Sizes = {}
    for k, (wanted, given) in enumerate(zip(callee.arg_types, args)):
        if type(wanted) in (TensorType, TupleType):
            clash = _collect(wanted, t.solver.resolve(given), found)
            if clash is not None:
                return t.fail("mismatch", f"argument {k}: {clash}", call)
    binds = {name: size for name, size in found.items() if size != name}
    return _renamed(t, call, callee.ret_type, binds) if binds else callee.ret_type


def _collect(wanted: Type, given: Type, found: Sizes) -> str | None:
    """Add to `found` what a parameter's sizes are; says what contradicts what is there."""
    stack, seen = [(wanted, given)], set[tuple[int, int]]()
    while stack:
        w, g = stack.pop()
        if (id(w), id(g)) in seen:  # types may share their parts
            continue
        seen.add((id(w), id(g)))
        if isinstance(w, TupleType) and isinstance(g, TupleType):
            stack.extend(reversed(list(zip(w.fields, g.fields))))
        elif isinstance(w, TensorType) and isinstance(g, TensorType):
            for name, size in zip(w.shape, g.shape):
                if isinstance(name, SizeVar):
                    known = found.setdefault(name, size)
                    if differ(known, size):
                        return f"the size `{name}` is {known} and {size}"
                    found[name] = better_known(known, size)
    return None


def _renamed(t: Typer, call: Call, result: Type, binds: Mapping[SizeVar, Dim]) -> Type:
    """The result's type as soon as it is known, with the sizes replaced."""
    new = IncompleteType()

    def attempt() -> bool:
        if t.solver.unknowns(result):
            return False
        try:
            t.solver.unify(new, sized(t.solver.resolve(result), binds))
        except Conflict as conflict:
            t.mismatch(new, result, conflict, call, "the result of this call")
        except RelayError as error:
            t.solver.unify(new, t.fail("mismatch", f"the sizes of this call do not fit: {error.message}", call))
        return True

    t.solver.post(Constraint(attempt, (result,)))
    return t.solver.shallow(new)


def sized(t: Type, binds: Mapping[SizeVar, Dim]) -> Type:
    """A type with other sizes."""

    def at(part: Type) -> Type | None:
        if isinstance(part, TensorType) and part.is_dynamic:
            return TensorType([with_sizes(d, binds) for d in part.shape], part.dtype)
        return None

    return renew_type(t, at)
