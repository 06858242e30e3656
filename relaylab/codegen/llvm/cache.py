"""An on-disk cache of object code, addressed by content and shared by processes.

Entries are written to a temporary file and renamed, so a reader sees a whole entry or none. An entry carries the
digest of its key and payload; a damaged one, or one under another's name, is ignored and replaced. Least recently used
entries go when the cache exceeds its limit. A directory that cannot be written makes the cache empty, never an error.

Entries are code that is linked and run, so the directory is private: it is made for its owner alone, and one that
others own or may write to is not used, with a `CacheWarning`; nor are entries that are links or not this user's.

`RELAYLAB_CACHE_DIR` moves the directory (default `$XDG_CACHE_HOME/relaylab`, `~/.cache/relaylab`); an empty value
turns the cache off. `RELAYLAB_CACHE_LIMIT` is the limit in bytes (default 256 MiB).

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from relaylab.support.errors import RelayError

FORMAT = b"relaylab-object-2\n"
DEFAULT_LIMIT = 256 << 20
_SUFFIX, _UNFINISHED = ".o", ".part"
SPARE = 16  # a cache that has grown too large gives up this part, so that it is not full again at once
MOST_NOTED = 64 << 20
"""Bytes that are noted for one program."""
_SEAL = 32  # bytes of a digest
_ABANDONED = 3600  # seconds after which an unfinished file belongs to a process that was killed


def digest(*parts: str | bytes) -> str:
    """The address of content made of `parts`: a SHA-256 in hexadecimal that separates the parts."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


