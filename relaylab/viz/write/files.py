"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from relaylab.support.errors import RelayValueError


def write(path: str | os.PathLike[str], data: str | bytes) -> Path:
    """Write `data` to `path` and return it: a temporary file beside it, then one replacement.

    Raises `RelayValueError` where the place cannot be written; then nothing is left behind and an
    older file of that name is still whole.
    """
    target = Path(path)
    raw = data.encode("utf-8") if isinstance(data, str) else data
    try:
        _replace(target, raw)
    except OSError as err:
        raise RelayValueError(
            f"cannot write `{target}`: {err.strerror or err}",
            code="viz.unwritable",
            help="give a path in a folder that exists and may be written",
        ) from None
    return target


def _replace(target: Path, raw: bytes) -> None:
    if target.is_dir():
        raise IsADirectoryError(21, "it is a folder")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
        os.chmod(name, target.stat().st_mode if target.exists() else 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
