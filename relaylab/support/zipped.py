"""Zip archives of text, read within limits: nothing is unpacked before its declared size is known to be sane."""

from __future__ import annotations

import os
import zipfile
import zlib

MOST_ENTRIES = 10_000
MOST_BYTES = 2 << 30
"""Unpacked bytes of all entries."""
SMALL = 64 << 20
MOST_RATIO = 250
"""How many times its packed size an entry may be that unpacks to more than `SMALL` bytes."""
_STORED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_FAULTS = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)


class BadArchive(ValueError):
    """An archive that cannot be read, in words; `entry` is where, empty for the archive itself."""

    def __init__(self, why: str, entry: str = ""):
        super().__init__(why)
        self.entry = entry


def read_entries(path: str | os.PathLike[str]) -> dict[str, str]:
    """The texts in an archive by name; `BadArchive` for one that is damaged, encrypted or larger than the limits."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            _check(infos)
            return {info.filename: _text(archive, info) for info in infos}
    except BadArchive:
        raise
    except OSError as error:
        raise BadArchive(error.strerror or str(error)) from None
    except _FAULTS as error:
        raise BadArchive(f"it is no zip archive, or damaged: {error}") from None


def _check(infos: list[zipfile.ZipInfo]) -> None:
    """What the directory of an archive says, before any entry is read."""
    if len(infos) > MOST_ENTRIES:
        raise BadArchive(f"it has {len(infos)} entries, {MOST_ENTRIES} are read at most")
    total, names = 0, set[str]()
    for info in infos:
        total += info.file_size
        if info.filename in names:
            raise BadArchive("it is there twice", info.filename)
        names.add(info.filename)
        if info.flag_bits & 1:
            raise BadArchive("it is encrypted", info.filename)
        if info.compress_type not in _STORED:
            raise BadArchive(f"its way of packing is not read here (number {info.compress_type})", info.filename)
        if total > MOST_BYTES or (info.file_size > SMALL and info.file_size > MOST_RATIO * info.compress_size):
            raise BadArchive(f"it would unpack {info.compress_size:,} bytes to {info.file_size:,}", info.filename)


def _text(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    try:
        with archive.open(info) as file:  # gives no more bytes than were declared
            data = file.read()
        if len(data) != info.file_size:
            raise BadArchive(f"it has {len(data):,} bytes instead of {info.file_size:,}", info.filename)
        return data.decode()
    except UnicodeDecodeError:
        raise BadArchive("it is not UTF-8", info.filename) from None
    except BadArchive:
        raise
    except _FAULTS as error:
        raise BadArchive(f"it is damaged: {error}", info.filename) from None
