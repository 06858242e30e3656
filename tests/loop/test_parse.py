"""Loop programs as text and back: the same text, numbers and LLVM text; wrong texts are refused with their place."""

from __future__ import annotations

import numpy as np
import pytest
from schedule_cases import KERNELS, plain, random_schedule

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.kernels.views import laid_out
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates import STRASSEN, ConvSpec, Epilogue, GemmSpec
from relaylab.codegen.templates.product_family import contraction_program
from relaylab.codegen.templates.depthwise import depthwise_program
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.codegen.templates.minimal import Filtering
from relaylab.codegen.templates.winograd import winograd_shape
from relaylab.codegen.templates.winograd_kernel import winograd_programs
from relaylab.loop import Const, LoopProgram, OutSpec, Tensor, parse, run
from relaylab.loop.expr import INDEX, Axis, Size, axis_over
from relaylab.loop.program import For, LoopNest, Prefetch, Store
from relaylab.loop.program_builder import BufferLayout, ProgramBuilder
from relaylab.support.errors import DiagnosticError, RelayTypeError

CPU = CpuTarget.parse("llvm -mcpu=x86-64-v3")
dense = MemoryView.dense


def code(program: LoopProgram) -> str:
    """The LLVM text without remarks on which operator an instruction is of: text does not say that."""
    return "\n".join(line for line in lower_program(program, CPU).text.splitlines() if not line.startswith("  ; @"))


def evaluated(program: LoopProgram) -> list[np.ndarray]:
    """The arrays of all operands after a run."""
    rng, memory = np.random.default_rng(1), dict[Tensor, np.ndarray]()
    for role, tensor in program.buffers:
        numbers = rng.integers(-4, 5, tensor.shape[0])
        memory[tensor] = (numbers * (not role.startswith("out"))).astype(tensor.dtype)
    run(program, memory)
    return list(memory.values())


