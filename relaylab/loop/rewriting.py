"""Scalar expressions rewritten bottom-up."""

from __future__ import annotations

from collections.abc import Callable

from relaylab.loop.expr import ScalarExpr, children, post_order, rebuild


def rewrite(root: ScalarExpr, rule: Callable[[ScalarExpr], ScalarExpr]) -> ScalarExpr:
    """`root` with `rule` applied to every node bottom-up; shared nodes stay shared, unchanged ones the same."""
    done: dict[int, ScalarExpr] = {}
    for node in post_order(root):
        done[id(node)] = rule(rebuild(node, tuple(done[id(c)] for c in children(node))))
    return done[id(root)]
