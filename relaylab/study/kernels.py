"""From a fused function to its machine code: loops, LLVM IR and assembly, linked instruction by instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from relaylab.codegen.build import GraphExecutorFactoryModule, compile_main, parse_target
from relaylab.codegen.inspection.source_map import SourceMap, coverage, title_of
from relaylab.codegen.inspection.stages import same_place
from relaylab.codegen.network.network import network_of
from relaylab.codegen.operations.schedules import SCHEDULES
from relaylab.ir import Expr, Function, IRModule
from relaylab.loop.schedule import Schedule
from relaylab.runtime.profiling import Duration
from relaylab.study.running import seeded
from relaylab.study.schedules import Trial
from relaylab.study.stage_text import Constants, printed
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
    """A fused module compiled, and which of its functions became which kernel."""

    def __init__(self, mod: IRModule, constants: Constants | None = None):
        """`constants` are the names of constants in its Relay."""
        self.mod, self.target, self.constants = mod, parse_target("llvm"), constants or Constants()

    @cached_property
    def library(self) -> GraphExecutorFactoryModule:
        """The compiled module; raises what `relay.build` raises for programs that are no static graph."""
        return compile_main(self.mod, self.target, ir_mod=self.mod)

    @cached_property
    def names(self) -> dict[Function, str]:
        """The kernel of each fused function."""
        return {op.function: op.name for op in network_of(self.mod["main"], "tvmgen_default").operations}

    def listing(self, function: Function) -> Listing | None:
        """A fused function at each level; None if no code was made for it (it only gives its input another shape)."""
        name = self.names.get(function)
        if name is None or name not in self.library.kernels():
            return None
        kernels = self.library.linked(name)
        parts, numbers = _parts(kernels, same_place(self.library.compiled_function(name), function))
        code = [
            [(text, number.get(part, -1)) for text, part in lines]
            for linked, number in zip(kernels, numbers)
            for lines in (linked.llvm, [(f"{linked.kernel.name}:", -1), *linked.asm])
        ]
        llvm, asm = sum(code[::2], [])[:LONGEST], sum(code[1::2], [])[:LONGEST]
        return Listing(
            name,
            "\n".join(printed(self.library.compiled_function(name), self.constants).lines),
            self.library.inspect("loop", name),
            parts,
            llvm,
            [(text.replace("\t", "  "), part) for text, part in asm],
            coverage(kernels),
            self.library.inspect("why", name),
        )

    def trial(self, function: Function, steps: str) -> Trial:
        """A fused function with a schedule of one's own, beside the loops that were picked for it.

        Raises RelayValueError for steps that may not be taken, and for functions of which no code was made.
        """
        name = self.library.kernel_called(self.names.get(function, "of this node"))
        schedule = Schedule.parse(steps)

        def build(schedule: Schedule) -> GraphExecutorFactoryModule:
            with PassContext(config={SCHEDULES: {name: schedule}}):
                return compile_main(self.mod, self.target, ir_mod=self.mod)

        return Trial(name, schedule, self.library, build(schedule), build)

    def times(self, number: int = 5) -> dict[Function, float]:
        """Measured microseconds of each fused function, all its calls together."""
        spent: dict[str, float] = {}
        for call in seeded(self.library).profile(repeat=number, roofline=False).calls:
            name, took = str(call["Name"]), call["Duration (us)"]
            spent[name] = spent.get(name, 0.0) + (took.microseconds if isinstance(took, Duration) else 0.0)
        shared = list(self.names.values())
        return {f: spent[name] / shared.count(name) for f, name in self.names.items() if name in spent}


def _parts(
    kernels: Sequence[SourceMap], own: dict[Expr | None, Expr]
) -> tuple[list[tuple[str, Expr | None]], list[dict[int, int]]]:
    """The distinct nodes of some kernels, and for each kernel which of them its parts are."""
    found: dict[Expr | None, int] = {}
    numbers = [{k: found.setdefault(node, len(found)) for k, node in enumerate(linked.nodes)} for linked in kernels]
    return [(title_of(node), own.get(node)) for node in found], numbers
