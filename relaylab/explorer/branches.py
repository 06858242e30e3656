"""What-if branches of an explorer's pipeline: kept under names, compared with each other."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from relaylab.ir import IRModule
from relaylab.study.compare import Comparison
from relaylab.study.pipeline import Pipeline
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean

CURRENT = "current"


@dataclass
class Branches:
    """The pipeline that is edited, under the name `current`, and copies of it as it was."""

    current: Pipeline
    kept: dict[str, Pipeline] = field(default_factory=dict)
    _compared: dict[Hashable, Comparison] = field(default_factory=dict)

    def pipeline(self, name: str) -> Pipeline:
        """The pipeline of that name."""
        if name == CURRENT:
            return self.current
        if name not in self.kept:
            help = did_you_mean(name, self.names())
            raise RelayValueError(f"there is no branch `{name}`", code="explorer.branch", help=help)
        return self.kept[name]

    def names(self) -> list[str]:
        """The names of all branches."""
        return [CURRENT, *self.kept]

    def keep(self, name: str) -> None:
        """Keep the current pipeline, as it is, under a name."""
        if not name.strip() or name == CURRENT:
            raise RelayValueError("a branch needs a name of its own", code="explorer.branch")
        self.kept[name] = self.current.branch()

    def use(self, name: str) -> None:
        """Have the passes of a branch in the current pipeline."""
        self.current.become(self.pipeline(name))

    def drop(self, name: str) -> None:
        """Forget a branch; the current pipeline stays."""
        self.pipeline(name)
        self.kept.pop(name, None)

    def comparison(self, a: str, b: str, small: IRModule) -> Comparison:
        """Two branches compared; `small` is what is interpreted. What is known of two pipelines is kept."""
        first, second = self.pipeline(a), self.pipeline(b)
        key = tuple((p.source, *((i.made, i.enabled) for i in p.items)) for p in (first, second))
        if key not in self._compared:
            self._compared[key] = Comparison(first, second, (a, b), small)
        return self._compared[key]
