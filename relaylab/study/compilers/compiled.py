"""A program as its operations, and what a compiler made of them: which went into which kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class SourceOperation:
    """An operation of the program: its name, its operator, the names of the operations that bring its operands."""

    name: str
    kind: str
    sources: tuple[str, ...]
    family: str = "opaque"


@dataclass(frozen=True)
class SourceProgram:
    """The operations of a program in an order in which they can be computed."""

    title: str
    operations: tuple[SourceOperation, ...]

    @cached_property
    def by_name(self) -> Mapping[str, SourceOperation]:
        """Operations by name."""
        return {o.name: o for o in self.operations}

    @property
    def links(self) -> Iterable[tuple[SourceOperation, SourceOperation]]:
        """Every operation with each one that reads it."""
        for reader in self.operations:
            for name in dict.fromkeys(reader.sources):
                yield self.by_name[name], reader


@dataclass(frozen=True)
class FusedKernel:
    """A kernel of a compiler: its name, and the operations whose results it computes."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class Compiled:
    """What a compiler made of a program; operations in no kernel are gone (computed before, or not needed)."""

    compiler: str
    kernels: tuple[FusedKernel, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def homes(self) -> Mapping[str, frozenset[int]]:
        """The kernels of each operation by number; an operation that two kernels compute has both."""
        found: dict[str, set[int]] = {}
        for number, kernel in enumerate(self.kernels):
            for name in kernel.members:
                found.setdefault(name, set()).add(number)
        return {name: frozenset(numbers) for name, numbers in found.items()}

    def together(self, a: str, b: str) -> bool:
        """Whether one kernel computes both operations."""
        return bool(self.homes.get(a, frozenset()) & self.homes.get(b, frozenset()))
