"""Networks over levels, batches, instruction sets, element types and layouts: a table in which every two choices meet.

Each build is also read by LLVM's verifier, and each network is run with NaN in between: nothing of it may stay behind.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import Future
from functools import lru_cache

import numpy as np
import pytest
from support.verifier import verify

from relaylab import relay
from relaylab.codegen import build
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm import jit
from relaylab.interp import Interpreter, random_inputs
from relaylab.ir import Call, Function, IRModule
from relaylab.runtime import cpu, graph_executor
from relaylab.transform import ConvertLayout, InferType, PassContext, Sequential
from relaylab.zoo.catalog import NETWORKS

pytestmark = pytest.mark.slow

TARGETS = {"host": "llvm", "avx2": "llvm -mattr=-avx512f", "generic": "llvm -mcpu=x86-64"}
TOLERANCES = {"float32": 1e-4, "float64": 1e-9, "float16": 2e-2}
SMALL = ("mlp", "dqn", "dcgan", "lstm", "resnet8", "mobilenet")
LARGE = ("squeezenet", "resnet18", "vgg11_bn")
FACTORS = (SMALL, (0, 3), (1, 2), tuple(TARGETS), tuple(TOLERANCES), ("NCHW", "NHWC"))
Row = tuple[str, int, int, str, str, str]


def covering(factors: tuple[tuple, ...]) -> Iterator[tuple]:
    """Rows in which every two values of two factors occur together: at each step the row with most new pairs."""
    rows = list(itertools.product(*factors))
    open_pairs = set().union(*map(_pairs, rows))
    while open_pairs:
        best = max(rows, key=lambda row: len(_pairs(row) & open_pairs))
        open_pairs -= _pairs(best)
        yield best


def _pairs(row: tuple) -> set[tuple]:
    return set(itertools.combinations(enumerate(row), 2))


@lru_cache(maxsize=8)
def workload(name: str, batch: int, dtype: str) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A small form of a network without its last softmax, which would hide errors, and its parameters."""
    network = NETWORKS[name]
    mod, params = network.workload(**{**network.options, **network.shrink, "batch_size": batch, "dtype": dtype})
    main = mod["main"]
    if isinstance(main.body, Call) and main.body.op.name == "nn.softmax":
        mod = IRModule.from_expr(Function(main.params, main.body.args[0]))
    return InferType()(mod), {k: v.numpy() for k, v in params.items()}


@lru_cache(maxsize=8)
def inputs(name: str, batch: int, dtype: str) -> list[np.ndarray]:
    """Seeded inputs, in order."""
    mod, params = workload(name, batch, dtype)
    return [v for p, v in zip(mod["main"].params, random_inputs(mod["main"], 1)) if p.name_hint not in params]


@lru_cache(maxsize=8)
def interpreted(name: str, batch: int, dtype: str) -> list[np.ndarray]:
    mod, params = workload(name, batch, dtype)
    given = iter(inputs(name, batch, dtype))
    every = [params[p.name_hint] if p.name_hint in params else next(given) for p in mod["main"].params]
    return leaves(Interpreter(mod).evaluate()(*every))


def leaves(value: object) -> list[np.ndarray]:
    return [x for v in value for x in leaves(v)] if isinstance(value, (tuple, list)) else [np.asarray(value)]


def channels_last(mod: IRModule) -> IRModule:
    with PassContext(opt_level=3):
        return Sequential([ConvertLayout({"nn.conv2d": ["NHWC", "default"]}), InferType()])(mod)


def compiled(row: Row) -> graph_executor.GraphModule:
    name, level, batch, target, dtype, layout = row
    mod, params = workload(name, batch, dtype)
    mod = channels_last(mod) if layout == "NHWC" else mod
    with PassContext(opt_level=level):
        return graph_executor.GraphModule(relay.build(mod, TARGETS[target], params=params)["default"](cpu(0)))


def outputs(module: graph_executor.GraphModule, given: list[np.ndarray]) -> list[np.ndarray]:
    for index, value in enumerate(given):
        module.set_input(index, value)
    module.run()
    return [module.get_output(k).numpy() for k in range(module.get_num_outputs())]


def assert_close(got: list[np.ndarray], want: list[np.ndarray], tolerance: float) -> None:
    for a, b in zip(got, want, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype) and np.isfinite(b).all()
        scale = float(np.abs(b.astype("float64")).max()) or 1.0
        np.testing.assert_allclose(a / scale, b / scale, rtol=0, atol=tolerance)


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Every module that is built meanwhile is read by LLVM's verifier."""
    seen: set[str] = set()

    class Verified(jit.Compilation):
        def add(self, text: str, target: CpuTarget | None = None) -> Future[bytes]:
            if text not in seen:
                verify(text, target or self.target)
                seen.add(text)
            return super().add(text, target)

    monkeypatch.setattr(build, "Compilation", Verified)
    return seen


@pytest.mark.parametrize(
    "row", sorted(covering(FACTORS), key=lambda r: (r[0], r[2], r[4])), ids=lambda r: "-".join(map(str, r))
)
def test_small_networks(row: Row, verified: set[str]) -> None:
    name, _, batch, _, dtype, _ = row
    module, given = compiled(row), inputs(name, batch, dtype)
    first = outputs(module, given)
    assert len(verified) > 1
    assert_close(first, interpreted(name, batch, dtype), TOLERANCES[dtype])
    outputs(module, [np.full_like(v, np.nan) for v in given])
    for again, once in zip(outputs(module, given), first):
        np.testing.assert_array_equal(again, once)


@pytest.mark.parametrize("name", LARGE)
def test_large_networks(name: str, verified: set[str]) -> None:
    """Against the host's code at level 3, which the other tests compare with the interpreter."""
    k = LARGE.index(name)
    row = (name, 0, 1, ("avx2", "generic")[k % 2], "float32", ("NCHW", "NHWC")[k // 2 % 2])
    given = inputs(name, 1, "float32")
    want = outputs(compiled((name, 3, 1, "host", "float32", "NCHW")), given)
    assert_close(outputs(compiled(row), given), want, TOLERANCES["float32"])
    assert len(verified) > 2
