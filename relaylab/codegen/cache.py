"""An on-disk cache of object code, addressed by content and shared by processes.

Entries are written to a temporary file and renamed, so a reader sees a whole entry or none. An entry carries the
digest of its key and payload; a damaged one, or one under another's name, is ignored and replaced. Least recently used
entries go when the cache exceeds its limit. A directory that cannot be written makes the cache empty, never an error.

`RELAYLAB_CACHE_DIR` moves the directory (default `$XDG_CACHE_HOME/relaylab`, `~/.cache/relaylab`); an empty value
turns the cache off. `RELAYLAB_CACHE_LIMIT` is the limit in bytes (default 256 MiB).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from pathlib import Path

FORMAT = b"relaylab-object-2\n"
DEFAULT_LIMIT = 256 << 20
_SUFFIX, _UNFINISHED = ".o", ".part"
SPARE = 16  # a cache that has grown too large gives up this part, so that it is not full again at once
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


class ObjectCache:
    """Bytes by key in a directory. `get` and `put` never raise for what the file system does."""

    def __init__(self, directory: Path | str | None, limit: int | None = None):
        self.directory = Path(directory) if directory else None
        self.limit = limit if limit is not None else _limit_from_environment()
        self._room = 0  # bytes to store before the directory, which may have ten thousands of entries, is read again

    @staticmethod
    def default() -> ObjectCache:
        """The cache of this user."""
        return ObjectCache(default_directory())

    def get(self, key: str) -> bytes | None:
        """The payload stored under `key`, or None when there is none or it is damaged."""
        if self.directory is None:
            return None
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        head, payload = data[: len(FORMAT) + _SEAL], data[len(FORMAT) + _SEAL:]
        if head != FORMAT + bytes.fromhex(digest(key, payload)):
            _remove(path)
            return None
        _touch(path)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Store `payload` under `key`, then keep the cache within its limit."""
        if self.directory is None or len(payload) > self.limit:
            return
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._write(self._path(key), FORMAT + bytes.fromhex(digest(key, payload)) + payload)
        except OSError:
            return
        self._room -= len(payload)
        if self._room < 0:
            self._evict()

    def _path(self, key: str) -> Path:
        return self.directory / (key + _SUFFIX)

    def _write(self, path: Path, data: bytes) -> None:
        handle, temporary = tempfile.mkstemp(dir=self.directory, prefix=".", suffix=_UNFINISHED)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            _remove(Path(temporary))
            raise

    def entries(self) -> list[tuple[float, int, Path]]:
        """(last use, size in bytes, path) of every entry, least recently used first; clears what was never finished."""
        found = []
        try:
            with os.scandir(self.directory) as files:
                for file in files:
                    status = _status(file) if file.name.endswith((_SUFFIX, _UNFINISHED)) else None
                    if status is not None and file.name.endswith(_SUFFIX):
                        found.append((status.st_mtime, status.st_size, Path(file.path)))
                    elif status is not None and status.st_mtime < time.time() - _ABANDONED:
                        _remove(Path(file.path))
        except OSError:  # the directory has gone, or was never there
            pass
        return sorted(found)

    def _evict(self) -> None:
        entries = self.entries()
        total = sum(size for _, size, _ in entries)
        most = self.limit - self.limit // SPARE if total > self.limit else total
        for _, size, path in entries:
            if total <= most:
                break
            _remove(path)
            total -= size
        self._room = (self.limit - total) // 2  # the rest is for other processes


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
    try:
        path.unlink()
    except OSError:
        pass


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:
        pass
