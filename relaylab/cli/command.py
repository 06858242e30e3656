"""What a command is, and what the commands share: printing, folders, passes by name, files of a run."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relaylab.lab.options import MagicOption
from relaylab.support.errors import RelayValueError
from relaylab.support.quoting import shell_words

if TYPE_CHECKING:
    from relaylab.study import Exploration
    from relaylab.transform import Pass

JSON = MagicOption("--json", action="store_true", help="print data for programs instead of text for people")
CLUSTER = MagicOption("--cluster", metavar="ADDRESS", help="measure on a Dask scheduler's workers: tcp://host:8786")


@dataclass(frozen=True)
class Command:
    """A word after `relaylab`: what it does in one line, its arguments, an example and its purpose, what runs it."""

    name: str
    summary: str
    options: tuple[MagicOption, ...]
    example: tuple[str, str]
    run: Callable[[argparse.Namespace], int]


def say(text: str = "", *, quiet: bool = False) -> None:
    """Print a line now, not when a buffer is full."""
    if not quiet:
        print(text, flush=True)


def json_text(value: object, indent: int | None = None) -> str:
    """Data as JSON that all programs read: what it has no number for, NaN and infinities, is null."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(v) for name, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, (list, tuple)) else value


def code(text: str, language: str) -> str:
    """Code as it is printed: in colours where someone reads a terminal."""
    from relaylab.text import colours
    from relaylab.viz.diffs.tokens import wants_colour

    return colours.terminal(text, language) if language and wants_colour(sys.stdout) else text


def progress(text: str) -> None:
    """What is being done: overwritten by the next line where someone watches, else a line of its own on stderr."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def stopped(exploration: Exploration, args: argparse.Namespace) -> int:
    """Say which pass stopped a pipeline and how to see that again: status 1; 0 if every pass came to its end."""
    if exploration.crash is None:
        return 0
    passes = ["-p", args.passes] if getattr(args, "passes", None) else []
    again = shell_words("relaylab", "bisect", args.program, "-O", str(args.opt_level), *passes, "-o", "reproducer.py")
    print(f"\n{exploration.crash}\nNext:\n  {again}  a program that shows it", file=sys.stderr)
    return 1


def folder(path: str) -> Path:
    """A folder to write to, made if it is not there."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RelayValueError(f"cannot write to the folder {path}: {error.strerror}", code="cli.folder") from None
    return Path(path)


def passes_of(text: str | None) -> list[Pass | str] | None:
    """`A,B(option=1)` as passes; None for the default ones."""
    from relaylab import study
    from relaylab.study.pipeline import is_default

    return [p if is_default(p) else study.pass_of(p) for p in study.split(text)] if text else None


def save_exploration(
    exploration: Exploration,
    path: str,
    doing: Callable[[str], None] = lambda part: None,
    language: str | None = None,
    paper: str = "fit",
) -> Path:
    """Write a pipeline run: the explorer as a page for `.html`, the pictures for other formats.

    `doing` is told what part of the page is being made; `language` is that of the words of a page, `paper` that of a
    PDF.
    """
    if path.endswith(".rlab"):
        from relaylab import study

        return study.record(exploration, path)
    if not path.lower().endswith((".html", ".htm")):
        return exploration.save(path, paper)
    from relaylab.lab import saved_page

    return saved_page.save(exploration, path, doing=doing, language=language or "")
