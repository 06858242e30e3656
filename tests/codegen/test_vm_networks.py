"""What the virtual machine computes at one point is one network; held against torch and the interpreter."""

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.vm import VirtualMachine, VMExecutable
from relaylab.codegen.vm_networks import is_network, with_networks
from relaylab.codegen.vm_profiler import VirtualMachineProfiler
from relaylab.ir.dims import SizeVar
from relaylab.ir.expr import Call, Constant, Function, Let, Var
from relaylab.ir.visit import children, walk
from relaylab.transform import InferType

RNG = np.random.default_rng(0)
FIRST, SECOND = (RNG.standard_normal(s).astype("float32") / 8 for s in ((16, 8, 3, 3), (16, 16, 3, 3)))
X = RNG.standard_normal((1, 8, 12, 12)).astype("float32")


def convolutions(x):
    y = relay.nn.relu(relay.nn.conv2d(x, relay.const(FIRST), padding=(1, 1)))
    return relay.nn.conv2d(y, relay.const(SECOND), padding=(1, 1))


def in_torch(x):
    torch = pytest.importorskip("torch")
    y = torch.relu(torch.conv2d(torch.from_numpy(x), torch.from_numpy(FIRST), padding=1))
    return torch.conv2d(y, torch.from_numpy(SECOND), padding=1).numpy()


def where_positive():
    """A network, then an operator whose result has as many rows as the data say."""
    x = relay.var("x", shape=X.shape)
    y = convolutions(x)
    return relay.IRModule.from_expr(Function([x], relay.Tuple([relay.argwhere(relay.greater(y, relay.const(0.5))), y])))


def networks(exe):
    return [f for f in exe.natives if is_network(f)]


