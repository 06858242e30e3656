"""`lib.run`: running a library by the names of its inputs, in this process and from a file."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tiny

from relaylab import relay
from relaylab.runtime import array, load_module, set_num_threads
from relaylab.runtime.executor import GraphExecutor
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.runtime.native import Code
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError

Library = GraphExecutorFactoryModule


@pytest.fixture
def lib() -> Library:
    return tiny.factory()


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(5).normal(size=tiny.SIZE).astype("float32")


@pytest.mark.parametrize(
    "give",
    [
        lambda lib, x: lib.run(x=x),
        lambda lib, x: lib.run({"x": x}),
        lambda lib, x: lib.run({}, x=x),
        lambda lib, x: lib.run(x=array(x)),
        lambda lib, x: lib.run(x=x.tolist()),
        lambda lib, x: lib.run(x=x.astype("float64")),
        lambda lib, x: lib.run(x=x, p0=tiny.weights()[0]),
    ],
)
def test_inputs_by_name_and_several_results(lib: Library, x: np.ndarray, give: Callable[..., tuple]) -> None:
    y, z = give(lib, x)
    assert type(y) is np.ndarray and (y.shape, y.dtype, z.shape) == ((tiny.SIZE,), np.float32, ())
    np.testing.assert_allclose(y, tiny.expected(x), rtol=1e-6)
    assert float(z) == pytest.approx(float(tiny.expected(x).sum()), rel=1e-4)


def test_one_result_is_an_array_and_parameters_need_not_be_given() -> None:
    data, weight = relay.var("data.1", shape=(2, 3)), relay.var("weight", shape=(4, 3))
    mod = relay.IRModule.from_expr(relay.Function([data, weight], relay.nn.dense(data, weight)))
    values = {"weight": np.arange(12, dtype="float32").reshape(4, 3)}
    x = np.ones((2, 3), "float32")
    bound = relay.build(mod, "llvm", params=values).run({"data.1": x})
    assert type(bound) is np.ndarray
    np.testing.assert_array_equal(bound, x @ values["weight"].T)
    np.testing.assert_array_equal(relay.build(mod, "llvm").run({"data.1": x}, **values), bound)


def test_a_library_from_a_file_runs_too(lib: Library, x: np.ndarray, tmp_path: Path) -> None:
    lib.export_library(tmp_path / "tiny.lab")
    np.testing.assert_array_equal(load_module(tmp_path / "tiny.lab").run(x=x)[0], lib.run(x=x)[0])


def test_results_belong_to_the_caller(lib: Library, x: np.ndarray) -> None:
    first, _ = lib.run(x=x)
    first_slice, before = first[3:], first.copy()
    lib.run(x=-x)
    np.testing.assert_array_equal(first, before)
    del first
    lib.run(x=-2 * x)
    np.testing.assert_array_equal(first_slice, before[3:])
    other = lib.run(x=x)[0]
    other[:] = 7
    np.testing.assert_array_equal(lib.run(x=x)[0], before)


@pytest.mark.parametrize(
    ("act", "error", "code", "word"),
    [
        (lambda lib, x: lib.run(xx=x), RelayValueError, "runtime.input", "did you mean `x`"),
        (lambda lib, x: lib.run({"fc1_weight": x, "x": x}), RelayValueError, "runtime.input", "inputs: x"),
        (lambda lib, x: lib.run({3: x}), RelayValueError, "runtime.input", "input 3"),
        (lambda lib, x: lib.run({0: x}), RelayValueError, "runtime.missing-input", "`x`"),
        (lambda lib, x: lib.run(), RelayValueError, "runtime.missing-input", "x: (576,) float32"),
        (lambda lib, x: lib.run({}), RelayValueError, "runtime.missing-input", "`x`"),
        (lambda lib, x: lib.run(x), RelayTypeError, "runtime.unnamed-input", "lib.run(x=array)"),
        (lambda lib, x: lib.run({"x": x}, x=x), RelayValueError, "runtime.input", "twice"),
        (lambda lib, x: lib.run(x=x[:3]), RelayValueError, "runtime.shape-mismatch", "`x` has shape (576,)"),
        (lambda lib, x: lib.run(x=x[None]), RelayValueError, "runtime.shape-mismatch", "reshape"),
        (lambda lib, x: lib.run(x=x.astype(complex)), RelayTypeError, "runtime.dtype", "complex"),
        (lambda lib, x: lib.run(x=None), RelayTypeError, "runtime.dtype", "NoneType"),
        (lambda lib, x: lib.run(x=x, p0=x), RelayValueError, "runtime.fixed-parameter", "p0"),
    ],
)
def test_bad_inputs_say_what_to_do(
    lib: Library, x: np.ndarray, act: Callable[..., object], error: type[RelayError], code: str, word: str
) -> None:
    with pytest.raises(error) as caught:
        act(lib, x)
    assert caught.value.code == code and caught.value.help and word in str(caught.value)
    np.testing.assert_allclose(lib.run(x=x)[0], tiny.expected(x), rtol=1e-6)


def test_floats_are_no_indices() -> None:
    data = relay.var("i", shape=(3,), dtype="int32")
    lib = relay.build(relay.IRModule.from_expr(relay.Function([data], data + data)), "llvm")
    with pytest.raises(RelayTypeError) as caught:
        lib.run(i=np.zeros(3, "float32"))
    assert caught.value.code == "runtime.dtype-mismatch" and 'astype("int32")' in str(caught.value)
    assert lib.run(i=[1, 2, 3]).dtype == np.int32


def test_a_library_has_one_executor_until_the_number_of_threads_changes(
    lib: Library, x: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    class Counted(GraphExecutor):
        def __init__(self, code: Code, threads: int | None = None):
            made.append(threads or 0)
            super().__init__(code, threads)

    monkeypatch.setattr("relaylab.runtime.module.GraphExecutor", Counted)
    try:
        for count in (2, 2, 1, 1, 2):
            set_num_threads(count)
            lib.run(x=x)
    finally:
        set_num_threads(None)
    assert made == [2, 1, 2]


def test_threads_that_share_a_library_get_their_own_results(lib: Library) -> None:
    failures: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).normal(size=tiny.SIZE).astype("float32")
        for _ in range(200):
            if not np.allclose(lib.run(x=x)[0], tiny.expected(x)):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)


def test_what_is_done_to_the_parameters_changes_no_result(lib: Library, x: np.ndarray) -> None:
    """They were kept as they were changed, so that the library told other values than its code has."""
    mine = lib.get_params()
    mine["p0"] = array(np.zeros(tiny.SIZE, "float32"))
    np.testing.assert_array_equal(lib.params["p0"].numpy(), tiny.weights()[0])
    np.testing.assert_allclose(lib.run(x=x)[0], tiny.expected(x), rtol=1e-6)
    with pytest.raises(RelayValueError, match="built into the code"):
        lib.run(x=x, **mine)
