"""Laws of the layout: nothing overlaps, edges end at borders, the same in gives the same out, seeds keep places."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from programs import random_view

from relaylab.text import parse
from relaylab.transform.engine.infer_type import InferType
from relaylab.viz import show
from relaylab.viz.draw.draw import DrawOptions, _Drawing
from relaylab.viz.layout import Box, GraphLayout, Link, LayoutOptions, Bounds, lay_out
from relaylab.viz.layout.order import inversions
from relaylab.viz.graph.view import View

pytestmark = pytest.mark.slow


def drawing(seed: int, direction: str = "TB") -> _Drawing:
    return _Drawing(random_view(seed), DrawOptions(direction=direction), None)


def overlap(a: Bounds, b: Bounds) -> bool:
    slack = 0.01
    return a.x + slack < b.right and b.x + slack < a.right and a.y + slack < b.bottom and b.y + slack < a.bottom


def inside(a: Bounds, b: Bounds) -> bool:
    return a.x >= b.x and a.right <= b.right and a.y >= b.y and a.bottom <= b.bottom


def on_border(point: tuple[float, float], r: Bounds) -> bool:
    x, y = point
    near = 0.01
    across = r.x - near <= x <= r.right + near and (abs(y - r.y) < near or abs(y - r.bottom) < near)
    along = r.y - near <= y <= r.bottom + near and (abs(x - r.x) < near or abs(x - r.right) < near)
    return across or along


@pytest.mark.parametrize("direction", ["TB", "LR"])
@pytest.mark.parametrize("seed", range(12))
class TestRandomGraphs:
    def test_boxes_do_not_overlap(self, seed, direction):
        layout = drawing(seed, direction).layout
        assert not [pair for pair in combinations(layout.boxes, 2) if overlap(*(layout.boxes[n] for n in pair))]

    def test_groups_hold_their_own_and_no_strangers(self, seed, direction):
        d = drawing(seed, direction)
        parent = dict(d.parent)
        for group, frame in d.layout.frames.items():
            for box, place in {**d.layout.boxes, **d.layout.frames}.items():
                around = set()
                at = box
                while parent.get(at):
                    at = parent[at]
                    around.add(at)
                if group in around:
                    assert inside(place, frame)
                elif box != group and not (box in d.layout.frames and _around(group, box, parent)):
                    assert not overlap(place, frame)

    def test_edges_end_at_their_boxes(self, seed, direction):
        d = drawing(seed, direction)
        places = {**d.layout.boxes, **d.layout.frames}
        for edge in d.view.edges:
            route = d.layout.routes[edge.id]
            assert on_border(route[0], places[edge.source]), edge
            assert on_border(route[-1], places[edge.target]), edge

    def test_everything_is_on_the_page(self, seed, direction):
        layout = drawing(seed, direction).layout
        page = Bounds(-0.01, -0.01, layout.width + 0.02, layout.height + 0.02)
        assert all(inside(r, page) for r in (*layout.boxes.values(), *layout.frames.values()))
        assert all(
            page.x <= x <= page.right and page.y <= y <= page.bottom
            for route in layout.routes.values()
            for x, y in route
        )

    def test_the_same_again(self, seed, direction):
        first, second = drawing(seed, direction).layout, drawing(seed, direction).layout
        assert first.boxes == second.boxes and first.routes == second.routes

    def test_seeded_by_itself_nothing_moves(self, seed, direction):
        first = drawing(seed, direction)
        again = _Drawing(first.view, first.options, first.layout.seed)
        for name, place in first.layout.boxes.items():
            now = again.layout.boxes[name]
            assert abs(now.x - place.x) < 0.5 and abs(now.y - place.y) < 0.5, name


def _around(inner: str, outer: str, parent: dict[str, str]) -> bool:
    while parent.get(inner):
        inner = parent[inner]
        if inner == outer:
            return True
    return False


def chain_layout(names: list[str], seed=None) -> GraphLayout:
    boxes = [Box(n, 60, 20) for n in names]
    return lay_out(boxes, [Link(f"{a}>{b}", a, b) for a, b in zip(names, names[1:])], seed=seed)


def test_a_chain_is_a_straight_column():
    layout = chain_layout([f"n{i}" for i in range(50)])
    assert len({round(r.center[0], 3) for r in layout.boxes.values()}) == 1
    assert all(len({round(x, 3) for x, _ in route}) == 1 for route in layout.routes.values())


def test_the_longest_path_is_straight_with_a_shortcut_beside_it():
    names = [f"n{i}" for i in range(9)]
    links = [Link(f"{a}>{b}", a, b) for a, b in zip(names, names[1:])]
    links += [Link("short1", "n1", "n4", into=0.8), Link("short2", "n4", "n8", into=0.8)]
    layout = lay_out([Box(n, 60, 20) for n in names], links)
    assert len({round(r.center[0], 1) for r in layout.boxes.values()}) == 1
    assert layout.crossings == 0


def test_a_new_box_in_front_leaves_the_others_in_their_column():
    before = chain_layout(["a", "b", "c"])
    after = chain_layout(["new", "a", "b", "c"], before.seed)
    assert all(abs(after.boxes[n].x - before.boxes[n].x) < 1 for n in "abc")


def test_options_change_distances():
    names = ["a", "b"]
    boxes, links = [Box(n, 60, 20) for n in names], [Link("e", "a", "b")]
    wide = lay_out(boxes, links, options=LayoutOptions(rank_gap=100.0))
    assert wide.boxes["b"].y - wide.boxes["a"].bottom == 100.0


@pytest.mark.parametrize("seed", range(20))
def test_inversions_are_counted_right(seed):
    rng = random.Random(seed)
    values = [float(rng.randrange(8)) for _ in range(rng.randrange(30))]
    assert inversions(values) == sum(a > b for a, b in combinations(values, 2))


def test_cycles_self_loops_and_repeated_edges_have_routes():
    links = [Link("ab", "a", "b"), Link("ba", "b", "a"), Link("aa", "a", "a"), Link("ab2", "a", "b")]
    layout = lay_out([Box("a", 60, 20), Box("b", 60, 20)], links)
    assert layout.routes.keys() == {"ab", "ba", "aa", "ab2"}


def test_an_empty_view_is_an_empty_picture():
    assert _Drawing(View(), DrawOptions(), None).scene().elements == ()


BRANCHES = {
    "if": """
