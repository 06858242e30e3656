"""Scenes to HTML: one self-contained interactive page, and the bundle that a notebook cell shows.

No text of a program is ever markup here: the page carries its data compressed in base64 and builds text
nodes from it; a notebook gets the picture as an image, which a script, where scripts may run, brings to life.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TypedDict

from relaylab.viz.scene.metrics import plain
from relaylab.viz.scene.scene import Element, Rect, Scene, Shape, Text, rounded
from relaylab.viz.write.modules import script
from relaylab.viz.write.svg import FACES, escape, in_order, own_style, path_data, sheet, svg

STATIC = Path(__file__).parents[1] / "static"
LEGIBLE = 1.2
"""How large a notebook shows a picture: its smallest words have nine points of the screen (in `hydrate.js` too)."""


@cache
def asset(name: str) -> str:
    """The text of a file of `static/`."""
    return (STATIC / name).read_text(encoding="utf-8")


def page_data(scenes: Sequence[Scene], title: str) -> dict:
    """The data of a page: plain lists and dictionaries, as `static/graph.js` reads them."""
    return {"title": title, "pages": [scene_data(s) for s in scenes]}


ShapeData = list[str | float]
"""A shape: its kind (t, r or p), its place, its text or path, its styles."""


class ElementData(TypedDict):
    """The shapes of one node, edge or group, as plain data."""

    id: str
    kind: str
    label: str
    detail: str
    role: str
    source: str
    target: str
    box: tuple[float, float, float, float]
    shapes: list[ShapeData]


class SceneData(TypedDict):
    """A picture as plain data, as `static/graph.js` reads it."""

    title: str
    width: float
    height: float
    figures: list[ElementData]


def scene_data(scene: Scene) -> SceneData:
    """One picture as plain data."""
    return {
        "title": scene.title,
        "width": scene.width,
        "height": scene.height,
        "figures": [element_data(f) for f in scene.elements],
    }


def element_data(element: Element) -> ElementData:
    """One element as plain data."""
    return {
        "id": element.id,
        "kind": element.kind,
        "label": element.label,
        "detail": element.detail,
        "role": element.role,
        "source": element.ends[0],
        "target": element.ends[1],
        "box": element.box,
        "shapes": [shape_data(s) for s in element.shapes],
    }


def shape_data(shape: Shape, dx: float = 0.0, dy: float = 0.0) -> ShapeData:
    """One shape as plain data, moved: its kind, its place, its styles."""
    if isinstance(shape, Text):
        names = " ".join(shape.styles) + FACES[shape.face]
        return [
            "t",
            round(shape.x + dx, 1),
            round(shape.y + dy, 1),
            in_order(plain(shape.text)),
            shape.size,
            shape.anchor,
            names,
        ]
    styles = _styles(shape.styles)
    if isinstance(shape, Rect) and not shape.top_only:
        return [
            "r",
            *(round(v, 1) for v in (shape.x + dx, shape.y + dy, shape.width, shape.height)),
            shape.radius,
            *styles,
        ]
    commands = rounded(shape) if isinstance(shape, Rect) else shape.commands
    return ["p", path_data(shifted(commands, dx, dy) if dx or dy else commands), *styles]


@lru_cache(maxsize=4096)  # a picture has thousands of shapes and a few dozen styles
def _styles(styles: tuple[str, ...]) -> tuple[str, str]:
    """Classes, and what is said in a `style` attribute."""
    return " ".join(s for s in styles if ":" not in s), own_style(styles)


def shifted(commands: Iterable[tuple], dx: float, dy: float) -> tuple[tuple, ...]:
    """The commands of a path, moved."""
    return tuple((c[0], *(v + (dy if i % 2 else dx) for i, v in enumerate(c[1:]))) for c in commands)


def page(scenes: Sequence[Scene], title: str = "relaylab") -> str:
    """A whole page that needs nothing else: pan, zoom, search, select, read; one entry of its list for each scene."""
    data = json.dumps(page_data(scenes, title), separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
    still = base64.b64encode(svg(scenes[0]).encode()).decode() if scenes else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{sheet()}\n{asset('page.css')}</style>\n</head>\n<body>\n"
        f'<div id="relaylab"></div>\n'
        f'<noscript><img alt="{escape(title)}" src="data:image/svg+xml;base64,{still}"></noscript>\n'
        f'<script type="text/plain" id="relaylab-data">{packed}</script>\n'
        f'<script type="module">\n{script(STATIC / "page.js")}</script>\n</body>\n</html>\n'
    )


def bundle(scene: Scene, plain: str) -> dict[str, str]:
    """What a notebook cell shows: HTML with the picture as an image and a script that hydrates it, SVG, and text.

    The image survives saving, untrusted notebooks and conversion; nothing refers to a kernel or the network.
    """
    picture = svg(scene, scale=LEGIBLE)
    name = "relaylab-" + sha256(picture.encode()).hexdigest()[:12]
    image = base64.b64encode(picture.encode()).decode()
    html = (
        f'<div id="{name}" class="relaylab-viz"><img alt="{escape(scene.title or "computation graph")}" '
        f'style="max-width:100%" src="data:image/svg+xml;base64,{image}">'
        f'<script>({script(STATIC / "hydrate.js")})("{name}");</script></div>'
    )
    return {"text/html": html, "image/svg+xml": picture, "text/plain": plain}
