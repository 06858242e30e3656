"""Networks of images whose batch is open: the network of one image, compiled once, runs for each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relaylab import relay
from relaylab.analysis.examples import open_batch
from relaylab.ir import Expr, IRModule, Var
from relaylab.ir.dims import SizeVar
from relaylab.transform import create

RNG = np.random.default_rng(0)
W1, W2, W3 = (RNG.normal(size=s).astype("float32") for s in ((4, 3, 3, 3), (4, 1, 3, 3), (5, 64)))


def images(x: Expr) -> Expr:
    """Convolutions, one of them by channels, a pool, rows of features, a product."""
    y = relay.nn.relu(relay.nn.conv2d(x, relay.const(W1), padding=(1, 1), channels=4, kernel_size=(3, 3)))
    z = relay.nn.conv2d(y, relay.const(W2), padding=(1, 1), groups=4, channels=4, kernel_size=(3, 3)) + y
    return relay.nn.softmax(
        relay.nn.dense(relay.nn.batch_flatten(relay.nn.max_pool2d(z, (2, 2), (2, 2))), relay.const(W3))
    )


def program(write: Callable[..., Expr], *rest: tuple[int, ...], dtype: str = "float32") -> IRModule:
    n = SizeVar("batch")
    params = [relay.var(f"x{k}", shape=(n, *shape), dtype=dtype) for k, shape in enumerate(rest)]
    return create("InferType")(IRModule.from_expr(relay.Function(params, write(*params))))


def arrays(count: int, *rest: tuple[int, ...], dtype: str = "float32") -> list[np.ndarray]:
    return [RNG.normal(size=(count, *shape)).astype(dtype) for shape in rest]


def leaves(out: object) -> list[np.ndarray]:
    return [x.numpy() for x in (out if isinstance(out, (tuple, list)) or hasattr(out, "tag") else [out])]


IMAGE = (3, 8, 8)


def test_batches_of_all_sizes_have_one_form() -> None:
    mod = program(images, IMAGE)
    executable = relay.vm.compile(mod, "llvm")
    machine, evaluate = relay.vm.VirtualMachine(executable), relay.create_executor("debug", mod=mod).evaluate()
    for count in (1, 5, 2, 0, 17):
        (x,) = arrays(count, IMAGE)
        np.testing.assert_allclose(machine.invoke("main", x).numpy(), evaluate(x).numpy(), rtol=1e-5, atol=1e-6)
    assert "one form for all sizes (batch)" in executable.specializations.summary()
    assert not executable.specializations.forms, "nothing is compiled for a size"


def test_results_are_the_callers_and_results_may_be_several() -> None:
    mod = program(lambda x, y: relay.Tuple([images(x), relay.nn.max_pool2d(x + y, (2, 2), (2, 2))]), IMAGE, IMAGE)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
    evaluate = relay.create_executor("debug", mod=mod).evaluate()
    first, second = arrays(3, IMAGE, IMAGE), arrays(3, IMAGE, IMAGE)
    kept = leaves(machine.invoke("main", *first))
    machine.invoke("main", *second)
    for got, want in zip(kept, leaves(evaluate(*first)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_data_types(dtype: str) -> None:
    weight = relay.const(W1.astype(dtype))
    mod = program(lambda x: relay.nn.conv2d(x, weight, channels=4, kernel_size=(3, 3)), IMAGE, dtype=dtype)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
    (x,) = arrays(3, IMAGE, dtype=dtype)
    got, want = machine.invoke("main", x).numpy(), relay.create_executor("debug", mod=mod).evaluate()(x).numpy()
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got.astype("float64"), want.astype("float64"), rtol=2e-2, atol=6e-2)


def test_sizes_that_disagree_are_told() -> None:
    machine = relay.vm.VirtualMachine(relay.vm.compile(program(lambda x, y: images(x + y), IMAGE, IMAGE), "llvm"))
    machine.invoke("main", *arrays(2, IMAGE, IMAGE))
    with pytest.raises(Exception, match="batch") as caught:
        machine.invoke("main", *arrays(2, IMAGE), *arrays(3, IMAGE))
    assert caught.value.code == "vm.sizes"


MIXED: dict[str, Callable[[Var], Expr]] = {
    "softmax over the batch": lambda x: relay.nn.softmax(images(x), axis=0),
    "the other end": lambda x: images(x) + relay.reverse(images(x), axis=0),
    "a part of it": lambda x: relay.strided_slice(images(x), [0, 0], [37, 5]),
    "a mean": lambda x: images(x) - relay.mean(images(x), axis=0, keepdims=True),
    "pairs": lambda x: relay.reshape(images(x), [-1]),
    "ways": lambda x: relay.transpose(images(x), [1, 0]),
    "numbers of examples": lambda x: relay.cumsum(relay.ones_like(images(x)), axis=0),
    "one for all": lambda x: relay.sum(images(x)),
}


@pytest.mark.parametrize("name", MIXED)
def test_examples_that_others_decide_are_none(name: str) -> None:
    mod = program(lambda x: MIXED[name](x), IMAGE)
    simple = create("InferType")(create("SimplifyInference")(mod))
    assert open_batch(create("InferType")(create("SimplifyInference")(program(images, IMAGE)))["main"])
    assert not open_batch(simple["main"])
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
    for count in (37, 3):
        (x,) = arrays(count, IMAGE)
        want = relay.create_executor("debug", mod=mod).evaluate()(x).numpy()
        np.testing.assert_allclose(machine.invoke("main", x).numpy(), want, rtol=1e-4, atol=1e-5)
