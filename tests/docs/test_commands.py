"""Commands, magics, names and files that pages and lessons name exist, with the options that are named."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import shlex
from pathlib import Path

import pytest

from relaylab.cli import COMMANDS, parser

pytest.importorskip("IPython")
from IPython.core.error import UsageError  # noqa: E402

from relaylab.lab.arguments import parse  # noqa: E402
from relaylab.lab.magics import RelayMagics  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(p for p in ROOT.glob("docs/*.md") if p.stem != "CHANGELOG"),  # which tells of former ones
    *ROOT.glob("docs/notes/*.md"),
    *ROOT.glob("docs/zh/*.md"),
    *ROOT.glob("relaylab/course/lessons/**/*.md"),
    ROOT / "README.md",
]
WORDS = "|".join(c.name for c in COMMANDS)
NAMED = re.compile(rf"(?:`|^(?:\$ )?)(?:python -m )?(relaylab (?:{WORDS})\b[^`\n]*|%{{1,2}}relay_[^`\n]*)", re.M)
OPEN = re.compile(r"the following arguments are required|expected (one|at least one) argument")  # only named in prose


def named(page: Path) -> set[str]:
    return {re.sub(r"\s+#.*", "", m[1]).strip() for m in NAMED.finditer(page.read_text(encoding="utf-8"))}


def wrong(line: str) -> str:
    """Why a line cannot be typed so; empty if it can, or if it only lacks what it is about."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            if line.startswith("%"):
                name, _, rest = line.lstrip("%").partition(" ")
                magic = getattr(RelayMagics, name)
                if hasattr(magic, "parser"):
                    parse(magic, rest)
            else:
                parser().parse_args(shlex.split(line)[1:])
    except (SystemExit, UsageError, AttributeError) as error:
        words = str(error) if not isinstance(error, SystemExit) else said.getvalue() if error.code else ""
        return "" if OPEN.search(words) else words
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_what_a_page_says_to_type_can_be_typed(page: Path) -> None:
    found = {line: why for line in named(page) if (why := wrong(line))}
    assert not found


def test_wrong_lines_are_found() -> None:
    assert sum(len(named(page)) for page in PAGES) > 100
    assert "unrecognized" in wrong("relaylab viz mlp --coloured") and "no attribute" in wrong("%relay_vizz mod")
    assert not wrong("relaylab viz") and "unrecognized" in wrong("%relay_viz mod --coloured")


ROOMS = {name: f"relaylab.{name}" for name in ("course", "loop", "relay", "runtime", "study", "viz")}
DOTTED = re.compile(rf"`((?:relaylab|{'|'.join(ROOMS)})(?:\.\w+)+)(?=[`(\[])")
NO_NAMES = {
    "relay.backend._backend", "relay.codegen.winograd", "relay.nn.Constant", "relay.op.annotation.simulated_quantize",
    "relay.transform.NAME", "relay.x", "relaylab.plotters",
}  # fmt: skip
"""An option, an operator, a group of plugins, what stands for any name, and what is said not to be there."""


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    first, *rest = name.split(".")
    found = importlib.import_module(ROOMS.get(first, first))
    for part in rest:
        if hasattr(found, "__path__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(f"{found.__name__}.{part}")
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def test_names_that_are_not_there_are_found() -> None:
    assert is_there("relaylab.ir.visit.walk") and is_there("study.sweep") and not is_there("study.nothing")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", PAGES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_names_and_files_of_a_page_are_there(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert not [n for n in set(DOTTED.findall(prose)) - NO_NAMES if not is_there(n)]
    files = re.findall(r"`((?:relaylab|tests|docs|notebooks)/[\w./-]+)`", prose)
    assert not [f for f in files if not list(ROOT.glob(f"{f}*")) and "any_name" not in f]
