"""Programs in which data decides sizes, compiled as parts: the same numbers as numpy and the interpreter."""

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.open import form as open_form
from relaylab.codegen.open.staged import StagedForm
from relaylab.codegen.vm import VirtualMachine
from relaylab.ir.dims import SizeVar
from relaylab.support.errors import RelayError
from relaylab.transform import PassContext, default_passes

RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((5, 4)).astype("float32")
COUNTS = (0, 1, 7, 12, 3, 40)


def machine(params, body, **config):
    mod = relay.IRModule.from_expr(relay.Function(params, body))
    with PassContext(opt_level=3, config={f"relay.codegen.{k}": v for k, v in config.items()}):
        vm = VirtualMachine(relay.vm.compile(mod, "llvm"))
    vm.interpreted = relay.create_executor("debug", mod=mod).evaluate()
    return vm


def form_of(vm):
    """The form in parts, and nothing else that is compiled."""
    found = vm.exe.specializations.open
    assert isinstance(found, StagedForm), vm.exe.specializations.closed
    assert "natives" not in vars(vm.exe)
    return found


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, (list, tuple)) else [value.numpy()]


def agree(vm, *args, atol=1e-6):
    """What the machine gives, held against the interpreter."""
    got, wanted = flat(vm.invoke("main", *args)), flat(vm.interpreted(*args))
    assert [x.dtype for x in got] == [x.dtype for x in wanted]
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=atol * np.abs(b).max(initial=1))
    return got


def rows(positive, n=40):
    """Rows of which so many begin with a number above 0."""
    x = RNG.standard_normal((n, 4)).astype("float32")
    x[:, 0] = np.where(RNG.permutation(n) < positive, 1, -1) * (np.abs(x[:, 0]) + 0.1)
    return x


def above(x, column=0):
    """The places of the rows whose element in a column is above 0."""
    condition = relay.greater(relay.take(x, relay.const(column), axis=1), relay.const(0.0))
    return relay.squeeze(relay.argwhere(condition), axis=[1])


@pytest.mark.parametrize("n", [40, SizeVar("n")], ids=["known", "open"])
def test_rows_that_are_found_go_through_a_layer(n):
    x = relay.var("x", shape=(n, 4))
    vm = machine([x], relay.nn.relu(relay.nn.dense(relay.take(x, above(x), axis=0), relay.const(WEIGHT))))
    for count in COUNTS:
        given = rows(count)
        (got,) = agree(vm, given)
        np.testing.assert_allclose(got, np.maximum(given[given[:, 0] > 0] @ WEIGHT.T, 0), rtol=1e-4, atol=1e-5)
    form = form_of(vm)
    assert form.found == "found by argwhere" and "found by argwhere" in vm.exe.stats
    text = form.listing()
    assert "found_0: Tensor[(found_0, 1), int32] = argwhere(value_" in text and " = OpenForm for found_0" in text
    assert not vm.exe.specializations.forms
    called = [name for title, lib in vm.exe.parts().parts for name in lib.kernels()]
    assert len(form.called) == len(called) and f"{len(called)} calls of" in vm.exe.stats


def test_passes_run_over_parts_only(monkeypatch):
    """That sizes have no names is seen before the passes that a form for all sizes needs."""
    ran = []
    monkeypatch.setattr(open_form, "default_passes", lambda: ran.append(1) or default_passes())
    x = relay.var("x", shape=(SizeVar("n"), 4))
    vm = machine([x], relay.nn.relu(relay.nn.dense(relay.take(x, above(x), axis=0), relay.const(WEIGHT))))
    agree(vm, rows(3))
    assert len(ran) == sum(" = OpenForm for " in line for line in form_of(vm).lines) > 0


def test_experts_add_to_rows_that_chose_them():
    x, out = relay.var("x", shape=(40, 4)), None
    weights = [RNG.standard_normal((4, 4)).astype("float32") for _ in range(3)]
    chosen = relay.argmax(relay.take(x, relay.const(np.arange(3)), axis=1), axis=1)
    out = relay.zeros((40, 4), "float32")
    for k, w in enumerate(weights):
        at = relay.argwhere(relay.equal(chosen, relay.const(k, "int32")))
        mine = relay.nn.dense(relay.take(x, relay.squeeze(at, axis=[1]), axis=0), relay.const(w))
        out = relay.scatter_nd(out, relay.transpose(at, [1, 0]), mine, "add")
    vm = machine([x], out)
    for count in COUNTS:
        given = rows(count)
        (got,) = agree(vm, given)
        expert = given[:, :3].argmax(1)
        np.testing.assert_allclose(got, np.stack([weights[e] @ r for e, r in zip(expert, given)]), rtol=1e-4, atol=1e-5)
    assert form_of(vm).found == "found by argwhere x3"
    assert [len(step.ins) for step in form_of(vm).steps][:1] == [1] and len(form_of(vm).steps) == 5


