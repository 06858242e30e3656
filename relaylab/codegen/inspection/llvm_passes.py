"""LLVM's own passes over a kernel, one after another, each with its time and what it left.

`relay.build` runs none of them: the text is written the way they would leave it. This is for looking.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.jit import _llvm, _parse
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.support.words import counted

PASSES = (
    "sroa", "simplify_cfg", "instruction_combine", "reassociate", "new_gvn", "loop_simplify", "lcssa", "loop_rotate",
    "loop_unroll", "instruction_combine", "aggressive_dce", "simplify_cfg",
)  # fmt: skip
"""The order in which LLVM's own pipeline has those that concern one function."""


@dataclass(frozen=True, slots=True)
class LLVMStep:
    """One pass of LLVM: its name, milliseconds, and the module before and after it."""

    name: str
    ms: float
    before: str
    after: str

    @property
    def changed(self) -> bool:
        """Did the text change?"""
        return self.before != self.after

    def diff(self) -> str:
        """What it changed, as a unified diff."""
        return "\n".join(
            unified_diff(self.before.split("\n"), self.after.split("\n"), "before", self.name, n=1, lineterm="")
        )

    def __str__(self) -> str:
        lines = [line for line in self.diff().split("\n") if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        added = sum(line[:1] == "+" for line in lines)
        words = f"{counted(added, 'line')} more, {len(lines) - added} fewer" if self.changed else "nothing to do"
        return f"{self.name:20} {self.ms:8.2f} ms  {words}"

    __repr__ = __str__


def llvm_passes(text: str, target: CpuTarget, names: Sequence[str] = PASSES) -> Iterator[LLVMStep]:
    """Run passes of LLVM over a module of LLVM IR; RelayValueError for a name that is none of llvmlite's passes."""
    llvm = _llvm()
    module, machine = _parse(text, target)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    with module:
        for name in names:
            manager = llvm.create_new_module_pass_manager()
            known = [n[4:-5] for n in dir(manager) if n.startswith("add_") and n.endswith("_pass")]
            if name not in known:
                raise RelayValueError(
                    f"LLVM has no pass `{name}` here", code="codegen.llvm-pass", help=did_you_mean(name, known) or ""
                )
            getattr(manager, f"add_{name}_pass")()
            before, start = str(module), time.perf_counter()
            manager.run(module, builder)
            yield LLVMStep(name, 1e3 * (time.perf_counter() - start), before, str(module))


def optimized(text: str, target: CpuTarget) -> str:
    """What LLVM's passes would make of a module: what each did, then the text that they leave."""
    steps = list(llvm_passes(text, target))
    head = [
        "; relay.build runs no LLVM IR passes: the text goes to the code generator as it is written.",
        "; This is what they would make of it.",
        *(f";   {step}" for step in steps),
    ]
    return "\n".join([*head, steps[-1].after])
