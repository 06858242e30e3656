"""Questions about several nodes of one frame: the path between two, a part of the program as a program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from relaylab import viz
from relaylab.explorer.question import Frame, question
from relaylab.explorer.session import Session
from relaylab.ir import post_order
from relaylab.support.errors import RelayValueError
from relaylab.support.quoting import is_name, python_text
from relaylab.support.words import counted

LONGEST = 60_000
"""Characters of a part that are shown; a longer one (with large constants) is only bound."""
NodeTitle = tuple[str, str, str]
"""Id, title and type of a node."""


class NodePath(TypedDict):
    """The nodes of a path, and how long it is, in words."""

    ids: list[str]
    text: str
    nodes: list[NodeTitle]


def titles(view: viz.View, ids: Iterable[str]) -> list[NodeTitle]:
    """Nodes as people know them."""
    return [(i, view.node_by_id[i].title, view.node_by_id[i].type) for i in ids]


@question()
def path(session: Session, frame: Frame, a: str, b: str) -> NodePath:
    """The nodes of a shortest path between two nodes, in the direction in which there is one."""
    view = session.frames.views[frame]
    found = viz.path(view, a, b) or viz.path(view, b, a)
    edges = f"{counted(len(found) - 1, 'edge')} from {found[0]} to {found[-1]}" if found else ""
    words = edges or f"no way leads from {a} to {b} or back"
    return {"ids": list(found), "text": words, "nodes": titles(view, found)}


class ExtractedPart(TypedDict):
    """A part of a program: the name that it got, its Relay text (empty if too long), code that makes it, its inputs."""

    name: str
    text: str
    code: str
    inputs: list[str]


@question()
def extract(session: Session, frame: Frame, ids: list[str], name: str = "part") -> ExtractedPart:
    """Nodes (or all of a group) as a module of their own: its text, the code that makes it, the name that it got."""
    if not is_name(name):
        raise RelayValueError(f"`{name}` is not a name", code="explorer.name")
    frames = session.frames
    mod = frames.modules[frame]
    wanted = [e for i in _members(frames.views[frame], ids) if (e := frames.nodes[frame].get(i)) is not None]
    homes = {gv.name_hint: len(set(post_order(f.body)) & set(wanted)) for gv, f in mod.functions.items()}
    part = viz.extract(mod, wanted, max(homes, key=lambda n: homes[n], default="main"))
    given = session.bind(name, part) or name
    session.extracted[given] = part
    text = part.astext()
    shown = text if len(text) <= LONGEST else ""
    code = f"from relaylab import relay\n\n{given} = relay.parse({python_text(shown)})\n" if shown else ""
    return {"name": given, "text": shown, "code": code, "inputs": [p.name_hint for p in part["main"].params]}


def _members(view: viz.View, ids: Iterable[str]) -> list[str]:
    """The nodes that ids mean: themselves, and everything in groups."""
    wanted = set(ids)
    return [n.id for n in view.nodes if n.id in wanted or any(g.id in wanted for g in view.around(n.group))]
