"""Scene to SVG: deterministic text, CSS classes with a dark theme, a title and a description on every element."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from relaylab.viz.scene.metrics import plain, text_width
from relaylab.viz.scene.scene import Element, Path, Rect, Scene, Shape, Text, rounded
from relaylab.viz.scene.theme import FONT, MONO, css

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
_SPECIAL = re.compile("[&<>\"']")
_LETTERS = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+"  # of Hebrew, Arabic and their kin
_RIGHT_TO_LEFT = re.compile(f"{_LETTERS}(?: {_LETTERS})*")
_OWN = {"fill": "fill", "stroke": "stroke", "width": "stroke-width", "dash": "stroke-dasharray"}
FACES = {"regular": "", "bold": " b", "mono": " m"}


def escape(text: str) -> str:
    """`text` safe inside SVG elements and attributes; what XML cannot hold becomes a blank or a question mark."""
    text = plain(text)
    return text.translate(_ESCAPES) if _SPECIAL.search(text) else text


def in_order(text: str) -> str:
    """`text` with a mark after Hebrew and Arabic words: numbers behind them would be turned round, 2×3 into 3×2."""
    return text if text.isascii() else _RIGHT_TO_LEFT.sub("\\g<0>\u200e", text)


def svg(scene: Scene, *, scale: float = 1.0) -> str:
    """The scene as a stand-alone SVG document; `scale` sets the natural size, not the coordinates."""
    title = scene.title or "graph"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="relaylab" role="img" aria-label="{escape(title)}" '
        f'width="{_n(scene.width * scale)}" height="{_n(scene.height * scale)}" '
        f'viewBox="0 0 {_n(scene.width)} {_n(scene.height)}">'
    )
    page = f'<rect class="page" width="{_n(scene.width)}" height="{_n(scene.height)}"/>'
    body = "\n".join(_element(f) for f in scene.elements)
    return f"{head}\n<title>{escape(title)}</title>\n<style>{sheet()}</style>\n{page}\n{body}\n</svg>\n"


def sheet() -> str:
    """The style sheet: light, and dark where the reader's system asks for it."""
    base = f"text{{font-family:{FONT}}}.b{{font-weight:bold}}.m{{font-family:{MONO}}}"
    return f"{base}{css()}@media(prefers-color-scheme:dark){{{css(dark=True)}}}"


def _element(element: Element) -> str:
    ends = (
        f' data-source="{escape(element.ends[0])}" data-target="{escape(element.ends[1])}"' if element.ends[0] else ""
    )
    role = f' data-role="{element.role}"' if element.role else ""
    words = f"<title>{escape(element.label)}</title>" if element.label else ""
    if element.detail:
        words += f"<desc>{_lines(element.detail)}</desc>"
    body = "".join(_shape(s) for s in element.shapes)
    return f'<g class="{element.kind}" data-id="{escape(element.id)}"{ends}{role}>{words}{body}</g>'


def _lines(text: str) -> str:
    return "\n".join(escape(line) for line in text.split("\n"))


def _shape(shape: Shape) -> str:
    if isinstance(shape, Text):
        return _text(shape)
    style = style_attributes(shape.styles)
    if isinstance(shape, Path):
        return f'<path {style} d="{path_data(shape.commands)}"/>'
    return _rect(shape, style)


@lru_cache(1024)  # a few, on thousands of shapes
def style_attributes(styles: tuple[str, ...]) -> str:
    """The `class` of a shape, and its `style` where the user asked for colours of their own."""
    own = own_style(styles)
    names = " ".join(s for s in styles if ":" not in s)
    return f'class="{names}" style="{own}"' if own else f'class="{names}"'


def own_style(styles: tuple[str, ...]) -> str:
    """The user's own styles as CSS."""
    return ";".join(f"{_OWN[name]}:{value}" for name, value in (s.split(":", 1) for s in styles if ":" in s))


def _rect(rect: Rect, style: str) -> str:
    if rect.top_only:
        return f'<path {style} d="{path_data(rounded(rect))}"/>'
    radius = f' rx="{_n(rect.radius)}"' if rect.radius else ""
    return (
        f'<rect {style} x="{_n(rect.x)}" y="{_n(rect.y)}" width="{_n(rect.width)}" height="{_n(rect.height)}"{radius}/>'
    )


def _text(text: Text) -> str:
    anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
    width = text_width(text.text, text.size, text.face)
    fitted = f' textLength="{_n(width)}" lengthAdjust="spacingAndGlyphs"' if width > 60 else ""
    return (
        f'<text class="{" ".join(text.styles)}{FACES[text.face]}" x="{_n(text.x)}" y="{_n(text.y)}" '
        f'font-size="{_n(text.size)}"{anchor}{fitted} xml:space="preserve">{escape(in_order(text.text))}</text>'
    )


def path_data(commands: Iterable[tuple]) -> str:
    """Path commands as the `d` attribute."""
    text = "".join([c[0] + " ".join([f"{v:.1f}" for v in c[1:]]) for c in commands])
    return text.replace("-0.0", "0").replace(".0", "")  # as `_n` does it, for all numbers at once


def _n(value: float) -> str:
    """A coordinate with at most one decimal, the same on every machine."""
    text = f"{value:.1f}"
    text = text[:-2] if text.endswith(".0") else text
    return "0" if text == "-0" else text
