"""The control flow of emitted functions, read from their LLVM IR: blocks, edges, loops, and what each loop does.

What `outline` prints is what was emitted, whatever the templates say of it: it is read back from the text.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relaylab.codegen.llvm.debug_lines import lines_with_parts
from relaylab.support.words import counted

_DEFINE = re.compile(r"^define .*@([\w.$]+)\(")
_LABEL = re.compile(r"^([\w.]+):")
_TARGET = re.compile(r"label %([\w.]+)")
_PHI = re.compile(r"\[\s*([^,\[\]]+?),\s*%([\w.]+)\s*\]")
_ASSIGNED = re.compile(r"^\s*(%[\w.]+) = (.*)")
_WORK = {"load": "load", "store": "store", "fmul": "multiply", "fadd": "add", "fsub": "subtract", "fdiv": "divide"}
_CALLED = (
    ("llvm.fmuladd", "multiply-add"),
    ("llvm.fma.", "multiply-add"),
    ("llvm.masked.load", "masked load"),
    ("llvm.masked.store", "masked store"),
    ("llvm.masked.gather", "gather"),
    ("llvm.masked.scatter", "scatter"),
    ("llvm.prefetch", "prefetch"),
    ("llvm.vector.reduce", "lane reduction"),
    ("llvm.x86.avx512.vpdpbusd", "byte products"),
    ("llvm.aarch64.neon.usdot", "byte products"),
    ("llvm.aarch64.neon.sdot", "byte products"),
    ("llvm.x86.tdpbusd", "tile product"),
    ("llvm.x86.tileloadd", "tile load"),
    ("llvm.x86.tilestored", "tile store"),
    ("llvm.x86.ldtilecfg", "tile set-up"),
    ("llvm.x86.tilerelease", "tile release"),
)
_TYPELESS = ("prefetch", "tile")
PRODUCTS = ("multiply-add", "byte products", "tile product")
"""What products are called, of which a kernel's work is made."""
_VECTOR = re.compile(r"<(\d+) x (\w+)>|\b(float|double|i8|i16|i32|i64|half|ptr)\b")


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """A basic block: its label, its instructions without the last, and where the last goes.

    `parts` are those of the kernel that its instructions belong to (see `IRFunction.at`), in order.
    """

    label: str
    lines: tuple[str, ...]
    targets: tuple[str, ...]
    parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: its blocks in order (the first is its head), its turns where they are known, the loop around it."""

    blocks: tuple[str, ...]
    turns: int | None
    parent: int | None

    @property
    def head(self) -> str:
        """The label where it starts."""
        return self.blocks[0]


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """The control flow of one function. Blocks are in the order of the text, outer loops before inner ones."""

    name: str
    blocks: tuple[BasicBlock, ...]
    loops: tuple[Loop, ...]

    def back(self, source: str, target: str) -> bool:
        """Does the edge close a loop?"""
        return any(loop.head == target and source in loop.blocks for loop in self.loops)

    def innermost(self, label: str) -> int | None:
        """The number of the innermost loop that a block is in."""
        return max((k for k, loop in enumerate(self.loops) if label in loop.blocks), default=None)


def flows(text: str) -> list[ControlFlow]:
    """The control flow of every function that a module of LLVM IR defines."""
    found = []
    for name, lines in _functions(text):
        blocks = tuple(_blocks(lines))
        found.append(ControlFlow(name, blocks, _loops(blocks)))
    return found


def _functions(text: str) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    name, lines = "", []
    for line, part in lines_with_parts(text):
        if match := _DEFINE.match(line):
            name, lines = match[1], []
        elif line == "}" and name:
            yield name, lines
            name = ""
        elif name:
            lines.append((line, part))


def _blocks(lines: Sequence[tuple[str, int]]) -> Iterator[BasicBlock]:
    label, body, parts = "entry", [], {}
    for line, part in lines:
        if match := _LABEL.match(line):
            label, body, parts = match[1], [], {}
        elif line.startswith(("  br ", "  ret", "  switch", "  unreachable")):
            yield BasicBlock(label, tuple(body), tuple(dict.fromkeys(_TARGET.findall(line))), tuple(parts))
        elif line.strip() and not line.lstrip().startswith(";"):
            body.append(line.strip())
            parts[part] = None


def _loops(blocks: Sequence[BasicBlock]) -> tuple[Loop, ...]:
    """The loops of structured text: a branch to its own or an earlier block closes one, which is all between."""
    place = {block.label: k for k, block in enumerate(blocks)}
    spans: dict[int, int] = {}
    for k, block in enumerate(blocks):
        for target in block.targets:
            if place[target] <= k:
                spans[place[target]] = max(k, spans.get(place[target], k))
    found: list[Loop] = []
    for first in sorted(spans, key=lambda k: (k, -spans[k])):
        labels = tuple(b.label for b in blocks[first : spans[first] + 1])
        around = [k for k, loop in enumerate(found) if labels[0] in loop.blocks and labels[-1] in loop.blocks]
        found.append(Loop(labels, _turns(blocks[first], blocks[spans[first]]), max(around, default=None)))
    return tuple(found)


def _turns(head: BasicBlock, latch: BasicBlock) -> int | None:
    """How often a counted loop turns; None where its bounds are computed."""
    defined = {m[1]: m[2] for line in latch.lines if (m := _ASSIGNED.match(line))}
    test = next((r for r in reversed(defined.values()) if r.startswith("icmp slt i64")), "")
    found = re.match(r"icmp slt i64 (%[\w.]+), (-?\d+)$", test)
    step = re.match(r"add nsw i64 (%[\w.]+), (\d+)$", defined.get(found[1], "")) if found else None
    phi = next((m[2] for line in head.lines if step and (m := _ASSIGNED.match(line)) and m[1] == step[1]), "")
    starts = [value for value, source in _PHI.findall(phi) if source != latch.label]
    if not found or not step or len(starts) != 1 or not re.fullmatch(r"-?\d+", starts[0]):
        return None
    return max(1, -(-(int(found[2]) - int(starts[0])) // int(step[2])))


def work_of(blocks: Sequence[BasicBlock]) -> Counter[str]:
    """How many instructions of each kind that does work: `multiply-add <16 x float>` and so on."""
    return Counter(kind for block in blocks for line in block.lines if (kind := _kind(line)))


def _kind(line: str) -> str:
    assigned = _ASSIGNED.match(line)
    text = assigned[2] if assigned else line
    word = text.split(" ", 1)[0]
    name = _WORK.get(word, "")
    if word == "call":
        name = next((kind for prefix, kind in _CALLED if f"@{prefix}" in text), "call")
    if not name or name.startswith(_TYPELESS):
        return name
    type_ = _VECTOR.search(text)
    return f"{name} {type_[0]}" if type_ else name


def outline(flow: ControlFlow) -> str:
    """The loops of a function as they were emitted, with the work of each that is not in a loop within it."""
    own: dict[int | None, list[BasicBlock]] = {None: []}
    for block in flow.blocks:
        own.setdefault(flow.innermost(block.label), []).append(block)
    lines = [
        f"{flow.name}: {counted(len(flow.blocks), 'block')}, {counted(len(flow.loops), 'loop')}",
        *_work_lines(own[None], 1),
    ]
    depths: list[int] = []
    for k, loop in enumerate(flow.loops):
        depths.append(1 if loop.parent is None else depths[loop.parent] + 1)
        turns = "computed bounds" if loop.turns is None else counted(loop.turns, "turn")
        lines.append(f"{'  ' * depths[k]}{loop.head}: {turns}")
        lines += _work_lines(own.get(k, []), depths[k] + 1)
    return "\n".join(lines) + "\n"


def _work_lines(blocks: Sequence[BasicBlock], depth: int) -> list[str]:
    work = work_of(blocks)
    return ["  " * depth + ", ".join(f"{count} {kind}" for kind, count in sorted(work.items()))] if work else []
