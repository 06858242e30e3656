"""Scheduled loop programs as machine code: random schedules give the numbers of the loop evaluator."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from kernel_runner import TARGETS, Runner, aligned, runnable_targets

from test_tile_loops import CASES, evaluated, filled

from relaylab import relay, study
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates import Epilogue
from relaylab.loop.expr import Axis, Load, Tensor, apply, as_index
from relaylab.loop.program import For, IfThenElse, LoopNest, LoopProgram, Store
from relaylab.loop.schedule import Schedule
from relaylab.loop.schedule.tree import unique
from relaylab.loop.verify import unproven
from relaylab.support.errors import RelayError

sys.path.append(str(Path(__file__).resolve().parents[1] / "loop"))
from schedule_cases import KERNELS, loops, plain, random_schedule  # noqa: E402


def native(program, arrays, want, target, splits=1):
    """What the machine code of a program gives."""
    buffers = {}
    for (role, _), x in zip(program.buffers, (*arrays, np.zeros_like(want))):
        buffers[role] = aligned(max(x.size, 1), x.dtype)
        buffers[role][: x.size] = x.ravel()
    Runner(lower_program(program, target), target).run(buffers, splits)
    return buffers["out0"][: want.size].reshape(want.shape)


@pytest.mark.parametrize("isa", runnable_targets())
@pytest.mark.parametrize("name", KERNELS)
def test_random_schedules(name, isa):
    program, arrays, want = plain(name)
    for seed in range(100, 112):
        schedule, after, _ = random_schedule(program, seed)
        got = native(after, arrays, want, TARGETS[isa], splits=1 + seed % 3)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=f"seed {seed}\n{schedule}\n{after}")


TILES = """
split i0 {rows} as io ii
split i1 {columns} as jo ji
reorder jo io ii ji
fission ji ii
reorder k ii ji
pack in1 jo k ji
vectorize ji ji_init ji_out ji_pack
unroll ii ii_init ii_out
registers sum0
parallel jo
"""


@pytest.mark.parametrize("isa", runnable_targets())
@pytest.mark.parametrize("rows, columns", [(6, 16), (4, 8), (12, 4), (1, 32), (3, 32)])
def test_tiles_of_registers(rows, columns, isa):
    """Whole vectors, parts of one, several side by side."""
    program, arrays, want = plain("matmul")
    tiled = Schedule.parse(TILES.format(rows=rows, columns=columns)).apply(program)
    got = native(tiled, arrays, want, TARGETS[isa], splits=2)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_sums_in_registers_are_carried_by_the_loop():
    """The reduction's loop holds the sums as values, not as loads and stores."""
    program, _, _ = plain("matmul")
    tiled = Schedule.parse(TILES.format(rows=4, columns=16)).apply(program)
    text = lower_program(tiled, TARGETS["avx512"]).text
    assert text.count("phi <16 x float>") == 4 and "alloca" not in text


def opened(program):
    """Picked loops whose sums lie in memory and whose loops all run turn by turn: most steps may be taken."""
    buffers = " ".join(t.name for t in program.registers)
    marked = " ".join(loop.axis.name for loop in loops(program) if loop.kind != "serial")
    return Schedule.parse(f"memory {buffers}\nserial {marked}").apply(program)


FEW_STEPS = ("deep panels", "depthwise, rows of tiles")  # too large, or random steps are all refused
PICKED = [pytest.param(c, unique, marks=[pytest.mark.slow] * (c != "one row")) for c in CASES if c not in FEW_STEPS]


