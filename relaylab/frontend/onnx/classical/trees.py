"""Ensembles of decision trees: every row goes down all trees at once, as many steps as the deepest has levels.

A node is a row of some tables, a leaf its own child. Choices: docs/choices.md, Importing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.ir import Constant, Expr
from relaylab.op import annotation

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF")
"""What a node asks of a value, by the numbers that `TreeEnsemble` has for it."""
EQUAL, MEMBER, LEAF = (MODES.index(m) for m in ("BRANCH_EQ", "BRANCH_MEMBER", "LEAF"))
_ASKS = (op.less_equal, op.less, op.greater_equal, op.greater, op.equal, op.not_equal)
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
MOST_WEIGHTS = 1 << 30
"""How many nodes times targets there are at most."""
DEEPEST = 1000
"""How many levels are written out at most."""
_SPARSE = 4
"""How many times as many trees there may be so that every target has as many."""


@dataclass
class Nodes:
    """The nodes of all trees: what each asks of which feature, whether it says yes to NaN, where it goes on (no, yes);
    and the root of each tree. The children of leaves are not read.
    """

    modes: np.ndarray
    features: np.ndarray
    values: np.ndarray
    missing: np.ndarray
    kids: np.ndarray
    roots: np.ndarray

    def checked(self, node: OnnxNode) -> Nodes:
        """With leaves that are their own children; RelayValueError where there is no such child or root."""
        total, leaf = len(self.modes), self.modes == LEAF
        self.kids = np.where(leaf[:, None], np.arange(total)[:, None], self.kids)
        self.features = np.where(leaf, 0, self.features)
        if not len(self.roots) or min(self.kids.min(), self.roots.min()) < 0 or self.kids.max() >= total:
            raise node.error("a node of a tree is not there", code="import.malformed")
        return self

    def levels(self, node: OnnxNode) -> tuple[int, np.ndarray]:
        """How deep the deepest tree is, and the pairs of a tree and one of its leaves: `(2, leaves)`."""
        at = np.stack([np.arange(len(self.roots)), self.roots])
        ended, depth = [], 0
        while at.size:
            leaf = self.modes[at[1]] == LEAF
            ended.append(at[:, leaf])
            tree, place = at[:, ~leaf]
            at = np.unique(np.stack([np.repeat(tree, 2), self.kids[place].reshape(-1)]), axis=1)
            depth += 1
            if depth > len(self.modes):
                raise node.error("a tree comes back to one of its nodes", code="import.malformed")
            if depth > DEEPEST:
                raise node.error(f"a tree has more than {DEEPEST} levels", code="import.malformed")
        return depth - 1, np.concatenate(ended, axis=1)

    def reached(self, g: Graph, x: Expr, roots: np.ndarray, depth: int) -> Expr:
        """Where the rows of `x` end if they start at `roots`: `(rows, roots)`, int32."""
        values, kids = g.const(self.values, x), Constant(self.kids.reshape(-1).astype("int32"))
        features, two = Constant(self.features.astype("int32")), Constant(np.array(2, "int32"))
        modes = sorted(set(self.modes.tolist()) - {LEAF}) or [EQUAL]
        at: Expr = Constant(roots[None].astype("int32"))
        asked = op.take(x, Constant(self.features[roots].astype("int32")), axis=1)
        for level in range(max(depth, 1)):
            if level:
                asked = op.gather(x, 1, op.take(features, at, axis=0))
            beside = op.take(values, at, axis=0)
            yes = _ASKS[modes[0]](asked, beside)
            for mode in modes[1:]:
                yes = op.where(op.take(Constant(self.modes == mode), at, axis=0), _ASKS[mode](asked, beside), yes)
            if self.missing.any():
                tracked = op.take(Constant(self.missing), at, axis=0)
                yes = op.logical_or(yes, op.logical_and(op.isnan(asked), tracked))
            at = op.take(kids, op.add(op.multiply(at, two), op.cast(yes, "int32")), axis=0)
        return at


@dataclass
class Votes:
    """What leaves give: of every contribution the leaf, the target and the weight; and how many targets there are."""

    leaves: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    count: int

    def checked(self, node: OnnxNode, nodes: Nodes) -> Votes:
        """Itself; RelayValueError for leaves and targets that are not there."""
        if self.count * len(nodes.modes) > MOST_WEIGHTS:
            raise node.error(f"{len(nodes.modes)} nodes for {self.count} targets are too many", code="import.shape")
        ok = len(self.leaves) == len(self.targets) == len(self.weights) and self.count > 0
        for given, most in ((self.leaves, len(nodes.modes)), (self.targets, self.count)):
            ok = ok and bool(((given >= 0) & (given < most)).all())
        if not ok:
            raise node.error("a leaf gives something to a target that is not there", code="import.malformed")
        return self

    def joined(self, total: int, absent: float) -> np.ndarray:
        """The weights of each node for each target, `absent` where it has none: `(nodes, targets)`."""
        given = np.zeros((total, self.count), bool)
        given[self.leaves, self.targets] = True
        out = np.where(given, 0.0, absent)
        np.add.at(out, (self.leaves, self.targets), self.weights)
        return out

    def by_target(self, ends: np.ndarray, trees: int) -> list[np.ndarray] | None:
        """The trees of each target, if every tree has one target and no target many more trees than others."""
        own = np.full(self.leaves.max(initial=0) + 1, -1)
        own[self.leaves] = self.targets
        tree, leaf = ends[:, ends[1] < len(own)]
        target = np.full(trees, -1)
        target[tree] = own[leaf]
        if len(np.unique(self.leaves)) < len(self.leaves) or (own[leaf] != target[tree]).any() or (target < 0).any():
            return None
        found = [np.flatnonzero(target == k) for k in range(self.count)]
        return found if max(map(len, found)) * self.count <= _SPARSE * trees else None


def totals(g: Graph, node: OnnxNode, x: Expr, nodes: Nodes, votes: Votes, aggregate: str) -> Expr:
    """What the leaves that the rows of `x` reach give together to each target: `(rows, targets)`."""
    nodes.checked(node)
    votes.checked(node, nodes)
    depth, ends = nodes.levels(node)
    if int(nodes.features.max(initial=0)) >= g.extents(x, 1)[0] or nodes.features.min(initial=0) < 0:
        raise node.error(f"a tree asks of a feature beyond the {g.extents(x, 1)[0]} there are", code="import.malformed")
    absent = {"MIN": np.inf, "MAX": -np.inf}.get(aggregate, 0.0)
    join = {"MIN": op.min, "MAX": op.max}.get(aggregate, op.sum)
    groups = votes.by_target(ends, len(nodes.roots))
    if groups is None:
        # a kernel for each weight would go down the trees again
        reached = annotation.stop_fusion(nodes.reached(g, x, nodes.roots, depth))
        found = join(op.take(g.const(votes.joined(len(nodes.modes), absent), x), reached, axis=0), axis=[1])
    else:
        found = _by_target(g, x, nodes, votes, groups, depth, absent)
        found = join(op.reshape(found, (-1, votes.count, max(map(len, groups)))), axis=[2])
    if aggregate == "AVERAGE":
        found = op.divide(found, g.const(len(nodes.roots), found))
    return op.where(op.isinf(found), g.const(0, found), found) if np.isinf(absent) else found


def _by_target(
    g: Graph, x: Expr, nodes: Nodes, votes: Votes, groups: list[np.ndarray], depth: int, absent: float
) -> Expr:
    """What each tree gives, those of a target beside each other: targets with fewer trees have some that are a leaf."""
    total, most = len(nodes.modes), max(map(len, groups))
    roots = np.full((votes.count, most), total)
    for k, trees in enumerate(groups):
        roots[k, : len(trees)] = nodes.roots[trees]
    more = lambda values, last: np.concatenate([values, np.array([last], values.dtype)])
    padded = Nodes(
        more(nodes.modes, LEAF), more(nodes.features, 0), more(nodes.values, 0), more(nodes.missing, False),
        more(nodes.kids, [total, total]), roots.reshape(-1),
    )  # fmt: skip
    weights = np.full(total + 1, absent)
    weights[votes.leaves] = votes.weights
    return op.take(g.const(weights, x), padded.reached(g, x, padded.roots, depth), axis=0)
