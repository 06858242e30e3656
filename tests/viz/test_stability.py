"""From stage to stage of a pipeline what stays keeps its place sideways and its order along the flow."""

from __future__ import annotations

from functools import cache
from statistics import median

import pytest

from relaylab import study
from relaylab.bench import encoder
from relaylab.explorer import Session
from relaylab.viz.layout import Box, GraphLayout, Link, lay_out, level
from relaylab.viz.layout.keep import PUSH, make_room

pytestmark = pytest.mark.slow

STEADY = (
    PUSH  # points off the common shift where boxes keep their sizes and groups: a line may come between two of them
)
GROWN = 90.0  # where boxes grow (a layout's type is longer by up to 120 points) or come into a frame of their own
PROGRAMS = {
    "resnet18": lambda: "resnet18",
    "resnet8": lambda: "resnet8",
    "encoder": lambda: encoder.get_workload(layers=1, length=16)[0],
}
Boxes = dict[str, list[float]]


@cache
def pictures(program: str, style: str, loose: float = level.LOOSE) -> list[tuple[int, dict]]:
    """The scenes as the explorer shows them from the source to the last changing pass: differences, or stages alone.

    Pictures that are `loose` times as wide as they have to be are straightened.
    """
    kept, level.LOOSE = level.LOOSE, loose
    try:
        return _pictures(program, style)
    finally:
        level.LOOSE = kept


def _pictures(program: str, style: str) -> list[tuple[int, dict]]:
    session = Session(study.explore(PROGRAMS[program]()))
    frames = [0, *session.frames.changing()]
    pairs = list(zip([0, *frames], frames)) if style == "merged" else [(f, f) for f in frames]
    return [(after, session.ask("picture", before, after)["scenes"][0]) for before, after in pairs]


def boxes(scene: dict) -> Boxes:
    return {f["id"]: f["box"] for f in scene["figures"] if f["kind"] == "node"}


def groups(scene: dict) -> dict[str, str]:
    return {node[0]: node[1] for node in scene["nodes"]}


def strays(old: Boxes, new: Boxes) -> dict[str, float]:
    """How far each common node moved sideways from the common (median) shift; of its centre, in points."""
    moved = {n: (new[n][0] + new[n][2] / 2) - (old[n][0] + old[n][2] / 2) for n in new if n in old}
    shift = median(moved.values())
    return {n: x - shift for n, x in moved.items()}


def same_shapes(old: dict, new: dict) -> bool:
    a, b, of, to = boxes(old), boxes(new), groups(old), groups(new)
    return all(a[n][2] == b[n][2] and of[n] == to[n] for n in a if n in b)


@pytest.mark.parametrize("style", ["merged", "one"])
@pytest.mark.parametrize("program", PROGRAMS)
class TestStages:
    def test_nodes_keep_their_places_sideways(self, program, style):
        shown = pictures(program, style, float("inf"))
        assert len(shown) > 4
        for (_, old), (frame, new) in zip(shown, shown[1:]):
            bound = STEADY if same_shapes(old, new) else GROWN
            far = {n: round(x) for n, x in strays(boxes(old), boxes(new)).items() if abs(x) > bound}
            assert not far, f"at frame {frame} these jump: {far}"

    def test_what_is_straightened_keeps_its_order_sideways(self, program, style):
        shown = pictures(program, style)
        for (_, old), (frame, new) in zip(shown, shown[1:]):
            before, after = boxes(old), boxes(new)
            both = [n for n in after if n in before and groups(old)[n] == groups(new)[n]]
            swapped = [
                (a, b)
                for a in both
                for b in both
                if beside(before[a], before[b])
                and beside(after[a], after[b])
                and before[a][0] < before[b][0]
                and after[a][0] > after[b][0]
            ]
            assert not swapped, f"at frame {frame}: {swapped[:3]}"

    def test_nodes_keep_their_order_along_the_flow(self, program, style):
        shown = pictures(program, style)
        for (_, old), (frame, new) in zip(shown, shown[1:]):
            before, after = boxes(old), boxes(new)
            swapped = [
                (a, b)
                for a, b in _paths(old) & _paths(new)
                if (before[a][1] < before[b][1]) != (after[a][1] < after[b][1])
            ]
            assert not swapped, f"at frame {frame}: {swapped[:3]}"


def beside(a: list[float], b: list[float]) -> bool:
    """Whether two boxes stand in one row."""
    return a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


def test_room_of_what_has_gone_is_given_back():
    """Without batch norms and their constants ResNet is a straight chain again: it was six times as wide."""
    session = Session(study.explore("resnet18"))
    frames = session.frames.changing()
    last = [session.ask("picture", a, b)["scenes"][0] for a, b in zip([0, *frames], frames)][2]
    alone = Session(study.explore("resnet18")).ask("picture", frames[1], frames[2])["scenes"][0]
    assert last["width"] < 1.1 * alone["width"]


def _paths(scene: dict) -> set[tuple[str, str]]:
    """All pairs of nodes with a path from the first to the second."""
    after: dict[str, set[str]] = {n: set() for n in boxes(scene)}
    for f in scene["figures"]:
        if f["kind"] == "edge" and f["source"] in after and f["target"] in after:
            after[f["source"]].add(f["target"])
    found = set()
    for start in after:
        seen = {start}
        reached = [start]
        for at in reached:
            reached += after[at] - seen
            seen |= after[at]
        found |= {(start, n) for n in reached[1:]}
    return found


class TestMakeRoom:
    """Items with places are kept, others are new; all are 40 points wide and 18 apart."""

    @staticmethod
    def order(layer: list[int], places: dict[int, float], wish: dict[int, float]) -> list[int]:
        make_room(layer, places, wish, [40.0] * 8, 18.0)
        return layer

    def test_what_fits_stays(self):
        assert self.order([0, 2, 1], {0: 0.0, 1: 120.0}, {2: 60.0}) == [0, 2, 1]

    @pytest.mark.parametrize("wish,expected", [(0.0, [2, 0, 1]), (58.0, [0, 1, 2])])
    def test_what_does_not_fit_goes_to_the_nearer_side(self, wish, expected):
        assert self.order([0, 2, 1], {0: 0.0, 1: 58.0}, {2: wish}) == expected

    def test_the_nearest_gap_with_room_is_taken(self):
        assert self.order([0, 3, 1, 2], {0: 0.0, 1: 58.0, 2: 250.0}, {3: 20.0}) == [3, 0, 1, 2]
        assert self.order([0, 3, 1, 2], {0: 0.0, 1: 58.0, 2: 250.0}, {3: 60.0}) == [0, 1, 3, 2]

    def test_nothing_is_lost(self):
        layer = [4, 0, 2, 5, 6, 1, 3, 7]
        assert sorted(self.order(layer, {0: 0.0, 1: 60.0}, dict.fromkeys(range(8), 30.0))) == list(range(8))


def diamond(*more: Link, seed=None) -> GraphLayout:
    links = [Link("ab", "a", "b"), Link("ac", "a", "c"), Link("bd", "b", "d"), Link("cd", "c", "d"), *more]
    names = dict.fromkeys(n for k in links for n in (k.source, k.target))
    return lay_out([Box(n, 60, 20) for n in names], links, seed=seed)


def test_a_longer_new_path_does_not_bend_what_was_there():
    before = diamond()
    names = [*(f"new{i}" for i in range(12)), "d"]
    after = diamond(*(Link(f"{a}>{b}", a, b) for a, b in zip(names, names[1:])), seed=before.seed)
    moved = [after.boxes[n].x - before.boxes[n].x for n in "abcd"]
    assert max(moved) - min(moved) < 1
