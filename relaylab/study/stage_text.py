"""Stages as text: which line defines which node, and the difference of two of them line by line."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from relaylab.ir import Call, Constant, Expr, Function, IRModule, Var, post_order
from relaylab.text import print_with_map
from relaylab.text.writing.doc import Range
from relaylab.viz.diffs import textdiff, tokens

FIXED = "\u200b"
_TEMPORARY = re.compile(r"%(\d+)\b")
_DEFINITION = re.compile(r"\s*(?:let )?%(\d+) = ")
TextRow = tuple[str, str | int, str, list[int]]
"""A mark (blank, + or -), a line, the node that it defines, and where words begin and end in it that the line in its
place does not have; ⋮ has the number of equal lines that are left out."""
LONGEST = 600
"""Characters of a line that are shown."""
SAMPLED = 256
"""Elements, evenly spread, by which constants are told apart."""


class Constants:
    """Names for the constants of all stages: the same value has the same name, so that renumbering is no change.

    `known` are names that constants have already: those of the parameters that they were bound to.
    """

    def __init__(self, known: Mapping[Constant, str] | None = None) -> None:
        self._known = dict(known or {})
        self._alike: dict[tuple[object, ...], list[Constant]] | None = None
        self._made = 0

    def name(self, constant: Constant) -> str:
        """The name of a constant, by its value."""
        if constant not in self._known:
            if self._alike is None:
                self._alike = {}
                for parameter in self._known:
                    self._alike.setdefault(_sample(parameter), []).append(parameter)
            alike = self._alike.setdefault(_sample(constant), [])
            same = next((other for other in alike if constant.same_value(other)), None)
            if same is None:
                self._known[constant] = f"const{self._made}"
                self._made += 1
                alike.append(constant)
            else:
                self._known[constant] = self._known[same]
        return self._known[constant]


def _sample(constant: Constant) -> tuple[object, ...]:
    """What constants of one value agree in: only those that do are compared whole."""
    data = constant.data
    return data.dtype, data.shape, data.flat[:: 1 + data.size // SAMPLED].tobytes()


def parameter_names(unbound: IRModule, bound: IRModule) -> dict[Constant, str]:
    """The constants of a program that stand for parameters, with their names; `unbound` is the program before that.

    Both are the same but for the parameters, so their nodes come in the same order.
    """
    found: dict[Constant, str] = {}
    for gv, before in unbound.functions.items():
        after = bound.functions.get(gv)
        if after is None or len(after.params) == len(before.params):
            continue
        old, new = post_order(before.body), post_order(after.body)
        if len(old) == len(new):
            pairs = ((a, b) for a, b in zip(old, new) if isinstance(a, Var) and isinstance(b, Constant))
            found |= {b: a.name_hint for a, b in pairs if b.data.ndim}
    return found


@dataclass(frozen=True)
class PrintedStage:
    """The text of one stage, and the node that each line defines."""

    lines: list[str]
    nodes: list[Expr | None]

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)


def printed(mod: IRModule | Function, constants: Constants) -> PrintedStage:
    """The text of a module or function with stable names for its constants."""
    text, ranges = print_with_map(mod, name=constants.name)
    return PrintedStage(text.split("\n"), _definitions(text, ranges))


def _definitions(text: str, ranges: Iterable[Range]) -> list[Expr | None]:
    """For each line the node that the line defines: the outermost one that begins there."""
    starts = [0] + [m.end() for m in re.finditer("\n", text)]
    number = {start: k for k, start in enumerate(starts)}
    heads = {start: text[start : start + LONGEST] for start in number}
    indents = {start + len(head) - len(head.lstrip()): number[start] for start, head in heads.items()}
    nodes: list[Expr | None] = [None] * len(starts)
    for start, _, node in ranges:
        line = indents.get(start)
        if line is not None and nodes[line] is None and isinstance(node, Expr):
            nodes[line] = node
    return nodes


def text_rows(
    before: PrintedStage, after: PrintedStage, name: Callable[[Expr | None, bool], str], context: int = 3
) -> list[TextRow]:
    """The difference as rows `[mark, text, node id]`; longer runs of equal lines become `["⋮", count, "", []]`."""
    left_text, right_text = _renamed(before, after, name)
    lines = textdiff.diff_lines(left_text, right_text)
    left = right = 0
    full: list[tuple[str, str, str]] = []
    for line in lines:
        old = line.mark == "-"
        node = (
            before.nodes[left]
            if old and left < len(before.nodes)
            else after.nodes[right]
            if right < len(after.nodes)
            else None
        )
        full.append((line.mark, line.text.replace(FIXED, "")[:LONGEST], name(node, old)))
        left += line.mark in " -"
        right += line.mark in " +"
    return _folded(full, context)


def plain_rows(before: str, after: str, context: int = 3) -> list[TextRow]:
    """The difference of two texts as rows whose lines define no nodes."""
    lines = [(line.mark, line.text, "") for line in textdiff.diff_lines(before, after)]
    return _folded(lines, context)


def unified_rows(text: str) -> list[TextRow]:
    """A unified difference as rows; its headings stay lines, those with file names are left out."""
    lines = [line for line in text.split("\n") if line[:4] not in ("--- ", "+++ ")]
    found = [(line[0], line[1:]) if line[:1] in ("-", "+") else (" ", line.removeprefix(" ")) for line in lines]
    rows = zip(found, tokens.word_marks(found))
    return [(mark, line, "", [n for ends in words for n in ends]) for (mark, line), words in rows]


def _renamed(before: PrintedStage, after: PrintedStage, name: Callable[[Expr | None, bool], str]) -> tuple[str, str]:
    """Both texts with temporaries named alike: what stands for a node of before has its number, the rest new ones.

    The numbers are marked as fixed, so that the line-by-line comparison takes them for names.
    """
    numbers = dict(_numbers(before, lambda node: name(node, True)))
    free = itertools.count(1 + max((int(n) for n in re.findall(r"%(\d+)\b", before.text)), default=-1))
    taken: dict[tuple[str, str], str] = {}
    used: set[tuple[str, str]] = set()
    for (scope, node), number in _numbers(after, lambda node: name(node, False)):
        old = numbers.get((scope, node))
        taken[scope, number] = old if old is not None and (scope, old) not in used else str(next(free))
        used.add((scope, taken[scope, number]))
    return _with_names(before, {}), _with_names(after, taken)


def _numbers(text: PrintedStage, name: Callable[[Expr | None], str]) -> Iterator[tuple[tuple[str, Hashable], str]]:
    """Each temporary: (the global function that it is in, the id of its node), and its number.

    The call of a kernel has no id of its own: it is told by that of the kernel; what has none either by itself.
    """
    for scope, line, node in _scoped(text):
        found = _DEFINITION.match(line)
        if found:
            called = name(node.op) if isinstance(node, Call) else ""
            yield (scope, name(node) or (("call", called) if called else node)), found[1]


def _scoped(text: PrintedStage) -> Iterator[tuple[str, str, Expr | None]]:
    scope = ""
    for line, node in zip(text.lines, text.nodes):
        if line.startswith("def "):
            scope = line.split("(")[0]
        yield scope, line, node


def _with_names(text: PrintedStage, names: dict[tuple[str, str], str]) -> str:
    return "\n".join(
        _TEMPORARY.sub(lambda m, s=scope: f"%{FIXED}{names.get((s, m[1]), m[1])}", line)
        for scope, line, _ in _scoped(text)
    )


def _folded(full: list[tuple[str, str, str]], context: int) -> list[TextRow]:
    words = tokens.word_marks([row[:2] for row in full])
    rows: list[TextRow] = [(*row, [n for ends in w for n in ends]) for row, w in zip(full, words)]
    changed = [i for i, row in enumerate(full) if row[0] != " "]
    if not changed:
        return rows
    near = {i for c in changed for i in range(c - context, c + context + 1)}
    out: list[TextRow] = []
    for kept, group in itertools.groupby(range(len(full)), near.__contains__):
        run = list(group)
        out += [rows[i] for i in run] if kept else [("⋮", len(run), "", [])]
    return out
