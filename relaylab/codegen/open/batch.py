"""A program that computes each example of a batch on its own, compiled as the network of one and run for each.

Convolutions of known images are faster than those that take their extents when they run; a batch of any size has them.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import cast

import numpy as np

from relaylab.analysis.examples import open_batch
from relaylab.codegen.build import build
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.network.open_sizes import InputSizes
from relaylab.codegen.open.convolutions import CONVOLUTIONS, TRANSPOSED
from relaylab.codegen.open.form import OpenForm
from relaylab.codegen.specialize import Shape, input_tensors, specialized
from relaylab.ir.module import IRModule
from relaylab.ir.op import is_call_to
from relaylab.ir.visit import walk
from relaylab.runtime.device import cpu
from relaylab.runtime.memory import OutOfMemory
from relaylab.runtime.ndarray import NDArray
from relaylab.support.errors import RelayError
from relaylab.transform import DynamicToStatic, InferType, Sequential, SimplifyInference


class BatchForm:
    """One compiled form for batches of all sizes. Calls from several threads take turns."""

    def __init__(self, mod: IRModule, target: CpuTarget, batched: Sequence[bool]):
        """Compile the typed `mod` for one example, in the current PassContext; `batched` says which parameters have the
        examples of an open batch.
        """
        start = time.perf_counter()
        params = mod["main"].params
        types = [t for _, t in input_tensors(params)]
        self.wanted = InputSizes(types)
        self.named = self.wanted.named
        has = [held for p, held in zip(params, batched) for _ in input_tensors([p])]
        self.batched = [k for k, held in enumerate(has) if held]
        self.shared = [k for k, held in enumerate(has) if not held]
        shapes = [(1, *t.shape[1:]) if held else t.shape for t, held in zip(types, has)]
        one = specialized(mod, cast("list[tuple[int, ...]]", shapes), {})
        self.executor = build(one, target)["default"](cpu(0)).executor
        self.seconds = time.perf_counter() - start

    @property
    def called(self) -> list[str]:
        """The kernels that a run calls for each example, in order."""
        return [step.name for step in self.executor.plan.steps]

    @staticmethod
    def of(mod: IRModule, target: CpuTarget) -> BatchForm | None:
        """That of a typed program; None for one whose examples are not seen to be computed alone, or with other sizes
        that are open.
        """
        plain = Sequential([DynamicToStatic(), InferType(), SimplifyInference(), InferType()])(mod)["main"]
        named = InputSizes([t for _, t in input_tensors(mod["main"].params)]).named
        batched = open_batch(plain) if len(named) == 1 else None
        return None if batched is None else BatchForm(mod, target, [p in batched for p in plain.params])

    def run(self, leaves: Sequence[np.ndarray]) -> list[NDArray] | None:
        """The results for arrays of the inputs; None if those are not of the inputs' types."""
        if self.wanted.fit(leaves) is None:
            return None
        count = len(leaves[self.batched[0]])
        infos = self.executor.plan.outputs
        results = [np.empty((count, *info.shape[1:]), info.dtype) for info in infos]
        with self.executor.lock:
            instance = self.executor.instance
            for k in self.shared:
                np.copyto(instance.inputs[k], leaves[k])
            examples = [(instance.inputs[k], leaves[k]) for k in self.batched]
            for k in range(count):
                for target, values in examples:
                    np.copyto(target, values[k : k + 1])
                self.executor.run()
                for result, values in zip(results, instance.outputs):
                    np.copyto(result[k : k + 1], values)
        return list(map(NDArray, results))


def form_of(mod: IRModule, target: CpuTarget, first: Sequence[Shape], caches: bool = True) -> OpenForm | BatchForm:
    """The form of a typed program for all sizes; see `OpenForm` for what it is told and raises.

    Images of known size go one by one through the network of one, whose convolutions are faster.
    """
    has_images = any(is_call_to(node, *CONVOLUTIONS, *TRANSPOSED) for node in walk((mod["main"].body,)))
    by_examples = BatchForm.of(mod, target) if has_images else None
    if by_examples is not None:
        return by_examples
    try:
        return OpenForm(mod, target, first, caches)
    except RelayError as error:
        if isinstance(error, OutOfMemory) or error.code.startswith("schedule") or has_images:
            raise
        by_examples = BatchForm.of(mod, target)
        if by_examples is None:
            raise
        return by_examples
