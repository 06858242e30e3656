"""The families of instruction sets, as one table: what every decision about kernels knows of a machine.

A target belongs to the first family of its architecture whose `needs` it has. Numbers of cycles and bytes are those
that the cost model was measured with on one machine of the family, or the next one's where none was at hand (NEON).

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from relaylab.codegen.isa.cpus import AARCH64, X86


@dataclass(frozen=True, slots=True)
class ByteInstruction:
    """How four products of bytes are added to an int32 (`loops/byte_products.py`).

    `whole`: by one instruction, or nearly. `rows` is the share of a tile's rows for which registers are left; `unroll`
    the steps of a loop's turn, 0 for as many as other products have.
    """

    name: str
    whole: bool
    rows: float = 1.0
    unroll: int = 0


VPDPBUSD, USDOT, SDOT = (ByteInstruction(name, True) for name in ("vpdpbusd", "usdot", "sdot"))
PMADDWD, SMULL = ByteInstruction("pmaddwd", False, 2 / 3), ByteInstruction("smull", False, 1 / 3, 1)


@dataclass(frozen=True, slots=True)
class Family:
    """A family, of an architecture or ("") of any: its registers, its instructions, what the cost model counts.

    `accumulators` are the most vectors of a register tile that LLVM keeps in registers, `spare` the registers that a
    step of it needs beside them and a row of weights. `bytes_by` maps a feature to the products of bytes that come
    with it, the best first; "" is every CPU. `halves` is the feature that converts float16, "" if every CPU does.
    """

    name: str
    architecture: str
    needs: frozenset[str]
    vector_bytes: int
    registers: int
    accumulators: int
    spare: int
    bytes_by: Mapping[str, ByteInstruction]
    halves: str
    scales: bool  # has it a scaling by powers of two, `vscalefps`?
    fuses: bool  # is a product and a sum one instruction, rounded once?
    indexed: bool  # may what is read into all lanes lie a register's distance from a pointer?
    second_cache: int  # bytes of a core's that loops are blocked for: those of the smaller such CPUs
    cold_bytes: float  # what a core reads from memory in a cycle, beside a product
    strassen_bytes: int  # of the sums of a block of rows of Strassen's products
    tiles_by: frozenset[str] = frozenset()  # the features that tiles of bytes come with; none: there are no such tiles


_PLAIN = {"": PMADDWD}
_AVX2 = ("avx2", "fma")
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl")
_NEON_BYTES = {"i8mm": USDOT, "dotprod": SDOT, "": SMULL}

# fmt: off
FAMILIES = (
    # At 28 accumulators (14 x 2, 7 x 4) AVX-512 runs at peak; from 30 on LLVM spills, and it runs at 16-76 %.
    Family("avx512", X86.name, frozenset(_AVX512), 64, 32, 28, 1, {"avx512vnni": VPDPBUSD, **_PLAIN},
           "f16c", True, True, True, 1 << 20, 7.0, 640 << 10, frozenset(("amx-tile", "amx-int8"))),
    # One register more to load ahead.
    Family("avx2", X86.name, frozenset(_AVX2), 32, 16, 12, 2, {"avxvnni": VPDPBUSD, **_PLAIN},
           "f16c", False, True, True, 512 << 10, 3.5, 160 << 10),
    Family("neon", AARCH64.name, frozenset(), 16, 32, 24, 2, _NEON_BYTES,
           "", False, True, False, 512 << 10, 3.5, 160 << 10),
    # Without a fused multiply-add one for products: SSE2, and whatever else has vectors of 16 bytes.
    Family("generic", "", frozenset(), 16, 16, 8, 3, _PLAIN,
           "f16c", False, False, False, 512 << 10, 1.75, 160 << 10),
)
# fmt: on


def family_of(architecture: str, features: frozenset[str]) -> Family:
    """The family of a machine with these features."""
    return next(f for f in FAMILIES if f.architecture in ("", architecture) and f.needs <= features)
