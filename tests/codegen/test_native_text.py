"""The IR builder: folded indices, one instruction per value, structured control flow, constants, debug lines."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import Runner, aligned, framed, runnable_targets
from support.verifier import verify

from relaylab.codegen.llvm.debug_lines import assembly_parts, with_debug_lines
from relaylab.codegen.llvm.text import IRFunction, constant, literal_vector, tail_mask, vector
from relaylab.codegen.llvm.jit import emit_assembly
from relaylab.codegen.kernels.kernel import Kernel, module_text
from relaylab.codegen.isa.target import CpuTarget

HOST = CpuTarget.host()


def run(build, out: int = 16, inputs: tuple[np.ndarray, ...] = (), items: int = 1) -> np.ndarray:
    """What `build(f, out pointer, *input pointers)` leaves in an int64 buffer."""
    roles = ("out0", *(f"in{k}" for k in range(len(inputs))))
    f = IRFunction("k", len(roles))
    build(f, *f.pointers)
    text, declares = f.finish()
    result = aligned(out, "int64")
    Runner(Kernel("k", text, declares, roles, items), HOST).run({"out0": result, **dict(zip(roles[1:], inputs))})
    return result


def test_index_arithmetic_folds_and_agrees_with_python():
    f = IRFunction("k", 1)
    assert f.add(f.mul(f.sub(f.add(f.begin, 7), f.begin), 3), 1) == 22
    assert f.div(f.add(f.mul(f.end, 12), 24), 6).terms == {f.end: 2}
    assert f.rem(f.mul(f.end, 6), 3) == 0 and f.minimum(3, 9) == 3 and f.mul(f.begin, 0) == 0

    def build(f, out):
        def body(i):
            values = (
                f.add(f.mul(i, 5), 3),
                f.div(f.add(i, 9), 4),
                f.rem(f.add(i, 9), 4),
                f.minimum(i, 2),
                f.mul(i, f.add(i, 1)),
                f.sub(10, f.mul(i, 2)),
                f.maximum(f.sub(i, 2), 1),
            )
            for k, value in enumerate(values):
                f.store(f.value(value), f.offset(out, f.add(f.mul(i, 64), 8 * k)), 8)

        f.loop(0, 4, body)

    want = [[i * 5 + 3, (i + 9) // 4, (i + 9) % 4, min(i, 2), i * (i + 1), 10 - 2 * i, max(i - 2, 1)] for i in range(4)]
    assert run(build, 32).reshape(4, 8)[:, :7].tolist() == want


@pytest.mark.parametrize("bounds", [(0, 0, 1), (0, 1, 1), (2, 9, 1), (0, 10, 3), (5, 2, 1)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_loops_turn_as_often_as_range(bounds, dynamic):
    low, high, step = bounds

    def build(f, out):
        first, last = (f.add(f.begin, low), f.add(f.begin, high)) if dynamic else (low, high)
        body = lambda i, total, turns: (f.value(f.add(total, i)), f.value(f.add(turns, 1)))
        zero = constant("i64", 0)
        for k, value in enumerate(f.loop(first, last, body, (zero, zero), step)):
            f.store(value, f.offset(out, 8 * k), 8)

    assert run(build)[:2].tolist() == [sum(range(low, high, step)), len(range(low, high, step))]


def test_branches_join_values():
    def build(f, out):
        def body(i):
            big = f.compare("sgt", i, 1)
            (value,) = f.branch(big, lambda: f.value(f.mul(i, 10)), lambda: f.value(f.add(i, 100)))
            f.store(value, f.offset(out, f.mul(i, 8)), 8)
            f.branch(f.compare("eq", i, 3), lambda: f.store(constant("i64", -1), f.offset(out, 64), 8))

        f.loop(0, 4, body)

    assert run(build)[:9].tolist() == [100, 101, 20, 30, 0, 0, 0, 0, -1]


def test_pure_instructions_are_shared_within_their_scope_only():
    f = IRFunction("k", 1)
    first = f.value(f.mul(f.begin, 7))
    assert f.value(f.mul(f.begin, 7)) is first
    inside = []
    f.branch(f.compare("slt", f.begin, 3), lambda: inside.append(f.value(f.mul(f.begin, 9))))
    assert f.value(f.mul(f.begin, 9)) is not inside[0]


@pytest.mark.parametrize(
    "type,number,spelling",
    [
        ("float", -0.0, "0x8000000000000000"),
        ("float", 0.0, "0x0000000000000000"),
        ("float", 1e39, "0x7FF0000000000000"),
        ("double", 0.1, "0x3FB999999999999A"),
        ("i1", True, "true"),
        ("float", 0.1, "0x3FB99999A0000000"),
        ("i8", -3, "-3"),
    ],
)
def test_constants(type, number, spelling):
    assert constant(type, number).ref == spelling


def test_vectors_masks_gathers_and_reductions():
    data = aligned(64)
    data[:] = np.arange(64)

    def build(f, out, x):
        wide = vector("float", 8)
        loaded = f.load(wide, f.offset(x, 16), mask=tail_mask(3, 8))
        gathered = f.gather(wide, x, literal_vector("i32", range(8)), 12)
        dynamic = f.load(wide, x, mask=f.dynamic_mask(f.end, 8))
        for k, v in enumerate((loaded, gathered, dynamic)):
            f.store(f.cast("fptosi", f.sum(v), "i64"), f.offset(out, 8 * k), 8)
        picked = f.shuffle(loaded, gathered, [9, 0, 15, 1])
        f.store(f.cast("fptosi", picked, "<4 x i64>"), f.offset(out, 64), 8)
        f.store(literal_vector("i64", (5, -6)), f.offset(out, 96), 8)

    got = run(build, inputs=(data,), items=2).tolist()
    assert got[:3] == [4 + 5 + 6, 3 * 28, 0 + 1] and got[8:14] == [3, 4, 21, 5, 5, -6]


def test_debug_lines_reach_the_assembly():
    f = IRFunction("k", 2)
    x, out = f.pointers
    value = f.load("float", x)
    f.at(4)
    value = f.binary("fdiv", value, 3.0)
    f.at(0)
    f.store(value, out)
    text, declares = f.finish()
    module = with_debug_lines(module_text([Kernel("k", text, declares, ("in0", "out0"), 1)]))
    verify(module, HOST)
    parts = assembly_parts(emit_assembly(module, HOST))
    assert {part for function, line, part in parts if "div" in line} == {4}
    assert {part for _, line, part in parts} == {0, 4} and {name for name, _, _ in parts} == {"k"}


def test_views():
    padded = framed((1, 4, 5, 3), ((0, 0), (1, 2), (1, 1), (0, 0)))
    assert padded.strides == (7 * 7 * 3, 21, 3, 1) and padded.offset == 24 and padded.halo_of(1) == (1, 2)
    assert padded.bytes == 60 * 4


def test_equal_kernels_have_equal_names():
    make = lambda n: Kernel("k", f"define void @k(i64 %x) #0 {{ ret void }} ; {n}", frozenset(), (), 1).by_content("p")
    assert make(1) == make(1) and make(1).name != make(2).name and f"@{make(1).name}(" in make(1).text


def test_runnable_targets_end_with_the_host():
    assert runnable_targets()[-1] == HOST.isa
