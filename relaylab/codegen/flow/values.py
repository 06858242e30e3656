"""Values of evaluation as objects in memory, and back.

Every object has a word before it that says what it is and how large, so that no types are needed to read it.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from relaylab.codegen.open.results import readable
from relaylab.interp.values import ConstructorValue, Value, fits
from relaylab.ir.adt import Constructor
from relaylab.ir.module import IRModule
from relaylab.ir.types import GlobalTypeVar, TensorType, TupleType, Type, TypeCall, substitute_type
from relaylab.runtime import abi
from relaylab.runtime.container import ADT
from relaylab.runtime.memory import ALIGNMENT, address, aligned, aligned_copy
from relaylab.runtime.ndarray import NDArray

TUPLE, CELL = 0, 1
LARGE = 1 << 12
"""Bytes from which on an argument is not copied."""


def header_of(number: int, nbytes: int) -> int:
    """The first word of an object of fields; that of a tensor is larger by 2."""
    return number << abi.NUMBER_SHIFT | nbytes << 2 | 1


class Held:
    """The memory of arguments: a block with those that were copied, and arrays that are read where they lie."""

    def __init__(self) -> None:
        self.block = np.empty(0, np.uint8)
        self.arrays: dict[int, np.ndarray] = {}

    def read(self, value: np.ndarray) -> int | None:
        """Where an array is read; None if it is copied."""
        if value.nbytes < LARGE or not value.dtype.isnative or not readable(value, address(value)):
            return None
        return address(value) if self.arrays.setdefault(address(value), value) is value else None


class _Layout:
    """What arguments are made of, one behind the other: where each part is, its header or array, what it holds."""

    def __init__(self) -> None:
        self.used = 0
        self.parts: list[tuple[int, int | np.ndarray, list[int]]] = []
        self.roots: list[int] = []

    def tensor(self, value: np.ndarray, parent: int) -> None:
        """A tensor."""
        self.used = -(-(self.used + 8) // ALIGNMENT) * ALIGNMENT
        self._add(self.used, value, parent)
        self.used += -(-value.nbytes // 8) * 8

    def object(self, header: int, count: int, parent: int) -> int:
        """An object of so many fields; its number, of which its fields are told."""
        self._add(self.used + 8, header, parent)
        self.used += 8 + 8 * count
        return len(self.parts) - 1

    def refer(self, part: int, parent: int) -> None:
        """A part that is there."""
        (self.roots if parent < 0 else self.parts[parent][2]).append(part)

    def _add(self, start: int, content: int | np.ndarray, parent: int) -> None:
        self.refer(len(self.parts), parent)
        self.parts.append((start, content, []))


class Values:
    """The kinds of objects of a program, and the constants that its instructions point to."""

    def __init__(self, mod: IRModule):
        self.mod = mod
        self.kinds: dict[object, int] = {"tuple": TUPLE, "cell": CELL}
        """The number of each, in order."""
        self.kept: list[np.ndarray] = []
        self.inputs: dict[tuple[Type, Constructor], list[Type]] = {}

    def number(self, kind: object) -> int:
        """The number of a constructor, or of a data type and shape."""
        return self.kinds.setdefault(kind, len(self.kinds))

    def tensor(self, dtype: np.dtype, shape: tuple[int, ...]) -> tuple[int, int]:
        """The header of tensors, and their bytes."""
        nbytes = math.prod(shape) * dtype.itemsize
        return header_of(self.number((dtype, shape)), nbytes) | 2, nbytes

    def constant(self, value: np.ndarray) -> int:
        """Where a tensor lies that is kept."""
        block = aligned(ALIGNMENT + value.nbytes, "a constant")
        self.kept.append(block)
        self.write(block, ALIGNMENT, value)
        return address(block) + ALIGNMENT

    def write(self, block: np.ndarray, at: int, value: np.ndarray) -> None:
        """A tensor with its header before it."""
        dtype = value.dtype.newbyteorder("=")
        header, nbytes = self.tensor(dtype, value.shape)
        block[at - 8 : at].view(np.uint64)[0] = header
        block[at : at + nbytes].view(dtype).reshape(value.shape)[...] = value

    # ---- arguments

    def given(self, args: Sequence[Value], types: Sequence[Type]) -> tuple[list[int], Held] | None:
        """Where arguments lie, and what holds them; None for what is not of its type, or has no objects.

        Large tensors are read where they are.
        """
        layout, held = _Layout(), Held()
        made: dict[tuple[int, Type], int] = {}
        places: list[int | None] = []
        stack: list[tuple[Value, Type, int]] = []
        for value, t in zip(args, types):
            places.append(held.read(value) if isinstance(t, TensorType) and fits(value, t) else None)
            stack += [(value, t, -1)] if places[-1] is None else []
        stack.reverse()
        while stack:
            value, t, parent = stack.pop()
            value = np.asarray(value) if isinstance(value, np.generic) else value
            if isinstance(t, TensorType):
                if not fits(value, t):
                    return None
                layout.tensor(value, parent)
                continue
            if (id(value), t) in made:  # what lies in several places is one object
                layout.refer(made[id(value), t], parent)
                continue
            found = self._fields(value, t)
            if found is None:
                return None
            number, fields, parts = found
            made[id(value), t] = own = layout.object(header_of(number, 8 * len(fields)), len(fields), parent)
            stack += [(f, p, own) for f, p in zip(reversed(fields), reversed(parts))]
        held.block = aligned(layout.used + ALIGNMENT, "the arguments")
        words, base = held.block[: len(held.block) // 8 * 8].view(np.uint64), address(held.block)
        for start, content, below in layout.parts:
            if isinstance(content, int):
                words[start // 8 - 1] = content
                words[start // 8 : start // 8 + len(below)] = [base + layout.parts[k][0] for k in below]
            else:
                self.write(held.block, start, content)
        roots = iter(layout.roots)
        return [base + layout.parts[next(roots)][0] if p is None else p for p in places], held

    def _fields(self, value: Value, t: Type) -> tuple[int, Sequence[Value], Sequence[Type]] | None:
        """The number of an object, and its fields with their types."""
        if isinstance(t, TupleType) and isinstance(value, tuple):
            return (TUPLE, value, t.fields) if len(value) == len(t.fields) else None
        head = t.func if isinstance(t, TypeCall) else t
        if not isinstance(value, ConstructorValue) or not isinstance(head, GlobalTypeVar):
            return None
        data = self.mod.type_definitions[head]
        made = next((c for c in data.constructors if c is value.constructor or c.tag == value.tag != -1), None)
        if made is None or len(made.inputs) != len(value.fields):
            return None
        if (t, made) not in self.inputs:
            binds: dict[Any, Type] = dict(zip(data.type_vars, t.args if isinstance(t, TypeCall) else ()))
            self.inputs[t, made] = [substitute_type(p, binds) for p in made.inputs]
        return self.number(made), value.fields, self.inputs[t, made]

    # ---- results

    def taken(self, place: int, heap: np.ndarray, held: Held) -> Value:
        """The value that lies somewhere, in `heap` or not, as programs get it; each object once."""
        words, base = heap.data.cast("Q"), address(heap)
        size, kinds = heap.nbytes, list(self.kinds)
        done: list[Value] = []
        made: dict[int, ADT] = {}
        stack: list[tuple[int, int, int]] = [(place, -1, 0)]
        while stack:
            at, count, number = stack.pop()
            if count >= 0:  # of an object whose fields are done
                kind, cut = kinds[number], len(done) - count
                fields = done[cut:]
                made[at] = ADT(kind.tag, fields, kind) if isinstance(kind, Constructor) else ADT(0, fields)
                done[cut:] = [made[at]]
                continue
            if at in made:
                done.append(made[at])
                continue
            offset = at - base
            inside = 0 <= offset < size
            if not inside and at in held.arrays:
                done.append(_copied(held.arrays[at]))
                continue
            header = words[offset // 8 - 1] if inside else _word(at - 8)
            number, nbytes = header >> abi.NUMBER_SHIFT, (header & abi.BYTES_MASK) >> 2
            if header & 2:
                dtype, shape = cast("tuple[np.dtype, tuple[int, ...]]", kinds[number])
                own = heap if inside else _bytes(at, nbytes)
                done.append(_copied(np.ndarray(shape, dtype, own, offset if inside else 0)))
                continue
            count, first = nbytes // 8, offset // 8
            parts = words[first : first + count].tolist() if inside else [_word(at + 8 * k) for k in range(count)]
            stack.append((at, count, number))
            stack += [(p, -1, 0) for p in reversed(parts)]
        return done[0]


class PlainArguments:
    """Tensors of known shapes as arguments: where each is copied to is found once. Large ones stay where they are."""

    def __init__(self, values: Values, types: Sequence[TensorType]):
        layout = _Layout()
        tensors = [np.zeros(t.concrete_shape, t.dtype) for t in types]
        for tensor in tensors:
            if tensor.nbytes < LARGE:
                layout.tensor(tensor, -1)
        self.block = aligned(layout.used + ALIGNMENT, "the arguments")
        starts = iter([start for start, _, _ in layout.parts])
        self.parts: list[tuple[np.dtype, tuple[int, ...], np.ndarray | None, int]] = []
        for tensor in tensors:
            own, start = None, 0
            if tensor.nbytes < LARGE:
                values.write(self.block, start := next(starts), tensor)
                own = self.block[start : start + tensor.nbytes].view(tensor.dtype).reshape(tensor.shape)
            self.parts.append((tensor.dtype, tensor.shape, own, address(self.block) + start))

    @staticmethod
    def of(values: Values, types: Sequence[Type]) -> PlainArguments | None:
        """Those of these types; None if there are others."""
        plain = [t for t in types if isinstance(t, TensorType) and not t.is_dynamic]
        return PlainArguments(values, plain) if len(plain) == len(types) else None

    def given(self, args: Sequence[Value]) -> tuple[list[int], Held] | None:
        """Where arguments lie, and what holds them; None if more has to be looked at, or copied."""
        places: list[int] = []
        held = Held()
        for value, (dtype, shape, own, place) in zip(args, self.parts, strict=True):
            if type(value) is not np.ndarray or value.dtype != dtype or value.shape != shape:
                return None
            found = place
            if own is not None:
                own[...] = value
            elif (found := held.read(value)) is None:
                return None
            places.append(found)
        return places, held


def _copied(memory: np.ndarray) -> NDArray:
    return NDArray(aligned_copy(memory, memory.dtype), alone=True)


def _word(at: int) -> int:
    return ctypes.c_uint64.from_address(at).value


def _bytes(at: int, nbytes: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * max(nbytes, 1)).from_address(at))


__all__ = ["CELL", "TUPLE", "Held", "PlainArguments", "Values", "header_of"]
