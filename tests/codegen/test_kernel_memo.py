"""Kernels are generated once: equal jobs of one build share them, later builds take them from the cache."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.operations import memo as remembered
from relaylab.codegen.llvm.cache import ObjectCache
from relaylab.codegen.operations.convolution import ConvolutionKernel
from relaylab.codegen.kernels.kernel import Kernel, KernelSequence, said
from relaylab.codegen.operations.memo import KernelMemo, _decode, _encode
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.network.digests import function_digest
from relaylab.codegen.open.form import OpenForm
from relaylab.ir import OPERATORS, Function
from relaylab.ir.dims import SizeVar
from relaylab.loop.expr import Apply, Cast, Const, Size
from relaylab.op.base import Elementwise, op
from relaylab.study.running import seeded

TARGET = "llvm -mcpu=x86-64-v3"
KERNEL = Kernel(
    "k_0", "define void @k_0(ptr %a) {\n  ret void\n}\n", frozenset({"declare void @f()"}), ("in0", "out0"), 3, 64, 5, 7
)


def function(name: str = "nn.relu") -> Function:
    x = relay.var("x", shape=(2, 3))
    return relay.Function([x], relay.nn.relu(x) if name == "nn.relu" else relay.tanh(x))


def memo(directory: Path, options: object = None, target: str = "llvm") -> KernelMemo:
    return KernelMemo(CpuTarget.parse(target), ObjectCache(directory), options)


def refuse() -> KernelSequence:
    raise AssertionError("made a second time")


def test_a_later_build_generates_nothing(tmp_path: Path) -> None:
    made = KernelSequence((KERNEL, replace(KERNEL, name="k_1")), (("work0", 128),))
    assert memo(tmp_path).once(function(), (0, "view"), lambda: made) is made
    assert memo(tmp_path).once(function(), (0, "view"), refuse) == made


@pytest.mark.parametrize(
    "other",
    [
        lambda d: memo(d, {"winograd": False}).once(function(), (0,), lambda: KernelSequence(())),
        lambda d: memo(d, target="llvm -mcpu=x86-64").once(function(), (0,), lambda: KernelSequence(())),
        lambda d: memo(d).once(function("tanh"), (0,), lambda: KernelSequence(())),
        lambda d: memo(d).once(function(), (1,), lambda: KernelSequence(())),
    ],
)
def test_whatever_kernels_follow_from_counts(tmp_path: Path, other) -> None:
    memo(tmp_path).once(function(), (0,), lambda: KernelSequence((KERNEL,)))
    assert other(tmp_path) == KernelSequence(())


def test_another_version_of_the_compiler_starts_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memo(tmp_path).once(function(), (0,), lambda: KernelSequence((KERNEL,)))
    monkeypatch.setattr(remembered, "code_version", lambda: "another")
    assert memo(tmp_path).once(function(), (0,), lambda: KernelSequence(())) == KernelSequence(())


def test_equal_jobs_of_one_build_share_kernels_without_a_cache() -> None:
    own = KernelMemo(CpuTarget.parse("llvm"), ObjectCache(None))
    made = own.once(function(), (0,), lambda: KernelSequence((KERNEL,)))
    assert own.once(function(), (0,), refuse) is made


def test_an_operator_of_the_user_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code may change between two builds, as in a notebook."""
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(tmp_path))
    factor = [2.0]

    @op("test.remembered_scale", inputs=("data",))
    class scale(Elementwise):
        """A number times the input."""

        def relation(self, s, data):
            return data

        def reference(self, data):
            return data * np.float32(factor[0])

        def scalar(self, b, x):
            return x * factor[0]

    x = relay.var("x", shape=(4,))
    mod = relay.transform.InferType()(
        relay.IRModule.from_expr(relay.Function([x], relay.Call(relay.op.get("test.remembered_scale"), [x])))
    )
    found = []
    try:
        for factor[0] in (2.0, 3.0):
            module = seeded(relay.build(mod, "llvm"), {"x": np.ones(4, "float32")})
            module.run()
            found.append(float(module.get_output(0).numpy()[0]))
    finally:
        OPERATORS.remove("test.remembered_scale")
    assert found == [2.0, 3.0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: relay.clip(x, 0.0, 0.5), lambda x: relay.clip(x, 0.0, 0.6)),
        (lambda x: relay.nn.leaky_relu(x, 0.1), lambda x: relay.nn.leaky_relu(x, 0.1 + 1e-16)),
        (lambda x: relay.add(x, relay.const(1.0)), lambda x: relay.add(x, relay.const(np.float32(1.0000001)))),
        (lambda x: relay.expand_dims(x, -1), lambda x: relay.expand_dims(x, -2)),
        (lambda x: relay.add(x, relay.const(0.0)), lambda x: relay.add(x, relay.const(-0.0))),
    ],
)
def test_functions_that_differ_in_one_number_are_different(tmp_path: Path, one, other) -> None:
    x = relay.var("x", shape=(2, 3))
    memo(tmp_path).once(relay.Function([x], one(x)), (0,), lambda: KernelSequence((KERNEL,)))
    same = memo(tmp_path)
    assert same.once(relay.Function([x], other(x)), (0,), lambda: KernelSequence(())) == KernelSequence(())
    assert same.once(relay.Function([x], one(x)), (0,), refuse) == KernelSequence((KERNEL,))


