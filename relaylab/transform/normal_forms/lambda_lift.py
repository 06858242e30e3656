"""LambdaLift: functions written inside others become functions of the module (Johnsson, 1985).

A function without free variables moves as it is. One with free variables becomes a closure: a
global function of these variables, marked `Closure=1`, that returns the function.
"""

from __future__ import annotations

from relaylab.ir.adt import Match
from relaylab.ir.base import Expr
from relaylab.ir.digest import structural_hash
from relaylab.ir.equal import StructuralTable
from relaylab.ir.expr import Call, Function, GlobalVar, Let, Var
from relaylab.ir.free import bound_by, free_type_vars
from relaylab.ir.module import IRModule
from relaylab.ir.names import GlobalVarSupply
from relaylab.ir.trail import derived, made_from
from relaylab.ir.visit import children, rebuild, walk
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.manager import ModulePass, create
from relaylab.transform.engine.renewal import as_function, copied, fresh, renewed


class _Lifter:
    """Lifts the lambdas of a module; equal ones share one global function."""

    def __init__(self, mod: IRModule):
        self.mod = mod
        self.supply = GlobalVarSupply(mod)
        self.lifted: dict[GlobalVar, Function] = {}
        self.placed: StructuralTable[GlobalVar] = StructuralTable()

    def lift(self, func: Function) -> Function:
        """A function of the module without functions inside."""
        return _FunctionLifter(self, func).run()

    def place(self, func: Function) -> GlobalVar:
        """The global function for a closed function."""
        gv = self.placed.at(func, self.fresh)
        self.lifted.setdefault(gv, func)
        return gv

    def fresh(self, code: int) -> GlobalVar:
        """A global variable for a function with this structural hash."""
        # by the hash, as TVM does: the name does not depend on the order of lifting; masked: a name has no minus
        return self.supply.fresh_global(f"lifted_name{code & (1 << 63) - 1}")


class _FunctionLifter:
    """Rewrites one function from the leaves up."""

    def __init__(self, lifter: _Lifter, root: Function):
        self.lifter, self.root = lifter, root
        self.memo: dict[Expr, Expr] = {}
        self.free = free_variables(root)
        self.names = {n.value: n.var for n in walk((root,)) if isinstance(n, Let) and isinstance(n.value, Function)}

    def run(self) -> Function:
        for node in walk((self.root,), _below):
            with made_from(node):
                self.memo[node] = derived(self._rewritten(node), node)
        return as_function(self.memo[self.root])

    def _rewritten(self, node: Expr) -> Expr:
        if isinstance(node, Function) and (node.is_primitive or node.attr("Compiler")):
            return node
        new = copied(rebuild(node, [self.memo.get(c, c) for c in children(node)]), node)
        if isinstance(node, Function) and node is not self.root:
            return self._lift(node, as_function(new))
        return new

    def _lift(self, old: Function, new: Function) -> Expr:
        """The global function, or the call of a closure, that stands for a lambda."""
        own = self.names.get(old)
        captured = [v for v in self.free[old] if v is not own]
        if own is not None and own in self.free[old]:
            return self._recursive(old, new, own, captured)
        if not captured and not free_type_vars(new):  # type variables from outside make a closure as well
            return self.lifter.place(new)
        return Call(self.lifter.place(copied(_closure(new, captured, old), old)), captured, None, free_type_vars(new))

    def _recursive(self, old: Function, new: Function, own: Var, captured: list[Var]) -> Expr:
        """A function that calls itself by its `let` variable calls the global one instead."""
        # the name is needed before there is a body to share: the body calls it
        gv = self.lifter.fresh(structural_hash(old, True))
        types = free_type_vars(new)
        closure = bool(captured or types)
        inner = Call(gv, captured, None, types) if closure else gv
        body = as_function(renewed(new, {own: inner}) if own in self.free[old] else new)
        self.lifter.lifted[gv] = copied(_closure(body, captured, old) if closure else body, old)
        return Call(gv, captured, None, types) if closure else gv


def _closure(func: Function, captured: list[Var], old: Function) -> Function:
    """A function of the captured variables that returns `func`, which has the type that `old` had."""
    params = {
        v: fresh(v) if v.type_annotation is not None else copied(Var(v.name_hint, type_of(v)), v) for v in captured
    }
    inner = renewed(func, dict(params))
    return Function(tuple(params.values()), inner, type_of(old), free_type_vars(func), {"Closure": 1})


def _below(node: Expr) -> tuple[Expr, ...]:
    match node:
        case Function():
            return () if node.is_primitive or node.attr("Compiler") else (node.body,)
        case Let():
            return (node.value, node.body)
        case Match():
            return (node.data, *(c.rhs for c in node.clauses))
        case _:
            return children(node)


def free_variables(root: Function) -> dict[Expr, tuple[Var, ...]]:
    """The variables from outside that each function inside `root` uses, in the order of use."""
    inner = [n for n in walk((root,), _below) if isinstance(n, Function) and n is not root]
    out: dict[Expr, tuple[Var, ...]] = {}
    for func in inner:
        nodes = list(walk((func,)))
        bound = {v for n in nodes for v in bound_by(n)}
        out[func] = tuple(n for n in nodes if isinstance(n, Var) and n not in bound)
    return out


@pass_(level=1)
class LambdaLift(ModulePass):
    """Moves every function that is written inside another one to the module."""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        if any(f.inferred is None for f in mod.functions.values()):  # what is captured becomes a parameter
            mod = create("InferType")(mod)
        lifter = _Lifter(mod)
        functions = {
            gv: f if f.attr("Compiler") or f.is_primitive else lifter.lift(f) for gv, f in mod.functions.items()
        }
        return mod.with_functions({**functions, **lifter.lifted})
