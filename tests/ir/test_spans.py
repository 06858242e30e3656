"""Where nodes come from: the line of Python that asks for them, behind all of the package's own."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import relaylab
from relaylab import relay
from relaylab.ir import Call, Expr, Var, post_order
from relaylab.ir.trail import is_inner
from relaylab.support.source import SourceName, Span, merge_spans, shown

PACKAGE = Path(relaylab.__file__).parent


@pytest.mark.parametrize(
    "room",
    [
        "study/running.py", "viz/graph/facts.py", "frontend/graph.py", "explorer/session.py", "codegen/build.py",
        "ir/declare.py: Call", "op/nn/conv.py", "transform/fusion/fuse.py", "zoo/layers.py", "a_room_to_come/file.py",
    ],
)  # fmt: skip
def test_every_room_builds_for_others(room: str) -> None:
    assert is_inner(str(PACKAGE / room))


@pytest.mark.parametrize("written", ["zoo/resnet.py", "bench/encoder.py"])
def test_networks_are_written_in_the_zoo_and_the_benchmark(written: str) -> None:
    assert not is_inner(str(PACKAGE / written))


@pytest.mark.parametrize("place", ["/home/someone/net.py", "<stdin>", f"{PACKAGE}_of_mine/net.py"])
def test_other_code_is_the_users(place: str) -> None:
    assert not is_inner(place)


def lines_of(expr: Expr) -> set[tuple[str, int]]:
    return {(Path(str(n.span.source_name)).name, n.span.line) for n in post_order(expr) if isinstance(n, Call)}


def here() -> int:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def test_a_node_comes_from_the_line_that_builds_it() -> None:
    x, line = Var("x"), here()
    assert x.span is not None and (Path(str(x.span.source_name)).name, x.span.line) == ("test_spans.py", line)
    y, line = relay.nn.relu(x) + x, here()
    assert lines_of(y) == {("test_spans.py", line)}


def test_a_layer_of_the_zoo_comes_from_the_line_that_asks_for_it() -> None:
    from relaylab.zoo import layers

    made, line = layers.dense_add_bias(Var("x"), units=3, name="fc"), here()
    assert lines_of(made) == {("test_spans.py", line)}


def test_a_network_of_the_zoo_comes_from_its_file() -> None:
    mod, _ = relay.testing.mlp.get_workload(1)
    assert {file for file, _ in lines_of(mod["main"].body)} == {"mlp.py"}


def test_what_is_shown_has_no_folders_of_the_author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def at(name: str, line: int = 3) -> str:
        return shown(Span(SourceName(name), line, line, 1, 1))

    monkeypatch.chdir(tmp_path)
    assert at("/home/someone/net.py") == "net.py:3:1"
    assert at(f"{tmp_path}/models/net.py") == "models/net.py:3:1"
    assert at(f"{PACKAGE}/zoo/resnet.py") == "relaylab/zoo/resnet.py:3:1"
    assert at("cell In[4]") == "cell In[4], line 3" and at("net.relay") == "net.relay:3:1"
    assert at("/conv1/Conv", 0) == "/conv1/Conv", "a node of a model, not a file"
    both = merge_spans(Span(SourceName("/a/x.py"), 1, 1, 1, 1), Span(SourceName("/b/x.py"), 2, 2, 1, 1))
    assert shown(both) == "x.py:1:1, x.py:2:1" and shown(None) == ""
