"""Only what changed: equal changes once, the rest as dotted stretches; small pictures whole."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from test_exemplars import changes as compared
from test_exemplars import network

from relaylab import relay, study, viz
from relaylab.viz.selection.changes import LEAST, SMALL, changes


@cache
def merged(net: str, name: str) -> viz.View:
    pipeline = study.explore(net, passes=["SimplifyInference", "FoldConstant", "FuseOps"]).pipeline
    stage = next(s.main for k, s in enumerate(pipeline.segments) if pipeline.items[k].name == name)
    assert stage is not None
    return viz.diff(stage.before, stage.result, stage).merged


def held(view: viz.View) -> int:
    """How many nodes the stretches say that they hold."""
    return sum(int(n.title.split()[1]) for n in view.nodes if n.kind == "stretch")


def acyclic(view: viz.View) -> bool:
    """Whether the parts of each group can be put in an order (Kahn)."""
    above = {g.id: g.parent for g in view.groups} | {n.id: n.group for n in view.nodes}

    def chain(name: str) -> list[str]:
        found = [name]
        while found[-1]:
            found.append(above[found[-1]])
        return found

    pairs: set[tuple[str, str]] = set()
    for edge in view.edges:
        a, b = chain(edge.source), chain(edge.target)
        common = next(x for x in a[1:] if x in b[1:])
        ends = a[a.index(common) - 1], b[b.index(common) - 1]
        pairs |= {ends} if ends[0] != ends[1] else set()
    waiting = Counter(b for _, b in pairs)
    free = [n for n in above if not waiting[n]]
    for name in free:
        for _, b in [p for p in pairs if p[0] == name]:
            waiting[b] -= 1
            free += [b] if not waiting[b] else []
    return len(free) == len(above)


@pytest.mark.parametrize("net", ["resnet18", "bert"])
@pytest.mark.parametrize("name", ["SimplifyInference", "FoldConstant", "FuseOps"])
def test_nothing_is_lost_and_no_way_comes_back(net: str, name: str) -> None:
    whole = merged(net, name)
    brief = changes(whole)
    assert brief.check() is brief and acyclic(brief)
    assert len(brief.nodes) < len(whole.nodes) / 2
    shown = [n for n in brief.nodes if n.kind != "stretch"]
    assert len(shown) + held(brief) == len(whole.nodes)
    assert all(int(n.title.split()[1]) >= LEAST for n in brief.nodes if n.kind == "stretch")
    kinds = viz.exemplars(whole)
    assert {name for kind in kinds for name in kind.nodes} <= {n.id for n in shown}


def test_equal_changes_are_one_with_their_number() -> None:
    brief = changes(compared(network(19), "SimplifyInference"))
    assert Counter(n.title for n in brief.nodes)["nn.batch_norm"] == 1
    assert [g.title for g in brief.groups if g.kind == "equal"] == ["×19 equal changes"]
    (stretch,) = [n for n in brief.nodes if n.kind == "stretch"]
    assert "18 equal changes" in stretch.rows and not stretch.role


def test_what_is_small_or_the_same_is_shown_whole() -> None:
    small = compared(network(1), "SimplifyInference")
    assert len(small.nodes) <= SMALL and changes(small) is small
    same = viz.view(network(19))
    assert changes(same) is same


def test_what_is_opened_is_shown() -> None:
    whole = compared(network(9), "SimplifyInference")
    brief = changes(whole)
    (stretch,) = [n.id for n in brief.nodes if n.kind == "stretch"]
    far = whole.nodes[-2].id
    assert far not in brief.node_by_id and far in changes(whole, opened={far}).node_by_id
    assert len(changes(whole, opened={stretch}).nodes) == len(whole.nodes)


def test_a_type_that_follows_from_a_change_is_none_by_itself() -> None:
    """One cast at the top makes every type below it another: the casts are what changed."""
    x = relay.var("x", shape=(1, 8))
    out = x
    for _ in range(40):
        out = relay.sqrt(out)
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], out)))
    after = relay.var("x", shape=(1, 8))
    out = relay.cast(after, "float16")
    for _ in range(40):
        out = relay.sqrt(out)
    cast = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([after], out)))
    kinds = viz.exemplars(viz.diff(mod, cast).merged)
    assert [(kind.count, len(kind.nodes)) for kind in kinds] == [(1, 1)]
