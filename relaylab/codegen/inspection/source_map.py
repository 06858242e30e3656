"""A kernel's instructions and the Relay nodes that they come from, and how many know theirs.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, module_text
from relaylab.codegen.llvm.debug_lines import assembly_parts, lines_with_parts, with_debug_lines
from relaylab.codegen.llvm.jit import emit_assembly
from relaylab.ir import Call, Constant, Expr
from relaylab.ir.op import op_name

LOOPS = "loops and addresses"
UNKNOWN = "no place"


@dataclass(frozen=True)
class SourceMap:
    """A kernel with its parts: `nodes[k]` is the expression that part k comes from, None for loops that all share."""

    kernel: Kernel
    nodes: tuple[Expr | None, ...]
    target: CpuTarget

    def title(self, part: int) -> str:
        """What a part is called: its operator; -1 is the code that LLVM adds without saying for what."""
        return UNKNOWN if part < 0 else title_of(self.nodes[part])

    @cached_property
    def llvm(self) -> list[tuple[str, int]]:
        """The lines of the LLVM IR of its functions with the part of each, -1 for lines that are no instructions."""
        return list(lines_with_parts(self.kernel.listing.rstrip("\n")))

    @cached_property
    def asm(self) -> list[tuple[str, int]]:
        """The instructions of the code that runs, with the part of each, -1 where LLVM gives no place."""
        return [(line, part) for _, line, part in self._functions]

    @cached_property
    def _functions(self) -> list[tuple[str, str, int]]:
        text = with_debug_lines(module_text([self.kernel], attributes=self.target.attributes))
        return assembly_parts(emit_assembly(text, self.target))

    @property
    def assembly(self) -> list[tuple[str, int]]:
        """The instructions of `asm` below the name of the function they are in: the kernel, or one that it calls."""
        found, named = list[tuple[str, int]](), ""
        for function, line, part in self._functions:
            if function != named:
                found.append((f"{function}:", -1))
                named = function
            found.append((line, part))
        return found

    def counts(self) -> Counter[str]:
        """Instructions of the assembly by what they belong to."""
        return Counter(self.title(part) for _, part in self.asm)

    def known(self) -> int:
        """Instructions of the assembly that know their Relay node."""
        return sum(part >= 0 and self.nodes[part] is not None for _, part in self.asm)

    def annotated(self) -> str:
        """The assembly, each instruction with what it belongs to."""
        lines = [(line.replace("\t", " "), self.title(part)) for line, part in self.assembly]
        width = min(60, max((len(line) for line, _ in lines), default=0))
        body = (line if line.endswith(":") else f"  {line:<{width}}  # {title}" for line, title in lines)
        return "\n".join([*body, ""])


def title_of(node: Expr | None) -> str:
    """What an expression is called in lists."""
    if isinstance(node, Call):
        return op_name(node)
    return "constant" if isinstance(node, Constant) else LOOPS


def coverage(kernels: Sequence[SourceMap]) -> str:
    """How many instructions of some kernels know their Relay nodes, in words."""
    total = sum(len(k.asm) for k in kernels)
    known = sum(k.known() for k in kernels)
    counts: Counter[str] = sum((k.counts() for k in kernels), Counter())
    share = 100 * known / total if total else 100.0
    return f"{known} of {total} instructions ({share:.0f} %) know their Relay nodes: " + ", ".join(
        f"{name} {count}" for name, count in counts.most_common()
    )
