"""What changed, in pieces: equal ones once, counted; figures for a paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relaylab import relay, study, viz
from relaylab.cli import main
from relaylab.support.errors import RelayValueError
from relaylab.viz.write.pdf import pdf


def network(layers: int) -> relay.IRModule:
    """So many layers of batch norm, the last one of them with its shift used twice."""
    x = relay.var("x", shape=(1, 4, 3, 3))
    for k in range(layers):
        names = (relay.var(f"{n}{k}", shape=(4,)) for n in ("gamma", "beta", "mean", "var"))
        x = relay.nn.relu(relay.nn.conv2d(relay.nn.batch_norm(x, *names)[0], relay.var(f"w{k}", shape=(4, 4, 1, 1))))
    return relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(relay.analysis.free_vars(x), x)))


def changes(mod: relay.IRModule, name: str) -> viz.View:
    history = study.explore(mod, passes=[name]).history
    return viz.diff(history.source, history.mod, history).merged


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(list(words))
    return int(done.value.code or 0)


def test_equal_changes_are_one_with_their_number() -> None:
    view = changes(network(5), "SimplifyInference")
    kinds = viz.exemplars(view)
    assert [kind.count for kind in kinds] == [5]
    titles = [view.node_by_id[name].title for name in kinds[0].nodes]
    assert "nn.batch_norm" in titles and "sqrt" in titles and "nn.conv2d" not in titles
    every = {n.id for n in view.nodes if n.role}
    assert len(every) == sum(len(kind.nodes) * kind.count for kind in kinds)


def test_kernels_are_pieces_by_themselves() -> None:
    mod = relay.transform.SimplifyInference()(network(3))
    kinds = viz.exemplars(changes(relay.transform.InferType()(mod), "FuseOps"))
    assert sum(kind.count for kind in kinds) > 3 and max(kind.count for kind in kinds) >= 2
    assert all(len(set(kind.nodes)) == len(kind.nodes) for kind in kinds)


def test_nothing_changed_has_no_pieces() -> None:
    mod = network(1)
    assert viz.exemplars(viz.diff(mod, mod).merged) == []


@pytest.mark.parametrize("width", [60, 84.0, 178])
def test_a_page_is_as_wide_as_asked(width: float) -> None:
    box = re.search(rb"/MediaBox\[0 0 ([\d.]+) ([\d.]+)\]", pdf([viz.show(network(2)).scene], width=width))
    assert box and abs(float(box[1]) - width * 72 / 25.4) < 0.01


@pytest.mark.parametrize("options", [{"width": 0}, {"width": 6000}, {"width": 84, "paper": "a4"}])
def test_widths_that_no_page_has(options: dict[str, object]) -> None:
    with pytest.raises(RelayValueError, match="millimetres"):
        pdf([viz.show(network(1)).scene], **options)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "net.relay"
    text.write_text(network(4).astext())
    assert run("figure", str(text), "SimplifyInference", "-o", str(tmp_path / "f.svg"), "--width", "120") == 0
    drawn, said = (tmp_path / "f.svg").read_text(), capsys.readouterr().out
    assert (
        "SimplifyInference ×4" in drawn and drawn.count(">− nn.batch_norm<") + drawn.count("nn.batch_norm</text>") == 1
    )
    assert "120 mm wide, text of at least" in said
    assert run("figure", str(text), "SimplifyInference", "-o", str(tmp_path / "f.svg"), "--width", "8.4cm") == 0
    drawn, said = (tmp_path / "f.svg").read_text(), capsys.readouterr().out
    assert "84 mm wide" in said and said.endswith("pt, names only\n") and "nn.batch_norm" in drawn
    assert float(said.split("at least ")[1].split()[0]) >= 5 and "float32</text>" not in drawn
    assert run("figure", str(text), "SimplifyInference", "-o", str(tmp_path / "f.pdf"), "--width", "30") == 0
    assert "hard to read" in capsys.readouterr().out


@pytest.mark.parametrize("width", ["0", "-3", "mm", "3mcm", "nan", "1.2.3"])
def test_widths_that_are_no_length(width: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("figure", "mlp", "FuseOps", "-o", "f.pdf", f"--width={width}") == 2
    assert "invalid millimetres value" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "word"), [("FuseOp", "did you mean `FuseOps`"), ("Legalize", "changes nothing")])
def test_passes_that_make_no_figure(name: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("figure", "mlp", name, "-o", str(tmp_path / "f.pdf")) == 1
    said = capsys.readouterr()
    assert word in said.out + said.err
