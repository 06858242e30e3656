"""Concatenations without copies: their parts are written where the whole wants them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relaylab import op, relay, study
from relaylab.ir import Expr, IRModule
from relaylab.runtime import cpu, graph_executor

Pair = tuple[Expr, np.ndarray]
WIDTH, STEPS = 24, 40
RNG = np.random.default_rng(0)
WEIGHT = RNG.uniform(-0.4, 0.4, (WIDTH, WIDTH)).astype("float32")


def recurrence(x: Pair) -> list[Pair]:
    """The states of a recurrence, of which every one is read by the next step."""
    found = [x]
    for _ in range(STEPS):
        h, value = found[-1]
        found.append((op.tanh(op.nn.dense(h, relay.const(WEIGHT))), np.tanh(value @ WEIGHT.T)))
    return found[1:]


def stacked(parts: list[Pair], axis: int) -> Pair:
    return op.stack([e for e, _ in parts], axis), np.stack([v for _, v in parts], axis)


def joined(parts: list[Pair], axis: int) -> Pair:
    return op.concatenate([e for e, _ in parts], axis), np.concatenate([v for _, v in parts], axis)


def reshaped(x: Pair, shape: tuple[int, ...]) -> Pair:
    return op.reshape(x[0], shape), x[1].reshape(shape)


def moved(x: Pair, axes: tuple[int, ...]) -> Pair:
    return op.transpose(x[0], axes), x[1].transpose(axes)


def ran(x: np.ndarray, param: Expr, wanted: list[Pair]) -> list[str]:
    """The kernels that ran, in order, once the results are what numpy says."""
    func = relay.Function([param], relay.Tuple([e for e, _ in wanted]))
    lib = relay.build(relay.transform.InferType()(IRModule.from_expr(func)), "llvm")
    module = graph_executor.GraphModule(lib["default"](cpu(0)))
    module.run(**{param.name_hint: x})
    for k, (_, value) in enumerate(wanted):
        np.testing.assert_allclose(module.get_output(k).numpy(), value, rtol=1e-4, atol=1e-5)
    return [step.kernel for step in lib.executable.plan.steps]


ROWS: dict[str, Callable[[list[Pair]], Pair]] = {
    "stack": lambda h: stacked(h, 0),
    "concatenate": lambda h: joined(h, 0),
    "as an exporter writes it": lambda h: reshaped(moved(stacked([stacked(h, 0)], 1), (0, 2, 1, 3)), (STEPS, WIDTH)),
    "two and two": lambda h: stacked([stacked([a, b], 0) for a, b in zip(h[::2], h[1::2])], 0),
    "backwards, in two": lambda h: reshaped(joined([joined(h[20:], 0), joined(h[:20], 0)], 0), (2, 20, WIDTH)),
}


@pytest.mark.parametrize("way", ROWS)
def test_states_of_a_recurrence_are_not_copied(way: str) -> None:
    x, param = RNG.uniform(-1, 1, (1, WIDTH)).astype("float32"), relay.var("x", shape=(1, WIDTH))
    steps = ran(x, param, [ROWS[way](recurrence((param, x)))])
    assert len(steps) == STEPS and len(set(steps)) <= 2, "one kernel for all steps, wherever they write"


@pytest.mark.parametrize("way", ["along rows", "moved", "twice", "an input", "read again", "many made here"])
def test_where_a_copy_is_needed_there_is_one(way: str) -> None:
    x, param = RNG.uniform(-1, 1, (2, WIDTH)).astype("float32"), relay.var("x", shape=(2, WIDTH))
    h = recurrence((param, x))
    made = [(op.exp(e), np.exp(v)) for e, v in h]
    y = stacked(h, 0)
    wanted = {
        "along rows": [stacked(h, 1)],
        "moved": [moved(y, (1, 0, 2))],
        "twice": [stacked([*h, h[0]], 0)],
        "an input": [stacked([(param, x), *h], 0)],
        "read again": [y, h[3], (op.sum(y[0], 2), y[1].sum(2))],
        "many made here": [stacked([*h[:8], *made], 0)],
    }[way]
    ran(x, param, wanted)


def softmax(x: Pair) -> Pair:
    grown = np.exp(x[1] - x[1].max(-1, keepdims=True))
    return op.nn.softmax(x[0], -1), grown / grown.sum(-1, keepdims=True)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_whole_that_is_a_part_keeps_its_rows_together(axis: int) -> None:
    x, param = RNG.uniform(-1, 1, (1, WIDTH)).astype("float32"), relay.var("x", shape=(1, WIDTH))
    h = stacked(recurrence((param, x)), 0)
    other = softmax(h)
    y = joined([h, other], axis)
    ran(x, param, [softmax(y), softmax(other)])


@pytest.mark.parametrize("seed", range(60))
def test_random_nests_of_concatenations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 3))
    x, param = rng.uniform(-1, 1, (rows, WIDTH)).astype("float32"), relay.var("x", shape=(rows, WIDTH))
    h = recurrence((param, x))
    parts = [h[k] for k in rng.permutation(STEPS)[: rng.integers(4, STEPS)]]
    if rng.random() < 0.5:
        parts[0] = op.exp(parts[0][0]), np.exp(parts[0][1])
    while len(parts) > 1:
        size, axis = int(rng.integers(2, len(parts) + 1)), int(rng.integers(0, 2))
        groups = [parts[k : k + size] for k in range(0, len(parts), size)]
        parts = [(stacked if rng.random() < 0.3 else joined)(group, axis) for group in groups]
        shapes = {v.shape[1:] for _, v in parts}
        if rng.random() < 0.5 or len(shapes) > 1:
            parts = [reshaped(p, (-1, WIDTH)) for p in parts]
        if len({v.shape for _, v in parts}) > 1:
            parts = [joined([reshaped(p, (-1, WIDTH)) for p in parts], 0)]
    last = parts[0]
    ran(x, param, [last, (op.negative(last[0]), -last[1])] if rng.random() < 0.5 else [last])


@pytest.mark.parametrize("count", [31, 33, 60, 200])
@pytest.mark.parametrize("axis", [0, 1])
def test_long_concatenations_are_pieces_that_look_at_one_operand_each(count: int, axis: int) -> None:
    arrays = {f"x{k}": RNG.uniform(-1, 1, (3, 4 + k % 3) if axis else (1 + k % 3, 5)) for k in range(count)}
    params = [relay.var(name, shape=x.shape, dtype="float64") for name, x in arrays.items()]
    whole = op.nn.relu(op.concatenate(params, axis))
    lib = relay.build(relay.transform.InferType()(IRModule.from_expr(relay.Function(params, whole))), "llvm")
    module = graph_executor.GraphModule(lib["default"](cpu(0)))
    module.run(**arrays)
    wanted = np.maximum(np.concatenate(list(arrays.values()), axis), 0)
    np.testing.assert_array_equal(module.get_output(0).numpy(), wanted)
    assert "select" not in study.listing(lib, "concatenate", "loop")
