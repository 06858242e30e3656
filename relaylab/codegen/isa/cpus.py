"""The x86-64 CPUs that LLVM knows, and the feature level of the psABI that each of them has.

Code for a CPU uses the features of its level and is tuned for its name, so that a file says exactly what it needs:
what LLVM would add for one CPU (half precision arithmetic, byte permutations …) is nowhere listed.
Source: System V ABI, AMD64 supplement, "Micro-Architecture Levels".

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

BASELINE = "x86-64"
_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
LEVELS = {BASELINE: (), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
PERMANENT = ("64bit", "sse", "sse2", "cx8", "cmov", "fxsr", "mmx")

_NAMES = {
    BASELINE: "x86-64 generic nocona core2 penryn bonnell atom k8 opteron athlon64 athlon-fx k8-sse3 opteron-sse3"
    " athlon64-sse3 amdfam10 barcelona btver1",
    "x86-64-v2": "x86-64-v2 silvermont slm goldmont goldmont-plus tremont nehalem corei7 westmere sandybridge"
    " corei7-avx ivybridge core-avx-i btver2 bdver1 bdver2 bdver3",
    "x86-64-v3": "x86-64-v3 haswell core-avx2 broadwell skylake alderlake raptorlake meteorlake gracemont arrowlake"
    " arrowlake-s lunarlake pantherlake sierraforest grandridge clearwaterforest knl knm bdver4 znver1"
    " znver2 znver3",
    "x86-64-v4": "x86-64-v4 skylake-avx512 skx cascadelake cooperlake cannonlake icelake-client rocketlake"
    " icelake-server tigerlake sapphirerapids emeraldrapids graniterapids graniterapids-d diamondrapids znver4 znver5",
}
LEVEL_OF = {name: level for level, names in _NAMES.items() for name in names.split()}
