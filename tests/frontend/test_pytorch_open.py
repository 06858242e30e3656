"""Open dimensions of PyTorch programs: sizes with names from the import on, one compiled form for all their numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.open.told import with_told_sizes
from relaylab.codegen.open.rules import check_open
from relaylab.frontend.pytorch.program import input_types
from relaylab.support.errors import RelayError

torch = pytest.importorskip("torch")
F = torch.nn.functional

CASES: dict[str, Callable] = {
    "positions": lambda x: x + torch.arange(x.shape[1], dtype=torch.float32)[None, :, None],
    "a slice of a table": lambda x: x + torch.ones(1, 64, 1)[:, : x.shape[1]].cumsum(1),
    "without the first": lambda x: x[:, 1:] - x[:, :-1],
    "the last": lambda x: x[:, -1:] * x,
    "the first": lambda x: x[:, :1] + x,
    "full and expand": lambda x: torch.full((x.shape[1], x.shape[1]), 2.0).expand(3, -1, -1) @ x.expand(3, -1, -1),
    "twice as long": lambda x: torch.cat([x, x], 1).reshape(2, x.shape[1], 4),
    "merged": lambda x: F.softmax(x.reshape(x.shape[1] * 2, 2), 0),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True)[0],
    "gathered": lambda x: torch.gather(x, 1, torch.zeros(1, x.shape[1], 4, dtype=torch.int64)),
}


class Of(torch.nn.Module):
    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("name", CASES)
def test_one_form_for_all_lengths(name: str) -> None:
    model, x = Of(CASES[name]), torch.randn(1, 5, 4)
    program = torch.export.export(model, (x,), dynamic_shapes=({1: torch.export.Dim("length", min=3, max=64)},))
    mod, params = relay.frontend.from_pytorch(program)
    assert isinstance(mod["main"].params[0].type_annotation.shape[1], relay.SizeVar)
    typed = relay.transform.InferType()(relay.transform.DynamicToStatic()(mod))
    check_open(with_told_sizes(typed)["main"])
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    for length in (5, 3, 17, 64, 17):
        given = torch.randn(1, length, 4)
        got = machine.invoke("main", given.numpy()).numpy()
        np.testing.assert_allclose(got, model(given).numpy(), rtol=2e-5, atol=2e-6)


def test_as_many_as_there_are_of_one_row() -> None:
    """Models with linear biases end a table so along both axes; torch leaves max(1 - n, 0) for an n that is not 0."""
    table = torch.linspace(0, 1, 64)[None, None, :]
    model = Of(lambda x: x + table[:, max(0, 1 - x.shape[1]) :, max(0, 64 - x.shape[1]) :])
    dims = {1: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.DYNAMIC}
    square = lambda n: torch.linspace(-1, 1, n * n).reshape(1, n, n)
    mod, _ = relay.frontend.from_pytorch(torch.export.export(model, (square(5),), dynamic_shapes=(dims,)))
    exe = relay.vm.compile(mod, "llvm")
    machine = relay.vm.VirtualMachine(exe)
    for n in (5, 2, 17):
        np.testing.assert_allclose(machine.invoke("main", square(n).numpy()).numpy(), model(square(n)).numpy())
    assert "one form for all sizes" in exe.stats and "0 of at most" in exe.stats


def test_a_part_that_is_copied_has_the_sizes_of_the_program() -> None:
    """A hidden state of the second layer lies in the concatenated states, and is copied for its product."""
    model = torch.nn.LSTM(3, 4, num_layers=2, batch_first=True)
    dynamic = {"input": {0: torch.export.Dim("batch", max=64)}}
    program = torch.export.export(model, (torch.randn(5, 3, 3),), dynamic_shapes=dynamic)
    mod, params = relay.frontend.from_pytorch(program)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    for batch in (5, 1, 17):
        x = torch.randn(batch, 3, 3)
        states, (hidden, cell) = model(x)
        for got, of in zip(machine.invoke("main", x.numpy()), (states, hidden, cell)):
            np.testing.assert_allclose(got.numpy(), of.detach().numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("strict", [False, True])
def test_sizes_have_the_names_of_their_dims(strict: bool) -> None:
    class Product(torch.nn.Module):
        def forward(self, x, y, z):
            return x @ y.T, z + 1

    batch, seq = torch.export.Dim("batch"), torch.export.Dim("seq", max=64)
    inputs, dims = (torch.randn(4, 5), torch.randn(6, 5), torch.randn(7, 2)), ({0: batch, 1: seq}, {1: seq}, {})
    dims[2][0] = torch.export.Dim.DYNAMIC
    program = torch.export.export(Product(), inputs, dynamic_shapes=dims, strict=strict)
    main = relay.frontend.from_pytorch(program)[0]["main"]
    (first, second), (_, third), (free, _) = (p.type_annotation.shape for p in main.params)
    assert (first.name, second.name) == ("batch", "seq") and third is second and free.name.startswith("s")
    assert input_types(program)["x"] == (("batch", "seq"), "float32")


def test_a_gather_along_the_first_axis_has_an_open_form() -> None:
    """Its attribute says nothing then."""
    n = relay.SizeVar("n")
    x, at = relay.var("x", shape=(7, 3)), relay.var("at", shape=(n, 3), dtype="int64")
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x, at], relay.gather(x, None, at))))
    check_open(mod["main"])


def test_a_number_that_is_given_holds_for_every_input_with_that_size() -> None:
    class Two(torch.nn.Module):
        def forward(self, x, y):
            return x.reshape(-1, 2) @ torch.ones(2, 1) + y.reshape(-1, 1)

    length = torch.export.Dim("length", min=2, max=64)
    inputs = torch.randn(6, 2), torch.randn(6)
    program = torch.export.export(Two(), inputs, dynamic_shapes=({0: length}, {0: length}))
    mod, _ = relay.frontend.from_pytorch(program, [("x", (8, 2)), ("y", (8,))])
    assert [tuple(p.type_annotation.shape) for p in mod["main"].params] == [(8, 2), (8,)]
    assert tuple(mod["main"].ret_type.shape) == (8, 1)
    mod, _ = relay.frontend.from_pytorch(program, [("x", (relay.Any(), 2)), ("y", (relay.Any(),))])
    first, second = (p.type_annotation.shape[0] for p in mod["main"].params)
    assert first is second is mod["main"].ret_type.shape[0]


@pytest.mark.parametrize("exported", [False, True])
def test_sizes_that_are_given_by_name_keep_it(exported: bool) -> None:
    class Sum(torch.nn.Module):
        def forward(self, x, y):
            return torch.relu(x).sum(1, keepdim=True) + y

    inputs = torch.randn(3, 8), torch.randn(3, 4)
    rows = {0: torch.export.Dim("batch")}
    model = torch.export.export(Sum(), inputs, dynamic_shapes=(rows, rows)) if exported else Sum().eval()
    n = relay.SizeVar("n")
    mod, params = relay.frontend.from_pytorch(model, [("x", (n, 8)), ("y", (n, 4))])
    assert [tuple(p.type_annotation.shape) for p in mod["main"].params] == [(n, 8), (n, 4)]
    assert tuple(mod["main"].ret_type.shape) == (n, 4)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    for rows in (3, 1, 17):
        x, y = torch.randn(rows, 8), torch.randn(rows, 4)
        got = machine.invoke("main", x.numpy(), y.numpy()).numpy()
        np.testing.assert_allclose(got, Sum()(x, y).numpy(), rtol=2e-5, atol=2e-6)
    twice, _ = relay.frontend.from_pytorch(model, [("x", (2 * n, 8)), ("y", (2 * n, 4))])
    assert str(twice["main"].ret_type) == "Tensor[(2 * n, 4), float32]"
    with pytest.raises(RelayError, match=r"Tensor\[\(n, 9\), float32\] is given|refuses"):
        relay.frontend.from_pytorch(model, [("x", (n, 9)), ("y", (3, 4))])


@pytest.mark.parametrize("stored", [False, True])
def test_a_size_of_which_a_constant_was_computed_is_that_size(stored: bool, tmp_path) -> None:
    """torch takes `math.sqrt` of a size for a number and refuses others: they were computed with it all the same."""

    class Scaled(torch.nn.Module):
        def forward(self, x):
            return x @ torch.arange(x.shape[1], dtype=torch.float32) * math.sqrt(2 / x.shape[1])

    free, net, x = torch.export.Dim.AUTO, Scaled(), torch.rand(3, 7)
    program = torch.export.export(net, (x,), dynamic_shapes=({0: free, 1: free},))
    if stored:
        torch.export.save(program, tmp_path / "net.pt2")
    mod, params = relay.frontend.from_pytorch(tmp_path / "net.pt2" if stored else program)
    vm = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    for rows in (3, 5):
        x = torch.rand(rows, 7)
        np.testing.assert_allclose(vm.invoke("main", x.numpy()).numpy(), net(x).numpy(), rtol=1e-5)
    with pytest.raises(RelayError):
        vm.invoke("main", np.ones((3, 8), "float32"))
