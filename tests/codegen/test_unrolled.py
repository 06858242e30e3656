"""Loops over open sizes, written out once the sizes are numbers, held against numpy."""

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.unrolled import unrolled
from relaylab.codegen.vm import VirtualMachine
from relaylab.ir.dims import SizeVar
from relaylab.ir.scope_builder import while_loop
from relaylab.ir.visit import walk
from relaylab.transform import InferType

RNG = np.random.default_rng(0)


def scalar(name, dtype="int64"):
    return relay.var(name, shape=(), dtype=dtype)


def running(before=False, limit=None):
    """Running sums of the rows of x, the last one first or last; `limit` is what the turns are counted against."""
    x = relay.var("x", shape=(SizeVar("n"), 3))
    count = limit if limit is not None else relay.take(relay.shape_of(x, "int64"), relay.const(0, "int64"))
    variables = [scalar("i"), relay.var("s", shape=(3,)), relay.var("rows", shape=(relay.Any(), 3))]

    def turn(i, s, rows):
        s = s + relay.take(x, i, axis=0)
        row = relay.expand_dims(s, 0)
        return [i + relay.const(1, "int64"), s, relay.concatenate((row, rows) if before else (rows, row), 0)]

    loop = while_loop(lambda i, s, rows: relay.less(i, count), variables, turn)
    start = [relay.const(0, "int64"), relay.zeros((3,), "float32"), relay.zeros((0, 3), "float32")]
    return x, relay.TupleGetItem(relay.Call(loop, start), 2)


@pytest.mark.parametrize("before", [False, True])
def test_rows_that_a_loop_collects(before):
    x, rows = running(before)
    vm = VirtualMachine(relay.vm.compile(relay.IRModule.from_expr(relay.Function([x], rows)), "llvm"))
    for n in (1, 4, 9):
        values = RNG.standard_normal((n, 3)).astype("float32")
        sums = values.cumsum(0)
        np.testing.assert_allclose(vm.invoke("main", values).numpy(), sums[::-1] if before else sums, rtol=1e-5)
    assert vm.exe.specializations.open.repeats
    assert vm.invoke("main", np.zeros((0, 3), "f4")).numpy().shape == (0, 3)


def test_the_number_of_turns_may_be_an_input():
    count = scalar("count")
    x, rows = running(limit=count)
    vm = VirtualMachine(relay.vm.compile(relay.IRModule.from_expr(relay.Function([x, count], rows)), "llvm"))
    values = RNG.standard_normal((5, 3)).astype("float32")
    for turns in (2, 5):
        got = vm.invoke("main", values, np.array(turns, "int64")).numpy()
        np.testing.assert_allclose(got, values.cumsum(0)[:turns], rtol=1e-5)


def test_loops_that_depend_on_data_or_never_end_stay():
    x = scalar("x", "float32")
    variables = [scalar("i"), scalar("v", "float32")]
    turn = lambda i, v: [i + relay.const(1, "int64"), v + v]
    for goes_on in (lambda i, v: relay.less(v, relay.const(100.0)), lambda i, v: relay.const(True)):
        main = relay.Function([x], relay.Call(while_loop(goes_on, variables, turn), [relay.const(0, "int64"), x]))
        body = InferType()(relay.IRModule.from_expr(main))["main"].body
        assert any(isinstance(n, relay.If) for n in walk((unrolled(body),)))
    main = relay.Function(
        [x],
        relay.Call(
            while_loop(lambda i, v: relay.less(v, relay.const(100.0)), variables, turn), [relay.const(0, "int64"), x]
        ),
    )
    vm = VirtualMachine(relay.vm.compile(relay.IRModule.from_expr(main), "llvm"))
    turns, value = vm.invoke("main", np.array(3, "float32"))
    assert (int(turns.numpy()), float(value.numpy())) == (6, 192.0)
