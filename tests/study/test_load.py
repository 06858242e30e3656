"""What can be explored, and what is said of what cannot."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from relaylab import relay, study
from relaylab.frontend.told_sizes import OpenSizeWarning
from relaylab.ir import structural_equal
from relaylab.relay import testing
from relaylab.support.errors import RelayError

X = relay.var("x", shape=(2,))
RELU = relay.Function([X], relay.nn.relu(X))


def test_a_workload_is_explored_as_it_comes():
    mod, params = testing.mlp.get_workload(1)
    found = study.load((mod, params))
    assert found.mod is mod and found.params is params
    assert study.load((mod, None)).params == {}
    bound = study.explore((mod, params)).pipeline.source["main"]
    assert [p.name_hint for p in bound.params] == ["data"]


def test_a_function_is_a_program():
    assert structural_equal(study.load(RELU).mod["main"], RELU)
    assert study.load((RELU, {})).mod["main"].params == RELU.params


@pytest.mark.parametrize(
    "what, words",
    [
        (3, "not int"),
        (None, "not NoneType"),
        ([RELU], "not list"),
        ((RELU,), "not tuple"),
        ((RELU, 3), "not tuple"),
        ("x\0y", "neither a network nor a file"),
        ("a" * 5000, "neither a network nor a file"),
        ("def @main(%x: int32) { %x }" * 99, "relay.parse(text)"),
    ],
)
def test_what_is_no_program_is_refused_in_few_words(what, words):
    with pytest.raises(RelayError) as error:
        study.load(what)
    assert words in str(error.value) and len(str(error.value)) < 1500


@pytest.fixture
def open_model(tmp_path: Path) -> str:
    """Two inputs of (batch, 3, rows) and (batch, rows), added."""
    onnx = pytest.importorskip("onnx")
    shapes = {"image": ["batch", 3, "rows"], "mask.1": ["batch", 1, "rows"]}
    infos = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, d) for n, d in shapes.items()]
    out = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 3, "rows"])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", list(shapes), ["y"])], "g", infos, [out])
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.helper.make_model(graph).SerializeToString())
    return str(path)


def shapes_of(program: study.Program) -> list[tuple[int, ...]]:
    return [p.type_annotation.concrete_shape for p in program.mod["main"].params]


@pytest.mark.parametrize(
    "told, shapes, left",
    [
        ("", [(1, 3, 1), (1, 1, 1)], "`batch`, `rows`"),
        (":rows=7", [(1, 3, 7), (1, 1, 7)], "`batch`"),
        (":batch=2,rows=7", [(2, 3, 7), (2, 1, 7)], ""),
        (":image=2x3x5,mask.1=2x1x5", [(2, 3, 5), (2, 1, 5)], ""),
        (":image=2x3x5,batch=2", [(2, 3, 5), (2, 1, 1)], "`rows`"),
    ],
)
def test_the_name_of_a_model_says_its_open_sizes(open_model: str, told: str, shapes: list, left: str) -> None:
    if left:
        with pytest.warns(OpenSizeWarning, match=f"leaves {left} open: 1 here"):
            found = study.load(open_model + told)
    else:
        found = study.load(open_model + told)
    assert shapes_of(found) == shapes
    assert found.name == ("model" if not told else f"model[{told[1:]}]")


@pytest.mark.filterwarnings("ignore::relaylab.frontend.told_sizes.OpenSizeWarning")
def test_a_model_is_read_once(open_model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, times = Path.open, []
    monkeypatch.setattr(Path, "open", lambda path, *args, **more: times.append(path) or opened(path, *args, **more))
    study.load(open_model)
    assert times.count(Path(open_model)) == 1


@pytest.mark.parametrize(
    "told, words",
    [
        (":row=7", "did you mean `rows`?"),
        (":depth=7", "there are batch, rows, image, mask.1"),
        (":", "`` is no size"),
        (":rows", "`rows` is no size"),
        (":rows=7,", "`` is no size"),
        (":rows=-7", "`rows=-7` is no size"),
        (":rows=2x3", "no open size and no input `rows`"),
        (":rows=99999999999", "is no size"),
    ],
)
def test_what_is_no_size_is_refused(open_model: str, told: str, words: str) -> None:
    with pytest.raises(RelayError) as error:
        study.load(open_model + told)
    assert words in str(error.value)


def test_open_sizes_of_exported_programs(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "m.pt2"
    rows = ({0: torch.export.Dim("rows")},)
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.rand(3, 8),), dynamic_shapes=rows), path)
    with pytest.warns(OpenSizeWarning, match="open: 1 here; `"):
        assert shapes_of(study.load(path)) == [(1, 8)]
    assert shapes_of(study.load(f"{path}:input=5x8")) == [(5, 8)]


OPEN = """#[version = "0.0.5"]
def @main(%x: Tensor[(?, 64), float32], %w: Tensor[(8, 64), float32]) { nn.relu(nn.dense(%x, %w, units=8)) }
"""


@pytest.fixture
def open_text(tmp_path: Path) -> str:
    path = tmp_path / "net.relay"
    path.write_text(OPEN)
    return str(path)


@pytest.mark.parametrize("told", ["x=4x64", "x.0=4", "x=4x64,w=8x64"])
def test_the_name_of_a_text_says_its_open_sizes(open_text: str, told: str) -> None:
    found = study.load(f"{open_text}:{told}")
    assert shapes_of(found) == [(4, 64), (8, 64)] and found.name == f"net[{told}]"
    x, w = np.random.default_rng(0).normal(size=(2, 8, 64)).astype("float32")
    np.testing.assert_allclose(study.run(found, {"x": x[:4], "w": w}), np.maximum(x[:4] @ w.T, 0), rtol=1e-4, atol=1e-5)
    assert len(study.profile(found, number=1).calls) == 1


@pytest.mark.parametrize(
    "told, words",
    [
        ("x=4x32", "the input `x` of {} has the shape (x.0, 64), not (4, 32)"),
        ("x=4", "has the shape (x.0, 64), not (4)"),
        ("y=4", "no open size and no input `y`"),
        ("", "`` is no size"),
    ],
)
def test_sizes_that_a_text_has_not_are_refused(open_text: str, told: str, words: str) -> None:
    with pytest.raises(RelayError, match=re.escape(words.format(open_text))):
        study.load(f"{open_text}:{told}")


def test_a_text_without_open_sizes_takes_none(tmp_path: Path) -> None:
    path = tmp_path / "net.relay"
    path.write_text(OPEN.replace("?", "4"))
    with pytest.raises(RelayError, match="leaves no sizes of tensors open"):
        study.load(f"{path}:x=4x64")


def test_what_needs_sizes_says_how_to_tell_them(open_text: str, tmp_path: Path) -> None:
    for use in (
        lambda: study.profile(open_text),
        lambda: study.operator_table(open_text),
        lambda: study.schedule(open_text, "dense"),
        lambda: study.tune(open_text, 1, tmp_path / "records"),
    ):
        with pytest.raises(RelayError, match=r"net leaves sizes of its input `x` open.*\n.*net.relay:x=1x64"):
            use()
    (row,) = study.sweep(study.cells([open_text], ["default"], measures=("counts",))).rows
    assert row.status == "refused" and "net.relay:x=1x64" in row.why


def test_what_commands_take_functions_take():
    """A name was no program for some of them, and a text of passes was taken letter by letter."""
    assert study.run("mlp").shape == (1, 10)
    assert len(study.profile("mlp", number=1).calls) == 4
    assert "i1 in 10 vectorized" in study.schedule("mlp", "softmax", "vectorize i1").loops
    assert [r.name for r in study.explore(RELU, passes="FoldConstant, FuseOps").rows] == ["FoldConstant", "FuseOps"]
    assert study.bisect(RELU, passes="FoldConstant,FuseOps") is None
    for passes in (study.explore, study.bisect):
        with pytest.raises(AttributeError, match="no pass named `Foo`"):
            passes("mlp", passes="FuseOps,Foo")


def test_what_a_notebook_shows_of_a_study_can_be_read(tmp_path):
    """A recorded run was shown as all its texts, megabytes of them, an exploration as an address."""
    program = study.load("mlp")
    found = study.explore(program)
    run = study.reopen(study.record(found, tmp_path / "a.rlab"))
    assert repr(program) == "Program(name='mlp', note='')" and repr(run).startswith("<recorded run of mlp: ")
    assert repr(found) == "\n".join(map(str, found.rows)) and "CanonicalizeOps" in repr(found)
    assert repr(study.SweepTable(None, [])) == "no row yet"
    table = study.sweep(study.cells(["mlp"], measures=("counts",)))
    comparison = study.compare(RELU, "FuseOps", "FoldConstant")
    for told in (table, comparison, study.roofline("mlp", repeat=1), *study.llvm_steps(study.built("mlp"), "softmax")):
        assert repr(told) == str(told) and len(repr(told)) < 2000


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_text_of_windows_is_read(tmp_path: Path, encoding: str):
    text = relay.astext(relay.parse(relay.astext(RELU)))
    (tmp_path / "net.relay").write_bytes(text.replace("\n", "\r\n").encode(encoding))
    assert relay.astext(study.load(tmp_path / "net.relay").mod) == text


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nett.relay", "`net.relay`"),
        ("resnet18.relay", "the network is named resnet18, without .relay"),
        ("nowhere/net.relay", "there is no folder nowhere"),
        ("~/net.relay", "os.path.expanduser"),
        ("nett.onnx", "did you mean `net.onnx`"),
        ("none_of_it.pt2", "it is looked for in"),
        ("mlp[batch=2]", "sizes are told of files"),
        ("other_program.relay", "it is looked for in"),
        ("folder.relay", "it is a folder"),
    ],
)
def test_a_file_that_is_not_there_has_a_remedy(tmp_path: Path, monkeypatch, name: str, says: str):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.relay").write_text("")
    (tmp_path / "net.onnx").write_text("")
    (tmp_path / "folder.relay").mkdir()
    with pytest.raises(RelayError, match=re.escape(says)):
        study.load(name)
