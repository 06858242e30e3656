"""The command, as a user types it: in a folder of their own, with mistakes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from relaylab.cli import COMMANDS, main, notebooks, reference
from relaylab.support.errors import RelayError

pytestmark = pytest.mark.slow

PROGRAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {
  let %y = nn.dense(%x, %w, units=4);
  nn.relu(%y)
}
"""
LOOP = """#[version = "0.0.5"]
def @fact(%n: int32) -> int32 { if (%n < 2) { 1 } else { %n * @fact(%n - 1) } }
def @main(%n: int32) -> int32 { @fact(%n) }
"""


@dataclass
class Run:
    returncode: int
    stdout: str
    stderr: str


def process(*args: str, cwd: Path) -> Run:
    """The command in a process of its own, as a terminal starts it."""
    run = subprocess.run(
        [sys.executable, "-m", "relaylab", *args], cwd=cwd, capture_output=True, text=True, timeout=300
    )
    return Run(run.returncode, run.stdout, run.stderr)


def here(*args: str, cwd: Path) -> Run:
    """The command in this process, which has paid for its imports already."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        with pytest.raises(SystemExit) as end:
            main(args)
    return Run(int(end.value.code or 0), out.getvalue(), err.getvalue())


def relaylab(*args: str, cwd: Path, ok: bool = True, start: Callable[..., Run] = here) -> Run:
    run = start(*args, cwd=cwd)
    assert (run.returncode == 0) == ok, run.stdout + run.stderr
    assert "Traceback" not in run.stderr, run.stderr
    return run


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "net.relay"
    path.write_text(PROGRAM)
    return path


def test_explore_file(program: Path) -> None:
    out = relaylab("explore", program.name, cwd=program.parent, start=process).stdout
    assert "FuseOps" in out and "agrees with the interpreter" in out and "one run takes" in out
    assert (program.parent / "net.pdf").read_bytes().startswith(b"%PDF-")
    page = (program.parent / "net.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "http://" not in page.replace("http://www.w3.org", "")


def test_explore_network_as_json(tmp_path: Path) -> None:
    report = json.loads(relaylab("explore", "mlp", "--json", "--no-files", cwd=tmp_path).stdout)
    assert report["agrees"] and report["latency_ms"] > 0
    assert {"CanonicalizeOps", "FuseOps"} <= {p["pass"] for p in report["passes"] if p["changed"]}
    assert list(tmp_path.iterdir()) == []


def test_explore_program_with_recursion(tmp_path: Path) -> None:
    (tmp_path / "fact.relay").write_text(LOOP)
    out = relaylab("explore", "fact.relay", "--no-files", cwd=tmp_path).stdout
    assert "virtual machine" in out and "agrees with the interpreter" in out
    assert "relaylab why fact.relay" in out and "relaylab asm fact.relay" in out
    assert "fused" in relaylab("asm", "fact.relay", cwd=tmp_path).stdout


def test_explore_at_level_zero(program: Path) -> None:
    assert "agrees" in relaylab("explore", program.name, "-O", "0", "--no-files", cwd=program.parent).stdout


@pytest.mark.parametrize(
    "suffix, start",
    [
        ("svg", b"<"),
        ("pdf", b"%PDF-"),
        ("html", b"<!DOCTYPE"),
        ("dot", b""),
        ("txt", b""),
        ("json", b"{"),
        ("onnx", b"\x08"),
    ],
)
def test_viz_formats(program: Path, suffix: str, start: bytes) -> None:
    relaylab("viz", program.name, "-o", f"out.{suffix}", cwd=program.parent)
    data = (program.parent / f"out.{suffix}").read_bytes()
    assert data.startswith(start) and b"nn.dense" in data or suffix in ("pdf", "html")


def test_viz_prints_a_tree(program: Path) -> None:
    assert "nn.dense" in relaylab("viz", program.name, cwd=program.parent).stdout


def test_passes_are_listed(tmp_path: Path) -> None:
    out = relaylab("passes", cwd=tmp_path).stdout
    assert all(name in out for name in ("FuseOps", "FoldConstant", "ToANormalForm"))
    assert "InlineCompilerFunctionsBoundTo  0  Puts" in out
    rows = json.loads(relaylab("passes", "--json", cwd=tmp_path).stdout)
    assert all(row["summary"] for row in rows)


def test_passes_on_a_file(program: Path) -> None:
    out = relaylab("passes", program.name, "-p", "ToGraphNormalForm,FuseOps", "--text", cwd=program.parent).stdout
    assert "Primitive=1" in out


def test_a_sweep_draws_what_it_measures(program: Path) -> None:
    """Without times, the picture is of what is measured."""
    args = ("sweep", program.name, "--measures", "counts", "-o", "rows.svg")
    assert "wrote rows.svg" in relaylab(*args, cwd=program.parent).stdout
    assert "operators" in (program.parent / "rows.svg").read_text()


def test_a_sweep_of_which_every_cell_is_refused_has_failed(program: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "open.relay"
    wrong.write_text("def @main(%x: Tensor[(n, 4), float32]) { nn.relu(%x) }")
    refused = relaylab("sweep", wrong.name, "--measures", "counts", cwd=tmp_path, ok=False).stdout
    assert "refused" in refused and "leaves sizes of its input `x` open" in refused
    both = relaylab("sweep", wrong.name, str(program), "--measures", "counts", cwd=tmp_path).stdout
    assert "refused" in both and "ok" in both


def test_run(program: Path) -> None:
    texts = [
        relaylab("run", program.name, "--json", "--executor", kind, cwd=program.parent).stdout
        for kind in ("graph", "vm", "debug")
    ]
    values = [json.loads(t)[0] for t in texts]
    assert all(v["shape"] == [2, 4] for v in values)
    assert all(abs(a - b) < 1e-5 for v in values for a, b in zip(v["values"], values[0]["values"]))


@pytest.mark.parametrize(
    "args, message",
    [
        (["explore", "resnet19"], "did you mean"),
        (["explore", "missing.relay"], "cannot read"),
        (["viz", "mlp", "-o", "x.gif"], "format"),
        (["viz", "mlp", "-o", "no/such/folder/x.svg"], "no/such/folder"),
        (["passes", "mlp", "-p", "FuseOp"], "did you mean"),
        (["run-tvm", "nothing.py"], "there is no file"),
    ],
)
def test_mistakes_are_one_message(args: list[str], message: str, tmp_path: Path) -> None:
    run = relaylab(*args, cwd=tmp_path, ok=False, start=process if args[0] == "viz" else here)
    assert message in run.stderr and run.returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_a_mistyped_option_shows_its_command(tmp_path: Path) -> None:
    run = relaylab("viz", "mlp", "--folt", cwd=tmp_path, ok=False)
    assert run.returncode == 2 and "usage: relaylab viz" in run.stderr and "did you mean `--fold`" in run.stderr


def test_a_model_of_another_format_is_told_the_way(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(bytes(range(256)))
    assert "through ONNX" in relaylab("explore", "model.tflite", cwd=tmp_path, ok=False).stderr


def test_bad_text_shows_the_place(tmp_path: Path) -> None:
    (tmp_path / "bad.relay").write_text('#[version = "0.0.5"]\ndef @main(%x: float32) { nn.rleu(%x) }\n')
    run = relaylab("explore", "bad.relay", cwd=tmp_path, ok=False)
    assert "bad.relay:2:26" in run.stderr and "^^^^" in run.stderr and "nn.relu" in run.stderr


def test_ill_typed_text_shows_both_types(tmp_path: Path) -> None:
    (tmp_path / "bad.relay").write_text(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) { add(%x, %y) }\n'
    )
    run = relaylab("passes", "bad.relay", cwd=tmp_path, ok=False)
    assert "(2)" in run.stderr and "(3)" in run.stderr and "bad.relay:2" in run.stderr


def test_usage_and_version(tmp_path: Path) -> None:
    assert "relaylab 0." in relaylab("--version", cwd=tmp_path, start=process).stdout
    assert "explore" in relaylab("--help", cwd=tmp_path).stdout
    assert relaylab("explore", cwd=tmp_path, ok=False).returncode == 2


@pytest.mark.parametrize(
    "line, words",
    [
        ("pases", "did you mean `passes`?"),
        ("resnet18", "did you mean `relaylab explore resnet18`?"),
        ("asm net.relay relu --stage loops", "did you mean `loop`?"),
        ("asm net.relay --stage asmm", "did you mean `asm`?"),
        ("run net.relay x=ones", "inputs are files: --input x=FILE.npy"),
        ("profile net.relay -n 0", "not a whole number above zero"),
        ("passes net.relay -p FuseOps(fuse_opt_level=x)", "a text in quotes"),
        ("passes net.relay -p ToMixedPrecision(7)", "precision"),
        ("viz net.relay --focus zzz", "a query such as op:nn.conv2d"),
        ("viz picture.relay", "it is not text (UTF-8)"),
        ("explore net.relay -o net.relay/inside", "cannot write to the folder"),
        ("lab nowhere", "there is no folder nowhere"),
    ],
)
def test_mistakes_are_explained(program: Path, line: str, words: str) -> None:
    (program.parent / "picture.relay").write_bytes(b"\x89PNG\0\xff")
    assert words in relaylab(*line.split(), cwd=program.parent, ok=False).stderr


def test_explore_makes_its_folder(program: Path) -> None:
    relaylab("explore", program.name, "-o", "new/folder", "--repeat", "3", cwd=program.parent)
    assert {p.suffix for p in (program.parent / "new/folder").iterdir()} == {".pdf", ".html"}


def test_explore_writes_the_file_that_is_named(program: Path) -> None:
    """A page is the explorer with all its questions; other suffixes are the pictures of the stages."""
    out = relaylab("explore", program.name, "-o", "out/page.html", "--repeat", "3", cwd=program.parent).stdout
    assert "wrote out/page.html" in out and [p.name for p in (program.parent / "out").iterdir()] == ["page.html"]
    assert "rl-explorer" in (program.parent / "out/page.html").read_text()
    relaylab("explore", program.name, "-o", "paper.pdf", "--repeat", "3", cwd=program.parent)
    assert (program.parent / "paper.pdf").read_bytes().startswith(b"%PDF")
    assert "FILE|DIR" in relaylab("explore", "--help", cwd=program.parent).stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_unicode(program: Path, encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    run = subprocess.run(
        [sys.executable, "-m", "relaylab", "passes", program.name],
        cwd=program.parent,
        env=environment,
        capture_output=True,
    )
    assert run.returncode == 0 and b"FuseOps" in run.stdout and b"Traceback" not in run.stderr


def test_a_program_that_is_too_large(tmp_path: Path) -> None:
    huge = "Tensor[(100000000, 100000000), float32]"
    (tmp_path / "huge.relay").write_text(f'#[version = "0.0.5"]\ndef @main(%x: {huge}) {{ nn.relu(%x) }}\n')
    assert "error[cli.memory]" in relaylab("run", "huge.relay", cwd=tmp_path, ok=False).stderr


def test_a_text_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "bom.relay").write_text(PROGRAM, encoding="utf-8-sig")
    relaylab("passes", "bom.relay", cwd=tmp_path)


def test_notebooks_that_cannot_be_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(notebooks, "__file__", str(tmp_path / "relaylab" / "cli" / "notebooks.py"))
    monkeypatch.setattr(notebooks.shutil, "copytree", refuse)
    with pytest.raises(RelayError, match="Permission denied"):
        notebooks.notebooks()


def test_links_of_lessons_lead_to_the_documentation_or_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notes lie outside of the folder of notebooks, where a server that has it as its root finds nothing."""
    called: list[list[str]] = []
    monkeypatch.setattr(notebooks.subprocess, "call", lambda command: called.append(command) or 0)
    with pytest.raises(SystemExit):
        main(["lab", "--no-browser"])
    root = notebooks.shipped().parent
    assert called[0][3:] == [
        f"--ServerApp.root_dir={root}",
        "--FileContentsManager.preferred_dir=notebooks",
        "--no-browser",
    ]

    shutil.copytree(root / "notebooks", tmp_path / "relaylab" / "_notebooks")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(notebooks, "__file__", str(tmp_path / "relaylab" / "cli" / "notebooks.py"))
    copied = [path.read_text(encoding="utf-8") for path in notebooks.notebooks().rglob("*.ipynb")]
    assert len(copied) > 30 and not any("](../../" in text for text in copied)
    assert sum("**Next: [" in text for text in copied) >= 11


