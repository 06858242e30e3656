"""Proofs of addresses: what is proven is so by enumeration, and what a debug build refuses."""

from __future__ import annotations

import random

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.operations import generic
from relaylab.ir import OPERATORS
from relaylab.ir.dims import SizeVar
from relaylab.loop.builder import b
from relaylab.loop.evaluate import OutSpec, evaluate
from relaylab.loop.expr import Axis, Const, Local, Tensor, apply, guard
from relaylab.loop.parse import parse
from relaylab.loop.program import Define, For, LoopNest, LoopProgram, Store
from relaylab.loop.program_builder import BufferLayout, ProgramBuilder
from relaylab.loop.run import run
from relaylab.loop.verify import program_accesses, unproven
from relaylab.op.base import Elementwise, op, sample
from relaylab.support.errors import RelayError
from relaylab.transform import PassContext

i, j = Axis("i", 6), Axis("j", 4)
VERIFY = {"relay.codegen.verify": True}


def expression_accesses(value):
    """Every index of every load of an expression, axis by axis."""
    once = For(Axis("once", 1), "serial", (Define(Local("value", value.dtype), value),))
    return program_accesses(LoopProgram("expression", (), (), (LoopNest(once),)))


def proven(index, extent: int, *conditions) -> bool:
    x = Tensor("x", (extent,), "float32")
    value = x(index)
    for condition in conditions:
        value = guard(condition, value, b.const(0.0, "float32"))
    return all(a.proven for a in expression_accesses(value))


@pytest.mark.parametrize(
    "index, extent, conditions, expected",
    [
        (i, 6, (), True),
        (i, 5, (), False),
        (i * 4 + j, 24, (), True),
        (i + j - 2, 6, (), False),
        (i + j - 2, 6, (i + j >= 2, i + j < 8), True),
        (i + j - 2, 6, (b.all_of(i + j >= 2, i + j < 8),), True),
        (i + j - 2, 6, (~(apply("lor", i + j < 2, i + j >= 8)),), True),
        ((i + j - 2) * 4 + i - 1, 20, (i + j >= 2, i + j < 7, i >= 1, i < 5), True),
        ((i * 2 - j) // 3, 3, (i * 2 >= j, i * 2 - j < 9), True),
        (b.select(i < 3, i + 3, i - 3), 6, (), True),
        (b.select(i < 3, i + 4, i - 3), 6, (), False),
        (i + 1, 6, (apply("eq", i, 3),), True),
        (i + 1, 6, (apply("ne", i, 5),), False),  # true, but not seen
    ],
)
def test_guards_prove(index, extent, conditions, expected):
    assert proven(index, extent, *conditions) == expected


def some_index(rng: random.Random, axes, depth: int = 3):
    if depth == 0:
        return rng.choice(axes) + 0 if rng.random() < 0.8 else b.index(rng.randrange(-3, 9))
    a, c = (some_index(rng, axes, depth - 1) for _ in range(2))
    n = rng.randrange(1, 5)
    kind = rng.randrange(9)
    if kind < 2:
        return a + c * rng.choice((1, 2, -1))
    if kind == 2:
        return a - c
    if kind == 3:
        return a // n
    if kind == 4:
        return a % n
    if kind == 5:
        return b.min(a, c)
    if kind == 6:
        return b.max(a, rng.randrange(-2, 3))
    return b.select(a < c, a, c) if kind == 7 else b.select(a >= n, c, a + n)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_proven_is_so_by_enumeration(seed):
    rng, axes = random.Random(seed), (Axis("a", 5), Axis("c", 3), Axis("d", 4))
    count = 0
    for _ in range(60):
        index, extent = some_index(rng, axes), rng.randrange(2, 14)
        low, high = some_index(rng, axes, 1), some_index(rng, axes, 1)
        conditions = [index >= 0, index < extent] if rng.random() < 0.4 else [low <= high, index >= low]
        at = Tensor("x", (extent,), "int64")(index)
        for condition in conditions:
            at = guard(condition, at, b.index(0))
        if not all(a.proven for a in expression_accesses(at)):
            continue
        count += 1
        wrong = apply("lor", index < 0, index >= extent) if not isinstance(index, Const) else None
        for condition in conditions:
            wrong = wrong if wrong is None or isinstance(condition, Const) else apply("land", wrong, condition)
        if wrong is not None and not any(isinstance(c, Const) and not c.value for c in conditions):
            assert not evaluate(wrong, axes, "bool", {}).any()
    assert count > 5


@pytest.fixture
def shifted():
    @op("test.shifted_outside", level=10)
    class shifted_outside(Elementwise):
        """The right neighbour of each element, read without a guard at the end."""

        yields = "the shape and data type of data"
        source = "nobody"

        def reference(self, data):
            return np.roll(data, -1, -1)

        def lower(self, b, out, i, data):
            return data(*i[:-1], i[-1] + 1)

        @classmethod
        def samples(cls):
            return [sample((3, 5))]

    yield
    OPERATORS.remove("test.shifted_outside")


def test_a_debug_build_refuses_what_it_cannot_prove(shifted):
    mod = relay.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4,), float32]) {\n  test.shifted_outside(%x)\n}')
    with PassContext(opt_level=3, config=VERIFY), pytest.raises(RelayError) as caught:
        relay.build(mod, target="llvm")
    error = caught.value
    assert error.code == "codegen.unproven-index"
    assert "test_shifted_outside" in error.message and "`test.shifted_outside`" in error.message
    assert "`in0` of extent 4 at i0 + 1 (1 .. 4)" in error.message and ":3:" in error.place


