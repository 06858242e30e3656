"""The command mirrors the public functions: what it prints, what it writes, how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from relaylab.cli import main

TEXT = '#[version = "0.0.5"] def @main(%x: Tensor[(2, 3), float32]) { nn.relu(add(%x, add(1f, 2f))) }'
CONSTANT = '#[version = "0.0.5"] def @main() { 1f }'


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "p.relay"
    path.write_text(TEXT)
    return str(path)


@pytest.fixture
def run(capsys):
    def call(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as done:
            main(args)
        captured = capsys.readouterr()
        return done.value.code, captured.out, captured.err

    return call


def test_passes_take_the_text_that_the_explorer_copies(run, program, tmp_path):
    page, paper = tmp_path / "x.html", tmp_path / "x.pdf"
    code, out, _ = run(
        "passes", program, "-p", "FoldConstant(),FuseOps(fuse_opt_level=2)", "-o", str(page), "-o", str(paper)
    )
    assert (
        code == 0 and "FuseOps" in out and "rl-explorer" in page.read_text() and paper.read_bytes().startswith(b"%PDF")
    )


def test_diff(run, program, tmp_path, monkeypatch):
    other = tmp_path / "q.relay"
    other.write_text(TEXT.replace("nn.relu", "tanh"))
    code, out, _ = run("diff", program, str(other), "-o", str(tmp_path / "d.svg"))
    assert code == 0 and "tanh" in out and (tmp_path / "d.svg").exists()
    assert sum(json.loads(run("diff", program, str(other), "--json")[1]).values()) >= 1
    assert "\x1b" not in out
    with monkeypatch.context() as patch:
        patch.delenv("NO_COLOR", raising=False)
        patch.setattr("sys.stdout.isatty", lambda: True, raising=False)
        assert "\x1b[7mtanh\x1b[27m" in run("diff", program, str(other))[1]
        patch.setenv("NO_COLOR", "1")
        assert "\x1b" not in run("diff", program, str(other))[1]


def test_single_rewrites(run, tmp_path):
    page = tmp_path / "r.pdf"
    code, out, _ = run("diff", "mlp", "--rewrites", "CanonicalizeOps", "-o", str(page))
    assert code == 0 and "1. nn.bias_add → add" in out and page.read_bytes().startswith(b"%PDF")
    told = json.loads(run("diff", "mlp", "--rewrites", "CanonicalizeOps", "--json")[1])
    assert len(told) == 3 and told[0]["at"].startswith("canonicalize_ops.py:")
    assert run("diff", "mlp", "--rewrites", "FoldScaleAxis")[1] == "no rewrite\n"
    assert "did you mean `FuseOps`" in run("diff", "mlp", "--rewrites", "FusOps")[2]


def test_bisect_profile_asm_run(run, program):
    assert run("bisect", program)[:2] == (0, "every pass keeps the numbers\n")
    assert json.loads(run("bisect", program, "--json")[1]) is None
    assert run("bisect", program, "-o", "r.py")[1] == "every pass keeps the numbers: r.py is not written\n"
    assert "help: write lists without blanks" in run("bisect", program, "-p", "FoldConstant,", "FuseOps")[2]
    assert "Duration (us)" in run("profile", program, "-n", "2")[1]
    assert "fused_add_nn_relu" in run("asm", program)[1]
    assert "max(" in run("asm", program, "relu", "--stage", "loop")[1]
    assert "v0.4s" in run("asm", program, "relu", "--target", "llvm -mtriple=aarch64-linux-gnu")[1]
    code, _, err = run("profile", program, "--target", "llvm -mtriple=aarch64-linux-gnu")
    assert code and "it is compiled for aarch64-linux-gnu" in err
    assert "float32[2, 3]" in run("run", program)[1]


@pytest.mark.parametrize(
    "text, kernel, measured",
    [
        (
            "def @main(%x: Tensor[(n, 3), float32]) { nn.softmax(%x) }",
            "nn_softmax",
            "leaves sizes of its input `x` open",
        ),
        ("def @main(%c: Tensor[(9), bool]) { argwhere(%c) }", "argwhere", "Duration (us)"),
        ("def @main(%c: bool, %x: float32) { if (%c) { tanh(%x) } else { exp(%x) } }", "tanh", "Duration (us)"),
    ],
)
def test_programs_of_the_virtual_machine_are_looked_at(run, tmp_path, text, kernel, measured):
    path = tmp_path / "net.relay"
    path.write_text(text)
    assert kernel in run("asm", str(path))[1]
    code, out, _ = run("explore", str(path), "--no-files")
    assert code == 0 and "it runs in the virtual machine, compiled in" in out and "relaylab asm" in out
    assert ("not timed: the input `x` has open sizes" if "leaves" in measured else "one run takes") in out
    for stage in ("relay", "loop", "why", "llvm", "flow", "asm"):
        assert run("asm", str(path), kernel, "--stage", stage)[1]
    assert measured in "".join(run("profile", str(path), "-n", "2")[1:])
    assert run("asm", str(path), kernel, "-o", str(tmp_path / "flow.svg"))[0] == 0


def test_a_kernel_is_explained_and_drawn(run, program, tmp_path):
    assert "generic lowering" in run("asm", program, "relu", "--stage", "why")[1]
    code, out, _ = run("asm", program, "relu", "-o", str(tmp_path / "flow.svg"))
    assert code == 0 and "flow.svg" in out and (tmp_path / "flow.svg").read_text().startswith("<svg")
    code, _, err = run("asm", program, "relu", "--stage", "wy")
    assert code == 1 and "did you mean `why`" in err


@pytest.mark.parametrize(
    "args, words",
    [
        (("passes", "resnet81"), "did you mean"),
        (("passes", "mlp", "-p", "FusOps"), "did you mean `FuseOps`"),
        (("asm", "mlp", "nobody"), "there is no kernel"),
        (("diff", "mlp", "nowhere.relay"), "cannot read"),
    ],
)
def test_mistakes_are_messages(run, args, words):
    code, _, err = run(*args)
    assert code == 1 and words in err and "Traceback" not in err


@pytest.mark.parametrize(
    "line, words",
    [
        ("schedule p.relay relu -f missing.txt", "cannot read missing.txt"),
        ("schedule p.relay relu -f blob", "it is not text (UTF-8)"),
        ("schedule p.relay relu -s turn", "line 1: turn"),
        ("run p.relay -o out.txt", "a file that ends in .npy or .npz"),
        ("diff p.relay --rewrites FoldScaleAxis -o r.pdf", "there is no picture to write to `r.pdf`"),
        ("sweep p.relay -o rows.zip", "cannot tell the format"),
        ("sweep p.relay --measures counts -o rows.svg --measure kernel", "did you mean `kernels`?"),
        ("passes p.relay -p Nonsense", "help: `relaylab passes` lists them"),
        ("figure p.relay Nonsense -o f.svg", "help: it has "),
        ("schedule p.relay relu -s nonsense", "help: `relaylab schedule --steps` lists them"),
        ("run .", "it is a folder"),
        ("sweep p.relay --measures passes -o rows.svg", "passes give no number"),
        ("explore p.relay -o rows.zip", "cannot tell the format"),
        ("viz scalar.relay --overlay MACs", "once they are typed"),
        ("diff open.relay open.relay --fail-on macs+5%", "MACs is not known, since sizes are open"),
        ("run p.relay --input x=empty", "it is no array"),
        ("run p.relay --input x=half.npz", "it is no array"),
        ("run adder.relay --json", "which is no array"),
        ("passes of.rlab", "study.reopen opens a recorded run"),
        ("why p.relay -s op:add", "nodes are asked about with a pass"),
        ("figure p.relay FoldScaleAxis -o f.svg", "`relaylab why p.relay` says"),
        ("passes helpers:count", "helpers.py:2"),
        ("passes helpers:number", "number of the module helpers gives an int"),
    ],
)
def test_files_that_cannot_be_read_or_written_are_messages(run, program, tmp_path, monkeypatch, line, words):
    (tmp_path / "blob").write_bytes(b"\xff\x00")
    (tmp_path / "of.rlab").write_bytes(b"\xff\x00")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "half.npz").write_bytes(b"PK\3\4")
    (tmp_path / "open.relay").write_text(TEXT.replace("(2, 3)", "(?, 3)"))
    (tmp_path / "adder.relay").write_text("fn (%x: int32) { fn (%y: int32) { %x + %y } }")
    (tmp_path / "helpers.py").write_text("def count():\n    raise KeyError(3)\ndef number():\n    return 3\n")
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    (tmp_path / "scalar.relay").write_text(CONSTANT)
    before = set(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*line.split())
    assert code == 1 and words in err and "of at most" not in err and set(tmp_path.iterdir()) == before
    assert "FuseOps" not in out, "it is found before anything runs"


def test_a_program_without_kernels_has_a_profile(run, tmp_path):
    (tmp_path / "scalar.relay").write_text(CONSTANT)
    code, out, _ = run("profile", str(tmp_path / "scalar.relay"), "-n", "1")
    assert code == 0 and "Total" in out


def test_data_is_all_that_is_printed_for_programs(run, program, tmp_path):
    assert json.loads(run("diff", program, program, "--json", "-o", str(tmp_path / "d.svg"))[1]) == {}
    rows = json.loads(run("profile", program, "-n", "1", "--operators", "--json")[1])
    assert {r["operator"]: r["calls"] for r in rows} == {"add": 1, "nn.relu": 1}
    code, _, err = run("run", program, "--seed", "-1")
    assert code == 2 and "zero or above" in err
    Path(program).write_text("fn (%x: Tensor[(1200), float32]) { log(subtract(%x, 2f)) }")
    (found,) = json.loads(run("run", program, "--json")[1], parse_constant=pytest.fail)
    assert found["values"] == [None] * 1200


def test_two_pipelines_and_the_heat_map(run, program, tmp_path):
    code, out, _ = run("diff", program, "--pipelines", "default", "default-FuseOps", "-o", str(tmp_path / "d.svg"))
    assert code == 0 and "bytes moved" in out and (tmp_path / "d.svg").exists()
    figures = json.loads(run("diff", program, "--pipelines", "FuseOps", "FastMath", "--json")[1])["figures"]
    assert figures["passes"] == [1, 1]
    assert "name another program" in run("diff", program)[2]
    run("passes", program, "--heat", str(tmp_path / "h.svg"))
    assert "FuseOps" in (tmp_path / "h.svg").read_text()


def test_recorded_runs_are_a_gate(run, program, tmp_path):
    a, b = str(tmp_path / "a.rlab"), str(tmp_path / "b.rlab")
    assert run("passes", program, "-o", a)[0] == run("passes", program, "-p", "FoldConstant", "-o", b)[0] == 0
    assert run("diff", a, b, "--fail-on", "flops+5%")[0] == 0
    assert run("passes", program, "-p", "InferType", "-o", a)[0] == 0  # its constants are still to be added
    code, out, _ = run("diff", b, a, "--fail-on", "bytes+0%")
    assert code == 1 and "bytes moved grew from" in out and "more than bytes+0% allows" in out
    assert out.splitlines()[0].split() == ["b.rlab", "a.rlab"] and " ms " in out
    code, out, _ = run("diff", a, b, "--fail-on", "bytes+0%")
    assert code == 0 and "bytes moved" in out and "more than" not in out
    assert run("diff", program, "--pipelines", "FuseOps", "default", "--fail-on", "passes+5%")[0] == 1
    assert run("diff", program, "mlp", "--fail-on", "operators+0%")[0] == 1
    assert run("diff", "mlp", program, "--fail-on", "operators+0%")[0] == 0
    assert "there are macs, flops, bytes, operators, text\n" in run("diff", "mlp", program, "--fail-on", "passes+0%")[2]


def test_why(run, program):
    assert "FuseOps" in run("why", program)[1]
    assert "add into nn.relu: they are one kernel" in run("why", program, "FuseOps", "-s", "op:nn.relu")[1]
    assert "FoldConstant" in [s["pass"] for s in json.loads(run("why", program, "--json")[1])]
    assert "did you mean `op:nn.relu`" in run("why", program, "FuseOps", "-s", "op:nn.relx")[2]
    assert "its operators are " in run("why", program, "FuseOps", "-s", "kind:Match")[2]
    assert json.loads(run("why", program, "FuseOps", "--json", "-p", "FoldConstant")[1])["reasons"][0]["why"] == ""


def test_the_default_passes_stand_among_others_in_a_table_and_on_a_page(run, program, tmp_path):
    page = tmp_path / "x.html"
    code, out, _ = run("passes", program, "-p", "ToMixedPrecision,default-FuseOps", "-o", str(page))
    assert code == 0 and out.count("ToMixedPrecision") == 1 and "FoldConstant" in out and "FuseOps" not in out
    assert "rl-explorer" in page.read_text()


def test_pipelines_and_passes_are_measured(run, program):
    assert "measured time" in run("diff", program, "--pipelines", "FuseOps", "FoldConstant,FuseOps", "--time")[1]
    assert "a run with all passes" in run("passes", program, "--worth")[1]


def test_the_table_of_operators_and_llvms_passes(run, program):
    out = run("profile", program, "-n", "2", "--operators", "calls")[1]
    assert out.startswith("operator") and "µs" in out and "nn.relu" in out
    assert "sroa" in run("asm", program, "relu", "--llvm-passes")[1]


def test_the_steps_of_schedules_belong_to_no_program(run):
    assert run("schedule", "--steps")[0] == 0
    code, _, err = run("schedule")
    assert code == 2 and "required: NET|FILE" in err


def test_help_needs_no_numpy():
    code = "import sys, relaylab.cli as c; c.parser(); print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_a_message():
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "relaylab", "passes"], stdout=full, stderr=-1, text=True)
    assert done.returncode == 1 and done.stderr.startswith("error[cli.system]")


def test_a_site_of_a_mistyped_network_is_refused_before_it_is_begun(run, tmp_path):
    code, _, err = run("site", str(tmp_path / "out"), "--networks", "mlp,resnet9", "--lessons", "none")
    assert code == 1 and "did you mean `resnet" in err and not (tmp_path / "out").exists()
