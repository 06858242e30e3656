"""Colours, lines and fonts of the pictures, in one table for all writers, light and dark.

A shape names its styles ("box", "family-reduce", "role-added"); later ones override earlier ones, field
by field, as CSS classes do. The five diff roles use the colours of Okabe and Ito (safe for colour-blind
readers) and differ in dash and icon too, so that a greyscale print still tells them apart.

Choices: docs/choices.md, Pictures.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache, reduce

from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
MONO = "Courier, 'Courier New', 'Liberation Mono', monospace"

TITLE, BODY, SMALL = 10.0, 8.5, 7.5
LINE = 1.25
"""Line height in multiples of the font size."""


@dataclass(frozen=True, slots=True)
class Paint:
    """How a shape is painted; None leaves the field to an earlier style. Colours are `#rrggbb` or `none`."""

    fill: str | None = None
    stroke: str | None = None
    width: float | None = None
    dash: str | None = None


_TEXT = {
    "title": ("#1a202c", "#f1f5f9"),
    "plain": ("#2d3748", "#dbe3ee"),
    "dim": ("#5a6578", "#a3b0c2"),
    "type": ("#2b5a8c", "#93c5fd"),
}

FAMILIES = {
    "elementwise": ("#d9efdc", "#2d4a35"),
    "broadcast": ("#e3f0c8", "#404a22"),
    "injective": ("#e7e9ee", "#3a4150"),
    "reduce": ("#fbe3cd", "#5a3d24"),
    "fusable": ("#d3e3f8", "#27405f"),
    "opaque": ("#eadcf3", "#463056"),
    "call": ("#fdf3c4", "#4e4620"),
    "value": ("#f3f4f6", "#2f3644"),
    "input": ("#fff7dc", "#4a4426"),
    "control": ("#fbd9df", "#57303a"),
    "reference": ("#f6d6ef", "#52304c"),
    "function": ("#ffffff", "#1e2430"),
}
"""Fill of a node's head by family, light and dark."""

_GROUPS = {
    "function": ("#f8fafc", "#1b2230", "#94a3b8"),
    "primitive": ("#eef4fc", "#1d2a3c", "#5b8bc4"),
    "branch": ("#fdf2f4", "#2b1e23", "#c9808f"),
    "clause": ("#fdf2f4", "#2b1e23", "#c9808f"),
    "let": ("#f7f7ee", "#26261b", "#a8a47a"),
    "block": ("#f8fafc", "#1b2230", "#94a3b8"),
    "equal": ("#f8fafc", "#1b2230", "#94a3b8"),
}
_DASHED_GROUPS = {"let": "4 2", "equal": "1.5 3"}

HEAT = (
    ("#fff3d6", "#33291a"),
    ("#fee2a8", "#4a3517"),
    ("#fdc877", "#664114"),
    ("#fba94f", "#854a12"),
    ("#f5853a", "#a85212"),
)
"""Fill of an overlay's steps, small to large, light and dark; text stays readable on all of them."""

_ROLES = {
    "added": ("#0072b2", "#56b4e9", 2.4, ""),
    "removed": ("#b34700", "#ff9a56", 1.8, "5 3"),
    "changed": ("#a3427c", "#e79bc8", 2.0, "9 2"),
    "moved": ("#4d3800", "#ffe08a", 1.6, "1.5 2"),
    "merged": ("#00664b", "#2fd0a4", 2.2, "9 2 2 2"),
}
ROLE_ICONS = {"added": "+", "removed": "–", "changed": "±", "moved": "»", "merged": "&"}


def _table(dark: int) -> dict[str, Paint]:
    """All styles, light (0) or dark (1), in the order of their precedence."""
    line = ("#4a5568", "#8b98ab")[dark]
    table = {"page": Paint(("#ffffff", "#11151c")[dark], "none", 0.0, "")}
    for kind, (light, night, border) in _GROUPS.items():
        table[f"group-{kind}"] = Paint((light, night)[dark], border, 1.0, _DASHED_GROUPS.get(kind, ""))
    table["box"] = Paint(("#ffffff", "#1a202b")[dark], line, 1.0, "")
    table["stretch"] = Paint(width=1.6, dash="1.5 3")
    table |= {f"family-{name}": Paint(fill=pair[dark]) for name, pair in FAMILIES.items()}
    table |= {f"heat-{step}": Paint(fill=pair[dark]) for step, pair in enumerate(HEAT)}
    table["plate"] = Paint(stroke="none", width=0.0)
    table["rule"] = Paint("none", ("#d6dce5", "#3a4456")[dark], 0.6, "")
    table["wire"] = Paint("none", ("#64748b", "#8291a7")[dark], 1.1, "")
    table["wire-callee"] = Paint(stroke=("#8a6d1a", "#d9b84a")[dark], dash="4 3")
    table["wire-far"] = Paint(stroke=("#dccb94", "#5f5530")[dark], width=0.8, dash="4 3")
    table["wire-recursion"] = Paint(stroke=("#8a6d1a", "#d9b84a")[dark], dash="2 2")
    table["wire-order"] = Paint(stroke=("#94a3b8", "#5d6b80")[dark], dash="1 3")
    table["wire-body"] = Paint(stroke=("#94a3b8", "#5d6b80")[dark])
    table["tip"] = Paint(("#64748b", "#8291a7")[dark], "none", 0.0, "")
    table["ring"] = Paint(fill="none")
    for role, (light, night, width, dash) in _ROLES.items():
        color = (light, night)[dark]
        table[f"role-{role}"] = Paint(stroke=color, width=width, dash=dash)
        table[f"tip-{role}"] = Paint(fill=color)
        table[f"text-role-{role}"] = Paint(fill=color)
    return table | {f"text-{name}": Paint(fill=pair[dark]) for name, pair in _TEXT.items()}


