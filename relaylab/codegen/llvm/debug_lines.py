"""Debug locations: which part of a kernel an instruction belongs to, carried down to the assembly.

Kernels leave `; @part` comments in their text (see `llvm.text`). `with_debug_lines` turns them into debug
metadata whose line number is the part + 1 (line 0 means unknown to LLVM); `assembly_parts` reads the parts back from
the assembly.
Code for running is compiled without any of this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LOCATION = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)")
_FUNCTION_LABEL = re.compile(r"^([A-Za-z_][\w.$]*):")


def lines_with_parts(text: str) -> Iterator[tuple[str, int]]:
    """The lines of a module with the part of each instruction, -1 for lines that are none."""
    part = 0
    for line in text.split("\n"):
        if line.startswith("  ; @"):
            part = int(line[5:])
            continue
        if line.startswith("define "):
            part = 0
        yield line, part if line.startswith("  ") else -1


def with_debug_lines(text: str) -> str:
    """A module's text with a debug location on every instruction of its functions."""
    lines, metadata, scope = [], _Metadata(), 0
    for line, part in lines_with_parts(text):
        if line.startswith("define "):
            scope = metadata.function(line[line.index("@") + 1 : line.index("(")])
            line = line.replace(" {", f" !dbg !{scope} {{")
        elif part >= 0:
            line = f"{line}, !dbg !{metadata.location(part + 1, scope)}"
        lines.append(line)
    return "\n".join([*lines, *metadata.lines()])


class _Metadata:
    """The numbered nodes of the debug metadata."""

    def __init__(self) -> None:
        self._nodes = [
            '!{i32 2, !"Debug Info Version", i32 3}',
            '!{i32 7, !"Dwarf Version", i32 4}',
            '!DIFile(filename: "kernel", directory: "relaylab")',
            'distinct !DICompileUnit(language: DW_LANG_C99, file: !2, producer: "relaylab", '
            "emissionKind: LineTablesOnly)",
            "!DISubroutineType(types: !{})",
        ]
        self._locations: dict[tuple[int, int], int] = {}

    def _add(self, node: str) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def function(self, name: str) -> int:
        """The node of a function."""
        return self._add(
            f'distinct !DISubprogram(name: "{name}", scope: !2, file: !2, line: 1, type: !4, '
            "spFlags: DISPFlagDefinition, unit: !3)"
        )

    def location(self, line: int, scope: int) -> int:
        """The node of a line in a function."""
        key = (line, scope)
        if key not in self._locations:
            self._locations[key] = self._add(f"!DILocation(line: {line}, column: 1, scope: !{scope})")
        return self._locations[key]

    def lines(self) -> list[str]:
        """The metadata as text."""
        head = ["!llvm.module.flags = !{!0, !1}", "!llvm.dbg.cu = !{!3}"]
        return [*head, *(f"!{k} = {node}" for k, node in enumerate(self._nodes)), ""]


def assembly_parts(assembly: str) -> list[tuple[str, str, int]]:
    """Each instruction of an assembly listing with debug lines: (function, instruction, part).

    The part is -1 where LLVM gives no line: it saves registers, spills, or merged instructions of different parts.
    """
    found, function, part = [], "", -1
    for line in assembly.split("\n"):
        location, label = _LOCATION.match(line), _FUNCTION_LABEL.match(line)
        if location:
            part = int(location[1]) - 1
        elif label and not label[1].startswith(("Lfunc", "L")):
            function, part = label[1], -1
        elif line.startswith("\t") and not line.startswith(("\t.", "\t#")):
            found.append((function, line.strip(), part))
    return found
