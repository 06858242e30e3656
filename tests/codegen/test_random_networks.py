"""Random tensor programs compiled, for each kernel family and level: the interpreter computes the same."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiled import TARGETS, disagreement
from support.network_steps import STEPS
from support.networks import Network, random_network

from relaylab import relay
from relaylab.analysis import infer_module
from relaylab.ir import IRModule

pytestmark = pytest.mark.slow

KINDS = ("graph", "graph", "graph", "graph", "vm", "graph", "graph", "aot")


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_compiled_and_interpreted_networks_agree(seed: int) -> None:
    target, level, kind = list(TARGETS)[seed % 3], (3, 3, 0, 1, 2)[seed % 5], KINDS[seed % len(KINDS)]
    net = random_network(seed, kinds=STEPS if kind == "vm" else None)
    assert not disagreement(net, TARGETS[target], level, kind)


@pytest.mark.parametrize("seed", range(1000, 1030))
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_heavy_operators_after_each_other_agree(seed: int) -> None:
    net = random_network(seed, 9, ("heavy", "heavy", "pool", "norm", "move"))
    assert not disagreement(net, TARGETS[list(TARGETS)[seed % 3]], (3, 3, 0)[seed % 5 // 2])


def network(func: object, *types: tuple[tuple[int, ...], str], tolerance: float = 1e-3) -> Network:
    """A program of seeded inputs."""
    rng = np.random.default_rng(3)
    inputs = {f"x{k}": np.asarray(rng.uniform(-3, 3, shape)).astype(dtype) for k, (shape, dtype) in enumerate(types)}
    params = [relay.var(name, shape=x.shape, dtype=x.dtype.name) for name, x in inputs.items()]
    mod = infer_module(IRModule.from_expr(relay.Function(params, func(*params))))  # type: ignore[operator]
    return Network(mod, inputs, {}, tolerance)


def conv_then(after: object) -> object:
    """A convolution in NCHW, which is compiled in NHWC, and what reads its result."""
    weight = relay.const(np.random.default_rng(0).uniform(-1, 1, (6, 3, 3, 3)).astype("float32"))
    return lambda x: after(relay.nn.conv2d(x, weight, padding=(1, 1), channels=6, kernel_size=(3, 3)))  # type: ignore[operator]


IMAGE = ((1, 3, 8, 7), "float32")
MINIMAL = {
    "a kernel named like the C function it calls": network(relay.sin, ((33,), "float64")),
    "one lane of a narrowed vector": network(
        lambda x: relay.nn.log_softmax(x, axis=1), ((2, 8, 49), "float16"), tolerance=1e-2
    ),
    "a product of rank 4 and a broadcast": network(
        lambda x, w, y: relay.add(relay.nn.dense(x, w), y),
        ((5, 8, 7, 3), "float32"),
        ((33, 3), "float32"),
        ((1, 8, 7, 33), "float32"),
    ),
    "a product of rank 4 that a convolution reads": network(
        lambda x, w: conv_then(relay.nn.relu)(relay.nn.dense(x, w)), ((1, 3, 6, 5), "float32"), ((9, 5), "float32")
    ),
    "a mean of more elements than the type counts": network(relay.mean, ((3, 100), "int8")),
    "a concatenation of what a split gives": network(
        lambda x: relay.Tuple(
            [
                conv_then(relay.nn.relu)(relay.concatenate([relay.tanh(x), relay.split(x, [1, 2], axis=2)[1]], 2)),
                relay.split(x, [1, 2], axis=2)[0],
            ]
        ),
        IMAGE,
    ),
    "a remainder of data": network(
        lambda x, y: relay.add(relay.floor_mod(x, y), y), ((4, 5), "int64"), ((4, 5), "int64")
    ),
    "groups of the last axis": network(
        lambda x, g, c: relay.nn.group_norm(x, g, c, num_groups=3, axis=2),
        ((2, 4, 6, 5), "float32"),
        ((6,), "float32"),
        ((6,), "float32"),
    ),
    "another layout's pooling": network(
        conv_then(lambda y: relay.nn.max_pool2d(y, pool_size=(2, 2), layout="NHWC")), IMAGE
    ),
    "another layout's convolution": network(
        lambda x, w: conv_then(
            lambda y: relay.nn.conv2d(y, w, channels=4, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO")
        )(x),
        IMAGE,
        ((3, 3, 7, 4), "float32"),
    ),
    "positions over two axes": network(conv_then(lambda y: relay.argmax(y, axis=(1, 2))), IMAGE),
    "positions over all axes": network(conv_then(relay.argmin), IMAGE),
}


@pytest.mark.parametrize("name", MINIMAL)
@pytest.mark.parametrize("target", TARGETS)
def test_minimal_programs(name: str, target: str) -> None:
    assert not disagreement(MINIMAL[name], TARGETS[target], 3)


@pytest.mark.parametrize("name", ["sort", "argsort", "topk"])
def test_what_has_no_loop_form_runs_on_the_virtual_machine(name: str) -> None:
    attrs = {"k": 2, "ret_type": "values"} if name == "topk" else {}
    net = network(lambda x: relay.negative(getattr(relay, name)(relay.tanh(x), **attrs)), ((3, 5), "float32"))
    assert not disagreement(net, "llvm", 3, "vm")
