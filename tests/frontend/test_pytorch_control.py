"""Branches and loops that torch keeps as it is written: both ways of a branch, loops that data ends, many turns."""

from __future__ import annotations

import numpy as np
import pytest
from tests.frontend.pytorch_tools import Wrapped, program, torch

from relaylab import relay
from relaylab.support.errors import RelayError

control = pytest.importorskip("torch._higher_order_ops", reason="torch's own control flow")


def given_every_input(function, *cases, dynamic=None) -> str:
    """Import once, run for inputs of several values and sizes, each against torch; the imported text."""
    model = Wrapped(function)
    mod, params = relay.frontend.from_pytorch(program(model, *cases[0], dynamic=(dynamic,) if dynamic else None))
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    for inputs in cases:
        want = model(*inputs)
        got = machine.invoke("main", *(x.numpy() for x in inputs))
        pairs = zip(got, want) if isinstance(want, (tuple, list)) else [(got, want)]
        for g, w in pairs:
            np.testing.assert_allclose(g.numpy(), w.detach().numpy(), rtol=1e-5, atol=1e-5)
            assert g.numpy().dtype == w.detach().numpy().dtype
    return str(mod)


def test_a_branch_is_taken_by_its_condition() -> None:
    def choose(x, y):
        inner = lambda x, y: torch.cond(y.sum() > 3, lambda x, y: x * 2, lambda x, y: x - y, (x, y))
        outer = torch.cond(x.sum() > 0, inner, lambda x, y: torch.relu(x) + y.mean(), (x, y))
        return outer + 1

    x = torch.linspace(-1, 2, 6).reshape(2, 3)
    cases = [(x, x.clone()), (x, x + 3), (-x, x)]
    assert "if" in given_every_input(choose, *cases)


def test_a_branch_gives_several_values_and_reads_what_is_around_it() -> None:
    def choose(x, p):
        twice, n = x * 2, x.shape[0]
        return torch.cond(p, lambda x: (x.sin() + twice, x * n), lambda x: (x.cos(), x - 1), (x,))

    x = torch.linspace(-1, 2, 6).reshape(2, 3)
    more = torch.linspace(-1, 2, 12).reshape(4, 3)
    rows = {0: torch.export.Dim("rows", min=2, max=64)}
    given_every_input(choose, (x, torch.tensor(True)), (more, torch.tensor(False)), dynamic=(rows, {}))


def test_a_condition_that_is_known_chooses_when_the_model_is_read() -> None:
    def turn(k, x):
        return k + 1, torch.cond(k > 1, lambda x: x * 2, lambda x: x + 1, (x,))

    def choose(x):
        return control.while_loop(lambda k, x: k < 3, turn, (torch.tensor(0), x))

    assert "if" not in given_every_input(choose, (torch.arange(3.0),))


def test_a_loop_turns_as_often_as_its_state_says() -> None:
    weight = torch.linspace(-0.5, 1, 9).reshape(3, 3)

    def grow(x):
        scale = x.abs().mean() + 1  # read by every turn, computed once
        return control.while_loop(
            lambda k, x: (x.norm() < 50) & (k < 20), lambda k, x: (k + 1, x @ weight + x * scale), (torch.tensor(0), x)
        )

    x = torch.linspace(1, 2, 6).reshape(2, 3)
    given_every_input(grow, (x,), (x * 0.01,), (x * 100,))


def test_a_loop_of_known_turns_is_written_out() -> None:
    def power(x):
        return control.while_loop(lambda k, x: k < 3, lambda k, x: (k + 1, x * x + k), (torch.tensor(0), x))

    assert "while_loop" not in given_every_input(power, (torch.linspace(-1, 1, 5),))


def test_a_scan_keeps_its_state_and_collects_rows() -> None:
    from torch._higher_order_ops import scan

    def recurrent(x):
        step = lambda h, row: ((n := torch.tanh(h.roll(1, 1) * 0.5 + row)), n * 2)
        forward = scan(step, x.new_zeros(x.shape[1], 3), x, dim=0)
        back = scan(step, x.new_zeros(x.shape[1], 3), x, dim=0, reverse=True)
        return (*forward, *back)

    few, more = (torch.linspace(-1, 1, n * 6).reshape(n, 2, 3) for n in (4, 9))
    given_every_input(recurrent, (few,))
    given_every_input(recurrent, (few,), (more,), dynamic=({0: torch.export.Dim("steps", min=2, max=64)},))


def test_many_rows_are_a_loop_in_the_program() -> None:
    from torch._higher_order_ops import scan

    def summed(x):
        return scan(lambda h, row: (h + row, h * row), torch.zeros(2), x, dim=0)

    text = given_every_input(summed, (torch.linspace(-1, 1, 1200).reshape(600, 2),))
    assert text.count("\n") < 60


def test_rows_are_mapped() -> None:
    weight = torch.linspace(-1, 1, 9).reshape(3, 3)

    def mapped(x):
        return control.map(lambda row: torch.tanh(row @ weight).sum(), x)

    few, more = (torch.linspace(-1, 1, n * 6).reshape(n, 2, 3) for n in (4, 7))
    given_every_input(mapped, (few,), (more,), dynamic=({0: torch.export.Dim("rows", min=2, max=64)},))


def test_what_a_body_has_no_converter_for_is_named_with_the_rest() -> None:
    def choose(x):
        return torch.cond(x.sum() > 0, lambda x: torch.bernoulli(x), lambda x: x + 1, (x,))

    with pytest.raises(RelayError, match="rand") as caught:
        relay.frontend.from_pytorch(program(Wrapped(choose), torch.rand(3)))
    assert caught.value.code == "import.unsupported"
