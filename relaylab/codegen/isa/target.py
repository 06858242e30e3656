"""The machine that code is made for: CPU features decide, the CPU's name only tunes.

CpuTarget.host()                                  this machine
CpuTarget.parse("llvm")                           the same
CpuTarget.parse("llvm -mattr=-avx512f")           this machine without AVX-512
CpuTarget.parse("llvm -mattr=+avx2,+fma")         baseline x86-64 plus these features
CpuTarget.parse("llvm -mcpu=skylake")             a CPU that LLVM knows: its feature level, tuned for it
CpuTarget.parse("llvm -num-cores=8")              this machine, large products divided for eight cores

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from functools import lru_cache

from relaylab.codegen.isa.cpus import BASELINE, LEVEL_OF, LEVELS, PERMANENT
from relaylab.codegen.kernels.kernel import item_bytes
from relaylab.runtime.abi import MAX_THREADS
from relaylab.runtime.device import FOREIGN, READ_AS_CPU
from relaylab.runtime.threads import available_processors
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean

_AVX2 = ("avx2", "fma")
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl")


@dataclass(frozen=True, slots=True)
class CpuTarget:
    """A CPU for LLVM: its name (tuning), its feature string and what the kernels need to know of it.

    Large products are cut into work items for `cores` cores; any number of threads may do them, with the same result.
    """

    cpu: str
    features: str
    cores: int = field(default_factory=available_processors)

    @staticmethod
    def host() -> CpuTarget:
        """The CPU this process runs on, by its features."""
        return _host()

    @staticmethod
    def parse(text: str | CpuTarget | None = None) -> CpuTarget:
        """A target from "llvm -mcpu=... -mattr=..."; None and "llvm" are the host. Raises RelayValueError."""
        if isinstance(text, CpuTarget):
            return text
        options = _options(text or "llvm")
        attributes = [a for a in options.get("-mattr", "").split(",") if a]
        for attribute in attributes:
            _check_feature(attribute)
        cpu = options.get("-mcpu", "")
        # Only Strassen's kernels look at it: each item makes sums anew, so there are as few items as keep the cores
        # at work.
        cores = _cores(options["-num-cores"]) if "-num-cores" in options else available_processors()
        if cpu in ("native", "host") or (not cpu and all(a[0] == "-" for a in attributes)):
            host = CpuTarget.host()
            return CpuTarget(host.cpu, ",".join([host.features, *attributes]) if attributes else host.features, cores)
        try:
            _check_cpu(cpu)
        except RelayValueError:
            if not FOREIGN.read(f"the CPU `{cpu}`"):
                raise
            return CpuTarget(CpuTarget.host().cpu, CpuTarget.host().features, cores)
        return CpuTarget(cpu or BASELINE, ",".join(attributes), cores)

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

    @property
    def second_cache(self) -> int:
        """The bytes of a core's second-level cache that loops are blocked for: those of the smaller such CPUs."""
        return (1 << 20) if self.isa == "avx512" else (512 << 10)

    def lanes(self, dtype: str) -> int:
        """How many elements of `dtype` a vector register holds."""
        return self.vector_bytes // item_bytes(dtype)

    @property
    def converts_halves(self) -> bool:
        """Are there instructions between float16 and float32 (F16C; every 64-bit ARM has them)?"""
        return not _x86() or "f16c" in _needs(self.cpu, self.features)

    @property
    def multiplies_bytes(self) -> bool:
        """Has it `vpdpbusd` in vectors of its width (AVX-512 VNNI, AVX-VNNI)?"""
        return {"avx512": "avx512vnni", "avx2": "avxvnni"}.get(self.isa) in _needs(self.cpu, self.features)

    @property
    def level(self) -> str:
        """The CPU that LLVM takes features from: on x86-64 a feature level, so that none goes unlisted."""
        return _level(self.cpu, self.features)

    @property
    def needs(self) -> tuple[str, ...]:
        """The CPU features that code for this target may use."""
        return tuple(sorted(_needs(self.cpu, self.features)))

    @property
    def attributes(self) -> str:
        """The attribute group of every function compiled for this target."""
        bits = self.vector_bytes * 8
        tune = f'"tune-cpu"="{self.cpu}" ' if self.cpu != self.level else ""
        return (
            f'{tune}nounwind "no-trapping-math"="true" "frame-pointer"="none" '
            f'"prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
        )

    @property
    def key(self) -> str:
        """What object code depends on, as one string."""
        return f"{self.level}|{self.cpu}|{self.features}|{self.cores}"

    def __str__(self) -> str:
        attributes = f" -mattr={self.features}" if self.features else ""
        cores = f" -num-cores={self.cores}" if self.cores != available_processors() else ""
        return f"llvm -mcpu={self.cpu}{attributes}{cores}"


