"""From a fused function to its machine code: loops, LLVM IR and assembly, linked instruction by instruction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relaylab.codegen.build import compile_main, parse_target
from relaylab.codegen.debuglines import assembly_parts, with_debug_lines
from relaylab.codegen.jit import emit_assembly
from relaylab.codegen.network import network_of
from relaylab.ir import Call, Expr, Function, IRModule, Op, post_order
from relaylab.tour.running import seeded
from relaylab.viz.memory import bars

WORK = "loops and addresses"
LONGEST = 4000
"""Lines of LLVM IR or assembly that are shown."""


@dataclass(frozen=True)
class Listing:
    """A kernel at each level. `parts` are the expressions that instructions belong to; lines are `(text, part)`, -1 for none."""

    name: str
    relay: str
    loops: str
    parts: list[tuple[str, Expr | None]]
    llvm: list[tuple[str, int]]
    asm: list[tuple[str, int]]


class Kernels:
    """A fused module compiled, and which of its functions became which kernel."""

    def __init__(self, mod: IRModule):
        self.mod, self.target = mod, parse_target("llvm")

    @cached_property
    def library(self) -> Any:
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
        loops, llvm = self.library.inspect("loop", name), self.library.inspect("llvm", name)
        return Listing(name, self.library.inspect("relay", name), loops, _parts(function, loops), _llvm_lines(llvm), self._assembly(llvm))

    def _assembly(self, llvm: str) -> list[tuple[str, int]]:
        lines, last = [], ""
        for function, text, part in assembly_parts(emit_assembly(with_debug_lines(llvm), self.target))[:LONGEST]:
            if function != last:
                lines.append((f"{function}:", -1))
                last = function
            lines.append((text.replace("\t", "  "), part))
        return lines

    def times(self, number: int = 5) -> dict[Function, float]:
        """Measured microseconds of each fused function, all its calls together."""
        spent: dict[str, float] = {}
        for call in seeded(self.library).profile(repeat=number).calls:
            spent[str(call["Name"])] = spent.get(str(call["Name"]), 0.0) + call["Duration (us)"].value
        shared = list(self.names.values())
        return {f: spent[name] / shared.count(name) for f, name in self.names.items() if name in spent}


def _parts(function: Function, loops: str) -> list[tuple[str, Expr | None]]:
    """What the part numbers of a kernel mean: of a group of loops 0 is the loops, of a contraction its operator."""
    calls = [e for e in post_order(function.body) if isinstance(e, Call) and isinstance(e.op, Op)]
    named: list[tuple[str, Expr | None]] = [(c.op.name, c) for c in calls]
    return [(WORK, None), *named] if loops.startswith("kernel ") else named


def _llvm_lines(text: str) -> list[tuple[str, int]]:
    lines, part = [], -1
    for line in text.split("\n")[:LONGEST]:
        if line.startswith("define "):
            part = 0
        elif line.startswith("  ; @"):
            part = int(line[5:])
            continue
        elif line == "}":
            lines.append((line, -1))
            part = -1
            continue
        lines.append((line, part))
    return lines


def memory_plan(library: Any) -> dict[str, Any]:
    """Which bytes of the arena hold what from which step to which: the bars of a timeline."""
    plan = library.executable.plan
    held = [{"offset": b.offset, "bytes": b.size, "first": b.first, "last": b.last, "kind": b.kind} for b in bars(plan)]
    return {"arena": plan.arena_bytes, "scratch": plan.scratch_bytes, "steps": [step.label for step in plan.steps], "bars": held}