def test_what_is_found_among_what_was_found():
    x = relay.var("x", shape=(40, 4))
    first = relay.take(x, above(x), axis=0)
    second = relay.take(first, above(first, 1), axis=0)
    total = relay.sum(second, axis=[0])
    last = relay.argwhere(relay.greater(total, relay.const(0.0)))
    vm = machine([x], relay.Tuple([second, total, last, first]))
    for count in COUNTS:
        given = rows(count)
        found = agree(vm, given)
        kept = given[(given[:, 0] > 0) & (given[:, 1] > 0)]
        np.testing.assert_array_equal(found[0], kept)
        np.testing.assert_array_equal(found[2], np.argwhere(kept.sum(0) > 0))
    assert form_of(vm).found == "found by argwhere x3"


def test_slices_that_values_end_and_shapes_that_values_say():
    x, to = relay.var("x", shape=(SizeVar("n"), 4)), relay.var("to", shape=(2,), dtype="int64")
    count = relay.sum(relay.cast(relay.greater(relay.take(x, relay.const(0), axis=1), relay.const(0.0)), "int64"))
    end = relay.stack([count, relay.const(4, "int64")], axis=0)
    begin, strides = relay.const(np.zeros(2, "int64")), relay.const(np.ones(2, "int64"))
    head = relay.op.dyn.strided_slice(relay.exp(x), begin, end, strides)
    vm = machine([x, to], relay.Tuple([relay.negative(head), relay.nn.relu(relay.reshape(x, to))]))
    for count in COUNTS:
        given = rows(count)
        for shape in ((4, 40), (160, 1), (-1, 8)):
            found = agree(vm, given, np.array(shape, "int64"))
            np.testing.assert_allclose(found[0], -np.exp(given[:count]), rtol=1e-5)
            np.testing.assert_array_equal(found[1], np.maximum(given.reshape(shape), 0))
    assert "dyn.strided_slice" in form_of(vm).found and "dyn.reshape" in form_of(vm).found


def test_tuples_go_between_parts_and_results_are_arrays_of_their_own():
    x = relay.var("x", shape=(40, 4))
    halves = relay.split(relay.nn.relu(x), 2, axis=1)
    at = above(x)
    picked = relay.take(halves[0], at, axis=0)
    joined = relay.concatenate(halves.astuple(), axis=1)
    both = relay.concatenate([relay.take(joined, at, axis=0), relay.take(x, at, axis=0)], axis=1)
    fixed = relay.const(np.arange(3))
    body = relay.Tuple([relay.Tuple([picked, x]), at, both, halves[1], both, fixed, relay.Tuple([])])
    vm = machine([x], body)
    given = rows(5)
    kept = flat(vm.invoke("main", given))
    copies = [k.copy() for k in kept]
    agree(vm, rows(40))
    for a, b in zip(kept, copies):
        np.testing.assert_array_equal(a, b)
    outputs = flat(vm.invoke("main", given))
    assert not any(np.shares_memory(a, b) for k, a in enumerate(outputs) for b in [given, *outputs[:k]])
    agree(vm, given)
    form_of(vm)


def test_a_batch_of_found_images_is_computed_image_by_image():
    x = relay.var("x", shape=(8, 3, 10, 10))
    bright = relay.greater(relay.mean(x, axis=[1, 2, 3]), relay.const(0.0))
    images = relay.take(x, relay.squeeze(relay.argwhere(bright), axis=[1]), axis=0)
    weight = relay.const(RNG.standard_normal((4, 3, 3, 3)).astype("float32"))
    vm = machine([x], relay.nn.global_avg_pool2d(relay.nn.conv2d(images, weight, padding=(1, 1))))
    for count in (0, 1, 5, 8):
        given = RNG.standard_normal((8, 3, 10, 10)).astype("float32")
        given += (np.where(np.arange(8) < count, 1, -1) - given.mean((1, 2, 3)))[:, None, None, None]
        (got,) = agree(vm, given)
        assert got.shape == (count, 4, 1, 1)
    form_of(vm)


