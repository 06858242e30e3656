"""Finding the places of an expression that a pattern fits, without overlaps, from the root down."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from relaylab.ir import Call, Constant, Expr, Function, GlobalVar, Op, Tuple, Type, children, post_order, walk
from relaylab.transform.pattern import nodes as pn
from relaylab.transform.pattern.match import Match, Matcher, brief, pattern_nodes
from relaylab.transform.pattern.nodes import DFPattern
from relaylab.transform.pattern.possible import root_ops


@dataclass(frozen=True, eq=False)
class PatternGroup:
    """One match that may be replaced: what flows into it, and the nodes inside it, the root last."""

    match: Match
    inputs: tuple[Expr, ...]
    inside: tuple[Expr, ...]

    @property
    def root(self) -> Expr:
        return self.match.root


def groups(pattern: DFPattern, expr: Expr, type_of: Callable[[Expr], Type | None] | None = None) -> list[PatternGroup]:
    """The matches of `pattern` in `expr`, greedily from the root; none overlap.

    A match is refused if a value inside it is used outside, unless that use flows only into the match.
    """
    order = {node: i for i, node in enumerate(post_order(expr))}
    open_ = set(walk((expr,), _open))
    matcher = Matcher(expr, type_of)
    heads = root_ops(pattern)
    taken: set[Expr] = set()
    out = []
    # from the result down: the larger match takes its nodes before one inside it can
    for node in reversed(order):
        if node in taken or node not in open_ or _is_parted(node):
            continue
        if heads is not None and not (isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in heads):
            continue
        found = matcher.first(pattern, node)
        group = group_of(found, matcher, order, taken) if found is not None else None
        if isinstance(group, PatternGroup):
            taken.update(n for n in group.inside if not _is_global(n))
            out.append(group)
    return out


def _is_parted(node: Expr) -> bool:
    """Functions that partitioning made are whole: nothing is looked for in them."""
    return isinstance(node, Function) and any(node.attr(k) for k in ("PartitionedFromPattern", "Composite"))


def _open(node: Expr) -> tuple[Expr, ...]:
    return () if _is_parted(node) else children(node)


def group_of(found: Match, matcher: Matcher, order: dict[Expr, int], taken: set[Expr]) -> PatternGroup | str:
    """What a match may replace; or why it may not: in words."""
    inputs = _inputs(found)
    inside = tuple(walk((found.root,), lambda n: () if n in inputs else children(n)))
    inside = tuple(n for n in inside if n not in inputs)
    own = set(inside)
    for node in inside:
        if _is_global(node):
            continue
        if node in taken:
            return f"{brief(node)} belongs to a match nearer to the result"
        if node is not found.root and not all(
            u in own or _flows_into(u, found.root, matcher, order) for u in matcher.uses.of(node)
        ):
            return f"interior node {brief(node)} is used outside the match"
    return PatternGroup(found, tuple(inputs), inside)


def _is_global(node: Expr) -> bool:
    """Nodes that any number of matches may share."""
    return isinstance(node, (Op, Function, Constant, GlobalVar))


def _flows_into(node: Expr, root: Expr, matcher: Matcher, order: dict[Expr, int]) -> bool:
    """Whether every use of `node` ends in `root`."""
    met, stack = {node}, [node]
    while stack:
        above = matcher.uses.of(stack.pop())
        if not above:
            return False
        for user in above:
            if user is root or user in met:
                continue
            if order[user] > order[root]:
                return False
            met.add(user)
            stack.append(user)
    return True


def _inputs(found: Match) -> dict[Expr, None]:
    """What flows into a match, in the order of the pattern's parts."""
    inner = _fuzzy(found)
    out: dict[Expr, None] = {}
    for p in pattern_nodes(found.pattern):
        for node in _leaf_matches(p, found.node_map.get(p, ())):
            if node not in inner and not isinstance(node, (Op, Function)) and not _embedded(node, p):
                out[node] = None
    return out


def _leaf_matches(p: DFPattern, matched: Iterable[Expr]) -> Iterable[Expr]:
    if isinstance(p, pn.TuplePattern) and p.fields is None:
        return [f for m in matched if isinstance(m, Tuple) for f in m.fields]
    if isinstance(p, pn.CallPattern) and p.args is None:
        return [a for m in matched if isinstance(m, Call) for a in m.args]
    return matched if not p.parts() else ()


def _embedded(node: Expr, p: DFPattern) -> bool:
    """Constants that the pattern asks for belong to the match."""
    return isinstance(node, Constant) and isinstance(p, pn.ConstantPattern)


def _fuzzy(found: Match) -> set[Expr]:
    """Nodes that lie inside although a leaf pattern matched them: the region of a dominator, the body of a function."""
    out: set[Expr] = set()
    for p in pattern_nodes(found.pattern):
        if isinstance(p, pn.DominatorPattern):
            out.update(n for part in (p.parent, p.path) for n in found.node_map.get(part, ()))
        elif isinstance(p, pn.FunctionPattern):
            out.update(n for f in found.node_map.get(p, ()) for n in walk((f,)))
    return out
