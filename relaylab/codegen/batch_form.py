"""A program that computes each example of a batch on its own, compiled as the network of one and run for each.

Convolutions have no kernels that take their extents when they run; a batch of any size needs none.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import cast

import numpy as np

from relaylab.analysis.examples import has_open_batch
from relaylab.codegen.build import build
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.network.open_sizes import InputSizes
from relaylab.codegen.specialize import input_tensors, specialized
from relaylab.ir.module import IRModule
from relaylab.runtime.device import cpu
from relaylab.runtime.ndarray import NDArray
from relaylab.transform import DynamicToStatic, InferType, Sequential, SimplifyInference


class BatchForm:
    """One compiled form for batches of all sizes. Calls from several threads take turns."""

    def __init__(self, mod: IRModule, target: CpuTarget):
        """Compile the typed `mod`, which has an open batch, for one example, in the current PassContext."""
        start = time.perf_counter()
        types = [t for _, t in input_tensors(mod["main"].params)]
        self.wanted = InputSizes(types)
        self.named = self.wanted.named
        one = specialized(mod, [(1, *cast("tuple[int, ...]", t.shape[1:])) for t in types], {})
        self.executor = build(one, target)["default"](cpu(0)).executor
        self.seconds = time.perf_counter() - start

    @staticmethod
    def of(mod: IRModule, target: CpuTarget) -> BatchForm | None:
        """That of a typed program; None for one whose examples are not seen to be computed alone, or with other sizes
        that are open.
        """
        plain = Sequential([DynamicToStatic(), InferType(), SimplifyInference(), InferType()])(mod)
        named = InputSizes([t for _, t in input_tensors(mod["main"].params)]).named
        return BatchForm(mod, target) if len(named) == 1 and has_open_batch(plain["main"]) else None

    def run(self, leaves: Sequence[np.ndarray]) -> list[NDArray] | None:
        """The results for arrays of the inputs; None if those are not of the inputs' types."""
        if self.wanted.fit(leaves) is None:
            return None
        count = len(leaves[0])
        infos = self.executor.plan.outputs
        results = [np.empty((count, *info.shape[1:]), info.dtype) for info in infos]
        with self.executor.lock:
            instance = self.executor.instance
            for k in range(count):
                for target, values in zip(instance.inputs, leaves):
                    np.copyto(target[0], values[k])
                self.executor.run()
                for result, values in zip(results, instance.outputs):
                    np.copyto(result[k], values[0])
        return list(map(NDArray, results))