def test_two_clips_of_one_network_and_of_two(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(tmp_path))
    for low, high in ((0.25, 0.5), (0.5, 0.75)):
        x = relay.var("x", shape=(2, 3))
        mod = relay.IRModule.from_expr(
            relay.Function([x], relay.Tuple([relay.clip(relay.tanh(x), 0, low), relay.clip(x, 0, high)]))
        )
        first, second = relay.create_executor("graph", relay.transform.InferType()(mod)).evaluate()(
            np.full((2, 3), 9, "float32")
        )
        assert first.numpy().max() == low and second.numpy().max() == high


def test_loops_of_kernels_from_the_cache_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(tmp_path))
    x, w = relay.var("x", shape=(1, 16, 12, 12)), relay.var("w", shape=(32, 16, 3, 3))
    conv = relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1)))
    mod = relay.IRModule.from_expr(
        relay.Function([x, w], relay.Tuple([conv, relay.topk(relay.nn.softmax(conv), 3)[0]]))
    )
    params = {"w": np.ones((32, 16, 3, 3), "float32")}
    first = relay.build(mod, "llvm", params=params)
    with monkeypatch.context() as nothing:
        nothing.setattr(ConvolutionKernel, "build", lambda *_: refuse())
        again = relay.build(mod, "llvm", params=params)
    assert len(first.kernels()) == 3 and again.kernels() == first.kernels()
    for name in first.kernels():
        assert "parallel" in first.inspect("loop", name) and first.inspect("loop", name) == again.inspect("loop", name)


def layers(order: tuple[str, ...]) -> relay.IRModule:
    """Equal layers in different surroundings: some read what is padded, some share a weight."""
    x, weight = relay.var("x", shape=(1, 32, 14, 14)), relay.const(np.full((32, 32, 3, 3), 0.01, "float32"))
    last = relay.const(np.full((32, 32, 1, 1), 0.1, "float32"))
    steps = {
        "conv": lambda y: relay.nn.conv2d(y, weight, padding=(1, 1), channels=32, kernel_size=(3, 3)),
        "point": lambda y: relay.nn.conv2d(y, last, channels=32, kernel_size=(1, 1)),
        "relu": relay.nn.relu,
        "pool": lambda y: relay.nn.max_pool2d(y, (3, 3), padding=(1, 1)),
        "twice": lambda y: relay.add(y, x),
    }
    y = x
    for name in order:
        y = steps[name](y)
    return relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], y)))


