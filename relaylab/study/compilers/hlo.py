"""The text of an XLA module (HLO) as data: computations, instructions, and what is computed in which kernel.

Source: the notation of openxla.org/xla/operation_semantics as XLA prints it. Reading is reading text: nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from relaylab.support.order import post_order

HEAD = re.compile(r"^(ENTRY\s+)?%?([\w.\-]+)\s+(?:\(.*\)\s*->\s*\S.*)?\{\s*$")
NAMED = re.compile(r"^\s+(ROOT\s+)?%?([\w.\-]+)\s*=\s*(.*)$")
CALLED = re.compile(r"\b(?:calls|to_apply|body|true_computation|false_computation)=%?([\w.\-]+)")
BRANCHES = re.compile(r"\bbranch_computations=\{([^}]*)\}")
METADATA = re.compile(r',?\s*metadata=\{(?:[^{}"]|"[^"]*")*\}')
ORIGIN = re.compile(r'\bop_name="([^"]*)"')
FREE = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "iota", "after-all"))
"""Instructions for which nothing is computed."""
NESTED = frozenset(("call", "while", "conditional", "async-start"))
"""Instructions whose computations have kernels of their own."""


@dataclass(frozen=True)
class Instruction:
    """A line of a computation; `origin` is the path of the operation that it came from, `place` says which one.

    `literal` is what stands in the brackets of a constant (its value) or a parameter (its number).
    """

    name: str
    opcode: str
    operands: tuple[str, ...]
    literal: str
    attributes: str
    called: tuple[str, ...]
    origin: str
    place: str
    root: bool


@dataclass
class HloValue:
    """A value of the program, once however often it is computed: what from, and in which kernels."""

    instruction: Instruction
    operands: tuple[int, ...]
    kernels: set[str] = field(default_factory=set)


def computations(text: str) -> tuple[dict[str, list[Instruction]], str]:
    """The instructions of each computation, and the name of the entry (empty if there is none)."""
    found: dict[str, list[Instruction]] = {}
    entry, inside = "", None
    for line in text.splitlines():
        if head := HEAD.match(line):
            inside = found.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        elif line.startswith("}"):
            inside = None
        elif inside is not None and (named := NAMED.match(line)):
            inside.append(_instruction(named[2], named[3], bool(named[1])))
    return found, entry


def _instruction(name: str, text: str, root: bool) -> Instruction:
    text = re.sub(r"/\*.*?\*/", "", text)
    start = _closed(text, 0) if text.startswith("(") else text.find(" ")
    opcode, _, _ = text[start:].strip().partition("(")
    opening = text.find("(", start)
    end = _closed(text, opening) if opening >= 0 else len(text)
    inner, rest = text[opening + 1 : end - 1], text[end:]
    written = opcode in ("constant", "parameter")
    words = re.findall(r"%([\w.\-]+)", inner) or [w.strip() for w in inner.split(",") if w.strip()]
    branches = [b.strip().lstrip("%") for found in BRANCHES.findall(rest) for b in found.split(",")]
    metadata, origin = METADATA.search(rest), ORIGIN.search(rest)
    shape = text[: max(start, 0)]
    return Instruction(
        name, opcode, () if written else tuple(words), inner if written else "", METADATA.sub("", rest) + shape,
        (*CALLED.findall(rest), *branches), origin[1] if origin else "", metadata[0] if metadata else "", root,
    )  # fmt: skip


def _closed(text: str, start: int) -> int:
    """The place behind the bracket that closes the one at `start`."""
    depth = 0
    for bracket in re.compile(r"[()]").finditer(text, start):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return bracket.end()
    return len(text)


class Flat:
    """A module without its computations: each value once (equal instructions over equal values are one value)."""

    def __init__(self, found: Mapping[str, Sequence[Instruction]], entry: str) -> None:
        self.values: list[HloValue] = []
        self.kernels: dict[str, None] = {}
        self.roots: list[int] = []
        self.numbers: dict[tuple[object, ...], int] = {}
        self.found = found
        waiting, entered = [entry], {entry}
        while waiting:
            name = waiting.pop()
            later = [c for i in found[name] if i.opcode in NESTED for c in i.called]
            waiting += [c for c in reversed(dict.fromkeys(later)) if c in found and c not in entered]
            entered.update(later)
            self.roots.append(self._entered(name))

    def _entered(self, name: str) -> int:
        """The kernels of a computation; the number of its result. What it is given is of itself."""
        known: dict[str, int] = {}
        result = -1
        for instruction in self.found[name]:
            operands = tuple(known[o] for o in instruction.operands if o in known)
            if instruction.opcode == "fusion" and instruction.called and instruction.called[0] in self.found:
                number = self._fused(instruction, operands)
            else:
                kernel = "" if instruction.opcode in FREE | NESTED else instruction.name
                number = self._value(instruction, operands, kernel, name)
            known[instruction.name] = number
            result = number if instruction.root or result < 0 else result
        return result

    def _fused(self, fusion: Instruction, given: Sequence[int]) -> int:
        """The result of a fusion; a computation within it, such as that of a reduction, is a part of its line."""
        known: dict[str, int] = {}
        result = -1
        for instruction in self.found[fusion.called[0]]:
            operands = tuple(known[o] for o in instruction.operands if o in known)
            index = instruction.literal if instruction.opcode == "parameter" else ""
            bound = index.isdecimal() and int(index) < len(given)
            number = given[int(index)] if bound else self._value(instruction, operands, fusion.name, fusion.name)
            known[instruction.name] = number
            result = number if instruction.root or result < 0 else result
        return result

    def _value(self, instruction: Instruction, operands: tuple[int, ...], kernel: str, where: str) -> int:
        own = (where, instruction.name) if instruction.opcode in NESTED | {"parameter"} else ()
        key = (instruction.opcode, operands, instruction.literal, instruction.attributes, *own)
        number = self.numbers.setdefault(key, len(self.values))
        if number == len(self.values):
            self.values.append(HloValue(instruction, operands))
        if kernel and instruction.opcode not in FREE:
            self.kernels[kernel] = None
            self.values[number].kernels.add(kernel)
        return number

    def ordered(self) -> list[int]:
        """The numbers of all values that are used, operands first and from left to right."""
        return post_order([root for root in self.roots if root >= 0], lambda number: self.values[number].operands)
