"""The CPUs that LLVM knows, of two architectures, and the features that code for each of them uses.

Code for a CPU uses the features of its level, and the products of bytes that it has; it is tuned for its name. So a
file says exactly what it needs: what LLVM would add for one CPU (half precision arithmetic, byte permutations …) is
nowhere listed.
Source: System V ABI, AMD64 supplement, "Micro-Architecture Levels"; the `-mcpu=help` of LLVM 22.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

BASELINE = "x86-64"
_V1 = ("64bit", "sse", "sse2", "cx8", "cmov", "fxsr", "mmx")
_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_NEON = ("fp-armv8", "neon")


@dataclass(frozen=True, slots=True)
class Architecture:
    """An instruction set. `cpus` maps the name of each CPU to its level, `levels` that to its features.

    `permanent` features cannot be taken away, `known` ones can be named in targets; `example` is a CPU for messages,
    `spellings` are what triples begin with.
    """

    name: str
    baseline: str
    levels: Mapping[str, tuple[str, ...]]
    cpus: Mapping[str, str]
    permanent: frozenset[str]
    known: frozenset[str]
    example: str
    spellings: tuple[str, ...]

    def features(self, cpu: str) -> tuple[str, ...]:
        """The features of a CPU; of none, and of names that are new, those of the baseline."""
        return self.levels[self.cpus.get(cpu, self.baseline)]


def _by_name(names: Mapping[str, str]) -> dict[str, str]:
    return {name: level for level, several in names.items() for name in several.split()}


X86 = Architecture(
    "x86-64",
    BASELINE,
    {
        BASELINE: (),
        "x86-64-v2": _V2,
        "x86-64-v3": _V3,
        "x86-64-v3, avxvnni": (*_V3, "avxvnni"),
        "x86-64-v4": _V4,
        "x86-64-v4, avx512vnni": (*_V4, "avx512vnni"),
        "x86-64-v4, amx": (*_V4, "avx512vnni", "amx-tile", "amx-int8"),
    },
    _by_name(
        {
            BASELINE: "x86-64 generic nocona core2 penryn bonnell atom k8 opteron athlon64 athlon-fx k8-sse3"
            " opteron-sse3 athlon64-sse3 amdfam10 barcelona btver1",
            "x86-64-v2": "x86-64-v2 silvermont slm goldmont goldmont-plus tremont nehalem corei7 westmere sandybridge"
            " corei7-avx ivybridge core-avx-i btver2 bdver1 bdver2 bdver3",
            "x86-64-v3": "x86-64-v3 haswell core-avx2 broadwell skylake knl knm bdver4 znver1 znver2 znver3",
            "x86-64-v3, avxvnni": "alderlake raptorlake meteorlake gracemont arrowlake arrowlake-s lunarlake"
            " pantherlake sierraforest grandridge clearwaterforest",
            "x86-64-v4": "x86-64-v4 skylake-avx512 skx cannonlake",
            "x86-64-v4, avx512vnni": "cascadelake cooperlake icelake-client rocketlake icelake-server tigerlake"
            " znver4 znver5",
            "x86-64-v4, amx": "sapphirerapids emeraldrapids graniterapids graniterapids-d diamondrapids",
        }
    ),
    frozenset(_V1),
    frozenset((*_V1, *_V4, "avx512vnni", "avxvnni", "avx512bf16", "avx512fp16", "amx-tile", "amx-int8", "amx-bf16")),
    "x86-64-v3",
    ("x86_64", "amd64"),
)

AARCH64 = Architecture(
    "AArch64",
    "generic",
    {"generic": _NEON, "dotprod": (*_NEON, "dotprod"), "i8mm": (*_NEON, "dotprod", "i8mm")},
    _by_name(
        {
            "generic": "generic cortex-a34 cortex-a35 cortex-a53 cortex-a57 cortex-a72 cortex-a73 a64fx carmel kryo"
            " exynos-m3 falkor saphira thunderx thunderxt88 thunderx2t99 apple-a7 apple-a8 apple-a9 apple-a10"
            " apple-a11 apple-a12 cyclone",
            "dotprod": "cortex-a55 cortex-a75 cortex-a76 cortex-a77 cortex-a78 cortex-a78c cortex-x1 cortex-x1c"
            " neoverse-n1 neoverse-e1 apple-a13 apple-a14 apple-m1 ampere1 exynos-m4 exynos-m5 tsv110",
            "i8mm": "neoverse-v1 neoverse-v2 neoverse-v3 neoverse-n2 neoverse-n3 neoverse-512tvb cortex-a510"
            " cortex-a710 cortex-a715 cortex-a720 cortex-x2 cortex-x3 cortex-x4 apple-a15 apple-a16 apple-a17"
            " apple-m2 apple-m3 apple-m4 ampere1a ampere1b",
        }
    ),
    frozenset(_NEON),
    frozenset((*_NEON, "dotprod", "i8mm", "fullfp16", "bf16", "crc", "lse", "rdm", "aes", "sha2", "sve", "sve2")),
    "cortex-a72",
    ("aarch64", "arm64"),
)

OTHER = Architecture("", "", {"": ()}, {}, frozenset(), frozenset(), "", ("",))  # this machine, if it is neither
ARCHITECTURES = (X86, AARCH64, OTHER)
