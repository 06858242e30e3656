"""Sizes that a model leaves open, as the name of a program says them: `model.onnx:batch=4,image=1x3x64x64`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from relaylab.support.errors import RelayValueError, warn
from relaylab.support.table import did_you_mean

Shapes = Mapping[str, tuple[int | str, ...]]
"""Inputs by name; an open dimension is its name."""
Told = Mapping[str, tuple[int, ...]]
_FILE = re.compile(r"(.+\.(?:onnx|pt2|relay|rly|txt)):(.*)", re.DOTALL)
_SIZE = re.compile(r"([^=]+)=(\d{1,9}(?:x\d{1,9})*)")


class OpenSizeWarning(UserWarning):
    """A program was taken with sizes of 1 where its model leaves them open."""


def split_sizes(name: str) -> tuple[str, Told]:
    """The file that a name means, and what it tells of sizes and inputs; RelayValueError for what is no size."""
    found = _FILE.fullmatch(name)
    return (name, {}) if found is None else (found[1], told_of(found[2], found[1]))


def told_of(text: str, name: str) -> Told:
    """The sizes and shapes that stand behind the name of a program; RelayValueError for what is no size."""
    told = {}
    for part in text.split(","):
        size = _SIZE.fullmatch(part)
        if size is None:
            help = f"{name}:batch=4,image=1x3x64x64 says an open size and the shape of an input"
            raise RelayValueError(f"`{part}` is no size", code="import.shape", help=help)
        told[size[1]] = tuple(map(int, size[2].split("x")))
    return told


def filled(inputs: Shapes, told: Told, file: str) -> dict[str, tuple[int, ...]]:
    """The shapes of a model's inputs; what is open and not told is 1, with a warning.

    RelayValueError for names that are neither of an open size nor of an input.
    """
    open_ = dict.fromkeys(d for shape in inputs.values() for d in shape if isinstance(d, str))
    sizes = {name: of[0] for name, of in told.items() if name in open_ and len(of) == 1}
    for name in told:
        if name not in sizes and name not in inputs:
            known = [*open_, *inputs]
            help = did_you_mean(name, known) or f"there are {', '.join(known)}"
            raise RelayValueError(f"{file} has no open size and no input `{name}`", code="import.shape", help=help)
    whole = {name: of for name, of in told.items() if name not in sizes}
    left = {name: shape for name, shape in inputs.items() if name not in whole}
    missing = dict.fromkeys(d for shape in left.values() for d in shape if isinstance(d, str) and d not in sizes)
    if missing:
        said, how = (sep.join(form.format(d) for d in missing) for sep, form in ((", ", "`{}`"), (",", "{}=…")))
        warn(f"{file} leaves {said} open: 1 here; `{file}:{how}` says more", OpenSizeWarning)
    fill = lambda d: sizes.get(d, 1) if isinstance(d, str) else d
    return whole | {name: tuple(map(fill, shape)) for name, shape in left.items()}
