"""One copy of a repeated block open, the others as one card beside it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from relaylab.viz.graph.view import Group, View
from relaylab.viz.selection.fold import of_kind
from relaylab.viz.selection.parts import Parts


def folded_copies(view: View, opened: Collection[str]) -> tuple[View, frozenset[str]]:
    """A view with `repeats` in it, and its groups to close: of each repetition in `opened` the first copy is open.

    The other copies are one card, a repetition with an id of its own: opened, it shows its first copy, and so on.
    """
    open_: set[str] = set()
    wanted = [name for name in opened if name in view.group_by_id]
    while wanted:
        name = wanted.pop()
        view, inside = _first_open(view, name)
        open_ |= {name, *inside[:1]}
        wanted += [rest for rest in inside[1:] if rest in opened]
    return view, of_kind(view, "repeat", "block") - open_


def _first_open(view: View, name: str) -> tuple[View, list[str]]:
    """The copies of a repetition but the first in a group; the ids of the first and of that group."""
    blocks = [part for part in Parts(view).items[name] if part in view.group_by_id]
    if len(blocks) < 2 or view.group_by_id[name].kind != "repeat":
        return view, []
    others = blocks[1:]
    if len(others) == 1:
        return view, [blocks[0]]
    run = view.group_by_id[name]
    rest = Group(f"repeat:{others[0].removeprefix('block:')}", "repeat", f"×{len(others)}", name, rows=run.rows)
    groups = tuple(replace(g, parent=rest.id) if g.id in others else g for g in view.groups)
    return View(view.title, view.nodes, view.edges, (*groups, rest), view.notes), [blocks[0], rest.id]
