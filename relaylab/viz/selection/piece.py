"""The piece of a program that a rule matched or built, as a program of its own, with holes for what flows into it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from relaylab.ir import Call, Constant, Constructor, Expr, Function, GlobalVar, Op, Type, Var, children, rebuild, walk
from relaylab.ir.trail import unrecorded
from relaylab.ir.visit import post_order
from relaylab.support.errors import DiagnosticError
from relaylab.text import print_with_map
from relaylab.transform.engine.infer_type import typed
from relaylab.transform.pattern import nodes as pn
from relaylab.transform.pattern.match import Match
from relaylab.transform.pattern.told import brief
from relaylab.viz.draw.from_ir import ViewOptions
from relaylab.viz.draw.from_ir import view as view_of
from relaylab.viz.graph.annotate import texts
from relaylab.viz.graph.identity import Identities
from relaylab.viz.graph.view import View
from relaylab.viz.selection.minigraph import hole

NEAR = 300
"""Nodes before a rewrite that are looked at to tell what it built from what was there."""
MOST = 40
"""Nodes of a piece; what lies behind more of them is a hole."""
WHOLE = (Op, GlobalVar, Constructor, Function, Constant)
Holes = Mapping[Expr, str]
"""The nodes that are not shown, by the names that stand for them."""


def holes_of(found: Match) -> dict[Expr, str]:
    """What the leaves of a pattern stand for, by name: its own names, `any1`, `any2` for wild cards without."""
    names: dict[Expr, str] = {}
    inner = matched(found)
    for p, nodes in found.node_map.items():
        if p.parts() or not (p.name or isinstance(p, pn.WildcardPattern)):
            continue
        for node in nodes:
            if node not in inner and not isinstance(node, Op):
                names.setdefault(node, p.name or f"any{1 + sum(name.startswith('any') for name in names.values())}")
    return names


def matched(found: Match) -> set[Expr]:
    """The nodes that parts of a pattern with parts of their own met: those that a rewrite may replace."""
    parts = ((p, nodes) for p, nodes in found.node_map.items() if p.parts())
    return {n for p, nodes in parts for n in nodes if not isinstance(n, (Op, Var, Constant))} | {found.root}


@dataclass(frozen=True)
class Piece:
    """A small view, the program node behind each of its ids, and its text: one line for each node."""

    view: View
    nodes: Mapping[str, Expr]
    text: str


def near(root: Expr) -> set[Expr]:
    """A node and those behind it, as many as are looked at."""
    met, rim = {root}, [root]
    while rim and len(met) < NEAR:
        fresh = [c for n in rim for c in children(n) if c not in met]
        met.update(fresh)
        rim = list(dict.fromkeys(fresh))
    return met


@dataclass(frozen=True)
class Cut:
    """How a piece is cut out: the holes by their names, what was there before (`known`), what of it was matched
    (`inside`), the type of a node that a rule built, if the node that it stands for has one, and what constants are
    called.
    """

    holes: Holes
    known: Collection[Expr]
    inside: Collection[Expr]
    type_of: Callable[[Expr], Type | None]
    name: Callable[[Constant], str]


def piece(root: Expr, cut: Cut, title: str) -> Piece:
    """`root` down to the holes, and to nodes that were there and not matched, which are holes too."""
    names = dict(cut.holes)
    order: list[Expr] = []

    def below(node: Expr) -> tuple[Expr, ...]:
        is_elsewhere = node is not root and node in cut.known and node not in cut.inside
        if node in names or isinstance(node, (*WHOLE, Var)):
            return ()
        if is_elsewhere or len(order) >= MOST:
            names[node] = _brief(node, cut.name)
            return ()
        order.append(node)
        return children(node)

    made: dict[Expr, Expr] = {}
    with unrecorded():
        for node in walk((root,), below):
            made[node] = _made(node, made, names, cut)
        new = _typed(made[root])
    # inference keeps the sharing: node for node the same order
    old = {m: node for node, m in made.items()}
    behind = {b: old.get(a, a) for a, b in zip(post_order(made[root]), post_order(new))}
    return _drawn(new, names, behind, title, cut.name)


def _made(node: Expr, made: Mapping[Expr, Expr], names: Holes, cut: Cut) -> Expr:
    if node in names:
        return Var(names[node], cut.type_of(node), span=node.span)
    return node if isinstance(node, (*WHOLE, Var)) else rebuild(node, [made[c] for c in children(node)])


def _typed(expr: Expr) -> Expr:
    try:
        return typed(expr)
    except DiagnosticError:  # a type of a hole is not known
        return expr


def _drawn(expr: Expr, names: Holes, behind: Mapping[Expr, Expr], title: str, name: Callable[[Constant], str]) -> Piece:
    identities = Identities()
    inputs = {*names.values(), *(n.name_hint for n in walk((expr,)) if isinstance(n, Var))}
    view = view_of(expr, ViewOptions(inputs=inputs, texts=texts(expr, name)), identities, title)
    nodes = {name: behind.get(e, e) for name, e in identities.expressions().items()}
    shown = tuple(hole(n, names[nodes[n.id]]) if nodes.get(n.id) in names else n for n in view.nodes)
    return Piece(replace(view, nodes=shown), nodes, _text(expr, name))


def _text(expr: Expr, name: Callable[[Constant], str]) -> str:
    """The text of a piece without comments and without the declarations of its holes."""
    lines = print_with_map(expr, lambda node: "", name)[0].split("\n")
    return "\n".join(line for line in lines if not line.startswith("free_var "))


def _brief(node: Expr, name: Callable[[Constant], str]) -> str:
    return name(node) if isinstance(node, Constant) and node.data.ndim else brief(node)


def words_of(node: Expr, kind: Type | None, name: Callable[[Constant], str]) -> str:
    """A node in a word or two, constants by their names, with its type."""
    what = _brief(node, name) if not isinstance(node, Call) else f"`{brief(node)}`"
    return f"{what}: {kind}" if kind is not None else what
