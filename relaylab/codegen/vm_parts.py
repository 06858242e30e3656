"""What a program for the virtual machine was compiled to, looked at as one library: forms, networks, their kernels.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from relaylab.codegen.build import build
from relaylab.codegen.flow.form import FlowForm
from relaylab.codegen.inspection.source_map import SourceMap
from relaylab.codegen.inspection.stages import Stages
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.native_function import NativeFunction
from relaylab.codegen.network.open_sizes import evaluated
from relaylab.codegen.open.batch import BatchForm, form_of
from relaylab.codegen.open.cut import Part, cut
from relaylab.codegen.open.form import OpenForm
from relaylab.codegen.open.staged import GUESS, StagedForm
from relaylab.codegen.specialize import input_tensors, specialized
from relaylab.ir.dims import SymbolicDim
from relaylab.ir.expr import Function
from relaylab.ir.free import sizes_in
from relaylab.ir.module import IRModule
from relaylab.ir.types import TensorType, is_dynamic
from relaylab.loop.sizes import number_of
from relaylab.runtime.executable import KernelCall
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.runtime.overview import kernel_called
from relaylab.transform import InferType, Sequential, default_passes

Titled = tuple[str, GraphExecutorFactoryModule]
"""What a part is, in words, and the part as a network."""


class CompiledParts:
    """Compiled parts of a program; `inspect`, `summary`, `linked` are those of a library of `relay.build`.

    A kernel that several parts have is called by the number of its part too: `2/tvmgen_open_fused_nn_dense`.
    """

    def __init__(self, parts: Sequence[Titled], reason: str = ""):
        """`reason` is why there is no form for all sizes, if there is none."""
        self.parts, self.reason = list(parts), reason
        counts = Counter(name for _, lib in self.parts for name in lib.kernels())
        self._homes = {
            f"{k}/{name}" if counts[name] > 1 else name: (lib, name)
            for k, (_, lib) in enumerate(self.parts, 1)
            for name in lib.kernels()
        }

    def kernels(self) -> list[str]:
        """The names of the fused functions that were compiled, part by part."""
        return list(self._homes)

    def kernel_called(self, name: str) -> str:
        """The kernel of a name, or the only one with it in its own; RelayValueError `runtime.kernel` otherwise."""
        return kernel_called(name, self.kernels())

    def home(self, kernel: str) -> tuple[GraphExecutorFactoryModule, str]:
        """The network that has a kernel, and its name there."""
        return self._homes[self.kernel_called(kernel)]

    def inspect(self, stage: str = "loop", kernel: str | None = None) -> str:
        """The text of a stage of one kernel, or of all of them; RelayValueError for another stage or kernel."""
        homes = [*self._homes.values()] if kernel is None else [self.home(kernel)]
        return "\n\n".join(lib.inspect(stage, name) for lib, name in homes)

    def summary(self) -> str:
        """A table of the kernels of each part."""
        told = [f"no form for all sizes: {self.reason}"] if self.reason else []
        tables = [f"{title}\n{lib.summary()}" for title, lib in self.parts]
        return "\n\n".join([*told, *tables] or ["no kernel"])

    def has_stage(self, stage: str) -> bool:
        """Can `inspect` show a stage?"""
        return all(lib.has_stage(stage) for _, lib in self.parts)

    def linked(self, kernel: str) -> Sequence[SourceMap]:
        """The native functions of a kernel with the Relay node of each instruction, in order."""
        lib, name = self.home(kernel)
        return lib.linked(name)

    def compiled_function(self, kernel: str) -> Function:
        """The fused Relay function that a kernel was made from."""
        lib, name = self.home(kernel)
        return lib.compiled_function(name)


def parts_of(form: OpenForm | BatchForm | StagedForm | FlowForm, mod: IRModule, target: CpuTarget) -> Iterator[Titled]:
    """The networks of a form that was made of the typed `mod` in the current PassContext.

    A form keeps what runs. What it does not keep is made again here, by the same functions, with code from the cache.
    """
    named = ", ".join(map(str, form.named))
    match form:
        case OpenForm():
            yield f"for all sizes, {_told(form)}:", _network(form)
        case BatchForm():
            yield f"one example, which runs for each of {named}:", _example(form, mod, target)
        case StagedForm():
            steps = zip(cut(mod).steps, form.lines)
            parts = [(step, line) for step, line in steps if isinstance(step, Part)]
            for k, (step, line) in enumerate(parts, 1):
                yield f"part {k} of {len(parts)}, {line}:", _part(step, target)
        case FlowForm():
            for k, (block, made) in enumerate(form.blocks.items(), 1):
                gives = ", ".join(f"{v.name_hint}: {v.type_annotation}" for v in block.outputs)
                yield f"block {k} of {len(form.blocks)}, which gives {gives}:", _network(made)


def _told(form: OpenForm) -> str:
    return "figures for " + (", ".join(f"{name} = {form.known[name]}" for name in form.named) or "those that are known")


def _network(form: OpenForm) -> GraphExecutorFactoryModule:
    stages = Stages.of(form.network, form.planned, form.planner.layouts, form.target)
    executable = form.instance.code.executable
    executable = replace(executable, plan=replace(executable.plan, steps=tuple(_figured(form))))
    return GraphExecutorFactoryModule(executable, target=form.target, stage_source=stages)


def _figured(form: OpenForm) -> Iterator[KernelCall]:
    """The steps with the work and the items that they have for the sizes as they are: memory is planned for more."""
    values = form.sizes.values(form.known)
    at = lambda size: number_of(size, values)
    for step in form.planned.plan.steps:
        kernel = form.planned.kernels[step.kernel]
        flops, moved = kernel.work(at)
        items = kernel.items if kernel.open_items is None else at(kernel.open_items)
        yield replace(step, flops=flops, bytes=moved, items=items)


def _example(form: BatchForm, mod: IRModule, target: CpuTarget) -> GraphExecutorFactoryModule:
    types = [t for _, t in input_tensors(mod["main"].params)]
    shapes = [(1, *t.shape[1:]) if k in form.batched else t.shape for k, t in enumerate(types)]
    return build(specialized(mod, cast("list[tuple[int, ...]]", shapes), {}), target)


def _part(part: Part, target: CpuTarget) -> GraphExecutorFactoryModule:
    mod = InferType()(IRModule.from_expr(part.function))
    types = [t for _, t in input_tensors(mod["main"].params)]
    if not any(map(is_dynamic, types)):
        return NativeFunction(Sequential(default_passes())(mod)["main"], target).library
    form = form_of(mod, target, list(map(_first, types)), caches=False)
    return _network(form) if isinstance(form, OpenForm) else _example(form, mod, target)


def _first(t: TensorType) -> tuple[int, ...]:
    sizes = dict.fromkeys(sizes_in(t.shape), GUESS)
    return tuple([evaluated(d, sizes) if isinstance(d, SymbolicDim) else int(cast(int, d)) for d in t.shape])
