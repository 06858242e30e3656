"""Slices of open axes that end before the axis does, or behind it: one form for all lengths, next to numpy."""

from __future__ import annotations

import numpy as np
import pytest
from test_specializations import forms, machine

from relaylab import relay
from relaylab.codegen.open.form import OpenForm
from relaylab.ir.dims import SizeVar
from relaylab.support.errors import RelayError
from relaylab.text.node_json import load_json, save_json
from relaylab.transform import InferType

RNG = np.random.default_rng(2)
FAR = 2**31 - 1
WEIGHT = RNG.standard_normal((5, 4)).astype("float32")
LENGTHS = (6, 0, 1, 2, 3, 40)
SLICES = [
    slice(0, 3), slice(-1, FAR), slice(-3, FAR), slice(0, 2**31), slice(1, 3), slice(-4, -1), slice(2, -1),
    slice(-3, 2), slice(0, FAR, 2), slice(1, 5, 3), slice(-5, FAR, 2), slice(-1, -FAR - 2, -1), slice(-1, -FAR, -1),
    slice(FAR, -FAR - 1, -2), slice(4, 2), slice(2, -FAR, -1), slice(-2, 0, -2), slice(-1, 1, -1), slice(-3, -6, -2),
    slice(FAR, -3, -1), slice(5, 1, -3),
]  # fmt: skip


@pytest.mark.parametrize("part", SLICES, ids=str)
def test_what_a_slice_leaves_goes_through_a_layer(part):
    x = relay.var("x", shape=(2, SizeVar("n"), 4))
    step = part.step or 1
    cut = relay.strided_slice(relay.tanh(x), begin=[part.start], end=[part.stop], strides=[step], axes=[1])
    vm = machine(relay.Function([x], relay.exp(relay.nn.dense(cut, relay.const(WEIGHT)))), open=True)
    stop = None if part.stop <= -FAR else part.stop
    for n in LENGTHS:
        given = RNG.standard_normal((2, n, 4)).astype("float32")
        wanted = np.exp(np.tanh(given)[:, part.start : stop : step] @ WEIGHT.T)
        got = vm.invoke("main", given).numpy()
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    assert type(forms(vm).open) is OpenForm, forms(vm).closed


def test_the_last_of_a_sequence_is_a_row():
    """One row for every length but 0, which the form refuses and the machine explains."""
    x = relay.var("x", shape=(2, SizeVar("n"), 4))
    last = relay.squeeze(relay.strided_slice(x, begin=[-1], end=[FAR], strides=[1], axes=[1]), axis=[1])
    vm = machine(relay.Function([x], relay.nn.softmax(relay.nn.dense(last, relay.const(WEIGHT)))), open=True)
    for n in (5, 1, 70):
        given = RNG.standard_normal((2, n, 4)).astype("float32")
        e = np.exp(given[:, -1] @ WEIGHT.T)
        got = vm.invoke("main", given).numpy()
        np.testing.assert_allclose(got, e / e.sum(-1, keepdims=True), rtol=1e-4, atol=1e-5)
    assert type(forms(vm).open) is OpenForm and not forms(vm).forms
    with pytest.raises(RelayError, match="squeeze"):
        vm.invoke("main", np.zeros((2, 0, 4), "float32"))


def test_a_truncated_sequence_meets_what_is_as_long():
    n = SizeVar("n")
    x, y = relay.var("x", shape=(n, 4)), relay.var("y", shape=(n, 4))
    short = relay.strided_slice(x, begin=[0], end=[16], strides=[1], axes=[0])
    vm = machine(relay.Function([x, y], relay.exp(short - y)), open=True)
    for length in (5, 16, 0, 1):
        a, c = (RNG.standard_normal((length, 4)).astype("float32") for _ in range(2))
        np.testing.assert_allclose(vm.invoke("main", a, c).numpy(), np.exp(a - c), rtol=1e-5)
    assert type(forms(vm).open) is OpenForm and not forms(vm).forms


def test_elements_apart_from_each_other():
    x = relay.var("x", shape=(SizeVar("n"), 3))
    vm = machine(relay.Function([x], relay.exp(relay.nn.dilate(x, strides=(3, 2), dilation_value=0.5))), open=True)
    for n in (4, 0, 1, 30):
        given = RNG.standard_normal((n, 3)).astype("float32")
        wanted = np.full((max(3 * n - 2, 0), 5), 0.5, "float32")
        wanted[::3, ::2] = given
        np.testing.assert_allclose(vm.invoke("main", given).numpy(), np.exp(wanted), rtol=1e-5)
    assert type(forms(vm).open) is OpenForm


@pytest.mark.parametrize("cuts", [3, (1, 4), (2,), (0, 2)])
def test_parts_of_an_open_axis(cuts):
    x = relay.var("x", shape=(2, SizeVar("n")))
    parts = relay.split(relay.exp(x), cuts, axis=1)
    vm = machine(relay.Function([x], relay.Tuple([relay.negative(p) for p in parts])), open=True)
    for n in (6, 9, 4, 30):
        if cuts == 3 and n == 4:
            continue
        given = RNG.standard_normal((2, n)).astype("float32")
        wanted = np.split(-np.exp(given), cuts if cuts == 3 else list(cuts), axis=1)
        for a, b in zip(vm.invoke("main", given), wanted, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-5)
    assert type(forms(vm).open) is OpenForm and not forms(vm).forms


def test_a_program_with_such_slices_is_kept_as_text_and_as_json():
    x = relay.var("x", shape=(SizeVar("n"), 4))
    cut = relay.strided_slice(x, begin=[0], end=[3], strides=[1], axes=[0])
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x], relay.exp(cut))))
    again = relay.fromtext(mod.astext())
    assert str(InferType()(again)["main"].ret_type) == str(mod["main"].ret_type)
    loaded = load_json(save_json(mod))
    assert str(loaded["main"].body.checked_type) == "Tensor[(n - max(n - 3, 0), 4), float32]"


def test_padding_by_sizes_is_joined():
    """Widths that follow from shapes have names: one form, also for what is padded again; next to numpy."""
    n, m = SizeVar("n"), SizeVar("m")
    x, y = relay.var("x", shape=(2, n)), relay.var("y", shape=(m,))
    size = lambda value, axis: relay.take(relay.shape_of(value, "int64"), relay.const([axis], "int64"))
    widths = lambda *parts: relay.reshape(relay.concatenate(parts, 0), (2, 2))
    none = relay.const([0], "int64")
    once = relay.exp(relay.nn.pad(x, widths(none, none, size(y, 0), size(y, 0)), 0.5))
    again = relay.nn.pad(once, widths(size(once, 1), none, none, none), 2.0)
    vm = machine(relay.Function([x, y], again), open=True)
    for many, more in ((3, 2), (1, 0), (0, 4), (5, 7), (40, 1)):
        given = RNG.standard_normal((2, many)).astype("float32")
        wanted = np.exp(np.pad(given, ((0, 0), (more, more)), constant_values=0.5))
        wanted = np.pad(wanted, ((wanted.shape[1], 0), (0, 0)), constant_values=2)
        got = vm.invoke("main", given, np.zeros(more, "float32")).numpy()
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
    assert type(forms(vm).open) is OpenForm and not forms(vm).forms, forms(vm).closed
