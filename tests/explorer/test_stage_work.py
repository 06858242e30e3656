"""What the change of a stage costs, counted: large programs are compared whole, but only what is drawn is laid out."""

from __future__ import annotations

from collections import Counter

import pytest

from relaylab import relay, study, viz
from relaylab.explorer.session import Session
from relaylab.ir import Expr, IRModule
from relaylab.ir.trail import Trail
from relaylab.viz import layout
from relaylab.viz.draw.draw import draw
from relaylab.viz.diffs.roles import Roles
from relaylab.viz.graph.identity import Identities
from relaylab.viz.graph.view import Edge, Group, Node, View
from relaylab.viz.layout import level

LENGTH = 1200


def chain(length: int) -> IRModule:
    """Calls in a row that go into kernels of at most 256."""
    y = x = relay.var("x", shape=(1, 8))
    for _ in range(length):
        y = relay.nn.relu(y)
    return relay.IRModule.from_expr(relay.Function([x], y))


def test_only_what_is_drawn_is_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(study.explore(chain(LENGTH)))
    laid: list[int] = []
    lay_out = layout.lay_out

    def counted(boxes, *rest):
        laid.append(len(boxes))
        return lay_out(boxes, *rest)

    monkeypatch.setattr(layout, "lay_out", counted)
    for frame in session.frames.changing():
        answer = session.ask("picture", frame - 1, frame, "merged", "Δ")
        shown = sum(len(scene["nodes"]) for scene in answer["scenes"])
        assert laid.pop() == shown < LENGTH / 2 and not laid


def test_a_pass_that_labels_kernels_changes_kernels_and_nothing_else() -> None:
    session = Session(study.explore(chain(LENGTH)))
    frame = next(k for k, item in enumerate(session.pipeline.items, 1) if item.name == "LabelOps")
    kernels = [g for g in session.frames.views[frame].groups if g.kind == "primitive"]
    answer = session.ask("picture", frame - 1, frame, "merged", "Δ")
    assert answer["roles"] == {"changed": len(kernels)} and answer["edges"] == 0
    before, after = session.frames.sides(frame)
    changed = [g for g in after.groups if g.role]
    assert len(changed) == len(kernels) and all(g.note.startswith('with hash = "') for g in changed)
    assert {g.id for g in before.groups if g.role == "changed"} == {g.id for g in changed}
    assert not any(n.role for n in after.nodes)


def test_equal_kernels_are_laid_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(study.explore(chain(LENGTH)))
    view = session.frames.views[-1]
    kernels = [g.id for g in view.groups if g.kind == "primitive"]
    once, worked = draw(view), []
    run = level._Work.run
    monkeypatch.setattr(level._Work, "run", lambda work: worked.append(work.count) or run(work))
    again = draw(view)
    assert again == once and len(worked) < len(kernels)
    monkeypatch.setattr(level.Level, "shape", property(lambda found: object()))
    worked.clear()
    assert draw(view) == once and len(worked) > len(kernels)


def test_no_trail_is_asked_twice_for_a_node() -> None:
    class Asked:
        """A trail that knows nothing, and counts."""

        def __init__(self) -> None:
            self.asked: Counter[Expr] = Counter()

        def parents(self, node: Expr) -> tuple[Expr, ...]:
            self.asked[node] += 1
            return ()

        def became(self, node: Expr) -> None:
            return None

    identities, trails = Identities(), [Asked() for _ in range(4)]
    mod = chain(20)
    viz.view(mod, identities=identities)
    for trail in trails:
        identities.follow(trail)
        viz.view(mod, identities=identities)
    assert all(set(trail.asked.values()) == {1} for trail in trails)


def test_the_last_trail_that_knows_a_node_is_believed() -> None:
    mods = [chain(3) for _ in range(3)]
    bodies = [mod["main"].body for mod in mods]
    first, second = Trail(), Trail()
    first.record(bodies[0], bodies[1])
    second.record(bodies[1], bodies[2])
    identities = Identities()
    names: list[dict[Expr, str]] = []
    for mod, trail in zip(mods, (None, first, second)):
        if trail is not None:
            identities.follow(trail)
        viz.view(mod, identities=identities)
        names.append({expr: name for name, expr in identities.expressions().items()})
    assert names[0][bodies[0]] == names[1][bodies[1]] == names[2][bodies[2]]


def test_roles_of_many_kernels_go_through_the_nodes_a_few_times() -> None:
    class Counting(tuple):
        """Nodes that count how often all of them are gone through."""

        walks = 0

        def __iter__(self):
            Counting.walks += 1
            return super().__iter__()

    count = 300
    nodes = [Node(f"n{k}", "call", "add", "add") for k in range(count)]
    edges = tuple(Edge(f"n{k}", f"n{k + 1}") for k in range(count - 1))
    kernels = tuple(Group(f"k{k}", "primitive", "add") for k in range(count))
    inside = Counting(Node(n.id, "call", "add", "add", group=f"k{k}") for k, n in enumerate(nodes))
    merged = Roles(View("", tuple(nodes), edges), View("", inside, edges, kernels)).merged()
    assert all(g.role == "merged" and g.note == "1 node of before in one kernel" for g in merged.groups)
    assert Counting.walks < 10
