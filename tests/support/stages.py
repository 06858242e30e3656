"""The stages of the default pipeline by the names of its passes: a new pass moves no test."""

from __future__ import annotations

from functools import cached_property

from relaylab import study


class Stages:
    """The default pipeline of a network; what is asked first runs it."""

    def __init__(self, net: str):
        self.net = net

    @cached_property
    def rows(self) -> list[tuple[str, bool]]:
        """The passes in order: name, and whether it changed something."""
        pipeline = study.explore(self.net).pipeline
        return [(item.name, s.changed) for item, s in zip(pipeline.items, pipeline.segments, strict=True)]

    @property
    def changing(self) -> list[int]:
        """The stages whose pass changed something."""
        return [k for k, (_, changed) in enumerate(self.rows, 1) if changed]

    @property
    def first(self) -> int:
        """The first stage that differs from the source program."""
        return self.changing[0]

    @property
    def last(self) -> int:
        """The last stage."""
        return len(self.rows)

    def __getitem__(self, name: str) -> int:
        """The stage after the first pass of that name that changed something."""
        return next(k for k in self.changing if self.rows[k - 1][0] == name)

    def fold(self, stage: int) -> str:
        """What the list of passes says of those before a stage that changed nothing."""
        before = max((k for k in self.changing if k < stage), default=0)
        return f"{stage - before - 1} quiet passes"


def step(stage: int) -> str:
    """The two stages that a step to a stage compares, as the explorer says them."""
    return f"{stage - 1}:{stage}"


MLP, RESNET8 = Stages("mlp"), Stages("resnet8")
