"""Documentation is executed: the Python blocks of each page run in order, in one namespace; their output is compared.

A block `output` is all that was printed; the lines of a block `output-lines` are among it, in order, `…` is anything.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from relaylab.cli import main, schedule
from relaylab.transform import PASSES
from relaylab.viz import FIGURES
from relaylab.viz.write import plugins

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NOTES = sorted(ROOT.glob("docs/notes/*.md"))
PAGES = sorted([*ROOT.glob("docs/*.md"), *NOTES, ROOT / "README.md"])
BLOCK = re.compile(r"^```([\w-]+)\n(.*?)^```$", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str, int]]:
    text = page.read_text(encoding="utf-8")
    return [(m.group(1), m.group(2), text[: m.start()].count("\n") + 2) for m in BLOCK.finditer(text)]


@pytest.mark.parametrize(
    "page", [p for p in PAGES if any(k == "python" for k, _, _ in blocks(p))], ids=lambda p: p.name
)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("docs_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for declared in (FIGURES, PASSES):  # what a page declares ends with the page
        monkeypatch.setattr(declared, "_items", dict(declared))
    monkeypatch.setattr(plugins, "PLOTTERS", {})
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
        elif kind == "output-lines":
            assert not missing_line(code, printed), f"{page.name}:{line}\n{printed}"


def missing_line(wanted: str, printed: str) -> str:
    """The first line that was not printed after the lines before it; empty if all were."""
    lines = iter(printed.splitlines())
    for line in filter(str.strip, wanted.splitlines()):
        pattern = ".*".join(map(re.escape, line.strip().split("…")))
        if not any(re.fullmatch(pattern, printed_line.strip()) for printed_line in lines):
            return line
    return ""


def test_lines_are_looked_for_in_order() -> None:
    printed = "name  cycles\n-> direct  12\n   other  99\n"
    assert not missing_line("-> direct  …\nother  …", printed) and not missing_line("name  cycles", printed)
    assert missing_line("other  …\n-> direct  …", printed) == "-> direct  …"
    assert missing_line("-> direct", printed) == "-> direct" and missing_line("direct  12", printed)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(
            r"\]\(([^)#:]+)\)", re.sub(r"`[^`]*`", "", BLOCK.sub("", page.read_text(encoding="utf-8")))
        ):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_a_note_is_one_page_with_an_example() -> None:
    listed = (ROOT / "docs/notes/index.md").read_text(encoding="utf-8")
    notes = [note for note in NOTES if note.stem != "index"]
    assert len(notes) == 20
    for note in notes:
        text = note.read_text(encoding="utf-8")
        assert [kind for kind, _, _ in blocks(note)] == ["python", "output"], note.name
        assert len(text.splitlines()) <= 70 and text.startswith("# What is ") and "\nRead on: " in text, note.name
        assert f"]({note.name})" in listed and f"\n{note.stem}\n" in listed, note.name


def test_readme_is_one_screen_and_names_the_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert "python -m pip install -e . && relaylab explore resnet18" in text
    assert 'python -m pip install -e ".[test]" && pytest' in text


def test_the_doors_of_a_build_are_where_the_table_says() -> None:
    rows = re.findall(
        r"^\| \d \S.*? \| (.+?) \| `(.+?)` \|", (ROOT / "docs/kernels.md").read_text(encoding="utf-8"), re.M
    )
    assert len(rows) == 9
    for words, path in rows:
        code = (ROOT / "relaylab" / path).read_text(encoding="utf-8")
        for name in re.findall(r"\w+", words):
            assert re.search(rf"^ *(def|class) {name}\b", code, re.M), f"{path} has no {name}"


def test_kernels_that_pages_and_help_schedule_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiles.txt").write_text("from picked\n")
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    commands = [*re.findall(r"^\$ (relaylab schedule .+)$", pages, re.M), schedule.COMMAND.example[0]]
    assert len(commands) == 2
    for command in commands:
        with pytest.raises(SystemExit) as end:
            main(shlex.split(command)[1:])
        assert end.value.code == 0, command


def test_importing_is_light() -> None:
    """`import relaylab` brings neither Jupyter, nor LLVM, nor Graphviz."""
    heavy = ("IPython", "ipywidgets", "anywidget", "llvmlite", "graphviz", "networkx", "onnx")
    code = f"import sys, relaylab; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Where Sphinx is installed (`pip install -e ".[docs]"`)."""
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    pytest.importorskip("furo")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(ROOT / "docs"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "reference" / "op_nn.html").exists() and (tmp_path / "resnet8.html").exists()
