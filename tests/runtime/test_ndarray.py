"""Arrays and devices: what goes in comes out, and bad input is named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relaylab import relay
from relaylab.runtime import NDArray, array, cpu, cuda, device, empty, from_dlpack
from relaylab.runtime.container import ADT
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.ndarray import DTYPES
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 5), (300, 301)])
def test_array_keeps_values_and_is_aligned(dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    made = array(values)
    assert (made.shape, made.dtype, made.address % 64) == (shape, dtype, 0)
    np.testing.assert_array_equal(made.numpy(), values)


@pytest.mark.parametrize(
    "source",
    [
        np.arange(24.0).reshape(4, 6).T,
        np.arange(10)[::-1],
        np.arange(9.0)[1:],
        np.arange(6, dtype=">f4"),
        [[1, 2], [3, 4]],
        5,
        np.float32(2),
        np.broadcast_to(np.int8(3), (2, 5)),
    ],
)
def test_any_layout_is_copied_densely(source: object) -> None:
    made = array(source)
    np.testing.assert_array_equal(made.numpy(), np.asarray(source))
    assert made.view().flags.c_contiguous


def test_numpy_is_a_copy() -> None:
    made = array(np.zeros(3))
    made.numpy()[0] = 1
    assert made.numpy()[0] == 0


def test_assignment_and_copies() -> None:
    made = empty((2, 3))
    made[:] = np.arange(6.0).reshape(2, 3)
    made[:] = 4
    other = empty((2, 3), "float64")
    assert made.copyto(other) is other and not made.same_as(other)
    np.testing.assert_array_equal(other.numpy(), np.full((2, 3), 4.0))
    assert isinstance(made.copyto(cpu(0)), NDArray)
    with pytest.warns(DeprecationWarning):
        made.asnumpy()


def test_dlpack_shares_memory() -> None:
    made = array(np.arange(4.0))
    shared = from_dlpack(made)
    shared[:] = 7
    assert made.numpy().tolist() == [7, 7, 7, 7]
    np.testing.assert_array_equal(np.from_dlpack(made), made.numpy())


def test_repr() -> None:
    assert repr(array([1, 2])).startswith("<tvm.nd.NDArray shape=(2,), cpu(0)>\narray(")


@pytest.mark.parametrize(
    ("make", "error", "word"),
    [
        (lambda: array("text"), RelayTypeError, "str"),
        (lambda: array([[1], [2, 3]]), RelayError, "cannot be made of this list"),
        (lambda: array(np.zeros(2, complex)), RelayTypeError, "complex128"),
        (lambda: array([1, None]), RelayTypeError, "object"),
        (lambda: empty((2,), "flaot32"), RelayTypeError, "did you mean `float32`"),
        (lambda: empty((-1,)), RelayValueError, "-1"),
        (lambda: empty((1 << 62, 8)), RelayError, "cannot allocate"),
        (lambda: empty((2, 3))[:1], TypeError, "subscriptable"),
        (lambda: empty((2, 3)).__setitem__(0, 1), RelayValueError, "x[:] = value"),
        (lambda: empty((2, 3)).copyfrom(np.zeros((3, 2))), RelayValueError, "reshape"),
        (lambda: empty((2,), "int32").copyfrom([1.5, 2]), RelayTypeError, 'astype("int32")'),
        (lambda: empty((2,), "uint8").copyfrom([1, 300]), RelayTypeError, "uint8"),
        (lambda: empty((2,), "int8").copyfrom([1, 300]), RelayTypeError, "int8"),
        (lambda: empty((2,), "int8").copyfrom(np.uint8([1, 200])), RelayTypeError, "uint8"),
        (lambda: from_dlpack(array(np.zeros(16)).view().view(complex)), RelayTypeError, "complex128"),
        (lambda: array([1], cuda(0)), RelayValueError, "cuda(0) does not exist"),
        (lambda: array([1], "cpu"), RelayTypeError, "relaylab.cpu(0)"),
        (lambda: device("cup"), RelayValueError, "did you mean `cpu`"),
        (lambda: device("cpu", -1), RelayValueError, "-1"),
        (lambda: from_dlpack(3), RelayTypeError, "DLPack"),
    ],
)
def test_bad_input(make: object, error: type[Exception], word: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert word in str(caught.value)


def test_integers_that_fit_are_taken() -> None:
    assert empty((2,), "uint8").copyfrom([1, 255]).numpy().tolist() == [1, 255]


def test_devices() -> None:
    assert str(device("llvm -mcpu=native", 0)) == "cpu(0)" and cpu(0) == device("cpu") and cpu(0).exist
    assert (cpu(0).device_type, cuda(1).device_type, cuda(1).device_id, cuda(0).exist) == (1, 2, 1, False)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.copyfrom(np.zeros(3, "f4")),
        lambda x: x.__setitem__(slice(None), 7.0),
        lambda x: x.view().fill(7.0),
        lambda x: np.from_dlpack(x).fill(7.0),
        lambda x: x.__array__(copy=False).fill(7.0),
    ],
)
def test_lent_elements_stay_as_they_were(write: Callable[[NDArray], object]) -> None:
    lender = array(np.arange(3, dtype="f4"))
    kept = lender.lend()
    assert np.shares_memory(kept, lender.values()) and not kept.flags.writeable
    write(lender)
    assert kept.tolist() == [0, 1, 2] and lender.numpy().tolist() != [0, 1, 2]


def test_memory_that_others_can_write_is_not_lent() -> None:
    shown, given = array(np.arange(3, dtype="f4")), array(np.arange(3, dtype="f4"))
    alias, outside = shown.view(), given.view()
    for lender, writable in ((shown, alias), (from_dlpack(given), outside), (NDArray(alias), alias)):
        kept = lender.lend()
        before = kept.tolist()
        writable += 1
        assert kept.tolist() == before and lender.numpy().tolist() == writable.tolist()


def test_a_program_keeps_the_parameters_that_it_was_built_with() -> None:
    x, w = relay.var("x", shape=(1, 4)), relay.var("w", shape=(3, 4))
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    weight, data = np.arange(12, dtype="f4").reshape(3, 4), np.ones((1, 4), "f4")
    given = array(weight)
    bound = relay.transform.BindParams({"w": given})(mod)
    built = relay.build(mod, "llvm", params={"w": given})
    given.copyfrom(np.zeros((3, 4), "f4"))
    for program in (built, relay.build(bound, "llvm")):
        module = GraphModule(program["default"](cpu(0)))
        module.run(x=data)
        np.testing.assert_allclose(module.get_output(0).numpy(), data @ weight.T)


def test_constructed_values_of_any_depth_are_text() -> None:
    class Cons:
        name_hint = "Cons"

    assert repr(ADT(0, [1, ADT(3, ["a", ADT(1, [2.5], Cons())]), ADT(0)])) == "(1, #3('a', Cons(2.5,)), ())"
    deep = ADT(0)
    for k in range(100_000):
        deep = ADT(1, (k, deep), Cons())
    assert repr(deep).startswith("Cons(99999, Cons(99998, ") and repr(deep).endswith("Cons(…")
    shared = ADT(0, [1])
    for _ in range(60):
        shared = ADT(0, (shared, shared))
    assert repr(shared).startswith("((((") and len(repr(shared)) < 10_000


def test_masked_elements_have_no_value():
    masked = np.ma.masked_array(np.ones(3, "float32"), mask=[1, 0, 0])
    with pytest.raises(RelayValueError, match=r"x.filled\(0\)"):
        array(masked)
    assert array(masked.filled(0)).numpy().tolist() == [0, 1, 1]
    assert array(np.ma.masked_array(np.ones(2), mask=[0, 0])).numpy().tolist() == [1, 1]