def test_kernels_of_open_programs_are_proven_although_the_cache_has_them(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(tmp_path))
    proven = []
    plain = generic.refuse_unproven
    monkeypatch.setattr(generic, "refuse_unproven", lambda program, *a: proven.append(program) or plain(program, *a))
    x, y = relay.var("x", shape=(4, 8)), relay.var("y", shape=(SizeVar("n"),))
    mod = relay.IRModule.from_expr(relay.Function([x, y], relay.Tuple([relay.tanh(x), relay.tanh(y)])))
    for config, kernels in (({}, 0), (VERIFY, 2)):
        with PassContext(opt_level=3, config=config):
            machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
        machine.invoke("main", np.zeros((4, 8), "float32"), np.zeros(3, "float32"))
        assert len(proven) == kernels


@pytest.mark.parametrize("name", ["mlp", "dcgan", "dqn"])
def test_networks_are_proven(name):
    mod, params = getattr(relay.testing, name).get_workload(1)
    with PassContext(opt_level=3, config=VERIFY):
        relay.build(mod, target="llvm", params=params)


def test_a_row_of_conditions_is_what_was_stored():
    """Conditions that loops over windows keep in a private buffer still prove what is read under them."""
    record = relay.op.get("nn.avg_pool3d").definition(
        pool_size=(3, 2, 2), strides=(2, 2, 2), padding=(1, 1, 1), ceil_mode=True
    )

    def lower(b, out, i, data):
        def element(*taps):
            inside, index = record.read(b, i, data, taps)
            return b.guard(inside, lambda: data(*index), 1.0)

        count = b.sum((3, 2, 2), lambda *taps: b.cast(record.read(b, i, data, taps)[0], "int64"))
        return b.sum((3, 2, 2), element) / b.cast(count, "float32")

    group = ProgramBuilder("pool")
    x = group.read("in0", BufferLayout.dense((2, 3, 7, 6, 2), "float32"))
    out = OutSpec((2, 3, 4, 4, 2), "float32")
    group.write("out0", group.compute(out, lower, [x]), BufferLayout.dense(out.shape, out.dtype))
    program = group.program()
    assert any(t.dtype == "bool" for t in program.scratch)
    assert all(a.proven for a in program_accesses(program))


