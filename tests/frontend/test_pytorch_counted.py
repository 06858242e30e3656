"""Whole numbers counted and divided, running extremes, against torch."""

from __future__ import annotations

import pytest
from pytorch_tools import Wrapped, agree, compare, program, run, torch, wanted

from relaylab import relay

torch.manual_seed(0)
NUMBERS = torch.randint(0, 7, (50,))
SHORT = {"dtype": torch.int16}


@pytest.mark.parametrize("function", [torch.gcd, torch.lcm])
def test_divisors_and_multiples(function) -> None:
    signed = torch.randint(-100, 100, (4, 5))
    agree(Wrapped(function), signed, torch.randint(-100, 100, (5,)))
    agree(Wrapped(function), torch.zeros(3, **SHORT), torch.tensor([0, -4, 5], **SHORT))
    agree(Wrapped(function), torch.tensor([2**61 - 1, 7540113804746346429]), torch.tensor([6, 4660046610375530309]))


@pytest.mark.parametrize("executor", ["vm", "debug"])
@pytest.mark.parametrize("least", [0, 3, 10])
def test_numbers_are_counted(executor: str, least: int) -> None:
    counts = Wrapped(lambda a: torch.bincount(a, minlength=least))
    agree(counts, NUMBERS, executor=executor)
    agree(counts, torch.tensor([4], **SHORT), executor=executor)
    for weights in (torch.randn(50), torch.randint(0, 5, (50,)), torch.randn(50, dtype=torch.float64)):
        agree(Wrapped(lambda a, w: torch.bincount(a, w, least)), NUMBERS, weights, executor=executor)


def test_at_least_as_many_counts_as_an_input_has_rows() -> None:
    model, rows = Wrapped(lambda x, a: torch.bincount(a, minlength=x.shape[0])), {0: torch.export.Dim.DYNAMIC}
    mod, params = relay.frontend.from_pytorch(program(model, torch.randn(9, 2), NUMBERS[:6], dynamic=((rows, rows),)))
    for many in (3, 12):
        inputs = [torch.randn(many, 2), NUMBERS[:20]]
        compare(run(mod, params, inputs, "vm"), wanted(model, inputs), 0)


@pytest.mark.parametrize("function", [torch.cummax, torch.cummin, torch.logcumsumexp])
def test_running_extremes_compute_no_step_twice(function) -> None:
    """As one kernel each of the ten steps computed the one before it twice: 64 rows of 1000 took half a second."""
    mod, params = agree(Wrapped(lambda a: function(a, 1)), torch.randn(3, 1000))
    assert len(relay.build(mod, "llvm", params=params).kernels()) >= 10
