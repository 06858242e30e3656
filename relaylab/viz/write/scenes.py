"""A single scene as a file, in the form that its name says."""

from __future__ import annotations

from pathlib import Path

from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.viz.scene.scene import Scene
from relaylab.viz.write import files
from relaylab.viz.write.html import page
from relaylab.viz.write.pdf import pdf
from relaylab.viz.write.png import png
from relaylab.viz.write.svg import svg


def write(scene: Scene, path: str | Path, title: str, text: str) -> Path:
    """Write a picture: .svg .pdf .html .png, or its text as .txt."""
    writers = {".svg": svg, ".png": png, ".pdf": lambda s: pdf([s], title=title), ".html": lambda s: page([s], title)}
    form = Path(path).suffix.lower()
    if form == ".txt":
        return files.write(path, f"{text}\n")
    if form not in writers:
        help = did_you_mean(form, [*writers, ".txt"]) or f"use one of {', '.join([*writers, '.txt'])}"
        raise RelayValueError(f"this picture is not written as `{form}`", code="heat.format", help=help)
    return files.write(path, writers[form](scene))
