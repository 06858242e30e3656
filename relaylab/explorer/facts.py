"""What there is to read about one node: type, attributes, cost, documentation, and previews of constant values."""

from __future__ import annotations

import inspect
from typing import NotRequired, TypedDict

import numpy as np

from relaylab.ir import OPERATORS, Call, Constant, Expr, Function, Op
from relaylab.viz.draw.tensors import pooled
from relaylab.viz.graph.view import Group, Node

BINS = 16
CHUNK = 1 << 20
"""Values that are looked at together; a histogram is of at most so many, evenly spread."""


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


class PartFacts(TypedDict):
    """What there is to read about a node or group: attributes as name, value, whether that is the default; operands as
    name, text and type, costs as name and number."""

    id: str
    title: str
    kind: str
    operator: str
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
    cost: list[tuple[str, float]]
    doc: str
    values: list[Preview]


Previews = dict[Constant, Preview]
"""What is known of constants; large ones take long to look through."""


def node_facts(node: Node, expr: Expr | None, known: Previews | None = None) -> PartFacts:
    """A node of a view as data for a detail panel."""
    return {
        "id": node.id,
        "title": node.title,
        "kind": node.kind,
        "operator": node.operator,
        "type": node.type,
        "text": node.text,
        "names": list(node.names),
        "span": node.span,
        "role": node.role,
        "note": node.note,
        "group": node.group,
        "rows": list(node.rows),
        "attrs": [(a.name, a.value, a.default) for a in node.attrs],
        "operands": [(o.name or str(o.position), o.text, o.type) for o in node.operands if o.text],
        "cost": list(node.cost),
        "doc": documentation(node.operator),
        "values": _values(expr, {} if known is None else known),
    }


def group_facts(group: Group) -> PartFacts:
    """A group of a view as data for a detail panel."""
    return {
        "id": group.id,
        "title": group.title,
        "kind": group.kind,
        "type": group.type,
        "text": group.text,
        "span": group.span,
        "role": group.role,
        "note": group.note,
        "group": group.parent,
        "rows": [r for r in (group.detail, *group.rows) if r],
        "attrs": [(a.name, a.value, a.default) for a in group.attrs],
        "cost": list(group.cost),
        "names": [],
        "operands": [],
        "operator": "",
        "doc": "",
        "values": [],
    }


def documentation(operator: str) -> str:
    """The documentation of an operator; empty for anything else."""
    found = OPERATORS.get(operator)
    return inspect.cleandoc(Op.get(operator).description) if found is not None else ""


def _values(expr: Expr | None, known: Previews) -> list[Preview]:
    """Previews of the constants that a node is or reads."""
    if isinstance(expr, Constant):
        found = [("value", expr)]
    elif isinstance(expr, Call) and not isinstance(expr.op, Function):
        found = [(f"operand {i}", a) for i, a in enumerate(expr.args) if isinstance(a, Constant)]
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
        "head": [f"{v:.4g}" for v in flat[:8].tolist()],
    }
    finite = flat[:0] if data.dtype.kind not in "fiub" else flat if (known := np.isfinite(flat)).all() else flat[known]
    return {**out, **_statistics(finite), "grid": _signed(pooled(data))} if finite.size else out


def _statistics(values: np.ndarray) -> Statistics:
    """Figures of a flat array; of a large one part by part, because copies of it would take longer than the figures."""
    low, high, mean = float(values.min()), float(values.max()), float(values.mean(dtype="float64"))
    parts = (values[k : k + CHUNK].astype("float64") - mean for k in range(0, values.size, CHUNK))
    deviation = (sum(float(np.dot(p, p)) for p in parts) / values.size) ** 0.5
    counts, edges = np.histogram(values[:: 1 + (values.size - 1) // CHUNK].astype("float64"), BINS, (low, high))
    return {
        "min": low,
        "max": high,
        "mean": mean,
        "std": deviation,
        "bins": counts.tolist(),
        "edges": [float(edges[0]), float(edges[-1])],
    }


def _signed(grid: np.ndarray) -> list[list[int]]:
    """Cells as whole numbers from -9 to 9, as shares of the largest magnitude; what is not finite is the largest."""
    known = np.nan_to_num(grid, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    finite = np.abs(known[np.isfinite(known)])
    most = float(finite.max(initial=0.0)) or 1.0
    return np.rint(np.clip(known / most, -1, 1) * 9).astype(int).tolist()
