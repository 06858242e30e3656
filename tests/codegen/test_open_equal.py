"""Sizes that are equal only for some numbers: one form, whose conditions are asked at each call; next to numpy."""

from __future__ import annotations

import numpy as np
import pytest
from test_specializations import forms, machine

from relaylab import relay
from relaylab.codegen.open.form import OpenForm
from relaylab.codegen.open.staged import StagedForm
from relaylab.ir.dims import SizeVar
from relaylab.support.errors import RelayError

RNG = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def one_form(vm, kind=OpenForm) -> bool:
    return type(forms(vm).open) is kind and not forms(vm).forms


def test_what_meets_is_equal_or_one_and_never_less():
    """The form is for equal sizes; of others the machine and forms for shapes know what they broadcast to."""
    n, m = SizeVar("n"), SizeVar("m")
    for one, other in [((n,), (m,)), ((n,), (4,)), ((n, 3), (m, 3))]:
        a, c = relay.var("a", shape=one), relay.var("c", shape=other)
        vm = machine(relay.Function([a, c], relay.exp(relay.add(a, c)) * a), open=True)
        at = lambda shape, k: [d if isinstance(d, int) else k for d in shape]
        for x, y in [(4, 4), (1, 4), (1, 4), (4, 4)]:
            x, y = floats(*at(one, x)), floats(*at(other, y))
            if len(x) not in (1, len(y)):
                x = x[:1]
            np.testing.assert_allclose(vm.invoke("main", x, y).numpy(), np.exp(x + y) * x, rtol=1e-5)
        assert type(forms(vm).open) is OpenForm, forms(vm).closed
        assert len(forms(vm).forms) == 1, vm.exe.stats  # what the form does not take is compiled when it comes again


def test_sizes_that_disagree_are_named_with_a_remedy():
    n, m = SizeVar("n"), SizeVar("m")
    a, c = relay.var("a", shape=(n,)), relay.var("c", shape=(m,))
    vm = machine(relay.Function([a, c], relay.negative(a + c)), open=True)
    vm.invoke("main", floats(3), floats(3))
    for _ in range(3):
        with pytest.raises(RelayError, match="add failed") as told:
            vm.invoke("main", floats(3), floats(2))
        assert told.value.code == "interp.failed" and "test_open_equal.py" in told.value.place
        assert "`m` and `n` are equal: they are 2 and 3" in told.value.help
    with pytest.raises(RelayError) as told:
        forms(vm).open.run([floats(3), floats(2)])
    assert told.value.code == "vm.size"
    np.testing.assert_array_equal(vm.invoke("main", np.ones(2, "f4"), np.ones(2, "f4")).numpy(), [-2, -2])


def test_a_network_that_halves_and_doubles_images():
    torch = pytest.importorskip("torch")
    h, w = SizeVar("h"), SizeVar("w")
    x = relay.var("x", shape=(1, 4, h, w))
    kernels = [floats(4, 4, 3, 3) / 6 for _ in range(3)]
    first, joined = relay.const(kernels[0]), relay.const(np.concatenate(kernels[1:], 1))
    half = relay.nn.relu(relay.nn.conv2d(x, first, strides=(2, 2), padding=(1, 1)))
    whole = relay.nn.upsampling(half, 2, 2) + x
    both = relay.nn.conv2d(relay.concatenate([whole, x], 1), joined, padding=(1, 1))
    vm = machine(relay.Function([x], relay.sigmoid(both + x)), open=True)
    conv = torch.nn.functional.conv2d
    for high, wide in [(8, 8), (16, 6), (2, 40), (8, 8)]:
        given = torch.from_numpy(floats(1, 4, high, wide))
        low = conv(given, torch.from_numpy(kernels[0]), stride=2, padding=1).relu()
        up = torch.nn.functional.interpolate(low, scale_factor=2) + given
        wanted = conv(torch.cat([up, given], 1), torch.from_numpy(np.concatenate(kernels[1:], 1)), padding=1) + given
        np.testing.assert_allclose(
            vm.invoke("main", given.numpy()).numpy(), wanted.sigmoid().numpy(), rtol=1e-4, atol=1e-5
        )
    assert one_form(vm)
    with pytest.raises(RelayError, match="add failed") as told:
        vm.invoke("main", floats(1, 4, 7, 8))
    assert "are equal: they are 8 and 7" in told.value.help or "are equal: they are 7 and 8" in told.value.help


