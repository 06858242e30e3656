"""Programs of the virtual machine without control flow are instructions; held against numpy and onnxruntime."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.vm import NativeMachine, VirtualMachine
from relaylab.ir.dims import SizeVar
from relaylab.runtime.ndarray import array
from relaylab.support import progress
from relaylab.support.errors import RelayError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 7)).astype("float32")


def machine(build, *shapes, dtype="float32"):
    params = [relay.var(f"x{k}", shape=s, dtype=dtype) for k, s in enumerate(shapes)]
    mod = relay.IRModule.from_expr(relay.Function(params, build(*params)))
    return VirtualMachine(relay.vm.compile(mod, "llvm"))


def positive(x):
    return relay.argwhere(relay.greater(x, relay.const(0.0)))


@pytest.fixture
def no_evaluator(monkeypatch):
    """Fails where the evaluator walks the program."""

    def refuse(self, *args):
        raise AssertionError("the evaluator was asked")

    monkeypatch.setattr(NativeMachine, "call", refuse)


def test_the_evaluator_is_not_asked(no_evaluator):
    vm = machine(
        lambda x: relay.Tuple([positive(x), relay.cast(relay.transpose(positive(x), [1, 0]), "int64")]), (5, 7)
    )
    for given in (X, array(X), -X, np.asfortranarray(X), X.astype(">f4").astype("f4")):
        rows, columns = vm.run(given)
        wanted = np.argwhere((given.numpy() if hasattr(given, "numpy") else given) > 0)
        np.testing.assert_array_equal(rows.numpy(), wanted)
        np.testing.assert_array_equal(columns.numpy(), wanted.T)
        assert columns.dtype == "int64" and rows.dtype == "int32"


RESHAPED = {
    (-1,): np.ravel, (1, -1, 2): lambda rows: rows[None], (-1, 1): lambda rows: np.ravel(rows)[:, None],
    (0, -1): lambda rows: rows, (-2,): lambda rows: rows,
}  # fmt: skip


@pytest.mark.parametrize("shape", RESHAPED)
def test_reshapes_of_so_many_rows_as_the_data_say(shape):
    vm = machine(lambda x: relay.reshape(positive(x), shape), (4, 6))
    for count in (0, 1, 2, 5, 24):
        x = np.where(np.arange(24) < count, 1, -1).reshape(4, 6).astype("float32")
        np.testing.assert_array_equal(vm.run(x).numpy(), RESHAPED[shape](np.argwhere(x > 0)))


def test_rows_of_another_number_than_a_reshape_says():
    vm = machine(lambda x: relay.reshape(positive(x), (2, -1, 2)), (4, 6))
    assert vm.run(np.where(np.arange(24) < 4, 1, -1).reshape(4, 6).astype("float32")).shape == (2, 2, 2)
    with pytest.raises(RelayError):
        vm.run(np.where(np.arange(24) < 3, 1, -1).reshape(4, 6).astype("float32"))


def test_a_call_by_names_is_one_by_places(no_evaluator):
    vm = machine(lambda x, y: relay.argwhere(relay.greater(x, y)), (5, 7), (5, 7))
    wanted = np.argwhere(X > 0.5)
    y = np.full_like(X, 0.5)
    np.testing.assert_array_equal(vm.run(x1=y, x0=X).numpy(), wanted)
    np.testing.assert_array_equal(vm.run(X, x1=y).numpy(), wanted)
    vm.set_input("main", X, y)
    np.testing.assert_array_equal(vm.run().numpy(), wanted)


@pytest.mark.parametrize("size", (5, 3000))
def test_results_keep_their_values(size):
    """Whether a kernel's results are lent or have memory of their own, whoever looks at them, however often."""

    def two(x):
        y = relay.add(x, relay.const(1.0))
        return relay.Tuple([y, y, relay.transpose(y, [1, 0]), positive(y), x])

    vm = machine(two, (size, 2))
    x = RNG.standard_normal((size, 2)).astype("float32")
    first = vm.run(x)
    again = vm.run(x * 2)
    for found, given in ((first, x), (again, x * 2)):
        for k, wanted in enumerate((given + 1, given + 1, (given + 1).T, np.argwhere(given + 1 > 0), given)):
            np.testing.assert_array_equal(found[k].numpy(), wanted)
    first[0].copyfrom(np.zeros((size, 2), "float32"))
    np.testing.assert_array_equal(first[1].numpy(), x + 1)
    np.testing.assert_array_equal(vm.run(x)[0].numpy(), x + 1)


@pytest.mark.parametrize("size", (8, 9000))
def test_calls_from_several_threads(size):
    vm = machine(lambda x: relay.Tuple([relay.add(x, x), positive(relay.add(x, x))]), (size, 2))
    given = [RNG.standard_normal((size, 2)).astype("float32") for _ in range(4)]

    def ask(x):
        return x, [vm.run(x) for _ in range(20)]

    with ThreadPoolExecutor(4) as pool:
        for x, found in pool.map(ask, given):
            for double, places in found:
                np.testing.assert_array_equal(double.numpy(), x + x)
                np.testing.assert_array_equal(places.numpy(), np.argwhere(x + x > 0))


def test_a_constant_is_seen_when_its_numbers_are_there():
    node = relay.const(np.ones(1 << 23, "float32"))
    exe = machine(positive, (5, 7)).exe
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(exe.constant, node)
        while node not in exe.values:
            pass
        assert exe.constant(node)[-1] == 1
        assert made.result() is exe.constant(node)


