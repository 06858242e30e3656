"""Why a pass did nothing to a node: its rules, the nearest first, each with the test that failed.

A declared pass says what rules it has; of any other it is watched which rules and patterns it tries. Operator
fusion, which has no patterns, tells why two neighbours are in two kernels.
Without a pass: which passes would change the program now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from relaylab import viz
from relaylab.ir import Call, Expr, Function, IRModule, Op, TensorType, TupleGetItem, Var, children, op_name, walk
from relaylab.ir.trail import unrecorded
from relaylab.study.exploration import explore
from relaylab.study.pipeline import pass_of
from relaylab.study.suggest import Suggestions, suggestions
from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.transform import PASSES, FuseOps, InferType, Pass, PassContext, run_pipeline
from relaylab.transform.fusion.fuse_groups import Account, account
from relaylab.transform.fusion.fuse_ops import MAX_DEPTH
from relaylab.transform.pattern import DFPatternCallback, told
from relaylab.transform.pattern.nodes import DFPattern
from relaylab.transform.pattern.possible import root_ops
from relaylab.transform.pattern.told import brief
from relaylab.transform.pattern.tried import watching
from relaylab.transform.rewriting.explain import Explainer, MatchStep, Reason, Rewriting, pattern_of, title
from relaylab.transform.rewriting.rules import Rule

MOST_HEADS = 6
"""Operators at which rules begin that are listed."""


@dataclass(frozen=True)
class WhyNot:
    """The answers for a pass or pattern: `reasons`, what fires first, then what came nearest.

    As text, the first with the way of the matcher. A `note` says more where there are none.
    """

    name: str
    reasons: list[Reason]
    note: str = ""

    def __str__(self) -> str:
        if not self.reasons:
            return f"{self.name}:\n  {self.note or 'there is nothing here that it looks at'}"
        first, *others = self.reasons
        way = (f"      {step}" for step in first.steps if len(first.steps) > 1)
        return "\n".join([f"{self.name}:", f"  {first}", *way, *(f"  {r}" for r in others)])

    __repr__ = __str__


@checked
def why_not(what: Any, module: IRModule, node: Expr | None = None, most: int = 5) -> WhyNot:
    """Why a pass (or its name), rule, callback or pattern, or a list of them, does not rewrite `node`.

    The reasons are sorted by how much of a pattern fits, what fires first; of several rules those that do not begin at
    the node are no answer. Without a node the nodes of the module that come nearest are found. `module` is the
    program that the pass gets.
    Raises `RelayValueError` for a node that is not in it and `RelayTypeError` for a pass that has no rules.
    """
    if any(f.inferred is None for f in module.functions.values()):
        if node is not None:
            raise RelayValueError(
                "the node is of a program without types",
                code="why.untyped",
                help="run relay.transform.InferType() first",
            )
        module = InferType()(module)
    made = pass_of(what) if isinstance(what, str) else what
    name = made.info.name if isinstance(made, Pass) else ""
    func = _home(module, node)
    if isinstance(made, FuseOps):
        return WhyNot(name, _fusion([func] if func else _functions(module), node, most))
    rules = rules_of(made, module)
    label = name or (title(rules[0]) if len(rules) == 1 else f"{len(rules)} rules")
    found = [
        r
        for f in ([func] if func else _functions(module))
        for r in Explainer(f).nearest(rules, [node] if node is not None else None, most)
    ]
    found = [r for r in found if r.near or len(rules) == 1]
    found.sort(key=lambda r: (r.fires, r.near), reverse=True)
    return WhyNot(label, found[:most], "" if found else _beginnings(rules, node))


def _beginnings(rules: list[Rewriting], node: Expr | None) -> str:
    """That no rule begins at a node, and at which operators they do."""
    heads = sorted({head for r in rules for head in root_ops(pattern_of(r)) or ()})
    most = ", ".join(heads[:MOST_HEADS]) + (" …" if len(heads) > MOST_HEADS else "")
    where = f"a node like {told.node(node)}" if node is not None else "any node of this program"
    begin = f"; they begin with {most}" if heads else ""
    return f"none of its {len(rules)} rules begins with {where}{begin}"


def why(
    program: Any,
    what: Any = None,
    select: str = "",
    first: str | Iterable[Pass | str] = (),
    most: int = 5,
    also: Iterable[Pass] = (),
) -> WhyNot | Suggestions:
    """Why a pass does nothing to a program; without a pass: which would change it now (`also` some of one's own).

    `program` is whatever `explore` takes, `what` whatever `why_not` takes; `select` is a query for the
    nodes that are meant (see `viz.query`), and `first` are passes that run before. A pass that is not made of
    rules is tried instead.
    """
    run = explore(program, passes=first).history
    if run.error is not None:
        raise run.error
    if what is None and select:
        raise RelayValueError("nodes are asked about with a pass", code="why.no-pass", help="name one, such as FuseOps")
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
    return WhyNot(answers[0].name, found[:most], answers[0].note)


def _selected(module: IRModule, query: str) -> list[Expr]:
    """The nodes of a program that a query means."""
    identities = viz.Identities()
    names = viz.select(viz.view(module, identities=identities), query)
    known = identities.expressions()
    if not (found := [known[n] for n in names if n in known]):
        have = dict.fromkeys(op_name(n) for n in walk(module.functions.values()) if op_name(n))
        raise RelayValueError(
            f"`{query}` selects no node of this program",
            code="why.no-node",
            help=did_you_mean(query, (f"op:{name}" for name in have)) or f"its operators are {', '.join(have)}",
        )
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
        raise RelayValueError(
            "the node is not in this program", code="why.no-node", help="take a node of the program that the pass gets"
        )
    return found


# ---- the rules of a pass


def rules_of(what: Any, module: IRModule | None = None) -> list[Rewriting]:
    """The rules, callbacks and patterns of a pass, or of what holds some of them.

    A pass that is not declared is run on `module` (default: a program that returns its argument) to see what it tries.
    """
    found = list(dict.fromkeys(_rules(what, _nothing() if module is None else module)))
    if not found:
        name = what.info.name if isinstance(what, Pass) else type(what).__name__
        help = "ask of FuseOps, SimplifyExpr, a rule, a DFPatternCallback, a pattern"
        raise RelayTypeError(f"{name} is not made of rules or patterns", code="why.no-rules", help=help)
    return found


def _rules(what: Any, module: IRModule) -> Iterator[Rewriting]:
    if isinstance(what, (Rule, DFPatternCallback, DFPattern)):
        yield what
    elif isinstance(what, type) and issubclass(what, DFPatternCallback):
        yield what()
    elif isinstance(what, Pass):
        is_declared = what.record is not None and what.record.by_value
        parts = what.rules or getattr(what, "passes", ())
        for part in parts or ([] if is_declared else _tried_by(what, module)):
            yield from _rules(part, module)
    elif isinstance(what, (list, tuple)):
        for part in what:
            yield from _rules(part, module)


def _nothing() -> IRModule:
    x = Var("x", TensorType((1,)))
    return InferType()(IRModule.from_expr(Function([x], x)))


def _tried_by(made: Pass, module: IRModule) -> list[object]:
    """What a pass tries when it runs; as far as it gets, if it raises."""
    with unrecorded(), watching() as found:
        run_pipeline(module, [made], PassContext(opt_level=4))
    return list(found)


# ---- operator fusion


def _fusion(functions: list[Function], node: Expr | None, most: int) -> list[Reason]:
    depth = PassContext.current().get_config("relay.FuseOps.max_depth", MAX_DEPTH) or MAX_DEPTH
    found: list[Reason] = []
    for func in functions:
        known = account(func, depth)
        found += [
            _neighbours(known, reader, arg) for arg, reader in _pairs(func) if node is None or node in (arg, reader)
        ]
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
    kinds = [
        MatchStep(f"{told.node(n)}{told.at(n)} is {known.kinds[n].words}", n) for n in (arg, reader) if n in known.kinds
    ]
    if first is not None and first is second:
        together = MatchStep("they are one kernel", reader)
        return Reason(name, "", arg, "", arg, 1.0, done=together.words, steps=(*kinds, together))
    steps = (*kinds, *_apart(known, reader, arg))
    return Reason(name, "", arg, "; ".join(s.words for s in steps if not s.holds), reader, 0.5, steps=steps)


def _apart(known: Account, reader: Expr, arg: Expr) -> list[MatchStep]:
    """Why two neighbours are in two kernels: where the uses of the first meet, and what the phases said of it."""
    notes = [why for why in known.notes.get(arg, {}).values() if why]
    sink = known.sinks.get(arg)
    found = [MatchStep(notes[0] if notes else "it was merged with others first", arg, False)]
    if sink is not None and sink is not reader:
        found.insert(0, MatchStep(f"it is used by several operators, which meet at {brief(sink)}", sink, False))
    return found
