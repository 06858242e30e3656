"""What a build does to be quick: weights are packed by several threads, in parts; garbage collection rests;
what kernels, or turns of loops, have in common is written once."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kernel_runner import framed

from relaylab import relay
from relaylab.codegen import templates as T
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.loops.emit import Emitter
from relaylab.codegen.operations.constant_pool import ALIGNMENT, PREFETCHED, ConstantPool
from relaylab.codegen.operations.jobs import PackedConstant
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.pack import Packing
from relaylab.codegen.templates.minimal import COLUMNS, WEIGHT_TRANSFORM, transform_weights
from relaylab.loop.program import LoopProgram
from relaylab.support.errors import RelayError


def values(k: int) -> np.ndarray:
    return np.full(10 + 1000 * (k % 3), k, "float32")


def slow(k: int) -> PackedConstant:
    """The first ones take longest."""
    copied = Packing.copied(values(k))
    write = lambda out: (time.sleep(0.01 / (k + 1)), copied.write(out))
    return PackedConstant((k,), lambda: Packing(copied.size, copied.dtype, write))


def test_many_lie_where_one_after_another_would() -> None:
    many, single = ConstantPool(), ConstantPool()
    many.add_all(slow(k) for k in (0, 1, 2, 1, 3, 0, 4))
    offsets = [single.add(slow(k)) for k in range(5)]
    assert [many.add(slow(k)) for k in range(5)] == offsets
    assert many.blob().tobytes() == single.blob().tobytes()
    assert all(offset % ALIGNMENT == 0 for offset in offsets)
    assert len(many.blob()) >= offsets[-1] + values(4).nbytes + PREFETCHED


def test_an_error_while_packing_is_raised() -> None:
    def fail(out: np.ndarray) -> None:
        raise ValueError("no weights")

    with pytest.raises(ValueError, match="no weights"):
        ConstantPool().add_all([slow(0), PackedConstant(("bad",), lambda: Packing(8, np.dtype("int8"), fail))])


def weights(kind: str) -> Packing:
    """16 MiB or more of weights, packed in the ways in which something is computed."""
    rng, target = np.random.default_rng(0), CpuTarget.parse("llvm -mcpu=x86-64-v4")
    if kind == "winograd":
        data = framed((1, 8, 8, 512), ((0, 0), (1, 1), (1, 1), (0, 0)))
        spec = T.ConvSpec(data, MemoryView.dense((1, 8, 8, 512)), (3, 3), (1, 1), (1, 1), (1, 1))
        return T.MINIMAL[4, 3].pack(spec, target, rng.standard_normal((512, 512, 3, 3), "float32"))
    a, b, out = map(MemoryView.dense, ((1, 512, 2048), (1, 2048, 2048), (1, 512, 2048)))
    return T.pack_gemm(T.GemmSpec(a, b, out), target, rng.standard_normal((1, 2048, 2048), "float32"))


@pytest.mark.parametrize(("kind", "growth"), [("winograd", 4), ("strassen", 7 / 4)])
def test_weights_are_packed_where_they_stay(kind: str, growth: float) -> None:
    packing = weights(kind)
    out = np.zeros(packing.size, packing.dtype)
    tracemalloc.start()
    try:
        packing.write(out)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert out.nbytes >= growth * (9 << 20)
    assert taken < 8 << 20


@pytest.mark.parametrize("m", sorted(WEIGHT_TRANSFORM))
@pytest.mark.parametrize("count", [1, COLUMNS - 1, COLUMNS, 2 * COLUMNS + 5])
def test_weights_are_transformed_in_parts(m: int, count: int) -> None:
    g = WEIGHT_TRANSFORM[m]
    kernel = np.random.default_rng(m).standard_normal((g.shape[1], g.shape[1], count)).astype("float32")
    wanted, taps = np.einsum("pi,qj,ijn->pqn", g, g, kernel).reshape(-1, count), kernel.reshape(-1, count)
    points = np.empty((len(wanted), count), "float32")
    transform_weights(m, taps, points)
    np.testing.assert_allclose(points, wanted, rtol=1e-5, atol=1e-5)


def test_a_build_leaves_garbage_collection_as_it_was() -> None:
    x = relay.var("x", shape=(2, 3))
    good = relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    bad = relay.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(np.ones((2, 2), "float32")))))
    try:
        for switch in (gc.enable, gc.disable):
            switch()
            before = gc.isenabled()
            relay.build(good, "llvm")
            assert gc.isenabled() is before
            with pytest.raises(RelayError):
                relay.build(bad, "llvm")
            assert gc.isenabled() is before
    finally:
        gc.enable()


LEFT = """
import gc
from collections import Counter
from relaylab import relay
from relaylab.relay import testing

