"""Recurrent networks of PyTorch are imported whole: all their steps, not what torch traces of each."""

from __future__ import annotations

import pytest
from pytorch_tools import agree, program

from relaylab.frontend.pytorch.program import expanded
from relaylab.frontend.pytorch.table import name_of

torch = pytest.importorskip("torch", reason="reads PyTorch models")


class Net(torch.nn.Module):
    """A recurrent network, its outputs and its last state; `of_data` makes the first state of the data."""

    def __init__(self, kind: str, of_data: bool = False, **options: object) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net, self.of_data = getattr(torch.nn, kind)(5, 6, **options), of_data

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = x[:1].tanh().mean(2, keepdim=True).expand(1, x.shape[1], 6).contiguous() if self.of_data else None
        out, last = self.net(x, (first, first) if self.of_data and isinstance(self.net, torch.nn.LSTM) else first)
        return out, *(last if isinstance(last, tuple) else (last,))


BOTH = {"num_layers": 2, "bidirectional": True}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("LSTM", {}),
        ("LSTM", {**BOTH, "batch_first": True}),
        ("LSTM", {"bias": False, "proj_size": 3, **BOTH}),
        ("LSTM", {"of_data": True}),
        ("GRU", {**BOTH, "dropout": 0.5}),
        ("GRU", {"bias": False, "batch_first": True}),
        ("GRU", {"of_data": True}),
        ("RNN", {**BOTH}),
        ("RNN", {"nonlinearity": "relu", "batch_first": True}),
    ],
    ids=lambda v: v if isinstance(v, str) else "-".join(v) or "plain",
)
def test_all_steps_of_all_layers(kind, options):
    net, x = Net(kind, **options), torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(1))
    agree(net, x, tolerance=1e-5)
    batch = 0 if options.get("batch_first") else 1
    agree(net, x, executor="vm", tolerance=1e-5, dynamic=({batch: torch.export.Dim("n", min=2, max=64)},))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_they_are_not_taken_apart_by_torch(kind):
    """64 steps took torch seconds."""
    net = Net(kind)
    whole, parts = expanded(program(net, torch.zeros(64, 2, 5)), ())
    names = [name_of(n.target) for n in (parts or whole).graph.nodes if n.op == "call_function"]
    assert [n for n in names if n.endswith(".input")] == [{"RNN": "rnn_tanh"}.get(kind, kind.lower()) + ".input"]
    assert len(names) < 20


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells_are_taken_apart_one_like_the_other(kind):
    """Five steps of a decoder took torch 1.5 s: parts of a cell write into others, so it traced all as a whole."""

    class Steps(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.cell = getattr(torch.nn, kind)(6, 6)

        def forward(self, x):
            state = (x, x) if kind == "LSTMCell" else x
            for _ in range(3):
                state = self.cell(state[0] if kind == "LSTMCell" else state, state)
            return state

    net, x = Steps(), torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    rows = {0: torch.export.Dim("n", min=2, max=64)}
    assert expanded(program(net, x), ())[1] is not None
    assert expanded(program(net, x, dynamic=(rows,)), ())[1] is not None
    agree(net, x, executor="vm", tolerance=1e-5, dynamic=(rows,))
