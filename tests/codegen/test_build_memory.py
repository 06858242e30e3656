"""What a build keeps in memory: weights that passes computed go once they are packed, and come back when asked for."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relaylab import relay
from relaylab.frontend import from_onnx, to_onnx
from relaylab.ir import Constant, Expr, IRModule, TensorType, structural_equal
from relaylab.relay import testing
from relaylab.runtime import cpu, graph_executor, load_module
from relaylab.runtime.ndarray import array
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.support.errors import RelayError
from relaylab.transform.engine.recipes import Recipe

CHANNELS = 192


def network() -> tuple[IRModule, dict[str, np.ndarray]]:
    """A convolution whose weights take the scale of the normalisation after it; 1.3 MB of them."""
    x = relay.var("x", shape=(1, CHANNELS, 8, 8))
    y = relay.nn.conv2d(x, relay.var("w"), channels=CHANNELS, kernel_size=(3, 3), padding=(1, 1))
    gamma, beta, mean, var = (relay.var(n) for n in ("gamma", "beta", "mean", "var"))
    y = relay.nn.relu(relay.nn.batch_norm(y, gamma, beta, mean, var)[0])
    mod = relay.transform.InferType()(IRModule.from_expr(relay.Function(relay.analysis.free_vars(y), y)))
    rng = np.random.default_rng(0)
    params = {n: rng.uniform(0.5, 1.5, CHANNELS).astype("float32") for n in ("gamma", "beta", "mean", "var")}
    return mod, params | {"w": rng.standard_normal((CHANNELS, CHANNELS, 3, 3), "float32") / 40}


def built(mod: IRModule, params: dict[str, np.ndarray] | None = None) -> GraphExecutorFactoryModule:
    with relay.transform.PassContext(opt_level=3):
        return relay.build(mod, "llvm", params=params)


def test_scaled_weights_do_not_stay_beside_the_packed_ones() -> None:
    mod, params = network()
    mod = relay.transform.BindParams(params)(mod)  # the plain weights are the program's
    built(mod)  # what is imported and kept once
    gc.collect()
    tracemalloc.start()
    try:
        lib = built(mod)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < params["w"].nbytes / 2
    assert sum(p.nbytes for p in lib.executable.params.values()) > params["w"].nbytes


def test_parameters_that_were_let_go_are_what_was_packed(tmp_path: Path) -> None:
    mod, params = network()
    lib = built(mod, params)
    wanted = params["w"] * (params["gamma"] / np.sqrt(params["var"] + 1e-5)).reshape(-1, 1, 1, 1)
    (name,) = (n for n, p in lib.executable.params.items() if p.size == wanted.size)
    found = lib.get_params()[name].numpy()
    np.testing.assert_allclose(np.sort(found, axis=None), np.sort(wanted, axis=None), rtol=1e-5)
    lib.export_library(str(tmp_path / "net.so"))
    assert np.array_equal(load_module(str(tmp_path / "net.so")).get_params()[name].numpy(), found)
    module = graph_executor.GraphModule(lib["default"](cpu(0)))
    module.set_input(name, found)  # it is what was built in, to the bit
    with pytest.raises(RelayError, match="another value"):
        module.set_input(name, found + 1)


def test_scaled_weights_are_computed_by_the_threads_that_pack_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing before asks for their numbers, neither the passes nor the choice of kernels."""
    asked: list[str] = []
    shown = Recipe.__call__
    monkeypatch.setattr(Recipe, "__call__", lambda r: (asked.append(threading.current_thread().name), shown(r))[1])
    mod, params = testing.resnet.get_workload(num_layers=18, image_shape=(3, 32, 32), num_classes=10)
    lib = built(mod, params)
    assert len(asked) > 8 and all(name.startswith("relaylab-pack") for name in asked)
    x = np.random.default_rng(1).standard_normal((1, 3, 32, 32), "float32")
    wanted = relay.create_executor("debug", mod).evaluate()(x, **params).numpy()
    np.testing.assert_allclose(lib.run(data=x), wanted, rtol=1e-4, atol=1e-5)


def test_a_constant_that_waits_has_its_type_and_then_its_numbers() -> None:
    made: list[int] = []
    waits = Constant.computed(TensorType((2,), "float32"), lambda: (made.append(1), np.arange(2, dtype="float32"))[1])
    assert str(waits.checked_type) == "Tensor[(2), float32]" and not made
    assert waits.data.tolist() == [0, 1] and waits.data.tolist() == [0, 1] and made == [1]
    assert not waits.data.flags.writeable and not hasattr(waits, "date")
    assert structural_equal(waits, Constant(np.arange(2, dtype="float32")))


def test_an_array_that_was_computed_is_no_copy_and_nobody_writes_to_it() -> None:
    found = np.arange(2, dtype="float32")
    waits = Constant.computed(TensorType((2,), "float32"), lambda: found)
    assert np.shares_memory(waits.data, found) and not found.flags.writeable
    lent = np.arange(4, dtype="float32")
    waits = Constant.computed(TensorType((2,), "float32"), lambda: lent[:2])
    assert not np.shares_memory(waits.data, lent) and lent.flags.writeable


@pytest.mark.parametrize("deep, operator", [(600, lambda e: relay.negative(e)), (40, lambda e: relay.add(e, e))])
def test_parameters_come_back_from_any_number_of_steps(deep: int, operator: Callable[[Expr], Expr]) -> None:
    x, weight = relay.var("x", shape=(2, 256)), relay.var("w", shape=(128, 256))
    e: Expr = weight
    for _ in range(deep):
        e = relay.multiply(operator(e), relay.const(np.float32(-1 if deep == 600 else 0.5)))
    numbers = np.random.default_rng(0).standard_normal((128, 256), "float32")
    lib = built(IRModule.from_expr(relay.Function([x, weight], relay.nn.dense(x, e))), {"w": numbers})
    (found,) = lib.get_params().values()
    np.testing.assert_array_equal(found.numpy(), numbers)


@pytest.mark.parametrize("view", [lambda a: a.view(), lambda a: np.broadcast_to(a, a.shape), lambda a: a[:, ::-1]])
def test_weights_that_others_can_write_are_copied(view: Callable[[np.ndarray], np.ndarray]) -> None:
    x, weight = relay.var("x", shape=(2, 256)), relay.var("w", shape=(128, 256))
    numbers = np.random.default_rng(0).standard_normal((128, 256), "float32")
    seen = view(numbers)
    seen.flags.writeable = False
    lib = built(IRModule.from_expr(relay.Function([x, weight], relay.nn.dense(x, relay.exp(weight)))), {"w": seen})
    wanted = np.exp(seen)
    numbers[:] = 0
    (found,) = lib.get_params().values()
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


def test_lent_weights_are_not_copied() -> None:
    lent = array(np.ones((64, 64), "float32")).lend()
    assert np.shares_memory(Constant(lent).data, lent)


def test_the_numbers_are_those_of_onnxruntime() -> None:
    ort = pytest.importorskip("onnxruntime")
    mod, params = network()
    data = to_onnx(mod, params).SerializeToString()
    x = np.random.default_rng(1).standard_normal((1, CHANNELS, 8, 8), "float32")
    (wanted,) = ort.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    np.testing.assert_allclose(built(from_onnx(data)[0]).run(x=x), wanted, rtol=1e-4, atol=1e-4)