def alike() -> Iterator[tuple[relay.Expr, dict[str, object]]]:
    """Kernels that only one part of their keys tells apart, for each part, and how they are built."""
    x, y, z, image = (relay.var(n, shape=s) for n, s in zip("xyzi", [(8, 8)] * 3 + [(1, 28, 28, 64)]))

    def fused(body, *arguments: relay.Expr) -> relay.Call:
        params = [relay.var(f"p{k}", shape=(8, 8)) for k in range(len(arguments))]
        return relay.Call(Function(params, body(*params), attrs={"Primitive": 1}), arguments)

    yield fused(lambda p: relay.exp(relay.cumsum(relay.tanh(p), axis=1)), x), {}
    yield relay.Tuple([fused(lambda p, q, r: p * q - r, x, y, third) for third in (x, y)]), {}
    yield relay.Tuple([relay.nn.dense(x, w) for w in (y, relay.const(np.ones((8, 8), "float32")))]), {}
    yield relay.Tuple([relay.take(x, relay.const(np.arange(8)[::step].copy()), axis=1) for step in (1, -1)]), {}
    weight, how = relay.const(np.ones((3, 3, 64, 64), "float32")), {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    padded = relay.nn.conv2d(relay.sinh(image), weight, padding=(1, 1), channels=64, kernel_size=(3, 3), **how)
    yield padded, {}
    yield padded, {"relay.codegen.winograd": False}
    yield relay.sinh(image), {}
    yield relay.cosh(x), {"relay.codegen.schedules": {"cosh": "split i0 4"}}
    yield relay.cosh(x), {}
    sizes = SizeVar("n"), SizeVar("n")
    inputs = [relay.var("n", shape=(n, 8, 8)) for n in sizes]
    yield relay.Tuple([*(relay.sum(relay.broadcast_to(z, (n, 8, 8)), axis=0) for n in sizes), *inputs]), {}


def by_sizes(kernel: Kernel) -> tuple[str, tuple[int, int]]:
    """What sizes decide about a kernel."""
    return said(kernel.open_items) if kernel.open_items else "", kernel.work(lambda size: len(said(size)))


def test_what_is_known_is_what_would_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In one cache: the keys hold what decides about kernels, and each of their parts decides about one here."""
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(tmp_path))
    once, seen = KernelMemo.once, dict[tuple, KernelSequence]()

    def checked(self: KernelMemo, function: Function, key: tuple, make, stored=True, sizes=None) -> KernelSequence:
        found, new = once(self, function, key, make, stored, sizes), make()
        assert found == new, function
        assert list(map(by_sizes, found.kernels)) == list(map(by_sizes, new.kernels))
        seen[function_digest(function), *key] = new
        return found

    monkeypatch.setattr(KernelMemo, "once", checked)
    orders = [("conv", "relu"), ("conv", "twice", "conv"), ("pool", "conv", "relu", "point")]
    for k, order in enumerate([*orders, *orders]):
        config = {"relay.codegen.winograd": k < len(orders), "relay.codegen.verify": k == 1}
        with relay.transform.PassContext(opt_level=3, config=config):
            relay.build(layers(order), TARGET)
    for body, config in alike():
        mod = relay.transform.InferType()(relay.IRModule.from_expr(body))
        shapes = [v.checked_type.shape for v in mod["main"].params]
        with relay.transform.PassContext(opt_level=3, config=config):
            if any(isinstance(n, SizeVar) for n in sum(shapes, ())):
                OpenForm(mod, CpuTarget.parse(TARGET), [(8, 8), (2, 8, 8), (3, 8, 8)])
            else:
                relay.build(mod, TARGET)
    for place in range(len(next(iter(seen)))):
        without = {}
        for key, made in seen.items():
            without.setdefault((*key[:place], *key[place + 1 :]), []).append(made)
        assert any(made != group[0] for group in without.values() for made in group), f"part {place} of a key"


def open_programs() -> Iterator[tuple[relay.Expr, list[tuple[int, ...]]]]:
    """Programs over sizes, whose kernels have items, scratch and offsets that are expressions of them; and one of
    them with its sizes in other slots.
    """
    for names in ("nm", "mn"):
        sizes = {name: SizeVar(name) for name in names}
        first = relay.var("first", shape=(sizes[names[0]], 2))  # decides who has the first slot
        n, m = sizes["n"], sizes["m"]
        x, y = relay.var("x", shape=(n, m)), relay.var("y", shape=(m, 24))
        parts = [
            relay.nn.softmax(x),
            relay.nn.dense(relay.transpose(y), x),
            relay.concatenate([x, x * x, x], 0),
            relay.sum(relay.reshape(x, (-1, 1)) * relay.reshape(x, (1, -1)), 1),
            relay.cumsum(y, 0),
            relay.nn.relu(first),
        ]
        shapes = {"n": 5, "m": 7}
        yield relay.Function([first, x, y], relay.Tuple(parts)), [(shapes[names[0]], 2), (5, 7), (7, 24)]


def test_kernels_of_open_programs_are_kept_for_later_builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(tmp_path))

    def run(function: relay.Expr, shapes: list[tuple[int, ...]]) -> list[bytes]:
        mod = relay.transform.InferType()(relay.IRModule.from_expr(function))
        form = relay.vm.VirtualMachine(relay.vm.compile(mod, TARGET, params={}))
        arrays = [np.arange(math.prod(s), dtype="float32").reshape(s) / 10 for s in shapes]
        plain = relay.create_executor("debug", mod=mod).evaluate()(*arrays)
        found = form.invoke("main", *arrays)
        for got, wanted in zip(found, plain):
            np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5)
        return [f.numpy().tobytes() for f in found]

    made = [run(*program) for program in open_programs()]
    monkeypatch.setattr("relaylab.codegen.loops.lowering._Lowering", lambda *_: refuse())
    monkeypatch.setattr("relaylab.codegen.llvm.jit.emit_object", lambda *_: refuse())
    assert [run(*program) for program in open_programs()] == made


def test_expressions_of_sizes_come_back_with_the_sizes_of_the_build() -> None:
    n, m = Size("n", 0), Size("m", 3)
    exact = Apply("mul", (Apply("add", (n, Const(2, "int64")), "int64"), m), "int64")
    kernel = replace(KERNEL, items=0, open_items=exact, scratch=n * 4, open_work=((1, 2, ()), (3, 4, (n, m + 1))))
    (back,) = _decode(_encode(KernelSequence((kernel,))), {0: n, 3: m}).kernels
    assert said(back.open_items) == said(exact) and said(back.scratch) == said(kernel.scratch)
    at = lambda length: 10 if length is n else 7
    assert back.work(at) == kernel.work(at) == (1 + 3 * 70, 2 + 4 * 70)
    assert back.open_items.args[1] is m and back.scratch.args[0] is n
    with pytest.raises(LookupError):
        _decode(_encode(KernelSequence((kernel,))), {0: n})
    with pytest.raises(TypeError):
        _encode(KernelSequence((replace(KERNEL, scratch=Cast(n, "int32")),)))


def test_a_kernel_that_cannot_be_written_down_is_made_anew(tmp_path: Path) -> None:
    other = KernelSequence((replace(KERNEL, scratch=Cast(Size("n", 0), "int32")),))
    for _ in range(2):
        asked = []
        assert memo(tmp_path).once(function(), (0,), lambda a=asked: a.append(1) or other) is other and asked
