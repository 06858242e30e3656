"""PartialEvaluate: what can be run before the program runs is run: calls of known functions, matches on known values.

Works on A-normal form, where effects have an order that inlining keeps (Jones, Gomard and Sestoft,
"Partial Evaluation and Automatic Program Generation", 1993). Functions that call themselves are
left alone, so it always ends; what nobody uses afterwards is for DeadCodeElimination.
"""

from __future__ import annotations

from typing import cast

from relaylab.analysis.components import strong_components
from relaylab.ir.adt import Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, GlobalVar, If, Let, Tuple, TupleGetItem, Var
from relaylab.ir.free import global_vars
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.visit import rebuild
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.let_rewrite import rewrite_lets
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.engine.renewal import as_function, inlined, renewed
from relaylab.transform.normal_forms.blocks import name_values
from relaylab.transform.simplify.fold_constant import ConstantFolder

ROUNDS = 64
"""How deeply known functions may return known functions."""
FUEL = 5000
"""How many calls of one function are replaced by bodies at most."""


class _Evaluator:
    """Evaluates one function; `known` holds what variables are bound to, as far as that is known."""

    def __init__(self, inlinable: dict[GlobalVar, Function]):
        self.inlinable = inlinable
        self.known: dict[Expr, Expr] = {}
        self.fold = ConstantFolder()
        self.fuel = FUEL

    def run(self, func: Function) -> Function:
        """The function with all known calls, projections, branches and matches replaced."""
        for _ in range(ROUNDS):
            # inlining nests bodies; only in A-normal form is the order of effects that of the bindings
            normal = name_values(func)
            self.known, self.changed = {}, False
            kept = lambda n: isinstance(n, Function) and n.is_primitive
            after = as_function(rewrite_lets(normal, self._post, self._bind, kept))
            if not self.changed:
                return after
            func = after
        return name_values(func)

    def _bind(self, let: Let, value: Expr, recursive: bool) -> Expr | None:
        if isinstance(value, Var):
            return value
        if not recursive and (isinstance(value, (Constant, Tuple, Function)) or _is_construction(value)):
            self.known[let.var] = value
        return None

    def _post(self, new: Expr, old: Expr) -> Expr:
        after = self._evaluated(new)
        if after is None or after is new:
            return new
        self.changed = True
        return after

    def _evaluated(self, node: Expr) -> Expr | None:
        match node:
            case Call(op=Op()):
                return self._operator(node)
            case Call():
                return self._call(node)
            case TupleGetItem():
                value = self._value(node.tuple_value)
                return value.fields[node.index] if isinstance(value, Tuple) else None
            case If():
                value = self._value(node.cond)
                known = isinstance(value, Constant)
                return (node.true_branch if bool(value.data) else node.false_branch) if known else None
            case Match():
                return self._match(node)
            case _:
                return None

    def _value(self, expr: Expr) -> Expr:
        return self.known.get(expr, expr)

    def _operator(self, call: Call) -> Expr | None:
        args = [self._value(a) for a in call.args]
        if not args or not all(isinstance(a, Constant) for a in args):
            return None
        known = rebuild(call, (call.op, *args))
        after = self.fold.node(known, call)
        return after if after is not known else None

    def _call(self, call: Call) -> Expr | None:
        func = self.inlinable.get(cast(GlobalVar, call.op)) or self._value(call.op)
        if not isinstance(func, Function) or func.is_primitive or self.fuel <= 0:
            return None
        # functions that call one twice double the program at each level
        self.fuel -= 1
        return inlined(func, call)

    def _match(self, node: Match) -> Expr | None:
        for clause in node.clauses:
            binds: dict[Expr, Expr] = {}
            fits = self._fits(clause.lhs, node.data, binds)
            # it may fit when the program runs: no later clause may be chosen before that
            if fits is None:
                return None
            if fits:
                return renewed(clause.rhs, binds)
        return None

    def _fits(self, pattern: Pattern, data: Expr, binds: dict[Expr, Expr]) -> bool | None:
        """Whether a pattern fits; None if that is not known."""
        if isinstance(pattern, PatternWildcard):
            return True
        if isinstance(pattern, PatternVar):
            binds[pattern.var] = data
            return True
        value = self._value(data)
        if isinstance(pattern, PatternTuple) and isinstance(value, Tuple):
            return self._all(pattern.patterns, value.fields, binds)
        if isinstance(pattern, PatternConstructor) and isinstance(value, Call) and isinstance(value.op, Constructor):
            if value.op.name_hint != pattern.constructor.name_hint:
                return False
            return self._all(pattern.patterns, value.args, binds)
        return None

    def _all(self, patterns: tuple[Pattern, ...], parts: tuple[Expr, ...], binds: dict[Expr, Expr]) -> bool | None:
        for pattern, part in zip(patterns, parts):
            fits = self._fits(pattern, part, binds)
            if not fits:
                return fits
        return True


def _is_construction(value: Expr) -> bool:
    return isinstance(value, Call) and isinstance(value.op, Constructor)


def _inlinable(mod: IRModule) -> dict[GlobalVar, Function]:
    """The functions of a module that do not call themselves, directly or through others."""
    calls = {gv: [c for c in global_vars(f) if c in mod.functions] for gv, f in mod.functions.items()}
    single = [group[0] for group in strong_components(calls) if len(group) == 1]
    own = {gv: mod.functions[gv] for gv in single if gv not in calls[gv]}
    return {gv: f for gv, f in own.items() if not f.type_params and not f.attr("Compiler") and not f.attr("Extern", 0)}


def partial_evaluate(func: Function, inlinable: dict[GlobalVar, Function]) -> Function:
    """One function with what is known evaluated, in A-normal form."""
    return _Evaluator(inlinable).run(func)


@pass_(level=1, name="PartialEval")
class PartialEvaluate(ModulePass):
    """Runs what is known before the program runs: calls of functions, projections, branches, matches, arithmetic."""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        inlinable = _inlinable(mod)
        return mod.with_functions({gv: partial_evaluate(f, inlinable) for gv, f in mod.functions.items()})
