"""The file of a compiled module: named sections behind a checked header.

    8 bytes   mark  "\\x89RLAB\\r\\n\\x1a"  (a changed line ending or a text editor damages it visibly)
    u32       format version
    u32       number of sections
    u64       length of the whole file
    per section: 16 bytes name, u64 offset, u64 length, 32 bytes SHA-256 of its content
    32 bytes  SHA-256 of everything above
    sections, each at a multiple of 64

Nothing in it is executed or interpreted before its digest has been compared.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from relaylab.runtime.memory import aligned
from relaylab.support.errors import RelayError

MARK = b"\x89RLAB\r\n\x1a"
VERSION = 1
ALIGN = 64
HEAD = struct.Struct("<8sIIQ")
ROW = struct.Struct("<16sQQ32s")
DIGEST = 32
PIECE = 1 << 20  # bytes that are read at once to verify a section
MOST_AT_ONCE = 1 << 30  # systems read no more than 2 GB at once
MAX_SECTIONS = 64
Content = bytes | bytearray | memoryview | np.ndarray


class ArtifactError(RelayError, ValueError):
    """A file that is no compiled module, is damaged, or belongs to another version or machine."""


@dataclass(frozen=True, slots=True)
class Section:
    """Where a section lies and what its content hashes to."""

    name: str
    offset: int
    length: int
    digest: bytes


def write(path: str | os.PathLike[str], sections: dict[str, Content]) -> None:
    """Write the file whole or not at all: into a temporary neighbour, then renamed over `path`."""
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent or ".")
    except OSError as error:
        raise _unwritable(target, error) from None
    try:
        with os.fdopen(handle, "wb") as file:
            _write_all(file, {key: _flat(value) for key, value in sections.items()})
        os.chmod(name, 0o666 & ~_umask())  # mkstemp lets only the owner read; others get what `open` would give
        os.replace(name, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError):
            raise _unwritable(target, error) from None
        raise


def _flat(content: Content) -> memoryview:
    if isinstance(content, np.ndarray):
        return np.ascontiguousarray(content).reshape(-1).view(np.uint8).data
    return memoryview(content).cast("B")


def _write_all(file: BinaryIO, sections: dict[str, memoryview]) -> None:
    at = _header_size(len(sections))
    rows: list[bytes] = []
    for name, content in sections.items():
        at += -at % ALIGN
        rows.append(ROW.pack(name.encode(), at, len(content), hashlib.sha256(content).digest()))
        at += len(content)
    head = HEAD.pack(MARK, VERSION, len(sections), at) + b"".join(rows)
    file.write(head + hashlib.sha256(head).digest())
    for content in sections.values():
        file.write(bytes(-file.tell() % ALIGN))
        file.write(content)


def _digest(content: np.ndarray) -> bytes:
    return hashlib.sha256(content.data).digest()


def _read_at(file: int, memory: memoryview, offset: int) -> int:
    """Read into `memory` what stands at `offset` of a file; the number of bytes."""
    if hasattr(os, "preadv"):
        return os.preadv(file, [memory], offset)
    os.lseek(file, offset, os.SEEK_SET)
    found = os.read(file, len(memory))
    memory[: len(found)] = found
    return len(found)


def _header_size(count: int) -> int:
    return HEAD.size + count * ROW.size + DIGEST


def _umask() -> int:
    mask = os.umask(0)  # there is no way to read it but to set it
    os.umask(mask)
    return mask


class ArchiveReader:
    """An open file whose header has been checked; `read` gives the verified content of a section.

    It stays open as long as this lives, so that what another file is renamed over can still be read. Nothing is mapped:
    pages of a file that is cut short would end the process.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = str(path)
        try:
            self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except (OSError, ValueError) as error:  # ValueError: a name with a null character
            raise self._unreadable(error) from None
        weakref.finalize(self, os.close, self._file)
        self.sections = self._header(os.fstat(self._file).st_size)

    def read(self, name: str) -> np.ndarray:
        """The bytes of a section in aligned memory; ArtifactError unless they are what was written."""
        section = self.section(name)
        content = aligned(section.length, f"the section `{name}` of {self.path}")
        if self._fill(content, section.offset) != section.length or _digest(content) != section.digest:
            raise self._changed(name)
        return content

    def check(self, name: str) -> None:
        """Read a section piece by piece and keep nothing; ArtifactError unless it is what was written."""
        section, total = self.section(name), hashlib.sha256()
        piece = np.empty(min(section.length, PIECE), np.uint8)
        for at in range(0, section.length, PIECE):
            part = piece[: min(PIECE, section.length - at)]
            if self._fill(part, section.offset + at) != len(part):
                break
            total.update(part.data)
        if total.digest() != section.digest:
            raise self._changed(name)

    def section(self, name: str) -> Section:
        """Where a section lies; ArtifactError if there is none of that name."""
        if name not in self.sections:
            raise self.damaged(f"the section `{name}` is missing")
        return self.sections[name]

    def _changed(self, name: str) -> ArtifactError:
        return self.damaged(f"the section `{name}` has changed since it was written")

    def _fill(self, memory: np.ndarray, offset: int) -> int:
        """Read into all of `memory`; the number of bytes that there were. A fork shares no position with its parent."""
        done = 0
        while done < len(memory):
            try:
                count = _read_at(self._file, memory[done : done + MOST_AT_ONCE].data, offset + done)
            except OSError as error:
                raise self._unreadable(error) from None
            if count == 0:
                break
            done += count
        return done

    def _unreadable(self, error: OSError | ValueError) -> ArtifactError:
        reason = getattr(error, "strerror", None) or str(error)
        return ArtifactError(f"cannot read `{self.path}`: {reason}", code="runtime.unreadable-file")

    def _head(self, length: int, offset: int) -> bytes:
        """Up to `length` bytes of the header."""
        found = np.empty(length, np.uint8)
        return found[: self._fill(found, offset)].tobytes()

    def _header(self, size: int) -> dict[str, Section]:
        head = self._head(HEAD.size, 0)
        if head[: len(MARK)] != MARK[: len(head)] or len(head) < len(MARK):
            raise self._foreign(head)
        if len(head) < HEAD.size:
            raise self._cut(size)
        _, version, count, length = HEAD.unpack(head)
        self._check_version(version)
        if count > MAX_SECTIONS:
            raise self.damaged(f"the header claims {count} sections")
        rows = self._head(count * ROW.size, HEAD.size)
        digest = self._head(DIGEST, HEAD.size + len(rows))
        if len(digest) < DIGEST:
            raise self._cut(size)
        if hashlib.sha256(head + rows).digest() != digest:
            raise self.damaged("the header has changed since it was written")
        if size != length:
            raise self._cut(size, length)
        return self._table(rows, length)

    def _table(self, rows: bytes, size: int) -> dict[str, Section]:
        table: dict[str, Section] = {}
        for raw, offset, length, digest in ROW.iter_unpack(rows):
            name = raw.rstrip(b"\0").decode("ascii", "replace")
            if offset + length > size or name in table:
                raise self.damaged(f"the section `{name}` is out of place")
            table[name] = Section(name, offset, length, digest)
        return table

    def _check_version(self, version: int) -> None:
        if version == VERSION:
            return
        newer = version > VERSION
        raise ArtifactError(
            f"`{self.path}` has format {version}, this relaylab reads format {VERSION}",
            code="runtime.newer-file" if newer else "runtime.older-file",
            help="install a newer relaylab, or build and export the module again with this one"
            if newer
            else "build and export the module again with this relaylab",
        )

    def _foreign(self, head: bytes) -> ArtifactError:
        kinds = {
            b"\x7fELF": "a shared library of the system",
            b"PK\x03\x04": "a zip archive",
            b"\x1f\x8b": "a gzip archive",
            b"": "empty",
        }
        what = next((text for mark, text in kinds.items() if mark and head.startswith(mark)), "")
        what = "empty" if not head else what or "something else"
        return ArtifactError(
            f"`{self.path}` is not a compiled relaylab module: it is {what}",
            code="runtime.foreign-file",
            help="give a file that lib.export_library(path) wrote",
        )

    def _cut(self, size: int, length: int | None = None) -> ArtifactError:
        wanted = f"{length:,} bytes" if length is not None else "a whole header"
        return self.damaged(f"it should have {wanted} and has {size:,}")

    def damaged(self, why: str) -> ArtifactError:
        """The error for this file, with the reason `why`."""
        return ArtifactError(
            f"`{self.path}` is damaged: {why}",
            code="runtime.damaged-file",
            help="copy the file again, or build and export the module again",
        )


def _unwritable(path: Path, error: OSError) -> ArtifactError:
    return ArtifactError(
        f"cannot write `{path}`: {error.strerror or error}",
        code="runtime.unwritable-file",
        help="give a path in an existing directory that you may write to",
    )
