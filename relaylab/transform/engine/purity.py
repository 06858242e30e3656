"""What an expression may do besides computing a value: whether evaluating it, or calling its value, has an effect.

Reading and writing cells and operators marked as stateful have effects. Functions that come from
parameters, tuples, cells or data structures are not known, so calling them is taken to have one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from weakref import WeakKeyDictionary

from relaylab.ir.adt import Constructor
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, GlobalVar, Let, RefRead, RefWrite, Var
from relaylab.ir.free import global_vars
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.types import FuncType
from relaylab.ir.visit import children, kinds_in, operators_in, walk


class Purity(NamedTuple):
    """Whether evaluating is without effect, and whether calling the value is."""

    evaluated: bool
    called: bool


PURE = Purity(True, True)


class PurityAnalysis:
    """The purity of every expression of a module, functions that call each other being assumed pure meanwhile."""

    def __init__(self, mod: IRModule):
        self.mod = mod
        self.known: dict[Expr, Purity] = {}
        self.globals: dict[GlobalVar, bool] = _pure_globals(mod)

    def visit(self, root: Expr) -> None:
        """Find the purity of everything in `root`."""
        let_of = {n.var: n.value for n in walk((root,)) if isinstance(n, Let)}
        nodes = list(walk((root,), _below))
        wrong = True
        while wrong:
            for node in nodes:
                self.known[node] = self._of(node, let_of)
            # a function that calls itself was taken for pure when its name was met: if it is not, once more
            bound = ((self.known.get(var), self.known.get(value)) for var, value in let_of.items())
            wrong = any(v is not None and f is not None and v.called > f.called for v, f in bound)

    def evaluates(self, expr: Expr) -> bool:
        """Whether evaluating an expression (which was visited) has no effect."""
        return self.known[expr].evaluated

    def _of(self, node: Expr, let_of: Mapping[Var, Expr]) -> Purity:
        match node:
            case Op():
                return Purity(True, not node.definition.stateful)
            case GlobalVar():
                return Purity(True, self.globals.get(node, False))
            case Constant() | Constructor():
                return PURE
            case Var():
                # a function that calls itself is met before it is known: pure meanwhile
                value = let_of.get(node)
                return Purity(True, value is not None and self.known.get(value, PURE).called)
            case Function():
                return Purity(True, node.is_primitive or self.known[node.body].evaluated)
            case RefRead() | RefWrite():
                return Purity(False, _is_data(node))
            case _:
                return self._compound(node)

    def _compound(self, node: Expr) -> Purity:
        parts = [self.known[c] for c in _below(node)]
        pure = all(p.evaluated for p in parts)
        if isinstance(node, Call):
            pure = pure and parts[0].called
        return Purity(pure, self.known[node.body].called if isinstance(node, Let) else _is_data(node))


def _is_data(node: Expr) -> bool:
    """Whether a value is known to be no function."""
    return node.inferred is not None and not isinstance(node.inferred, FuncType)


def acts(node: Expr) -> bool:
    """Whether evaluating a node alone, its parts being there, may have an effect or depend on one."""
    match node:
        case Call(op=Op() as op):
            return op.definition.stateful
        case Call(op=Function() as func):
            return not func.is_primitive
        case Call():
            return not isinstance(node.op, Constructor)
        case _:
            return isinstance(node, (RefRead, RefWrite))


def _below(node: Expr) -> tuple[Expr, ...]:
    if isinstance(node, Function):
        return () if node.is_primitive else (node.body,)
    if isinstance(node, Let):
        return (node.value, node.body)
    # the variables that the patterns of a match bind are not evaluated
    return tuple(c for c in children(node) if not isinstance(c, Var) or not hasattr(node, "clauses"))


def _pure_globals(mod: IRModule) -> dict[GlobalVar, bool]:
    """Which functions of a module have no effect: all, but those found impure and what calls them."""
    # pure until an effect is found: functions that call each other have no first one to begin with
    pure = {gv: not func.attr("Extern", 0) for gv, func in mod.functions.items()}
    effect = {
        gv: not kinds_in(f).isdisjoint((RefRead, RefWrite)) or any(op.definition.stateful for op in operators_in(f))
        for gv, f in mod.functions.items()
    }
    unknown = {gv: _calls_unknown(f) for gv, f in mod.functions.items()}
    callers: dict[GlobalVar, list[GlobalVar]] = {}
    for gv, func in mod.functions.items():
        for node in global_vars(func):
            callers.setdefault(node, []).append(gv)
    stack = [gv for gv in pure if effect[gv] or unknown[gv] or not pure[gv]]
    while stack:
        gv = stack.pop()
        pure[gv] = False
        stack.extend(c for c in callers.get(gv, ()) if pure[c])
    return pure


def _calls_unknown(func: Function) -> bool:
    """Whether a function calls what comes from parameters, tuples, cells, data or other calls."""
    nodes = list(walk((func,)))
    let_of = {n.var: n.value for n in nodes if isinstance(n, Let)}
    called = (let_of.get(n.op, n.op) if isinstance(n.op, Var) else n.op for n in nodes if isinstance(n, Call))
    return not all(isinstance(f, (Op, GlobalVar, Constructor, Function)) for f in called)


def changes_state(mod: IRModule) -> bool:
    """Whether anything in a module writes to a cell or calls an operator with an effect that others may see."""
    functions, found = _states.get(mod, ({}, False))
    if functions != mod.functions:  # passes ask for each function: only those that are new are looked at
        new = (f for gv, f in mod.functions.items() if found or functions.get(gv) is not f)
        found = any(map(changes_state_in, new))
        _states[mod] = dict(mod.functions), found
    return found


_states: WeakKeyDictionary[IRModule, tuple[dict[GlobalVar, Function], bool]] = WeakKeyDictionary()
_changing: WeakKeyDictionary[Function, bool] = WeakKeyDictionary()


def changes_state_in(func: Function) -> bool:
    """Whether anything in a function writes to a cell or calls an operator with an effect that others may see."""
    if func not in _changing:  # passes ask it for every function of a module
        ordered = (op.definition.stateful and op.definition.ordered for op in operators_in(func))
        _changing[func] = RefWrite in kinds_in(func) or any(ordered)
    return _changing[func]


def first_effect(func: Function, purity: PurityAnalysis) -> Expr | None:
    """The first expression of a typed function, or of one within it, whose place in the order of evaluation counts."""
    purity.visit(func)
    return next((n for n in walk((func,), _below) if not purity.evaluates(n)), None)
