"""No pattern has a possessive group: Python before 3.11.4 loses the place behind `(?:ab)*+`; `(?>(?:ab)*)` is equal."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "relaylab"
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)[*+?]\+")


def test_no_pattern_has_a_possessive_group() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and POSSESSIVE_GROUP.search(node.value)
    ]
    assert found == []
