"""The benchmark: models that say the same in ONNX, tables, pictures, the command."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from relaylab import relay
from relaylab.bench import __main__ as command
from relaylab.bench.__main__ import parser
from relaylab.bench import encoder, open_decoder, sequences, variants
from relaylab.bench.history import BenchHistory
from relaylab.bench.onnx_graph import OnnxGraph, declared
from relaylab.bench.measure import Result, _error, inputs_of, measure
from relaylab.bench.peers import OPEN, OURS
from relaylab.bench.picture import picture
from relaylab.bench.report import table, to_json
from relaylab.bench.rows import ROWS, BenchmarkRow, chosen
from relaylab.bench.turns import interleaved, players
from relaylab.frontend import from_onnx
from relaylab.ir import IRModule
from relaylab.support.errors import RelayError
from relaylab.study.running import seeded
from relaylab.zoo.catalog import NETWORKS

RESULTS = [
    Result(
        "mlp", 1, "llvm", {"relaylab": 0.005, "onnxruntime": 0.01}, 40.0, 0.3, 0.1, 0.05, {"relaylab": 3.0}, 1e-7, 1.5
    ),
    Result("toy", 2, "llvm", {"relaylab": 2.0, "onnxruntime": 1.0}, goal=5.0),
]


def _same_in_onnx(mod: IRModule, params: dict) -> None:
    pytest.importorskip("onnx")
    ort = pytest.importorskip("onnxruntime")
    from relaylab.frontend import to_onnx

    lib = relay.build(mod, "llvm", params=params)
    model, feed = to_onnx(mod, params), inputs_of(lib)
    expected = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feed)
    module = seeded(lib, feed)
    module.run()
    for k, value in enumerate(expected):
        np.testing.assert_allclose(module.get_output(k).numpy(), value, rtol=1e-3, atol=1e-5 * np.abs(value).max())


def test_an_open_decoder_gives_what_onnxruntime_gives() -> None:
    ort = pytest.importorskip("onnxruntime")
    program = open_decoder.model(layers=2, hidden=16, heads=2, vocabulary=30)
    mod, params = from_onnx(program)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    session = ort.InferenceSession(program.SerializeToString(), providers=["CPUExecutionProvider"])
    for past in (3, 0, 9):
        feed = open_decoder.feed(program, past)
        for got, wanted in zip(machine.invoke("main", *feed.values()), session.run(None, feed), strict=True):
            np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-3, atol=1e-4)
    assert machine.exe.specializations.open is not None


@pytest.mark.parametrize("name", ["mlp", "lstm", "dcgan", "mobilenet", "squeezenet1.1"])
def test_a_network_says_the_same_in_onnx(name: str) -> None:
    _same_in_onnx(*NETWORKS[name].small())


@pytest.mark.parametrize(
    "name", ["mlp", "lstm", "dcgan", "mobilenet", "squeezenet1.1", pytest.param("inception_v3", marks=pytest.mark.slow)]
)
def test_a_network_says_the_same_in_pytorch(name: str, tmp_path: Path) -> None:
    torch, ort = pytest.importorskip("torch"), pytest.importorskip("onnxruntime")
    from relaylab.frontend import to_onnx
    from relaylab.bench.torch_model import to_torch

    mod, params = NETWORKS[name].small()
    feed = inputs_of(relay.build(mod, "llvm", params=params))
    path = tmp_path / "net.onnx"
    path.write_bytes(to_onnx(mod, params).SerializeToString())
    expected = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feed)
    model, names = to_torch(str(path))
    with torch.no_grad():
        found = model(*(torch.from_numpy(feed[name]) for name in names))
    for ours, value in zip(found, expected):
        np.testing.assert_allclose(ours.numpy(), value, rtol=1e-3, atol=1e-5 * np.abs(value).max())


@declared((1, 4, 9))
def sequence(g: OnnxGraph, x: str) -> str:
    """A convolution of one axis, and a normalization that leaves its attributes out."""
    return g.norm(g.transpose(g.conv(x, 4, 6, 3, axes=1), 0, 2, 1), 6)


@pytest.mark.parametrize("name", ["mlp", "mobilenet", "dcgan", "sequence"])
def test_the_compiler_of_pytorch_follows_every_function(name: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnx")
    from relaylab.frontend import to_onnx
    from relaylab.bench.torch_model import to_torch

    mod, params = from_onnx(sequence()) if name == "sequence" else NETWORKS[name].small()
    program = sequence() if name == "sequence" else to_onnx(mod, params)
    (tmp_path / "net.onnx").write_bytes(program.SerializeToString())
    lib = relay.build(mod, "llvm", params=params)
    feed = inputs_of(lib)
    model, names = to_torch(str(tmp_path / "net.onnx"))
    with torch.no_grad():
        (found,) = torch.compile(model, backend="eager", fullgraph=True)(*(torch.from_numpy(feed[n]) for n in names))
    np.testing.assert_allclose(found.numpy(), np.asarray(lib.run(**feed)), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["toy", "matmul"])
def test_a_row_says_the_same_in_onnx(name: str) -> None:
    _same_in_onnx(*ROWS[name].workload())


@pytest.mark.parametrize("kind", [variants.halves, variants.quantized])
@pytest.mark.parametrize("name", ["mlp", "resnet8"])
def test_a_variant_says_the_same_in_onnx(kind, name: str) -> None:
    """16 bits are rounded at other places; bytes are exact but for steps that round another way."""
    pytest.importorskip("onnx")
    ort = pytest.importorskip("onnxruntime")
    from relaylab.frontend import to_onnx

    mod, params = kind(NETWORKS[name].small)()
    lib = relay.build(mod, "llvm", params=params)
    model, feed = to_onnx(mod, params), inputs_of(lib)
    assert {"halves": "Cast", "quantized": "QuantizeLinear"}[kind.__name__] in {n.op_type for n in model.graph.node}
    plain = ort.SessionOptions()  # without VNNI its optimised products of bytes saturate in 16 bits
    plain.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), plain, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, feed)
    module = seeded(lib, feed)
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize(
    "name", ["topk", "t5", *(pytest.param(n, marks=pytest.mark.slow) for n in ("efficientnet", "swin", "wavenet"))]
)
def test_a_row_of_onnx_gives_what_onnxruntime_gives(name: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    row = ROWS[name]
    mod, params = row.workload()
    lib = relay.build(mod, "llvm", params=params)
    feed = inputs_of(lib)
    (wanted,) = ort.InferenceSession(row.model().SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, feed
    )
    np.testing.assert_allclose(np.asarray(lib.run(**feed)), wanted, rtol=1e-3, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("name", ["loop", pytest.param("detector", marks=pytest.mark.slow)])
def test_an_open_row_gives_what_onnxruntime_gives(name: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    program = ROWS[name].model()
    mod, params = from_onnx(program)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    feed = open_decoder.feed(program, 0)
    (wanted,) = ort.InferenceSession(program.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feed)
    np.testing.assert_allclose(machine.invoke("main", *feed.values()).numpy(), wanted, rtol=1e-3, atol=1e-5)


def test_an_open_row_is_built_for_the_target_that_is_asked_for() -> None:
    pytest.importorskip("onnxruntime")
    found = measure(ROWS["loop"], 1, 1, "llvm -mcpu=x86-64")
    assert found.cold > 0 and found.warm > 0 and found.error < 1e-5 and set(found.ms) == {OURS, "onnxruntime"}
    with pytest.raises(RelayError, match="no-such-cpu"):
        measure(ROWS["loop"], 1, 1, "llvm -mcpu=no-such-cpu")


def test_a_peer_that_cannot_run_a_row_is_left_out(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = sequences.topk()
    (tmp_path / "net.onnx").write_bytes(program.SerializeToString())
    (tmp_path / "net.target").write_text("llvm")
    np.savez(tmp_path / "feed.npz", **open_decoder.feed(program, 0))
    with players((OPEN, "torch"), tmp_path, 1) as (engines, missing):
        assert list(engines) == [OPEN] and "TopK" in missing["torch"]
        assert interleaved(engines, 1)[OPEN] > 0
    with pytest.raises(RelayError, match="torch"), players(("torch",), tmp_path, 1):
        pass
    left_out = table([Result("topk", 1, ms={"relaylab": 1.0}, missing=missing)])
    assert left_out.endswith("`TopK` has no PyTorch form here") and "topk, 1 thread(s): not run by torch" in left_out


def test_a_history_tells_what_changed(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    assert BenchHistory(str(path)).add(RESULTS) == []
    faster = Result("mlp", 1, ms={"relaylab": 0.004, "onnxruntime": 0.01})
    same = Result("toy", 2, ms={"relaylab": 4.0, "onnxruntime": 2.0})
    (words,) = BenchHistory(str(path)).add([faster, same, Result("mlp", 1, "llvm -mcpu=x86-64-v3", {"relaylab": 9.0})])
    assert words.startswith("mlp, 1 thread: 25% faster than on ")
    (words,) = BenchHistory(str(path)).add([Result("mlp", 1, ms={"relaylab": 0.008, "onnxruntime": 0.01})])
    assert "50% slower" in words and len(path.read_text().splitlines()) == 6


GOOD = {
    "day": "2026-01-02",
    "cpu": "x",
    "row": "mlp",
    "threads": 1,
    "target": "llvm",
    "ms": {"relaylab": 1.5, "torch": 0},
}


def test_a_history_whose_last_line_does_not_end_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(json.dumps(GOOD))
    BenchHistory(str(path)).add(RESULTS)
    assert len(BenchHistory(str(path)).entries) == 3


@pytest.mark.parametrize(
    "text",
    [
        "{", "[1]", "{}", '{"row": "mlp"}', "\x00",
        *(
            json.dumps(GOOD | changed)
            for changed in (
                {"ms": {"relaylab": 0}}, {"ms": None}, {"ms": {"torch": 1}}, {"ms": {"relaylab": math.nan}},
                {"row": ["mlp"]}, {"ms": {"relaylab": 1, "onnxruntime": 0}}, {"threads": "1"},
            )
        ),
    ],
)  # fmt: skip
def test_files_that_are_no_history(text: str, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + text)
    with pytest.raises(RelayError, match="no history of measurements: after 1 measurement, "):
        BenchHistory(str(path))
    with pytest.raises(RelayError, match="no history"):
        BenchHistory(str(tmp_path))


def test_the_encoder_says_the_same_in_onnx() -> None:
    _same_in_onnx(*encoder.get_workload(layers=1, length=8))


def test_an_operator_without_a_rule_is_named() -> None:
    pytest.importorskip("onnx")
    from relaylab.frontend import to_onnx

    x = relay.var("x", shape=(3,))
    mod = IRModule.from_expr(relay.Function([x], relay.cumprod(x)))
    with pytest.raises(RelayError, match="cumprod"):
        to_onnx(mod)


def test_table_marks_what_misses_its_goal() -> None:
    lines = table(RESULTS).splitlines()
    assert "2.00" in lines[2] and "<" not in lines[2]
    assert "<0.50" in lines[3]


def test_json_holds_what_was_measured() -> None:
    data = json.loads(to_json(RESULTS))
    assert [r["ratios"]["onnxruntime"] for r in data["results"]] == [2.0, 0.5]
    assert '"error": "inf"' in to_json([Result("mlp", 1, ms={"relaylab": 1.0}, error=math.inf)])


@pytest.mark.parametrize(
    "ours, theirs, wanted",
    [
        ([[1.0, 2.5]], [[1.0, 2.0]], 0.25),
        ([[1.0], [np.nan]], [[1.0], [3.0]], np.inf),
        ([[np.nan], [1.0]], [[3.0], [2.0]], np.inf),
        ([[np.nan, 1.0]], [[np.nan, 1.0]], 0.0),
        ([[True, False]], [[True, True]], 1.0),
        ([np.array([0], "uint8")], [np.array([1], "uint8")], 1.0),
        ([[]], [[]], 0.0),
        ([[1.0]], [[1.0, 1.0]], np.inf),
    ],
)
def test_the_error_of_outputs(ours: list, theirs: list, wanted: float, tmp_path: Path) -> None:
    class Done:
        def __init__(self, values: list) -> None:
            self.values = [np.asarray(value) for value in values]

        def outputs(self, path: Path) -> list[np.ndarray]:
            return self.values

    assert _error({OURS: Done(ours), "onnxruntime": Done(theirs)}, tmp_path) == wanted


def test_a_row_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    def measured(row: BenchmarkRow, threads: int, rounds: int, target: str) -> Result:
        if row.name == "mlp":
            raise subprocess.CalledProcessError(1, "python")
        return Result(row.name, threads, target, {"relaylab": 1.0})

    monkeypatch.setattr(command, "measure_apart", measured)
    monkeypatch.setattr(sys, "argv", ["bench", "--rows", "mlp, toy,toy", "--threads", "1"])
    assert command.main() == 1
    printed = capsys.readouterr()
    assert "mlp failed" in printed.err and [line.split()[0] for line in printed.out.splitlines()[2:]] == ["toy"]


def test_what_was_measured_before_an_interrupt_is_told(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def measured(row: BenchmarkRow, threads: int, rounds: int, target: str) -> Result:
        if row.name == "toy":
            raise KeyboardInterrupt
        return Result(row.name, threads, target, {"relaylab": 1.0})

    monkeypatch.setattr(command, "measure_apart", measured)
    monkeypatch.setattr(sys, "argv", ["bench", "--rows", "mlp,toy,bert", "--threads", "1"])
    assert command.main() == 130
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]] == ["mlp"]


def test_picture_has_a_figure_per_result() -> None:
    root = ElementTree.fromstring(picture(RESULTS))
    titles = [e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any("mlp, 1 thread: 2.00 times faster than onnxruntime" in t for t in titles)


def test_an_unknown_row_is_refused_with_a_suggestion() -> None:
    with pytest.raises(RelayError, match="resnet18"):
        chosen("resnet81")
    with pytest.raises(RelayError, match="no row ``"):
        chosen("")


@pytest.mark.slow
def test_the_command_measures_a_row(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    out = tmp_path / "found.json"
    done = subprocess.run(
        [sys.executable, "-m", "relaylab.bench", "--rows", "toy", "--threads", "1", "--quick", "--json", str(out)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("row")
    assert json.loads(out.read_text())["results"][0]["error"] < 1e-5


@pytest.mark.parametrize(
    "words, told",
    [
        ("--threads 1,x", "x is not a whole"),
        ("--rounds 0", "0 is not a whole"),
        ("--svg no/x.svg", "no folder for no/x"),
        ("--json .", ". is a folder"),
        ("--quick --rounds 3", "not allowed with"),
    ],
)
def test_wrong_arguments_are_told_before_anything_is_measured(words, told, capsys):
    with pytest.raises(SystemExit) as end:
        parser().parse_args(words.split())
    assert end.value.code == 2 and told in capsys.readouterr().err
