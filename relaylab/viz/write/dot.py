"""A view as Dot text (through the package `graphviz`), and pictures by the program `dot` for those who ask for it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping

from relaylab.support.errors import RelayError
from relaylab.viz.draw.card import card, short_type
from relaylab.viz.draw.draw import TYPE_WIDTH, typed_edges
from relaylab.viz.graph.view import Edge, Group, Node, View
from relaylab.viz.scene.metrics import plain
from relaylab.viz.scene.theme import ROLE_ICONS, resolve

TIMEOUT = 60.0
"""Seconds that `dot` may take."""


def dot_text(
    view: View,
    *,
    direction: str = "TB",
    types: str = "nodes",
    attrs: str = "changed",
    graph_attr: Mapping[str, str] | None = None,
) -> str:
    """The view in the Dot language: groups are clusters, labels carry the same lines as the built-in pictures."""
    import graphviz

    root = graphviz.Digraph(
        graph_attr={
            "rankdir": direction,
            "label": label(view.title),
            "labelloc": "t",
            "fontname": "Helvetica",
            "compound": "true",
            **(graph_attr or {}),
        },
        node_attr={"fontname": "Helvetica", "fontsize": "10", "shape": "box", "style": "filled,rounded"},
        edge_attr={"fontname": "Helvetica", "fontsize": "8"},
    )
    inside: dict[str, list] = {}
    for part in (*view.groups, *view.nodes):
        inside.setdefault(part.parent if isinstance(part, Group) else part.group, []).append(part)
    _fill(root, inside, types, attrs)
    typed = typed_edges(view, types)
    for edge in view.edges:
        _edge(root, edge, view, short_type(edge.type, TYPE_WIDTH) if edge.id in typed else "")
    return root.source


def _fill(root, inside: dict[str, list], types: str, attrs: str) -> None:
    """Open and close clusters in nesting order, as lines of the body (no recursion)."""
    stack: list[tuple[str, object]] = [("open", "")]
    while stack:
        action, part = stack.pop()
        if action == "close":
            root.body.append("}\n")
            continue
        if isinstance(part, Group):
            root.body += [f'subgraph "cluster_{_quote(part.id)}" {{\n', _group_attrs(part)]
            stack.append(("close", part))
        if isinstance(part, Node):
            _node(root, part, types, attrs)
        else:
            name = part.id if isinstance(part, Group) else ""
            stack.extend(("open", child) for child in reversed(inside.get(name, [])))


def _group_attrs(group: Group) -> str:
    paint = resolve((f"group-{group.kind}",) + ((f"role-{group.role}",) if group.role else ()))
    icon = f"{ROLE_ICONS[group.role]} " if group.role else ""
    return (
        f'label="{_quote(icon + group.title)}" style="filled,rounded" fillcolor="{paint.fill}" color="{paint.stroke}"\n'
    )


def _quote(text: str) -> str:
    return _escape(text).replace('"', '\\"')


def _escape(text: str) -> str:
    """Backslashes doubled, ampersands as entities: Dot would read both as escapes."""
    return plain(text).replace("\\", "\\\\").replace("&", "&amp;")


def _node(root, node: Node, types: str, attrs: str) -> None:
    shown = card(node, types, attrs)
    lines = [shown.title, *(f"{line.name} {line.text}".strip() for line in shown.lines)]
    paint = resolve(("box", f"family-{node.family or 'value'}") + ((f"role-{node.role}",) if node.role else ()))
    style = {"color": paint.stroke or "black", "fillcolor": paint.fill or "white"}
    if node.role:
        style |= {"penwidth": f"{paint.width:g}", "style": "filled,rounded,dashed" if paint.dash else "filled,rounded"}
    root.node(node_name(node.id), label=label(*lines), **style)


def label(*lines: str) -> str:
    """Lines as a label: text, also where Dot would take `<...>` for markup."""
    from graphviz import nohtml

    return nohtml("\\n".join(map(_escape, lines)))


def node_name(identity: str) -> str:
    """An id that Dot cannot take for `node:port`, and the package not for markup."""
    return re.sub("^<", "‹", plain(identity)).replace("\\", "/").replace(":", "∶")


def _edge(root, edge: Edge, view: View, type_: str) -> None:
    style = {"callee": "dashed", "recursion": "dashed", "order": "dotted"}.get(edge.kind, "solid")
    ends = [(_anchor(name, view), name if name in view.group_by_id else "") for name in (edge.source, edge.target)]
    more = {"ltail": f"cluster_{_escape(ends[0][1])}"} if ends[0][1] else {}
    more |= {"lhead": f"cluster_{_escape(ends[1][1])}"} if ends[1][1] else {}
    more |= {"constraint": "false"} if edge.kind in ("callee", "recursion") else {}
    if edge.role:
        paint = resolve(("wire", f"role-{edge.role}"))
        more |= {"color": paint.stroke or "black", "penwidth": f"{paint.width:g}"}
        style = "dashed" if paint.dash else style
    words = label(*filter(None, (edge.label, type_)))
    root.edge(node_name(ends[0][0]), node_name(ends[1][0]), label=words, style=style, **more)


def _anchor(name: str, view: View) -> str:
    """A node: the end itself, or one in the group."""
    if name in view.node_by_id:
        return name
    return next((n.id for n in reversed(view.nodes) if n.group == name), name)


def run_dot(source: str, form: str) -> bytes:
    """`dot -T<form>` on Dot text; raises `RelayError` where `dot` is absent, fails, or takes too long."""
    program = shutil.which("dot")
    if program is None:
        raise RelayError(
            "the program `dot` of Graphviz is not installed",
            code="viz.no-dot",
            help='use engine="builtin", which needs no program, or install Graphviz',
        )
    try:
        done = subprocess.run(
            [program, f"-T{form}"], input=source.encode(), capture_output=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise RelayError(
            f"`dot` took more than {TIMEOUT:g} s", code="viz.dot-slow", help='use engine="builtin"'
        ) from None
    if done.returncode:
        raise RelayError(f"`dot` failed: {done.stderr.decode(errors='replace').strip()[:400]}", code="viz.dot-failed")
    return done.stdout
