"""What goes into a network and what comes out: every kind of array, wrong ones by name, outputs that never change."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
import tiny

from relaylab.runtime import array, cpu, empty, graph_executor
from relaylab.runtime.graph_executor import GraphModule
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError

X = np.random.default_rng(0).uniform(-2, 2, tiny.SIZE).astype("float32")


class Subclass(np.ndarray):
    """An array that claims to be something else."""


class Interface:
    """Speaks the array interface and nothing else."""

    def __init__(self, values: np.ndarray):
        self.values, self.__array_interface__ = values, values.__array_interface__


class OnlyDLPack:
    """Speaks DLPack and nothing else."""

    def __init__(self, values: np.ndarray):
        self.values = values

    def __dlpack__(self, **options: object) -> object:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()


def read_only() -> np.ndarray:
    values = X.copy()
    values.flags.writeable = False
    return values


GOOD = {
    "list": X.tolist(), "reversed": X[::-1].copy()[::-1], "every second": np.repeat(X, 2)[::2],
    "read-only": read_only(),
    "misaligned": np.frombuffer(b"\0\0\0" + X.tobytes(), np.uint8)[3:].view("float32"), "big-endian": X.astype(">f4"),
    "column of a Fortran array": np.asfortranarray(np.stack([X, X]).T)[:, 0], "float64": X.astype("float64"),
    "subclass": X.view(Subclass), "masked nowhere": np.ma.array(X), "memoryview": memoryview(X),
    "array interface": Interface(X), "DLPack": OnlyDLPack(X), "NDArray": array(X), "0-d elements": list(X),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_every_kind_of_array_is_taken(name: str) -> None:
    module = GraphModule(tiny.factory()["default"](cpu(0)))
    module.set_input("x", GOOD[name])
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), tiny.expected(X), rtol=1e-6)


BAD = {
    "nothing": None, "text": "abc", "complex": X.astype(complex), "objects": X.astype(object), "a record": {"a": 1},
    "a scalar": 1.0, "a 0-d array": np.float32(1), "too short": X[:-1], "one axis too many": X[None],
    "ragged": [[1], [2, 3]], "texts": np.array(["a"]), "fields": np.zeros(tiny.SIZE, [("a", "f4")]),
    "long doubles": X.astype(np.longdouble) if np.dtype(np.longdouble).itemsize > 8 else X.astype(complex),
    "masked": np.ma.array(X, mask=X > 0),
    "a generator": (i for i in range(3)), "huge integers": [2**70] * tiny.SIZE, "times": np.zeros(tiny.SIZE, "M8[s]"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_array_of_that_shape_is_named(name: str) -> None:
    module = GraphModule(tiny.factory()["default"](cpu(0)))
    with pytest.raises((RelayTypeError, RelayValueError)) as caught:
        module.set_input("x", BAD[name])
    assert "the input `x`" in caught.value.message and caught.value.help and caught.value.code.startswith("runtime.")


@pytest.mark.parametrize("key", ["y", 3, -1, 1.5, None, b"x", True])
def test_an_input_that_does_not_exist(key: object) -> None:
    module = GraphModule(tiny.factory()["default"](cpu(0)))
    with pytest.raises(RelayValueError) as caught:
        module.set_input(key, X)
    assert caught.value.code == "runtime.input" and caught.value.help


def test_before_anything_was_set_inputs_and_outputs_are_zeros() -> None:
    module = GraphModule(tiny.factory()["default"](cpu(0)))
    assert not module.get_output(0).numpy().any()
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), tiny.expected(np.zeros_like(X)), rtol=1e-6)


VIEWS = {
    "the whole": lambda out: out.view(),
    "a slice": lambda out: out.view()[5:],
    "reshaped": lambda out: out.view().reshape(9, -1),
    "without a copy": lambda out: np.asarray(out, copy=False)[3:],
    "through DLPack": lambda out: np.from_dlpack(out)[1:],
    "a buffer": lambda out: np.frombuffer(memoryview(out.view()), "float32"),
    "transposed": lambda out: out.view().reshape(9, -1).T,
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_part_of_an_output_keeps_its_values(name: str) -> None:
    module = GraphModule(tiny.factory()["default"](cpu(0)))
    module.run(x=X)
    kept = VIEWS[name](module.get_output(0))
    before = kept.copy()
    module.run(x=X + 5)
    np.testing.assert_array_equal(kept, before)
    np.testing.assert_allclose(module.get_output(0).numpy(), tiny.expected(X + 5), rtol=1e-6)


def test_outputs_may_be_read_while_the_next_run_writes() -> None:
    module, wrong = GraphModule(tiny.factory()["default"](cpu(0))), []
    module.run(x=X)
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            values = module.get_output(0).view()[:]
            if not any(np.allclose(values, tiny.expected(x), rtol=1e-6) for x in (X, -X)):
                wrong.append(values.copy())

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(300):
        module.run(x=X if turn % 2 else -X)
    done.set()
    reader.join(30)
    assert not reader.is_alive() and not wrong


@pytest.mark.parametrize(("out", "words"), [
    (np.zeros(tiny.SIZE, "float32"), "NDArray"), (empty((3,)), "shape"), (empty((tiny.SIZE,), "int32"), "dtype"),
    ("x", "NDArray"),
])  # fmt: skip
def test_an_output_that_does_not_fit_where_it_is_copied_to(out: object, words: str) -> None:
    module = GraphModule(tiny.factory()["default"](cpu(0)))
    with pytest.raises(RelayError, match=words) as caught:
        module.get_output(0, out)
    assert caught.value.help


def test_compiled_code_is_not_pickled_and_says_so() -> None:
    lib = tiny.factory()
    module = GraphModule(lib["default"](cpu(0)))
    for value in (lib, module, module.module):
        for act in (pickle.dumps, copy.deepcopy):
            with pytest.raises(RelayTypeError, match="pickled") as caught:
                act(value)
            assert caught.value.code == "runtime.no-pickle" and "export_library" in caught.value.help
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array(X))).numpy(), X)


def test_a_module_of_which_only_the_output_is_left() -> None:
    out = run_and_drop()
    np.testing.assert_allclose(out.numpy(), tiny.expected(X), rtol=1e-6)


def run_and_drop() -> object:
    module = graph_executor.GraphModule(tiny.factory()["default"](cpu(0)))
    module.run(x=X)
    return module.get_output(0)
