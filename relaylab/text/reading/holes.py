"""Constants that a text names and has no data for, as in all text that was printed by `str`: parameters stand for
them, or, on request, constants of seeded numbers.

Choices: docs/choices.md, The language.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

import numpy as np

from relaylab.ir.expr import Call, Constant, Expr, Function, FunctionWithFields, GlobalVar, Var
from relaylab.ir.free import free_vars
from relaylab.ir.module import IRModule
from relaylab.ir.types import IntImm, TensorType, Type
from relaylab.ir.visit import children, rewrite, walk
from relaylab.support.errors import RelayValueError
from relaylab.text.reading.reader import Stop
from relaylab.text.reading.state import State
from relaylab.text.reading.types import type_

_COMMENT = re.compile(r"\s*+/\*\s*+ty=(.*?)(?:\bspan=[^*]*)?\*/", re.DOTALL)
Holes = dict[int, Var]
"""The parameters that stand for constants of a function, by the numbers of the constants."""


def constant(p: State, index: int) -> Expr:
    """What stands for `meta[relay.Constant][index]`, the token before the current one."""
    span = p.span(p.i - 1)
    if index in p.filled:
        return Constant(p.filled[index], span=span)
    if index not in p.holes:
        p.holes[index] = Var(f"constant_{index}", _type_of(p), span=span)
    return p.holes[index]


def _type_of(p: State) -> Type | None:
    """The type in the comment behind the token before the current one: `/* ty=Tensor[(4), float32] */`."""
    found = _COMMENT.match(p.text, p.starts[p.i - 1] + len(p.texts[p.i - 1]))
    if found is None:
        return None
    comment = State(found[1], {}, "comment")
    try:
        read = type_(comment)
    except Stop:
        return None
    return None if comment.error_count or not isinstance(read, TensorType) else read


def close(p: State, functions: dict[GlobalVar, Function], own: Mapping[GlobalVar, Holes]) -> dict[GlobalVar, Holes]:
    """Give functions their holes, and those of the functions that they call, as parameters; which these are."""
    used = {gv: [n for n in walk((f,)) if isinstance(n, GlobalVar) and n in functions] for gv, f in functions.items()}
    needs = {gv: dict(own.get(gv, {})) for gv in functions}
    callers: dict[GlobalVar, list[GlobalVar]] = {gv: [] for gv in functions}
    for gv, names in used.items():
        for name in names:
            callers[name].append(gv)
    todo = [gv for gv in functions if needs[gv]]
    while todo:
        below = todo.pop()
        for gv in callers[below]:
            new = {k: Var(v.name_hint, v.type_annotation) for k, v in needs[below].items() if k not in needs[gv]}
            needs[gv].update(new)
            todo += [gv] * bool(new)
    for gv in [gv for gv in functions if needs[gv]]:
        functions[gv] = _with_holes(p, functions[gv], needs[gv], needs)
    return needs


def _with_holes(p: State, f: Function, holes: Holes, needs: Mapping[GlobalVar, Holes]) -> Function:
    """`f` with its holes as last parameters; the functions that it calls are given theirs."""
    for node in walk((f,)):
        for k, child in enumerate(children(node)):
            if isinstance(child, GlobalVar) and needs.get(child) and not (isinstance(node, Call) and k == 0):
                message = f"@{child.name_hint} is a value here, and has constants whose data the text does not hold"
                p.report("parse.unknown-metadata", message, p.offsets(0, 1), WITH_DATA)

    def at(new: Expr, old: Expr) -> Expr:
        if isinstance(new, Call) and isinstance(new.op, GlobalVar) and needs.get(new.op):
            return Call(new.op, (*new.args, *(holes[k] for k in needs[new.op])), new.attrs, span=new.span)
        if isinstance(new, Call) and isinstance(new.op, Function) and new.op.attr("Primitive"):
            if new.op not in closed:
                closed[new.op] = _closed(new.op, own)
            op, inside = closed[new.op]
            return Call(op, (*new.args, *inside), new.attrs, span=new.span) if inside else new
        return new

    own, closed = frozenset(holes.values()), dict[Function, tuple[Function, list[Var]]]()
    body = rewrite(f.body, at)
    return FunctionWithFields(f, params=(*f.params, *holes.values()), body=body)


UNTYPED = "write its type behind its first use: meta[relay.Constant][…] /* ty=Tensor[(…), float32] */"


def _closed(f: Function, holes: frozenset[Var]) -> tuple[Function, list[Var]]:
    """A fused function, which is compiled alone, with the holes in it as parameters; which holes these are."""
    inside = [v for v in free_vars(f) if v in holes]
    params: dict[Expr, Expr] = {v: Var(v.name_hint, v.type_annotation) for v in inside}
    body = rewrite(f.body, lambda new, old: new, memo=dict(params)) if inside else f.body
    made = (*f.params, *(p for p in params.values() if isinstance(p, Var)))
    return (FunctionWithFields(f, params=made, body=body) if inside else f), inside


WITH_DATA = "print the program with its meta data: `astext()`, not `str()`"


def words(holes: Iterable[Holes]) -> str:
    """What a text lacks, in words."""
    numbers = sorted({k for found in holes for k in found})
    names = ", ".join(f"meta[relay.Constant][{k}]" for k in numbers[:3]) + " …" * (len(numbers) > 3)
    return f"the text has no data for {len(numbers)} constant{'s' * (len(numbers) > 1)} ({names})"


def drawn(mod: IRModule, holes: Mapping[GlobalVar, Holes], seed: int) -> dict[int, np.ndarray]:
    """An array for each hole of a module with types, from a seed.

    Floats are small where they are weights (so that sums of products are of the size of their factors), and within
    0.5 and 1.5 where they are scales or biases; integers are 0 to 3. RelayValueError for a hole of unknown type.
    """
    found: dict[int, np.ndarray] = {}
    for gv, named in holes.items():
        params = mod[gv.name_hint].params
        for index, param in zip(named, params[len(params) - len(named) :], strict=True):
            found.setdefault(index, _array(index, param.inferred or param.type_annotation, seed))
    return found


def _array(index: int, t: Type | None, seed: int) -> np.ndarray:
    if not isinstance(t, TensorType) or not all(isinstance(d, IntImm) for d in t.shape):
        raise RelayValueError(
            f"the type of meta[relay.Constant][{index}] is not known", code="parse.untyped-constant", help=UNTYPED
        )
    shape, rng = tuple(int(d) for d in t.concrete_shape), np.random.default_rng([seed, index])
    if not t.dtype.startswith(("float", "bfloat")):
        return rng.integers(0, 2 if t.dtype == "bool" else 4, shape).astype(t.dtype)
    fan_in = math.prod(shape[1:])
    drawn = rng.standard_normal(shape) / math.sqrt(fan_in) if fan_in > 1 else rng.uniform(0.5, 1.5, shape)
    return np.asarray(drawn, t.dtype)
