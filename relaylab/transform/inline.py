"""Inline: functions marked with `Inline=1` are put in the place of their calls."""

from __future__ import annotations

from typing import cast

from relaylab.analysis.components import strong_components
from relaylab.ir import Call, Expr, Function, GlobalVar, IRModule, Op, Var, children, rebuild
from relaylab.ir.free import global_vars
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.engine.purity import changes_state
from relaylab.transform.engine.renewal import inlined, renewed, rewrite_function


class _Inliner:
    """Inlines callees before callers."""

    def __init__(self, mod: IRModule):
        self.mod = mod
        self.functions = dict(mod.functions)
        self.ready: set[GlobalVar] = set()
        self.ordered = changes_state(mod)
        self.called = {c for f in mod.functions.values() for c in global_vars(f)}

    def run(self) -> IRModule:
        calls = {gv: [c for c in global_vars(f) if c in self.functions] for gv, f in self.functions.items()}
        for group in strong_components(calls):
            for gv in group:
                func = self.functions[gv]
                if self.ready:
                    func = self.functions[gv] = rewrite_function(func, self._at)
                recursive = len(group) > 1 or gv in calls[gv]
                if func.attr("Inline", 0) and not recursive and not any(c in self.functions for c in global_vars(func)):
                    self.ready.add(gv)
        return self.mod.with_functions(self._without_unused())

    def _at(self, new: Expr, old: Expr) -> Expr:
        if isinstance(new, Call) and isinstance(old, Call) and old.op in self.ready:
            func = self.functions[cast(GlobalVar, old.op)]
            if not _is_foreign(func):
                return inlined(func, new, self.ordered)
        if isinstance(new, (GlobalVar, Op, Var)):
            return new
        # a name that is a value, or that of a function which stays one
        return rebuild(new, [self._literal(c) for c in children(new)])

    def _literal(self, part: Expr) -> Expr:
        if not isinstance(part, GlobalVar) or part not in self.ready:
            return part
        return renewed(self.functions[part])

    def _without_unused(self) -> dict[GlobalVar, Function]:
        used = {c for f in self.functions.values() for c in global_vars(f)}
        gone = (self.ready & self.called) - used  # what nobody called before is there for its own sake
        return {gv: f for gv, f in self.functions.items() if gv not in gone}


def _is_foreign(func: Function) -> bool:
    """Functions made for another compiler stay functions."""
    return bool(func.attr("Compiler") or func.attr("Extern", 0))


@pass_(level=1, name="InlineGlobals", idempotent=True)
class Inline(ModulePass):
    """Replaces calls of functions marked `Inline=1` by their bodies, and their names elsewhere by the functions.

    Those that nobody names any more are dropped.
    """

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return _Inliner(mod).run()