def default_directory() -> Path | None:
    """Where this user's cache lies; None when it is turned off or there is no home."""
    chosen = os.environ.get("RELAYLAB_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(base) / "relaylab" if base else Path.home() / ".cache" / "relaylab"
    except RuntimeError:
        return None


class CacheWarning(RelayError, UserWarning):
    """The cache is not used, and why."""


_told: set[Path] = set()  # directories that have been warned of
_room: dict[tuple[Path, int], int] = {}
"""Bytes to store before a directory under a limit, which may have ten thousands of entries, is read again."""


class Entries:
    """What a program was made from, by key, so that a file can bring it along: entered, it has what default caches of
    the thread are asked for and are given. It never goes from here to a directory, where other programs would find it.
    """

    def __init__(self, known: Mapping[str, bytes] = MappingProxyType({})):
        self.known = dict(known)
        self.room = MOST_NOTED

    def __enter__(self) -> Entries:
        _entered.entries.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _entered.entries.pop()

    @staticmethod
    def current() -> Entries:
        """Those that are entered, or new ones."""
        return _entered.entries[-1] if _entered.entries else Entries()

    def note(self, key: str, payload: bytes) -> None:
        """Keep an entry, if there is room: a program may make forms as long as it runs."""
        if key not in self.known and len(payload) <= self.room:
            self.known[key] = payload
            self.room -= len(payload)


class _Entered(threading.local):
    """Each thread has its own."""

    def __init__(self) -> None:
        self.entries: list[Entries] = []


_entered = _Entered()


class ObjectCache:
    """Bytes by key in a directory. `get` and `put` never raise for what the file system does.

    Entries in `noted` are looked at first, and what is found or stored is noted there.
    """

    def __init__(self, directory: Path | str | None, limit: int | None = None, noted: Entries | None = None):
        self.directory, self.noted = Path(directory) if directory else None, noted
        self.limit = limit if limit is not None else _limit_from_environment()
        self._private = False  # known to be

    @staticmethod
    def default() -> ObjectCache:
        """The cache of this user, with the entries that are entered."""
        return ObjectCache(default_directory(), noted=_entered.entries[-1] if _entered.entries else None)

    @property
    def keeps(self) -> bool:
        """Whether what is stored may be found again."""
        return self.directory is not None or self.noted is not None

    def get(self, key: str) -> bytes | None:
        """The payload stored under `key`, or None when there is none or it is damaged."""
        if self.noted is None:
            return self._stored(key)
        found = self.noted.known.get(key)
        if found is None and (found := self._stored(key)) is not None:
            self.noted.note(key, found)
        return found

    def _stored(self, key: str) -> bytes | None:
        if self.directory is None or not self._is_private(self.directory):
            return None
        path = self.directory / (key + _SUFFIX)
        try:
            data = _read(path)
        except OSError:
            return None
        head, payload = data[: len(FORMAT) + _SEAL], data[len(FORMAT) + _SEAL :]
        if head != FORMAT + bytes.fromhex(digest(key, payload)):
            _remove(path)
            return None
        with suppress(OSError):
            os.utime(path)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Store `payload` under `key`, then keep the cache within its limit."""
        if self.noted is not None:
            self.noted.note(key, payload)
        if self.directory is None or len(payload) > self.limit:
            return
        try:
            self.directory.parent.mkdir(parents=True, exist_ok=True)
            self.directory.mkdir(0o700, exist_ok=True)
            if not self._is_private(self.directory):
                return
            _write(self.directory / (key + _SUFFIX), FORMAT + bytes.fromhex(digest(key, payload)) + payload)
        except OSError:
            return
        room = _room.get((self.directory, self.limit), 0) - len(payload)
        _room[self.directory, self.limit] = room if room >= 0 else self._evict()

    def _is_private(self, directory: Path) -> bool:
        """Whether only this user can write there; a warning says once if others can. False if it is not there."""
        if not self._private:
            try:
                fault = _shared(directory)
            except OSError:
                return False
            self._private = not fault
            if fault and directory not in _told:
                _told.add(directory)
                warning = CacheWarning(
                    f"the cache of kernels is not used: the directory {directory} {fault}, "
                    "so that others could put code into it",
                    code="cache.shared",
                    help="remove it and it is made anew for you alone, or let RELAYLAB_CACHE_DIR name another one "
                    "(empty: no cache)",
                )
                warnings.warn(warning, stacklevel=3)
        return self._private

    def entries(self) -> list[tuple[float, int, Path]]:
        """(last use, size in bytes, path) of every entry, least recently used first; clears what was never finished."""
        if self.directory is None:
            return []
        found = []
        with suppress(OSError), os.scandir(self.directory) as files:  # it may have gone, or was never there
            for file in files:
                status = _status(file) if file.name.endswith((_SUFFIX, _UNFINISHED)) else None
                if status is not None and file.name.endswith(_SUFFIX):
                    found.append((status.st_mtime, status.st_size, Path(file.path)))
                elif status is not None and status.st_mtime < time.time() - _ABANDONED:
                    _remove(Path(file.path))
        return sorted(found)

    def _evict(self) -> int:
        """Removes what is too much; the bytes to store before that is looked at again: the rest is for others."""
        entries = self.entries()
        total = sum(size for _, size, _ in entries)
        most = self.limit - self.limit // SPARE if total > self.limit else total
        for _, size, path in entries:
            if total <= most:
                break
            _remove(path)
            total -= size
        return (self.limit - total) // 2


def _shared(directory: Path) -> str:
    """In which way others may write to a directory; empty if they may not, or if the system does not say."""
    if not hasattr(os, "geteuid"):
        return ""
    for found in (directory.lstat(), directory.stat()):  # a link, and what it leads to
        if found.st_uid != os.geteuid():
            return "belongs to another user"
    return "may be written by others" if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def _read(path: Path) -> bytes:
    """The content of a file of this user that nobody else may write to; OSError for any other, and for links."""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        found = os.fstat(file.fileno())
        own = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
        if not own or not stat.S_ISREG(found.st_mode) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(f"{path} is not private")
        return file.read()


def _write(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=_UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        _remove(Path(temporary))
        raise


def _limit_from_environment() -> int:
    try:
        return int(os.environ.get("RELAYLAB_CACHE_LIMIT", DEFAULT_LIMIT))
    except ValueError:
        return DEFAULT_LIMIT


def _status(file: os.DirEntry[str]) -> os.stat_result | None:
    """What the file system knows of a file; None if another process has removed it meanwhile."""
    try:
        return file.stat()
    except OSError:
        return None


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
