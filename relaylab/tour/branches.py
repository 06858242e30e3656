"""What-if branches of an explorer's pipeline: kept under names, compared with each other as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaylab import viz
from relaylab.ir import Expr
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.tour.compare import Comparison, Crossing, Quantity
from relaylab.tour.frames import Names, expressions
from relaylab.tour.pipeline import Pipeline
from relaylab.tour.printed import Constants, printed, rows
from relaylab.viz.difference import BY_TRAIL
from relaylab.viz.draw import Look, draw
from relaylab.viz.html import scene_data

if TYPE_CHECKING:
    from relaylab.tour.session import Session

CURRENT = "current"


class Branches:
    """The pipeline that is edited, under the name `current`, and copies of it as it was."""

    def __init__(self, session: Session):
        self.session = session
        self.kept: dict[str, Pipeline] = {}
        self._compared: dict[tuple[Any, ...], Comparison] = {}

    def pipeline(self, name: str) -> Pipeline:
        """The pipeline of that name."""
        if name == CURRENT:
            return self.session.pipeline
        if name not in self.kept:
            help = did_you_mean(name, [CURRENT, *self.kept])
            raise RelayValueError(f"there is no branch `{name}`", code="explorer.branch", help=help)
        return self.kept[name]

    def change(self, how: str, name: str) -> dict[str, Any]:
        """Keep the current pipeline under a name, use a kept one as the current pipeline, or drop it; gives all names."""
        if how == "keep":
            if not name.strip() or name == CURRENT:
                raise RelayValueError("a branch needs a name of its own", code="explorer.branch")
            self.kept[name] = self.session.pipeline.branch()
        elif how == "use":
            self.session.pipeline.become(self.pipeline(name))
            self.session.refresh()
        elif how == "drop":
            self.pipeline(name)
            self.kept.pop(name, None)
        elif how != "list":
            raise RelayValueError(f"a branch is kept, used or dropped, not `{how}`", code="explorer.branch")
        return {"names": [CURRENT, *self.kept], "stages": {n: self._stages(n) for n in (CURRENT, *self.kept)}}

    def _stages(self, name: str) -> list[list[Any]]:
        pipeline = self.pipeline(name)
        made = zip(pipeline.items, pipeline.segments)
        return [[0, "source program"], *([k, item.name] for k, (item, s) in enumerate(made, 1) if s.changed)]

    def _comparison(self, a: str, b: str) -> Comparison:
        first, second = self.pipeline(a), self.pipeline(b)
        key = tuple(tuple((i.made, i.enabled) for i in p.items) for p in (first, second))
        if key not in self._compared:
            self._compared[key] = Comparison(first, second, (a, b), self.session.small)
        return self._compared[key]

    def table(self, a: str, b: str, measured: bool = False) -> dict[str, Any]:
        """The figures of both ends, the operators whose number differs, and if asked the measured time."""
        found = self._comparison(a, b)
        quantities = [*found.quantities, *(found.measured() if measured else [])]
        return {"names": [a, b], "rows": [_data(q) for q in quantities], "operators": [_data(q) for q in found.operators]}

    def versus(self, a: str, at_a: int, b: str, at_b: int) -> dict[str, Any]:
        """A stage of one branch against a stage of another: the merged picture, the roles, the text difference."""
        one, other = self.pipeline(a), self.pipeline(b)
        for pipeline, frame in ((one, at_a), (other, at_b)):
            if not 0 <= frame < len(pipeline.modules):
                raise RelayValueError(f"there is no stage {frame} in this branch", code="explorer.frame")
        names = Names()
        old = viz.view(one.modules[at_a], identities=names, title=a)
        ids = [expressions(names.given)]
        names.follow(Crossing(one, other, at_a, at_b))
        new = viz.view(other.modules[at_b], identities=names, title=b)
        ids.append(expressions(names.given))
        difference = viz.Difference(old, new, BY_TRAIL)
        scene = scene_data(draw(difference.merged, Look(types="nodes", caption=False), draw(old).seed))

        def name(node: Expr | None, before: bool) -> str:
            return ids[0 if before else 1].get(node, "") if node is not None else ""

        constants = Constants()
        text = rows(printed(one.modules[at_a], constants), printed(other.modules[at_b], constants), name)
        nodes = [[n.id, n.group, n.operator, n.type, []] for n in difference.merged.nodes]
        return {"scenes": [scene | {"nodes": nodes}], "roles": difference.counts, "rows": text}


def _data(quantity: Quantity) -> list[Any]:
    within = [[i.low, i.high] if i else None for i in quantity.spread]
    return [quantity.name, quantity.unit, quantity.a, quantity.b, quantity.change, within]
