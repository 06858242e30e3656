"""Which turns may change places: held against what running both orders gives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from relaylab.loop.expr import Axis, Const, Load, Local, Tensor, apply, as_index
from relaylab.loop.parse import parse
from relaylab.loop.program import Accumulate, Define, For, IfThenElse, LoopNest, LoopProgram, Store, statements
from relaylab.loop.run import run
from relaylab.loop.schedule import Schedule
from relaylab.loop.schedule.tree import loops
from relaylab.loop.verify import unproven
from relaylab.support.errors import RelayError

N = 5
X, Y = Tensor("x", (4 * N * 4 * N,), "int64"), Tensor("y", (4 * N * 4 * N,), "int64")


def program(*body, scratch=(), known=frozenset()):
    once = For(Axis("once", 1), "serial", tuple(body))
    return LoopProgram("test", (("x", X), ("y", Y)), tuple(scratch), (LoopNest(once),), (), (), known)


def numbers(loops):
    """What is in the buffers after a run."""
    start = {t: np.arange(t.shape[0], dtype="int64") * 7919 % 1009 for t in (X, Y)}
    run(loops, start)
    return np.concatenate([start[X], start[Y]])


def at(i, j):
    return as_index(i) * (4 * N) + j


def grid(distance, axes=None):
    """`x[i + di, j + dj] = 3 x[i, j] + 1` around the middle of a square."""
    i, j = axes or (Axis("i", N), Axis("j", N))
    value = Load(X, (at(i + N, j + N),)) * 3 + 1
    store = Store(X, at(i + N + distance[0], j + N + distance[1]), value)
    return program(For(i, "serial", (For(j, "serial", (store,)),)))


@pytest.mark.parametrize("distance", itertools.product(range(-2, 3), repeat=2))
def test_a_reorder_is_legal_when_no_direction_vector_turns_around(distance):
    """Allen and Kennedy: of a distance of whole numbers, only (+, -) and (-, +) forbid to interchange two loops."""
    before = grid(distance)
    try:
        after = Schedule.parse("reorder j i").apply(before)
    except RelayError as error:
        assert error.code == "schedule.illegal" and "in different turns of" in str(error)
        assert distance[0] * distance[1] < 0
        return
    assert distance[0] * distance[1] >= 0
    np.testing.assert_array_equal(numbers(after), numbers(before))


@pytest.mark.parametrize("distance", [(0, 0), (1, 0), (0, 1), (2, -1)])
def test_turns_at_the_same_time(distance):
    """What a turn hands to another one of a loop forbids them to run together: (0, 1) only those of the inner loop."""
    before = grid(distance)
    legal = {"vectorize j": distance[0] != 0, "parallel i": distance[0] == 0, "fuse i j as u\nparallel u": False}
    for steps, may in legal.items():
        if may or distance == (0, 0):
            np.testing.assert_array_equal(numbers(Schedule.parse(steps).apply(before)), numbers(before))
        else:
            with pytest.raises(RelayError, match="in different turns of"):
                Schedule.parse(steps).apply(before)


TOGETHER = ("parallel u", "vectorize u")
INTERCHANGED = "split u 4 as a c\nreorder c a"
QUOTIENTS = {
    "u // 4 and u % 4": (lambda u: u // 4 * 20 + u % 4, (*TOGETHER, INTERCHANGED)),
    "u % 4 and u // 4": (lambda u: u % 4 * 5 + u // 4, (*TOGETHER, INTERCHANGED)),
    "u // 2": (lambda u: u // 2, (INTERCHANGED,)),  # whose last writer stays the last
    "u % 10": (lambda u: u % 10, ()),
    "u // 3, which does not divide the turns": (lambda u: u // 3 * 4 + u % 3, (*TOGETHER, INTERCHANGED)),
    "two quotients": (lambda u: u // 2 % 5 * 4 + u % 2 + u // 10 * 2, (*TOGETHER, INTERCHANGED)),
}


@pytest.mark.parametrize("step", [*TOGETHER, INTERCHANGED])
@pytest.mark.parametrize("name", QUOTIENTS)
def test_quotients_and_remainders_are_seen_through(name, step):
    where, legal = QUOTIENTS[name]
    u = Axis("u", 20)
    before = program(For(u, "serial", (Store(Y, where(u), Load(X, (u + 0,))),)))
    if step in legal:
        np.testing.assert_array_equal(numbers(Schedule.parse(step).apply(before)), numbers(before))
    else:
        with pytest.raises(RelayError, match="several turns of"):
            Schedule.parse(step).apply(before)


def test_parts_may_be_joined_and_parted_when_nothing_comes_too_early():
    for shift in (-1, 0, 1):  # of what is read
        i = Axis("i", N)
        both = (Store(X, i + 5, Load(Y, (i + 0,))), Store(Y, i + 30, Load(X, (i + (5 + shift),))))
        before = program(For(i, "serial", both))
        if shift > 0:  # the second part reads what the first one would have overwritten a turn later
            with pytest.raises(RelayError, match="in different turns of `i`"):
                Schedule.parse("fission i").apply(before)
            continue
        parted = Schedule.parse("fission i").apply(before)
        np.testing.assert_array_equal(numbers(parted), numbers(before))
        np.testing.assert_array_equal(numbers(Schedule.parse("join i i_out").apply(parted)), numbers(before))


def conditional(limit, inner="j"):
    """`if i < limit` (or j) around a store."""
    i, j = Axis("i", 4), Axis("j", 8)
    which = {"i": i, "j": j}[inner]
    body = IfThenElse(which < limit, (Store(Y, i * 8 + j, Load(X, (i * 8 + j,)) + 1),), (Store(Y, i * 8 + j, j + 0),))
    return program(For(i, "serial", (For(j, "serial", (body,)),)))


def test_lanes_take_one_side_of_a_condition():
    with pytest.raises(RelayError, match=r"lanes of `j` may take different sides of `if j < 3`"):
        Schedule.parse("vectorize j").apply(conditional(3))
    before = conditional(2, "i")
    after = Schedule.parse("vectorize j").apply(before)
    np.testing.assert_array_equal(numbers(after), numbers(before))


def test_what_is_read_under_a_condition_is_not_packed():
    for loop in ("once", "i"):
        with pytest.raises(RelayError, match="`x` is read only where `j < 3`"):
            Schedule.parse(f"pack x {loop} {'i j' if loop == 'once' else 'j'}").apply(conditional(3))


def half_filled(filled, used):
    """A private buffer that is filled on one side of a condition and used on it (0), on the other (1), or after it."""
    i, a, c = Axis("i", 4), Axis("a", 4), Axis("c", 4)
    t = Tensor("t", (4,), "int64")
    fill = For(a, "unrolled", (Store(t, a + 0, Load(X, (i * 4 + a,))),))
    use = For(c, "unrolled", (Store(Y, i * 4 + c, Load(t, (c + 0,))),))
    sides = [[], [], []]
    sides[filled].append(fill)
    sides[used].append(use)
    branch = IfThenElse(i < 2, tuple(sides[0]), tuple(sides[1]))
    return program(For(i, "serial", (branch, *sides[2])), scratch=(t,))


def test_registers_are_filled_where_they_are_used():
    before = half_filled(0, 0)
    after = Schedule.parse("registers t").apply(before)
    np.testing.assert_array_equal(numbers(after), numbers(before))
    for used in (1, 2):
        with pytest.raises(RelayError, match="`t` is filled only where `i < 2`, and used elsewhere"):
            Schedule.parse("registers t").apply(half_filled(0, used))


def test_registers_do_not_hand_on_between_turns_that_are_written_out():
    i, t = Axis("i", 4), Tensor("t", (4,), "int64")
    body = (Store(t, i + 0, Load(X, (i + 0,))), Store(Y, i + 0, Load(t, (i * -1 + 3,))))
    with pytest.raises(RelayError, match="in different turns of `i`"):
        Schedule.parse("registers t").apply(program(For(i, "unrolled", body), scratch=(t,)))


def test_a_register_that_is_set_keeps_its_order():
    i, last = Axis("i", 8), Local("last", "int64")
    for kinds in (["last"], ["sum", "max"]):
        adds = [Accumulate(last, kind, Load(X, (i + 0,))) for kind in kinds]
        body = (Define(last, Const(0, "int64")), For(i, "serial", tuple(adds)), Store(Y, as_index(0), last))
        for step in ("vectorize i", "split i 4 as a c\nreorder c a"):
            with pytest.raises(RelayError, match="every turn sets `last` to another value"):
                Schedule.parse(step).apply(program(*body))


def test_a_value_that_reads_a_changing_register_is_not_inlined():
    i, total, kept = Axis("i", 8), Local("total", "int64"), Local("kept", "int64")
    turn = (Define(kept, total + 1), Accumulate(total, "sum", Load(X, (i + 0,))), Store(Y, i + 0, kept))
    with pytest.raises(RelayError, match="`kept` reads `total`, which is added to after it"):
        Schedule.parse("inline kept").apply(program(Define(total, Const(0, "int64")), For(i, "serial", turn)))


def test_a_loop_that_ends_by_data_is_left_alone():
    i, j = Axis("i", 4), Axis("j", 8)
    inner = For(j, "serial", (Store(Y, i * 8 + j, Load(X, (i * 8 + j,))),), stop=apply("min", i + 1, as_index(3)))
    for step in ("split j 2", "vectorize j", "unroll j", "reorder j i", "peel j 2", "pack x i j"):
        with pytest.raises(RelayError, match="`j` ends where"):
            Schedule.parse(step).apply(program(For(i, "serial", (inner,))))
    with pytest.raises(RelayError, match="`j` may end elsewhere in each lane of `i`"):
        Schedule.parse("vectorize i").apply(program(For(i, "serial", (inner,))))


def copying(known=()):
    i, j = Axis("i", 4), Axis("j", 8)
    turn = Store(Y, i * 8 + j, Load(X, (j * 4 + i,)))
    return program(For(i, "serial", (For(j, "serial", (turn,)),)), known=frozenset(known))


@pytest.mark.parametrize("steps", ["pack x i j\npad x_packed 4 5", "pack x once j i\npad x_packed 4 16\nparallel i"])
def test_padded_rows_hold_the_same(steps):
    if "parallel" in steps:
        with pytest.raises(RelayError, match="beside `i` stand other statements"):
            Schedule.parse(steps).apply(copying())
        steps = steps.removesuffix("\nparallel i")
    before = copying()
    after = Schedule.parse(steps).apply(before)
    assert after.scratch[0].shape[0] > 8 and unproven(after) is None
    np.testing.assert_array_equal(numbers(after), numbers(before))


def test_a_constant_is_packed_when_the_program_is_built():
    before = copying([X])
    after = Schedule.parse("pack x once i j\nconstant x_packed\nparallel i").apply(before)
    assert [str(p.buffer.name) for p in after.prepared] == ["x_packed"] and not after.scratch and after.items == 4
    assert unproven(after) is None
    np.testing.assert_array_equal(numbers(after), numbers(before))


def test_a_prefetch_asks_for_each_line_once():
    after = Schedule.parse("prefetch x i 2").apply(copying())
    lines = [line.strip() for line in str(after).splitlines() if "ahead" in line]
    assert lines == ["for j_ahead in 4 unrolled:", "prefetch x[j_ahead * 8 + i + 2]"]  # 8 int64 are a line
    np.testing.assert_array_equal(numbers(after), numbers(copying()))


REFUSED = {
    "prefetch y i 1": "`i` does not read `y`",
    "prefetch x i 0": "a distance is a whole number from 1 on",
    "vectorize j\nprefetch x j 1": "runs in the lanes of `j`",
    "pad x 4 5": "`x` is no private buffer in memory",
    "pack x i j\npad x_packed 3 4": "3 does not divide its 8 elements",
    "pack x i j\npad x_packed 4 4": "a pitch of 4 is no gap",
    "constant x": "`x` is no private buffer in memory",
    "pack x i j\nconstant x_packed": "filled anew for each `i`",
    "pack x once i j\nconstant x_packed": "`x` is no constant",
}


@pytest.mark.parametrize("steps", REFUSED)
def test_steps_for_caches_say_why_they_are_refused(steps):
    with pytest.raises(RelayError) as error:
        Schedule.parse(steps).apply(copying())
    assert REFUSED[steps] in str(error.value)


def text_of(body, head=""):
    return parse(
        f"kernel k(x: in0 float32[16], y: out0 float32[16])\n{head}  parallel once in 1:\n    for o in 4:\n{body}"
    )


HANDED_ON = {
    "mirrored": "      for i in 4:\n        t[i] = x[o * 4 + i]\n        y[o * 4 + i] = t[3 - i]\n",
    "whole": "      for i in 4:\n        t[i] = x[o]\n        for j in 4:\n          y[o * 4 + j] = t[j]\n",
    "half": "      for i in 2:\n        t[i] = x[o]\n      for j in 4:\n        y[o * 4 + j] = t[j]\n",
}


@pytest.mark.parametrize("body", HANDED_ON)
def test_a_buffer_that_a_turn_reads_before_it_is_filled_belongs_to_all_turns(body):
    with pytest.raises(RelayError, match="several turns of `o` write `t"):
        Schedule.parse("parallel o").apply(text_of(HANDED_ON[body], "  scratch t: float32[4]\n"))


FILLED = {
    "pieces": "      for i in 2:\n        t[i] = x[o]\n      for j in 2:\n        t[j + 2] = x[o]\n",
    "quotients": "      for i in 4:\n        t[i // 3 * 8 + i % 3] = x[o]\n",
}


@pytest.mark.parametrize("fill", FILLED)
def test_a_buffer_that_a_turn_fills_is_its_own(fill):
    place = "i // 3 * 8 + i % 3" if fill == "quotients" else "i"
    body = f"{FILLED[fill]}      for i in 4:\n        y[o * 4 + i] = t[{place}]\n"
    after = Schedule.parse("parallel o").apply(
        text_of(body, f"  scratch t: float32[{4 if fill == 'pieces' else 16}]\n")
    )
    assert after.items == 4


COPY = "      for i in 4:\n        y[o * 4 + i] = x[o * 4 + i]\n"
SIZED = """
    kernel k(sizes: sizes int64[1], x: in0 float32[16777216], y: out0 float32[16777216])
      sizes $n=0
      parallel once in 1:
        for i in $n:
          t: float32 = x[i]
          for j in $n below 4:
            y[i] = t
