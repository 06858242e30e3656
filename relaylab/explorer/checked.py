"""Whether passes keep the numbers: a pipeline interpreted on seeded input, stage by stage."""

from __future__ import annotations

import numpy as np

from relaylab.interp import Interpreter, random_inputs
from relaylab.interp.agreement import relative_error
from relaylab.ir import IRModule
from relaylab.study.checking import comparable
from relaylab.study.pipeline import Pipeline
from relaylab.transform import InferType


class Checked:
    """The passes of a pipeline over a small form of its program; what is known of the outputs until the next edit."""

    def __init__(self, pipeline: Pipeline):
        self.edited = pipeline
        self._over = (pipeline.items, pipeline.source, pipeline)
        self._outputs: dict[IRModule, list[np.ndarray]] = {}

    def pipeline(self, small: IRModule) -> Pipeline:
        """The passes as they are now, over a small form (or over the program itself)."""
        items, source, made = self._over
        if items != self.edited.items or source is not small:
            made = self.edited if small is self.edited.source else Pipeline(small, (), self.edited.opt_level)
            if made is not self.edited:
                made.items = list(self.edited.items)
            self._over, self._outputs = (list(self.edited.items), small, made), {}
        return made

    def error(self, small: IRModule, index: int) -> float | None:
        """How far the outputs after a pass are from those before all passes; None if their shapes differ."""
        pipeline = self.pipeline(small)
        got, expected = (self._run(mod) for mod in (pipeline.segments[index].after, pipeline.source))
        if [g.shape for g in got] != [e.shape for e in expected]:
            return None
        return max((relative_error(g, e) for g, e in zip(got, expected)), default=0.0)

    def _run(self, mod: IRModule) -> list[np.ndarray]:
        if mod not in self._outputs:
            typed = InferType()(mod)
            self._outputs[mod] = comparable(Interpreter(typed).evaluate()(*random_inputs(typed["main"], 0)))
        return self._outputs[mod]