def @main(%x: Tensor[(1, 8), float32], %c: bool, %y: Tensor[(1, 8), float32]) {
  let %f = fn (%z: Tensor[(1, 8), float32]) { add(%z, %y) };
  if (%c) { %f(%x) } else { nn.relu(%x) }
}""",
    "match": """
type Three { A(float32), B(float32), C(float32), }
def @main(%t: Three, %x: float32, %c: float32, %y: float32) {
  let %f = fn (%z: float32) { add(%z, %y) };
  let %g = fn (%z: float32) { add(%z, %c) };
  match (%t) { A(%a) => { %g(%y) }, B(%a) => { %f(%x) }, C(%a) => { %f(%a) }, }
}""",
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_stand_in_the_order_of_their_ports(name):
    picture = show(InferType()(parse('#[version = "0.0.5"]' + BRANCHES[name])))
    places = {e.id: e.box for e in picture.scene.elements}
    boxes = [g for g in picture.view.groups if g.kind in ("branch", "clause")]
    ports = ["then", "else"] if name == "if" else ["A(%a) =>", "B(%a) =>", "C(%a) =>"]
    assert [g.title for g in sorted(boxes, key=lambda g: places[g.id][0])] == ports


CALLS = """#[version = "0.0.5"]
def @leaf(%x: int32) { %x }
def @other(%x: int32) { add(%x, @leaf(%x)) }
def @first(%x: int32) -> int32 { @second(%x) }
def @second(%x: int32) -> int32 { @first(%x) }
def @one(%x: int32) { @leaf(%x) }
def @two(%x: int32) { @deep(%x) }
def @deep(%x: int32) { %x }
def @main(%x: int32) { add(@one(%x), @two(%x)) }
"""


def test_functions_stand_in_the_order_of_their_calls():
    """`main` first, in each row below what is called by the row above; callees in the order of their callers."""
    found = show(parse(CALLS)).scene
    groups = sorted((f for f in found.elements if f.kind == "group"), key=lambda f: (round(f.box[1]), f.box[0]))
    rows: dict[int, list[str]] = {}
    for group in groups:
        rows.setdefault(round(group.box[1]), []).append(group.label.split("@")[1].split()[0])
    assert [*rows.values()] == [["main", "other", "first"], ["one", "two", "leaf", "second"], ["deep"]]
