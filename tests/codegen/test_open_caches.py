"""Results that continue an input, in memory with room for more: the numbers of numpy, whoever keeps or changes what."""

import numpy as np
import pytest
from test_specializations import forms, machine

from relaylab import relay
from relaylab.codegen.open.results import lent_of
from relaylab.ir.dims import SizeVar
from relaylab.runtime.native import Instance
from relaylab.runtime.ndarray import NDArray

RNG = np.random.default_rng(0)


def draw(*shape):
    return RNG.standard_normal(shape).astype("float32")


def two_caches(new=1):
    """Two caches along the middle axis, and a product over what they hold then."""
    n = SizeVar("n")
    keys, values = (relay.var(name, shape=(2, n, 4)) for name in ("keys", "values"))
    x, y = (relay.var(name, shape=(2, new, 4)) for name in ("x", "y"))
    keys_after = relay.concatenate((keys, relay.nn.relu(x)), 1)
    values_after = relay.concatenate((values, y), 1)
    scores = relay.nn.batch_matmul(x, keys_after)
    mixed = relay.nn.batch_matmul(relay.nn.softmax(scores), values_after, transpose_b=False)
    return machine(relay.Function([x, y, keys, values], relay.Tuple([mixed, keys_after, values_after])), open=True)


def in_numpy(x, y, keys, values):
    keys, values = np.concatenate([keys, np.maximum(x, 0)], 1), np.concatenate([values, y], 1)
    scores = np.exp(x @ keys.transpose(0, 2, 1))
    return scores / scores.sum(-1, keepdims=True) @ values, keys, values


def step(vm, keys, values, new=1):
    x, y = draw(2, new, 4), draw(2, new, 4)
    plain = [v.numpy() if isinstance(v, NDArray) else v for v in (keys, values)]
    out = list(vm.invoke("main", x, y, keys, values))
    for got, wanted in zip(out, in_numpy(x, y, *plain)):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-4, atol=1e-5)
    return out[1], out[2]


def block(array):
    """The memory that a result lies in."""
    return lent_of(array.read()).block


@pytest.mark.parametrize("new", [1, 3])
def test_caches_stay_where_they_are(new):
    vm, blocks = two_caches(new), []
    keys = values = np.zeros((2, 0, 4), "float32")
    for _ in range(70):
        keys, values = step(vm, keys, values, new)
        blocks.append(block(keys))
    assert len({id(b) for b in blocks}) < 10
    assert forms(vm).open is not None, forms(vm).closed


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 63, 64, 65])
def test_every_length_from_arrays_of_numpy(length):
    vm = two_caches()
    keys, values = step(vm, draw(2, length, 4), draw(2, length, 4))
    assert keys.shape == (2, length + 1, 4)
    step(vm, keys, values)
    step(vm, draw(2, length, 4), draw(2, length, 4))


def test_what_came_before_keeps_its_numbers():
    vm, kept = two_caches(), []
    keys, values = draw(2, 3, 4), draw(2, 3, 4)
    for _ in range(20):
        keys, values = step(vm, keys, values)
        kept.append((keys, keys.numpy()))
    for array, numbers in kept:
        np.testing.assert_array_equal(array.numpy(), numbers)


def test_two_ways_from_one_cache():
    vm = two_caches()
    first = step(vm, draw(2, 3, 4), draw(2, 3, 4))
    one, other = step(vm, *first), step(vm, *first)
    assert block(one[0]) is block(first[0]) and block(other[0]) is not block(first[0])
    numbers = one[0].numpy()
    step(vm, *other), step(vm, *first)
    np.testing.assert_array_equal(one[0].numpy(), numbers)


def test_one_cache_in_both_places_and_caches_that_change_places():
    vm = two_caches()
    keys, values = step(vm, draw(2, 3, 4), draw(2, 3, 4))
    step(vm, keys, keys)
    keys, values = step(vm, keys, values)
    step(vm, values, keys)
    step(vm, keys, draw(2, 5, 4))
    longer = step(vm, keys, values)
    step(vm, longer[0], draw(2, 6, 4))


