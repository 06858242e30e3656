"""Slices, ranges and targets that sizes decide: one form for all numbers, and what is too short is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relaylab import relay
from relaylab.support.errors import RelayError


def machine(mod, params=None) -> relay.vm.VirtualMachine:
    """The program of a model; it has one form for all sizes."""
    made = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    assert made.exe.specializations is not None
    return made


def one_form(vm: relay.vm.VirtualMachine) -> bool:
    return "one form for all sizes" in vm.exe.stats


# ---- PyTorch

torch = pytest.importorskip("torch")
F = torch.nn.functional


class Of(torch.nn.Module):
    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("table", torch.arange(24.0).reshape(1, 12, 2))

    def forward(self, x):
        return self.function(self, x)


def summed(s: Of, x):
    """Messages along edges, added where they arrive."""
    places = torch.arange(x.shape[1]) // 2
    return torch.zeros(x.shape[1]).scatter_add(0, places, torch.ones_like(places, dtype=x.dtype)) + x[0, :, 0]


CASES: dict[str, Callable] = {
    "a table": lambda s, x: x + s.table[:, : x.shape[1]],
    "a table from a size on": lambda s, x: x[:, 2:] + s.table[:, x.shape[1] - 4 : 2 * x.shape[1] - 6],
    "the first and the last": lambda s, x: x[:, :1] + x[:, -1:],
    "one of them": lambda s, x: x[:, 1] * x[:, -2],
    "two parts": lambda s, x: torch.split(torch.cat([s.table[:, :2], x], 1), [2, x.shape[1]], 1)[1] * 2,
    "all but one": lambda s, x: x[:, 1:] * x[:, :-1],
    "added at places": summed,
    "a range of a quotient": lambda s, x: torch.arange((x.shape[1] + 3) // 4)[None] + x.sum(),
    "parts of windows": lambda s, x: x.unfold(1, 2, 2).sum(-1),
    "the size of an image": lambda s, x: F.interpolate(x[None], size=(x.shape[1] // 2 + 1, 4), mode="bilinear"),
    "a smaller image": lambda s, x: F.interpolate(x[None], size=((x.shape[1] + 1) // 2, 2), mode="nearest"),
    "what is left over": lambda s, x: x.reshape(1, x.shape[1] // 1, 2, 1).repeat(1, 1, 1, x.shape[1]).reshape(1, -1, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_one_form_for_all_lengths(name: str) -> None:
    model, x = Of(CASES[name]).eval(), torch.randn(1, 6, 2)
    with torch.no_grad():
        program = torch.export.export(model, (x,), dynamic_shapes=({1: torch.export.Dim.AUTO},))
    vm = machine(*relay.frontend.from_pytorch(program))
    for length in (6, 5, 8):
        given = torch.randn(1, length, 2)
        got = vm.invoke("main", given.numpy()).numpy()
        np.testing.assert_allclose(got, program.module()(given).numpy(), rtol=2e-5, atol=2e-6)
    assert one_form(vm), vm.exe.stats


def test_a_table_that_is_too_short_is_refused() -> None:
    """Its last row was taken again and again."""
    program = torch.export.export(
        Of(CASES["a table"]), (torch.randn(1, 6, 2),), dynamic_shapes=({1: torch.export.Dim.AUTO},)
    )
    vm = machine(*relay.frontend.from_pytorch(program))
    vm.invoke("main", np.zeros((1, 12, 2), "float32"))
    with pytest.raises(RelayError, match="there are not"):
        vm.invoke("main", np.zeros((1, 13, 2), "float32"))
    with pytest.raises(RelayError, match="there are not"):
        vm.invoke("main", np.zeros((1, 1200, 2), "float32"))


def test_places_of_a_plane_are_those_of_its_axis() -> None:
    """A count of the whole tensor was taken for the length of the places that are written."""

    def written(s, x):
        out = torch.cat([x, x[:, :1]], 1)
        out[:, :, 0] = 7
        return out

    x = torch.randn(1, 5, 2)
    program = torch.export.export(Of(written), (x,), dynamic_shapes=({1: torch.export.Dim.AUTO},))
    vm = machine(*relay.frontend.from_pytorch(program))
    for length in (5, 3):
        given = torch.randn(1, length, 2)
        np.testing.assert_array_equal(vm.invoke("main", given.numpy()).numpy(), program.module()(given).numpy())
