"""InferType: whole modules, expressions, and one node whose parts are typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast
from weakref import WeakKeyDictionary

from relaylab.analysis.components import strong_components
from relaylab.analysis.infer.graphs import typed_graph
from relaylab.analysis.infer.report import ErrorReport
from relaylab.analysis.infer.solver import FAILED
from relaylab.analysis.infer.typed import Rebuilder
from relaylab.analysis.infer.typer import Typer
from relaylab.ir.expr import Expr, Function, GlobalVar
from relaylab.ir.free import global_vars
from relaylab.ir.module import IRModule
from relaylab.ir.scope import scope_faults
from relaylab.ir.trail import derived, unrecorded
from relaylab.ir.types import Type
from relaylab.ir.visit import children, walk

# What each typed function was typed against: the functions it refers to and their types.
_uses: WeakKeyDictionary[Function, dict[str, Type]] = WeakKeyDictionary()


def infer_module(mod: IRModule) -> IRModule:
    """`mod` with a `checked_type` on every node; the same object if it has them already.

    Functions are taken in the order of their calls, so a callee's result need not be annotated;
    functions that call each other are inferred together. Raises `DiagnosticError` with all the
    errors of the module, each with a code `type.*`.
    """
    known = _known_of(mod)
    if known is not None and known.typed:
        return mod
    inference = _Inference(mod, {})
    inference.all(mod.functions)
    inference.report.raise_if_any({gv.name_hint: f for gv, f in mod.functions.items()})
    return mod.with_functions({gv: inference.functions[gv] for gv in mod.functions})


@dataclass(frozen=True, slots=True)
class _Known:
    """What a module was when it was last looked at: its functions, the types found for them, whether all hold them."""

    functions: dict[GlobalVar, Function]
    types: dict[str, Type]
    typed: bool


_known: WeakKeyDictionary[IRModule, _Known] = WeakKeyDictionary()


def _known_of(mod: IRModule) -> _Known | None:
    """The types of all functions of a module, if they are known or if those that are new have the types of those that
    they replace: the usual case, as passes ask before and after each function.
    """
    known = _known.get(mod)
    if known is not None and known.functions == mod.functions:
        return known
    types = known.types if known is not None else {}
    if known is None or known.functions.keys() != mod.functions.keys():
        new = mod.functions
        types = {gv.name_hint: f.inferred for gv, f in new.items() if f.inferred is not None}
        if len(types) < len(new) or not all(_fits(f, types) for f in new.values()):
            return None
    else:
        new = {gv: f for gv, f in mod.functions.items() if known.functions[gv] is not f}
        if not all(f.inferred == types[gv.name_hint] and _fits(f, types) for gv, f in new.items()):
            return _renewed(mod, known, new)
    _known[mod] = _Known(dict(mod.functions), types, True)
    return _known[mod]


def _renewed(mod: IRModule, known: _Known, new: dict[GlobalVar, Function]) -> _Known | None:
    """What is known of a module in which some functions are new, if they have the types of those that they replace."""
    names = {gv.name_hint for gv in new}
    with unrecorded():
        inference = _Inference(mod, {name: t for name, t in known.types.items() if name not in names})
        inference.all(new)
    if inference.report or any(inference.types[name] != known.types[name] for name in names):
        return None
    _known[mod] = _Known(dict(mod.functions), known.types, False)
    return _known[mod]


def _fits(func: Function, types: Mapping[str, Type]) -> bool:
    """Whether a function was typed against these types of others."""
    uses = _uses.get(func)
    return uses is not None and all(types.get(name) == t for name, t in uses.items())


class _Inference:
    """One run over a module: the types of the functions done so far, and the errors."""

    def __init__(self, mod: IRModule, types: dict[str, Type]):
        self.mod, self.types = mod, types
        self.report = ErrorReport(mod)
        self.functions: dict[GlobalVar, Function] = {}

    def all(self, functions: Mapping[GlobalVar, Function]) -> None:
        """Type these functions, the types of others that they name being known."""
        names = {gv.name_hint: gv for gv in functions}
        calls = {gv: [names[n] for n in _names_in(f) if n in names] for gv, f in functions.items()}
        for group in strong_components(calls):
            self.infer(group)

    def infer(self, group: list[GlobalVar]) -> None:
        """Type functions that call each other, the others that they call being done."""
        if len(group) == 1 and self._keep(group[0]):
            return
        sources = {gv: self.mod.functions[gv] for gv in group}
        calling = [func for func in sources.values() if _names_in(func)]
        typer = Typer(self.mod, _sub_report(self.report), self.types, _unsettled(calling))
        if not calling and len(group) == 1 and self._graph(group[0], typer):
            return
        for gv, func in sources.items():
            self.types[gv.name_hint] = typer.signature(func)
        for gv, func in sources.items():
            self.types[gv.name_hint] = typer.run(func)
        self._finish(sources, typer)

    def _graph(self, gv: GlobalVar, typer: Typer) -> bool:
        """Type a function by one look at each node, if that is all that it takes."""
        new = _typed_graph(self.mod.functions[gv], typer)
        if new is None:
            return False
        self.functions[gv], self.types[gv.name_hint], _uses[new] = new, new.checked_type, {}
        return True

    def _keep(self, gv: GlobalVar) -> bool:
        """Take over a typed function whose callees have the types that it was typed against."""
        func = self.mod.functions[gv]
        if func.inferred is None or func not in _uses:
            return False
        self.types[gv.name_hint] = func.inferred
        if not _fits(func, self.types):
            return False
        self.functions[gv] = func
        return True

    def _finish(self, sources: dict[GlobalVar, Function], typer: Typer) -> None:
        rebuilder = Rebuilder(typer)
        new = {gv: rebuilder.rebuild(func) for gv, func in sources.items()}
        for gv, func in sources.items():
            if not typer.report:
                rebuilder.report_open(func)
            if new[gv] is not func and not typer.report:
                _check_scopes(new[gv], func, typer.report)
        self.report.found.update(typer.report.found)
        for gv in sources:
            self.functions[gv] = cast(Function, new[gv])
            self.types[gv.name_hint] = (
                FAILED if typer.report and not _annotated(sources[gv]) else _stated(sources[gv], new[gv])
            )
        if not typer.report:
            self._remember(sources)

    def _remember(self, sources: dict[GlobalVar, Function]) -> None:
        for gv in sources:
            names = _names_in(sources[gv])
            _uses[self.functions[gv]] = {n: self.types[n] for n in names if n in self.types}


def _typed_graph(func: Function, typer: Typer) -> Function | None:
    new = typed_graph(func, typer)
    return None if new is None or (new is not func and scope_faults(new)) else new


def _sub_report(report: ErrorReport) -> ErrorReport:
    return ErrorReport(report.mod)


def _annotated(func: Function) -> bool:
    return func.annotated_type() is not None


def _stated(func: Function, new: Expr) -> Type:
    return new.inferred or func.annotated_type() or FAILED


def _check_scopes(new: Expr, old: Expr, report: ErrorReport) -> None:
    for fault, node in scope_faults(new):
        report.error("ill-formed", fault, node if node is not new else old)


def _unsettled(functions: Iterable[Expr]) -> set[Expr]:
    """The nodes that refer to a function of the module, directly or below: their types may have to be found again."""
    nodes = list(walk(functions))
    if not any(type(n) is GlobalVar for n in nodes):
        return set()
    out: set[Expr] = set()
    for node in nodes:
        if type(node) is GlobalVar or not out.isdisjoint(children(node)):
            out.add(node)
    return out


def infer_expr(expr: Expr, mod: IRModule | None = None) -> Expr:
    """`expr` with a `checked_type` on every node; `mod` says what the functions and data types it names are.

    Free variables without annotation get the types that their uses ask for. Functions of the module that it does not
    name, directly or by way of others, are not looked at. Raises `DiagnosticError`.
    """
    globals_ = _named_types(expr, mod)
    report = ErrorReport(mod)
    typer = Typer(mod, report, globals_, _unsettled((expr,)))
    if isinstance(expr, Function) and not _names_in(expr) and (graph := _typed_graph(expr, typer)) is not None:
        _uses[graph] = {}
        return derived(graph, expr) if graph is not expr else graph
    typer.run(expr)
    rebuilder = Rebuilder(typer)
    new = rebuilder.rebuild(expr)
    if not report:
        rebuilder.report_open(expr)
    if not report and new is not expr:
        _check_scopes(new, expr, report)
    report.raise_if_any({"": expr})
    if isinstance(new, Function) and mod is not None:
        _uses[new] = {name: globals_[name] for name in _names_in(new) if name in globals_}
    return derived(new, expr) if new is not expr else new


def _named_types(expr: Expr, mod: IRModule | None) -> dict[str, Type]:
    """The types of the functions of a module, at least of those that `expr` names and that these name."""
    if mod is None:
        return {}
    known = _known_of(mod)
    if known is not None:
        return known.types
    named: dict[GlobalVar, Function] = {}
    stack: list[Expr] = [expr]
    while stack:
        for name in _names_in(stack.pop()):
            if name in mod and (gv := mod.get_global_var(name)) not in named:
                named[gv] = mod[gv]
                stack.append(mod[gv])
    with unrecorded():  # the module only says what names mean
        part = infer_module(mod.with_functions(named))
    return {gv.name_hint: f.checked_type for gv, f in part.functions.items()}


def _names_in(expr: Expr) -> Iterable[str]:
    """The names of the functions to which an expression refers."""
    return dict.fromkeys(gv.name_hint for gv in global_vars(expr))


def infer_type_local(expr: Expr, mod: IRModule | None = None) -> Type:
    """The type of one node from the checked types of its parts. Raises `DiagnosticError`."""
    report = ErrorReport(mod)
    typer = Typer(mod, report, _named_types(expr, mod), {expr})
    found = typer.run(expr)
    report.raise_if_any({"": expr})
    found = typer.solver.resolve(found)
    if typer.solver.unknowns(found):
        report.error("unresolved", f"the type cannot be told from the parts: only {found} is known", expr)
        report.raise_if_any({"": expr})
    return found