mod, params = testing.resnet.get_workload(num_layers=18, image_shape=(3, 32, 32), num_classes=10)
with relay.transform.PassContext(opt_level=3):
    relay.build(mod, "llvm", params=params)  # types of ctypes, tables
    gc.collect()
    gc.disable()
    lib = relay.build(mod, "llvm", params=params)
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
print(*{type(x).__name__ for x in gc.garbage if type(x).__module__.startswith("relaylab")})
"""


def test_what_a_build_used_goes_without_a_search_for_cycles() -> None:
    """Emitters that held methods of their own kept all that they wrote until the collector found them.

    In a process of its own: tables that the build fills drop what other tests left in them.
    """
    env = {**os.environ, "RELAYLAB_CACHE_DIR": ""}  # kernels are written each time
    done = subprocess.run([sys.executable, "-c", LEFT], env=env, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"Scope"}  # the outermost is its own parent


def test_layers_share_what_their_epilogues_do_not_change() -> None:
    """A transform of inputs and the products at its points are written once, wherever the results go."""
    shape = (1, 14, 14, 256)
    plain = T.ConvSpec(MemoryView.dense(shape), MemoryView.dense(shape), (3, 3), (1, 1), (1, 1), (1, 1))
    data = framed(shape, T.MINIMAL[4, 3].reads(plain))
    target = CpuTarget.host()
    made = [
        T.MINIMAL[4, 3].build(replace(plain, data=data, out=out), target, epilogue).kernels
        for out, epilogue in (
            (plain.out, None),
            (framed(shape, ((0, 0), (1, 1), (1, 1), (0, 0))), Epilogue(operands=("bias",), bias="bias")),
        )
    ]
    assert [kernels[:2] for kernels in made] == [made[0][:2]] * 2 and len(made[0]) == 3
    assert all(a is b for a, b in zip(*(kernels[:2] for kernels in made)))
    assert made[0][2].name != made[1][2].name


def test_turns_that_are_written_out_look_at_addresses_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, total = list[object](), Emitter.total
    monkeypatch.setattr(Emitter, "total", lambda self, found, at: (looked.append(found), total(self, found, at))[1])

    def looks(rows: int) -> int:
        a, b, out = (MemoryView.dense(shape) for shape in ((1, rows, 16), (1, 16, 32), (1, rows, 32)))
        looked.clear()
        T.gemm(T.GemmSpec(a, b, out, choices=(("rows", rows), ("vectors", 1))), CpuTarget.host())
        return len(looked)

    assert looks(6) == looks(3) > 0


def test_a_build_writes_no_loops_as_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(tmp_path))
    written: list[str] = []
    shown = LoopProgram.__str__
    monkeypatch.setattr(LoopProgram, "__str__", lambda program: written.append(program.name) or shown(program))
    x, w = relay.var("x", shape=(4, 64)), relay.var("w", shape=(32, 64))
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w))))
    lib = relay.build(mod, "llvm", params={"w": np.ones((32, 64), "float32")})
    assert not written
    assert "parallel" in lib.inspect("loop", "dense") and len(written) == 1
