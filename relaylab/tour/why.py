"""Why a pass did nothing to a node: its rules, the nearest first, each with the test that failed.

Of a pass the rules, rule sets and pattern callbacks are found that its function names, directly or through
functions of its own module. Operator fusion, which has no patterns, tells why two neighbours are in two kernels.
Without a pass: which passes would change the program now.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from relaylab import viz
from relaylab.ir import Call, Expr, Function, IRModule, Op, TupleGetItem, children, walk
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.tour.exploration import explore
from relaylab.tour.pipeline import pass_of
from relaylab.tour.suggest import Suggestions, suggestions
from relaylab.transform import PASSES, InferType, Pass, PassContext
from relaylab.transform.explain import Explainer, Reason, Rewriting, title
from relaylab.transform.fuse_groups import Account, account
from relaylab.transform.fuse_ops import MAX_DEPTH
from relaylab.transform.pattern import DFPatternCallback
from relaylab.transform.pattern.match import brief
from relaylab.transform.pattern.nodes import DFPattern
from relaylab.transform.rules import Rule


@dataclass(frozen=True)
class WhyNot:
    """The answers for a pass or pattern: `reasons`, what fires first, then what came nearest; a `note` where there are no rules."""

    name: str
    reasons: list[Reason]
    note: str = ""

    def __str__(self) -> str:
        return "\n".join([f"{self.name}:", *(f"  {r}" for r in self.reasons or (self.note or "there is nothing here that it looks at",))])

    __repr__ = __str__


def why_not(what: Any, module: IRModule, node: Expr | None = None, most: int = 5) -> WhyNot:
    """Why a pass (or its name), rule, callback or pattern, or a list of them, does not rewrite `node`.

    Without a node the nodes of the module that come nearest are found. `module` is the program that the pass gets.
    Raises `RelayValueError` for a node that is not in it and `RelayTypeError` for a pass that has no rules.
    """
    if any(f._checked_type is None for f in module.functions.values()):
        if node is not None:
            raise RelayValueError("the node is of a program without types", code="why.untyped", help="run relay.transform.InferType() first")
        module = InferType()(module)
    made = pass_of(what) if isinstance(what, str) else what
    name = made.info.name if isinstance(made, Pass) else ""
    func = _home(module, node)
    if name == "FuseOps":
        return WhyNot(name, _fusion([func] if func else _functions(module), node, most))
    rules = rules_of(made)
    label = name or (title(rules[0]) if len(rules) == 1 else f"{len(rules)} rules")
    found = [r for f in ([func] if func else _functions(module)) for r in Explainer(f).nearest(rules, [node] if node is not None else None, most)]
    found.sort(key=lambda r: (r.fires, r.near), reverse=True)
    return WhyNot(label, found[:most])


def why(program: Any, what: Any = None, select: str = "", first: Iterable[Pass | str] = (), most: int = 5, also: Iterable[Pass] = ()) -> WhyNot | Suggestions:
    """Why a pass does nothing to a program; without a pass: which passes would change it now (`also` some of one's own).

    `program` is whatever `explore` takes, `what` whatever `why_not` takes; `select` is a query for the nodes that are meant
    (see `viz.query`), and `first` are passes that run before. A pass that is not made of rules is tried instead.
    """
    run = explore(program, passes=first).history
    if run.error is not None:
        raise run.error
    if what is None:
        return suggestions(run.mod, [*PASSES, *also])
    made = pass_of(what) if isinstance(what, str) else what
    try:
        if not select:
            return why_not(made, run.mod, most=most)
        answers = [why_not(made, run.mod, node, most) for node in _selected(run.mod, select)]
    except RelayTypeError as error:
        if error.code != "why.no-rules" or not isinstance(made, Pass):
            raise
        return WhyNot(made.info.name, [], _tried(run.mod, made))
    found = sorted((r for a in answers for r in a.reasons), key=lambda r: (r.fires, r.near), reverse=True)
    return WhyNot(answers[0].name, found[:most])


def _selected(module: IRModule, query: str) -> list[Expr]:
    """The nodes of a program that a query means."""
    identities = viz.Identities()
    names = viz.select(viz.view(module, identities=identities), query)
    known = identities.expressions()
    if not (found := [known[n] for n in names if n in known]):
        raise RelayValueError(f"`{query}` selects no node of this program", code="why.no-node", help="`viz.select(viz.view(mod), query)` shows what a query means")
    return found


def _tried(module: IRModule, made: Pass) -> str:
    """What a pass that has no rules to ask would do."""
    would = suggestions(module, [made])
    if not would:
        return "it is not made of rules or patterns; it changes nothing here"
    changes = ", ".join(f"{n:+d} {op}" for op, n in would[0].delta.items())
    return f"it is not made of rules or patterns; it would change this program{f': {changes}' if changes else ''}"


def _functions(module: IRModule) -> list[Function]:
    return [f for f in module.functions.values() if isinstance(f, Function)]


def _home(module: IRModule, node: Expr | None) -> Function | None:
    """The function that a node is in."""
    if node is None:
        return None
    found = next((f for f in _functions(module) if any(n is node for n in walk((f,)))), None)
    if found is None:
        raise RelayValueError("the node is not in this program", code="why.no-node", help="take a node of the program that the pass gets")
    return found


# ---- the rules of a pass


def rules_of(what: Any) -> list[Rewriting]:
    """The rules, callbacks and patterns of a pass, or of what holds some of them."""
    found = list(dict.fromkeys(_rules(what, 3, set())))
    if not found:
        name = what.info.name if isinstance(what, Pass) else type(what).__name__
        help = "ask of FuseOps, SimplifyExpr, a rule, a DFPatternCallback, a pattern"
        raise RelayTypeError(f"{name} is not made of rules or patterns", code="why.no-rules", help=help)
    return found


def _rules(what: Any, depth: int, met: set[int]) -> Iterable[Rewriting]:
    if id(what) in met:
        return
    met.add(id(what))
    if isinstance(what, (Rule, DFPatternCallback, DFPattern)):
        yield what
    elif isinstance(what, type) and issubclass(what, DFPatternCallback) and what is not DFPatternCallback:
        if not [p for p in inspect.signature(what).parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]:
            yield what()
    elif isinstance(what, Pass):
        for part in (getattr(what, "pass_func", None), *getattr(what, "passes", ())):
            yield from _rules(part, depth, met)
    elif isinstance(what, (list, tuple)):
        for part in what:
            yield from _rules(part, depth, met)
    elif isinstance(what, functools.partial):
        yield from _rules([what.func, *what.args, *what.keywords.values()], depth, met)
    elif inspect.isfunction(what) and depth:
        yield from _named(what, depth, met)


def _named(function: Any, depth: int, met: set[int]) -> Iterable[Rewriting]:
    """What a function names: rules wherever they are, and functions of the same module."""
    known = inspect.getclosurevars(function)
    for value in (*known.nonlocals.values(), *known.globals.values()):
        own = not inspect.isfunction(value) or value.__module__ == function.__module__
        if own and not isinstance(value, Pass):
            yield from _rules(value, depth - 1, met)


# ---- operator fusion


def _fusion(functions: list[Function], node: Expr | None, most: int) -> list[Reason]:
    depth = PassContext.current().get_config("relay.FuseOps.max_depth", MAX_DEPTH) or MAX_DEPTH
    found: list[Reason] = []
    for func in functions:
        known = account(func, depth)
        found += [_neighbours(known, reader, arg) for arg, reader in _pairs(func) if node is None or node in (arg, reader)]
    found.sort(key=lambda r: r.fires, reverse=node is not None)
    return found[:most] if node is None else found


def _pairs(func: Function) -> list[tuple[Expr, Expr]]:
    """Every value of an operator with each operator that reads it."""
    return [(c, n) for n in walk((func,)) if _computes(n) for c in children(n) if _computes(c)]


def _computes(node: Expr) -> bool:
    return isinstance(node, TupleGetItem) or (isinstance(node, Call) and isinstance(node.op, Op))


def _neighbours(known: Account, reader: Expr, arg: Expr) -> Reason:
    name = f"{brief(arg)} into {brief(reader)}"
    first, second = known.groups.get(arg), known.groups.get(reader)
    if first is not None and first is second:
        return Reason(name, "", arg, "", arg, 1.0, done="they are one kernel")
    return Reason(name, "", arg, _apart(known, reader, arg), reader, 0.5)


def _apart(known: Account, reader: Expr, arg: Expr) -> str:
    """Why two neighbours are in two kernels: what the phases said of the first, and where its uses meet."""
    notes = [why for why in known.notes.get(arg, {}).values() if why]
    sink = known.sinks.get(arg)
    several = f"it is used by several operators, which meet at {brief(sink)}; " if sink is not None and sink is not reader else ""
    return several + (notes[0] if notes else "it was merged with others first")
