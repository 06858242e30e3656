"""Open programs, compiled whole for the shapes they are called with: the same numbers as the interpreter and numpy."""

import threading

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.vm import VirtualMachine, VMExecutable
from relaylab.ir.dims import SizeVar
from relaylab.support.errors import RelayError
from relaylab.transform import PassContext

RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((8, 6)).astype("float32")


def machine(main, open=False, **config):
    """A machine without a form for all sizes: test_open_forms has those that have one."""
    config |= {"open": open}
    with PassContext(opt_level=3, config={f"relay.codegen.{k}": v for k, v in config.items()}):
        return VirtualMachine(relay.vm.compile(relay.IRModule.from_expr(main), "llvm"))


def forms(vm):
    return vm.exe.specializations


def attention(n):
    """softmax(q k') v over sequences of length n, q being a product."""
    x, past = relay.var("x", shape=(2, n, 6)), relay.var("past", shape=(2, n, 8))
    q = relay.reshape(relay.nn.dense(relay.reshape(x, (-1, 6)), relay.const(WEIGHT)), (2, -1, 8))
    scores = relay.nn.softmax(relay.nn.batch_matmul(q, past))
    return relay.Function([x, past], relay.nn.batch_matmul(scores, relay.transpose(past, (0, 2, 1))))


def attention_in_numpy(x, past):
    scores = np.einsum("bik,ok,bjo->bij", x, WEIGHT, past)
    e = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    return (e / e.sum(-1, keepdims=True)) @ past


def given(n):
    return [RNG.standard_normal((2, n, k)).astype("float32") for k in (6, 8)]


@pytest.mark.parametrize("size", [SizeVar("n"), relay.Any()], ids=["named", "unnamed"])
def test_each_length_is_compiled_once(size):
    vm = machine(attention(size))
    debug = relay.create_executor("debug", mod=relay.IRModule.from_expr(attention(size))).evaluate()
    for n in (5, 1, 0, 5):
        x, past = given(n)
        got = vm.invoke("main", x, past).numpy()
        assert got.shape == (2, n, 8)
        np.testing.assert_allclose(got, attention_in_numpy(x, past), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got, debug(x, past).numpy(), rtol=1e-4, atol=1e-5)
    assert len(forms(vm).forms) == 3 and not forms(vm).refused
    assert "3 of at most 8 specializations" in vm.exe.stats and "x: (2, 5, 6)" in vm.exe.stats


def test_results_are_kept_by_later_runs():
    vm = machine(attention(SizeVar("n")))
    first, second = given(4), given(4)
    kept = vm.invoke("main", *first)
    vm.invoke("main", *second)
    np.testing.assert_allclose(kept.numpy(), attention_in_numpy(*first), rtol=1e-4, atol=1e-5)


def test_inputs_that_disagree_are_named():
    vm = machine(attention(SizeVar("length")))
    with pytest.raises(RelayError) as caught:
        vm.invoke("main", given(4)[0], given(3)[1])
    assert caught.value.code == "vm.sizes"
    for word in ("`length`", "4 in axis 1 of the input `x`", "3 in axis 1 of the input `past`"):
        assert word in caught.value.message
    a, b = relay.var("a", shape=(relay.Any(),)), relay.var("b", shape=(relay.Any(),))
    with pytest.raises(RelayError, match="add failed"):  # no name says so: the operator does
        machine(relay.Function([a, b], a + b)).invoke("main", np.zeros(2, "f4"), np.zeros(3, "f4"))


def test_the_cache_is_bounded_and_a_full_one_rents_before_it_buys():
    x = relay.var("x", shape=(SizeVar("n"), 4))
    vm = machine(relay.Function([x], relay.nn.relu(relay.sum(x, axis=[0]))), specializations=2)
    call = lambda n: np.testing.assert_allclose(vm.invoke("main", np.ones((n, 4), "f4")).numpy(), np.full(4, n))
    known = lambda: [key[0][0] for key in forms(vm).forms]
    call(1), call(2), call(1)
    assert known() == [2, 1]
    call(3)
    assert known() == [2, 1]  # in the virtual machine
    forms(vm).took(((3, 4),), 1e6)
    call(3)
    assert known() == [1, 3]  # 2 was used longest ago
    assert not forms(vm).spent


def test_none_where_the_option_says_so_and_where_nothing_is_open():
    assert forms(machine(attention(SizeVar("n")), specializations=0)) is None
    assert forms(machine(attention(7))) is None