@pytest.mark.parametrize("change", ["view", "copyfrom", "dlpack"])
def test_who_writes_to_a_cache_writes_to_no_other(change):
    vm = two_caches()
    first = step(vm, draw(2, 3, 4), draw(2, 3, 4))
    second = step(vm, *first)
    numbers = second[0].numpy()
    match change:
        case "view":
            first[0].view()[...] = 7
        case "copyfrom":
            first[0].copyfrom(np.full((2, 4, 4), 7, "float32"))
        case "dlpack":
            np.from_dlpack(first[0])
            first[0][:] = 7
    np.testing.assert_array_equal(second[0].numpy(), numbers)
    np.testing.assert_array_equal(first[0].numpy(), np.full((2, 4, 4), 7, "float32"))
    step(vm, *first)
    step(vm, *second)


def test_memory_that_nobody_looks_at_serves_again():
    vm, blocks = two_caches(), []
    for _ in range(8):
        keys, values = step(vm, draw(2, 20, 4), draw(2, 20, 4))
        keys, values = step(vm, keys, values)
        blocks.append(block(keys))
    assert len({id(b) for b in blocks}) <= 3


def test_a_cache_that_is_given_back_too_and_one_in_another_shape():
    n = SizeVar("n")
    cache, x = relay.var("cache", shape=(1, 3, n, 4)), relay.var("x", shape=(1, 3, 1, 4))
    after = relay.concatenate((cache, x), 2)
    flat = relay.reshape(after, (-1,))
    vm = machine(relay.Function([cache, x], relay.Tuple([after, cache, after, flat])), open=True)
    old = draw(1, 3, 5, 4)
    for _ in range(12):
        given, new = old.numpy() if isinstance(old, NDArray) else old, draw(1, 3, 1, 4)
        out = list(vm.invoke("main", old, new))
        wanted = np.concatenate([given, new], 2)
        for got, value in zip(out, (wanted, given, wanted, wanted.reshape(-1))):
            np.testing.assert_array_equal(got.numpy(), value)
        old = out[0]
    assert forms(vm).open is not None, forms(vm).closed


def test_places_that_stay_are_not_written_again(monkeypatch):
    vm, moved = two_caches(), []
    keys, values = draw(2, 20, 4), draw(2, 20, 4)
    for _ in range(4):
        keys, values = step(vm, keys, values)
    point = Instance.point
    monkeypatch.setattr(Instance, "point", lambda self, *at: moved.append(at) or point(self, *at))
    for _ in range(4):
        keys, values = step(vm, keys, values)
    inputs_and_results = 4 + 3
    assert len({base for base, _ in moved}) <= inputs_and_results - 4  # two caches, before and after


def test_memory_is_free_when_all_results_are_gone():
    vm, blocks = two_caches(), set()
    step(vm, draw(2, 20, 4), draw(2, 20, 4))
    vm.invoke("main", draw(2, 1, 4), draw(2, 1, 4), draw(2, 3, 4), draw(2, 3, 4))
    form = forms(vm).open
    for _ in range(4):
        caches = [draw(2, 20, 4), draw(2, 20, 4)]
        for _ in range(3):
            caches = [x.read() for x in form.run([draw(2, 1, 4), draw(2, 1, 4), *caches])[1:]]
        blocks |= {id(lent_of(x).block) for x in caches}
        del caches
    assert len(blocks) == 2


def test_a_step_from_the_last_caches_after_one_from_older_ones():
    vm = two_caches()
    keys, values = draw(2, 3, 4), draw(2, 3, 4)
    older = step(vm, keys, values)
    for _ in range(3):
        keys, values = step(vm, *older)
        step(vm, keys, values)
        step(vm, keys, values)
        step(vm, keys, values.numpy())
        older = step(vm, *older)


def test_parts_of_a_cache_are_read_where_they_begin():
    batch, before, new = map(SizeVar, ("b", "n", "k"))
    old, x = relay.var("old", shape=(batch, before, 4)), relay.var("x", shape=(batch, new, 4))
    vm = machine(relay.Function([old, x], relay.Tuple([relay.concatenate((old, x), 1), relay.exp(old)])), open=True)
    whole = draw(4, 5, 4)
    for _ in range(3):
        whole = vm.invoke("main", whole, draw(4, 2, 4))[0]
    numbers = whole.numpy()
    for k in (slice(1, 3), slice(3, 4), slice(0, 2), slice(0, 4, 2), slice(0, 4)):
        part, more = whole.values()[k], draw(*numbers[k].shape[:1], 2, 4)
        joined, raised = vm.invoke("main", part, more)
        np.testing.assert_array_equal(joined.numpy(), np.concatenate([numbers[k], more], 1))
        np.testing.assert_allclose(raised.numpy(), np.exp(numbers[k]), rtol=1e-5)