def check(program: LoopProgram) -> None:
    """The text says all of a program."""
    text = str(program)
    again = parse(text)
    assert str(again) == text and code(again) == code(program)
    for got, want in zip(evaluated(again), evaluated(program), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", KERNELS)
def test_random_schedules_are_read_as_they_are_written(name: str) -> None:
    program = plain(name)[0]
    check(program)
    for seed in range(6):
        check(random_schedule(program, seed)[1])


def templates() -> dict[str, LoopProgram]:
    """Programs of every template, small."""
    gemm = GemmSpec(dense((1, 7, 6)), dense((1, 6, 20)), dense((1, 7, 20)))
    halves = GemmSpec(dense((1, 2, 2)), dense((1, 2, 32)), dense((1, 2, 32)))
    padded = laid_out((1, 8, 8, 5), "float32", range(4), ((0, 0), (1, 1), (1, 1), (0, 0)))
    depthwise = ConvSpec(padded, dense((1, 8, 8, 5)), (3, 3), (1, 1), (1, 1), (1, 1), 5)
    minimal = ConvSpec(padded, dense((1, 8, 8, 9)), (3, 3), (1, 1), (1, 1), (1, 1))
    none = Epilogue()
    return {
        "gemm": contraction_program("kernel", [gemm_problem(gemm)], CPU, none, gemm.roles),
        "depthwise": depthwise_program(depthwise, CPU, none),
        "winograd": winograd_programs(minimal, winograd_shape(minimal, Filtering(2, 3)), CPU, none)[0],
        "strassen": contraction_program("kernel", [gemm_problem(halves)], CPU, none, halves.roles, STRASSEN),
    }


@pytest.mark.parametrize("name", ["gemm", "depthwise", "winograd", "strassen"])
def test_templates_are_read_as_they_are_written(name: str) -> None:
    check(templates()[name])


def stored(value: Const | Axis | Size, axis: Axis, *sizes: int) -> LoopProgram:
    out = Tensor("out0", (8,), value.dtype)
    buffers = (("out0", out), *(("sizes", Tensor("sizes", (n,), INDEX)) for n in sizes))
    return LoopProgram("stored", buffers, (), (LoopNest(For(axis, "serial", (Store(out, Const(0, INDEX), value),))),))


@pytest.mark.parametrize(
    "value, dtype",
    [
        (3, "int8"), (-(2**63), "int64"), (2**64 - 1, "uint64"), (True, "bool"), (-0.0, "float32"), (0.1, "float64"),
        (1e300, "float64"), (-float("inf"), "float64"), (float("inf"), "float32"), (float("nan"), "float32"),
        (65504.0, "float16"), (0.5, "bfloat16"), (float("nan"), "float16"), (1e-45, "float32"), (-7, "int32"),
    ],
)  # fmt: skip
def test_constants_keep_their_dtype(value: float, dtype: str) -> None:
    again = parse(str(stored(Const(value, dtype), Axis("i", 1))))
    (store,) = again.nests[0].loop.body
    assert isinstance(store, Store) and isinstance(store.value, Const) and store.value.dtype == dtype
    assert np.asarray(store.value.value, dtype).tobytes() == np.asarray(value, dtype).tobytes()


def test_sizes_keep_their_names_and_slots() -> None:
    program = stored(Size("2*n + 1", 3), axis_over("i", Size("2*n + 1", 3)), 4)  # type: ignore[arg-type]
    assert "sizes $`2*n + 1`=3" in str(program)
    again = parse(str(program))
    size = again.nests[0].loop.axis.size
    assert str(again) == str(program) and isinstance(size, Size) and (size.name, size.slot) == ("2*n + 1", 3)
    assert again.nests[0].loop.axis.extent == program.nests[0].loop.axis.extent and again.items is size


def test_long_shared_expressions_are_whole() -> None:
    group = ProgramBuilder("diamond")
    value = group.read("in0", BufferLayout.dense((8,), "float32"))
    for _ in range(40):
        value = group.compute(OutSpec((8,), "float32"), lambda b, o, i, x: b.tanh(x(*i) * 0.4 + x(*i) * 0.3), [value])
    group.write("out0", value, BufferLayout.dense((8,), "float32"))
    program = group.program()
    assert "$0 = " in str(program) and "..." not in str(program)
    check(program)


HEAD = "kernel k(x: in0 float32[8], y: out0 float32[8])\n"
BODY = HEAD + "  parallel i in 8:\n    "
WRONG = {
    "": "1:1 there is no kernel",
    "loops": "1:1 expected `kernel`, found `loops`",
    "kernel k(x: in0 float31[8])": "1:17 no dtype `float31`",
    "kernel k(x: in0 float32[8], x: out0 float32[8])": "1:29 there is a buffer `x` already",
    "kernel k(x: in0 float32[8]": "1:27 expected `,`, found the end of the line",
    HEAD + "  parallel i in 8": "2:18 expected `:`",
    HEAD + "  for i in 8:": "2:3 `for` cannot stand directly in a kernel",
    HEAD + "  parallel i in i:": "2:17 no loop or register `i`",
    HEAD + "  parallel i in -1:": "2:17 a loop has 0 to",
    HEAD + "parallel i in 8:": "2:1 a line of no kernel",
    HEAD.replace("\n", " items=7\n") + "  parallel i in 8:\n    y[i] = x[i]": "1:55 the loops make 8 items",
    BODY + "y[i] = z[i]": "3:12 there is no buffer `z`",
    BODY + "y[i] = x[j]": "3:14 no loop or register `j`",
    BODY + "y[i] = x[i, i]": "3:12 `x` takes 1 index, not 2",
    BODY + "y[i, i] = x[i]": "3:8 expected `]`, found `,`",
    BODY + "y[i] = x[i] + 1": "3:17 must have one dtype",
    BODY + "y[i] = i": "3:12 expected a value of float32, this is int64",
    BODY + "y[i] = 300u8": "3:12 300 is not a value of uint8",
    BODY + "y[i] = 0.5": "3:12 `0.5` is no number of a dtype",
    BODY + "y[i] = 1e99f": "3:12 more than float32 has",
    BODY + "y[i] = (x[i]": "3:17 expected `)` for",
    BODY + "y[i] = x[i])": "3:16 expected the end of the line",
    BODY + "y[i] = x[i] * ": "3:19 expected an expression",
    BODY + "y[i] = soft(x[i])": "3:12 there is no function `soft`",
    BODY + "y[i] = exp(x[i], x[i])": "3:12 `exp` takes 1 argument, not 2",
    BODY + "y[i] = __import__(x[i])": "3:12 there is no function",
    BODY + "y[i] = x[i]...": "3:16 the text is cut here",
    BODY + "y[i] = x[i] @ x[i]": "3:17 `@` is no part",
    BODY + "y[i] = $0": "3:13 `$0` is not written above",
    BODY + "y[i] = x[i]\n     y[i] = x[i]": "4:6 this begins after 5 spaces",
    BODY + "else:\n      y[i] = x[i]": "3:5 `else` of no `if`",
    BODY + "s += 1f": "3:5 there is no register `s`",
    BODY + "for for in 3:": "3:9 a word of the language",
    BODY + "for j in 3 to 2 vectorized:": "3:16 only a serial loop",
    BODY + "for j in 3 vectorized x0:": "3:27 expected `:`, found `x0`",
    BODY + "for j in 4 vectorized:\n      for k in 2 vectorized:": "4:11 cannot both be lanes",
    BODY + "y[i] = x[i + 1]": "3:5 not proven to stay in its buffer: `x` of extent 8 at i + 1 (1 .. 8)",
    BODY + "y[i - 1] = x[i]": "3:5 not proven to stay in its buffer: `y`",
    BODY + "y[i] = " + "(" * 50_000: "expected an expression",
    BODY + "y[i] = x[i]" + ")" * 50_000: "expected the end of the line",
    BODY + "y[i] = 1" + "0" * 50_000 + "f": "no number of a dtype",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_said_with_its_place(text: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse(text)
    where, _, message = WRONG[text].partition(" ") if WRONG[text][0].isdigit() else ("", "", WRONG[text])
    assert caught.value.code == "loop.parse" and message in caught.value.message
    assert f"loops:{where}" in caught.value.place


def test_no_text_is_no_program() -> None:
    with pytest.raises(RelayTypeError, match="loops are text, not an int"):
        parse(5)  # type: ignore[arg-type]


def test_depth_is_no_limit() -> None:
    deep = BODY + "y[i] = " + "tanh(" * 20_000 + "x[i]" + ")" * 20_000
    assert "$1 = " in str(parse(deep)) and str(parse(str(parse(deep)))) == str(parse(deep))
    loops = "".join(f"{' ' * (k + 4)}for k{k} in 1:\n" for k in range(2_000))
    assert len(str(parse(HEAD + "  parallel i in 8:\n" + loops)).splitlines()) == 2_002


def test_an_edited_program_is_another_one() -> None:
    program = parse(BODY + "y[i] = x[i] * 2f  # twice")
    x, y = (t for _, t in program.buffers)
    out = np.zeros(8, "float32")
    run(program, {x: np.arange(8, dtype="float32"), y: out})
    np.testing.assert_array_equal(out, 2 * np.arange(8))
    assert str(parse(BODY + "y[i] = x[i + 1]", verify=False).items) == "8"


@pytest.mark.parametrize("name", ["x", "near"])
def test_a_prefetch_says_how_near_its_line_comes(name: str) -> None:
    x, out = Tensor(name, (64,), "float32"), Tensor("out0", (4,), "float32")
    i = Axis("i", 4)
    body = (Prefetch(x, i * 16), Prefetch(x, i * 16, near=True), Store(out, i, Const(1.0, "float32")))
    program = LoopProgram("k", ((name, x), ("out0", out)), (), (LoopNest(For(i, "serial", body)),))
    check(program)
    assert f"prefetch {name}[" in str(program) and f"prefetch near {name}[" in str(program)
    asked = [line.split("i32 ", 1)[1][:8] for line in code(program).splitlines() if "call void @llvm.prefetch" in line]
    assert asked == ["0, i32 2", "0, i32 3"]
