"""`tvm.contrib.download`: nothing is loaded from a network; files are found where the user has put them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from relaylab.support.checked import checked
from relaylab.support.errors import RelayError

VARIABLE = "RELAYLAB_DATA"
"""Folders with files that programs would download, beside the current one."""


def _folders() -> list[Path]:
    named = os.environ.get(VARIABLE, "").split(os.pathsep)
    return [*(Path(name) for name in named if name), Path()]


def _find(url: str, names: list[str]) -> Path:
    """The first file of one of these names in the folders; RelayError that says where to put it."""
    names = list(dict.fromkeys([*names, PurePosixPath(urlsplit(url).path).name]))
    for folder in _folders():
        for name in filter(None, names):
            if (folder / name).is_file():
                return (folder / name).resolve()
    raise RelayError(
        f"nothing is downloaded, and there is no file {names[0]} here",
        code="download.missing",
        help=f"load {url} yourself, save it as {Path(names[0]).name} in this folder, or in one that {VARIABLE} names",
    )


@checked
def download_testdata(url: str, relpath: str, module: str | list[str] | None = None, overwrite: bool = False) -> str:
    """The path of the file that a tutorial would download: `relpath` in the current folder, or below a folder in the
    variable RELAYLAB_DATA, also within folders named as `module`.
    """
    below = [module] if isinstance(module, str) else list(module or ())
    return str(_find(url, [str(PurePosixPath(*below, relpath)), relpath, PurePosixPath(relpath).name]))


@checked
def download(url: str, path: str, overwrite: bool = False, size_compare: bool = False, retries: int = 3) -> None:
    """Make sure that `path` is the file that would be downloaded: one that is there, or a copy of one that is found."""
    if Path(path).is_file():
        return
    found = _find(url, [path, Path(path).name])
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(found, path)


__all__ = ["download", "download_testdata"]
