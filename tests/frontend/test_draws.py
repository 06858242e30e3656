"""Random numbers of an open shape, against the known answers of Threefry and the moments of the distributions."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.frontend.draws import drawn, threefry
from relaylab.ir import SizeVar

ANSWERS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]
"""Key, counter and words of threefry2x32 with 20 rounds, of the authors' Random123."""


@pytest.mark.parametrize(("key", "counter", "words"), ANSWERS)
def test_words_are_those_of_the_authors(key, counter, words):
    x, y = (relay.var(name, shape=(3,), dtype="uint32") for name in "xy")
    mod = relay.IRModule.from_expr(relay.Function([x, y], relay.Tuple(threefry(key, x, y))))
    given = [np.full(3, c, "uint32") for c in counter]
    for executor in ("debug", "graph"):
        got = relay.create_executor(executor, mod=mod).evaluate()(*given)
        assert [v.numpy().tolist() for v in got] == [[w] * 3 for w in words]


def test_numbers_of_an_open_shape_are_of_their_distribution():
    n = SizeVar("n")
    x = relay.var("x", shape=(n, 50))
    both = [drawn(7, x, (n, 50), normal) for normal in (False, True)]
    exe = relay.vm.compile(relay.IRModule.from_expr(relay.Function([x], relay.Tuple(both))), "llvm")
    machine = relay.vm.VirtualMachine(exe)
    even, normal = (v.numpy() for v in machine.invoke("main", np.zeros((400, 50), "float32")))
    assert exe.specializations.form() is not None
    assert even.shape == normal.shape == (400, 50) and 0 <= even.min() and even.max() < 1
    near = lambda got, want: np.testing.assert_allclose(got, want, atol=0.02)
    near([even.mean(), even.var(), np.corrcoef(even[:-1].ravel(), even[1:].ravel())[0, 1]], [0.5, 1 / 12, 0])
    near([normal.mean(), normal.std(), (normal < -1).mean(), (normal < 2).mean()], [0, 1, 0.1587, 0.9772])
    near(np.corrcoef(even.ravel(), normal.ravel() ** 2)[0, 1] > 0.5, True)  # of the same words
    fewer = machine.invoke("main", np.zeros((3, 50), "float32"))[0].numpy()
    np.testing.assert_array_equal(fewer, even[:3])


def test_the_shape_may_be_known_to_nobody():
    """Of rows that data chooses; on both ways the same numbers."""
    x = relay.var("x", shape=(6, 4))
    rows = relay.take(x, relay.reshape(relay.argwhere(relay.greater(relay.sum(x, axis=1), relay.const(0.0))), (-1,)), 0)
    mod = relay.IRModule.from_expr(relay.Function([x], drawn(7, rows, (relay.Any(), 4), False)))
    data = np.repeat(np.array([1, -1, 1, 1, -1, 1], "float32")[:, None], 4, 1)
    got = [relay.create_executor(e, mod=mod).evaluate()(data).numpy() for e in ("debug", "vm")]
    assert got[0].shape == (4, 4)
    np.testing.assert_array_equal(*got)


def test_a_model_draws_as_many_as_its_input_has():
    pytest.importorskip("onnx", reason="reads ONNX models")
    from onnx_tools import helper, imported, model, run

    nodes = [
        helper.make_node("RandomUniformLike", ["x"], ["u"], low=2.0, high=4.0, seed=3.0),
        helper.make_node("RandomNormalLike", ["x"], ["v"], mean=5.0, scale=0.5),
    ]
    x = np.zeros((500, 8), "float32")
    mod = imported(model(nodes, {"x": x}, ["u", "v"], shapes={"x": ("n", 8)}))
    even, normal = run(mod, {"x": x}, "vm")
    assert even.shape == normal.shape == (500, 8) and 2 <= even.min() and even.max() < 4
    np.testing.assert_allclose([even.mean(), normal.mean(), normal.std()], [3, 5, 0.5], atol=0.03)
