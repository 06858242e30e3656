"""What there is to read about one node: type, attributes, cost, documentation, and previews of constant values."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from relaylab.ir import OPERATORS, Call, Constant, Expr, Function, Op
from relaylab.viz.graph import Group, Node
from relaylab.viz.tensors import pooled

BINS = 16


def node_facts(node: Node, expr: Expr | None) -> dict[str, Any]:
    """A node of a view as data for a detail panel."""
    return {
        "id": node.id, "title": node.title, "kind": node.kind, "operator": node.operator, "type": node.type, "text": node.text,
        "names": list(node.names), "span": node.span, "role": node.role, "note": node.note, "group": node.group,
        "rows": list(node.rows), "attrs": [[a.name, a.value, a.default] for a in node.attrs],
        "operands": [[o.name or str(o.position), o.text, o.type] for o in node.operands if o.text],
        "cost": [[name, value] for name, value in node.cost], "doc": documentation(node.operator), "values": _values(expr),
    }


def group_facts(group: Group) -> dict[str, Any]:
    """A group of a view as data for a detail panel."""
    return {
        "id": group.id, "title": group.title, "kind": group.kind, "type": group.type, "text": group.text, "span": group.span,
        "role": group.role, "note": group.note, "group": group.parent, "rows": [r for r in (group.detail, *group.rows) if r],
        "attrs": [[a.name, a.value, a.default] for a in group.attrs], "cost": [[n, v] for n, v in group.cost],
        "names": [], "operands": [], "operator": "", "doc": "", "values": [],
    }


def documentation(operator: str) -> str:
    """The documentation of an operator; empty for anything else."""
    found = OPERATORS.get(operator)
    return inspect.cleandoc(Op.get(operator).description) if found is not None else ""


def _values(expr: Expr | None) -> list[dict[str, Any]]:
    """Previews of the constants that a node is or reads."""
    if isinstance(expr, Constant):
        return [preview("value", expr)]
    if not isinstance(expr, Call) or isinstance(expr.op, Function):
        return []
    return [preview(f"operand {i}", a) for i, a in enumerate(expr.args) if isinstance(a, Constant)]


def preview(name: str, constant: Constant) -> dict[str, Any]:
    """Shape, statistics, first values and a histogram of a constant."""
    data = np.asarray(constant.data.numpy() if hasattr(constant.data, "numpy") else constant.data)
    flat = data.ravel()
    out: dict[str, Any] = {"name": name, "shape": list(data.shape), "dtype": str(data.dtype), "head": [f"{v:.4g}" for v in flat[:8].tolist()]}
    finite = flat[np.isfinite(flat)].astype("float64") if data.dtype.kind in "fiub" else flat[:0]
    if finite.size:
        counts, edges = np.histogram(finite, BINS)
        out |= {"min": float(finite.min()), "max": float(finite.max()), "mean": float(finite.mean()), "std": float(finite.std()),
                "grid": _signed(pooled(data)), "bins": counts.tolist(), "edges": [float(edges[0]), float(edges[-1])]}
    return out


def _signed(grid: np.ndarray) -> list[list[int]]:
    """Cells as whole numbers from -9 to 9, as shares of the largest magnitude; what is not finite is the largest."""
    known = np.nan_to_num(grid, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    finite = np.abs(known[np.isfinite(known)])
    most = float(finite.max(initial=0.0)) or 1.0
    return np.rint(np.clip(known / most, -1, 1) * 9).astype(int).tolist()
