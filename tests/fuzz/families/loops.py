"""Every operator on other shapes, data types and attributes than its samples: its types refuse them, or its loop form,
which the loop evaluator runs with every index checked, computes what its numpy form does; some are compiled.

A sample is changed up to three times: an extent replaced wherever it occurs, an axis of one argument made 1, 0, larger,
dropped, or a new one added; one data type for the commonest one or for one argument; an attribute of another sample;
shapes that broadcast. Floats may differ by TOLERANCE (some thousand elements added in another order); integers not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from codegen.operator_programs import (
    DTYPES,
    TOLERANCE,
    commonest,
    compiled,
    leaves,
    lowered,
    mistyped,
    recast,
    replaced,
    tensors,
    unlike,
)
from fuzz.choices import Choices
from fuzz.search import Finding, family
from op.op_cases import OF_PLACES, arrays_of, infer, type_of

from relaylab.op.rounding import evaluated
from relaylab.ir import OPERATORS, TensorType
from relaylab.op.base import Broadcast, Sample
from relaylab.support.errors import RelayError

NAMES = [n for n in sorted(OPERATORS) if OPERATORS[n].definition.samples()]
MOST = 3000
"""Elements of one argument; the evaluator of loops is slow."""
TARGETS = ("llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64")


@dataclass(frozen=True)
class Case:
    """An operator with a changed sample, a seed for values, a target if it is compiled."""

    name: str
    sample: Sample
    seed: int
    target: str


def resized(draw: Choices, case: Sample) -> Sample:
    """One extent replaced wherever it occurs in drawn tensors."""
    drawn = [(p, a) for p, a in tensors(case.args) if isinstance(a, TensorType)]
    known = sorted({n for _, a in drawn for n in a.concrete_shape})
    if not known:
        return case
    old = draw.choice(known)
    new = draw.choice((1, 0, 2, 3, 5, 7, 8, 17, old + 1))
    args = case.args
    for p, a in drawn:
        args = replaced(args, p, TensorType([new if n == old else n for n in a.concrete_shape], a.dtype))
    return replace(case, args=args)


def bent(draw: Choices, case: Sample) -> Sample:
    """One axis of one argument changed."""
    p, a = draw.choice(list(tensors(case.args)))
    shape = a.concrete_shape if isinstance(a, TensorType) else np.shape(a)
    how = draw.choice(("one", "dropped", "larger", "nothing", "added"))
    if how == "added" or not shape:
        new: Any = TensorType((1, *shape), a.dtype) if isinstance(a, TensorType) else np.asarray(a)[None]
        return replace(case, args=replaced(case.args, p, new))
    axis = draw.randrange(len(shape))
    if isinstance(a, TensorType):
        extent = {"one": (1,), "dropped": (), "larger": (shape[axis] + 1,), "nothing": (0,)}[how]
        new = TensorType((*shape[:axis], *extent, *shape[axis + 1 :]), a.dtype)
    elif not shape[axis]:
        return case
    else:
        at = {"one": [0], "dropped": 0, "larger": [*range(shape[axis]), shape[axis] - 1], "nothing": []}[how]
        new = np.take(np.asarray(a), np.array(at, "int64"), axis)
    return replace(case, args=replaced(case.args, p, new))


def retyped(draw: Choices, case: Sample) -> Sample:
    """Another data type for the commonest one, or for one argument."""
    places = commonest(case.args) if not draw.chance(0.4) else []
    places = places or [draw.choice(list(tensors(case.args)))[0]]
    return replace(case, args=recast(case.args, places, draw.choice(DTYPES)))


def mixed(draw: Choices, name: str, case: Sample) -> Sample:
    """One attribute as in another sample."""
    other = draw.choice(OPERATORS[name].definition.samples())
    if not other.attrs:
        return case
    key = draw.choice(sorted(other.attrs))
    return replace(case, attrs={**case.attrs, key: other.attrs[key]})


def spread(draw: Choices, case: Sample) -> Sample:
    """Shapes of rank 0 to 5 that broadcast."""
    whole = [draw.choice((1, 2, 3, 0, 5, 8)) for _ in range(draw.randrange(6))]
    dtype = draw.choice(DTYPES)
    shapes = [[1 if draw.chance(0.3) else n for n in whole][draw.randrange(len(whole) + 1) :] for _ in case.args]
    return replace(case, args=tuple(TensorType(s, dtype) for s in shapes))


def zeroed(arrays: Any, given: Any) -> Any:
    """The arrays with those that the sample gives by their values filled with zeros."""
    parts = (
        zeroed(a, g) if isinstance(g, tuple) else a * 0 if not isinstance(g, TensorType) else a
        for a, g in zip(arrays, given)
    )
    return tuple(parts) if isinstance(arrays, tuple) else list(parts)


@family("loops", "every operator on changed samples: its types refuse, or its loop form computes its numpy form")
class Loops:
    def case(self, draw: Choices) -> Case:
        name = draw.choice(NAMES)
        definition = OPERATORS[name].definition
        case = draw.choice(definition.samples())
        if issubclass(definition, Broadcast) and definition.inputs == ("lhs", "rhs") and draw.chance(0.5):
            case = spread(draw, case)
        for _ in range(draw.randrange(4)):
            if not list(tensors(case.args)) or "start" in case.attrs:  # arange has its arguments as attributes too
                break
            else:
                change = draw.choice((resized, bent, retyped, mixed))
                case = mixed(draw, name, case) if change is mixed else change(draw, case)
        target = draw.choice(TARGETS) if draw.chance(0.1) else ""
        return Case(name, case, draw.randrange(100), target)

    def run(self, case: Case) -> str:
        shapes = [a.concrete_shape for _, a in tensors(case.sample.args) if isinstance(a, TensorType)]
        if sum(math.prod(s) for s in shapes) > MOST:
            return "too large"
        record = OPERATORS[case.name].definition(**case.sample.attrs)
        arrays = arrays_of(case.sample, case.seed)
        out = infer(record, *map(type_of, arrays))
        if "reference" in record.waivers:
            return "no numpy form"
        try:
            return self.computed(case, record, arrays, out)
        except IndexError:  # indices of the sample that lie outside now: what the extents do is still to be seen
            if all(isinstance(a, TensorType) for _, a in tensors(case.sample.args)):
                raise
        return self.computed(case, record, zeroed(arrays, case.sample.args), out)

    def computed(self, case: Case, record: Any, arrays: list, out: Any) -> str:
        said = f"{case.name}({case.sample.args}, {case.sample.attrs}), values {case.seed}"
        if out is None:
            raise Finding(f"{case.name} has no type", said)
        try:
            with np.errstate(all="ignore"):
                want = leaves(evaluated(record, arrays))
        except RelayError as error:
            if "lower" in record.waivers or error.code in OF_PLACES:
                return "refused by values"
            raise Finding(f"{case.name}: the numpy form refuses what the types accept", f"{said}\n{error}") from None
        try:
            wrong = mistyped(out, want) or self.lowered(case, record, arrays, out, want)
        except RelayError as error:
            wrong = f"{error}"
        if wrong:
            raise Finding(f"{case.name} is wrong", f"{said}\n{wrong}")
        return "typed only" if "lower" in record.waivers else "compared" + " and compiled" * bool(case.target)

    def lowered(self, case: Case, record: Any, arrays: list, out: Any, want: list) -> str:
        """How the loop form and compiled code differ from the numpy form."""
        if "lower" in record.waivers:
            return ""
        # rounded means leave little of numbers that are nearly equal
        within = TOLERANCE | ({"float16": 5e-2} if case.name.endswith("_norm") else {})
        wrong = unlike("the loop form", leaves(lowered(record, arrays, out)), want, within)
        if case.target and not wrong:
            wrong = unlike(f"compiled ({case.target})", compiled(record, arrays, case.target), want, within)
        return wrong
