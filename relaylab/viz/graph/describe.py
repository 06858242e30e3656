"""Nodes, edges and groups in words: what tooltips, screen readers and detail panels say."""

from __future__ import annotations

from relaylab.viz.graph.view import Edge, Group, Node, View


def describe_node(node: Node) -> str:
    """All that is known of a node, a fact a line."""
    lines = [f"{node.kind}: {node.title}", *([node.text] if node.text else [])]
    lines += [f"let {name}" for name in node.names]
    lines += node.rows
    lines += [
        f"{o.name or o.position}: {' '.join(p for p in (o.text, o.type, o.detail) if p)}"
        for o in node.operands
        if o.text
    ]
    lines += [f"{a.name} = {a.value}" for a in node.attrs]
    lines += [f"{name}: {value:,.0f}" for name, value in node.cost]
    lines += [f"{key}: {value}" for key, value in (("type", node.type), ("from", node.span)) if value]
    if node.role:
        lines.append(f"{node.role}{': ' + node.note if node.note else ''}")
    return "\n".join(lines)


def describe_edge(edge: Edge, view: View) -> str:
    """Which value goes where."""
    source, target = (_title(name, view) for name in (edge.source, edge.target))
    port = f" ({edge.label})" if edge.label else f" ({edge.position})"
    return f"{source} to {target}{port}{', ' + edge.type if edge.type else ''}{', ' + edge.role if edge.role else ''}"


def _title(name: str, view: View) -> str:
    part = view.node_by_id.get(name) or view.group_by_id.get(name)
    return part.title if part else name


def describe_group(group: Group) -> str:
    """What the group is, a fact a line."""
    lines = [f"{group.kind}: {group.title}", *([group.detail] if group.detail else []), *group.rows]
    lines += [f"{a.name} = {a.value}" for a in group.attrs]
    lines += [f"{name}: {value:,.0f}" for name, value in group.cost]
    lines += [f"{key}: {value}" for key, value in (("type", group.type), ("from", group.span)) if value]
    if group.role:
        lines.append(f"{group.role}{': ' + group.note if group.note else ''}")
    return "\n".join(lines)
