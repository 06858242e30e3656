"""What type relations ask of the sizes of an open program: it is asked with numbers, when a call brings them.

With names for sizes a relation takes what may fit: a size where three columns are wanted, two names for what has to be
equal. Kernels rely on it, and procedures on all that their relations say.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from relaylab.codegen.network.open_sizes import evaluated
from relaylab.codegen.open.rules import Equal, equalities, has_rule, is_exact, touches_open
from relaylab.interp.sizes import with_known_sizes
from relaylab.ir.dims import Dim, IntImm, SizeVar, SymbolicDim
from relaylab.ir.expr import Call, Constant, Function
from relaylab.ir.free import sizes_in
from relaylab.ir.op import Op, facets
from relaylab.ir.types import IncompleteType, TensorType, TupleType, Type, type_text
from relaylab.ir.visit import walk
from relaylab.op.base import Known, Operator
from relaylab.support.errors import RelayError, RelayValueError

PROBES = (0, 1, 2, 7, 1 << 20)
"""Numbers with which it is looked for relations that do not take all."""
REMEMBERED = 1024
"""Of how many sets of numbers an answer is kept."""


class KnownSizes(Known):
    """The solver of a relation whose types are numbers."""

    def unify(self, a: Type, b: Type) -> Type:
        if isinstance(a, IncompleteType) or isinstance(b, IncompleteType) or a == b:
            return b if isinstance(a, IncompleteType) else a
        return self.fail(f"{type_text(a)} is not {type_text(b)}")


@dataclass(frozen=True)
class _Asked:
    """A call of an operator over sizes."""

    record: Operator
    types: tuple[Type | None, ...]
    out: Type | None
    names: tuple[SizeVar, ...]
    values: tuple[np.ndarray | None, ...]
    """Those of arguments that are constants."""
    exact: bool
    """Whether what its relation gives for numbers has to be what it gave for sizes."""
    answers: dict[tuple[int, ...], str]
    """What it says of numbers that it was asked about: sizes that data decides are others at each call, in a range."""

    @staticmethod
    def of(call: Call) -> _Asked:
        """What is asked of the sizes of a call."""
        types, record = tuple(a.checked_type for a in call.args), cast(Operator, facets(call))
        names = sizes_in([d for t in (*types, call.checked_type) for d in dims_of(t)])
        looks = record.refuses_values
        values = tuple(a.data.numpy() if looks and isinstance(a, Constant) else None for a in call.args)
        return _Asked(record, types, call.checked_type, tuple(names), values, is_exact(call), {})

    def answer(self, known: Mapping[SizeVar, int]) -> str:
        """Why it does not take these sizes; "" if it does."""
        key = tuple([known[name] for name in self.names])
        found = self.answers.get(key)
        if found is None:
            found = self.refusal(known)
            if len(self.answers) >= REMEMBERED:
                self.answers.clear()
            self.answers[key] = found
        return found

    def refusal(self, known: Mapping[SizeVar, int]) -> str:
        """The same, asked anew. A size below 0 is that of a slice which has nothing."""
        types, out = [numbered(t, known) for t in self.types], numbered(self.out, known)
        try:
            record = cast(Operator, with_known_sizes(self.record, known))
            given = record.relation(KnownSizes(), *types)
            refused = record.refusal(types, self.values)
        except RelayError as error:
            return error.message
        return refused or ("" if given == out or not self.exact else f"it would give {given}")

    def refuses_some(self) -> bool:
        """Whether there are sizes that it does not take, as far as a few numbers tell."""
        return any(map(self.refusal, self._probes()))

    def _probes(self) -> Iterator[dict[SizeVar, int]]:
        for number in PROBES:
            yield dict.fromkeys(self.names, number)
            if len(self.names) > 1:
                yield {name: number + k for k, name in enumerate(self.names)}


class AskedTypes:
    """The calls of an open program that may not take all sizes, once for equal types; those with procedures are among
    them. And the dimensions that kernels take for equal.

    Programs are given as they were and as the passes leave them: what passes put in the place of a call may take more.
    """

    def __init__(self, *functions: Function):
        nodes = walk([f.body for f in functions])
        every: dict[object, _Asked] = {}
        self.equal: dict[Equal, str] = {}
        """Pairs of dimensions, with the first operator that takes them for equal."""
        for call in nodes:
            if not isinstance(call, Call) or not isinstance(call.op, Op) or not touches_open(call):
                continue
            self.equal = dict.fromkeys(equalities(call) or (), call.op.name) | self.equal
            if not has_rule(call):
                asked = _Asked.of(call)
                every.setdefault((repr(asked.record), asked.types, asked.out, *map(id, asked.values)), asked)
        self.found = [asked for asked in every.values() if asked.exact or asked.refuses_some()]

    def check(self, known: Mapping[SizeVar, int]) -> None:
        """RelayValueError `vm.size` for sizes that one of them does not take."""
        for (a, c), name in self.equal.items():
            left, right = (evaluated(d, known) if isinstance(d, SymbolicDim) else d for d in (a, c))
            if left != right:
                raise _refused(
                    name,
                    f"`{a}` is {left} and `{c}` is {right}, which have to be equal",
                    f"give arrays for whose sizes `{a}` and `{c}` are equal: they are {left} and {right}",
                )
        for asked in self.found:
            reason = asked.answer(known)
            if reason:
                raise _refused(asked.record.op_name, reason, "give arrays of sizes that the operators take")


def _refused(name: str, reason: str, help: str) -> RelayValueError:
    return RelayValueError(f"`{name}` does not take these sizes: {reason}", code="vm.size", help=help)


def numbered(t: Type | None, known: Mapping[SizeVar, int]) -> Type:
    """A type of tensors with the numbers that its sizes have."""
    if isinstance(t, TupleType):
        return TupleType([numbered(part, known) for part in t.fields])
    dims = [IntImm(max(evaluated(d, known), 0)) if isinstance(d, SymbolicDim) else d for d in cast(TensorType, t).shape]
    return TensorType(dims, cast(TensorType, t).dtype)


def dims_of(t: Type | None) -> Iterator[Dim]:
    """The dimensions of all tensors in a type."""
    if isinstance(t, TupleType):
        for part in t.fields:
            yield from dims_of(part)
    elif isinstance(t, TensorType):
        yield from t.shape
