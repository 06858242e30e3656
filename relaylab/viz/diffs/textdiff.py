"""The difference of two printed programs, line by line, not fooled by renumbering.

Temporaries (`%12`) are numbered by the printer: one more line in front renames all the rest. So lines are
aligned with the numbers blanked out, the aligned lines tell which number is which, and the right side is
printed with the left side's names; what still differs has changed.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

LARGE = 1 << 20
"""Pairs of lines of which each is compared with each; more take long where lines are alike."""
_NUMBER = re.compile(r"%(\d+)\b(?!\.\w*[a-zA-Z_])")
_DEFINITION = re.compile(r"^\s*(?:let )?%(\d+) = ")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of the comparison: mark ` `, `-` or `+`, and its text (on the right with the left side's numbers)."""

    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.mark} {self.text}".rstrip()


def diff_lines(before: str, after: str) -> list[DiffLine]:
    """All lines of both texts, aligned."""
    left, right = before.splitlines(), after.splitlines()
    blocks = list(_blocks(left, right))
    renamed = _rename(left, right, blocks)
    out: list[DiffLine] = []
    for a0, a1, b0, b1 in blocks:
        out += _pairwise(left[a0:a1], renamed[b0:b1]) if a1 - a0 == b1 - b0 else _replaced(left[a0:a1], renamed[b0:b1])
    return out


Block = tuple[int, int, int, int]
"""From and to which line on the left, and on the right."""


def _blocks(left: Sequence[str], right: Sequence[str]) -> Iterator[Block]:
    """Ranges of lines that correspond: as long as each other, or one is empty; alike, or at least of one operator."""
    for a0, a1, b0, b1 in _stretches(left, right):
        for i0, i1, j0, j1 in _aligned(left[a0:a1], right[b0:b1]):
            yield a0 + i0, a0 + i1, b0 + j0, b0 + j1


def _stretches(left: Sequence[str], right: Sequence[str]) -> Iterator[Block]:
    """All lines; of long texts from one line to the next that both have once (Cohen's patience diff)."""
    anchors = _anchors(left, right) if len(left) * len(right) > LARGE else []
    a, b = 0, 0
    for i, j in [*anchors, (len(left), len(right))]:
        yield a, i, b, j
        if i < len(left):
            yield i, i + 1, j, j + 1
        a, b = i + 1, j + 1


def _anchors(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """Lines that both sides have once, as many as stand in the same order on both."""
    where = [{key: k for k, key in enumerate(keys) if counts[key] == 1} for keys, counts in map(_keyed, (left, right))]
    pairs = [(k, where[1][key]) for key, k in where[0].items() if key in where[1]]
    ends: list[int] = []
    heads: list[int] = []
    before: list[int] = []
    for k, (_, j) in enumerate(pairs):  # the longest increasing subsequence
        at = bisect_left(ends, j)
        ends[at : at + 1], heads[at : at + 1] = [j], [k]
        before.append(heads[at - 1] if at else -1)
    found: list[tuple[int, int]] = []
    at = heads[-1] if heads else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _keyed(lines: Sequence[str]) -> tuple[list[str], Counter[str]]:
    keys = [_definition(line) for line in lines]
    return keys, Counter(keys)


def _definition(line: str) -> str:
    """What a line is known by: the name that it defines and the operator, or all of it without numbers."""
    head, equals, body = (blank := _blank(line)).partition(" = ")
    return f"{head.strip()} = {body.partition('(')[0]}" if equals and head.strip() not in ("%", "let %") else blank


def _aligned(left: Sequence[str], right: Sequence[str]) -> Iterator[Block]:
    """Ranges of lines that correspond, of texts that are not long; what many lines have says little in long ones."""
    junk = len(left) * len(right) > LARGE
    for tag, a0, a1, b0, b1 in SequenceMatcher(
        None, [_blank(t) for t in left], [_blank(t) for t in right], autojunk=junk
    ).get_opcodes():
        if tag == "equal":
            yield a0, a1, b0, b1
            continue
        inner = SequenceMatcher(
            None, [_operator(t) for t in left[a0:a1]], [_operator(t) for t in right[b0:b1]], autojunk=junk
        )
        for same, i0, i1, j0, j1 in inner.get_opcodes():
            if same == "equal":
                yield a0 + i0, a0 + i1, b0 + j0, b0 + j1
            else:
                yield a0 + i0, a0 + i1, b0 + j0, b0 + j0
                yield a0 + i1, a0 + i1, b0 + j0, b0 + j1


def _replaced(left: Sequence[str], right: Sequence[str]) -> list[DiffLine]:
    return [DiffLine("-", t) for t in left] + [DiffLine("+", t) for t in right]


def unified(before: str, after: str, context: int = 3) -> str:
    """The changed lines with `context` lines around them; empty if nothing changed."""
    lines = diff_lines(before, after)
    shown: list[str] = []
    last = -1
    for index in _near([i for i, line in enumerate(lines) if line.mark != " "], context, len(lines)):
        if shown and index > last + 1:
            shown.append("  ⋮")
        shown.append(str(lines[index]))
        last = index
    return "\n".join(shown)


def tally(lines: Iterable[DiffLine]) -> dict[str, int]:
    """How many lines are `added`, `removed` and `changed` (one removed with one added in its place)."""
    counts = {"added": 0, "removed": 0, "changed": 0}
    gone = 0
    for line in lines:
        if line.mark == "-":
            gone += 1
        elif line.mark == "+" and gone:
            gone -= 1
            counts["changed"] += 1
        else:
            counts["removed"] += gone
            counts["added"] += line.mark == "+"
            gone = 0
    counts["removed"] += gone
    return counts


def _near(changed: Sequence[int], context: int, count: int) -> list[int]:
    return sorted({i for c in changed for i in range(max(0, c - context), min(count, c + context + 1))})


def _blank(line: str) -> str:
    return _NUMBER.sub("%", line)


def _rename(left: Sequence[str], right: Sequence[str], blocks: Iterable[tuple]) -> list[str]:
    """The right side with the numbers of the lines it is aligned with; new lines get numbers that are free."""
    names: dict[str, str] = {}
    for a0, a1, b0, b1 in blocks:
        for old, new in zip(left[a0:a1], right[b0:b1]):
            _pair(names, old, new)
    used = {m for t in left for m in _NUMBER.findall(t)}
    return [_NUMBER.sub(lambda m: "%" + _name(m[1], names, used), t) for t in right]


def _pair(names: dict[str, str], old: str, new: str) -> None:
    a, b = _DEFINITION.match(old), _DEFINITION.match(new)
    if a and b and _operator(old) == _operator(new):
        names[b[1]] = a[1]


def _operator(line: str) -> str:
    """What a line does: the operator of a definition, or the whole line."""
    return _blank(line.split(" = ", 1)[1]).split("(", 1)[0] if _DEFINITION.match(line) else line


def _name(number: str, names: dict[str, str], used: set[str]) -> str:
    if number not in names:
        free = number
        while free in used:
            free = str(int(free) + 1)
        used.add(free)
        names[number] = free
    return names[number]


def _pairwise(left: Sequence[str], right: Sequence[str]) -> Iterable[DiffLine]:
    for old, new in zip(left, right):
        if old == new:
            yield DiffLine(" ", old)
        else:
            yield DiffLine("-", old)
            yield DiffLine("+", new)
