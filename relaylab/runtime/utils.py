"""Temporary directories as programs written for `tvm.contrib.utils` use them."""

from __future__ import annotations

import datetime
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from relaylab.support.checked import checked
from relaylab.support.errors import RelayError, RelayValueError


@checked
class TempDirectory:
    """A directory that is deleted with the object or at exit, unless it is kept for debugging."""

    keep_new: ClassVar[bool] = False
    _parent: ClassVar[str | None] = None
    _count: ClassVar[int] = 0

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool | None = None):
        keep = TempDirectory.keep_new if keep_for_debug is None else keep_for_debug
        self.temp_dir: str | None = self._make(custom_path, keep)
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.temp_dir, ignore_errors=True)
        if keep:
            self._finalizer.detach()

    @classmethod
    @contextmanager
    def set_keep_for_debug(cls, set_to: bool = True) -> Generator[None, None, None]:
        """Within it, new directories are kept after the program has ended."""
        before, cls.keep_new = cls.keep_new, set_to
        try:
            yield
        finally:
            cls.keep_new = before

    @classmethod
    def _make(cls, custom_path: str | None, keep: bool) -> str:
        if custom_path:
            os.makedirs(custom_path)
            return custom_path
        if not keep:
            return tempfile.mkdtemp()
        if cls._parent is None:  # directories that are kept lie side by side in one, named by the time, in order
            cls._parent = tempfile.mkdtemp(prefix=f"{datetime.datetime.now():%Y-%m-%dT%H-%M-%S}___")
        path = os.path.join(cls._parent, f"{cls._count:05}")
        cls._count += 1
        os.mkdir(path)
        return path

    @property
    def path(self) -> str | None:
        """The directory; None after `remove`."""
        return self.temp_dir

    def remove(self) -> None:
        """Delete the directory and what is in it."""
        self._finalizer()
        self.temp_dir = None

    def relpath(self, name: str) -> str:
        """The path of a file `name` in the directory."""
        return os.path.join(self._present(), name)

    def listdir(self) -> list[str]:
        """The names in the directory."""
        return os.listdir(self._present())

    def __truediv__(self, name: str) -> Path:
        return Path(self.relpath(name))

    def _present(self) -> str:
        if self.temp_dir is None:
            raise RelayValueError("the temporary directory was removed", code="runtime.tempdir")
        return self.temp_dir


def tempdir(custom_path: str | None = None, keep_for_debug: bool | None = None) -> TempDirectory:
    """A new `TempDirectory`, at `custom_path` if given (it must not exist)."""
    return TempDirectory(custom_path, keep_for_debug)


class DirectoryCreatedPastAtExit(RelayError):
    """A temporary directory is asked for while Python shuts down: nothing would delete it."""


@checked
class FileLock:
    """A file that one process at a time holds: a context that waits for it, at most `timeout` seconds."""

    def __init__(self, path: str | os.PathLike[str], timeout: float = 60.0):
        self.lock_file, self.timeout = os.fspath(path), timeout

    def __enter__(self) -> FileLock:
        until = time.monotonic() + self.timeout
        while True:
            try:
                os.close(os.open(self.lock_file, os.O_CREAT | os.O_EXCL | os.O_RDWR))
            except FileExistsError:
                if time.monotonic() > until:
                    raise RelayValueError(
                        f"another process holds {self.lock_file}", code="utils.locked", help="remove it if none does"
                    ) from None
                time.sleep(0.01)
            else:
                return self

    def __exit__(self, *exc: object) -> None:
        Path(self.lock_file).unlink(missing_ok=True)

    def release(self) -> None:
        """Let others have it."""
        self.__exit__()


def filelock(path: str | os.PathLike[str]) -> FileLock:
    """A lock on a file: `with filelock(path): …`."""
    return FileLock(path)


def is_source_path(path: str) -> str:
    """The path of a file of source code (.cc, .cpp, .c, .h and the like); RelayValueError for another text."""
    if Path(path).suffix not in (".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".ll", ".s"):
        raise RelayValueError(f"{path} is no path of source code", code="utils.source-path")
    return path


def which(exec_name: str) -> str | None:
    """Where a program lies on the search path; None if it does not."""
    return shutil.which(exec_name)
