"""Nothing covers anything else: boxes, the texts in them, titles of groups and labels of edges, over many programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

import pytest
from programs import SOURCES, program, random_view

from relaylab import relay
from relaylab.viz import View, collapse, view
from relaylab.viz.draw.draw import DrawOptions, draw
from relaylab.viz.selection.fold import of_kind
from relaylab.viz.scene.scene import Scene, Text, extent
from relaylab.zoo.catalog import NETWORKS

pytestmark = pytest.mark.slow

Box = tuple[float, float, float, float]  # left, top, right, bottom
SMALL = ("mlp", "dcgan", "dqn", "lstm", "resnet18", "mobilenet", "squeezenet", "vgg11", "inception_v3", "nat")
SLACK = 0.3


@cache
def network(name: str, fused: bool) -> View:
    mod, _ = NETWORKS[name].small()
    for step in (relay.transform.SimplifyInference, relay.transform.FuseOps) if fused else ():
        mod = step()(mod)
    return view(mod)


def boxes(scene: Scene) -> list[tuple[str, Box]]:
    return [
        (f.id, (f.box[0], f.box[1], f.box[0] + f.box[2], f.box[1] + f.box[3]))
        for f in scene.elements
        if f.kind == "node"
    ]


def texts(scene: Scene, kind: str) -> list[tuple[str, Box]]:
    return [(s.text, extent(s)) for f in scene.elements if f.kind == kind for s in f.shapes if isinstance(s, Text)]


def ink(text: Text) -> Box:
    """What the letters of a text cover: from the height of capitals to the depth of a `g`."""
    left, _, right, _ = extent(text)
    return left, text.y - 0.72 * text.size, right, text.y + 0.22 * text.size


def meeting(parts: Iterable[tuple[str, Box]]) -> Iterator[tuple[str, str]]:
    """Pairs of rectangles that overlap, by a sweep from top to bottom."""
    open_: list[tuple[str, Box]] = []
    for name, box in sorted(parts, key=lambda p: p[1][1]):
        open_ = [(n, b) for n, b in open_ if b[3] > box[1] + SLACK]
        yield from ((n, name) for n, b in open_ if b[0] + SLACK < box[2] and box[0] + SLACK < b[2])
        open_.append((name, box))


def check(made: View, options: DrawOptions) -> None:
    scene = draw(made, options)
    assert not list(meeting(boxes(scene)))
    assert not list(meeting(boxes(scene) + texts(scene, "heading")))
    assert not list(meeting(boxes(scene) + texts(scene, "edge")))
    assert not list(meeting(texts(scene, "edge") + texts(scene, "heading")))
    for figure in scene.elements:
        x, y, w, h = figure.box
        inside = [extent(s) for s in figure.shapes if isinstance(s, Text)]
        for left, top, right, bottom in inside if figure.kind == "node" else ():
            assert left >= x - SLACK and right <= x + w + SLACK and top >= y - SLACK and bottom <= y + h + SLACK, figure
        assert not list(meeting(("", ink(s)) for s in figure.shapes if isinstance(s, Text))), figure
        for left, top, right, bottom in map(extent, figure.shapes):
            assert left >= -SLACK and top >= -SLACK and right <= scene.width + SLACK and bottom <= scene.height + SLACK


@pytest.mark.parametrize("direction", ["TB", "LR"])
@pytest.mark.parametrize("types", ["nodes", "edges"])
@pytest.mark.parametrize("made", [*SOURCES, *range(10)])
def test_programs_and_random_graphs(made, types, direction):
    check(
        view(program(made)) if isinstance(made, str) else random_view(made),
        DrawOptions(direction=direction, types=types),
    )


@pytest.mark.parametrize("fused", [False, True], ids=["plain", "fused"])
@pytest.mark.parametrize("name", SMALL)
def test_networks(name, fused):
    check(network(name, fused), DrawOptions())


@pytest.mark.parametrize("seed", range(6))
def test_arrows_end_outside_of_boxes(seed):
    """The head of an arrow is drawn above the box that it points at, not hidden behind it."""
    scene = draw(random_view(seed))
    places = dict(boxes(scene))
    for figure in scene.elements:
        if figure.kind == "edge" and len(figure.shapes) > 1 and figure.ends[1] in places:
            left, top, right, bottom = extent(figure.shapes[1])
            x0, y0, x1, y1 = places[figure.ends[1]]
            assert not (x0 < (left + right) / 2 < x1 and y0 < (top + bottom) / 2 < y1), figure.id


def test_cards_of_groups():
    made = network("resnet18", True)
    check(collapse(made, of_kind(made, "primitive")), DrawOptions())
