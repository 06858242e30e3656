"""Help of the command: what errors mean, values from files, models of modules, the way on."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from relaylab import RelayError, study
from relaylab.cli import main


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as done:
        main(args)
    captured = capsys.readouterr()
    return int(done.value.code or 0), captured.out, captured.err


@pytest.mark.parametrize("code", study.LESSONS)
def test_the_example_of_a_lesson_raises_its_error_and_the_mended_one_none(code: str) -> None:
    lesson = study.LESSONS[code]
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(sys.modules["relaylab.study.lessons"].PREAMBLE, names)
        with pytest.raises(RelayError) as caught:
            exec(lesson.example, dict(names))
        assert caught.value.code == code
        exec(lesson.mended, dict(names))


def test_every_code_is_explained_and_no_text_names_a_file_that_is_not_installed() -> None:
    known = study.errors()
    assert len(known) > 350 and set(study.LESSONS) <= set(known) and "parse.unexpected-token" in known
    texts = {text for says in known.values() for pair in says.items() for text in pair}
    assert not [text for text in texts if "docs/" in text or ".md" in text]
    assert str(study.explain("error[type.unresolved]: the type")).startswith("type.unresolved")


def test_an_explanation_is_whole_though_few_files_are_read_for_it() -> None:
    known = study.errors()
    asked = [*sorted(known)[::12], *(code for code in known if code.endswith((".unknown", ".duplicate")))]
    for code in asked:
        assert dict(study.explain(code).says) == known[code], code


def test_the_command_explains(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", "parse.float-suffix")
    assert code == 0 and "1.5f" in out and "Mended:" in out
    found = json.loads(run(capsys, "explain", "cli.folder", "--json")[1])
    assert found["lesson"] is None and found["says"]
    code, _, err = run(capsys, "explain", "parse.floatsuffix")
    assert code == 1 and "did you mean `parse.float-suffix`" in err


def test_the_bare_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    assert code == 0 and "examples:" in out and "explain" in out


def test_values_come_from_files_and_go_to_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    value = np.array([[-1, 2, -3]], "float32")
    np.save("x.npy", value)
    Path("net.relay").write_text("fn (%x: Tensor[(1, 3), float32]) { nn.relu(%x) }")
    Path("two.relay").write_text("fn (%x: Tensor[(1, 3), float32]) { (nn.relu(%x), %x) }")
    assert run(capsys, "run", "net.relay", "--input", "x=x.npy", "-o", "y.npy")[1] == "wrote y.npy\n"
    np.testing.assert_array_equal(np.load("y.npy"), np.maximum(value, 0))
    assert run(capsys, "run", "two.relay", "--input", "x=x.npy", "-o", "y.npz")[0] == 0
    np.testing.assert_array_equal(np.load("y.npz")["arr_1"], value)
    Path("half.relay").write_text("fn (%x: Tensor[(1, 3), bfloat16]) { nn.relu(%x) }")
    assert run(capsys, "run", "half.relay", "--input", "x=x.npy", "-o", "h.npy")[0] == 0
    found = json.loads(run(capsys, "run", "half.relay", "--input", "x=h.npy", "--json")[1])
    assert found == [{"shape": [1, 3], "dtype": "bfloat16", "values": [0.0, 2.0, 0.0]}]
    for args, words in (
        (["net.relay", "--input", "x"], "NAME=FILE.npy"),
        (["net.relay", "--input", "x=no.npy"], "cannot read no.npy"),
        (["net.relay", "--input", "x=net.relay"], "no array"),
        (["net.relay", "--input", "y=x.npy"], "no input `y`"),
        (["two.relay", "-o", "y.npy"], "ends in .npz"),
    ):
        code, _, err = run(capsys, "run", *args)
        assert code == 1 and words in err, err


def test_explore_takes_printed_text_and_factories_and_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    body = "nn.dense(%x, meta[relay.Constant][0] /* ty=Tensor[(4, 3), float32] */)"
    Path("printed.relay").write_text(f"fn (%x: Tensor[(2, 3), float32]) {{ {body} }}")
    Path("models_here.py").write_text(
        "from relaylab import relay\ndef net():\n    x = relay.var('x', shape=(2, 3))\n    return relay.nn.relu(x)\n"
    )
    with pytest.warns(UserWarning, match="drawn from the seed 0"):
        code, out, _ = run(capsys, "explore", "printed.relay", "--repeat", "3", "-o", "page.html")
    assert code == 0 and "Open page.html" in out and "relaylab why printed.relay" in out and "agrees" in out
    code, out, _ = run(capsys, "explore", "models_here:net", "--no-files", "--repeat", "3")
    assert code == 0 and "Open" not in out and "relaylab profile models_here:net" in out
    code, _, err = run(capsys, "explore", "models_here:nothing")
    assert code == 1 and "cannot take nothing from the module models_here" in err


def test_warnings_are_written_as_errors_are(tmp_path: Path) -> None:
    text = "fn (%x: Tensor[(2), float32]) { add(%x, meta[relay.Constant][0] /* ty=Tensor[(2), float32] */) }"
    (tmp_path / "printed.relay").write_text(text)
    command = [sys.executable, "-m", "relaylab", "passes", "printed.relay"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stderr.startswith("warning: the text has no data for 1 constant")
    assert len(done.stderr.splitlines()) == 1
