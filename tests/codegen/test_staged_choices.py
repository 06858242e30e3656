"""Choices and loops over what data decides: steps between native parts; the numbers of numpy and the interpreter."""

import numpy as np
import pytest
from test_staged_forms import COUNTS, RNG, WEIGHT, above, agree, form_of, machine, rows

from relaylab import relay
from relaylab.codegen.open import staged
from relaylab.codegen.open.cut import cut
from relaylab.codegen.vm import VirtualMachine
from relaylab.ir.dims import SizeVar
from relaylab.ir.scope_builder import while_loop

LAYER = relay.const(WEIGHT[:4])


def found(x, column=0):
    return relay.take(x, above(x, column), axis=0)


def positive(x):
    return relay.greater(relay.sum(x), relay.const(0.0))


@pytest.mark.parametrize("n", [40, SizeVar("n")], ids=["known", "open"])
def test_a_choice_over_rows_that_are_found(n):
    x = relay.var("x", shape=(n, 4))
    kept = relay.nn.dense(found(x), LAYER)
    body = relay.If(positive(kept), relay.exp(kept), relay.nn.softmax(kept))
    vm = machine([x], relay.Tuple([relay.negative(body), kept]))
    for count in COUNTS:
        for sign in (1, -1):
            given = rows(count)
            given[:, 1:] *= sign
            y = given[given[:, 0] > 0] @ WEIGHT[:4].T
            e = np.exp(y - y.max(1, keepdims=True, initial=-9))
            got = agree(vm, given, atol=1e-5)
            wanted = -np.exp(y) if y.sum() > 0 else -e / e.sum(1, keepdims=True)
            np.testing.assert_allclose(got[0], wanted, rtol=1e-3, atol=1e-4)
    assert form_of(vm).found == "found by argwhere, if"
    assert "= if(" in form_of(vm).listing()


def test_branches_that_find_different_numbers():
    """What comes behind the choice takes as many rows as the branch found."""
    x = relay.var("x", shape=(40, 4))
    body = relay.If(positive(x), found(x), found(relay.exp(found(x, 1)), 2))
    vm = machine([x], relay.nn.relu(relay.nn.dense(body, LAYER)))
    for count in COUNTS:
        for sign in (1, -1):
            given = rows(count)
            given[:, 2:] += 3 * sign
            agree(vm, given, atol=1e-5)
    assert form_of(vm).found == "found by if"


def test_choices_in_choices_and_what_both_branches_read():
    x, flag = relay.var("x", shape=(SizeVar("n"), 4)), relay.var("flag", shape=(), dtype="bool")
    kept = found(x)
    heavy = relay.nn.dense(kept, LAYER)
    inner = relay.If(positive(kept), relay.tanh(heavy), heavy)
    one = relay.Tuple([inner, relay.sum(heavy)])
    other = relay.Tuple([relay.negative(heavy), relay.const(3.0)])
    pair = relay.If(flag, one, other)
    vm = machine([x, flag], relay.Tuple([relay.TupleGetItem(pair, 0), relay.TupleGetItem(pair, 1), kept]))
    for count in COUNTS:
        for flag in (True, False):
            agree(vm, rows(count), np.array(flag), atol=1e-5)
    form_of(vm)


def test_choices_that_several_branches_contain_are_compiled_once(monkeypatch):
    """Each of twelve is in both branches of the next, below others: there are 376 ways to them."""
    count = []
    monkeypatch.setattr(staged, "cut", lambda mod: count.append(mod) or cut(mod))
    x, flags = relay.var("x", shape=(SizeVar("n"), 4)), relay.var("flags", shape=(12,), dtype="bool")
    last = found(x)
    now = relay.concatenate([last, last], axis=0)
    for k in range(12):
        flag = relay.squeeze(relay.take(flags, relay.const([k], "int64")), axis=[0])
        last, now = now, relay.If(flag, relay.add(now, relay.const(float(k))), found(last, k % 4))
    vm = machine([x, flags], now)
    for number in (20, 0, 1):
        for least in (0.2, 0.5, 0.9):
            agree(vm, rows(number), RNG.random(12) > least, atol=1e-5)
    assert form_of(vm).found == "found by argwhere, if" and len(count) <= 2 * 12 + 1


def test_a_choice_whose_value_is_an_input_or_a_constant():
    x = relay.var("x", shape=(40, 4))
    kept = found(x)
    picked = relay.If(positive(kept), x, relay.const(np.ones((40, 4), "f4")))
    vm = machine([x], relay.Tuple([picked, relay.exp(kept)]))
    for count in (3, 0, 40):
        given = rows(count)
        got = agree(vm, given)
        kept_copy = got[0].copy()
        agree(vm, rows(5))
        np.testing.assert_array_equal(got[0], kept_copy)
    form_of(vm)


