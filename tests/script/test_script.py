"""The script without a browser: pure parts under `node --test`, types under TypeScript, form under prettier."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
from itertools import combinations
from pathlib import Path

import pytest
from support import queries
from support.code import CODE

from relaylab import study
from relaylab.explorer.facts import part_words
from relaylab.explorer.session import Session
from relaylab.lab import saved_page
from relaylab.lab.packing import DIRECTIONS, PULLED
from relaylab.lab.page import script
from relaylab.text.colours import tokens
from relaylab.viz.draw.draw import draw
from relaylab.viz.scene.scene import arrow, curve
from relaylab.viz.write.html import scene_data
from relaylab.viz.write.svg import path_data

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "relaylab"
SCRIPTS = sorted(PACKAGE.glob("*/static/**/*.js"))


def run(program: str, *args: object, **environment: str) -> None:
    """Run a program that a machine may lack."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"needs {program}")
    done = subprocess.run(
        [found, *map(str, args)], capture_output=True, text=True, timeout=300, env=os.environ | environment
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> Path:
    """A page's data as the page has it, with what the session answers and Python draws."""
    session = Session(study.explore("mlp"))
    data = json.dumps(saved_page.snapshot(session)).encode()
    stops = [0, *session.frames.changing()]
    asked: list[tuple] = [("text", a, b) for a, b in combinations(stops, 2)]
    asked += [("words", stops[1]), ("overlay", "MACs", stops[-1]), ("heat", "operator")]
    for part in session.frames.views[0].nodes:
        asked.append(("node", 0, part.id))
    questions = [{"ask": q, "answer": session.ask(*q)} for q in asked]
    for question in questions:  # what a page words or stores in its own way
        for name in ("role", "note"):
            question["answer"].pop(name, None)
    nodes = [n.id for n in session.frames.views[0].nodes]
    found = {
        "packed": base64.b64encode(gzip.compress(data)).decode(),
        "questions": questions,
        "counterparts": {n: session.ask("counterparts", 0, n, stops)["ids"] for n in nodes},
        "drawn": scene_data(draw(session.frames.views[0], saved_page.DRAWING)),
        "queries": {
            "parts": [part_words(queries.MADE, part) for part in (*queries.MADE.nodes, *queries.MADE.groups)],
            "meant": queries.MEANT,
            "wrong": queries.WRONG,
            "completed": queries.COMPLETED,
        },
        "coloured": [
            (name, text, [*tokens(text, name)]) for name, text in (*CODE.items(), ("relay", "/* open"), ("llvm", '"'))
        ],
        "wires": [wire(d, sideways) for d in DIRECTIONS for sideways in (False, True)],
    }
    path = tmp_path_factory.mktemp("script") / "cases.json"
    path.write_text(json.dumps(found))
    return path


def wire(direction: tuple[float, float], sideways: bool) -> dict[str, object]:
    """A wire with straight and bent parts, as `viz.scene` draws it."""
    corners = [(10.0, 5.0), (10.0, 20.0), (42.5, 61.3), (80.0, 61.3)]
    (x, y), (dx, dy) = corners[-1], direction
    head = arrow((x + dx * PULLED, y + dy * PULLED), direction)
    return {
        "corners": corners,
        "sideways": sideways,
        "direction": direction,
        "line": path_data(curve(corners, sideways)),
        "head": path_data(head),
    }


@pytest.fixture(scope="module")
def node() -> None:
    """Skip where Node is too old for what browsers of 2023 can do."""
    found = shutil.which("node")
    version = subprocess.run([found, "--version"], capture_output=True, text=True).stdout if found else "v0"
    if int(version[1:].split(".")[0]) < 20:
        pytest.skip("needs node, 20 or later")


@pytest.mark.parametrize("path", sorted(HERE.glob("*.test.mjs")), ids=lambda p: p.stem.removesuffix(".test"))
def test_parts(node: None, path: Path, cases: Path) -> None:
    run("node", "--test", path, CASES=str(cases))


@pytest.mark.parametrize("end", ["live.js", "saved.js", "predict.js"])
def test_modules_put_together_are_a_script(node: None, end: str, tmp_path: Path) -> None:
    """No two declare the same name, not even one of several at once (`const [A, B] = …`)."""
    (tmp_path / "whole.mjs").write_text(script(end), encoding="utf-8")
    run("node", "--check", tmp_path / "whole.mjs")


def test_types_are_checked() -> None:
    """Every module says so, and TypeScript finds nothing."""
    assert [p.name for p in SCRIPTS if not p.read_text(encoding="utf-8").startswith("// @ts-check\n")] == []
    run("tsc", "-p", PACKAGE / "jsconfig.json")


def test_one_handwriting() -> None:
    run("prettier", "--print-width=120", "--check", *SCRIPTS, *PACKAGE.glob("*/static/**/*.css"), *HERE.glob("*.mjs"))


def test_nothing_but_script_and_style_names_the_formatter() -> None:
    """The rules of form are those of the hook."""
    config = json.loads((PACKAGE / "package.json").read_text())
    hook = (PACKAGE.parent / ".ci/pre-commit.yaml").read_text()
    assert re.findall(r"prettier --write --print-width (\d+)", hook) == [str(config["prettier"]["printWidth"])]
