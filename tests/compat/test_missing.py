"""Names that are not there: what may have been meant, why something is not kept, and where the program asked for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import relaylab
from relaylab import relay
from relaylab.compat import uninstall_tvm

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "path, words",
    [
        ("transform.FuseOp", "did you mean `FuseOps`"),
        ("nn.conv2dd", "did you mean `conv2d`"),
        ("conv2d", "did you mean `nn.conv2d`"),
        ("op.nn.relux", "did you mean `relu`"),
        ("analysis.free_var", "did you mean `free_vars`"),
        ("testing.resnett", "did you mean `resnet`"),
        ("frontend.from_keras", "writes ONNX"),
        ("transform.CollagePartition", "PartitionGraph"),
    ],
)
def test_unknown_names(path: str, words: str) -> None:
    *modules, name = path.split(".")
    module = relay
    for part in modules:
        module = getattr(module, part)
    assert not hasattr(module, name)
    with pytest.raises(AttributeError, match="has no `") as error:
        getattr(module, name)
    assert words in str(error.value)


def test_other_targets_and_devices_are_errors_with_advice_where_programs_are_relaylabs_own() -> None:
    uninstall_tvm()  # another test of this process may have installed it
    mod = relay.IRModule.from_expr(relay.const(1))
    for use in (
        lambda: relay.build(mod, target="cuda"),
        lambda: relaylab.runtime.array([1.0], relaylab.runtime.cuda(0)),
    ):
        with pytest.raises(relaylab.RelayError, match="relaylab run-tvm"):
            use()


def run(tmp_path: Path, text: str, *args: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "net.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "relaylab", "run-tvm", "net.py", *args],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    "text, words",
    [
        ("from tvm.relay.frontend import from_keras", ["there is no tvm.relay.frontend.from_keras", "writes ONNX"]),
        ("from tvm.relay.transform import CollagePartition", ["PartitionGraph"]),
        (
            "from tvm import autotvm\nautotvm.LocalTuner()",
            ["line 2", "autotvm.LocalTuner is not kept", "relaylab tune"],
        ),
        ("from tvm import te\nte.placeholder((4,))", ["line 2", "te.placeholder is not kept", "relaylab schedule"]),
        ("import tvm.nonsense", ["relaylab keeps Relay, its runtime and its visualizer"]),
        ("import tvm.relay.debug", ["`debug` is no module but a name: from tvm.relay import debug"]),
        ("import tvm\ntvm.target.Target('cud')", ["line 2", "targets begin with `llvm`"]),
        (
            "from tvm import relay\ndef net():\n    relay.nn.relu(3)\nnet()",
            ["line 3, in net", "relay.nn.relu(3)", "error[ir.python-number]"],
        ),
        ("def f(:", ["SyntaxError"]),
        ("1 / 0", ["line 1", "ZeroDivisionError"]),
        ("\0", ["net.py: SyntaxError"]),
    ],
)
def test_an_error_shows_the_lines_of_the_program(tmp_path: Path, text: str, words: list[str]) -> None:
    result = run(tmp_path, text)
    assert result.returncode == 1
    assert all(w in result.stderr for w in words), result.stderr
    assert "relaylab/" not in result.stderr.replace("tmp", "") and "runpy" not in result.stderr


def test_the_program_has_its_arguments_and_its_status(tmp_path: Path) -> None:
    result = run(tmp_path, "import sys\nprint(sys.argv)\nsys.exit(3)", "a", "--b")
    assert result.returncode == 3 and result.stdout.strip() == "['net.py', 'a', '--b']"
