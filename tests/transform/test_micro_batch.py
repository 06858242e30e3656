"""What is computed for each example of a batch on its own, and networks that run a few examples at a time."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from relaylab import relay
from relaylab.analysis.examples import examples_of
from relaylab.interp import Interpreter
from relaylab.ir import Call, Constant, Expr, Function, IRModule, TensorType, Var
from relaylab.ir.op import OPERATORS
from relaylab.runtime import load_module
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.transform import InferType, MicroBatch
from relaylab.transform.micro_batch import ATTRIBUTE, micro_batches

sys.path.append(str(Path(__file__).parents[1] / "op"))
import op_cases  # noqa: E402  (shared with the operators' own tests)


def typed(params: list[Var], body: Expr) -> Function:
    return InferType()(IRModule.from_expr(Function(params, body)))["main"]


def evaluated(func: Function, *args: np.ndarray) -> list[np.ndarray]:
    found = Interpreter(IRModule.from_expr(func)).evaluate()(*args)
    return [np.asarray(x) for x in found] if isinstance(found, (tuple, list)) else [np.asarray(found)]


def batched_call(name: str, case) -> tuple[Function, list[np.ndarray]] | None:
    """A call of an operator with the arguments that have the first one's leading extent as examples."""
    arrays = op_cases.arrays_of(case)
    if not arrays or any(isinstance(a, tuple) for a in arrays) or not arrays[0].ndim or arrays[0].shape[0] < 2:
        return None
    size = arrays[0].shape[0]
    params = {
        k: Var(f"x{k}", TensorType(a.shape, a.dtype.name)) for k, a in enumerate(arrays) if a.shape[:1] == (size,)
    }
    args = [params[k] if k in params else Constant(a) for k, a in enumerate(arrays)]
    try:
        func = typed(list(params.values()), Call(OPERATORS[name], args, OPERATORS[name].definition(**case.attrs)))
    except RelayError:
        return None
    return func, [arrays[k] for k in params]


def test_operators_said_to_compute_each_example_on_its_own_do() -> None:
    seen = set()
    for name, _, case in op_cases.cases():
        found = batched_call(name, case)
        examples = examples_of(found[0]) if found is not None else None
        if found is None or examples is None:
            continue
        func, arrays = found
        try:
            one, count = micro_batches(func.with_attr(ATTRIBUTE, 1))
        except RelayValueError:  # written for this number of examples
            continue
        assert count == examples.size
        whole = evaluated(func, *arrays)
        for n in range(count):
            for part, all_ in zip(evaluated(one, *(a[n : n + 1] for a in arrays)), whole, strict=True):
                got, want = part.astype("float64"), all_[n : n + 1].astype("float64")
                np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6, err_msg=f"{name} {case}")
        seen.add(name)
    assert len(seen) > 100, sorted(seen)
    assert {"nn.conv2d", "nn.dense", "nn.softmax", "nn.max_pool2d", "add", "nn.layer_norm", "nn.batch_flatten"} <= seen


X = Var("x", TensorType((4, 3, 4)))
MIXING = {
    "the sum over the batch": relay.sum(X, axis=[0], keepdims=True) + X,
    "softmax over the batch": relay.nn.softmax(X, axis=0),
    "the batch in the other order": relay.reverse(X, axis=0),
    "running sums over the batch": relay.cumsum(X, axis=0),
    "each with each": relay.nn.dense(relay.reshape(X, (4, 12)), relay.reshape(X, (4, 12))),
    "another axis in its place": relay.transpose(relay.take(X, relay.const([0, 1, 2, 2]), axis=1), (1, 0, 2)),
    "examples by number": relay.take(X, relay.const([3, 0, 1, 2]), axis=0),
    "numbers of each example": X + relay.const(np.ones((4, 1, 1), "float32")),
    "what is the same for all": relay.Tuple([X, relay.zeros((4, 1), "float32")]),
    "a part of the batch": relay.strided_slice(X, [0], [2]),
    "heads within the batch": relay.reshape(X, (12, 4)),
    "sorted": relay.sort(X, axis=0),
}


@pytest.mark.parametrize("what", MIXING)
def test_programs_that_mix_examples_have_none(what: str) -> None:
    assert examples_of(typed([X], MIXING[what])) is None


def network(batch: int = 6) -> tuple[Function, np.ndarray]:
    """Convolution, pooling and a product, with two results, of which one is a reshape."""
    rng = np.random.default_rng(0)
    weight = lambda *shape: relay.const(rng.normal(size=shape).astype("float32"))
    data = relay.var("data", shape=(batch, 3, 12, 12))
    conv = relay.nn.relu(relay.nn.conv2d(data, weight(16, 3, 3, 3), padding=(1, 1)) * weight(16, 1, 1))
    conv = relay.nn.relu(relay.nn.conv2d(conv, weight(16, 16, 3, 3), padding=(1, 1)))
    flat = relay.reshape(relay.nn.max_pool2d(conv, (4, 4), strides=(4, 4)), (batch, 144))
    dense = relay.nn.softmax(relay.nn.dense(flat, weight(7, 144)))
    return typed([data], relay.Tuple([dense, relay.reshape(conv, (batch, 16, 144))])), rng.normal(
        size=(batch, 3, 12, 12)
    ).astype("float32")


