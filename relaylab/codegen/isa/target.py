"""The machine that code is made for: CPU features decide, the CPU's name only tunes.

CpuTarget.host()                                  this machine
CpuTarget.parse("llvm")                           the same
CpuTarget.parse("llvm -mattr=-avx512f")           this machine without AVX-512
CpuTarget.parse("llvm -mattr=+avx2,+fma")         baseline x86-64 plus these features
CpuTarget.parse("llvm -mcpu=skylake")             a CPU that LLVM knows: its feature level, tuned for it
CpuTarget.parse("llvm -num-cores=8")              this machine, large products divided for eight cores
CpuTarget.parse("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1")   another machine: code to look at and to export

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from functools import lru_cache

from relaylab.codegen.isa.cpus import ARCHITECTURES, Architecture
from relaylab.codegen.isa.families import ByteInstruction, Family, family_of
from relaylab.codegen.kernels.kernel import item_bytes
from relaylab.runtime.abi import MAX_THREADS
from relaylab.runtime.native import host_features, host_triple, same_machine
from relaylab.runtime.threads import available_processors
from relaylab.support.errors import RelayValueError
from relaylab.support.foreign import FOREIGN, READ_AS_CPU
from relaylab.support.table import did_you_mean


@dataclass(frozen=True, slots=True)
class CpuTarget:
    """A CPU for LLVM: its name (tuning), its feature string and what the kernels need to know of it.

    Large products are cut into work items for `cores` cores; any number of threads may do them, with the same result.
    """

    cpu: str
    features: str
    cores: int = field(default_factory=available_processors)
    triple: str = field(default_factory=host_triple)

    @staticmethod
    @lru_cache(maxsize=1)
    def host() -> CpuTarget:
        """The CPU this process runs on, by its features."""
        import llvmlite.binding as llvm

        have = sorted("+" + name for name, here in host_features().items() if here)
        return CpuTarget(llvm.get_host_cpu_name(), ",".join(have))

    @staticmethod
    def parse(text: str | CpuTarget | None = None) -> CpuTarget:
        """A target from "llvm -mcpu=... -mattr=..."; None and "llvm" are the host. Raises RelayValueError."""
        if isinstance(text, CpuTarget):
            return text
        options = _options(text or "llvm")
        triple = _triple(options.get("-mtriple", ""))
        architecture = architecture_of(triple)
        attributes = [a for a in options.get("-mattr", "").split(",") if a]
        for attribute in attributes:
            _check_feature(attribute, architecture, triple)
        cpu = options.get("-mcpu", "")
        # Only Strassen's kernels look at it: each item makes sums anew, so there are as few items as keep the cores
        # at work.
        cores = _cores(options["-num-cores"]) if "-num-cores" in options else available_processors()
        here = triple == host_triple()
        if here and (cpu in ("native", "host") or (not cpu and all(a[0] == "-" for a in attributes))):
            host = CpuTarget.host()
            return CpuTarget(host.cpu, ",".join([host.features, *attributes]) if attributes else host.features, cores)
        try:
            _check_cpu(cpu, architecture)
        except RelayValueError:
            if not FOREIGN.read(f"the CPU `{cpu}`"):
                raise
            return CpuTarget(CpuTarget.host().cpu, CpuTarget.host().features, cores)
        return CpuTarget(cpu or architecture.baseline, ",".join(attributes), cores, triple)

    @property
    def facts(self) -> Family:
        """What is known of its family: the row of the table in `isa/families.py`."""
        return _facts(self.cpu, self.features, self.triple)

    @property
    def isa(self) -> str:
        """The kernel family: "avx512", "avx2" (with FMA), "neon" or "generic" (SSE2)."""
        return self.facts.name

    @property
    def vector_bytes(self) -> int:
        """The width of a vector register."""
        return self.facts.vector_bytes

    @property
    def registers(self) -> int:
        """The number of vector registers."""
        return self.facts.registers

    def lanes(self, dtype: str) -> int:
        """How many elements of `dtype` a vector register holds."""
        return self.vector_bytes // item_bytes(dtype)

    @property
    def converts_halves(self) -> bool:
        """Are there instructions between float16 and float32?"""
        return self.facts.halves in ("", *self.needs)

    @property
    def byte_products(self) -> ByteInstruction:
        """What products of bytes are made of."""
        return next(how for feature, how in self.facts.bytes_by.items() if feature in ("", *self.needs))

    @property
    def byte_tiles(self) -> bool:
        """Are there tiles of bytes, and an instruction that multiplies them?"""
        return bool(self.facts.tiles_by) and self.facts.tiles_by.issubset(self.needs)

    @property
    def architecture(self) -> Architecture:
        """The instruction set."""
        return architecture_of(self.triple)

    @property
    def needs(self) -> tuple[str, ...]:
        """The CPU features that code for this target may use."""
        return _needs(self.cpu, self.features, self.triple)

    @property
    def stated(self) -> str:
        """Every feature for LLVM, which is told the baseline and no CPU: so none goes unlisted."""
        return ",".join([*("+" + name for name in self.needs), *(a for a in self.features.split(",") if a[:1] == "-")])

    @property
    def attributes(self) -> str:
        """The attribute group of every function compiled for this target."""
        bits = self.vector_bytes * 8
        return (
            f'"tune-cpu"="{self.cpu}" nounwind "no-trapping-math"="true" "frame-pointer"="none" '
            f'"prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
        )

    @property
    def key(self) -> str:
        """What object code depends on, as one string."""
        return f"{self.triple}|{self.cpu}|{self.stated}|{self.cores}"

    def __str__(self) -> str:
        attributes = f" -mattr={self.features}" if self.features else ""
        cores = f" -num-cores={self.cores}" if self.cores != available_processors() else ""
        triple = "" if self.triple == host_triple() else f" -mtriple={self.triple}"
        return f"llvm{triple} -mcpu={self.cpu}{attributes}{cores}"


def architecture_of(triple: str) -> Architecture:
    """The instruction set of a triple that can be compiled for."""
    return next(a for a in ARCHITECTURES if triple.startswith(a.spellings))


def _triple(text: str) -> str:
    """The triple of a target: this machine's for "" and for all that runs here. Raises RelayValueError."""
    here = host_triple()
    if not text or same_machine(text, here):
        return here
    system = any(f"-{name}" in text for name in ("linux", "darwin", "macos", "windows"))
    if not system or not text.startswith(tuple(f"{s}-" for a in ARCHITECTURES for s in a.spellings if s)):
        raise RelayValueError(
            f"there is no code for the machine `{text}`",
            code="target.triple",
            help="machines are x86_64 and aarch64 with linux, macos or windows, such as -mtriple=aarch64-linux-gnu",
        )
    return text


