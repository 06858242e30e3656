"""Products with constant weights and any number of rows: proven, evaluated and compiled they are those of numpy."""

import math

import numpy as np
import pytest
from kernel_runner import aligned, bias_relu_residual, runnable_targets
from native_group import TARGETS, execute
from test_specializations import forms, machine

from relaylab import relay
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.open_rows import MOST_ROWS, OpenRows, OpenTileLoops, open_rows, open_rows_program
from relaylab.codegen.templates.open_rows import pack_open_rows
from relaylab.codegen.templates.program_parts import ProgramParts
from relaylab.ir.dims import SizeVar
from relaylab.loop.expr import Size
from relaylab.loop.parse import parse
from relaylab.loop.run import run
from relaylab.loop.sizes import number_of
from relaylab.loop.verify import unproven

RNG = np.random.default_rng(0)
ROWS = Size("n", 0) * Size("m", 1)


def spec_of(depth, columns):
    return OpenRows(ROWS, depth, columns, "float32")


def lengths(spec, target):
    whole = OpenTileLoops(spec.problem(), spec.problem(MOST_ROWS), target, Epilogue(), ProgramParts({})).heights[0]
    return [(1, 0), (1, 1), (whole - 1, 1), (1, whole), (whole + 1, 1), (2 * whole - 1, 1), (70, 3)]


@pytest.mark.parametrize("rolled", [None, False, True], ids=["plain", "epilogue", "rolled"])
@pytest.mark.parametrize("depth, columns", [(7, 21), (256, 5), (1, 5)])
@pytest.mark.parametrize("isa", runnable_targets())
def test_one_kernel_serves_all_numbers_of_rows(isa, depth, columns, rolled):
    target, spec = CpuTarget.parse(TARGETS[isa]), spec_of(depth, columns)
    side = MemoryView.dense((MOST_ROWS, columns))
    epilogue = Epilogue() if rolled is None else bias_relu_residual(side, rolled)
    program, kernel = open_rows_program(spec, target, epilogue), open_rows(spec, target, epilogue)
    assert unproven(program) is None and str(parse(str(program))) == str(program)
    w = RNG.integers(-4, 5, (depth, columns)).astype("float32")
    for sizes in lengths(spec, target):
        rows = math.prod(sizes)
        x, r = (RNG.integers(-4, 5, (rows, k)).astype("float32") for k in (depth, columns))
        b = RNG.integers(-4, 5, columns).astype("float32")
        wanted = x @ w if rolled is None else np.maximum(x @ w + b + r, 0)
        held = {"in0": x.ravel(), "weight0": pack_open_rows(spec, target, w).array(), "b0": b}
        held |= {"out0": r.ravel(), "sizes": np.array(sizes, "int64")}
        for role, values in held.items():
            held[role] = aligned(values.size, values.dtype.name)
            held[role][:] = values
        held["r0"] = held["out0"]  # the sum is written over what is added
        memory = {t: held[role].copy() for role, t in program.buffers if role != "r0"}
        memory |= {t: memory[dict(program.buffers)["out0"]] for role, t in program.buffers if role == "r0"}
        operands = [held[role] for role in kernel.operands if role != "scratch"]
        execute(kernel, target, operands, (0, 0.3, 1), int(number_of(program.items, sizes)))
        results = [held["out0"]]
        if rows * depth * columns < 10000:  # the evaluator goes element by element
            run(program, memory)
            results.append(memory[dict(program.buffers)["out0"]])
        for result in results:
            np.testing.assert_array_equal(result.reshape(rows, columns), wanted, err_msg=str(sizes))


def feed_forward(x, w1, b1, w2, b2):
    h = relay.nn.bias_add(relay.nn.dense(relay.reshape(x, (-1, 48)), relay.const(w1)), relay.const(b1))
    h = h * relay.sigmoid(h)
    return relay.nn.bias_add(relay.nn.dense(h, relay.const(w2)), relay.const(b2)) + relay.reshape(x, (-1, 48))


def test_rows_of_a_batch_of_sequences():
    weights = [RNG.standard_normal(s).astype("float32") for s in ((80, 48), (80,), (48, 80), (48,))]
    x = relay.var("x", shape=(SizeVar("b"), SizeVar("n"), 48))
    vm = machine(relay.Function([x], feed_forward(x, *weights)), open=True)
    for shape in [(1, 5, 48), (1, 0, 48), (3, 29, 48), (1, 1, 48), (2, 300, 48), (1, 6, 48)]:
        given = RNG.standard_normal(shape).astype("float32")
        got = vm.invoke("main", given).numpy()
        w1, b1, w2, b2, rows = (a.astype("float64") for a in (*weights, given.reshape(-1, 48)))
        h = rows @ w1.T + b1
        np.testing.assert_allclose(got, h / (1 + np.exp(-h)) @ w2.T + b2 + rows, rtol=1e-4, atol=1e-3)
    kernels = {kernel.name for kernel in forms(vm).open.planned.kernels.values()}
    assert not forms(vm).forms and sum(name.startswith("dense_") for name in kernels) == len(kernels) == 2


def test_a_side_that_is_not_laid_out_like_the_rows_is_added_afterwards():
    w, p = (RNG.standard_normal(s).astype("float32") for s in ((40, 8), (1, 40)))
    x, side = (relay.var(name, shape=shape) for name, shape in (("x", (2, SizeVar("n"), 8)), ("side", (2, 1, 40))))
    out = relay.add(relay.nn.matmul(x, relay.const(w.T)), relay.add(side, relay.const(p)))
    vm = machine(relay.Function([x, side], out), open=True)
    for n in (3, 0, 1, 20):
        a, s = (RNG.standard_normal(shape).astype("float32") for shape in ((2, n, 8), (2, 1, 40)))
        np.testing.assert_allclose(vm.invoke("main", a, s).numpy(), a @ w.T + (s + p), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "bool"])
def test_results_of_another_data_type_than_the_sums(dtype):
    """Floats of 16 bits are summed in float32 and stored as what they are; so is any type that a cast gives."""
    narrow = dtype if "float" in dtype and dtype != "float64" else "float32"
    w, b = (RNG.integers(-4, 5, s).astype(narrow) for s in ((40, 8), (40,)))
    x = relay.var("x", shape=(SizeVar("b"), SizeVar("n"), 8), dtype=narrow)
    out = relay.nn.bias_add(relay.nn.dense(relay.reshape(x, (-1, 8)), relay.const(w)), relay.const(b))
    vm = machine(relay.Function([x], relay.nn.relu(out) if narrow == dtype else relay.cast(out, dtype)), open=True)
    for shape in ((1, 1, 8), (3, 19, 8), (2, 0, 8)):
        given = RNG.integers(-4, 5, shape).astype(narrow)
        want = given.reshape(-1, 8).astype("float32") @ w.astype("float32").T + b.astype("float32")
        want = np.maximum(want, 0) if narrow == dtype else want
        np.testing.assert_array_equal(vm.invoke("main", given).numpy(), want.astype(dtype))
    assert any(k.name.startswith("dense_") for k in forms(vm).open.planned.kernels.values())
