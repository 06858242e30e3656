"""Sizes that an operator does not take are refused when a program brings them, in the words of its type relation."""

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import SizeVar
from relaylab.support.errors import RelayError

N, M = SizeVar("n"), SizeVar("m")
IMAGE = relay.var("image", shape=(1, 1, N, N))
KERNEL = relay.const(np.ones((1, 1, 5, 5), "float32"))
ROWS, OTHERS = relay.var("rows", shape=(N, 4)), relay.var("others", shape=(M, 4))
MATRIX = relay.var("matrix", shape=(M, N))


def ones(*shape):
    return np.ones(shape, "float32")


CASES = {
    "a window of 3 (dilation 1) does not fit into 1 elements": (
        relay.nn.max_pool2d(IMAGE, pool_size=(3, 3)), [ones(1, 1, 3, 3)], [ones(1, 1, 1, 1)],
    ),
    "a window of 3 (dilation 1) does not fit into 2 elements": (  # nothing, rather than less than nothing
        relay.nn.avg_pool2d(IMAGE, pool_size=(3, 3)), [ones(1, 1, 3, 3)], [ones(1, 1, 2, 2)],
    ),
    "a window of 5 (dilation 1) does not fit into 3 elements": (
        relay.nn.conv2d(IMAGE, KERNEL, channels=1, kernel_size=(5, 5)), [ones(1, 1, 5, 5)], [ones(1, 1, 3, 3)],
    ),
    "leaves nothing of the result along H": (
        relay.nn.conv2d_transpose(IMAGE, KERNEL, channels=1, kernel_size=(5, 5), padding=(3, 3)),
        [ones(1, 1, 3, 3)], [ones(1, 1, 1, 1)],
    ),
    "cannot be broadcast together": (relay.add(ROWS, OTHERS), [ones(3, 4), ones(1, 4)], [ones(3, 4), ones(2, 4)]),
    "their other dimensions differ": (
        relay.concatenate([ROWS, OTHERS], 1), [ones(3, 4), ones(3, 4)], [ones(3, 4), ones(2, 4)],
    ),
    "the inner dimensions of": (relay.nn.matmul(ROWS, MATRIX), [ones(2, 4), ones(4, 2)], [ones(2, 4), ones(3, 2)]),
    "24 elements do not fill": (
        relay.reshape(relay.concatenate([ROWS, ROWS], 1), (-1, 16)), [ones(4, 4)], [ones(3, 4)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("said", CASES)
@pytest.mark.parametrize("executor", ["debug", "vm"])
def test_each_in_words_of_the_operator(said, executor):
    body, right, wrong = CASES[said]
    main = relay.Function(relay.analysis.free_vars(body), body)
    run = relay.create_executor(executor, mod=relay.IRModule.from_expr(main)).evaluate()
    for _ in range(2):
        assert run(*right).shape
        with pytest.raises(RelayError) as error:
            run(*wrong)
        assert said in str(error.value) and "test_sizes_refused.py" in str(error.value)


@pytest.mark.parametrize("executor", ["debug", "vm"])
def test_nothing_where_it_may_be(executor):
    batch = relay.var("batch", shape=(N, 1, 6, 6))
    bodies = [relay.nn.conv2d(batch, KERNEL, channels=1, kernel_size=(5, 5)), relay.nn.max_pool2d(batch, (3, 3))]
    main = relay.Function([batch, OTHERS], relay.Tuple([*bodies, relay.exp(relay.strided_slice(OTHERS, [0], [-4]))]))
    run = relay.create_executor(executor, mod=relay.IRModule.from_expr(main)).evaluate()
    shapes = [v.shape for v in run(ones(0, 1, 6, 6), ones(2, 4))]
    assert [tuple(s) for s in shapes] == [(0, 1, 2, 2), (0, 1, 4, 4), (0, 4)]