def test_all_before_a_shape_that_depends_on_data_is_one_network():
    exe = relay.vm.compile(where_positive(), "llvm")
    rows, y = VirtualMachine(exe).invoke("main", X)
    np.testing.assert_allclose(y.numpy(), in_torch(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(rows.numpy(), np.argwhere(y.numpy() > 0.5))
    (network,) = networks(exe)
    assert len(network.params) == 1 and exe.bytecode.count("invoke_packed") == 1
    assert "load_const Tensor[(16" not in exe.bytecode  # weights are packed for their kernels


def test_weights_are_packed_as_in_a_graph():
    x = relay.var("x", shape=X.shape)
    graph = relay.build(relay.IRModule.from_expr(Function([x], convolutions(x))), "llvm")
    wanted = sorted(k.split("_fused_")[1] for k in graph.kernels())
    found = [k.split("_fused_")[1] for k in relay.vm.compile(where_positive(), "llvm").primitive_ops]
    assert wanted and set(wanted) <= set(found)


def test_a_saved_program_has_its_networks():
    bytes_, lib = relay.vm.compile(where_positive(), "llvm").save()
    exe = VMExecutable.load_exec(bytes_, lib)
    rows, y = VirtualMachine(exe).invoke("main", X)
    np.testing.assert_allclose(y.numpy(), in_torch(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(rows.numpy(), np.argwhere(y.numpy() > 0.5))
    assert len(networks(exe)) == 1


def test_a_profile_names_every_kernel():
    exe = relay.vm.compile(where_positive(), "llvm")
    rows = [row["Name"] for row in VirtualMachineProfiler(exe).profile(X).rows()]
    assert len(rows) > 1 and set(rows) == {*exe.primitive_ops, "tvmgen_vm_fused_padded_argwhere"}


def test_a_profile_of_an_open_program_is_of_the_form_that_runs():
    """What the machine would do without a form takes other kernels, and a hundred times as long."""
    n = SizeVar("n")
    x = relay.var("x", shape=(n, 8))
    y = relay.nn.softmax(relay.nn.relu(relay.nn.dense(x, relay.const(FIRST.reshape(-1, 8)[:16]))))
    profiler = VirtualMachineProfiler(relay.vm.compile(relay.IRModule.from_expr(Function([x], y)), "llvm"))
    for rows in (3, 40):
        found = profiler.profile(RNG.standard_normal((rows, 8)).astype("float32")).rows()
        form = profiler.exe.specializations.open
        assert [row["Name"] for row in found] == [s.name for s in form.planned.plan.steps]
        assert all(row["Duration (us)"].microseconds > 0 for row in found)


def test_a_profile_of_control_flow_is_of_the_kernels_that_it_calls():
    x, flag = relay.var("x", shape=(4, 4)), relay.var("flag", shape=(), dtype="bool")
    ways = relay.nn.dense(x, relay.const(W)), relay.nn.relu(x)
    exe = relay.vm.compile(relay.IRModule.from_expr(Function([x, flag], relay.If(flag, *ways))), "llvm")
    profiler = VirtualMachineProfiler(exe)
    for way, kernel in ((True, "dense"), (False, "relu")):
        (row,) = profiler.profile(np.ones((4, 4), "float32"), np.array(way)).rows()
        assert kernel in row["Name"]


W = RNG.standard_normal((4, 4)).astype("float32")


def dense(x):
    return relay.nn.relu(relay.nn.dense(x, relay.const(W)))


def chosen(x):
    """Kernels before, in, between and behind choices, of which some need none of them."""
    y = dense(dense(x))
    positive = relay.greater(relay.sum(y), relay.const(8.0))
    one = relay.If(positive, dense(dense(y)), dense(relay.exp(relay.nn.dense(y, relay.const(W)))))
    two = relay.If(relay.less(relay.max(one), relay.const(9.0)), dense(one) + y, dense(dense(x)))
    return relay.Tuple([two + dense(relay.nn.softmax(y)), one])


def divided(x):
    """A kernel of several results, of which all and some are used."""
    parts = relay.split(dense(x), 2, axis=1).astuple()
    some = relay.TupleGetItem(parts, 0)
    limit = relay.greater(relay.sum(some), relay.const(3.0))
    pair = relay.If(limit, parts, relay.Tuple([some, some]))
    return relay.TupleGetItem(pair, 1) + relay.strided_slice(dense(x), [0, 0], [1, 1])


def celled(x):
    """A cell that is written to between kernels."""
    cell, done = relay.var("cell"), relay.var("done")
    first, last = relay.var("first"), relay.var("last")
    body = relay.Let(last, relay.RefRead(cell), relay.Tuple([first, last, dense(first) + dense(last)]))
    body = relay.Let(done, relay.RefWrite(cell, dense(dense(first))), body)
    return relay.Let(cell, relay.RefCreate(dense(x)), relay.Let(first, relay.RefRead(cell), body))


@pytest.mark.parametrize("write", [chosen, celled])
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_control_flow_keeps_its_order(write, scale):
    x = relay.var("x", shape=(2, 4))
    mod = relay.IRModule.from_expr(Function([x], write(x)))
    value = (RNG.standard_normal((2, 4)) * scale).astype("float32")
    exe = relay.vm.compile(mod, "llvm")
    machine = relay.create_executor("debug", mod=mod).evaluate()
    for got, want in zip(exe_run(exe, value), machine(value), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
    assert networks(exe)


def exe_run(exe, *values):
    """The machine's own answer, without forms for shapes."""
    exe.specializations = None
    return VirtualMachine(exe).invoke("main", *values)


@pytest.mark.parametrize("scale", [0.1, 5.0])
def test_results_of_one_kernel(scale):
    x = relay.var("x", shape=(1, 4))
    mod = relay.IRModule.from_expr(Function([x], divided(x)))
    value = np.abs(RNG.standard_normal((1, 4)) * scale).astype("float32")
    exe = relay.vm.compile(mod, "llvm")
    want = relay.create_executor("debug", mod=mod).evaluate()(value)
    np.testing.assert_allclose(exe_run(exe, value).numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
    assert networks(exe)


def test_a_kernel_that_takes_the_parts_of_another_is_in_its_network():
    torch = pytest.importorskip("torch")
    cell = torch.nn.LSTMCell(3, 5)
    weights = [relay.const(w.detach().numpy()) for w in (cell.weight_ih, cell.weight_hh, cell.bias_ih + cell.bias_hh)]
    xs, h, c = (relay.var(n, shape=s) for n, s in (("xs", (4, 3)), ("h", (1, 5)), ("c", (1, 5))))
    state = h, c
    for k in range(4):
        x = relay.strided_slice(xs, [k, 0], [k + 1, 3])
        gates = relay.nn.dense(x, weights[0]) + relay.nn.dense(state[0], weights[1]) + weights[2]
        i, f, u, o = relay.split(gates, 4, axis=1)
        new = relay.sigmoid(f) * state[1] + relay.sigmoid(i) * relay.tanh(u)
        state = relay.sigmoid(o) * relay.tanh(new), new
    exe = relay.vm.compile(relay.IRModule.from_expr(Function([xs, h, c], relay.Tuple(state))), "llvm")
    values = [RNG.standard_normal(s).astype("float32") for s in ((4, 3), (1, 5), (1, 5))]
    row, *wanted = map(torch.from_numpy, values)
    with torch.no_grad():
        for k in range(4):
            wanted = cell(row[k : k + 1], tuple(wanted))
    for got, want in zip(VirtualMachine(exe).invoke("main", *values), wanted, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
    assert exe.bytecode.count("invoke_packed") == 1 and len(networks(exe)) == 1


@pytest.mark.parametrize("scale", [0.1, 5.0])
def test_a_tuple_from_outside_goes_into_a_network(scale):
    x = relay.var("x", shape=(2, 4))
    parts = relay.split(dense(x), 2, axis=1).astuple()
    turned = relay.Tuple([relay.TupleGetItem(parts, k) for k in (1, 0)])
    pair = relay.If(relay.greater(relay.sum(x), relay.const(1.0)), parts, turned)
    left, right = (relay.TupleGetItem(pair, k) for k in range(2))
    y = relay.sigmoid(left) * relay.tanh(right)
    out = relay.nn.dense(dense(relay.concatenate([y, left], 1)), relay.const(W))
    mod = relay.IRModule.from_expr(Function([x], out))
    some = (RNG.standard_normal((2, 4)) * scale).astype("float32")
    want = relay.create_executor("debug", mod=mod).evaluate()
    for value in (some, -some):
        exe = relay.vm.compile(mod, "llvm")
        np.testing.assert_allclose(exe_run(exe, value).numpy(), want(value).numpy(), rtol=1e-5, atol=1e-6)


def test_each_kernel_behind_the_last_choice_that_it_needs():
    """Before the first `if`, in its branches, behind each: as many networks as points, and no kernel outside."""
    x = relay.var("x", shape=(2, 4))
    exe = relay.vm.compile(relay.IRModule.from_expr(Function([x], chosen(x))), "llvm")
    below = lambda n: () if isinstance(n, Function) and is_network(n) else children(n)
    outside = list(walk(exe.program.functions.values(), below))
    assert len(networks(exe)) > 3 and not any(isinstance(n, Constant) and n.data.shape == (4, 4) for n in outside)


def test_long_chains():
    """Thousands of lets: no recursion on depth, one network."""
    count, x, p = 5000, relay.var("x", shape=(4,)), relay.var("p", shape=(4,))
    kernel = Function([p], relay.tanh(p), attrs={"Primitive": 1})
    names = [Var(f"v{k}") for k in range(count)]
    body = names[-1]
    for k in reversed(range(count)):
        body = Let(names[k], Call(kernel, [names[k - 1] if k else x]), body)
    mod = with_networks(InferType()(relay.IRModule.from_expr(Function([x], body))))
    (network,) = [n for n in walk((mod["main"],)) if isinstance(n, Function) and is_network(n)]
    assert sum(isinstance(n, Let) for n in walk((network,))) == count


def test_what_two_expressions_share_is_bound_once():
    x, c = relay.var("x", shape=(2, 3)), relay.var("c", shape=(), dtype="bool")
    a, b = relay.var("a"), relay.var("b")
    shared = relay.Let(a, relay.tanh(x) + relay.const(WEIGHT), relay.exp(a) * a)
    func = relay.Function([x, c], relay.Let(b, relay.If(c, shared, x), relay.Let(relay.var("d"), relay.exp(b), shared)))
    mod = InferType()(relay.IRModule.from_expr(func))
    given = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
    bound = np.tanh(given) + WEIGHT
    for level in (0, 1, 2, 3):
        with relay.transform.PassContext(opt_level=level):
            run = relay.create_executor("vm", mod, target="llvm").evaluate()
        for condition in (True, False):
            np.testing.assert_allclose(run(given, np.array(condition)).numpy(), np.exp(bound) * bound, rtol=1e-5)


WEIGHT = np.arange(6, dtype="float32").reshape(2, 3)
