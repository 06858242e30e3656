"""One form of an open program for all sizes: compiled once, the numbers of numpy, onnxruntime and the interpreter."""

import threading

import numpy as np
import pytest
from test_specializations import WEIGHT, attention, attention_in_numpy, forms, given, machine

from relaylab import relay
from relaylab.codegen import native_function, specializations
from relaylab.codegen.open import form as open_form
from relaylab.ir.dims import SizeVar
from relaylab.runtime.memory import OutOfMemory
from relaylab.runtime.native import Instance
from relaylab.support.errors import RelayError
from relaylab.transform import PassContext
from relaylab.zoo.attention import gpt2

RNG = np.random.default_rng(0)
LENGTHS = (5, 1, 0, 7, 8, 9, 63, 64, 65, 300, 2)


@pytest.fixture
def builds(monkeypatch):
    """How often something is compiled."""
    counted = []
    for place, name in [(open_form, "compiled_plan"), (specializations, "build"), (native_function, "compile_main")]:
        plain = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *a, plain=plain, **k: counted.append(1) or plain(*a, **k))
    return counted


def test_new_lengths_compile_nothing(builds):
    vm = machine(attention(SizeVar("n")), open=True)
    assert "the first call makes a form" in vm.exe.stats and "0 calls" not in vm.exe.stats
    for n in LENGTHS:
        x, past = given(n)
        got = vm.invoke("main", x, past).numpy()
        np.testing.assert_allclose(got, attention_in_numpy(x, past), rtol=1e-4, atol=1e-5)
    assert len(builds) == 1 and not forms(vm).forms
    steps = forms(vm).open.instance.plan.steps
    assert f"one form for all sizes (n): {len(steps)} calls of {len({s.name for s in steps})} native" in vm.exe.stats


def test_what_the_forms_leave_to_the_machine_is_compiled_then_as_the_program_was(builds, monkeypatch):
    """A row of known width is a kernel: the machine's, if there is no form."""
    n, seen = SizeVar("n"), []
    x, y = relay.var("x", shape=(4, 8)), relay.var("y", shape=(n,))
    main = relay.Function([x, y], relay.Tuple([relay.nn.dense(x, relay.const(WEIGHT.T)), relay.argwhere(y)]))
    plain = native_function.compile_main
    noted = lambda *a: seen.append(PassContext.current().get_config("relay.codegen.winograd", True)) or plain(*a)
    monkeypatch.setattr(native_function, "compile_main", noted)
    vm = machine(main, winograd=False)
    assert not builds and not seen
    rows, picked = vm.invoke("main", np.eye(4, 8, dtype="float32"), np.array([0, 1, 1], "float32"))
    np.testing.assert_allclose(rows.numpy(), WEIGHT[:4], rtol=1e-6)
    assert picked.numpy().tolist() == [[1], [2]] and seen == [False]


def test_a_length_that_stays_gets_a_form_of_its_own(builds):
    vm = machine(attention(SizeVar("n")), open=True)
    x, past = given(4)
    vm.invoke("main", x, past)
    forms(vm).took(((2, 4, 6), (2, 4, 8)), 1e6)
    np.testing.assert_allclose(vm.invoke("main", x, past).numpy(), attention_in_numpy(x, past), rtol=1e-4, atol=1e-5)
    assert len(builds) == 2 and len(forms(vm).forms) == 1


def test_a_cache_that_grows(builds):
    """GPT-2 token by token: each step's results are the next one's inputs."""
    sizes = {"layers": 2, "hidden": 24, "heads": 3, "vocabulary": 50}
    past = SizeVar("past")
    mod, params = gpt2.get_workload(length=1, cache=past, **sizes)
    vm = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    whole = relay.create_executor("graph", mod=gpt2.get_workload(length=12, **sizes)[0]).evaluate()
    tokens = RNG.integers(0, 50, (1, 12)).astype("int32")
    wanted = whole(data=tokens, **params).numpy()
    cache = [np.zeros((1, 3, 0, 8), "float32")] * 4
    kept = []
    for k in range(12):
        out = list(vm.invoke("main", tokens[:, k : k + 1], *cache))
        kept.append(out[0])
        cache = out[1:]
        assert cache[0].shape == (1, 3, k + 1, 8)
    for k, logits in enumerate(kept):  # also those of long ago
        np.testing.assert_allclose(logits.numpy()[0, 0], wanted[0, k], rtol=1e-3, atol=1e-4)
    assert len(builds) == 1


def test_sizes_that_disagree_are_named():
    n = SizeVar("n")
    vm = machine(attention(n), open=True)
    vm.invoke("main", *given(4))
    with pytest.raises(RelayError, match="the size `n` is 4 in axis 1 of the input `x` and 3 in axis 1"):
        vm.invoke("main", given(4)[0], given(3)[1])
    with pytest.raises(RelayError):
        vm.invoke("main", given(4)[0], given(4)[1].astype("int32"))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_arguments_is_refused_after_a_call_too(count):
    n = SizeVar("n")
    x, y = (relay.var(name, shape=(n, 2)) for name in "xy")
    vm, ones = machine(relay.Function([x, y], relay.exp(x - y)), open=True), np.ones((3, 2), "float32")
    for _ in range(2):
        with pytest.raises(RelayError):
            vm.run(*[ones] * count)
        np.testing.assert_array_equal(vm.run(ones, ones).numpy(), ones)


