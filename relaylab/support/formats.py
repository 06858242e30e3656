"""The formats of pictures by their suffixes: one table for every function, magic and command that writes a picture.

Nothing heavy is imported here: `relaylab --help` names the suffixes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from relaylab.support.errors import RelayValueError
from relaylab.support.table import Table, did_you_mean


@dataclass(frozen=True)
class Format:
    """A suffix: what is written, whether that needs a graph (shapes alone are not enough), one picture a file.

    An `alias` is another suffix of the same format.
    """

    suffix: str
    about: str
    graph: bool = False
    single: bool = False
    alias: bool = False


FORMATS: Table[Format] = Table("picture format")
"""The formats that relaylab writes by itself, by their suffixes without the first point."""

for _format in (
    Format("svg", "vectors, for web pages", single=True),
    Format("pdf", "vectors, for print"),
    Format("png", "pixels", single=True),
    Format("html", "a page in which one moves, searches and reads"),
    Format("htm", "the same page", alias=True),
    Format("dot", "Graphviz", graph=True, single=True),
    Format("gv", "Graphviz", graph=True, single=True, alias=True),
    Format("txt", "a tree or a table of characters"),
    Format("json", "the graph as data", graph=True, single=True),
    Format("onnx", "the structure for Netron", graph=True, single=True),
    Format("modelexplorer.json", "a graph collection for Model Explorer", graph=True),
):
    FORMATS.insert(_format.suffix, _format)

SHAPES = tuple(suffix for suffix in FORMATS if not FORMATS[suffix].graph)
"""What pictures without a graph can be, such as heat maps."""
SEVERAL = tuple(suffix for suffix in FORMATS if not FORMATS[suffix].single)
"""What holds several pictures in one file."""


def words(found: Iterable[str] = FORMATS) -> str:
    """Suffixes as help texts name them."""
    return " ".join(f".{suffix}" for suffix in found)


def suffix_of(path: str | os.PathLike[str], others: Iterable[str] = ()) -> str:
    """The longest suffix of a path that is in the table or one of `others`; the empty text if there is none."""
    name = Path(path).name.lower()
    found = (suffix for suffix in (*FORMATS, *others) if name.endswith(f".{suffix}"))
    return max(found, key=len, default="")


def format_of(path: str | os.PathLike[str], others: Iterable[str] = (), graph: bool = True) -> str:
    """The suffix that a path has; raises `RelayValueError`, which lists all, for another one.

    `others` are more suffixes than those of the table. Without `graph`, formats that need one are none.
    """
    known = [suffix for suffix in FORMATS if graph or not FORMATS[suffix].graph] + [*others]
    found = suffix_of(path, others)
    if found in known:
        return found
    last = Path(path).suffix
    why = (
        f"this picture is no graph, which .{found} needs"
        if found
        else f"the suffix is {f'`{last}`' if last else 'missing'}"
    )
    help = f"{did_you_mean(last, [f'.{suffix}' for suffix in known])} There are: {words(known)}".strip()
    raise RelayValueError(f"cannot tell the format of `{path}`: {why}", code="viz.format", help=help)