def test_the_reference_lists_every_command_with_its_arguments() -> None:
    found = {entry.name: entry for entry in reference()}
    assert found.keys() == {c.name for c in COMMANDS} and len(found) == len(COMMANDS)
    assert all(
        e.example.startswith(f"relaylab {e.name}") and e.usage.startswith(f"relaylab {e.name}") for e in found.values()
    )
    assert all(a.help for e in found.values() for a in e.arguments), "every argument says what it is"
    assert ("-O, --opt-level 0|1|2|3|4", "which passes run (default 3)") in found["explore"].arguments


def test_a_pass_that_stops_the_pipeline_is_named(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`explore` writes the page, which opens there, and ends with the command that makes a program of it."""
    from relaylab.transform import FuseOps

    def broken(self: object, *args: object) -> None:
        raise ZeroDivisionError("nothing to divide by")

    monkeypatch.setattr(FuseOps, "run", broken)
    run = relaylab("explore", program.name, "-o", "x.html", cwd=program.parent, ok=False)
    assert run.stderr.startswith("loading net.relay") and "x.html: stage 0" in run.stderr, "progress without a terminal"
    assert "stopped here: ZeroDivisionError: nothing to divide by" in run.stdout and "wrote x.html" in run.stdout
    assert "the pass FuseOps raised ZeroDivisionError" in run.stderr and "at test_command.py:" in run.stderr
    assert "relaylab bisect net.relay -O 3 -o reproducer.py" in run.stderr
    run = relaylab("bisect", program.name, "-o", "reproducer.py", cwd=program.parent, ok=False)
    assert "FuseOps raised ZeroDivisionError" in run.stdout
    assert "relay.transform.FuseOps(" in (program.parent / "reproducer.py").read_text()
    run = relaylab("bisect", program.name, "--json", cwd=program.parent, ok=False)
    assert json.loads(run.stdout)["raised"] == "ZeroDivisionError"
    run = relaylab("passes", program.name, cwd=program.parent, ok=False)
    assert "the pass FuseOps raised ZeroDivisionError" in run.stderr