def test_tuples_results_given_twice_and_inputs_given_back():
    n = SizeVar("n")
    pair = relay.var("pair", relay.TupleType([relay.TensorType((n, 2)), relay.TensorType((n, 3))]))
    a, c = relay.TupleGetItem(pair, 0), relay.TupleGetItem(pair, 1)
    both = relay.concatenate((a, c), 1)
    vm = machine(
        relay.Function([pair], relay.Tuple([both, both, a, relay.reshape(relay.nn.relu(c), (-1,))])), open=True
    )
    for k in (4, 0, 1, 70):
        p, q = (RNG.standard_normal((k, w)).astype("float32") for w in (2, 3))
        wanted = [np.concatenate([p, q], 1)] * 2 + [p, np.maximum(q, 0).reshape(-1)]
        for got, value in zip(vm.invoke("main", (p, q)), wanted):
            np.testing.assert_array_equal(got.numpy(), value)
    assert forms(vm).open is not None


def test_threads_take_turns():
    vm, failed = machine(attention(SizeVar("n")), open=True), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for k in range(12):
            x, past = (rng.standard_normal((2, 1 + 9 * k, w)).astype("float32") for w in (6, 8))
            got = vm.interpreter.main((x, past), {}).numpy()
            if not np.allclose(got, attention_in_numpy(x, past), rtol=1e-3, atol=1e-4):
                failed.append((seed, k))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not failed


def test_ranges_and_masks_of_open_length():
    n = SizeVar("n")
    x = relay.var("x", shape=(n, 3))
    count = relay.take(relay.shape_of(x, "int64"), relay.const(0, "int64"), axis=0)
    places = relay.arange(relay.const(0, "int64"), count, relay.const(1, "int64"), "int64")
    body = relay.cast(relay.reshape(places, (n, 1)), "float32") * x
    vm = machine(relay.Function([x], body), open=True)
    for k in (3, 0, 1, 40):
        value = RNG.standard_normal((k, 3)).astype("float32")
        np.testing.assert_allclose(vm.invoke("main", value).numpy(), value * np.arange(k)[:, None], rtol=1e-6)
    assert forms(vm).open is not None, forms(vm).closed


@pytest.mark.parametrize("factor", [2.0, 0.5, 1.5, 0.25, 0.3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_as_many_as_a_size_times_a_factor(factor, dtype):
    """As exporters write images that are resized; a factor that floats do not have exactly is left to the run."""
    x = relay.var("x", shape=(SizeVar("n"), 3))
    count = relay.cast(relay.take(relay.shape_of(x, "int64"), relay.const(0, "int64"), axis=0), dtype)
    end = relay.cast(relay.floor(count * relay.const(factor, dtype)), "int64")
    places = relay.arange(relay.const(0, "int64"), end, relay.const(1, "int64"), "int64")
    at = relay.cast(relay.floor(relay.cast(places, "float32") * relay.const(1 / factor, "float32")), "int64")
    vm = machine(relay.Function([x], relay.exp(relay.take(x, at, axis=0))), open=True)
    for k in (8, 1, 7, 0, 33):
        value = RNG.standard_normal((k, 3)).astype("float32")
        rows = np.floor(np.arange(int(np.floor(k * factor))).astype("f4") * np.float32(1 / factor)).astype(int)
        wanted = np.exp(value[np.minimum(rows, k - 1)]) if k else value
        np.testing.assert_allclose(vm.invoke("main", value).numpy(), wanted, rtol=1e-5)
    assert forms(vm).open is not None and (factor == 0.3 or type(forms(vm).open) is open_form.OpenForm)


def test_a_size_without_memory_leaves_the_form_fit_for_others(monkeypatch):
    """What was planned before must not be taken for what the next size needs."""
    x = relay.var("x", shape=(SizeVar("n"), 4))
    vm = machine(relay.Function([x], relay.sum(relay.nn.softmax(relay.nn.dense(x, x)), axis=1)), open=True)
    ones = lambda n: vm.invoke("main", np.ones((n, 4), "float32")).numpy()
    np.testing.assert_allclose(ones(3), np.ones(3), rtol=1e-5)
    most = 4 << 20

    def bounded(code, threads):
        if code.executable.plan.arena_bytes > most:
            raise OutOfMemory("there is no memory", code="runtime.out-of-memory")
        return Instance(code, threads)

    monkeypatch.setattr(open_form, "Instance", bounded)
    np.testing.assert_allclose(ones(400), np.ones(400), rtol=1e-5)  # planned for no more than it needs
    with pytest.raises(OutOfMemory):
        ones(900)
    monkeypatch.setattr(open_form, "Instance", Instance)
    for n in (900, 1000, 3):
        np.testing.assert_allclose(ones(n), np.ones(n), rtol=1e-5)


def test_a_first_size_without_memory_leaves_a_form_for_others(monkeypatch):
    x = relay.var("x", shape=(SizeVar("n"), 4))
    vm = machine(relay.Function([x], relay.exp(x)), open=True)

    def none_left(code, threads):
        raise OutOfMemory("there is no memory", code="runtime.out-of-memory")

    with monkeypatch.context() as patch:
        patch.setattr(open_form, "Instance", none_left)
        vm.invoke("main", np.zeros((3, 4), "float32"))
    np.testing.assert_array_equal(vm.invoke("main", np.zeros((5, 4), "float32")).numpy(), np.ones((5, 4)))
    assert forms(vm).open is not None, forms(vm).closed
