"""The stubs of the operators: what an editor knows of the builders is what is declared now."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))
STUBS = importlib.import_module("stubs").STUBS

PROGRAM = """
from relaylab import relay
x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w")
y = relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3), padding=1)
reveal_type(relay.nn.conv2d)
reveal_type(relay.split(x, 2))
relay.nn.relu(relay.split([x, y], 2)[0])
relay.reshape(relay.concatenate([x, x], axis=1), (-1, relay.Any()))
relay.qnn.op.quantize(x, relay.const(1.0), relay.const(0), out_dtype="int8")
relay.op.get("add")
relay.nn.conv2d(x, w, chanels=4)
relay.nn.conv2d(x, w, strides="2")
relay.nn.conv2d(x)
"""


@pytest.mark.parametrize("path", STUBS, ids=lambda p: p.parent.name)
def test_a_stub_says_what_is_declared_now(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert STUBS[path]() == text, "python docs/generate.py reference"
    functions = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
    assert functions and all(map(ast.get_docstring, functions))


def test_a_type_checker_knows_the_parameters_of_builders(tmp_path: Path) -> None:
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed: it comes with the extra `test`")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(program)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=DOCS.parent)
    if not run.stdout.startswith("{"):
        pytest.skip(f"pyright does not run here: {run.stderr.strip().splitlines()[-1:]}")
    found = json.loads(run.stdout)["generalDiagnostics"]
    told = [d["message"].replace("\n", " ") for d in found if d["severity"] == "information"]
    assert "strides: int | " in told[0] and "out_layout: str = ''" in told[0] and told[0].endswith('-> Call"')
    assert told[1].endswith('is "TupleWrapper"')
    wrong = {d["range"]["start"]["line"]: d["message"] for d in found if d["severity"] == "error"}
    assert list(wrong) == [10, 11, 12], wrong
    assert 'No parameter named "chanels"' in wrong[10] and '"strides"' in wrong[11] and '"weight"' in wrong[12]