def test_a_mask_as_long_as_a_cache_and_what_is_new():
    """The length of the mask has a name of its own, as exporters write it."""
    past, total = SizeVar("past"), SizeVar("total")
    mask, keys = relay.var("mask", shape=(1, 1, total)), relay.var("keys", shape=(2, past, 8))
    query = relay.var("query", shape=(2, 1, 8))
    every = relay.concatenate([keys, query], 1)
    scores = relay.nn.softmax(relay.nn.batch_matmul(query, every) + mask)
    mixed = relay.nn.batch_matmul(scores, relay.transpose(every, (0, 2, 1)))
    vm = machine(relay.Function([mask, keys, query], mixed), open=True)
    for n in (3, 0, 70, 1):
        k, q, hidden = floats(2, n, 8), floats(2, 1, 8), np.where(RNG.random((1, 1, n + 1)) < 0.3, -9, 0).astype("f4")
        both = np.concatenate([k, q], 1)
        e = np.exp(q @ both.transpose(0, 2, 1) + hidden)
        wanted = e / e.sum(-1, keepdims=True) @ both
        np.testing.assert_allclose(vm.invoke("main", hidden, k, q).numpy(), wanted, rtol=1e-4, atol=1e-5)
    assert one_form(vm)


def test_batches_whose_sizes_have_names_of_their_own():
    a, c = relay.var("a", shape=(SizeVar("a"), 3, 4)), relay.var("c", shape=(SizeVar("c"), 5, 4))
    vm = machine(relay.Function([a, c], relay.nn.relu(relay.nn.batch_matmul(a, c))), open=True)
    for n, m in [(3, 3), (0, 0), (9, 9)]:
        x, y = floats(n, 3, 4), floats(m, 5, 4)
        wanted = np.maximum(x @ y.transpose(0, 2, 1), 0)
        np.testing.assert_allclose(vm.invoke("main", x, y).numpy(), wanted, rtol=1e-4, atol=1e-5)
    assert one_form(vm)


def test_inputs_without_names_for_their_sizes_meet_too():
    a, c = relay.var("a", shape=(relay.Any(), 3)), relay.var("c", shape=(relay.Any(), 3))
    vm = machine(relay.Function([a, c], relay.where(relay.greater(a, c), a, relay.exp(c))), open=True)
    for n in (3, 0, 1, 50):
        x, y = floats(n, 3), floats(n, 3)
        np.testing.assert_allclose(vm.invoke("main", x, y).numpy(), np.where(x > y, x, np.exp(y)), rtol=1e-5)
    assert one_form(vm, StagedForm)


@pytest.mark.parametrize("name", ["nn.prelu", "nn.bias_add"])
def test_a_vector_along_an_open_axis_is_as_long_as_it(name):
    """A vector of three beside `n` channels: read beyond its end for any other number."""
    x, alpha = relay.var("x", shape=(2, SizeVar("n"))), relay.var("alpha", shape=(3,))
    build = getattr(relay.nn, name[3:])
    vm = machine(relay.Function([x, alpha], relay.exp(build(x, alpha, axis=1))), open=True)
    given, vector = floats(2, 3), floats(3)
    y = np.where(given > 0, given, given * vector) if name == "nn.prelu" else given + vector
    np.testing.assert_allclose(vm.invoke("main", given, vector).numpy(), np.exp(y), rtol=1e-5)
    assert one_form(vm)
    for n in (4, 0):
        with pytest.raises(RelayError):
            vm.invoke("main", floats(2, n), vector)
        with pytest.raises(RelayError, match="equal"):
            forms(vm).open.run([floats(2, n), vector])


def test_what_is_taken_from_nothing_is_refused():
    x, at = relay.var("x", shape=(SizeVar("n"), 2)), relay.var("at", shape=(SizeVar("m"),), dtype="int64")
    vm = machine(relay.Function([x, at], relay.exp(relay.take(x, at, axis=0))), open=True)
    given = floats(3, 2)
    np.testing.assert_allclose(vm.invoke("main", given, np.array([2, 0])).numpy(), np.exp(given[[2, 0]]), rtol=1e-6)
    assert vm.invoke("main", floats(0, 2), np.zeros(0, "int64")).shape == (0, 2)
    with pytest.raises(RelayError, match="no elements"):
        vm.invoke("main", floats(0, 2), np.array([1]))
    assert one_form(vm)