@pytest.mark.parametrize("extent", [22, 21])
def test_a_turn_is_before_the_computed_end(extent):
    """Pieces of six and five elements fill 22; with one element less the last turn of the last piece is outside."""
    piece, turn = Axis("piece", 4), Axis("turn", 6)
    first = lambda at: at * 5 + apply("min", at, 2)
    out = Tensor("out0", (extent,), "float32")
    body = For(
        turn, "serial", (Store(out, first(piece) + turn, Const(1.0, "float32")),), stop=first(piece + 1) - first(piece)
    )
    program = LoopProgram("pieces", (("out0", out),), (), (LoopNest(For(piece, "serial", (body,))),))
    assert (unproven(program) is None) == (extent == 22)
    written = np.zeros(extent, "float32")
    if extent == 22:
        run(program, {out: written})
        assert written.all()
    else:
        with pytest.raises(RelayError, match="outside"):
            run(program, {out: written})


def test_what_is_asked_of_a_register_bounds_its_quotients():
    """Tiles are counted through all images, the last item has fewer: `t // 15` is below 4 where `t < 60`."""
    text = """
kernel tiles(in0: in0 float32[60], out0: out0 float32[60]) items=4
  parallel item in 4:
    for t in 17:
      t_2: int64 = item * 17 + t
      if t_2 < 60:
        out0[t_2 // 15 * 15 + t_2 % 15] = in0[t_2 // 15 * 15 + t_2 % 15]
"""
    assert unproven(parse(text.strip())) is None
    with pytest.raises(RelayError, match="not proven"):
        parse(text.strip().replace("< 60", "< 61"))


PREPARED = """
kernel k(x: in0 float32[4], y: out0 float32[8])
  prepared t: {dtype}[8]
    for i in {filled}:
      t[i] = {value}
  parallel j in 8:
    {use}
"""


def test_what_is_prepared_is_known():
    """Conditions and places, by way of a register too; where nothing is filled, there are zeros."""
    condition = {"dtype": "bool", "filled": 6, "value": "i < 4"}
    for use in ("y[j] = guard(t[j], x[j], 0f)", "q: bool = t[j] and j >= 1\n    y[j] = guard(q, x[j - 1], 0f)"):
        assert unproven(parse(PREPARED.format(**condition, use=use), verify=False)) is None
    place = {"dtype": "int64", "filled": 6, "value": "i // 2 + 1", "use": "y[j] = x[t[j]]"}
    assert unproven(parse(PREPARED.format(**place), verify=False)) is None
    unfilled = unproven(parse(PREPARED.format(**place).replace("x[t[j]]", "x[t[j] - 1]"), verify=False))
    assert unfilled is not None and unfilled.bounds == (-1, 2)


GROWING = """
kernel k(x: in0 int64[8], y: out0 int64[8])
  scratch t: int64[8]
  parallel once in 1:
    for i in 8:
      t[i] = i % 4
    for i in 8:
      p: int64 = t[i]
      y[i] = x[p]
      t[i] = {stored}
"""


def test_what_is_read_holds_all_that_is_stored_later():
    """The intervals of private buffers and of registers were those of the first store."""
    for stored in ("t[i] + 1", "x[i]", "p * 3", "min(p, 5) + 3"):
        with pytest.raises(RelayError, match="not proven"):
            parse(GROWING.format(stored=stored))
    for stored in ("7 - p", "t[7 - i]", "max(p, 7)"):
        assert unproven(parse(GROWING.format(stored=stored))) is None


def test_a_store_under_else_is_no_promise():
    text = """
kernel k(x: in0 float32[4], y: out0 float32[8])
  scratch t: bool[8]
  parallel once in 1:
    for i in 8:
      if i < 6:
        y[i] = 0f
      else:
        t[i] = i < 4
    for j in 8:
      y[j] = guard(t[j], x[j], 0f)
"""
    with pytest.raises(RelayError, match="not proven"):
        parse(text)
