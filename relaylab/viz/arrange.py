"""The options of `show` that say what of a view is drawn: overlay, folding, collapsed groups, selection, focus."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.viz.figures.overlay import measured, painted
from relaylab.viz.graph.view import View
from relaylab.viz.selection.fold import closed_at, of_kind
from relaylab.viz.selection.fold import collapse as collapsed
from relaylab.viz.selection.fold import focus as focused
from relaylab.viz.selection.query import select as selected
from relaylab.viz.selection.repeats import repeats

OPTIONS = ("overlay", "fold", "collapse", "select", "focus", "hops")
MARK = ("stroke:#0072b2", "width:3.2")
"""The border of what a query selected."""
VALUES = "value"
"""The name of a figure that is given as a plain mapping."""

Closed = str | int | Collection[str]


@checked
def arranged(
    view: View,
    *,
    overlay: str | Mapping | None = None,
    fold: bool | None = False,
    collapse: Closed = (),
    select: str | None = "",
    focus: str | Iterable[str] | None = (),
    hops: int = 1,
) -> View:
    """The view after the `OPTIONS`; queries are asked before anything is hidden, so they find what is in a card too."""
    metric = overlay
    if isinstance(metric, Mapping):
        view, metric = measured(view, VALUES, metric), VALUES
    marked = selected(view, select or "")
    near = _meant(view, focus) if focus else ()
    if fold:
        view = repeats(view)
    closed = _closed(view, collapse) | (of_kind(view, "repeat", "block") if fold else set())
    shown = collapsed(view, closed)
    stand = _stand_ins(view, shown)
    if focus:
        shown = focused(shown, {stand[n] for n in near}, hops)
    if metric:
        shown = painted(shown, metric)
    return mark(shown, {stand[n] for n in marked}) if select else shown


def mark(view: View, ids: Collection[str]) -> View:
    """The view with a strong border around some nodes, and their number as a note."""
    nodes = tuple(replace(n, paint=(*n.paint, *MARK)) if n.id in ids else n for n in view.nodes)
    return replace(view, nodes=nodes, notes=(*view.notes, f"{len(ids)} selected"))


def _meant(view: View, given: str | Iterable[str]) -> tuple[str, ...]:
    """Ids, or what a query means."""
    if not isinstance(given, str):
        return tuple(given)
    if given in view.node_by_id or given in view.group_by_id:
        return (given,)
    found = selected(view, given)
    if not found:
        raise RelayValueError(
            f"nothing in the picture is `{given}`",
            code="viz.unknown-node",
            help=did_you_mean(given, [*view.node_by_id, *view.group_by_id])
            or "give an id, or a query such as op:nn.conv2d",
        )
    return found


def _closed(view: View, given: Closed) -> frozenset[str]:
    """Group ids from what `collapse` may be: a level, a kind, an id, or several ids."""
    if isinstance(given, int) or (isinstance(given, str) and given.isdigit()):
        return closed_at(view, int(given))
    names = [given] if isinstance(given, str) else list(given)
    kinds = {g.kind for g in view.groups}
    for name in names:
        if name not in kinds and name not in view.group_by_id:
            help = did_you_mean(name, [*kinds, *view.group_by_id]) or f"kinds of groups: {', '.join(sorted(kinds))}"
            raise RelayValueError(f"there is no group or kind of group `{name}`", code="viz.unknown-group", help=help)
    return frozenset(n for n in names if n in view.group_by_id) | of_kind(view, *names)


def _stand_ins(view: View, shown: View) -> dict[str, str]:
    """For each part of a view what stands for it in the collapsed one: itself, or the card around it."""
    stand = {"": ""}
    drawn = shown.node_by_id.keys() | shown.group_by_id.keys()

    def up(name: str, around: str) -> str:
        chain = [name]
        while chain[-1] not in drawn and chain[-1] not in stand:
            chain.append(view.group_by_id[chain[-1]].parent if len(chain) > 1 else around)
        return stand.get(chain[-1], chain[-1])

    for group in view.groups:
        stand[group.id] = up(group.id, group.parent)
    for node in view.nodes:
        stand[node.id] = up(node.id, node.group)
    return stand