def built(func: Function, size: int, **kw):
    with relay.transform.PassContext(opt_level=3):
        return relay.build(MicroBatch(size)(IRModule.from_expr(func)), **kw)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_parts_of_a_batch_give_what_the_batch_gives(size: int, threads: int, tmp_path: Path) -> None:
    func, x = network()
    lib = built(func, size)
    assert lib.executable.plan.parts == 6 // size
    lib.export_library(tmp_path / "net.so")
    for module in (lib, load_module(tmp_path / "net.so")):
        executor = module.instantiate(num_threads=threads).executor
        for data in (x, x[::-1].copy(), x):
            executor.set_input("data", data)
            executor.run()
            for k, expected in enumerate(evaluated(func, data)):
                np.testing.assert_allclose(executor.get_output(k).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_nodes_and_times_are_those_of_the_whole_batch() -> None:
    func, x = network()
    whole, parts = (built(func, size).instantiate(num_threads=2).executor for size in (6, 2))
    for executor in (whole, parts):
        executor.set_input("data", x)
        executor.run()
    assert [i.shape for i in whole.plan.outputs] == [i.shape for i in parts.plan.outputs] == [(6, 7), (6, 16, 144)]
    assert sum(s.flops for s in whole.plan.steps) == pytest.approx(sum(s.flops for s in parts.plan.steps), rel=0.05)
    for node, field, _ in whole.plan.values:
        a, b = (e.debug_output(node, field).numpy() for e in (whole, parts))
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    assert len(parts.timed_steps(iter(range(10**6)).__next__)) == len(parts.plan.steps)
    assert parts.plan.arena_bytes < whole.plan.arena_bytes / 2


def test_the_graph_has_the_shapes_of_the_program() -> None:
    func, _ = network()
    whole, parts = (built(func, size) for size in (6, 2))
    shapes = [json.loads(lib.get_graph_json())["attrs"]["shape"] for lib in (whole, parts)]
    assert shapes[0] == shapes[1]


def test_what_is_said_of_a_network_counts_all_parts() -> None:
    lib = built(network()[0], 2)
    assert "in 3 parts of a batch" in repr(lib)
    calls = 3 * len({step.node for step in lib.executable.plan.steps})
    assert lib.summary().splitlines()[-1].startswith(f"{len(lib.kernels())} kernels, {calls} calls, ")
    assert lib.summary().endswith("in 3 parts of a batch")


def test_a_network_that_fits_the_caches_is_left_whole() -> None:
    func, _ = network()
    assert relay.optimize(IRModule.from_expr(func))[0]["main"].attr(ATTRIBUTE) is None
    large = typed([d := relay.var("d", shape=(64, 32, 112, 112))], relay.exp(relay.nn.avg_pool2d(relay.exp(d), (2, 2))))
    assert relay.optimize(IRModule.from_expr(large))[0]["main"].attr(ATTRIBUTE) in (1, 2, 4, 8)


@pytest.mark.parametrize(
    "body",
    [
        lambda x: relay.Tuple([x, relay.exp(x)]),
        lambda x: (lambda y: relay.Tuple([y, y]))(relay.exp(x)),
        lambda x: (lambda y: relay.Tuple([y, relay.reshape(y, (4, 12))]))(relay.exp(x)),
    ],
)
def test_results_that_no_kernel_writes_alone_are_not_for_parts(body) -> None:
    func = relay.transform.FuseOps()(IRModule.from_expr(typed([X], body(X))))["main"]
    assert MicroBatch(2)(IRModule.from_expr(func))["main"].attr(ATTRIBUTE) is None


@pytest.mark.parametrize("mark", [0, -1, 3, 8, "two"])
def test_a_mark_that_does_not_fit_is_an_error(mark: object) -> None:
    func = typed([X], relay.exp(X)).with_attr(ATTRIBUTE, mark)
    with pytest.raises(RelayValueError, match="examples at a time"):
        relay.build(IRModule.from_expr(func))


def test_a_program_written_for_its_batch_is_left_whole() -> None:
    func = typed([X], relay.exp(X) + relay.broadcast_to(relay.sum(X, axis=[1, 2], keepdims=True), (4, 3, 4)))
    assert MicroBatch(2)(IRModule.from_expr(func))["main"].attr(ATTRIBUTE) is None
    with pytest.raises(RelayValueError):
        relay.build(IRModule.from_expr(func.with_attr(ATTRIBUTE, 2)))


def test_any_number_of_examples_is_looked_at_in_no_time() -> None:
    for batch in (2**40, 2**61 - 1, 1000):
        func = typed([x := Var("x", TensorType((batch, 2**14)))], relay.exp(relay.exp(x)))
        size = MicroBatch()(relay.transform.FuseOps(0)(IRModule.from_expr(func)))["main"].attr(ATTRIBUTE)
        assert size is None or batch % size == 0 and batch // size <= 256
        assert MicroBatch(1)(IRModule.from_expr(func))["main"].attr(ATTRIBUTE) is None


@pytest.mark.parametrize("size", [0, -4])
def test_no_examples_at_a_time_are_refused(size: int) -> None:
    with pytest.raises(RelayValueError):
        MicroBatch(size)
