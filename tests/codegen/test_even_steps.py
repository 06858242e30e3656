"""Indices that grow evenly are computed by the loops, and frames of a padded signal are read from memory."""

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.network.network import NetworkTensor
from relaylab.codegen.operations.even_steps import even_steps

FRAMES = np.arange(30)[:, None] * 64 + np.arange(256)


def constant(data: np.ndarray) -> NetworkTensor:
    return NetworkTensor(data.shape, data.dtype.name, "constant", data=data)


@pytest.mark.parametrize(
    ("data", "steps"),
    [
        (FRAMES, (0, 64, 1)),
        (np.arange(20)[::-1].copy(), (19, -1)),
        (np.full((4, 5), 7, "int32"), (7, 0, 0)),
        (np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1), (0, 1, 12, 4)),
        (np.arange(9)[None], (0, 0, 1)),
        (np.arange(20) ** 2, None),
        (np.append(np.arange(20), 0), None),
        (np.where(np.arange(20) == 7, 0, np.arange(20)), None),
        (np.arange(20.0), None),
        (np.arange(3), None),
        (np.arange(20, dtype="uint8"), None),
    ],
)
def test_what_grows_evenly(data, steps) -> None:
    assert even_steps(constant(data)) == steps


def built(indices: np.ndarray, length: int = 2200):
    x = relay.var("x", shape=(length,))
    mod = relay.IRModule.from_expr(relay.take(x, relay.const(indices), axis=0))
    return relay.build(mod, "llvm")


def test_no_index_is_loaded_and_none_is_limited() -> None:
    lib, x = built(FRAMES), np.arange(2200, dtype="float32")
    np.testing.assert_array_equal(lib.run(x=x), x[FRAMES])
    loops = lib.inspect("loop", lib.kernels()[0])
    assert "in1" not in loops and "max(" not in loops and "min(" not in loops
    assert len(lib.executable.constants) < FRAMES.nbytes


def test_other_steps_are_another_kernel() -> None:
    """Two equal functions in one program whose constants differ."""
    x = relay.var("x", shape=(2200,))
    forms = [FRAMES, FRAMES[:, ::-1].copy(), FRAMES + 3, np.random.default_rng(0).integers(0, 2200, FRAMES.shape)]
    rows = [relay.exp(relay.annotation.stop_fusion(relay.take(x, relay.const(i), axis=0))) for i in forms]
    lib = relay.build(relay.IRModule.from_expr(relay.Tuple(rows)), "llvm")
    values = np.linspace(-1, 1, 2200, dtype="float32")
    for found, i in zip(lib.run(x=values), forms):
        np.testing.assert_allclose(found, np.exp(values[i]), rtol=1e-6)


def test_steps_that_leave_the_tensor_are_limited() -> None:
    indices = np.arange(-50, 50)
    x = np.random.default_rng(1).normal(size=40).astype("float32")
    lib = built(indices, 40)
    np.testing.assert_array_equal(lib.run(x=x), x[np.clip(indices, 0, 39)])


@pytest.mark.parametrize("mode", ["reflect", "edge", "constant"])
def test_frames_of_a_padded_signal_are_two_steps(mode) -> None:
    """Each frame asked of each element whether it is there, or where it lies instead."""
    x = relay.var("x", shape=(2000,))
    padded = relay.nn.pad(x, pad_width=((128, 128),), pad_mode=mode)
    frames = relay.transpose(relay.take(padded, relay.const(FRAMES), axis=0))
    window = np.hanning(256).astype("float32")[:, None]
    lib = relay.build(relay.IRModule.from_expr(relay.multiply(frames, relay.const(window))), "llvm")
    values = np.random.default_rng(2).normal(size=2000).astype("float32")
    want = np.pad(values, 128, mode=mode)[FRAMES].T * window
    np.testing.assert_array_equal(lib.run(x=values), want)
    names = [step.kernel for step in lib.executable.plan.steps]
    assert len(names) == 2 and "nn_pad" in names[0] and "nn_pad" not in names[1]
