"""An on-disk cache of object code, addressed by content and shared by processes.

Entries lie in one file of SQLite, which is written once for each build (`cache_file.py`). An entry carries the digest
of its key and payload; a damaged one, or one under another's name, is ignored and replaced. Least recently used
entries go when the cache exceeds its limit. A directory that cannot be written makes the cache empty, never an error.

Entries are code that is linked and run, so the directory is private: it is made for its owner alone, and one that
others own or may write to is not used, with a `CacheWarning`; nor is a file that is a link or not this user's.

`RELAYLAB_CACHE_DIR` moves the directory (default `$XDG_CACHE_HOME/relaylab`, `~/.cache/relaylab`); an empty value
turns the cache off. `RELAYLAB_CACHE_LIMIT` is the limit in bytes (default 256 MiB).

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import stat
import threading
import time
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from relaylab.codegen.llvm.cache_file import CacheFile
from relaylab.support.errors import RelayError

FORMAT = b"relaylab-object-2\n"
DEFAULT_LIMIT = 256 << 20
SPARE = 16  # a cache that has grown too large gives up this part, so that it is not full again at once
MOST_NOTED = 64 << 20
"""Bytes that are noted for one program."""
_SEAL = 32  # bytes of a digest
_HELD = 2047  # bytes that hashlib takes without letting other threads run Python, which is waited for
FRESH = 3600  # seconds in which a use is not noted again
_FORMER = re.compile(r"[0-9a-f]{64}\.o")  # entries had files of their own


def digest(*parts: str | bytes) -> str:
    """The address of content made of `parts`: a SHA-256 in hexadecimal that separates the parts."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        for start in range(0, len(data), _HELD):
            total.update(data[start : start + _HELD])
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
    """Bytes by key in a file of a directory. `get` and `put` never raise for what the file system does.

    Entries in `noted` are looked at first, and what is found or stored is noted there.
    """

    def __init__(self, directory: Path | str | None, limit: int | None = None, noted: Entries | None = None):
        self.directory, self.noted = Path(directory) if directory else None, noted
        self.limit = limit if limit is not None else _limit_from_environment()
        self._private = False  # known to be
        self._waiting: dict[str, bytes] | None = None  # what is stored `together`
        self._absent = False  # there was nothing to read when that began

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
        if self._waiting is not None and key in self._waiting:
            return self._waiting[key]
        if self.directory is None or self._absent or not self._is_private(self.directory):
            return None
        store = _store(self.directory)
        found = store.get(key)
        if found is None:
            return None
        used, data = found
        head, payload = data[: len(FORMAT) + _SEAL], data[len(FORMAT) + _SEAL :]
        if head != FORMAT + bytes.fromhex(digest(key, payload)):
            store.remove([key])
            return None
        now = int(time.time())
        if not 0 <= now - used < FRESH:
            store.touch(key, now)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Store `payload` under `key`, then keep the cache within its limit."""
        if self.noted is not None:
            self.noted.note(key, payload)
        if self.directory is None or len(payload) > self.limit:
            return
        if self._waiting is not None:
            self._waiting[key] = payload
        else:
            self._keep(self.directory, {key: payload})

    @contextmanager
    def together(self) -> Generator[None]:
        """Write what is stored meanwhile at the end, all at once."""
        if self.directory is None or self._waiting is not None:
            yield
            return
        self._waiting, self._absent = {}, not self._is_private(self.directory)
        try:
            with _store(self.directory).steady():
                yield
        finally:
            waiting, self._waiting, self._absent = self._waiting, None, False
            if waiting:
                self._keep(self.directory, waiting)

    def _is_made(self, directory: Path) -> bool:
        """Make the directory, if it is not there; whether it is there now, and private."""
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            directory.mkdir(0o700, exist_ok=True)
        except OSError:
            return False
        return self._is_private(directory)

    def _keep(self, directory: Path, entries: Mapping[str, bytes]) -> None:
        if not self._is_made(directory):
            return
        store, now = _store(directory), int(time.time())
        if not store.path.exists():
            _clear_former(directory)
        rows = [(key, now, FORMAT + bytes.fromhex(digest(key, entry)) + entry) for key, entry in entries.items()]
        if not store.put(rows):
            return
        room = _room.get((directory, self.limit), 0) - sum(len(data) for _, _, data in rows)
        _room[directory, self.limit] = room if room >= 0 else self._evict(store)

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

    def entries(self) -> list[tuple[int, int, str]]:
        """(last use in seconds, to the hour; size in bytes; key) of every entry, least recently used first."""
        return _store(self.directory).entries() if self.directory is not None else []

    def _evict(self, store: CacheFile) -> int:
        """Removes what is too much; the bytes to store before that is looked at again: the rest is for others."""
        entries = store.entries()
        total = sum(size for _, size, _ in entries)
        most, gone = self.limit - self.limit // SPARE if total > self.limit else total, []
        for _, size, key in entries:
            if total <= most:
                break
            gone.append(key)
            total -= size
        if gone:
            store.remove(gone)
        return (self.limit - total) // 2


_stores: list[CacheFile] = []  # the one that was asked last, and is open
_changing = threading.Lock()


def _store(directory: Path) -> CacheFile:
    with _changing:
        if not _stores or _stores[0].path.parent != directory:
            for old in _stores:
                old.close()
            _stores[:] = [CacheFile(directory)]
        return _stores[0]


@atexit.register
def _close() -> None:
    for store in _stores:
        store.close()


def _begin_anew() -> None:
    """In a child process: another thread may have held the locks, and the connection is the parent's."""
    global _changing
    _changing, _stores[:] = threading.Lock(), []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _clear_former(directory: Path) -> None:
    """Remove the files of entries that versions before this one have left."""
    with suppress(OSError), os.scandir(directory) as files:
        for file in files:
            if _FORMER.fullmatch(file.name):
                with suppress(OSError):
                    os.unlink(file.path)


def _shared(directory: Path) -> str:
    """In which way others may write to a directory; empty if they may not, or if the system does not say."""
    if not hasattr(os, "geteuid"):
        return ""
    for found in (directory.lstat(), directory.stat()):  # a link, and what it leads to
        if found.st_uid != os.geteuid():
            return "belongs to another user"
    return "may be written by others" if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def _limit_from_environment() -> int:
    try:
        return int(os.environ.get("RELAYLAB_CACHE_LIMIT", DEFAULT_LIMIT))
    except ValueError:
        return DEFAULT_LIMIT