def test_two_counts_have_to_agree():
    """The form is for equal counts; others it refuses, and the machine says what is wrong."""
    x = relay.var("x", shape=(40, 4))
    vm = machine([x], relay.exp(relay.add(relay.take(x, above(x), axis=0), relay.take(x, above(x, 1), axis=0))))
    for count in COUNTS:
        given = rows(count)
        given[:, 1] = given[::-1, 0]
        (got,) = agree(vm, given)
        np.testing.assert_allclose(got, np.exp(given[given[:, 0] > 0] + given[given[:, 1] > 0]), rtol=1e-5)
    form_of(vm)
    given[0, 1] *= -1
    with pytest.raises(RelayError, match="add failed") as told:
        vm.invoke("main", given)
    assert "are equal: they are" in told.value.help
    given[0, 1] *= -1
    agree(vm, given)


def test_equal_conditions_are_found_once():
    x = relay.var("x", shape=(40, 4))
    vm = machine([x], relay.add(relay.take(x, above(x), axis=0), relay.take(relay.exp(x), above(x), axis=0)))
    for count in COUNTS:
        agree(vm, rows(count))
    assert form_of(vm).found == "found by argwhere"


def test_what_an_operator_refuses_is_told_as_the_machine_tells_it():
    x, to = relay.var("x", shape=(6,)), relay.var("to", shape=(1,), dtype="int64")
    vm = machine([x, to], relay.nn.relu(relay.exp(relay.op.dyn.reshape(x, to))))
    value = np.ones(6, "float32")
    assert vm.invoke("main", value, np.array([6])).shape == (6,)
    with pytest.raises(RelayError, match="reshape"):
        vm.invoke("main", value, np.array([5]))
    for wrong in (np.ones(7, "float32"), np.ones((6, 1), "float32"), np.ones(6, "float64")):
        with pytest.raises(RelayError, match="x"):
            vm.invoke("main", wrong, np.array([6]))


STEPS = (
    lambda a, _: relay.nn.dense(relay.tanh(a), relay.const(WEIGHT[:4])),
    lambda a, b: relay.concatenate([a, b], axis=0),
    lambda a, b: relay.subtract(a, relay.mean(b, axis=[0], keepdims=True)),
    lambda a, _: relay.nn.softmax(a, axis=-1),
    lambda a, b: relay.multiply(a, relay.cast(relay.take(relay.shape_of(b), relay.const(0)), "float32")),
)


def grown(seed):
    """A random program over rows, in which conditions choose rows of what conditions chose."""
    rng = np.random.default_rng(seed)
    x = relay.var("x", shape=(SizeVar("n") if rng.random() < 0.5 else 40, 4))
    values = [x]
    for _ in range(int(rng.integers(4, 12))):
        a, b = (values[int(rng.integers(len(values)))] for _ in range(2))
        kind = int(rng.integers(len(STEPS) + 3)) - 3
        values.append(relay.take(a, above(a, kind + 3), axis=0) if kind < 0 else STEPS[kind](a, b))
    return [x], relay.Tuple([values[-1], *(v for v in values[1:-1] if rng.random() < 0.3)])


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    params, body = grown(seed)
    vm = machine(params, body)
    for count in (20, 0, 40, 33):
        with np.errstate(all="ignore"):
            agree(vm, rows(count), atol=1e-5)
    assert vm.exe.specializations is None or vm.exe.specializations.open is not None


def test_inputs_whose_sizes_have_no_names_have_a_form_too():
    x = relay.var("x", shape=(relay.Any(), 4))
    vm = machine([x], relay.nn.softmax(relay.nn.dense(x, relay.const(WEIGHT))))
    for n in (3, 1, 0, 50):
        agree(vm, RNG.standard_normal((n, 4)).astype("float32"))
    assert form_of(vm).found == "" and not vm.exe.specializations.forms
    images = relay.var("x", shape=(1, 3, relay.Any(), relay.Any()))
    kernel = relay.const(RNG.standard_normal((5, 3, 3, 3)).astype("float32"))
    vm = machine([images], relay.nn.relu(relay.nn.conv2d(images, kernel)))
    for size in ((3, 3), (9, 40)):
        agree(vm, RNG.standard_normal((1, 3, *size)).astype("float32"), atol=1e-5)
    form_of(vm)


