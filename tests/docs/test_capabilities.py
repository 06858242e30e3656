"""The page of what the explorer can do: a hundred rows, each with tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PAGE = (TESTS.parent / "docs" / "capabilities.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in row.split(" | ")] for row in re.findall(r"^\| (\d+ \| .*) \|$", PAGE, re.M)]
WHOLE = 95


@cache
def functions_of(file: str) -> frozenset[str]:
    """The functions of a file of tests, by name; it is read and not run."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_number_is_there_once_and_says_what_and_where() -> None:
    assert [row[0] for row in ROWS] == [str(n) for n in range(1, 101)]
    assert not [row for row in ROWS if len(row) != 4 or not all(row)]
    assert len({row[1] for row in ROWS}) == 100


def test_every_test_that_is_named_exists() -> None:
    for number, _, _, shown in ROWS:
        named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", shown)
        assert named and re.sub(r"`[^`]+`(, )?", "", shown) == "", f"{number}: {shown}"
        missing = [
            f"{file}::{test}" for file, test in named if not (TESTS / file).exists() or test not in functions_of(file)
        ]
        assert not missing, f"{number}: {missing}"


def test_most_are_whole_and_the_others_say_what_is_missing() -> None:
    partly = [row[0] for row in ROWS if "partly" in row[1]]
    assert len(ROWS) - len(partly) >= WHOLE
    assert all(len(re.split("partly:? ?", row[1])[1]) > 20 for row in ROWS if "partly" in row[1])
