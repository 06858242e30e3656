"""Who may write to the memory of an array, arrays whose memory is a file, and those that nobody writes to.

Choices: docs/choices.md, Importing.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, BinaryIO, cast
from weakref import WeakKeyDictionary

import numpy as np

from relaylab.support.errors import RelayError


class ChangedFile(RelayError):
    """Weights lie in a file that has other content now."""


def may_change(array: np.ndarray) -> bool:
    """Whether someone can write to the memory of an array: to it, or to what it is a view of."""
    owner: Any = array
    while owner is not None:
        if isinstance(owner, np.ndarray) and owner.flags.writeable:
            return True
        owner = getattr(cast(object, owner), "base", None)
    return False


def map_file(file: BinaryIO, offset: int, length: int) -> memoryview:
    """Bytes of a file as pages that take memory when they are looked at; OSError, ValueError where that cannot be."""
    first = offset - offset % mmap.ALLOCATIONGRANULARITY
    pages = mmap.mmap(file.fileno(), offset - first + length, access=mmap.ACCESS_READ, offset=first)
    _files[pages] = os.path.abspath(file.name), _state(os.fstat(file.fileno()))
    return memoryview(pages)[offset - first :]


_files: WeakKeyDictionary[mmap.mmap, tuple[str, tuple[int, ...]]] = WeakKeyDictionary()
"""The pages of files: who looks at them again reads them again. Where each lies, and its state when it was mapped."""


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def files_under(arrays: Iterable[np.ndarray]) -> set[mmap.mmap]:
    """The pages of files in which some of the arrays lie."""
    return {pages for pages in map(_pages, arrays) if pages is not None} if _files else set()


def _pages(array: np.ndarray) -> mmap.mmap | None:
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    pages = owner.obj if isinstance(owner, memoryview) else None
    return pages if isinstance(pages, mmap.mmap) and pages in _files else None


def check_files(files: Iterable[mmap.mmap]) -> None:
    """ChangedFile unless these pages of files are what was mapped. A file that another was renamed over still is."""
    for path, before in {_files[pages] for pages in files}:
        with suppress(OSError):  # removed: what is mapped stays
            now = _state(os.stat(path))
            if now[:2] == before[:2] and now != before:
                raise ChangedFile(
                    f"{path} was written over since weights were read from it",
                    code="runtime.changed-file",
                    help="import the model again, and write new ones to other files, or rename them over old ones",
                )


def give_back_files() -> None:
    """Give the pages of files back to the system: they are read again where they are looked at."""
    if hasattr(mmap, "MADV_DONTNEED"):
        for pages in list(_files):
            pages.madvise(mmap.MADV_DONTNEED)


class TensorData(np.ndarray):
    """The read-only array of a constant; `.numpy()` is the plain array."""

    def numpy(self) -> np.ndarray:
        """The plain array; ChangedFile if it lies in a file that was written over."""
        if _files:
            check_files(files_under([self]))
        return self.view(np.ndarray)

    asnumpy = numpy


def as_array(data: object) -> np.ndarray[Any, np.dtype[Any]]:
    """An array from numbers, lists of them, an array, or what has `.numpy()`; its bytes in this machine's order."""
    array = np.asarray(getattr(data, "numpy", lambda: data)())
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def made_read_only(array: np.ndarray) -> TensorData:
    """An array that was just computed: nobody else writes to memory of its own, which need not be copied."""
    if array.flags.owndata:
        array.setflags(write=False)
    return read_only(array)


def read_only(data: object) -> TensorData:
    """The array, or a copy of it if somebody can write to its memory."""
    if type(data) is TensorData and not _files and not may_change(data):
        return data
    if may_change(array := as_array(data)):
        array = array.copy()
        array.setflags(write=False)
    return array.view(TensorData)