@pytest.mark.parametrize(("dims", "shape"), [((300, 300), (300, 300)), ((SizeVar("n"), 4), (50, 4))])
def test_large_and_open_conditions_are_searched_without_room_for_all(dims, shape):
    x = relay.var("x", shape=dims)
    places = relay.cast(relay.argwhere(relay.greater(x, relay.const(2.0))), "float32")
    vm = machine([x], relay.exp(places / relay.const(400.0)))
    agree(vm, RNG.standard_normal(shape).astype("float32"))
    assert all(len(step.ins) == 1 for step in form_of(vm).steps)  # the condition, and no number of places


@pytest.mark.parametrize("count", [9, SizeVar("count")], ids=["known", "open"])
def test_rows_without_a_value_are_filled_by_a_kernel(count):
    """Of a tensor of known rows; coordinates beyond them are what the operator's own semantics say of them."""
    at, v = relay.var("at", shape=(count, 2), dtype="int64"), relay.var("v", shape=(count,))
    filled = relay.sparse_fill_empty_rows(at, v, relay.const(np.array([6, 9], "int64")), relay.const(0.5))
    vm = machine([at, v], relay.Tuple([relay.exp(filled[1]), filled[0], filled[2]]))
    for high in (6, 3, 6):
        rows = np.stack([np.sort(RNG.integers(0, high, 9)), RNG.integers(0, 9, 9)], axis=1).astype("int64")
        _, places, empty = agree(vm, rows, RNG.standard_normal(9).astype("float32"))
        assert set(places[:, 0]) == {*range(6)} and set(np.flatnonzero(empty)) == {*range(6)} - {*rows[:, 0]}
    form = form_of(vm)
    assert form.found == "found by sparse_fill_empty_rows" and len(form.steps[1].ins) == 4  # what has room, and numbers
    with pytest.raises(RelayError, match="lies in no row"):
        vm.invoke("main", rows + 6, np.zeros(9, "float32"))


def test_a_table_that_is_cut_around_as_many_as_are_found():
    """Relative positions of what a length regulator gives: so many before the middle and behind it."""
    x = relay.var("x", shape=(SizeVar("n"), 4))
    found = relay.take(x, above(x), axis=0)
    many = relay.take(relay.shape_of(found, "int64"), relay.const([0], "int64"), axis=0)
    number = lambda v: relay.const([v], "int64")
    ends = relay.subtract(number(16), many), relay.add(number(15), many)
    table = relay.const(RNG.standard_normal((31, 4)).astype("float32"))
    near = relay.strided_slice(table, *ends, number(1), axes=[0])
    scores = relay.nn.dense(found, near)
    half = relay.divide(relay.take(relay.shape_of(scores, "int64"), number(1), axis=0), number(2))
    first = relay.strided_slice(scores, number(0), relay.add(half, number(1)), number(1), axes=[1])
    vm = machine([x], relay.add(relay.nn.dense(found, found), first))
    for positive in (1, 7, 15, 3):
        assert agree(vm, rows(positive))[0].shape == (positive, positive)
    form_of(vm)
    with pytest.raises(RelayError):
        vm.invoke("main", rows(20))


def test_sizes_that_only_a_shape_within_a_part_has():
    """What is found is given a shape of the sizes of two other values, which its part has to be told."""
    params = [relay.var(k, shape=(SizeVar(k), 4)) for k in "xyz"]
    first, second, third = (relay.take(v, above(v), axis=0) for v in params)
    count = lambda v: relay.take(relay.shape_of(v, "int64"), relay.const([0], "int64"), axis=0)
    fewer = relay.minimum(count(first), count(second))
    shaped = relay.reshape(third, relay.concatenate([fewer, relay.const([4], "int64")], 0))
    vm = machine(params, relay.sum(relay.exp(shaped), axis=0))
    for a, b in ((3, 7), (9, 2), (5, 5)):
        agree(vm, rows(a), rows(b), rows(min(a, b)))
    form_of(vm)
    with pytest.raises(RelayError):
        vm.invoke("main", rows(3), rows(4), rows(5))