"""


def test_loops_of_unknown_length_keep_it():
    for step in ("split i 8", "peel i 8", "unroll j", "fuse i j", "pack x once i"):
        with pytest.raises(RelayError, match="has, `[$]n`, is known when the kernel runs"):
            Schedule.parse(step).apply(parse(SIZED))
    parted = str(Schedule.parse("fission i").apply(parse(SIZED)))
    assert parted.count("in $n") == 3


def test_new_names_are_names_of_the_language():
    for names in ("a a", "for b", "1 b", "a[ b", "`a` b", "a inf"):
        with pytest.raises(RelayError) as told:
            Schedule.parse(f"split o 2 as {names}")
        assert told.value.code == "schedule.arguments"
    names = [x.axis.name for x in loops(Schedule.parse("peel o 1 as i_rest").apply(text_of(COPY)))]
    assert len(names) == len(set(names)) == 5


def test_what_peeling_repeats_has_registers_of_its_own():
    body = "      q: int64 = o * 4\n      for i in 4:\n        y[q + i] = x[q + i]\n"
    after = Schedule.parse("peel o 1").apply(text_of(body))
    assert unproven(after) is None
    assert len({s.local for s in statements(after.loops) if isinstance(s, Define)}) == 2


def test_what_becomes_outermost_is_shared_out():
    """Loops of one thread around them change places with loops whose turns hand on: threads would do these."""
    handing = text_of("      y[o + 1] = y[o] + x[o]\n")
    for step in ("reorder o once", "fuse once o"):
        with pytest.raises(RelayError, match="read and written in different turns of `o"):
            Schedule.parse(step).apply(handing)
    inner = text_of("      for i in 3:\n        y[o * 4 + i + 1] = y[o * 4 + i] + x[i]\n")
    for step in ("fuse o i", "reorder i o"):
        with pytest.raises(RelayError, match="in different turns of"):
            Schedule.parse(f"parallel o\n{step}").apply(inner)
    assert Schedule.parse("reorder o once").apply(text_of(COPY)).items == 4


def test_a_register_that_is_set_is_parted_as_it_is():
    body = "      t: float32 = 0f\n      for i in 4:\n        t = x[o * 4 + i]\n      y[o] = t\n"
    before = text_of(body)
    after = Schedule.parse("fission o").apply(before)
    given = np.arange(16, dtype="float32")
    results = []
    for p in (before, after):
        (_, x), (_, y) = p.buffers
        memory = {x: given, y: np.zeros(16, "float32")}
        run(p, memory)
        results.append(memory[y])
    np.testing.assert_array_equal(*results)
    assert results[0][3] == 15