@pytest.mark.parametrize(
    ("case", "start"),
    [*PICKED, pytest.param("two inputs", lambda p: opened(unique(p)), marks=[pytest.mark.slow], id="opened")],
)
def test_random_steps_on_the_loops_that_the_compiler_picks(case, start):
    """Conditions, registers, panels: refused, or equal in the evaluator and as machine code."""
    _, _, write = CASES[case]()
    target = TARGETS[runnable_targets()[-1]]
    program = start(write(target, Epilogue()))
    operands = filled(program)
    want, taken = evaluated(program, operands), 0
    for seed in range(4):
        schedule, after, _ = random_schedule(program, seed, steps=6)
        taken += len(schedule.steps)
        words = f"seed {seed}\n{schedule}\n{after}"
        assert unproven(after) is None, words
        np.testing.assert_array_equal(evaluated(after, operands), want, err_msg=words)
        given = operands | {"out0": np.zeros_like(operands["out0"])}
        Runner(lower_program(after, target, tiles=True), target).run(given, 1 + seed % 4)
        np.testing.assert_array_equal(given["out0"], want, err_msg=words)
    assert taken


def test_a_buffer_that_is_filled_in_each_turn_that_is_written_out_is_read_anew():
    """Depthwise rows of pixels in memory: the second row of the kernel had the pixels of the first."""
    _, _, write = CASES["depthwise"]()
    target = TARGETS[runnable_targets()[-1]]
    program = write(target, Epilogue())
    operands = filled(program)
    after = Schedule.parse("memory x").apply(unique(program))
    given = operands | {"out0": np.zeros_like(operands["out0"])}
    Runner(lower_program(after, target, tiles=True), target).run(given, 1)
    np.testing.assert_array_equal(given["out0"], evaluated(program, operands))


CHOSEN = [
    "from picked",
    "from picked rows=3 vectors=2 unroll=2 tiles=2 panels=2 outer=tiles",
    "from picked rows=2x3 vectors=1 panels=1 outer=panels prefetch=1",
    "from picked minimal=0\nprefetch in0 k 2",
]


def program_of(name):
    """A convolution or a product with its constant, and torch's result for the input that studies take."""
    rng = np.random.default_rng(3)
    if name == "conv2d":
        x, w = relay.var("x", shape=(1, 8, 9, 9)), relay.const(rng.standard_normal((20, 8, 3, 3)).astype("float32"))
        body = relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1)))
    else:
        x, w = relay.var("x", shape=(21, 24)), relay.const(rng.standard_normal((24, 50)).astype("float32"))
        body = relay.nn.relu(relay.nn.matmul(x, w))
    return study.Program(name, relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], body))))


@pytest.mark.parametrize("name", ["conv2d", "matmul"])
@pytest.mark.parametrize("steps", CHOSEN)
def test_schedules_begin_with_the_picked_loops(name, steps):
    trial = study.schedule(program_of(name), name, steps)
    assert "registers acc" in trial.loops and trial.error < 1e-5
    if "rows=3" in steps:
        lanes = {"avx512": 16, "avx2": 8, "generic": 4}[runnable_targets()[-1]]
        assert f"acc: float32[{3 * 2 * lanes}]" in trial.loops.replace("acc_2", "acc").replace("acc_3", "acc")


def test_a_depthwise_convolution_has_the_choice_of_its_pixels():
    x, w = relay.var("x", shape=(1, 20, 9, 11)), relay.const(np.ones((20, 1, 3, 3), "float32"))
    body = relay.Function([x], relay.nn.conv2d(x, w, padding=(1, 1), groups=20, channels=20, kernel_size=(3, 3)))
    program = study.Program("depthwise", relay.transform.InferType()(relay.IRModule.from_expr(body)))
    trial = study.schedule(program, "conv2d", "from picked rows=3")
    assert trial.error < 1e-6 and "in 3 unrolled" in trial.loops and "registers x" in trial.loops
    wrong = {"vectors=2": "has no choice `vectors`", "rows=2x3": "no choice `high`"}
    for steps, words in wrong.items():
        with pytest.raises(RelayError, match=words):
            study.schedule(program, "conv2d", f"from picked {steps}")