def looped(x, turns, step):
    """`step` again and again, so many times."""
    i, value, loop = relay.var("i", shape=(), dtype="int32"), relay.var("value"), relay.var("loop")
    again = relay.Call(loop, [i + relay.const(1, "int32"), step(value)])
    func = relay.Function([i, value], relay.If(relay.less(i, turns), again, value))
    return relay.Let(loop, func, relay.Call(loop, [relay.const(0, "int32"), x]))


@pytest.mark.parametrize("typed", [False, True])
def test_a_loop_over_rows_that_are_found(typed):
    x, turns = relay.var("x", shape=(40, 4)), relay.var("turns", shape=(), dtype="int32")
    kept = found(x)
    annotation = relay.TensorType((relay.Any(), 4)) if typed else None
    i, value, loop = relay.var("i", shape=(), dtype="int32"), relay.var("value", annotation), relay.var("loop")
    again = relay.Call(loop, [i + relay.const(1, "int32"), relay.tanh(relay.nn.dense(value, LAYER))])
    func = relay.Function([i, value], relay.If(relay.less(i, turns), again, value))
    body = relay.Let(loop, func, relay.exp(relay.Call(loop, [relay.const(0, "int32"), kept])))
    vm = machine([x, turns], body)
    for count in COUNTS:
        for number in (0, 1, 5):
            given = rows(count)
            y = given[given[:, 0] > 0]
            for _ in range(number):
                y = np.tanh(y @ WEIGHT[:4].T)
            (got,) = agree(vm, given, np.array(number, "int32"), atol=1e-5)
            np.testing.assert_allclose(got, np.exp(y), rtol=1e-3, atol=1e-4)
    form = vm.exe.specializations.open
    assert form.found == "found by argwhere, loop" and form.run([given, np.array(5, "int32")]) is not None


def test_a_loop_in_a_branch_and_what_comes_behind():
    x = relay.var("x", shape=(40, 4))
    kept = found(x)
    turned = looped(kept, relay.const(4, "int32"), lambda v: relay.sin(v) + v)
    vm = machine([x], found(relay.If(positive(kept), turned, relay.negative(kept)), 1))
    for count in COUNTS:
        agree(vm, rows(count), atol=1e-5)
    form_of(vm)


def test_a_loop_that_grows_in_a_branch_beside_products_of_the_whole_program():
    """It is evaluated as one step: what is compiled around the branch is worth it, whatever the branch has."""
    x = relay.var("x", shape=(40, 4))
    kept = found(x)
    value, left = relay.var("value", relay.TensorType((relay.Any(), 4))), relay.var("left", shape=(), dtype="int32")
    loop = relay.var("loop")
    again = relay.Call(loop, [relay.concatenate([value, relay.sin(value)], 0), left - relay.const(1, "int32")])
    func = relay.Function([value, left], relay.If(relay.greater(left, relay.const(0, "int32")), again, value))
    grown = relay.Let(loop, func, relay.Call(loop, [kept, relay.const(3, "int32")]))
    body = relay.Tuple([relay.If(positive(kept), grown, kept), relay.nn.dense(kept, LAYER)])
    vm = machine([x], body)
    for count in COUNTS:
        for sign in (1, -1):
            given = rows(count)
            given[:, 1:] *= sign
            agree(vm, given, atol=1e-5)
    form_of(vm)


def test_a_function_of_the_module_that_calls_itself():
    shape = relay.TensorType((relay.Any(), 4))
    down, again = relay.GlobalVar("down"), None
    value, left = relay.var("value", shape), relay.var("left", shape=(), dtype="int32")
    again = relay.Call(down, [relay.cos(value), left - relay.const(1, "int32")])
    func = relay.Function([value, left], relay.If(relay.greater(left, relay.const(0, "int32")), again, value), shape)
    x = relay.var("x", shape=(40, 4))
    body = relay.exp(relay.Call(down, [found(x), relay.const(3, "int32")]))
    mod = relay.IRModule({down: func, relay.GlobalVar("main"): relay.Function([x], body)})
    vm = VirtualMachine(relay.vm.compile(mod, "llvm"))
    vm.interpreted = relay.create_executor("debug", mod=mod).evaluate()
    for count in COUNTS:
        given = rows(count)
        (got,) = agree(vm, given, atol=1e-5)
        np.testing.assert_allclose(got, np.exp(np.cos(np.cos(np.cos(given[given[:, 0] > 0])))), rtol=1e-4)