@lru_cache(maxsize=64)
def _level(cpu: str, features: str) -> str:
    if not _x86():
        return cpu
    return BASELINE if _lists_all(features) else LEVEL_OF.get(cpu, BASELINE)


def _lists_all(features: str) -> bool:
    """Is it a full list, as the host's? Then the CPU's name adds nothing."""
    # Every x86-64 has SSE2, every 64-bit ARM has NEON: who lists them lists everything.
    return not {"+sse2", "+neon"}.isdisjoint(features.split(","))


@lru_cache(maxsize=64)
def _needs(cpu: str, features: str) -> frozenset[str]:
    have: set[str] = set(() if _lists_all(features) else LEVELS.get(_level(cpu, features), ()))
    for name in filter(None, features.split(",")):
        (have.add if name[0] == "+" else have.discard)(name[1:])
    return frozenset(have)


@lru_cache(maxsize=64)
def _isa(cpu: str, features: str) -> str:
    have = _needs(cpu, features)
    if not have >= set(_AVX2):
        return "generic"
    return "avx512" if have >= set(_AVX512) else "avx2"


@lru_cache(maxsize=1)
def _known_features() -> dict[str, bool]:
    """Every feature that LLVM knows on this kind of machine, and whether it is here."""
    import llvmlite.binding as llvm

    return dict(llvm.get_host_cpu_features())


@lru_cache(maxsize=1)
def _x86() -> bool:
    import llvmlite.binding as llvm

    return llvm.get_process_triple().startswith("x86_64")


def _check_feature(attribute: str) -> None:
    sign, name = attribute[0], attribute[1:]
    if sign not in "+-":
        raise RelayValueError(
            f"CPU feature `{attribute}` needs a sign",
            code="target.feature",
            help="write -mattr=+avx2,+fma or -mattr=-avx512f",
        )
    if name not in _known_features():
        raise RelayValueError(
            f"there is no CPU feature `{name}`",
            code="target.feature",
            help=did_you_mean(name, _known_features()) or "write -mattr=+avx2,+fma",
        )
    if sign == "-" and _x86() and name in PERMANENT:
        raise RelayValueError(
            f"every x86-64 CPU has `{name}`: code cannot do without it",
            code="target.feature",
            help=f"leave out -{name}",
        )


def _check_cpu(cpu: str) -> None:
    if cpu and _x86() and cpu not in LEVEL_OF:
        raise RelayValueError(
            f"there is no x86-64 CPU `{cpu}`",
            code="target.cpu",
            help=did_you_mean(cpu, LEVEL_OF) or "name a feature level, such as -mcpu=x86-64-v3",
        )


def _cores(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAX_THREADS):
        raise RelayValueError(
            f"`-num-cores={text}` is no number of cores",
            code="target.cores",
            help=f"write a whole number from 1 to {MAX_THREADS}",
        )
    return int(text)


@lru_cache(maxsize=1)
def _host() -> CpuTarget:
    import llvmlite.binding as llvm

    features = _known_features()
    return CpuTarget(llvm.get_host_cpu_name(), ",".join(sorted("+" + name for name, on in features.items() if on)))


FOREIGN_KINDS = frozenset(
    """c cuda opencl rocm metal vulkan nvptx webgpu hexagon ext_dev hybrid stackvm aocl aocl_sw_emu sdaccel
    intel_graphics mali bifrost adreno arm_cpu ccompiler composite""".split()
)
"""Targets of TVM that no code is made for."""
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
        if words and words[0] in FOREIGN_KINDS:
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
        if name not in ("-mcpu", "-mattr", "-num-cores", "-opt-level"):
            raise RelayValueError(
                f"unknown target option `{word}`",
                code="target.option",
                help="known are -mcpu=<name>, -mattr=<+feature,-feature> and -num-cores=<number>",
            )
        options[name] = value
    return options
