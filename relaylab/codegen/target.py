"""The machine that code is made for: CPU features decide, the CPU's name only tunes.

    Target.host()                                  this machine
    Target.parse("llvm")                           the same
    Target.parse("llvm -mattr=-avx512f")           this machine without AVX-512
    Target.parse("llvm -mattr=+avx2,+fma")         baseline x86-64 plus these features
    Target.parse("llvm -mcpu=x86-64-v4")           what LLVM knows about a CPU
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import lru_cache

from relaylab.codegen.kernel import item_bytes
from relaylab.support.errors import RelayValueError

_AVX2 = ("avx2", "fma")
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl")
_CPU_FEATURES = {
    **dict.fromkeys(("x86-64", "x86-64-v2", "generic", "nehalem", "westmere", "sandybridge", "ivybridge"), ()),
    **dict.fromkeys(("x86-64-v3", "haswell", "broadwell", "skylake", "alderlake", "raptorlake", "meteorlake",
                     "znver1", "znver2", "znver3"), _AVX2),
    **dict.fromkeys(("x86-64-v4", "skylake-avx512", "cascadelake", "cooperlake", "icelake-client", "icelake-server",
                     "rocketlake", "tigerlake", "sapphirerapids", "graniterapids", "emeraldrapids",
                     "znver4", "znver5"), _AVX512),
}


@dataclass(frozen=True, slots=True)
class Target:
    """A CPU for LLVM: its name (tuning), its feature string and what the kernels need to know of it."""

    cpu: str
    features: str

    @staticmethod
    def host() -> Target:
        """The CPU this process runs on, by its features."""
        return _host()

    @staticmethod
    def parse(text: str | Target | None = None) -> Target:
        """A target from "llvm -mcpu=... -mattr=..."; None and "llvm" are the host. Raises RelayValueError."""
        if isinstance(text, Target):
            return text
        options = _options(text or "llvm")
        attributes = [a for a in options.get("-mattr", "").split(",") if a]
        for attribute in attributes:
            if attribute[0] not in "+-":
                raise RelayValueError(f"CPU feature `{attribute}` needs a sign", code="target.feature",
                                      help="write -mattr=+avx2,+fma or -mattr=-avx512f")
        cpu = options.get("-mcpu", "")
        if cpu in ("native", "host") or (not cpu and all(a[0] == "-" for a in attributes)):
            host = Target.host()
            return Target(host.cpu, ",".join([host.features, *attributes]) if attributes else host.features)
        return Target(cpu or "x86-64", ",".join(attributes))

    @property
    def isa(self) -> str:
        """The kernel family: "avx512", "avx2" (with FMA) or "generic" (vectors of 16 bytes)."""
        return _isa(self.cpu, self.features)

    @property
    def vector_bytes(self) -> int:
        """The width of a vector register."""
        return {"avx512": 64, "avx2": 32, "generic": 16}[self.isa]

    @property
    def registers(self) -> int:
        """The number of vector registers."""
        return 32 if self.isa == "avx512" else 16

    def lanes(self, dtype: str) -> int:
        """How many elements of `dtype` a vector register holds."""
        return self.vector_bytes // item_bytes(dtype)

    @property
    def attributes(self) -> str:
        """The attribute group of every function compiled for this target."""
        bits = self.vector_bytes * 8
        return (f'nounwind "no-trapping-math"="true" "frame-pointer"="none" '
                f'"prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"')

    @property
    def key(self) -> str:
        """What object code depends on, as one string."""
        return f"{self.cpu}|{self.features}"

    def __str__(self) -> str:
        attributes = f" -mattr={self.features}" if self.features else ""
        return f"llvm -mcpu={self.cpu}{attributes}"


@lru_cache(maxsize=64)
def _isa(cpu: str, features: str) -> str:
    names = [name for name in features.split(",") if name]
    inventory = "+sse2" in names or "+neon" in names  # a full list, as the host's: the CPU's name adds nothing
    have = set() if inventory else set(_CPU_FEATURES.get(cpu, ()))
    for name in names:
        (have.add if name[0] == "+" else have.discard)(name[1:])
    if not have >= set(_AVX2):
        return "generic"
    return "avx512" if have >= set(_AVX512) else "avx2"


@lru_cache(maxsize=1)
def _host() -> Target:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return Target(llvm.get_host_cpu_name(), ",".join(sorted("+" + name for name, on in features.items() if on)))


def _options(text: str) -> dict[str, str]:
    words = shlex.split(text)
    if not words or words[0] not in ("llvm", "cpu"):
        raise RelayValueError(f"unknown target `{text}`", code="target.kind", help="targets begin with `llvm`")
    options: dict[str, str] = {}
    for word in words[1:]:
        name, _, value = word.replace("--", "-", 1).partition("=")
        if name not in ("-mcpu", "-mattr", "-num-cores", "-opt-level"):
            raise RelayValueError(f"unknown target option `{word}`", code="target.option",
                                  help="known are -mcpu=<name> and -mattr=<+feature,-feature>")
        options[name] = value
    return options
