"""What the back end is made of: `MemoryView` (how an operand lies in memory) and `Kernel` (one native function).

Every kernel is `void @name(ptr %args, i64 %begin, i64 %end, i64 %thread)`. `args` points to an array of base
pointers in the order of `Kernel.operands`; the call does the work items [begin, end) of `Kernel.items`.
How the items are split over calls never changes a result.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from relaylab.loop.expr import ScalarExpr, Size, post_order
from relaylab.loop.program import LoopProgram
from relaylab.loop.program_builder import BufferLayout
from relaylab.loop.region import dense_strides
from relaylab.loop.scalar import DTYPES
from relaylab.loop.show import show
from relaylab.support.errors import RelayTypeError

ITEM_BYTES = {dtype: np.dtype(dtype).itemsize for dtype in DTYPES}


def item_bytes(dtype: str) -> int:
    """The size of one element in bytes; RelayTypeError for a dtype without native storage."""
    try:
        return ITEM_BYTES[dtype]
    except KeyError:
        raise RelayTypeError(f"no native storage for dtype `{dtype}`", code="codegen.dtype") from None


def channel_pitch(channels: int, dtype: str) -> int:
    """Elements between two pixels for a channels-last tensor that kernels with several pixels at once read.

    Pixels a large power of two apart fall into the same few sets of the first-level cache and drive each other out
    (measured: depthwise twice as slow at 256 channels and more, 1x1 convolutions up to 25 %); such pitches get one
    more cache line.
    """
    size = item_bytes(dtype)
    return channels + 64 // size if channels * size % 1024 == 0 else channels


@dataclass(frozen=True, slots=True)
class MemoryView(BufferLayout):
    """How an operand lies in memory; static. Strides and offset are in elements.

    `offset` leads from the buffer's base to element [0, ..., 0]. `halo` gives, per axis, how many
    elements before and after the logical range are mapped and hold zero (all zeros when empty).
    """

    halo: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def dense(shape: tuple[int, ...], dtype: str = "float32") -> MemoryView:
        """A row-major view without gaps."""
        return MemoryView(dtype, tuple(shape), dense_strides(tuple(shape)))

    @property
    def size(self) -> int:
        """The number of logical elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return item_bytes(self.dtype)

    @property
    def bytes(self) -> int:
        """Bytes of the logical elements (halo and gaps not counted)."""
        return self.size * self.itemsize

    def halo_of(self, axis: int) -> tuple[int, int]:
        """Zero elements (before, after) along `axis`."""
        return self.halo[axis] if self.halo else (0, 0)


LIKELY = 256  # what work is estimated by where a size is known at run time only
WorkPart = tuple[int, int, tuple[ScalarExpr, ...]]
"""Floating point operations, bytes of operands, and the lengths of the loops around them that sizes decide."""


def total_work(parts: Sequence[WorkPart], at: Callable[[ScalarExpr], int] = lambda size: LIKELY) -> tuple[int, int]:
    """The operations and bytes of all parts, where `at` says how long a loop is."""
    flops = moved = 0
    for operations, size, lengths in parts:
        times = math.prod([max(at(length), 0) for length in lengths])
        flops, moved = flops + times * operations, moved + times * size
    return flops, moved


@dataclass(frozen=True, slots=True)
class Routine:
    """A function that kernels call, as LLVM IR. Functions of equal text are one and have one name."""

    name: str
    text: str
    declares: frozenset[str]

    @staticmethod
    def by_content(name: str, text: str, declares: frozenset[str]) -> Routine:
        """The function of that text, named by it."""
        own = f"microkernel_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        return Routine(own, text.replace(f"void @{name}(", f"void @{own}(", 1), declares)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One native function over work items, as text, and what must be known to call, judge and show it.

    It calls the `routines`, which other kernels call too. `program` are its loops; the cache keeps LLVM's text only,
    from which they can be made again.
    """

    name: str
    text: str
    declares: frozenset[str]
    operands: tuple[str, ...]
    items: int
    scratch: ScalarExpr | int = 0
    flops: int = 0
    bytes: int = 0
    routines: tuple[Routine, ...] = ()
    open_items: ScalarExpr | None = field(default=None, compare=False)
    """The number of items where sizes decide it; `items` is 0 then."""
    open_work: tuple[WorkPart, ...] = field(default=(), repr=False, compare=False)
    """Where sizes decide how much `flops` and `bytes` are; those are an estimate then."""
    program: LoopProgram | None = field(default=None, repr=False, compare=False)

    @property
    def listing(self) -> str:
        """The function and those that it calls."""
        return "".join([self.text, *(routine.text for routine in self.routines)])

    def work(self, at: Callable[[ScalarExpr], int]) -> tuple[int, int]:
        """The operations and bytes of a run for the sizes that `at` tells."""
        return total_work(self.open_work, at) if self.open_work else (self.flops, self.bytes)

    def by_content(self, prefix: str) -> Kernel:
        """The same kernel named `prefix_<hash of its text>`: equal kernels get equal names.

        Texts do not say how many items, and how much scratch memory, sizes make: one for n rows is that for 2 * n.
        """
        # Equal layers of a network then are one kernel, and its object is found in the cache by any other network.
        whole = "".join([self.text, *(said(x) for x in (self.open_items, self.scratch) if isinstance(x, ScalarExpr))])
        name = f"{prefix}_{hashlib.sha256(whole.encode()).hexdigest()[:12]}"
        # Only the definition is renamed: a call of a C function of that name stays.
        return replace(self, name=name, text=self.text.replace(f"void @{self.name}(", f"void @{name}(", 1))


def said(value: ScalarExpr) -> str:
    """An expression of sizes as text that is another for another value."""
    return f"{show(value)} of {[n.slot for n in post_order(value) if isinstance(n, Size)]}"


@dataclass(frozen=True, slots=True)
class KernelSequence:
    """Kernels to run one after another, and the bytes of the workspaces that they share by role."""

    kernels: tuple[Kernel, ...]
    workspaces: tuple[tuple[str, int], ...] = ()


def module_text(kernels: list[Kernel], attributes: str = "nounwind") -> str:
    """LLVM IR of one module: the distinct kernels and the functions that they call, declarations once, and attribute
    group #0."""
    every = [*kernels, *(routine for kernel in kernels for routine in kernel.routines)]
    return _module({f.name: f for f in every}, attributes)


def module_texts(kernel: Kernel, attributes: str) -> list[str]:
    """LLVM IR of the modules of which a kernel is linked: one for each function that others may share, and its own."""
    return [_module({f.name: f}, attributes) for f in (*kernel.routines, kernel)]


def _module(functions: Mapping[str, Kernel | Routine], attributes: str) -> str:
    declares = set[str]().union(*(f.declares for f in functions.values()))
    others = sorted(line for line in declares if line.partition("@")[2].partition("(")[0] not in functions)
    return "\n".join([*others, *(f.text for f in functions.values()), f"\nattributes #0 = {{ {attributes} }}", ""])
