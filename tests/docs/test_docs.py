"""Documentation is executed: the Python blocks of each page run in order, in one namespace; blocks marked `text` after `# prints` are compared."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md"])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str, int]]:
    text = page.read_text(encoding="utf-8")
    return [(m.group(1), m.group(2), text[: m.start()].count("\n") + 2) for m in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", [p for p in PAGES if any(k == "python" for k, _, _ in blocks(p))], ids=lambda p: p.name)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("docs_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    space = vars(module)
    printed = ""
    for kind, code, line in blocks(page):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * (line - 1) + code, str(page), "exec"), space)
            printed = out.getvalue()
        elif kind == "output":
            assert printed.strip() == code.strip(), f"{page.name}:{line}"


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", re.sub(r"`[^`]*`", "", BLOCK.sub("", page.read_text(encoding="utf-8")))):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_readme_is_one_screen_and_names_the_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert "python -m pip install -e . && relaylab explore resnet18" in text
    assert 'python -m pip install -e ".[test]" && pytest' in text


def test_importing_is_light() -> None:
    """`import relaylab` brings neither Jupyter, nor LLVM, nor Graphviz."""
    code = "import sys, relaylab; print([m for m in ('IPython','ipywidgets','anywidget','llvmlite','graphviz','networkx','onnx') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
