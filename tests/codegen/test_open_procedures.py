"""Procedures whose extents are known when they run: one set of kernels for all lengths, next to numpy.

Buffers end before memory that nobody may read, private memory too, and the evaluator of loop programs refuses what
leaves a buffer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from kernel_runner import aligned
from native_group import TARGETS, execute
from test_procedures import floats, hard, scattered, stable_order
from test_specializations import forms, machine

from relaylab import relay
from relaylab.codegen import native_function, specializations
from relaylab.codegen.open import form as open_form
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.operations.generic import lower_checked
from relaylab.ir import OPERATORS
from relaylab.ir.dims import SizeVar
from relaylab.loop.expr import ScalarExpr, Size
from relaylab.loop.parse import parse
from relaylab.loop.procedure import Procedure
from relaylab.loop.program import LoopProgram
from relaylab.loop.program_builder import BufferLayout, ProgramBuilder
from relaylab.loop.run import run
from relaylab.loop.sizes import number_of
from relaylab.support.errors import RelayError

N, M, K = (Size(name, slot) for slot, name in enumerate("nmk"))
RNG = np.random.default_rng(3)
SHORT, EDGES = (0, 1, 3), (127, 128, 129, 256, 257, 300, 2047, 2048, 2500, 4500)


def ordered(x: np.ndarray, axis: int = -1, ascending: bool = True) -> np.ndarray:
    """The sorted elements; NaN is the largest."""
    return np.take_along_axis(x, stable_order(x, axis, ascending), axis)


def first(k: int, ascending: bool) -> Callable:
    def of(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at = stable_order(x, 1, ascending)[:, :k]
        return np.take_along_axis(x, at, 1), at.astype("int32")

    return of


def in_slices(data: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """Slices added one after another; places outside are left out."""
    out = data.copy()
    for at, new in zip(indices[0] + len(data) * (indices[0] < 0), updates):
        if 0 <= at < len(data):
            out[at] += new
    return out


def different(x: np.ndarray) -> tuple[np.ndarray, ...]:
    values, start, classes, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    padded = lambda found: np.concatenate([found, np.zeros(len(x) - len(found), found.dtype)])
    ints = [padded(start), classes, np.array([len(values)]), padded(counts)]
    return padded(values), *(found.astype("int32") for found in ints)


def inverse(x: np.ndarray) -> np.ndarray:
    """The first place that names an index."""
    out = np.zeros_like(x)
    for k in reversed(range(len(x))):
        if 0 <= x[k] < len(x):
            out[x[k]] = k
    return out


def hard_of(dtype: str) -> Callable:
    return lambda *shape: hard(int(np.prod(shape)), dtype).reshape(shape)


def places(*shape: int) -> np.ndarray:
    """Indices inside and outside of up to 12 places."""
    return RNG.integers(-12, 12, shape)


PAIRS = [(0, 2, 0), (2, 0, 3), (1, 1, 1), (7, 3, 5), (33, 9, 40)]
ROWS = [(n, 2, 0) for n in (*SHORT, *EDGES)]
CASES = {
    "sort": ("sort", {}, [(hard_of("float32"), (N,))], [("float32", (N,))], ordered, ROWS),
    "sort64": ("sort", {"axis": 0, "is_ascend": False}, [(hard_of("float64"), (N, M))], [("float64", (N, M))],
               lambda x: ordered(x, 0, False), ROWS[:6]),
    "argsort": ("argsort", {"dtype": "int64"}, [(hard_of("int64"), (M, N))], [("int64", (M, N))],
                lambda x: stable_order(x, 1, True), ROWS),
    "topk": ("topk", {"k": 8}, [(hard_of("float32"), (2, N))], [("float32", (2, 8)), ("int32", (2, 8))],
             first(8, False), [(n, 0, 0) for n in (8, 9, 63, 64, *EDGES)]),
    "topk90": ("topk", {"k": 90, "is_ascend": True}, [(hard_of("float32"), (2, N))],
               [("float32", (2, 90)), ("int32", (2, 90))], first(90, True), [(n, 0, 0) for n in (90, 91, *EDGES[:8])]),
    "experts": ("topk", {"k": 8}, [(floats, (N, 256))], [("float32", (N, 8)), ("int32", (N, 8))], first(8, False),
                [(n, 0, 0) for n in (*SHORT, 40)]),
    "whole": ("topk", {"k": 0}, [(hard_of("int8"), (M, N))], [("int8", (M, N)), ("int32", (M, N))],
              first(10**6, False), ROWS),
    "cumsum": ("cumsum", {"axis": 1}, [(floats, (N, M))], [("float32", (N, M))], lambda x: np.cumsum(x, 1), PAIRS),
    "cumprod": ("cumprod", {"axis": 0}, [(floats, (N, M))], [("float32", (N, M))], lambda x: np.cumprod(x, 0), PAIRS),
    "flat": ("cumsum", {"exclusive": True}, [(floats, (N, M))], [("float32", (N * M,))],
             lambda x: np.cumsum(x) - x.ravel(), PAIRS),
    "scatter": ("scatter", {"axis": 0}, [(floats, (N, M)), (places, (K, M)), (floats, (K, M))], [("float32", (N, M))],
                lambda d, i, u: scattered(d, 0, i, u, False), PAIRS),
    "scatter_add": ("scatter_add", {"axis": 1}, [(floats, (N, M)), (places, (N, K)), (floats, (N, K))],
                    [("float32", (N, M))], lambda d, i, u: scattered(d, 1, i, u, True), PAIRS),
    "scatter_nd": ("scatter_nd", {"mode": "add"}, [(floats, (N, M)), (places, (1, K)), (floats, (K, M))],
                   [("float32", (N, M))], in_slices, PAIRS),
    "unique": ("unique", {"return_counts": True}, [(hard_of("int32"), (N,))],
               [("int32", (N,))] * 3 + [("int32", (1,)), ("int32", (N,))], different, ROWS),
    "inverse": ("invert_permutation", {}, [(places, (N,))], [("int64", (N,))], inverse, ROWS[:5]),
}  # fmt: skip


def layout(dtype: str, shape: tuple) -> BufferLayout:
    return BufferLayout.dense(shape, dtype)


def programs_of(name: str) -> list[LoopProgram]:
    """The programs of a case, over sizes."""
    op, attrs, ins, outs, *_ = CASES[name]
    group = ProgramBuilder(op)
    given = [group.read(f"in{k}", layout(make(1).dtype.name, shape)) for k, (make, shape) in enumerate(ins)]
    results = [group.read(f"out{k}", layout(*spec)) for k, spec in enumerate(outs)]
    procedure = Procedure(group)
    OPERATORS[op].definition(**attrs).procedure(procedure, *results, *given)
    return list(procedure.programs)


def at(shape: tuple, sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(number_of(n, sizes) for n in shape)


def flat(x: np.ndarray) -> np.ndarray:
    held = aligned(x.size, x.dtype.name)
    held[:] = x.ravel()
    return held


def calls(name: str) -> Iterator[tuple[tuple[int, ...], dict[str, np.ndarray], list[np.ndarray]]]:
    """Sizes, flat operands by role, and what the results are."""
    _, _, ins, outs, wanted, lengths = CASES[name]
    for sizes in lengths:
        given = [make(*at(shape, sizes)) for make, shape in ins]
        found = wanted(*given)
        held = {f"in{k}": flat(x) for k, x in enumerate(given)} | {"sizes": np.array(sizes, "int64")}
        held |= {f"out{k}": aligned(math.prod(at(shape, sizes)), dtype) for k, (dtype, shape) in enumerate(outs)}
        yield sizes, held, list(found) if isinstance(found, tuple) else [found]


def held_against(held: dict[str, np.ndarray], wanted: list[np.ndarray], said: str) -> None:
    for k, x in enumerate(wanted):
        np.testing.assert_allclose(held[f"out{k}"], x.ravel(), rtol=1e-5, atol=1e-5, err_msg=said)


def check(name: str, target: CpuTarget) -> None:
    kernels = [lower_checked(p, target) for p in programs_of(name)]
    for sizes, held, wanted in calls(name):
        for kernel in kernels:
            items = kernel.items if kernel.open_items is None else number_of(kernel.open_items, sizes)
            operands = [held[role] for role in kernel.operands if role != "scratch"]
            execute(kernel, target, operands, (0, 0.3, 1), items, number_of(kernel.scratch, sizes))
        held_against(held, wanted, f"{name} {sizes}")


@pytest.mark.parametrize("name", CASES)
def test_one_set_of_kernels_serves_all_lengths(name):
    check(name, CpuTarget.host())


@pytest.mark.parametrize("target", ["avx2", "generic"])
@pytest.mark.parametrize("name", ["topk", "argsort", "scatter_nd"])
def test_other_registers(name, target):
    check(name, CpuTarget.parse(TARGETS[target]))


@pytest.mark.parametrize("name", CASES)
def test_the_evaluator_of_loops_stays_in_buffers(name):
    programs = programs_of(name)
    for sizes, held, wanted in calls(name):
        if max(sizes) > 70:
            continue
        for program in programs:
            memory = {t: held[role] for role, t in program.buffers}
            run(program, memory)
        held_against(held, wanted, f"{name} {sizes}")


@pytest.mark.parametrize("name", CASES)
def test_what_is_printed_is_read_again(name):
    for program in programs_of(name):
        assert str(parse(str(program), verify=False)) == str(program)


def test_private_memory_is_as_long_as_the_sizes_of_a_call_say():
    (program,) = programs_of("sort")
    kernel = lower_checked(program, CpuTarget.host())
    assert isinstance(kernel.scratch, ScalarExpr)
    few, many = (number_of(kernel.scratch, (n,)) for n in (1, 100_001))
    assert few < 60_000 and 2 * 8 * 100_000 <= many - few <= 2 * 8 * 100_000 + 128


# ---- whole programs


@pytest.fixture
def builds(monkeypatch):
    """How often something is compiled."""
    counted = []
    for place, name in [(open_form, "compiled_plan"), (specializations, "build"), (native_function, "compile_main")]:
        plain = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *a, plain=plain, **k: counted.append(1) or plain(*a, **k))
    return counted


def routed(n: SizeVar) -> relay.Function:
    """The best experts of each token and their shares, scattered back to all of them."""
    x = relay.var("x", shape=(n, 32))
    values, at_ = relay.topk(relay.nn.softmax(x), k=4, ret_type="both", dtype="int64")
    zeros = relay.multiply(x, relay.const(0.0))
    return relay.Function([x], relay.Tuple([relay.scatter(zeros, at_, values, axis=1), relay.cumsum(values, axis=0)]))


def test_a_program_with_procedures_is_compiled_once(builds):
    vm = machine(routed(SizeVar("n")), open=True)
    for n in (5, 1, 0, 33, 300, 2):
        x = floats(n, 32)
        dense, sums = vm.invoke("main", x)
        shares = np.exp(x - x.max(1, keepdims=True, initial=-np.inf))
        shares /= shares.sum(1, keepdims=True)
        kept = np.take_along_axis(shares, np.argsort(-shares, 1, kind="stable")[:, :4], 1)
        wanted = np.where(shares >= kept[:, -1:], shares, 0)
        np.testing.assert_allclose(dense.numpy(), wanted, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(sums.numpy(), np.cumsum(kept, 0), rtol=1e-4, atol=1e-5)
    assert len(builds) == 1 and not forms(vm).forms


def test_procedures_in_branches(builds):
    n = SizeVar("n")
    x, rising = relay.var("x", shape=(n,)), relay.var("rising", shape=(), dtype="bool")
    body = relay.If(rising, relay.sort(x), relay.cumsum(relay.sort(x, is_ascend=False), axis=0))
    vm = machine(relay.Function([x, rising], body), open=True)
    for n in (5, 0, 1, 300, 7):
        values = floats(n)
        np.testing.assert_array_equal(vm.invoke("main", values, np.array(True)).numpy(), np.sort(values))
        falling = np.cumsum(np.sort(values)[::-1])
        np.testing.assert_allclose(vm.invoke("main", values, np.array(False)).numpy(), falling, rtol=1e-4, atol=1e-4)
    assert len(builds) == 2 and not forms(vm).forms and forms(vm).flows


def test_sizes_that_an_operator_refuses_are_its_error():
    n = SizeVar("n")
    x = relay.var("x", shape=(2, n))
    main = relay.Function([x], relay.topk(x, k=8, ret_type="values"))
    vm = machine(main, open=True)
    assert vm.invoke("main", floats(2, 9)).shape == (2, 8)
    with pytest.raises(RelayError) as told:
        machine(main).invoke("main", floats(2, 7))
    with pytest.raises(RelayError, match="topk gave") as found:
        vm.invoke("main", floats(2, 7))
    assert found.value.code == told.value.code and found.value.message == told.value.message
    assert vm.invoke("main", floats(2, 8)).shape == (2, 8)


def test_sizes_that_must_agree_are_asked_at_each_call():
    """Indices and updates whose types say different names may be alike at run time, or not."""
    n, m, k = (SizeVar(name) for name in "nmk")
    data, at_, new = relay.var("d", shape=(n,)), relay.var("i", shape=(m,), dtype="int64"), relay.var("u", shape=(k,))
    vm = machine(relay.Function([data, at_, new], relay.scatter(data, at_, new, axis=0)), open=True)
    x, where, y = floats(9), RNG.integers(0, 9, 4), floats(4)
    np.testing.assert_array_equal(vm.invoke("main", x, where, y).numpy(), scattered(x, 0, where, y, False))
    with pytest.raises(RelayError, match="scatter failed"):
        vm.invoke("main", x, where, y[:3])
    np.testing.assert_array_equal(vm.invoke("main", x, where, y).numpy(), scattered(x, 0, where, y, False))
    assert forms(vm).open is not None
