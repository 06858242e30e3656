"""The steps of schedules. A step is a primitive and its words.

A primitive is a function `(program, words) -> program` with `@primitive`; what it does, how it is written and why it
may be refused stand at it, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from relaylab.loop.parse import RESERVED
from relaylab.loop.program import LoopProgram
from relaylab.loop.tokens import is_name
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.support.table import Table

FROM = "from"  # begins a schedule
MOST_DIGITS = 40  # of a number
Rewrite = Callable[[LoopProgram, tuple[str, ...]], LoopProgram]


@dataclass(frozen=True)
class Primitive:
    """A kind of step: how it is written, what it does, its words in TE and TIR (empty where they have none).

    `usage` is the name, a word in capitals for each that is wanted, `...` where the last may be repeated, and names for
    what is new: `split LOOP FACTOR [as OUTER INNER]`.
    """

    usage: str
    says: str
    rewrite: Rewrite
    te: str = ""
    tir: str = ""

    @property
    def name(self) -> str:
        """The first word."""
        return self.usage.split()[0]

    @property
    def words(self) -> list[str]:
        """The words that are wanted, by what they name: `LOOP`, `BUFFER`, `FACTOR` …"""
        return [w for w in self.usage.partition(" [as")[0].split()[1:] if w != "..."]

    @property
    def new(self) -> list[str]:
        """The names that may be given."""
        return self.usage.partition("[as ")[2].rstrip("]").split()

    @property
    def repeats(self) -> bool:
        """Whether the last word may come again."""
        return "..." in self.usage

    def takes(self, words: Sequence[str]) -> bool:
        """Whether so many words stand before `as`, and so many names after it."""
        at = words.index("as") if "as" in words else len(words)
        names, wanted = len(words) - at - 1, len(self.words)
        return (at == wanted or self.repeats and at > wanted) and names in (-1, len(self.new))


PRIMITIVES: Table[Primitive] = Table("schedule step", "`relaylab schedule --steps` lists them")


def primitive(usage: str, te: str = "", tir: str = "") -> Callable[[Rewrite], Rewrite]:
    """Declares a primitive: `usage` is how it is written (see `Primitive`), its docstring what it says."""

    def register(rewrite: Rewrite) -> Rewrite:
        found = Primitive(usage, " ".join((rewrite.__doc__ or "").split()), rewrite, te, tir)
        PRIMITIVES.insert(found.name, found)
        return rewrite

    return register


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """One step: a primitive's name and its words."""

    name: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.name, *self.words))

    def apply(self, program: LoopProgram) -> LoopProgram:
        """The program after this step; RelayValueError `schedule.*` says why it may not be taken."""
        return PRIMITIVES[self.name].rewrite(program, self.words)


_CALL = re.compile(r"(\w+) *[(（].*")


def step(name: str, *words: str | int) -> ScheduleStep:
    """A step, its primitive looked up, its words counted, its new names such as the text of loops may have."""
    given = tuple(map(str, words))
    called = _CALL.match(" ".join((name, *given)))
    if called is not None and called[1] in PRIMITIVES:
        usage = PRIMITIVES[called[1]].usage
        raise RelayValueError(
            f"steps are words, not calls: `{called[0]}`", code="schedule.arguments", help=f"it is written `{usage}`"
        )
    rule = PRIMITIVES.lookup(name)
    if not rule.takes(given):
        raise RelayValueError(
            f"`{name}` is written `{rule.usage}`, not `{' '.join((name, *given))}`", code="schedule.arguments"
        )
    new = named(given)[1]
    for k, word in enumerate(new):
        if word in new[:k] or word in RESERVED or not is_name(word):
            why = "is given twice" if word in new[:k] else "is no name for a loop or buffer"
            raise RelayValueError(f"`{word}` {why}", code="schedule.arguments")
    return ScheduleStep(name, given)


@contextmanager
def placed(place: str) -> Generator[None]:
    """Errors inside get the place of their step."""
    try:
        yield
    except RelayError as error:
        error.place = error.place or (f"  --> {place}" if place else "")
        raise


def number(word: str, what: str, least: int = 1) -> int:
    """A word that is a whole number from `least` on."""
    if not word.isdecimal() or len(word) > MOST_DIGITS or not least <= int(word) < 2**31:
        said = word if len(word) <= MOST_DIGITS else f"{word[:MOST_DIGITS]}…"
        raise RelayValueError(f"{what} is a whole number from {least} on, not `{said}`", code="schedule.arguments")
    return int(word)


def named(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Words and the names after `as`."""
    at = words.index("as") if "as" in words else len(words)
    return words[:at], words[at + 1 :]


def table(primitives: Iterable[Primitive]) -> str:
    """The primitives as a list for people."""
    return "\n".join(f"{p.usage}\n    {p.says}" for p in primitives)