def test_values_that_decide_shapes_are_put_in():
    x, to = relay.var("x", shape=(SizeVar("n"), 4)), relay.var("to", shape=(2,), dtype="int64")
    flag, y = relay.var("flag", "bool"), relay.reshape(x, to)
    vm = machine(relay.Function([x, to, flag], relay.If(flag, relay.exp(y), relay.negative(y))))
    values = RNG.standard_normal((3, 4)).astype("float32")
    for shape, flag in [((2, 6), True), ((6, 2), True), ((6, 2), True), ((2, -1), False), ((2, -1), False)]:
        wanted = (np.exp(values) if flag else -values).reshape(shape)
        got = vm.invoke("main", values, np.array(shape, "int64"), np.array(flag)).numpy()
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
    assert [f.uses for f in forms(vm).forms.values()] == [1, 1, 1]  # what came once only is not compiled


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-6), ("bfloat16", 1e-2)])
def test_conditions_on_data_decide_nothing(dtype, rtol):
    x = relay.var("x", shape=(SizeVar("n"),), dtype=dtype)
    positive = relay.greater(relay.sum(x), relay.const(0.0, dtype))
    vm = machine(relay.Function([x], relay.If(positive, relay.exp(x), relay.negative(x))))
    for values in ([1.0, 2.0], [-1.0, -2.0]):
        got = vm.invoke("main", np.array(values, dtype)).numpy().astype("float32")
        np.testing.assert_allclose(got, np.exp(values) if values[0] > 0 else -np.array(values), rtol=rtol)
    assert not forms(vm).deciding and len(forms(vm).forms) == 1


def test_what_depends_on_data_stays_in_the_virtual_machine():
    x = relay.var("x", shape=(SizeVar("n"),))
    vm = machine(relay.Function([x], relay.argwhere(relay.greater(x, relay.const(0.0)))))
    assert vm.invoke("main", np.array([1, -1, 2], "f4")).numpy().tolist() == [[0], [2]]
    assert vm.invoke("main", np.array([-1], "f4")).numpy().shape == (0, 1)
    assert "argwhere" in vm.exe.stats and "virtual machine" in vm.exe.stats and not forms(vm).forms


def test_tuples_go_in_and_out():
    n = SizeVar("n")
    pair = relay.var("pair", relay.TupleType([relay.TensorType((n, 2)), relay.TensorType((n, 3))]))
    a, b = relay.TupleGetItem(pair, 0), relay.TupleGetItem(pair, 1)
    vm = machine(relay.Function([pair], relay.Tuple([relay.concatenate((a, b), 1), relay.Tuple([relay.nn.relu(a)])])))
    p, q = np.ones((4, 2), "f4"), -np.ones((4, 3), "f4")
    joined, (rest,) = vm.invoke("main", (p, q))
    np.testing.assert_array_equal(joined.numpy(), np.concatenate([p, q], 1))
    np.testing.assert_array_equal(rest.numpy(), p)
    assert len(forms(vm).forms) == 1


@pytest.mark.parametrize("open", [True, False], ids=["all sizes", "these"])
def test_the_fields_of_a_tuple_are_no_arguments(open):
    n = SizeVar("n")
    pair = relay.var("pair", relay.TupleType([relay.TensorType((n, 2)), relay.TensorType((n, 2))]))
    vm = machine(relay.Function([pair], relay.TupleGetItem(pair, 0) + relay.TupleGetItem(pair, 1)), open)
    a, b = np.ones((4, 2), "f4"), np.ones((4, 2), "f4")
    for _ in range(2):
        np.testing.assert_array_equal(vm.invoke("main", (a, b)).numpy(), a + b)
    with pytest.raises(RelayError, match="takes 1"):
        vm.invoke("main", a, b)


def test_saved_programs_are_open_again():
    with PassContext(opt_level=3, config={"relay.codegen.specializations": 3, "relay.codegen.open": False}):
        exe = relay.vm.compile(relay.IRModule.from_expr(attention(SizeVar("n"))), "llvm")
    vm = VirtualMachine(VMExecutable.load_exec(*exe.save()))
    x, past = given(6)
    np.testing.assert_allclose(vm.invoke("main", x, past).numpy(), attention_in_numpy(x, past), rtol=1e-4, atol=1e-5)
    assert "1 of at most 3" in vm.exe.stats and forms(vm).context.opt_level == 3
    damaged = bytes(exe.save()[0]).replace(b'"opt_level"', b'"opt"')
    with pytest.raises(RelayError, match="no saved program"):
        VMExecutable.load_exec(damaged, exe.lib)


def test_threads_share_the_forms():
    vm, failed = machine(attention(SizeVar("n"))), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for k in range(6):
            n = (2, 3)[(seed + k) % 2]
            x, past = (rng.standard_normal((2, n, w)).astype("float32") for w in (6, 8))
            if not np.allclose(vm.exe_run(x, past), attention_in_numpy(x, past), rtol=1e-4, atol=1e-5):
                failed.append((seed, k))

    vm.exe_run = lambda *args: vm.interpreter.main(args, {}).numpy()
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not failed and len(forms(vm).forms) == 2
