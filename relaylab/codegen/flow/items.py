"""What a program with `if` and loops is made of: blocks (graphs), choices, repetitions, moves between tensors.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from relaylab.ir.expr import Function, Var
from relaylab.ir.types import TensorType, TupleType, Type
from relaylab.support.errors import RelayTypeError

DEEPEST = 64
"""How deep loops and choices may stand in each other: reading them takes as many calls within calls."""


@dataclass(eq=False)
class FlowBlock:
    """A graph: what `function` gives for the tensors of its parameters goes to `outputs`."""

    function: Function
    outputs: list[Var]


@dataclass(eq=False)
class Move:
    """A copy of a tensor."""

    target: Var
    source: Var


@dataclass(eq=False)
class Append:
    """Rows put behind those of a collector, or before them; `source` None empties it."""

    target: Var
    source: Var | None = None
    before: bool = False


@dataclass(eq=False)
class Pin:
    """The rows of a collector are a tensor of known extents: there have to be as many."""

    target: Var
    collector: Var


@dataclass(eq=False)
class FlowChoice:
    """An `if`."""

    condition: Var
    true: list[Item]
    false: list[Item]


@dataclass(eq=False)
class Repeat:
    """Items that are run again and again, until one of them is a `Leave`."""

    body: list[Item]


class Leave:
    """The end of the innermost `Repeat`."""


Item: TypeAlias = FlowBlock | Move | Append | Pin | FlowChoice | Repeat | Leave


def all_items(items: Sequence[Item]) -> list[Item]:
    """Items, and those in them."""
    found: list[Item] = []
    stack = [*reversed(items)]
    while stack:
        item = stack.pop()
        found.append(item)
        if isinstance(item, FlowChoice):
            stack += [*reversed(item.false), *reversed(item.true)]
        elif isinstance(item, Repeat):
            stack += reversed(item.body)
    return found


def sized(item: Item) -> list[Var]:
    """The tensors of an item whose extents are known before it runs: all but collectors."""
    match item:
        case FlowBlock(function, outputs):
            return [*function.params, *outputs]
        case Move(target, source):
            return [target, source]
        case Append(_, Var() as source):
            return [source]
        case Pin(target):
            return [target]
        case FlowChoice(condition):
            return [condition]
        case _:
            return []


@dataclass(eq=False)
class FlowProgram:
    """A `main` of tensors as items; `results` are those that it returns, `constants` the values of some variables."""

    params: list[Var] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    results: list[Var] = field(default_factory=list)
    constants: dict[Var, np.ndarray] = field(default_factory=dict)
    collectors: dict[Var, bool] = field(default_factory=dict)
    """Variables that are collectors, and whether rows are put before the others."""


def leaf_types(t: Type | None) -> list[TensorType]:
    """The tensors in a type, left to right; RelayTypeError for what is no tensor."""
    if isinstance(t, TupleType):
        return [leaf for f in t.fields for leaf in leaf_types(f)]
    if not isinstance(t, TensorType):
        raise refused(f"a value of type {t}")
    return [t]


def refused(what: str) -> RelayTypeError:
    """The error for what cannot be such a program."""
    return RelayTypeError(f"{what} has no native form", code="codegen.no-flow", help="the virtual machine runs it")