@lru_cache(maxsize=64)
def _needs(cpu: str, features: str, triple: str) -> tuple[str, ...]:
    listed = features.split(",") if features else []
    # Every x86-64 has SSE2, every 64-bit ARM has NEON: who lists them, as the host does, lists everything.
    whole = not {"+sse2", "+neon"}.isdisjoint(listed)
    have = set(() if whole else architecture_of(triple).features(cpu))
    for name in listed:
        (have.add if name[0] == "+" else have.discard)(name[1:])
    return tuple(sorted(have))


@lru_cache(maxsize=64)
def _facts(cpu: str, features: str, triple: str) -> Family:
    return family_of(architecture_of(triple).name, frozenset(_needs(cpu, features, triple)))


def _check_feature(attribute: str, architecture: Architecture, triple: str) -> None:
    sign, name = attribute[0], attribute[1:]
    if sign not in "+-":
        raise RelayValueError(
            f"CPU feature `{attribute}` needs a sign",
            code="target.feature",
            help="write -mattr=+avx2,+fma or -mattr=-avx512f",
        )
    here = architecture is architecture_of(host_triple())
    known = architecture.known | (host_features().keys() if here else set())
    if name not in known:
        raise RelayValueError(
            f"there is no CPU feature `{name}`",
            code="target.feature",
            help=did_you_mean(name, sorted(known)) or f"write -mattr=+{min(architecture.known)}",
        )
    if sign == "-" and name in architecture.permanent:
        raise RelayValueError(
            f"every {architecture.name} CPU has `{name}`: code cannot do without it",
            code="target.feature",
            help=f"leave out -{name}",
        )


def _check_cpu(cpu: str, architecture: Architecture) -> None:
    if cpu and cpu not in architecture.cpus:
        other = next((a for a in ARCHITECTURES if cpu in a.cpus), None)
        elsewhere = f"it is of another architecture: -mtriple={other.spellings[0]}-linux-gnu" if other else ""
        raise RelayValueError(
            f"there is no {architecture.name} CPU `{cpu}`",
            code="target.cpu",
            help=elsewhere or did_you_mean(cpu, architecture.cpus) or f"name one, such as -mcpu={architecture.example}",
        )


def _cores(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAX_THREADS):
        raise RelayValueError(
            f"`-num-cores={text}` is no number of cores",
            code="target.cores",
            help=f"write a whole number from 1 to {MAX_THREADS}",
        )
    return int(text)


FOREIGN_KINDS = frozenset(
    """c cuda opencl rocm metal vulkan nvptx webgpu hexagon ext_dev hybrid stackvm aocl aocl_sw_emu sdaccel
    intel_graphics mali bifrost adreno arm_cpu ccompiler composite""".split()
)
"""Targets of TVM that no code is made for."""


def is_foreign(kind: str) -> bool:
    """Whether the first word of a target is a kind of TVM, or the tag of a machine (`nvidia/jetson-nano`)."""
    return kind in FOREIGN_KINDS or "/" in kind


_ELSEWHERE = ("mtriple=", "device=", "mfloat-abi=", "target=")
_WITHOUT_MEANING = frozenset(
    """-keys -libs -model -jit -executor -runtime -system-lib -link-params -fast-math -unpacked-api -interface-api
    -mabi -host -tag""".split()
)
"""Options of TVM's targets that change nothing here."""


def _options(text: str) -> dict[str, str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise RelayValueError(
            f"the target `{text}` cannot be read: {error}", code="target.text", help="close the quotation mark"
        ) from None
    if not words or words[0] not in ("llvm", "cpu"):
        if words and is_foreign(words[0]):
            if FOREIGN.read(f"the target `{text}`"):
                return {}
            help = f'code is made for CPUs, through LLVM: target="llvm"; {READ_AS_CPU}'
            raise RelayValueError(f"there is no code for the target `{text}`", code="target.kind", help=help)
        raise RelayValueError(f"unknown target `{text}`", code="target.kind", help="targets begin with `llvm`")
    if any(word.lstrip("-").startswith(_ELSEWHERE) for word in words) and FOREIGN.read(f"the target `{text}`"):
        return {}
    options: dict[str, str] = {}
    for word in words[1:]:
        name, _, value = word.replace("--", "-", 1).partition("=")
        if name in _WITHOUT_MEANING and FOREIGN.as_cpu:
            continue
        if name not in ("-mcpu", "-mattr", "-mtriple", "-num-cores", "-opt-level"):
            raise RelayValueError(
                f"unknown target option `{word}`",
                code="target.option",
                help="known are -mcpu=<name>, -mattr=<+feature,-feature>, -mtriple=<machine> and -num-cores=<number>",
            )
        options[name] = value
    return options
