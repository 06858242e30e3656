"""Changes of bytes and of JSON data, drawn from choices."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from fuzz.choices import Choices

NUMBERS = (0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1, 1 << 62, 1 << 40)
ODD: tuple[Any, ...] = (
    0, 1, -1, 2, 7, 64, 1 << 31, (1 << 63) - 1, 1 << 64, -(1 << 63), 1.5, float("nan"), "", "x", "O", "float64",
    "../../etc/passwd", "a\0b", "\ud800", "'''\n", None, True, [], {}, [0], [1] * 70, {"a": 1}, [[[[]]]], 10**30,
)  # fmt: skip


def changed_bytes(draw: Choices, data: bytes) -> bytes:
    """The bytes with one to four changes."""
    out = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(out) + 1)
        size = draw.choice((1, 2, 4, 8, 16, 200))
        how = draw.choice(_CHANGES)
        how(draw, out, at, size)
    return bytes(out)


def _flip(draw: Choices, out: bytearray, at: int, size: int) -> None:
    if at < len(out):
        out[at] ^= 1 << draw.randrange(8)


def _number(draw: Choices, out: bytearray, at: int, size: int) -> None:
    size = min(size, 8)
    out[at : at + size] = (draw.choice(NUMBERS) & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _cut(draw: Choices, out: bytearray, at: int, size: int) -> None:
    del out[at:]


def _without(draw: Choices, out: bytearray, at: int, size: int) -> None:
    del out[at : at + size]


def _twice(draw: Choices, out: bytearray, at: int, size: int) -> None:
    out[at:at] = out[at : at + size]


def _moved(draw: Choices, out: bytearray, at: int, size: int) -> None:
    other = draw.randrange(len(out) + 1)
    out[at : at + size] = out[other : other + size]


_CHANGES: tuple[Callable[[Choices, bytearray, int, int], None], ...] = (_flip, _number, _cut, _without, _twice, _moved)


def changed_json(draw: Choices, data: Any) -> Any:
    """The data with one to three changes somewhere in it."""
    out = copy.deepcopy(data)
    for _ in range(draw.randint(1, 3)):
        places = list(_places(out))
        if not places:
            return draw.choice(ODD)
        where, key = draw.choice(places)
        how = draw.choice(("value", "value", "near", "copy", "without"))
        if how == "value":
            where[key] = copy.deepcopy(draw.choice(ODD))
        elif how == "near" and type(where[key]) is int:
            where[key] += draw.choice((-1, 1, 3, -64, 1 << 20, -(1 << 33)))
        elif how == "copy":
            other, k = draw.choice(places)
            where[key] = copy.deepcopy(other[k])
        elif how == "without":
            del where[key]
    return out


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in nested data."""
    stack = [data]
    while stack:
        at = stack.pop()
        keys: Any = at if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ()
        for key in keys:
            yield at, key
            stack.append(at[key])
