"""Unification: what is known of types with unknown parts, and the constraints that wait for more.

An unknown type is an `IncompleteType`. The unknowns form a union-find forest; each class has at
most one known type, which may again contain unknowns. Constraints that cannot be decided yet wait
in lists keyed by the unknowns they wait for, so each is looked at again only when one of them
becomes known: the whole is near-linear in the size of the program.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from relaylab.analysis.infer.joins import JOINS, Conflict
from relaylab.ir.types import (
    GlobalTypeVar,
    IncompleteType,
    Nested,
    TensorType,
    Type,
    TypeVar,
    has_unknowns,
    renew_type,
    type_leaves,
)


class FailedType(Type):
    """The type of an expression whose type was reported as wrong: fits everything, so that no second error follows."""

    __slots__ = ()


FAILED = FailedType()
_ATOMS = (TensorType, TypeVar, GlobalTypeVar, FailedType)


class Constraint:
    """Something to be decided once enough is known: `attempt` returns whether it is done."""

    __slots__ = ("attempt", "types", "done", "queued")

    def __init__(self, attempt: Callable[[], bool], types: Iterable[Type]):
        self.attempt, self.types = attempt, tuple(types)
        self.done = self.queued = False


class Solver:
    """The knowledge about the unknowns of one inference."""

    def __init__(self) -> None:
        self.parent: dict[IncompleteType, IncompleteType] = {}
        self.value: dict[IncompleteType, Type] = {}
        self.waiting: dict[IncompleteType, list[Constraint]] = {}
        self.ready: deque[Constraint] = deque()
        self.joined: dict[tuple[int, int], tuple[Type, Type, Type]] = {}
        """What types without unknowns have in common: they may share their parts."""

    # ---- looking up

    def find(self, t: Type) -> Type:
        """`t`, or the representative of its class if it is an unknown."""
        return self._root(t) if type(t) is IncompleteType else t

    def _root(self, t: IncompleteType) -> IncompleteType:
        parent, root = self.parent, t
        while (up := parent.get(root)) is not None:
            root = up
        while t is not root:
            parent[t], t = root, parent[t]
        return root

    def shallow(self, t: Type) -> Type:
        """What is known of `t` at its outermost level; an unknown if nothing is."""
        if type(t) is not IncompleteType:
            return t
        root = self._root(t)
        return self.value.get(root, root)

    def resolve(self, t: Type) -> Type:
        """`t` with everything known filled in."""
        return renew_type(t, self._known_part) if has_unknowns(t) else t

    def _known_part(self, part: Type) -> Type | None:
        """A part of a type with everything known filled in, None if nothing of it is."""
        known = self.shallow(part)
        if not has_unknowns(known) or type(known) is IncompleteType:
            return known
        return None if known is part else renew_type(known, self._known_part)

    def unknowns(self, t: Type) -> list[IncompleteType]:
        """The unknowns left in `t`."""
        return [p for p in type_leaves(self.resolve(t)) if type(p) is IncompleteType] if has_unknowns(t) else []

    # ---- making equal

    def unify(self, a: Type, b: Type) -> Type:
        """The type that `a` and `b` both are; `Conflict` if there is none. Where dimensions are known and unknown,
        unknown wins.
        """
        x, y = self.find(a), self.find(b)
        if x is y:
            return self.shallow(x)
        t, u = self.shallow(x), self.shallow(y)
        if type(t) is IncompleteType:
            return self._bind(t, y)
        if type(u) is IncompleteType:
            return self._bind(u, x)
        merged = self._join(t, u)
        self._record(x, y, merged)
        return merged

    def _record(self, x: Type, y: Type, merged: Type) -> None:
        for var in (x, y):
            if type(var) is IncompleteType:
                self.value[var] = merged
        if type(x) is IncompleteType and type(y) is IncompleteType:
            self.parent[x] = y
            del self.value[x]

    def _bind(self, var: IncompleteType, to: Type) -> Type:
        """Give an unknown its value, or make two unknowns one."""
        if type(to) is IncompleteType:
            self.parent[var] = to
            self._move(var, to)
            return self.shallow(to)
        if not isinstance(to, _ATOMS) and var in self.unknowns(to):
            raise Conflict(var, self.resolve(to), "the type would contain itself")
        self.value[var] = to
        self._wake(var)
        return to

    def _move(self, var: IncompleteType, to: IncompleteType) -> None:
        if to in self.value:
            self._wake(var)
            return
        ours, theirs = self.waiting.pop(var, []), self.waiting.get(to, [])
        if ours:
            small, large = sorted((ours, theirs), key=len)
            large.extend(small)
            self.waiting[to] = large

    def _join(self, t: Type, u: Type) -> Type:
        if t is u or isinstance(u, FailedType):
            return t
        if isinstance(t, FailedType):
            return u
        join = JOINS.get(type(t))
        if type(t) is not type(u) or join is None:
            raise Conflict(t, u)
        if has_unknowns(t) or has_unknowns(u) or not isinstance(t, Nested):
            return join(self, t, u)
        if (id(t), id(u)) not in self.joined:
            self.joined[id(t), id(u)] = t, u, t if t == u else join(self, t, u)
        return self.joined[id(t), id(u)][2]

    def unify_all(self, left: Iterable[Type], right: Iterable[Type], what: str) -> tuple[Type, ...]:
        """Unify two lists of types; a conflict names the position."""
        out = []
        for k, (a, b) in enumerate(zip(left, right)):
            try:
                out.append(self.unify(a, b))
            except Conflict as conflict:
                inner = conflict.detail or f"{self.resolve(a)} against {self.resolve(b)}"
                raise Conflict(a, b, f"{what} {k}: {inner}") from None
        return tuple(out)

    # ---- waiting

    def post(self, constraint: Constraint) -> None:
        """Decide a constraint now or when more is known."""
        self._try(constraint)

    def settle(self) -> None:
        """Decide everything that became decidable."""
        while self.ready:
            constraint = self.ready.popleft()
            constraint.queued = False
            self._try(constraint)

    def _try(self, constraint: Constraint) -> None:
        if constraint.done:
            return
        constraint.done = constraint.attempt()
        if not constraint.done:
            for var in dict.fromkeys(v for t in constraint.types for v in self.unknowns(t)):
                self.waiting.setdefault(var, []).append(constraint)

    def _wake(self, var: IncompleteType) -> None:
        for constraint in self.waiting.pop(var, ()):
            if not (constraint.done or constraint.queued):
                constraint.queued = True
                self.ready.append(constraint)