@pytest.mark.parametrize("steps", ["from picked", "from picked rows=3 vectors=1\nprefetch in0 k 1"])
@pytest.mark.parametrize("name", ["conv2d", "conv2d_transpose"])
def test_what_lays_an_input_out_stays_before_the_picked_loops(name, steps):
    """The steps are those of the kernel that reads the input: its loops alone are shown, and can be written out."""
    shape = (20, 8, 3, 3) if name == "conv2d" else (8, 20, 3, 3)
    x, w = relay.var("x", shape=(1, 8, 9, 9)), relay.var("w", shape=shape)
    body = relay.Function([x, w], relay.nn.relu(getattr(relay.nn, name)(x, w, channels=20, kernel_size=(3, 3))))
    program = study.Program(name, relay.transform.InferType()(relay.IRModule.from_expr(body)))
    trial = study.schedule(program, name, steps)
    assert (
        trial.error < 1e-5 and trial.loops.count("kernel ") == 1 and ("prefetch in0" in trial.loops) == ("3" in steps)
    )
    assert trial.scheduled.linked(name)[0].kernel.name.startswith("pack")
    if steps == "from picked":
        assert study.schedule(program, name, trial.loops).loops == trial.loops


REFUSED = {
    "from nowhere": "there are no `nowhere` loops",
    "from plain rows=2": "plain loops have no choice `rows=2`",
    "from picked row=2": "did you mean `rows`?",
    "from picked rows=0": "`rows` is a number from 1 to 64, not `0`",
    "from picked rows=1x2x3": "`rows` is a number from 1 to 64",
    "from picked outer=3": "`outer` is tiles or panels",
    "from picked rows=21 vectors=16": "a loop would contain",
    "split i0 3\nfrom picked": "stands first or not at all",
    "from picked\nsplit item 5": "5 does not divide",
    "from picked\nserial q": "lives in registers, at places that `q` gives",
}


@pytest.mark.parametrize("steps", REFUSED)
def test_what_cannot_be_chosen_says_why(steps):
    with pytest.raises(RelayError) as error:
        study.schedule(program_of("matmul"), "matmul", steps)
    assert REFUSED[steps] in str(error.value) and "-->" in error.value.place


def test_what_is_no_kernel_and_no_schedule_is_said():
    for wrong in ((3, ""), ("matmul", None), ("matmul", ["split i0 3"])):
        with pytest.raises(RelayError, match="must be a text"):
            study.schedule(program_of("matmul"), *wrong)


def test_only_products_and_convolutions_have_choices():
    x = relay.var("x", shape=(4, 8))
    program = study.Program("sum", relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], x + x))))
    assert study.schedule(program, "add", "from picked").error == 0
    with pytest.raises(RelayError, match="only products and convolutions have choices"):
        study.schedule(program, "add", "from picked rows=2")


@pytest.mark.parametrize("within", ["loop", "if", "turn"])
def test_registers_first_written_in_a_loop_or_an_if_are_not_read_around_it(within):
    """What a turn wrote is not known in the next one, nor after the loop."""
    x, y, acc = Tensor("x", (8,), "float32"), Tensor("y", (8,), "float32"), Tensor("acc", (1,), "float32")
    i, once, zero = Axis("i", 8), Axis("once", 1), as_index(0)
    write, read = Store(acc, zero, Load(x, (i if within != "if" else zero,))), Store(y, zero, Load(acc, (zero,)))
    body = {
        "loop": (For(i, "serial", (write,)), read),
        "if": (IfThenElse(apply("lt", Load(x, (zero,)), 1.0), (write,)), read),
        "turn": (For(i, "serial", (read, write)),),
    }[within]
    nest = LoopNest(For(once, "serial", body))
    program = LoopProgram("first", (("x", x), ("y", y)), (), (nest,), (acc,))
    with pytest.raises(RelayError, match=r"`acc\[0\]` is read where it is not known to have been written") as told:
        lower_program(program, TARGETS[runnable_targets()[-1]])
    assert told.value.code == "codegen.registers"
