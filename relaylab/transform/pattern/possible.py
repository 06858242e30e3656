"""A test that comes before the search: whether a pattern may fit at all, by kinds of nodes and attributes alone.

Most rules fit at few of the nodes at which they are tried; this says so without a generator for each part, by a
function that is made of the pattern once. What it lets through the matcher decides: types, values and parts that stand
for one node are not looked at.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, If, Let, Tuple, TupleGetItem, Var
from relaylab.ir.op import Op
from relaylab.transform.pattern import nodes as pn
from relaylab.transform.pattern.nodes import DFPattern

COMMUTATIVE = ("add", "multiply")
_REASSOCIATED = {"divide": "multiply", "multiply": "divide"}


def reassociated(p: pn.CallPattern) -> str:
    """The operator whose calls may fit as well, their factors being taken in another order: (a * b) / c is a * (b / c).

    Empty if there is none.
    """
    other = _REASSOCIATED.get(p.op_name, "")
    inner = (p.args or ())[: 1 if p.op_name == "divide" else 2] if other else ()
    holds = any(isinstance(i, pn.CallPattern) and i.op_name == other and i.args is not None for i in inner)
    return other if holds else ""


def attr_of(e: Expr, name: str) -> object:
    """An attribute of a node: its own, else that of its operator; None if it has none of that name."""
    if isinstance(e, Op):
        return e.get_attr(name)
    if isinstance(e, Function):
        return e.attr(name)
    if isinstance(e, Call):
        own = e.attrs.get(name) if e.attrs is not None else None
        return e.op.get_attr(name) if own is None and isinstance(e.op, Op) else own
    return None


def same_attr(found: object, wanted: object) -> bool:
    """Whether an attribute is what a pattern wants; lists and tuples of equal values are equal."""
    if isinstance(wanted, (list, tuple)) or isinstance(found, (list, tuple)):
        return isinstance(found, (list, tuple)) and isinstance(wanted, (list, tuple)) and list(found) == list(wanted)
    return found is not None and found == wanted


def has_attrs(wanted: Mapping[str, object], e: Expr) -> bool:
    """Whether a node has all attributes that a pattern wants."""
    for name, value in wanted.items():
        if not same_attr(attr_of(e, name), value):
            return False
    return True


def root_ops(pattern: DFPattern) -> frozenset[str] | None:
    """The operators at which the pattern can fit, or None if it can fit elsewhere."""
    match pattern:
        case pn.CallPattern() if pattern.op_name:
            extra = reassociated(pattern)
            return frozenset((pattern.op_name, extra) if extra else (pattern.op_name,))
        case pn.AltPattern():
            left, right = root_ops(pattern.left), root_ops(pattern.right)
            return None if left is None or right is None else left | right
        case pn.TypePattern() | pn.DataTypePattern() | pn.ShapePattern() | pn.AttrPattern():
            return root_ops(pattern.pattern)
        case pn.DominatorPattern():
            return root_ops(pattern.child)
        case _:
            return None


Test = Callable[[Expr], bool]
"""What says of an expression that a pattern may fit it; None: of any."""


def may_fit(pattern: DFPattern, expr: Expr) -> bool:
    """False if the pattern does not fit the expression, whatever else is known of it."""
    test = test_of(pattern)
    return test is None or test(expr)


def test_of(pattern: DFPattern) -> Test | None:
    """The test of a pattern, made when it is first asked for."""
    if pattern in _made:
        return _made[pattern]
    stack = [pattern]
    while stack:  # parts first; no recursion, as patterns may be made of programs
        top = stack[-1]
        missing = [part for part in _looked_at(top) if part not in _made]
        if missing:
            stack += missing
        else:
            _made[stack.pop()] = _TESTS[type(top)](top) if type(top) in _TESTS else None
    return _made[pattern]


_made: WeakKeyDictionary[DFPattern, Test | None] = WeakKeyDictionary()


def _looked_at(p: DFPattern) -> tuple[DFPattern, ...]:
    """The parts that a test looks at; a pattern holds itself only behind a wildcard, which fits anything."""
    match p:
        case pn.CallPattern():
            return (p.op, *(p.args or ()))
        case pn.AltPattern():
            return (p.left, p.right)
        case pn.TupleGetItemPattern():
            return (p.tuple,)
        case pn.DominatorPattern():
            return (p.child,)
        case pn.AttrPattern() | pn.TypePattern() | pn.DataTypePattern() | pn.ShapePattern():
            return (p.pattern,)
        case _:
            return ()


def _call(p: pn.CallPattern) -> Test:
    called, op, args, other = p.called, test_of(p.op), _arguments(p), reassociated(p)

    def test(e: Expr) -> bool:
        if not isinstance(e, Call):
            return False
        if called is None:  # its arguments first: what they are is found by one look at most
            return (args is None or args(e.args)) and (op is None or op(e.op))
        if called is not e.op:
            return other != "" and isinstance(e.op, Op) and e.op.name == other
        return args is None or args(e.args)

    return test


def _arguments(p: pn.CallPattern) -> Callable[[Sequence[Expr]], bool] | None:
    """The test of a call's arguments; None for any."""
    if p.args is None:
        return None
    count, tests = len(p.args), [(k, test) for k, test in enumerate(map(test_of, p.args)) if test is not None]
    orders = [tests]
    if count == 2 and p.op_name in COMMUTATIVE and tests:
        orders.append([(1 - k, test) for k, test in tests])

    def fit(args: Sequence[Expr]) -> bool:
        if len(args) != count:
            return False
        for order in orders:  # a generator would take most of the time
            for k, test in order:
                if not test(args[k]):
                    break
            else:
                return True
        return False

    return fit


