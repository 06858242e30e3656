"""One noun for one thing: a class name is defined once in the package.

Lower-case classes are operators, whose dialects repeat names, and are checked by the table of operators.
"""

from __future__ import annotations

import pytest

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).resolve().parents[2] / "relaylab"

# a name that two or more files define, and why it may
SHARED = {
    "Constant": "the node, and the initializer of `relay.testing.init`, a name of TVM",
    "ConstructorValue": "what the interpreter computes, and what the runtime returns: a name of TVM",
    "Match": "the expression, and the outcome of matching a pattern: both are public",
    "Node": "of the language, and `viz.Node`, which is public",
    "RefValue": "what the interpreter computes, and what the runtime returns: a name of TVM",
}


@cache
def defined() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name[0].isupper():
                found[node.name].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    return {name: places for name, places in found.items() if len(places) > 1}


def test_a_class_name_is_defined_once() -> None:
    assert not {name: places for name, places in defined().items() if name not in SHARED}


def test_the_table_has_no_name_that_is_defined_once() -> None:
    assert not SHARED.keys() - defined().keys()
