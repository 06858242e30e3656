"""The file of a compiled module: named sections behind a checked header.

    8 bytes   mark  "\\x89RLAB\\r\\n\\x1a"  (a changed line ending or a text editor damages it visibly)
    u32       format version
    u32       number of sections
    u64       length of the whole file
    per section: 16 bytes name, u64 offset, u64 length, 32 bytes SHA-256 of its content
    32 bytes  SHA-256 of everything above
    sections, each at a multiple of 64

Nothing in it is executed or interpreted before its digest has been compared.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
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
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError):
            raise _unwritable(target, error) from None
        raise


def _flat(content: Content) -> memoryview:
    if isinstance(content, np.ndarray):
        content = np.ascontiguousarray(content).reshape(-1).view(np.uint8)
    return memoryview(content).cast("B")


def _write_all(file: BinaryIO, sections: dict[str, memoryview]) -> None:
    at = _header_size(len(sections))
    rows = []
    for name, content in sections.items():
        at += -at % ALIGN
        rows.append(ROW.pack(name.encode(), at, len(content), hashlib.sha256(content).digest()))
        at += len(content)
    head = HEAD.pack(MARK, VERSION, len(sections), at) + b"".join(rows)
    file.write(head + hashlib.sha256(head).digest())
    for content in sections.values():
        file.write(bytes(-file.tell() % ALIGN))
        file.write(content)


def _digest(file: BinaryIO, length: int) -> bytes:
    """The digest of the next `length` bytes of a file, read piece by piece."""
    total = hashlib.sha256()
    while length:
        piece = file.read(min(length, PIECE))
        if not piece:
            break
        total.update(piece)
        length -= len(piece)
    return total.digest()


def _header_size(count: int) -> int:
    return HEAD.size + count * ROW.size + DIGEST


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class Reader:
    """An open file whose header has been checked; `read` gives the verified content of a section."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = str(path)
        with self._open() as file:
            self.sections = self._header(file, os.fstat(file.fileno()).st_size)

    def read(self, name: str) -> np.ndarray:
        """The bytes of a section in aligned memory; ArtifactError unless they are what was written."""
        section = self.sections.get(name)
        if section is None:
            raise self.damaged(f"the section `{name}` is missing")
        content = aligned(section.length, f"the section `{name}` of {self.path}")
        with self._open() as file:
            file.seek(section.offset)
            got = file.readinto(memoryview(content)) if section.length else 0
        if got != section.length or hashlib.sha256(content).digest() != section.digest:
            raise self.damaged(f"the section `{name}` has changed since it was written")
        return content

    def mapped(self, name: str) -> np.ndarray:
        """The bytes of a section, verified now but read from the file again when they are used; writes stay private."""
        section = self.sections.get(name)
        if section is None:
            raise self.damaged(f"the section `{name}` is missing")
        with self._open() as file:
            file.seek(section.offset)
            if not section.length:
                return np.empty(0, np.uint8)
            if _digest(file, section.length) != section.digest:
                raise self.damaged(f"the section `{name}` has changed since it was written")
            return np.asarray(np.memmap(file, np.uint8, "c", section.offset, (section.length,)))

    def _open(self) -> BinaryIO:
        try:
            return open(self.path, "rb")
        except OSError as error:
            reason = error.strerror or str(error)
            raise ArtifactError(f"cannot read `{self.path}`: {reason}", code="runtime.unreadable-file") from None

    def _header(self, file: BinaryIO, size: int) -> dict[str, Section]:
        head = file.read(HEAD.size)
        if head[: len(MARK)] != MARK[: len(head)] or len(head) < len(MARK):
            raise self._foreign(head)
        if len(head) < HEAD.size:
            raise self._cut(size)
        _, version, count, length = HEAD.unpack(head)
        self._check_version(version)
        if count > MAX_SECTIONS:
            raise self.damaged(f"the header claims {count} sections")
        rows = file.read(count * ROW.size)
        digest = file.read(DIGEST)
        if len(digest) < DIGEST:
            raise self._cut(size)
        if hashlib.sha256(head + rows).digest() != digest:
            raise self.damaged("the header has changed since it was written")
        if size != length:
            raise self._cut(size, length)
        return self._table(rows, length)

    def _table(self, rows: bytes, size: int) -> dict[str, Section]:
        table = {}
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
            help="install a newer relaylab, or build and export the module again with this one" if newer
            else "build and export the module again with this relaylab",
        )

    def _foreign(self, head: bytes) -> ArtifactError:
        kinds = {b"\x7fELF": "a shared library of the system", b"PK\x03\x04": "a zip archive",
                 b"\x1f\x8b": "a gzip archive", b"": "empty"}
        what = next((text for mark, text in kinds.items() if mark and head.startswith(mark)), "")
        what = "empty" if not head else what or "something else"
        return ArtifactError(
            f"`{self.path}` is not a compiled relaylab module: it is {what}", code="runtime.foreign-file",
            help="give a file that lib.export_library(path) wrote",
        )

    def _cut(self, size: int, length: int | None = None) -> ArtifactError:
        wanted = f"{length:,} bytes" if length is not None else "a whole header"
        return self.damaged(f"it should have {wanted} and has {size:,}")

    def damaged(self, why: str) -> ArtifactError:
        """The error for this file, with the reason `why`."""
        return ArtifactError(
            f"`{self.path}` is damaged: {why}", code="runtime.damaged-file",
            help="copy the file again, or build and export the module again",
        )


def _unwritable(path: Path, error: OSError) -> ArtifactError:
    return ArtifactError(
        f"cannot write `{path}`: {error.strerror or error}", code="runtime.unwritable-file",
        help="give a path in an existing directory that you may write to",
    )


