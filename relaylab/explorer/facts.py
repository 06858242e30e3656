"""What there is to read about one node: type, attributes, cost, documentation, and previews of constant values."""

from __future__ import annotations

import inspect
import textwrap
from functools import cache
from typing import NotRequired, TypedDict

import numpy as np

from relaylab.ir import OPERATORS, Call, Constant, Expr, Function, Op
from relaylab.viz.draw.tensors import pooled
from relaylab.viz.graph.figure import Part, figures_of
from relaylab.viz.graph.view import Node, View

BINS = 16
CHUNK = 1 << 13
"""Values that are looked at together: as float64 they stay in the first caches."""
COUNTED = 1 << 16
"""Values that a histogram is of at most, evenly spread."""
VAST = 1e150
"""Magnitudes from which squares are no float64."""


class Statistics(TypedDict):
    """Figures of the finite numbers of a constant, and a histogram of them: counts, and where it begins and ends."""

    min: float
    max: float
    mean: float
    std: float
    bins: list[int]
    edges: list[float]


class Preview(TypedDict):
    """What is known of a constant; the statistics of one that has no finite number are left out."""

    name: NotRequired[str]
    shape: list[int]
    dtype: str
    head: list[str]
    min: NotRequired[float]
    max: NotRequired[float]
    mean: NotRequired[float]
    std: NotRequired[float]
    bins: NotRequired[list[int]]
    edges: NotRequired[list[float]]
    grid: NotRequired[list[list[int]]]


class PartWords(TypedDict):
    """What queries look at in a node or group: attributes as name, value, whether that is the default; operands as
    name, text and type; figures by the names that queries know."""

    id: str
    title: str
    kind: str
    operator: str
    family: str
    type: str
    text: str
    names: list[str]
    span: str
    role: str
    note: str
    group: str
    rows: list[str]
    attrs: list[tuple[str, str, bool]]
    operands: list[tuple[str, str, str]]
    figures: dict[str, float]


class PartFacts(PartWords):
    """What there is to read about a node or group; costs as name and number, what an operator means as numpy code."""

    cost: list[tuple[str, float]]
    doc: str
    reference: str
    values: list[Preview]


Previews = dict[Constant, Preview]
"""What is known of constants; large ones take long to look through."""


def part_words(view: View, part: Part) -> PartWords:
    """A node or group as queries see it."""
    node = part if isinstance(part, Node) else None
    return {
        "id": part.id,
        "title": part.title,
        "kind": part.kind,
        "operator": node.operator if node else "",
        "family": node.family if node else "",
        "type": part.type,
        "text": part.text,
        "names": list(node.names) if node else [],
        "span": part.span,
        "role": part.role,
        "note": part.note,
        "group": part.group if isinstance(part, Node) else part.parent,
        "rows": [r for r in (*([] if isinstance(part, Node) else [part.detail]), *part.rows) if r],
        "attrs": [(a.name, a.value, a.default) for a in part.attrs],
        "operands": [(o.name or str(o.position), o.text, o.type) for o in node.operands if o.text] if node else [],
        "figures": figures_of(view, part),
    }


def part_facts(view: View, part: Part, expr: Expr | None = None, known: Previews | None = None) -> PartFacts:
    """A node or group as data for a detail panel."""
    operator = part.operator if isinstance(part, Node) else ""
    values = _values(part, expr, {} if known is None else known) if isinstance(part, Node) else []
    return {
        **part_words(view, part),
        "cost": list(part.cost),
        "doc": documentation(operator),
        "reference": reference(operator),
        "values": values,
    }


def documentation(operator: str) -> str:
    """The documentation of an operator; empty for anything else."""
    found = OPERATORS.get(operator)
    return _cleaned(Op.get(operator).description) if found is not None else ""


def summary(operator: str) -> str:
    """The first paragraph about an operator."""
    return _first_paragraph(documentation(operator))


_cleaned = cache(inspect.cleandoc)  # every node of a picture asks, and there are few operators


@cache
def _first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


@cache
def reference(operator: str) -> str:
    """What an operator means, as the numpy code of its class; empty for what has none, or no file."""
    found = OPERATORS.get(operator)
    definition = getattr(found, "definition", None)
    try:
        return textwrap.dedent(inspect.getsource(definition.reference)).rstrip() if definition is not None else ""
    except (OSError, TypeError, AttributeError):
        return ""


def _values(node: Node, expr: Expr | None, known: Previews) -> list[Preview]:
    """Previews of the constants that a node is or reads, under the names of operand and constant."""
    rows = {o.position: f"{o.name or f'operand {o.position}'} {o.text}" for o in node.operands}
    if isinstance(expr, Constant):
        found = [(node.title, expr)]
    elif isinstance(expr, Call) and not isinstance(expr.op, Function):
        found = [(rows.get(i, f"operand {i}"), a) for i, a in enumerate(expr.args) if isinstance(a, Constant)]
    else:
        found = []
    known.update((constant, preview(constant)) for _, constant in found if constant not in known)
    return [{**known[constant], "name": name} for name, constant in found]


def preview(constant: Constant) -> Preview:
    """Shape, statistics, first values and a histogram of a constant."""
    data = np.asarray(constant.data.numpy() if hasattr(constant.data, "numpy") else constant.data)
    flat = data.ravel()
    out: Preview = {
        "shape": list(data.shape),
        "dtype": str(data.dtype),
        "head": [f"{v:.4g}" for v in data.flat[:8].tolist()],
    }
    finite = _finite(flat if data.dtype.kind in "fiub" else flat.astype("float32"))  # a bfloat16
    return {**out, **_statistics(finite), "grid": _signed(pooled(data))} if finite.size else out


def _finite(flat: np.ndarray) -> np.ndarray:
    """The finite numbers of a flat array: itself if its ends are finite."""
    if flat.size and np.isfinite(flat.min()) and np.isfinite(flat.max()):
        return flat
    return flat[np.isfinite(flat)]


def _statistics(values: np.ndarray) -> Statistics:
    """Figures of a flat array, part by part: a copy of a large one would take longer than the figures."""
    low, high = float(values.min()), float(values.max())
    if (most := max(-low, high)) > VAST:
        found = _statistics(values / most)
        edges = [float(np.nan_to_num(edge * most)) for edge in found["edges"]]
        return {
            **found, "min": low, "max": high, "mean": found["mean"] * most, "std": found["std"] * most, "edges": edges
        }  # fmt: skip
    mean = float(values.mean(dtype="float64"))
    parts = (values[k : k + CHUNK].astype("float64") - mean for k in range(0, values.size, CHUNK))
    deviation = (sum(float(np.dot(p, p)) for p in parts) / values.size) ** 0.5
    margin = max(0.5, most * 1e-6) if (high - low) / BINS <= 2 * np.spacing(most) else 0.0  # no bins between neighbours
    edges = low - margin, high + margin
    counts, _ = np.histogram(values[:: 1 + (values.size - 1) // COUNTED].astype("float64"), BINS, edges)
    return {"min": low, "max": high, "mean": mean, "std": deviation, "bins": counts.tolist(), "edges": list(edges)}


def _signed(grid: np.ndarray) -> list[list[int]]:
    """Cells as whole numbers from -9 to 9, as shares of the largest magnitude; what is not finite is the largest."""
    known = np.nan_to_num(grid, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    finite = np.abs(known[np.isfinite(known)])
    most = float(finite.max(initial=0.0)) or 1.0
    return np.rint(np.clip(known / most, -1, 1) * 9).astype(int).tolist()