def test_a_constant_and_an_argument_are_not_the_result_itself():
    const = np.arange(6, dtype="float32")
    vm = machine(lambda x: relay.Tuple([relay.const(const), x, positive(x)]), (5, 7))
    x = X.copy()
    a, b, _ = vm.run(x)
    a.copyfrom(np.zeros(6, "float32"))
    x[:] = 0
    np.testing.assert_array_equal(vm.run(x)[0].numpy(), const)
    np.testing.assert_array_equal(b.numpy(), X)


def test_what_fails_is_said_with_its_place():
    vm = machine(lambda x: relay.reshape(positive(x), (2, 3)), (5, 7))
    with pytest.raises(RelayError, match="reshape failed on") as found:
        vm.run(X)
    assert found.value.code == "interp.failed" and found.value.place


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((X[:4],), r"`x0` is Tensor\[\(4, 7\), float32\], the program asks for"),
        ((X.astype("float64"),), r"float64\], the program asks for"),
        ((), "no value is given for x0"),
        ((X, X), "takes 1 arguments, 2 are given"),
        ((None,), "`x0` cannot be None"),
    ],
)
def test_wrong_arguments_are_refused(given, words):
    vm = machine(positive, (5, 7))
    for _ in range(2):
        with pytest.raises(RelayError, match=words):
            vm.run(*given)
        vm.run(X)
    with pytest.raises(RelayError, match="no parameter `y`"):
        vm.run(y=X)


def test_sizes_that_disagree_are_named():
    n = SizeVar("n")
    vm = machine(lambda x, y: relay.argwhere(relay.greater(x, y)), (n,), (n,))
    a = np.array([1, -1, 2], "float32")
    for _ in range(2):
        with pytest.raises(RelayError, match="`n` is 3 in axis 0 of the input `x0` and 2 in axis 0") as found:
            vm.run(a, a[:2])
        assert found.value.code == "vm.sizes"
    np.testing.assert_array_equal(vm.run(a, np.zeros(3, "float32")).numpy(), [[0], [2]])
    np.testing.assert_array_equal(vm.run(a[:2], np.zeros(2, "float32")).numpy(), [[0]])


def test_who_waits_hears_how_far_it_is(monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    vm, said = machine(positive, (5, 7)), []
    with progress.heard(said.append):
        vm.run(X)
    assert any("step 1 of" in text for text in said)


@pytest.mark.parametrize("ndim", range(4))
@pytest.mark.parametrize("dtype", ("bool", "int8", "float32", "float64"))
def test_argwhere_is_numpys(ndim, dtype):
    x = (RNG.integers(-1, 2, (4, 3, 5)[:ndim]) * 300).astype(dtype)
    for given in (x, x.T, np.where(x > 0, np.nan, x) if x.dtype.kind == "f" else x):
        given = np.asarray(given, dtype)
        found = relay.argwhere.definition().reference(given)
        np.testing.assert_array_equal(found, np.argwhere(given))
        assert found.dtype == "int32"


def onnx_program(nodes, x, constants=()):
    onnx = pytest.importorskip("onnx")
    h = onnx.helper
    ins = [h.make_tensor_value_info("x", h.np_dtype_to_tensor_dtype(x.dtype), x.shape)]
    outs = [onnx.ValueInfoProto(name=name) for name in nodes[-1][2]]
    made = [h.make_node(kind, i, o, **attributes) for kind, i, o, attributes in nodes]
    held = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants]
    graph = h.make_graph(made, "g", ins, outs, held)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


WHERE = [
    ("Greater", ["x", "limit"], ["m"], {}),
    ("NonZero", ["m"], ["i"], {}),
    ("Transpose", ["i"], ["j"], {"perm": [1, 0]}),
    ("GatherND", ["x", "j"], ["g"], {}),
    ("Mul", ["g", "g"], ["y"], {}),
]
PROGRAMS = {
    "NonZero": ([("NonZero", ["x"], ["y"], {})], ()),
    "Unique": ([("Unique", ["x"], ["y", "i", "v", "c"], {})], ()),
    "Unique in order": ([("Unique", ["x"], ["y", "i", "v", "c"], {"sorted": 0})], ()),
    "where": (WHERE, [("limit", np.float32(0.5))]),
    "Compress": (
        [("Greater", ["x", "limit"], ["m"], {}), ("Compress", ["x", "m"], ["y"], {"axis": 0})],
        [("limit", np.float32(0.5))],
    ),
    "TopK": ([("TopK", ["x", "k"], ["v", "i"], {})], [("k", np.array([3], "int64"))]),
}


def test_coordinates_may_be_negative_as_they_are():
    mod, _ = relay.frontend.from_onnx(onnx_program(*PROGRAMS["where"][:1], X[0], PROGRAMS["where"][1]))
    assert "gather_nd" in mod.astext() and "= where(" not in mod.astext()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("size", (4, 900))
def test_as_onnxruntime_does(no_evaluator, name, size):
    ort = pytest.importorskip("onnxruntime")
    nodes, constants = PROGRAMS[name]
    x = np.round(RNG.standard_normal(size) * 4).astype("float32") / 4
    model = onnx_program(nodes, x, constants)
    mod, params = relay.frontend.from_onnx(model)
    vm = VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    wanted = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    for _ in range(2):
        found = vm.run(x)
        for a, b in zip([found] if len(wanted) == 1 else found, wanted, strict=True):
            np.testing.assert_array_equal(a.numpy(), b)
            assert a.dtype == b.dtype.name
