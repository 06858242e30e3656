"""Law 1: who may import whom. Read from the source, so that an import inside a function counts too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "relaylab"

BELOW: dict[str, set[str]] = {
    "support": set(),
    "ir": {"support"},
    "loop": {"support"},
    "runtime": {"support"},
    "text": {"ir", "support"},
    "op": {"ir", "loop", "support"},
    "interp": {"op", "ir", "support"},
    "analysis": {"interp", "op", "ir", "support"},
    "transform": {"analysis", "interp", "op", "ir", "support"},
    "frontend": {"op", "analysis", "transform", "interp", "ir", "runtime", "support"},
    "zoo": {"op", "analysis", "transform", "interp", "ir", "runtime", "support"},
    "codegen": {"transform", "analysis", "op", "loop", "runtime", "ir", "interp", "support"},
    "viz": {"transform", "analysis", "text", "loop", "codegen", "ir", "op", "runtime", "support"},
}
TOP = {"lab", "cli", "compat", "relay", "contrib", "bench", "tour", "__init__", "__main__", "_api"}

# files that import relaylab inside functions, each with its reason
LATE = {
    "__init__.py": "the parts load when they are first used, so that `import relaylab` is quick",
    "cli.py": "a command loads what it needs: `relaylab --help` is quick",
    "relay/__init__.py": "pictures load when the first one is drawn",
    "bench/peers.py": "a process imports the one engine that it measures, and nothing else",
    "lab/magics.py": "anywidget is loaded when the explorer is asked for",
    "lab/__init__.py": "loading the extension must not load IPython before it is asked to",
}


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module] if node.module != "relaylab" else [f"relaylab.{a.name}" for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            pytest.fail(f"{path}: imports are absolute")
        rooms |= {n.split(".")[1] for n in names if n.startswith("relaylab.")}
    return rooms


FILES = sorted(p for p in ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", [p for p in FILES if room_of(p) not in TOP], ids=lambda p: str(p.relative_to(ROOT)))
def test_arrow(path: Path) -> None:
    room = room_of(path)
    assert room in BELOW, f"{room} is not a room of the house"
    wrong = imported_rooms(path) - BELOW[room] - {room}
    assert not wrong, f"{path.relative_to(ROOT)} may not import {sorted(wrong)}"


def test_ipython_and_widgets_only_in_lab() -> None:
    for path in FILES:
        if room_of(path) in ("lab", "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            bad = [n for n in names if n.split(".")[0] in ("IPython", "ipywidgets", "anywidget", "traitlets")]
            assert not bad, f"{path.relative_to(ROOT)} imports {bad}"


def test_nothing_dangerous_is_imported() -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {"pickle", "marshal", "shelve", "dill", "cloudpickle"} & {n.split(".")[0] for n in names}, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and room_of(path) not in TOP:
                assert node.func.id not in ("eval", "exec"), f"{path}:{node.lineno}"


def test_imports_stand_at_the_top() -> None:
    """An import inside a function hides an arrow or a cycle; the exceptions are listed with their reasons."""
    for path in FILES:
        if str(path.relative_to(ROOT)) in LATE:
            continue
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                late = [n for n in ast.walk(function) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("relaylab")]
                assert not late, f"{path.relative_to(ROOT)}:{late[0].lineno} imports {late[0].module} in a function"
