"""Programs to views: every node kind of Relay as a box, an operand row or a group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from relaylab.ir import Expr, IRModule
from relaylab.support.collection import no_collection
from relaylab.support.errors import RelayTypeError, RelayValueError, kind_of
from relaylab.viz.draw.graph_builder import GraphBuilder, GraphParts
from relaylab.viz.graph import annotate
from relaylab.viz.graph.boxes import BoxPlan
from relaylab.viz.graph.identity import Identities
from relaylab.viz.graph.view import View

T = TypeVar("T")
PARAMS = ("rows", "nodes", "hide")
Costs = Callable[[Expr], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """How a program becomes a view.

    `params`: variables and constants as operand rows of their users (`rows`: but the first parameter, and
    all of a function with up to four, as nodes), as `nodes`, or not at all (`hide`). `inputs` names the
    parameters that are nodes instead. `texts` gives the Relay text of nodes (None: as the program prints),
    `costs` the figures of a node.
    """

    params: str = "rows"
    inputs: Collection[str] | None = None
    texts: Mapping[Expr, str] | None = None
    costs: Costs = annotate.cost

    def __post_init__(self) -> None:
        if self.params not in PARAMS:
            raise RelayValueError(
                f"`params` cannot be {self.params!r}; it is one of {', '.join(PARAMS)}", code="viz.option"
            )


@no_collection()
def view(
    program: IRModule | Expr, options: ViewOptions | None = None, identities: Identities | None = None, title: str = ""
) -> View:
    """The graph view of a module, a function or any expression.

    Give the same `Identities` for the stages of a pipeline (after `follow(trail)`) to keep ids across them.
    """
    options = options or ViewOptions()
    functions = _functions(program)
    texts = annotate.texts(program) if options.texts is None else options.texts
    parts = GraphParts()
    for name, expr in functions.items():
        plan = BoxPlan(expr, name, options.params, options.inputs)
        GraphBuilder(plan, parts, functions, texts, options.costs).run()
    return _named(parts, identities or Identities(), title)


def _functions(program: object) -> dict[str, Expr]:
    """What to draw, by name: `main` first."""
    if isinstance(program, IRModule):
        named = {gv.name_hint: f for gv, f in program.functions.items()}
        return {name: named[name] for name in sorted(named, key=lambda n: n != "main")}
    if isinstance(program, Expr):
        return {"": program}
    raise RelayTypeError(f"cannot draw {kind_of(program)}; give an IRModule or an expression", code="viz.not-a-program")


def _named(parts: GraphParts, identities: Identities, title: str) -> View:
    """Give every part its id."""
    ids: dict[Hashable, str] = identities.name(parts.stems)
    ids[None] = ""
    nodes = tuple(
        _with(n, id=ids[k], group=ids[g], names=tuple(parts.names.get(k, ())), origins=identities.origins(k))
        for k, g, n in parts.nodes
    )
    groups = tuple(
        _with(g, id=ids[k], parent=ids[p], title="".join(f"{n} = " for n in parts.names.get(k, ())) + g.title)
        for k, p, g in parts.groups
    )
    ids |= {name: ids[key] for name, key in parts.functions.items()}
    edges = tuple(_with(e, source=ids[a], target=ids[b]) for a, b, e in parts.edges)
    return identities.settle(View(title, nodes, edges, groups), ids).check()


def _with(part: T, **values: object) -> T:
    """A part that nobody has seen yet, completed: a copy of its eighteen fields takes longer than all else here."""
    for name, value in values.items():
        object.__setattr__(part, name, value)
    return part
