"""Law 7: size is public. Run with -s to see the table of the largest files and functions."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "relaylab"
TESTS = ROOT.parent / "tests"
MAX_FILE, MAX_FUNCTION, MEDIAN_FUNCTION = 450, 60, 9
MAX_SCRIPT, MAX_WIDTH = 350, 120


def functions():
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.end_lineno - node.lineno + 1, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def test_sizes() -> None:
    files = sorted(
        ((len(p.read_text(encoding="utf-8").splitlines()), str(p.relative_to(ROOT))) for p in ROOT.rglob("*.py")),
        reverse=True,
    )
    funcs = sorted(functions(), reverse=True)
    print(f"\n{len(files)} files, {sum(n for n, _ in files)} lines; largest:")
    print("\n".join(f"  {n:4} {name}" for n, name in [*files[:12], *funcs[:12]]))
    assert not [f for f in files if f[0] > MAX_FILE]
    assert not [f for f in funcs if f[0] > MAX_FUNCTION]
    assert sorted(n for n, _ in funcs)[len(funcs) // 2] <= MEDIAN_FUNCTION


def test_sizes_of_scripts() -> None:
    """The scripts and styles of the explorer have the limits of form that Python has."""
    long, wide = {}, []
    for path in sorted(p for end in ("js", "css", "mjs") for root in (ROOT, TESTS) for p in root.rglob(f"*.{end}")):
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) > MAX_SCRIPT:
            long[path.name] = len(lines)
        wide += [f"{path.name}:{n}" for n, line in enumerate(lines, 1) if len(line) > MAX_WIDTH]
    assert not long
    assert not wide


def test_names_of_test_files_are_unique() -> None:
    """pytest imports test files by their base name."""
    names = [p.name for p in ROOT.parent.joinpath("tests").rglob("test_*.py")]
    assert len(names) == len(set(names)), sorted({n for n in names if names.count(n) > 1})