def _expr(p: pn.ExprPattern) -> Test:
    wanted, kind = p.expr, type(p.expr)
    if isinstance(wanted, Op):
        return lambda e: e is wanted
    return lambda e: type(e) is kind


def _alternative(p: pn.AltPattern) -> Test | None:
    """By the operator that an expression calls: the tests of the alternatives that may fit there."""
    leaves = _alternatives(p)
    tests = {leaf: (root_ops(leaf), test_of(leaf)) for leaf in leaves}
    heads = {head for found, _ in tests.values() for head in found or ()}
    others = [test for found, test in tests.values() if found is None]
    if None in others:
        return None
    by_head = {h: [test for found, test in tests.values() if found is None or h in found] for h in heads}

    def test(e: Expr) -> bool:
        op = e.op if isinstance(e, Call) else None
        for part in by_head.get(op.name, others) if isinstance(op, Op) else others:
            if part is None or part(e):
                return True
        return False

    return test


def _alternatives(p: pn.AltPattern) -> list[DFPattern]:
    """What is chosen from, where alternatives hold others, from the left."""
    found: list[DFPattern] = []
    stack: list[DFPattern] = [p]
    while stack:
        top = stack.pop()
        if isinstance(top, pn.AltPattern):
            stack += (top.right, top.left)
        else:
            found.append(top)
    return found


def _attributes(p: pn.AttrPattern) -> Test:
    inner, wanted = test_of(p.pattern), p.attrs
    return lambda e: (inner is None or inner(e)) and has_attrs(wanted, e)


def _projection(p: pn.TupleGetItemPattern) -> Test:
    inner = test_of(p.tuple)
    return lambda e: isinstance(e, TupleGetItem) and (inner is None or inner(e.tuple_value))


def _of_kind(kind: type[Expr]) -> Callable[[DFPattern], Test]:
    return lambda p: lambda e: isinstance(e, kind)


_TESTS: dict[type, Callable[[Any], Test | None]] = {
    pn.ExprPattern: _expr,
    pn.CallPattern: _call,
    pn.VarPattern: _of_kind(Var),
    pn.ConstantPattern: _of_kind(Constant),
    pn.FunctionPattern: _of_kind(Function),
    pn.IfPattern: _of_kind(If),
    pn.LetPattern: _of_kind(Let),
    pn.TuplePattern: _of_kind(Tuple),
    pn.TupleGetItemPattern: _projection,
    pn.AltPattern: _alternative,
    pn.AttrPattern: _attributes,
    **dict.fromkeys((pn.TypePattern, pn.DataTypePattern, pn.ShapePattern), lambda p: test_of(p.pattern)),
    pn.DominatorPattern: lambda p: test_of(p.child),
}
