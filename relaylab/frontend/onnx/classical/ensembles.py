"""TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble: their attributes as trees, their scores and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.classical.scores import (
    TRANSFORMS,
    chosen,
    either,
    labels_of,
    of_two,
    probit,
    rows_of,
    transformed,
)
from relaylab.frontend.onnx.classical.trees import AGGREGATES, EQUAL, LEAF, MEMBER, MODES, Nodes, Votes, totals
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.table import CLASSICAL, converts
from relaylab.ir import Constant, Expr

_MOST = 1 << 31
_UNUSED = ("nodes_hitrates", "nodes_hitrates_as_tensor")


def _numbers(node: OnnxNode, name: str, dtype: str = "int64") -> np.ndarray:
    """An attribute of numbers as a vector; one of floats may be a tensor, under a name of its own."""
    given = node.get(name)
    tensor = node.get(f"{name}_as_tensor") if dtype != "int64" else None
    if tensor is not None:
        return np.asarray(tensor).reshape(-1).astype(dtype)
    return np.array(given if given is not None else [], dtype).reshape(-1)


def _nodes(node: OnnxNode) -> tuple[Nodes, np.ndarray, np.ndarray]:
    """The nodes of trees that are named by pairs of numbers, and these pairs in order with their places."""
    names = _numbers(node, "nodes_treeids"), _numbers(node, "nodes_nodeids")
    known = {name: k for k, name in enumerate(MODES)}
    modes = np.array([known.get(m, -1) for m in node.get("nodes_modes", [])], "int64")
    total = len(modes)
    parts = {n: _numbers(node, f"nodes_{n}") for n in ("featureids", "truenodeids", "falsenodeids")}
    values = _numbers(node, "nodes_values", "float64")
    missing = _numbers(node, "nodes_missing_value_tracks_true").astype(bool)
    missing = missing if len(missing) else np.zeros(total, bool)
    if {total} != {len(v) for v in (*names, values, missing, *parts.values())} or not total or (modes < 0).any():
        raise node.error("the nodes of the trees do not fit each other", code="import.malformed")
    if min(v.min() for v in names) < 0 or max(v.max() for v in names) >= _MOST:
        raise node.error(f"trees and nodes are numbers from 0 to {_MOST - 1}", code="import.malformed")
    if (modes == MEMBER).any():
        raise node.error("the mode BRANCH_MEMBER needs sets of members", code="import.malformed")
    pairs, order = _in_order(*names)
    kids = np.stack([_places(pairs, order, names[0], parts[n]) for n in ("falsenodeids", "truenodeids")], axis=1)
    roots = np.unique(names[0], return_index=True)[1]  # the first node of each tree
    return Nodes(modes, parts["featureids"], values, missing, kids, roots), pairs, order


def _in_order(trees: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of numbers as one number each, sorted, and where each was."""
    keys = trees * _MOST + nodes
    order = np.argsort(keys, kind="stable")
    return keys[order], order


