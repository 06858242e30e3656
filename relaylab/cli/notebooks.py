"""The command `relaylab lab`: JupyterLab on the notebooks."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from relaylab.cli.command import Command
from relaylab.lab.options import MagicOption
from relaylab.support.errors import RelayValueError


def lab_command(args: argparse.Namespace) -> int:
    """`relaylab lab`"""
    shown = Path(args.folder) if args.folder else notebooks()
    if not shown.is_dir():
        raise RelayValueError(f"there is no folder {shown}", code="cli.no-folder")
    root, rest = shown, args.rest
    if shown == shipped() and (shown.parent / "docs").is_dir():  # lessons lead to pages of the documentation
        root, rest = shown.parent, [f"--FileContentsManager.preferred_dir={shown.name}", *rest]
    return subprocess.call([sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={root}", *rest])


def shipped() -> Path:
    """The folder of notebooks where they stand: in a checkout, or in the package."""
    here = Path(__file__).resolve().parents[1]
    return here.parent / "notebooks" if (here.parent / "notebooks").is_dir() else here / "_notebooks"


def notebooks() -> Path:
    """The folder of notebooks: that of a checkout, or a copy of the ones that came with the package.

    The documentation does not come with the package: the copy has no links to it.
    """
    here = Path(__file__).resolve().parents[1]
    if (here.parent / "notebooks").is_dir():
        return here.parent / "notebooks"
    target = Path.cwd() / "relaylab-notebooks"
    if not target.exists():
        try:
            shutil.copytree(here / "_notebooks", target)
            for path in target.rglob("*.ipynb"):
                path.write_text(_without_links(path.read_text(encoding="utf-8"), "docs/"), encoding="utf-8")
        except OSError as error:
            why = error.strerror or "some files could not be written"
            raise RelayValueError(
                f"cannot copy the notebooks to {target}: {why}",
                code="cli.folder",
                help="change to a folder that you may write to, or name one: relaylab lab FOLDER",
            ) from None
    return target


def _without_links(text: str, to: str) -> str:
    """A notebook without the lines of its pages that have a link to a folder beside it."""
    book = json.loads(text)
    link = re.compile(rf"\]\((\.\./)+{to}")
    for cell in book["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = [line for line in cell["source"] if not link.search(line)]
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


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
