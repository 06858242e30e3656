"""The file of a cache: entries by key in one table of SQLite, shared by processes.

To make a file takes 0.02 to 0.7 ms, by the system, and a network has two hundred entries: a build writes all of them
in one transaction. A process that is killed leaves them whole; after a fall of the whole system the file may be
damaged, which SQLite or the digests of the entries find, and it is made anew.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

NAME = "objects-3.db"
PATIENCE = 2.0  # seconds to wait for another process that writes; after that an entry is as good as lost
REST = 30.0  # seconds in which nobody waits again: whoever holds the file may be stopped, or its disk far away
_Result = TypeVar("_Result")
_TABLE = "CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, used INTEGER NOT NULL, entry BLOB NOT NULL)"
_SET_UP = ("PRAGMA auto_vacuum = INCREMENTAL", "PRAGMA journal_mode = TRUNCATE", "PRAGMA synchronous = OFF")


class CacheFile:
    """The entries in the file of a directory; nothing is raised for what the file or another process does."""

    def __init__(self, directory: Path):
        self.path = directory / NAME
        self._lock = threading.Lock()
        self._steady = 0
        self._rests_until = 0.0
        self._has_table = False
        self._base: sqlite3.Connection | None = None
        self._owner: tuple[int, int, int] | None = None  # this process, and the file that is open

    @contextmanager
    def steady(self) -> Generator[None]:
        """Meanwhile a file that is there or not is taken to stay: a look lets other threads run Python first."""
        self._tried(lambda base: None, None)
        with self._lock:
            self._steady += 1
        try:
            yield
        finally:
            with self._lock:
                self._steady -= 1

    def get(self, key: str) -> tuple[int, bytes] | None:
        """When an entry was used, in seconds of the clock, and what it holds."""
        rows = self._rows("SELECT used, entry FROM entries WHERE key = ?", key)
        return rows[0] if rows and isinstance(rows[0][1], bytes) else None

    def put(self, entries: Iterable[tuple[str, int, bytes]]) -> bool:
        """Keep entries: key, time and content; False if that could not be done."""
        rows = list(entries)

        def write(base: sqlite3.Connection) -> bool:
            with base:
                base.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", rows)
            return True

        return self._tried(write, False, make=True)

    def touch(self, key: str, now: int) -> None:
        """Note that an entry is used."""
        self._rows("UPDATE entries SET used = ? WHERE key = ?", now, key)

    def remove(self, keys: Iterable[str]) -> None:
        """Forget entries, and give their space back."""
        gone = [(key,) for key in keys]

        def forget(base: sqlite3.Connection) -> None:
            with base:
                base.executemany("DELETE FROM entries WHERE key = ?", gone)
            base.execute("PRAGMA incremental_vacuum").fetchall()

        self._tried(forget, None)

    def entries(self) -> list[tuple[int, int, str]]:
        """(last use, size in bytes, key) of each entry, the one that was not used for longest first."""
        return self._rows("SELECT used, length(entry), key FROM entries ORDER BY used, rowid")

    def close(self) -> None:
        """Let go of the file; it is opened again when it is needed."""
        with self._lock:
            self._let_go()

    def _rows(self, query: str, *values: object) -> list[Any]:
        def ask(base: sqlite3.Connection) -> list[Any]:
            with base:
                return base.execute(query, values).fetchall()

        return self._tried(ask, [])

    def _tried(self, action: Callable[[sqlite3.Connection], _Result], otherwise: _Result, make=False) -> _Result:
        with self._lock:
            try:
                base = self._opened(make)
                return otherwise if base is None else action(base)
            except (OSError, sqlite3.OperationalError, UnicodeDecodeError, OverflowError) as error:
                self._let_go()  # full, locked, not writable: perhaps another time
                if "locked" in str(error):
                    self._rests_until = time.monotonic() + REST
                return otherwise
            except sqlite3.DatabaseError:
                self._let_go()
                with suppress(OSError):  # damaged: the next entry makes it anew
                    self._remove()
                return otherwise

    def _opened(self, make: bool) -> sqlite3.Connection | None:
        """The file, if it is there, or made; one that is not private is not used, and gives way to one that is."""
        if not make and self._steady:
            return self._base
        if time.monotonic() < self._rests_until:
            return None
        found = self._found()
        if found is None or self._base is None or self._owner != found:
            self._let_go()
            if found is None and make:
                if os.path.lexists(self.path):
                    self._remove()
                with suppress(FileExistsError):  # another process has just made it
                    os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
                found = self._found()
            if found is None:
                return None
            self._base = sqlite3.connect(self.path, timeout=PATIENCE, check_same_thread=False)
            self._owner = found
            for each in _SET_UP:
                self._base.execute(each).fetchall()
        if make and not self._has_table:
            self._base.execute(_TABLE)
            if [row[1] for row in self._base.execute("PRAGMA table_info(entries)")] != ["key", "used", "entry"]:
                raise sqlite3.DatabaseError("a table of others")
            self._has_table = True
        return self._base

    def _found(self) -> tuple[int, int, int] | None:
        """This process and the file, if it is one of this user that nobody else may write to."""
        try:
            found = self.path.lstat()
        except OSError:
            return None
        own = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
        if not own or not stat.S_ISREG(found.st_mode) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
        return os.getpid(), found.st_dev, found.st_ino

    def _remove(self) -> None:
        """Remove the file; first what SQLite would take back in it, as it must not do so in the next one."""
        for path in (Path(f"{self.path}-journal"), self.path):
            path.unlink(missing_ok=True)

    def _let_go(self) -> None:
        base, owner, self._base, self._owner, self._has_table = self._base, self._owner, None, None, False
        if base is not None and owner is not None and owner[0] == os.getpid():  # a fork leaves it to the parent
            with suppress(sqlite3.Error):
                base.close()
