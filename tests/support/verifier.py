"""LLVM's verifier, which builds do without: the tests run it over what kernels are written as."""

from __future__ import annotations

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm import jit


def verify(text: str, target: CpuTarget) -> None:
    """Run the verifier over a module; RuntimeError with its findings."""
    module, _ = jit._parse(text, target)
    with module:
        module.verify()