STEPS = (
    lambda a, _: found(a, 1),
    lambda a, _: relay.nn.dense(relay.tanh(a), LAYER),
    lambda a, b: relay.If(positive(b), relay.sin(a), relay.cos(a)),
    lambda a, b: relay.If(positive(a), a, found(b, 2)),
    lambda a, b: relay.concatenate([a, b], axis=0),
)


@pytest.mark.parametrize("seed", range(12))
def test_random_choices(seed):
    """Rows, layers and choices on each other, and which rows come next decided by them."""
    rng = np.random.default_rng(seed)
    x = relay.var("x", shape=(SizeVar("n") if seed % 2 else 40, 4))
    values = [x]
    for _ in range(int(rng.integers(3, 8))):
        a, b = (values[int(rng.integers(len(values)))] for _ in range(2))
        values.append(STEPS[int(rng.integers(len(STEPS)))](a, b))
    vm = machine([x], relay.Tuple([values[-1], *(v for v in values[1:-1] if rng.random() < 0.3)]))
    for count in (20, 0, 40):
        with np.errstate(all="ignore"):
            agree(vm, rows(count), atol=1e-4)
    forms = vm.exe.specializations
    assert forms is None or forms.open is not None or not vm.exe.specializations.open_inputs, forms.closed


def test_operators_of_a_model_with_if_in_onnx():
    reference = pytest.importorskip("onnx.reference")
    from onnx import TensorProto, helper, numpy_helper

    rows_of = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["kept", 4])
    node = helper.make_node
    branch = lambda op, out: helper.make_graph([node(op, ["picked"], [out])], op, [], [rows_of(out)])
    graph = helper.make_graph(
        [
            node("Greater", ["x", "zero"], ["mask"]),
            node("Compress", ["x", "rows"], ["picked"], axis=0),
            node("ReduceSum", ["picked"], ["total"], keepdims=0),
            node("Greater", ["total", "zero"], ["flag"]),
            node("If", ["flag"], ["y"], then_branch=branch("Exp", "t"), else_branch=branch("Neg", "e")),
        ],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4]),
            helper.make_tensor_value_info("rows", TensorProto.BOOL, ["n"]),
        ],
        [rows_of("y")],
        [numpy_helper.from_array(np.array(0, "f4"), "zero")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    mod, params = relay.frontend.from_onnx(model)
    vm = VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    judge = reference.ReferenceEvaluator(model)
    for n in (5, 1, 30):
        for bias in (1, -1):
            feed = {"x": RNG.standard_normal((n, 4)).astype("f4") + np.float32(bias), "rows": RNG.random(n) < 0.6}
            names = vm.exe.get_function_params("main")
            got = vm.invoke("main", *[feed[k] for k in names])
            np.testing.assert_allclose(got.numpy(), judge.run(None, feed)[0], rtol=1e-5)
    assert vm.exe.specializations.open is not None, vm.exe.specializations.closed


def test_a_loop_whose_turns_read_as_much_as_data_says():
    """Bags of rows, as ONNX has EmbeddingBag: every turn sums another number of rows, and what it gives grows."""
    x, ends = relay.var("x", shape=(SizeVar("n"), 4)), relay.var("ends", shape=(SizeVar("m"),), dtype="int64")
    many = relay.take(relay.shape_of(ends, "int64"), relay.const(0, "int64"), axis=0)
    turn, begin = (relay.var(name, shape=(), dtype="int64") for name in ("turn", "begin"))
    sums = relay.var("sums", shape=(relay.Any(), 4))
    one = relay.const(1, "int64")

    def once(turn, begin, sums):
        end = relay.take(ends, turn, axis=0)
        limits = (relay.expand_dims(v, 0) for v in (begin, end, one))
        bag = relay.sum(relay.strided_slice(x, *limits, axes=[0]), axis=0, keepdims=True)
        best = relay.If(positive(bag), relay.concatenate([sums, bag], 0), sums)
        return relay.add(turn, one), end, best

    loop = while_loop(lambda turn, *_: relay.less(turn, many), [turn, begin, sums], once)
    start = relay.const(0, "int64"), relay.const(0, "int64"), relay.const(np.zeros((0, 4), "float32"))
    vm = machine([x, ends], relay.TupleGetItem(relay.Call(loop, start), 2))
    for given in ([3, 3, 8], [1], [2, 9, 9, 12], []):
        data, places = RNG.standard_normal((12, 4)).astype("float32"), np.array(given, "int64")
        bags = [data[a:b].sum(0) for a, b in zip([0, *given], given)]
        wanted = np.array([b for b in bags if b.sum() > 0], "float32").reshape(-1, 4)
        np.testing.assert_allclose(agree(vm, data, places)[0], wanted, rtol=1e-5, atol=1e-5)
    assert form_of(vm).found == "found by loop"
