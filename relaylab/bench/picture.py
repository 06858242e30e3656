"""The results as a picture: for every row a bar per peer, how many times faster than it we are; marks are the goals."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.bench.measure import Result
from relaylab.bench.peers import PEERS
from relaylab.viz.scene.scene import Element, Path, Rect, Scene, Shape, Text
from relaylab.viz.write.svg import svg

LABELS, WIDTH, BAR, GAP, TOP = 110.0, 420.0, 9.0, 8.0, 46.0
LARGEST = 6.0
COLORS = {"onnxruntime": "#0072b2", "openvino": "#e69f00", "torch": "#cc79a7"}


def picture(results: Sequence[Result]) -> str:
    """The picture as SVG text."""
    peers = [name for name in PEERS if any(name in r.ms for r in results)]
    step = BAR * len(peers) + GAP
    figures = [_row(r, peers, TOP + k * step) for k, r in enumerate(results)]
    height = TOP + step * len(results) + 10
    scene = Scene(
        LABELS + WIDTH + 60, height, (_frame(peers, height), *figures), "How many times faster than each engine"
    )
    return svg(scene)


def _x(ratio: float) -> float:
    return LABELS + WIDTH * min(ratio, LARGEST) / LARGEST


def _line(x: float, top: float, bottom: float, color: str, width: float) -> Path:
    return Path((("M", x, top), ("L", x, bottom)), (f"stroke:{color}", f"width:{width}", "fill:none"))


def _frame(peers: Sequence[str], height: float) -> Element:
    shapes: list[Shape] = [Text(LABELS, 14, "Times faster, float32, batch 1 (longer is better)", 10, "bold")]
    for k, name in enumerate(peers):
        shapes.append(Rect(LABELS + 110 * k, 20, 8, 8, 1, (f"fill:{COLORS[name]}",)))
        shapes.append(Text(LABELS + 110 * k + 12, 27, name, 8))
    for ratio in range(int(LARGEST) + 1):
        shapes.append(_line(_x(ratio), TOP - 4, height - 8, "#8b98ab", 1.0 if ratio == 1 else 0.3))
        shapes.append(Text(_x(ratio), TOP - 7, f"{ratio}x", 7, anchor="middle"))
    return Element("frame", "note", tuple(shapes))


def _row(r: Result, peers: Sequence[str], y: float) -> Element:
    name = f"{r.row}, {r.threads} thread{'s' if r.threads > 1 else ''}"
    shapes: list[Shape] = [Text(LABELS - 6, y + BAR * len(peers) / 2 + 3, name, 8, anchor="end")]
    for k, (peer, ratio) in enumerate((p, r.ratios[p]) for p in peers if p in r.ratios):
        top = y + k * BAR
        shapes.append(Rect(LABELS, top, _x(ratio) - LABELS, BAR - 1, 1, (f"fill:{COLORS[peer]}",)))
        shapes.append(Text(_x(ratio) + 4, top + BAR - 2, f"{ratio:.2f}", 7))
    if r.goal:
        shapes.append(_line(_x(r.goal), y - 1, y + BAR, "#b34700", 1.6))
    words = "; ".join(f"{ratio:.2f} times faster than {peer}" for peer, ratio in r.ratios.items())
    return Element(name, "note", tuple(shapes), f"{name}: {words}")