def _places(pairs: np.ndarray, order: np.ndarray, trees: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Where pairs of numbers are; -1 where they are not."""
    keys = np.where((nodes >= 0) & (nodes < _MOST) & (trees >= 0) & (trees < _MOST), trees * _MOST + nodes, -1)
    found = np.minimum(np.searchsorted(pairs, keys), len(pairs) - 1)
    return np.where(pairs[found] == keys, order[found], -1)


def _votes(node: OnnxNode, kind: str, pairs: np.ndarray, order: np.ndarray, count: int) -> Votes:
    trees, nodes = _numbers(node, f"{kind}_treeids"), _numbers(node, f"{kind}_nodeids")
    if len(trees) != len(nodes):
        raise node.error("the leaves of the trees do not fit each other", code="import.malformed")
    targets, weights = _numbers(node, f"{kind}_ids"), _numbers(node, f"{kind}_weights", "float64")
    return Votes(_places(pairs, order, trees, nodes), targets, weights, count)


def _with_base(g: Graph, node: OnnxNode, scores: Expr, base: np.ndarray, count: int) -> Expr:
    if not len(base):
        return scores
    if len(base) not in (1, count):
        raise node.error(f"{len(base)} base values for {count} targets", code="import.malformed")
    return op.add(scores, g.const(base, scores))


@converts("TreeEnsembleRegressor", domain=CLASSICAL, unused=_UNUSED)
def tree_regressor(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    x = rows_of(g, x)
    count, aggregate = node.get("n_targets", 1), node.choice("aggregate_function", "SUM", AGGREGATES)
    nodes, pairs, order = _nodes(node)
    scores = totals(g, node, x, nodes, _votes(node, "target", pairs, order, count), aggregate)
    scores = _with_base(g, node, scores, _numbers(node, "base_values", "float64"), count)
    return op.cast(_finished(g, scores, count, node.choice("post_transform", "NONE", TRANSFORMS)), "float32")


def _finished(g: Graph, scores: Expr, count: int, kind: str) -> Expr:
    """Scores transformed; of a single one engines know only its quantile."""
    if count > 1:
        return transformed(g, scores, kind)
    return probit(g, scores) if kind == "PROBIT" else scores


@converts("TreeEnsembleClassifier", domain=CLASSICAL, unused=_UNUSED)
def tree_classifier(g: Graph, node: OnnxNode, x: Expr) -> list[Expr]:
    x = rows_of(g, x)
    labels = labels_of(node, "classlabels_int64s")
    if labels is None:
        raise node.error("it has no labels", code="import.malformed")
    nodes, pairs, order = _nodes(node)
    votes, kind = _votes(node, "class", pairs, order, len(labels)), node.choice("post_transform", "NONE", TRANSFORMS)
    base, seen = _numbers(node, "base_values", "float64"), np.unique(votes.targets)
    if len(labels) == 2 and len(seen) == 1:
        label, out = _of_one_score(g, node, x, nodes, votes, base, labels, kind, bool(seen[0]))
    else:
        scores = _with_base(g, node, totals(g, node, x, nodes, votes, "SUM"), base, len(labels))
        rated, labels = (scores, labels) if len(base) else _rated(scores, labels, seen)
        label = chosen(labels, op.argmax(rated, axis=[1]))
        out = transformed(g, scores, kind)
    return [label, op.cast(out, "float32")]


def _rated(scores: Expr, labels: np.ndarray, seen: np.ndarray) -> tuple[Expr, np.ndarray]:
    """The classes that some leaf rates: others are not chosen, even if all scores are negative."""
    return (scores, labels) if len(seen) == len(labels) else (op.take(scores, Constant(seen), axis=1), labels[seen])


def _of_one_score(
    g: Graph,
    node: OnnxNode,
    x: Expr,
    nodes: Nodes,
    votes: Votes,
    base: np.ndarray,
    labels: np.ndarray,
    kind: str,
    second: bool,
) -> tuple[Expr, Expr]:
    """Of two classes only one has scores: it is the probability of the second class if no weight is negative, else how
    far a row is on its side. If the class is named as the `second`, the first one has the score 0.
    """
    if len(base) > 1 or (len(base) and second):
        raise node.error("base values where one of two classes has scores", code="import.attribute")
    positive = not (votes.weights < 0).any()
    single = Votes(votes.leaves, np.zeros_like(votes.targets), votes.weights, 1)
    score = _with_base(g, node, totals(g, node, x, nodes, single, "SUM"), base, 1)
    flat = op.squeeze(score, axis=[1])
    label = either(labels, op.greater(flat, g.const(0.5 if positive else 0, flat)))
    if second:
        nothing = op.multiply(score, g.const(0, score))
        return label, transformed(g, op.concatenate([nothing, score], axis=1), kind)
    return label, of_two(g, score, kind, positive)


@converts("TreeEnsemble", since=5, domain=CLASSICAL, unused=("nodes_hitrates",))
def tree_ensemble(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """Nodes and leaves are numbered apart here: the leaves come behind the nodes."""
    x = rows_of(g, x)
    need = lambda name: np.asarray(node.need(name)).reshape(-1)
    modes, features, values = need("nodes_modes").astype("int64"), need("nodes_featureids"), need("nodes_splits")
    targets, weights = need("leaf_targetids"), need("leaf_weights")
    sides = [np.stack([need(f"nodes_{s}{n}") for s in ("false", "true")], 1) for n in ("nodeids", "leafs")]
    missing, members = node.get("nodes_missing_value_tracks_true"), node.get("membership_values")
    count, inner, leaves = node.get("n_targets", 1), len(modes), len(targets)
    lengths = {inner, len(features), len(values), len(sides[0]), len(missing) if missing else inner}
    if len(lengths) > 1 or (modes < 0).any() or (modes > MEMBER).any():
        raise node.error("the nodes of the trees do not fit each other", code="import.malformed")
    behind = lambda given, last: np.concatenate([given, np.full(leaves, last, given.dtype)])
    kids = np.where(sides[1] != 0, sides[0] + inner, sides[0])
    if (sides[0] < 0).any() or ((sides[1] == 0) & (sides[0] >= inner)).any():
        raise node.error("a node of a tree is not there", code="import.malformed")
    nodes = Nodes(
        behind(modes, LEAF), behind(features, 0), behind(values.astype("float64"), 0),
        behind(np.array(missing if missing else np.zeros(inner), bool), False),
        np.concatenate([kids, np.zeros((leaves, 2), kids.dtype)]), need("tree_roots"),
    )  # fmt: skip
    nodes = _without_members(node, nodes, np.asarray(members if members is not None else []).reshape(-1))
    votes = Votes(inner + np.arange(leaves), targets, weights.astype("float64"), count)
    aggregate, kind = node.get("aggregate_function", 1), node.get("post_transform", 0)
    if aggregate not in range(len(AGGREGATES)) or kind not in range(len(TRANSFORMS)):
        raise node.error("aggregate_function or post_transform is no number it may be", code="import.attribute")
    return _finished(g, totals(g, node, x, nodes, votes, AGGREGATES[aggregate]), count, TRANSFORMS[kind])


def _without_members(node: OnnxNode, nodes: Nodes, members: np.ndarray) -> Nodes:
    """Nodes that ask for one of several values ask for one after another; NaN ends each of their sets."""
    where = np.flatnonzero(nodes.modes == MEMBER)
    if not len(where):
        return nodes
    ends = np.flatnonzero(np.isnan(members))
    if len(ends) < len(where):
        raise node.error("a node has no set of members", code="import.malformed")
    columns: list[list[Any]] = [list(c) for c in (nodes.modes, nodes.features, nodes.values, nodes.missing, nodes.kids)]
    start = 0
    for at, end in zip(where, ends):
        asked, start = members[start:end], end + 1
        no, yes = nodes.kids[at]
        for k, value in enumerate(asked if len(asked) else [np.nan]):  # nothing is a member of no members
            further = no if k >= len(asked) - 1 else len(columns[0]) + min(k, 1)
            row = (EQUAL, nodes.features[at], value, nodes.missing[at], np.array([further, yes]))
            for column, entry in zip(columns, row):
                if k:
                    column.append(entry)
                else:
                    column[at] = entry
    modes, features, values, missing, kids = map(np.array, columns)
    return Nodes(modes, features, values, missing, kids, nodes.roots)
