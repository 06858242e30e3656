"""The command `relaylab lab`: JupyterLab on the notebooks."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from relaylab.cli.command import Command
from relaylab.lab.options import MagicOption
from relaylab.support.errors import RelayValueError


def lab_command(args: argparse.Namespace) -> int:
    """`relaylab lab`"""
    root = Path(args.folder) if args.folder else notebooks()
    if not root.is_dir():
        raise RelayValueError(f"there is no folder {root}", code="cli.no-folder")
    return subprocess.call([sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={root}", *args.rest])


def shipped() -> Path:
    """The folder of notebooks where they stand: in a checkout, or in the package."""
    here = Path(__file__).resolve().parents[1]
    return here.parent / "notebooks" if (here.parent / "notebooks").is_dir() else here / "_notebooks"


def notebooks() -> Path:
    """The folder of notebooks: that of a checkout, or a copy of the ones that came with the package."""
    here = Path(__file__).resolve().parents[1]
    if (here.parent / "notebooks").is_dir():
        return here.parent / "notebooks"
    target = Path.cwd() / "relaylab-notebooks"
    if not target.exists():
        try:
            shutil.copytree(here / "_notebooks", target)
        except OSError as error:
            why = error.strerror or "some files could not be written"
            raise RelayValueError(
                f"cannot copy the notebooks to {target}: {why}",
                code="cli.folder",
                help="change to a folder that you may write to, or name one: relaylab lab FOLDER",
            ) from None
    return target


COMMAND = Command(
    "lab",
    "open JupyterLab on the notebooks",
    (
        MagicOption("folder", nargs="?", help="another folder"),
        MagicOption("rest", nargs=argparse.REMAINDER, help="arguments for JupyterLab"),
    ),
    ("relaylab lab", "the notebooks"),
    lab_command,
)
