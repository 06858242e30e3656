"""Families of kernels: each is one way to compute contractions of a kind, declared in a table that chooses among them.

A family says what it declines and why, and what the rest would cost; the one of the least estimate is taken. What
rounds differently (`minimal`) is considered for a spec that allows it, and has to be estimated clearly faster.
`inspect("why")` prints the table. How to add one: docs/CONTRIBUTING.md.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.templates.problem import Choices
from relaylab.support.errors import RelayValueError

HOUSE = "relaylab."


class Spec(Protocol):
    """What a family is asked to compute: `minimal` allows other rounding, `choices` are numbers of the plan."""

    @property
    def minimal(self) -> bool: ...

    @property
    def choices(self) -> Choices: ...


S = TypeVar("S", bound=Spec)


class KernelFamily(Generic[S]):
    """One way to compute contractions of a kind.

    `name` is what `why` calls it and `title` what an error does, `choices` names the numbers of its plan that may be
    chosen. One that is `minimal` has fewer products, which round differently: it is taken where its cycles are less
    than `advantage` times those of the best that is not.
    """

    name: str
    title: str
    choices: frozenset[str] = frozenset()
    minimal = False
    advantage = 1.0

    def declines(self, spec: S, target: CpuTarget) -> str:
        """Why it does not compute this; empty when it does."""
        raise NotImplementedError

    def cycles(self, spec: S, target: CpuTarget) -> float:
        """The estimated cycles of what it does not decline, on one thread, with weights that come from memory."""
        raise NotImplementedError

    def reasons(self, spec: S, target: CpuTarget) -> list[str]:
        """What `why` says of its kernels: one line each."""
        return []

    def unwanted(self, spec: S) -> str:
        """Why it is not asked at all; empty when it is."""
        if self.minimal and not spec.minimal:
            return "it rounds differently, which is not allowed here"
        other = [name for name, _ in spec.choices if name not in self.choices]
        return f"it has no choice `{other[0]}`" if other else ""

    def refuses(self, spec: S, target: CpuTarget) -> str:
        """Why it is out of the question, asked or not; empty when it is not."""
        return self.unwanted(spec) or self.declines(spec, target)


F = TypeVar("F", bound=KernelFamily)
_declared: list[str] = []


def generation() -> int:
    """A number that changes when a family is declared or forgotten: what follows from a choice is kept by it.

    Families ask tables about parts of what they compute, so that a choice depends on all tables.
    """
    return len(_declared)


class FamilyTable(Generic[S, F]):
    """The families for specs of one kind, in the order in which they were declared."""

    def __init__(self, *families: F):
        self.families = {family.name: family for family in families}
        self._choose = lru_cache(maxsize=4096)(self._least)

    def declare(self, family: F) -> F:
        """Adds a family, or puts it in the place of one of its name.

        Raises RelayValueError `codegen.family` if that is one of the house's own.
        """
        known = self.families.get(family.name)
        if known is not None and not _outside(known):
            raise RelayValueError(f"`{family.name}` is a family of relaylab's own", code="codegen.family")
        self.families[family.name] = family
        _declared.append(family.name)
        return family

    def forget(self, name: str) -> None:
        """Removes a family that was declared."""
        del self.families[name]
        _declared.append(name)

    @property
    def own(self) -> bool:
        """Are all families the house's?"""
        return not any(map(_outside, self.families.values()))

    def choose(self, spec: S, target: CpuTarget) -> F | None:
        """The family that computes this; None where all decline."""
        return self._choose(spec, target, generation())

    def table(self, spec: S, target: CpuTarget, chosen: F) -> list[str]:
        """What was considered as lines of text, the chosen one marked."""
        found = []
        for family in self.families.values():
            why = family.refuses(spec, target)
            cost = f"not possible: {why}" if why else f"{family.cycles(spec, target):14,.0f} cycles"
            found.append(f"{'->' if family is chosen else '  '} {family.name:10} {cost}")
        return found

    def _least(self, spec: S, target: CpuTarget, generation: int) -> F | None:
        able = [f for f in self.families.values() if not f.refuses(spec, target)]
        if len(able) < 2:
            return able[0] if able else None
        found = [(f.cycles(spec, target), f) for f in able]
        exact, minimal = (
            min((p for p in found if p[1].minimal == kind), key=lambda p: p[0], default=None) for kind in (False, True)
        )
        if exact is None or minimal is None:
            return (exact or minimal or found[0])[1]
        return (minimal if minimal[0] < minimal[1].advantage * exact[0] else exact)[1]


def _outside(family: KernelFamily[S]) -> bool:
    """Is it from outside this package? Its code may change between two builds."""
    return not type(family).__module__.startswith(HOUSE)
