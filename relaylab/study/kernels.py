"""From a fused function to its machine code: loops, LLVM IR and assembly, linked instruction by instruction."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from relaylab import relay
from relaylab.codegen.build import compile_main, parse_target
from relaylab.codegen.inspection.source_map import SourceMap, coverage, title_of
from relaylab.codegen.inspection.stages import same_place
from relaylab.codegen.network.network import is_static_graph, network_of
from relaylab.codegen.operations.schedules import SCHEDULES
from relaylab.codegen.vm_executable import VMExecutable
from relaylab.codegen.vm_parts import CompiledParts
from relaylab.ir import Expr, Function, IRModule, op_name, walk
from relaylab.loop.schedule import Schedule
from relaylab.runtime.executable import ExecutionPlan
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.runtime.profiling import Duration, Report
from relaylab.study.running import example_inputs, example_sizes, plain_name, profile_executable, run_executable, seeded
from relaylab.study.schedules import Trial
from relaylab.study.stage_text import Constants, printed
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.text import text
from relaylab.transform import PassContext

LONGEST = 4000
"""Lines of LLVM IR or assembly that are shown."""

Lines = list[tuple[str, int]]


@dataclass(frozen=True)
class Listing:
    """A kernel at each level. `parts`: the expressions that instructions belong to; lines: `(text, part)`, -1 for none.

    `coverage` says in words how many instructions know their Relay node, `why` what the loops were chosen from.
    """

    name: str
    relay: str
    loops: str
    parts: list[tuple[str, Expr | None]]
    llvm: Lines
    asm: Lines
    coverage: str
    why: str


class Kernels:
    """A fused module compiled, and which of its functions became which kernel.

    The virtual machine compiles what is no static graph from the program before the passes: of its kernels a fused
    function has the one that was made of an equal function, whatever sizes are called.
    """

    def __init__(
        self, mod: IRModule, constants: Constants | None = None, source: IRModule | None = None, opt_level: int = 3
    ):
        """`constants` are the names of constants in its Relay; `source` is the program before the passes of a level."""
        self.mod, self.target, self.constants = mod, parse_target("llvm"), constants or Constants()
        self.source, self.opt_level = source, opt_level

    @cached_property
    def executable(self) -> VMExecutable | None:
        """What the virtual machine runs; None for a static graph, and where nobody knows the program before."""
        if self.source is None or is_static_graph(self.mod):
            return None
        with PassContext(opt_level=self.opt_level):
            return relay.vm.compile(self.source, self.target)

    @cached_property
    def library(self) -> GraphExecutorFactoryModule:
        """The compiled module; raises what `relay.build` raises for programs that are no static graph."""
        return compile_main(self.mod, self.target, ir_mod=self.mod)

    @cached_property
    def compiled(self) -> GraphExecutorFactoryModule | CompiledParts:
        """What has the kernels; raises what `relay.build` or the virtual machine raises."""
        return self.library if self.executable is None else self.executable.parts()

    @cached_property
    def plan(self) -> ExecutionPlan:
        """Where the tensors of the program lie; of several parts those of the one that needs most memory."""
        if isinstance(self.compiled, GraphExecutorFactoryModule):
            return self.compiled.executable.plan
        plans = [lib.executable.plan for _, lib in self.compiled.parts]
        if not plans:
            raise RelayValueError("the program has no kernel, and so no plan of memory", code="study.no-kernel")
        return max(plans, key=lambda plan: plan.arena_bytes)

    @cached_property
    def names(self) -> dict[Function, str]:
        """The kernel of each fused function."""
        if self.executable is None:
            return {op.function: op.name for op in network_of(self.mod["main"], "tvmgen_default").operations}
        lib = self.compiled
        functions = {name: lib.compiled_function(name) for name in lib.kernels()}
        fused = [n for n in walk(self.mod.functions.values()) if isinstance(n, Function) and n.is_primitive]
        found = dict[Function, str]()
        for key in (_likeness, _operators):  # forms may say attributes otherwise: padding is a step of its own
            made = {key(f): name for name, f in reversed(functions.items()) if name not in found.values()}
            found |= {f: made[key(f)] for f in fused if f not in found and key(f) in made}
        return {f: found[f] for f in fused if f in found}

    def listing(self, function: Function) -> Listing | None:
        """A fused function at each level; None if no code was made for it (it only gives its input another shape)."""
        name = self.names.get(function)
        if name is None or name not in self.compiled.kernels():
            return None
        kernels = self.compiled.linked(name)
        parts, numbers = _parts(kernels, same_place(self.compiled.compiled_function(name), function))
        code = [
            [(text, number.get(part, -1)) for text, part in lines]
            for linked, number in zip(kernels, numbers)
            for lines in (linked.llvm, linked.assembly)
        ]
        llvm, asm = sum(code[::2], [])[:LONGEST], sum(code[1::2], [])[:LONGEST]
        return Listing(
            name,
            "\n".join(printed(self.compiled.compiled_function(name), self.constants).lines),
            self.compiled.inspect("loop", name),
            parts,
            llvm,
            [(text.replace("\t", "  "), part) for text, part in asm],
            coverage(kernels),
            self.compiled.inspect("why", name),
        )

    def trial(self, function: Function, steps: str) -> Trial:
        """A fused function with a schedule of one's own, beside the loops that were picked for it.

        Raises RelayValueError for steps that may not be taken, and for functions of which no code was made.
        """
        name = self.compiled.kernel_called(self.names.get(function, "of this node"))
        schedule = Schedule.parse(steps)
        if self.executable is None:
            return Trial(name, schedule, self.library, self._scheduled(name, schedule), partial(self._scheduled, name))
        build = partial(self._open, name)
        return Trial(name, schedule, build(None), build(schedule), build, self.inputs)

    def _scheduled(self, name: str, schedule: Schedule) -> GraphExecutorFactoryModule:
        with PassContext(config={SCHEDULES: {name: schedule}}):
            return compile_main(self.mod, self.target, ir_mod=self.mod)

    def _open(self, name: str, schedule: Schedule | None) -> VMExecutable:
        """The executable anew. Its form for all sizes is measured, however often it runs for those of the example."""
        assert self.source is not None
        config = {} if schedule is None else {SCHEDULES: {name.rpartition("/")[2]: schedule}}
        try:
            with PassContext(opt_level=self.opt_level, config=config):
                made = relay.vm.compile(self.source, self.target)
            made.parts()  # says what may not be taken
        except RelayError as error:
            if error.code != "schedule.unknown-kernel":
                raise
            raise RelayValueError(
                f"`{name}` takes no schedule: it is made when data has decided its sizes",
                code="study.no-schedule",
                help="extract the part behind what data decides, and try it there with sizes of your own",
            ) from None
        run_executable(made, self.inputs)
        if made.specializations is not None and made.specializations.open is not None:
            made.specializations.open.seconds = math.inf
        return made

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """What a measured program is run on, of inputs whose sizes are open; the others are drawn."""
        return {} if self.executable is None else {**example_inputs(self.executable)}

    @property
    def sizes(self) -> str:
        """For which sizes times are measured, in words, as in `n = 8`; empty where none are open."""
        return "" if self.executable is None else example_sizes(self.executable)

    def times(self, number: int = 5) -> dict[Function, float]:
        """Measured microseconds of each fused function, all its calls together."""
        spent: dict[str, float] = {}
        for call in self._report(number).calls:
            name, took = plain_name(str(call["Name"])), call["Duration (us)"]
            spent[name] = spent.get(name, 0.0) + (took.microseconds if isinstance(took, Duration) else 0.0)
        names = {f: plain_name(name) for f, name in self.names.items()}
        shared = Counter(names.values())
        return {f: spent[name] / shared[name] for f, name in names.items() if name in spent}

    def _report(self, number: int) -> Report:
        if self.executable is not None:
            return profile_executable(self.executable, self.inputs, number)
        return seeded(self.library).profile(repeat=number, roofline=False)


def _operators(function: Function) -> tuple[str, ...]:
    """The operators of a fused function, in the order in which they are computed."""
    return tuple(filter(None, map(op_name, walk((function.body,)))))


_SIZED = re.compile(r"Tensor\[\((.*?)\), |(?:shape|size|sizes)=\[([^\]]*)\]")
_LABEL = re.compile(r'hash="[^"]*"')


def _likeness(function: Function) -> str:
    """The text of a fused function with `?` for what is no number in shapes: forms call sizes by other names."""

    def opened(found: re.Match[str]) -> str:
        return ", ".join(d if d.lstrip("-").isdigit() else "?" for d in (found[1] or found[2] or "").split(", "))

    return _SIZED.sub(opened, _LABEL.sub("", text(function, annotate=lambda node: "")))


def _parts(
    kernels: Sequence[SourceMap], own: dict[Expr | None, Expr]
) -> tuple[list[tuple[str, Expr | None]], list[dict[int, int]]]:
    """The distinct nodes of some kernels, and for each kernel which of them its parts are."""
    found: dict[Expr | None, int] = {}
    numbers = [{k: found.setdefault(node, len(found)) for k, node in enumerate(linked.nodes)} for linked in kernels]
    return [(title_of(node), own.get(node)) for node in found], numbers
