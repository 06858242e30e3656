"""What a network looked like on its way down: Relay function, loops, LLVM IR and assembly of every kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relaylab.codegen.jit import emit_assembly
from relaylab.codegen.kernel import Kernel, module_text
from relaylab.codegen.target import Target
from relaylab.ir import Function
from relaylab.ir.expr import node_text


@dataclass(frozen=True, slots=True)
class Stages:
    """The texts are made when they are asked for. `kernels` are those that serve each fused function, by its name."""

    target: Target
    functions: Mapping[str, Function]
    kernels: Mapping[str, Sequence[Kernel]]

    def __call__(self, stage: str, name: str) -> str:
        """The text of one stage of one fused function."""
        if stage == "relay":
            return node_text(self.functions[name])
        texts = {"loop": lambda k: k.loops, "llvm": self._llvm, "asm": self._asm}
        return "\n".join(texts[stage](kernel) for kernel in self.kernels[name])

    def _llvm(self, kernel: Kernel) -> str:
        return module_text([kernel], attributes=self.target.attributes)

    def _asm(self, kernel: Kernel) -> str:
        return emit_assembly(self._llvm(kernel), self.target)
