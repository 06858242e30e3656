"""Memory for compiled code: zeroed, aligned to 64 bytes, on huge pages where the system gives them.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import sys
from functools import lru_cache

import numpy as np

from relaylab.support.errors import RelayError
from relaylab.support.memory import give_back_files

ALIGNMENT = 64
HUGE_PAGE = 2 << 20
SMALL = 64 << 10
"""So many bytes the allocator has at hand: a result takes new ones in less time than lending what is kept takes."""
# Shared pages, mmap's default, are never huge on most systems, and a forked child would write into ours.
PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}

MAX_RANK = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32  # numpy's


class OutOfMemory(RelayError, MemoryError):
    """The system does not give the memory that was asked for."""


def aligned(nbytes: int, what: str = "an array") -> np.ndarray:
    """`nbytes` zeroed bytes (uint8) that start at a multiple of 64; OutOfMemory when there are none."""
    try:
        return _mapped(nbytes) if nbytes > SMALL else _small(nbytes)
    except (MemoryError, OSError, OverflowError, ValueError):
        raise OutOfMemory(
            f"cannot allocate {nbytes:,} bytes for {what}",
            code="runtime.out-of-memory",
            help="use smaller shapes or a smaller batch",
        ) from None


def give_back() -> None:
    """Give memory back to the system: what is freed, where the C library keeps it and can be asked (glibc), and the
    pages of files. It takes a millisecond.
    """
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)
    give_back_files()


@lru_cache(maxsize=1)
def _c_library() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if os.name == "posix" else None


def _told(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _read(array: np.ndarray) -> int:
    return ctypes.c_size_t.from_address(id(array) + object.__basicsize__).value


def _is_readable(probe: np.ndarray) -> bool:
    return sys.implementation.name == "cpython" and _read(probe) == _told(probe)


# CPython's arrays have it behind the header that all objects have: a tenth of the time that asking numpy takes.
address = _read if _is_readable(np.empty(1)) else _told
"""Where the first element of an array lies."""


def is_aligned(array: np.ndarray) -> bool:
    """Does it start at a multiple of 64?"""
    return address(array) % ALIGNMENT == 0


def aligned_like(shape: tuple[int, ...], dtype: np.dtype, what: str = "an array") -> np.ndarray:
    """A zeroed, aligned, row-major array."""
    count = 1
    for extent in shape:
        count *= extent
    buffer = aligned(max(1, count * dtype.itemsize), what)  # empty ones need an address
    try:
        return np.ndarray(shape, dtype, buffer=buffer)
    except ValueError:  # numpy multiplies the extents that are not 0, and finds no room for an index
        raise OutOfMemory(
            f"no array can have the shape {shape}: {what}",
            code="runtime.out-of-memory",
            help="use smaller shapes or a smaller batch",
        ) from None


def aligned_copy(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The same numbers, aligned and row-major."""
    nbytes = values.size * dtype.itemsize
    data = fresh(values.shape, dtype, nbytes)[0] if nbytes < HUGE_PAGE else aligned_like(values.shape, dtype)
    data[...] = values
    return data


def fresh(shape: tuple[int, ...], dtype: np.dtype, nbytes: int) -> tuple[np.ndarray, int]:
    """An array of whatever was there, aligned and row-major, and its address. Its memory is used again soon."""
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    place = address(raw)
    start = -place % ALIGNMENT
    return np.ndarray(shape, dtype, raw, start), place + start


def numbers_of(array: np.ndarray) -> memoryview:
    """The elements of a row-major array in a row: one is stored in a tenth of the time that an array takes."""
    return memoryview(array.reshape(-1).data)


def is_addressable(shape: tuple[int, ...], dtype: np.dtype | str) -> bool:
    """Whether numpy can have an array of this shape: its bytes are counted without the extents that are 0."""
    return (
        len(shape) <= MAX_RANK and math.prod(extent for extent in shape if extent) * np.dtype(dtype).itemsize < 1 << 63
    )


def _small(nbytes: int) -> np.ndarray:
    raw = np.zeros(nbytes + ALIGNMENT, np.uint8)  # numpy aligns to 16 only: take more, begin where it fits
    start = -address(raw) % ALIGNMENT
    return raw[start : start + nbytes]


def _mapped(nbytes: int) -> np.ndarray:
    """Anonymous pages; large blocks start on a huge page boundary."""
    large = nbytes >= HUGE_PAGE
    pages = mmap.mmap(-1, nbytes + (HUGE_PAGE if large else 0), **PRIVATE)
    raw = np.frombuffer(pages, np.uint8)
    if not large:
        return raw
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            pages.madvise(mmap.MADV_HUGEPAGE)
        except OSError:  # a kernel without transparent huge pages: normal pages serve as well
            pass
    start = -address(raw) % HUGE_PAGE
    return raw[start : start + nbytes]
