"""Law 9: the house is typed. What is not yet has a budget, which only falls.

Whoever removes errors lowers the number here.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "relaylab"
FILES = sorted(PACKAGE.rglob("*.py"))
STRICT = ("support", "ir", "text", "loop", "runtime", "interp")

# room: parameters and results annotated as `Any` (ruff's ANN401), comments that silence the checker
BUDGETS: dict[str, tuple[int, int]] = {
    "__init__": (1, 0),
    "analysis": (2, 0),
    "codegen": (4, 1),
    "compat": (9, 0),
    "explorer": (2, 0),
    "frontend": (5, 0),
    "interp": (1, 0),
    "ir": (21, 1),
    "lab": (8, 0),
    "loop": (0, 1),
    "op": (86, 1),
    "runtime": (9, 0),
    "study": (8, 1),
    "transform": (4, 0),
    "viz": (15, 0),
    "zoo": (1, 0),
}
# what is read of an attribute whose name says that it is another file's own, and why
PRIVATE: dict[str, str] = {
    "compat/testing/helpers.py sys._getframe": "the module of the caller, which nothing public tells",
    "ir/trail.py sys._getframe": "the caller's frame; what is public reads the source of every frame",
    "lab/options.py parser._actions": "argparse has no public list of the options of a parser",
}
# with the room for young objects that node gives by itself, pyright spends a sixth of its time on moving them
ROOM = {"NODE_OPTIONS": "--max-semi-space-size=64"}
NAMED_TUPLE = ("_replace", "_asdict", "_fields", "_make")  # public, in spite of their names


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def is_any(annotation: ast.expr | None) -> bool:
    """`Any`, or a union with it; `dict[str, Any]` says something."""
    if isinstance(annotation, ast.BinOp):
        return is_any(annotation.left) or is_any(annotation.right)
    return isinstance(annotation, ast.Name) and annotation.id == "Any"


def anys(path: Path) -> int:
    count = 0
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            a = node.args
            given = [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x is not None)]
            count += sum(is_any(x) for x in (node.returns, *(arg.annotation for arg in given)))
    return count


def silenced(path: Path) -> int:
    return len(re.findall(r"#\s*(?:type|pyright): ignore", path.read_text(encoding="utf-8")))


@cache
def measured() -> dict[str, tuple[int, int]]:
    count: dict[str, list[int]] = {room_of(p): [0, 0] for p in FILES}
    for path in FILES:
        count[room_of(path)][0] += anys(path)
        count[room_of(path)][1] += silenced(path)
    return {room: (a, b) for room, (a, b) in count.items() if a or b}


def test_every_room_keeps_its_budget_of_any_and_of_silenced_lines() -> None:
    over = {
        r: (n, BUDGETS.get(r, (0, 0))) for r, n in measured().items() if any(map(int.__gt__, n, BUDGETS.get(r, (0, 0))))
    }
    assert not over, f"more than the budget (found, budget): {over}"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def f(x: Any, *y: Any | None, **z: int) -> Any: ...", 3),
        ("def f(x: dict[str, Any]) -> list[Any]: ...", 0),
        ("class C:\n async def f(self, *, a: None | Any): ...", 1),
    ],
)
def test_what_counts_as_any(tmp_path: Path, source: str, count: int) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert anys(path) == count


def foreign_private(source: str) -> list[tuple[int, str]]:
    """Reads of `x._name` where the file neither defines `_name` nor is `x` self, cls or super()."""
    nodes = list(ast.walk(ast.parse(source)))
    own = {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {
        n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and _is_self(n.value)
    }
    slots = [
        v
        for n in nodes
        if isinstance(n, ast.Assign) and "__slots__" in map(_name, n.targets)
        for v in ast.walk(n.value)
    ]
    own |= {v.value for v in slots if isinstance(v, ast.Constant) and isinstance(v.value, str)}
    reads = [
        n
        for n in nodes
        if isinstance(n, ast.Attribute) and re.match("_[^_](.*[^_])?$", n.attr) and not _is_self(n.value)
    ]
    return [(n.lineno, ast.unparse(n)) for n in reads if n.attr not in own and n.attr not in NAMED_TUPLE]


def _name(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else ""


def _is_self(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return _name(value.func) == "super"
    return _name(value) in ("self", "cls")


def test_no_private_attribute_of_another_file_is_read() -> None:
    found = {
        f"{p.relative_to(PACKAGE)} {text}": n
        for p in FILES
        for n, text in foreign_private(p.read_text(encoding="utf-8"))
    }
    assert found.keys() <= PRIVATE.keys(), {k: n for k, n in found.items() if k not in PRIVATE}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("x._secret", ["x._secret"]), ("f(x)._secret()", ["f(x)._secret"]), ("self._own; cls._own; super()._own", []),
        ("x.__dict__", []), ("class A:\n  __slots__ = ('_a',)\n\ny._a", []), ("def _f(): ...\nm._f", []),
        ("class A:\n  def f(self): self._a = 1\ny._a", []), ("y._a = 1", ["y._a"]),
        ("x._repr_html_(); x._replace(a=1)", []),
    ],
)  # fmt: skip
def test_what_counts_as_private(source: str, found: list[str]) -> None:
    assert [text for _, text in foreign_private(source)] == found


def test_the_strict_rooms_are_those_of_the_configuration() -> None:
    config = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pyright"]
    assert set(config["strict"]) == {f"relaylab/{room}" for room in STRICT}


@pytest.mark.slow
def test_pyright_finds_no_error() -> None:
    """Strict in the rooms that pyproject names, basic elsewhere; in one run, which reads what all rooms use once."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed: it comes with the extra `test`")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *map(str, FILES)]
    for options in (ROOM, {}):  # older programs refuse the option, and say nothing else
        settings = {**options, **os.environ}
        run = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True, timeout=500, env=settings)
        if run.stdout:
            break
    try:
        report = json.loads(run.stdout)
    except json.JSONDecodeError:  # its own program is fetched when it first runs
        pytest.skip(f"pyright does not run here: {run.stderr.strip().splitlines()[-1:]}")
    assert report["summary"]["filesAnalyzed"] >= len(FILES)
    errors = [d for d in report["generalDiagnostics"] if d["severity"] == "error"]
    places = [f"{d['file']}:{d['range']['start']['line'] + 1} {d['message'].splitlines()[0]}" for d in errors]
    assert not places, "\n".join(places)