NAMES = {
    "black": "#000000",
    "white": "#ffffff",
    "red": "#ff0000",
    "green": "#00ff00",
    "blue": "#0000ff",
    "yellow": "#ffff00",
    "cyan": "#00ffff",
    "magenta": "#ff00ff",
    "gray": "#c0c0c0",
    "grey": "#c0c0c0",
    "lightgray": "#d3d3d3",
    "lightgrey": "#d3d3d3",
    "darkgray": "#a9a9a9",
    "orange": "#ffa500",
    "purple": "#a020f0",
    "pink": "#ffc0cb",
    "brown": "#a52a2a",
    "gold": "#ffd700",
    "lightblue": "#add8e6",
    "skyblue": "#87ceeb",
    "steelblue": "#4682b4",
    "navy": "#000080",
    "darkblue": "#00008b",
    "lightgreen": "#90ee90",
    "darkgreen": "#006400",
    "palegreen": "#98fb98",
    "olive": "#808000",
    "teal": "#008080",
    "salmon": "#fa8072",
    "tomato": "#ff6347",
    "coral": "#ff7f50",
    "crimson": "#dc143c",
    "maroon": "#b03060",
    "darkred": "#8b0000",
    "lightyellow": "#ffffe0",
    "khaki": "#f0e68c",
    "beige": "#f5f5dc",
    "ivory": "#fffff0",
    "violet": "#ee82ee",
    "orchid": "#da70d6",
    "plum": "#dda0dd",
    "lavender": "#e6e6fa",
    "indigo": "#4b0082",
    "turquoise": "#40e0d0",
    "aquamarine": "#7fffd4",
}
"""The colour names of Graphviz that the built-in engine knows."""


def paint_of(attributes: Mapping[str, str]) -> tuple[str, ...]:
    """The styles for Graphviz's node attributes color, fillcolor, penwidth and style; the others do not concern us."""
    style = str(attributes.get("style", ""))
    fill = attributes.get("fillcolor") or ("color" in attributes and "filled" in style and attributes["color"])
    parts = [f"fill:{_color(fill)}"] if fill and "filled" in style else []
    parts += [f"stroke:{_color(attributes['color'])}"] if attributes.get("color") else []
    parts += [f"width:{_width(attributes['penwidth'])}"] if attributes.get("penwidth") else []
    parts += [f"dash:{dash}" for name, dash in (("dashed", "5 3"), ("dotted", "1.5 2")) if name in style]
    return tuple(parts)


def _width(text: object) -> str:
    if re.fullmatch(r"\d+(\.\d+)?", str(text)):
        return f"{float(str(text)):g}"
    raise RelayValueError(f"`penwidth` is a number of points, not {text!r}", code="viz.option")


def _color(name: str) -> str:
    """A colour as `#rrggbb`; raises `RelayValueError` for one that only Graphviz knows."""
    value = NAMES.get(name.lower(), name)
    if re.fullmatch("#[0-9a-fA-F]{6}", value):
        return value.lower()
    raise RelayValueError(
        f"the built-in engine does not know the colour `{name}`",
        code="viz.color",
        help=did_you_mean(name.lower(), NAMES)
        or 'write it as "#rrggbb", or let Graphviz draw: render_kwargs={"engine": "dot"}',
    )


LIGHT, DARK = _table(0), _table(1)


@lru_cache(maxsize=4096)
def resolve(styles: tuple[str, ...], dark: bool = False) -> Paint:
    """The paint of a shape with these styles."""
    table = DARK if dark else LIGHT
    paints = [table[s] for s in sorted((s for s in styles if s in table), key=list(table).index)]
    paints += [_literal(s) for s in styles if ":" in s]
    return reduce(_over, paints, Paint())


def _over(under: Paint, paint: Paint) -> Paint:
    """One paint over another: what it does not say stays."""
    return replace(under, **{f.name: v for f in fields(Paint) if (v := getattr(paint, f.name)) is not None})


def _literal(style: str) -> Paint:
    """The paint of a style of the user's own, such as `fill:#ff0000` or `width:2`."""
    name, value = style.split(":", 1)
    return Paint(width=float(value)) if name == "width" else replace(Paint(), **{name: value})


def css(dark: bool = False) -> str:
    """The rules for one theme: one class a style."""
    names = {"fill": "fill", "stroke": "stroke", "width": "stroke-width", "dash": "stroke-dasharray"}
    rules = []
    for style, paint in (DARK if dark else LIGHT).items():
        pairs = [(names[f.name], getattr(paint, f.name)) for f in fields(Paint)]
        body = ";".join(f"{k}:{_value(k, v)}" for k, v in pairs if v is not None)
        rules.append(f".{style}{{{body}}}")
    return "".join(rules)


def _value(name: str, value: str | float) -> str:
    if name == "stroke-dasharray":
        return str(value) or "none"
    return value if isinstance(value, str) else f"{value:g}"
