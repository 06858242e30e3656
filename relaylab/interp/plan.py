"""What evaluation must know of a program beforehand: to which function's activation each node belongs, and when a
value is done with.
"""

from __future__ import annotations

from collections import Counter

from relaylab.ir.expr import Call, Expr, Function, Let, Tuple, TupleGetItem, Var
from relaylab.ir.scope import Scope, scopes
from relaylab.ir.visit import children


class Plan:
    """Facts about one closed expression `root`.

    `level` counts, for each node, the functions around the scope in which it is computed: the
    activation of that function holds its value, so a shared node is computed once in each.
    `uses` counts the uses of those nodes whose value can be dropped after the last of them.
    """

    __slots__ = ("root", "name", "level", "uses")

    def __init__(self, root: Expr, name: str = ""):
        self.root, self.name = root, name
        homes = scopes(root)
        self.level = _levels(homes)
        self.uses = _counted(homes, self.level)


def _levels(homes: dict[Expr, Scope]) -> dict[Expr, int]:
    depth: dict[Scope, int] = {}
    out: dict[Expr, int] = {}
    for node, home in homes.items():
        path: list[Scope] = []
        scope = home
        while scope not in depth and scope.depth:
            path.append(scope)
            scope = scope.parent
        depth.setdefault(scope, 0)  # the outermost one
        for inner in reversed(path):
            depth[inner] = depth[inner.parent] + isinstance(inner.owner, Function)
        out[node] = depth[home]
    return out


def used_once(node: Expr) -> tuple[Expr, ...]:
    """The parts whose values `node` takes exactly once, when it is computed."""
    if isinstance(node, (Call, Tuple, TupleGetItem)):
        return children(node)
    return (node.value,) if isinstance(node, Let) else ()


def _counted(homes: dict[Expr, Scope], level: dict[Expr, int]) -> dict[Expr, int]:
    """The number of uses of each node that is used only by nodes of its own level that take it once."""
    uses: Counter[Expr] = Counter()
    kept: set[Expr] = set()
    for node in homes:
        plain = used_once(node)
        uses.update(p for p in plain if level[p] == level[node])
        kept.update(p for p in plain if level[p] != level[node])
        if isinstance(node, Let):
            kept.add(node.body)  # the value of the whole is taken from it, also where it is what is bound
        elif not plain:
            kept.update(children(node))
    return {n: count for n, count in uses.items() if n not in kept and (children(n) or isinstance(n, Var))}
