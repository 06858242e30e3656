"""Families of kernels: how they are chosen, what holds for all, and that one from outside takes one file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kernel_runner import TARGETS

from relaylab import relay
from relaylab.codegen import templates as T
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates.family import FamilyTable
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.codegen.templates.pack import Packing
from relaylab.codegen.templates.program_parts import ProgramParts, around, epilogue_buffers, split_place
from relaylab.loop.expr import Load, Local, Tensor
from relaylab.loop.program import Accumulate, Define, For, LoopNest, LoopProgram, Store
from relaylab.support.errors import RelayError, RelayIndexError, RelayValueError

ROOT = Path(__file__).resolve().parents[2]
TABLES = (T.CONVOLUTIONS, T.TRANSPOSED, T.PRODUCTS)


class Sliding(T.ConvolutionFamily):
    """A convolution by the loops of its definition."""

    name, title = "sliding", "sliding"

    def cycles(self, spec, target):
        return 0.0

    def pack(self, spec, target, weight):
        return Packing.copied(np.moveaxis(weight, (0, 1), (-1, -2)))  # [*kernel, IC / groups, OC]

    def kernels(self, spec, target, epilogue):
        data, out, channels = spec.data, spec.out, spec.out.shape[-1]
        last = lambda view, more: sum((n + h - 1) * step for n, h, step in zip(view.shape, more, view.strides))
        sizes = {
            "in0": data.offset + 1 + last(data, [after for _, after in self.reads(spec)]),
            "weight0": math.prod(spec.kernel) * spec.in_channels * channels,
            "out0": out.offset + 1 + last(out, [0] * len(out.shape)),
        }
        buffers = {role: Tensor(role, (size,), data.dtype) for role, size in sizes.items()}
        buffers |= epilogue_buffers(epilogue, channels, data.dtype)
        parts = ProgramParts(buffers)
        item, c = parts.axis("item", math.prod(out.shape[:-1])), parts.axis("c", channels)
        taps, i = [parts.axis("k", n) for n in spec.kernel], parts.axis("i", spec.in_channels)
        n, *pixel = split_place(item, out.shape[:-1])
        group = c // spec.out_channels
        read = [(n, data.strides[0]), (i, data.strides[-1]), (group * spec.in_channels, data.strides[-1])]
        start = data.offset
        for at, tap, stride, dilation, pad, step in zip(
            pixel, taps, spec.strides, spec.dilation, spec.padding, data.strides[1:-1]
        ):
            read += [(at, stride * step), (tap, dilation * step)]
            start -= pad * step
        weight, step = [(c, 1), (i, channels)], channels * spec.in_channels
        for tap in reversed(taps):
            weight.append((tap, step))
            step *= tap.extent
        total = Local(parts.name("total"), data.dtype)
        x, w = (
            Load(buffers[role], (parts.place(terms, at),))
            for role, terms, at in (("in0", read, start), ("weight0", weight, 0))
        )
        value = parts.finished(epilogue, total, [((n,), at) for n, at in zip(out.shape, (n, *pixel, c))])
        end = Store(buffers["out0"], parts.place([*zip((n, *pixel, c), out.strides)], out.offset), value)
        begin = Define(total, parts.begin(epilogue, c, data.dtype))
        body = (begin, *around((Accumulate(total, "sum", x * w),), (*taps, i), "serial"), end)
        nest = LoopNest(For(item, "serial", (For(c, "serial", body),)))
        program = LoopProgram(self.name, tuple(buffers.items()), (), (nest,), ())
        return KernelSequence((lower_program(program, target, True).by_content(self.name),))


@pytest.fixture
def declared() -> Iterator[list]:
    """What a test declares is forgotten after it."""
    found: list[tuple[FamilyTable, str]] = []
    yield found
    for table, name in found:
        table.forget(name)


def plain_family(declared: list) -> None:
    """Declares the family of the page for contributors."""
    page = (ROOT / "docs/CONTRIBUTING.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```python\n(import math.*?)PRODUCTS\.declare", page, re.DOTALL)
    found: dict[str, object] = {"__name__": "cell"}
    exec(text, found)
    T.PRODUCTS.declare(found["Plain"]())
    declared.append((T.PRODUCTS, "plain"))


def network(case: str) -> tuple[relay.IRModule, dict]:
    """A convolution with a bias and more after it."""
    rng = np.random.default_rng(4)
    shapes = {
        "plain": ((2, 6, 9, 8), (10, 6, 3, 3), {"padding": (1, 1)}),
        "groups": ((1, 8, 9, 7), (12, 4, 3, 2), {"strides": (2, 1), "groups": 2, "dilation": (1, 2)}),
        "depthwise": ((1, 8, 9, 9), (8, 1, 3, 3), {"padding": (1, 1), "groups": 8}),
        "transposed": ((1, 6, 5, 4), (6, 7, 4, 4), {"strides": (2, 2), "padding": (1, 1)}),
    }
    data, weight, attrs = shapes[case]
    x, w = relay.var("x", shape=data), relay.var("w", shape=weight)
    call = relay.nn.conv2d_transpose(x, w, **attrs) if case == "transposed" else relay.nn.conv2d(x, w, **attrs)
    channels = weight[1] if case == "transposed" else weight[0]
    biased = relay.nn.relu(relay.nn.bias_add(call, relay.const(rng.standard_normal(channels).astype("float32"))))
    mod = relay.IRModule.from_expr(relay.Function([x, w], biased * biased + biased))
    return mod, {"w": rng.standard_normal(weight).astype("float32")}


def run(mod: relay.IRModule, params: dict):
    with relay.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=params)
    shape = mod["main"].params[0].type_annotation.concrete_shape
    x = np.random.default_rng(1).standard_normal(shape).astype("float32")
    return lib, lib.run(x=x), relay.create_executor("debug", mod).evaluate()(x, **params).numpy()


def why(lib) -> str:
    """What all kernels say."""
    return "".join(lib.inspect("why", name) for name in lib.kernels())


@pytest.mark.parametrize("case", ["plain", "groups", "depthwise", "transposed"])
def test_a_family_of_products_from_one_cell_computes_networks(case: str, declared: list) -> None:
    run(*network(case))  # what is known of the house's families is not taken for those of others
    plain_family(declared)
    lib, got, want = run(*network(case))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    loops = next(text for name in lib.kernels() if "kernel conv" in (text := lib.inspect("loop", name)))
    assert "total: float32 = " in loops and "vectorized" not in loops
    # Of a transposed convolution each phase is a product; they have no table of their own.
    assert bool(re.search(r"-> plain +0 cycles", why(lib))) == (case != "transposed")


@pytest.mark.parametrize("case", ["plain", "groups", "depthwise"])
def test_a_family_of_convolutions_from_one_cell_computes_networks(case: str, declared: list) -> None:
    T.CONVOLUTIONS.declare(Sliding())
    declared.append((T.CONVOLUTIONS, "sliding"))
    lib, got, want = run(*network(case))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert re.search(r"-> sliding +0 cycles", why(lib)) and "kernel sliding" in lib.inspect("loop", "conv2d")


def test_what_families_from_outside_make_is_not_kept(
    declared: list, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their code may change between two builds, and when they are gone the house's kernels are back."""
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(tmp_path))
    mod, params = network("plain")
    before = run(mod, params)[0].kernels()
    T.CONVOLUTIONS.declare(Sliding())
    declared.append((T.CONVOLUTIONS, "sliding"))
    assert "kernel sliding" in run(mod, params)[0].inspect("loop", "conv2d")
    other = type("Sliding", (Sliding,), {"cycles": lambda *_: math.inf})
    T.CONVOLUTIONS.declare(other())  # of the same name: it takes the place of the first
    lib = run(mod, params)[0]
    assert lib.kernels() == before and "kernel sliding" not in lib.inspect("loop", "conv2d")


def test_what_a_family_does_wrong_is_said(declared: list) -> None:
    plain_family(declared)
    right = type(T.PRODUCTS.families["plain"])
    for wrong, error, words in (
        ({"packed": lambda *at: right.packed(*at) + 1}, RelayError, "packs 540 elements where its loops read 541"),
        ({"packed": lambda *at: right.packed(*at) - 1}, RelayIndexError, "an access to `weight0` of extent 539"),
    ):
        T.PRODUCTS.declare(type("Plain", (right,), wrong)())
        with pytest.raises(error, match=words) as caught:
            run(*network("plain"))
        assert "kernel family" in f"{caught.value}" or caught.value.code == "codegen.family"


def test_the_houses_families_stay(declared: list) -> None:
    for table in TABLES:
        assert table.own
        for name, family in [*table.families.items()]:
            parts = {"__module__": "cell", "__init__": lambda _: None, "name": name}
            with pytest.raises(RelayValueError, match="relaylab's own") as caught:
                table.declare(type("Other", (type(family),), parts)())
            assert caught.value.code == "codegen.family" and table.families[name] is family
    T.PRODUCTS.declare(type("Other", (T.ProductFamily,), {"name": "other", "declines": lambda *_: "a reason"})())
    assert not T.PRODUCTS.own
    T.PRODUCTS.forget("other")
    assert T.PRODUCTS.own


def test_the_least_estimate_is_taken_and_other_rounding_where_it_is_allowed() -> None:
    target = TARGETS["avx512"]
    made = lambda name, cycles, minimal=False: type(name, (T.ProductFamily,), {
        "name": name, "minimal": minimal, "advantage": 0.9,
        "declines": lambda *_: "" if cycles else "it is lazy", "cycles": lambda *_: cycles,
    })()  # fmt: skip
    a, b, c, lazy = made("a", 100.0), made("b", 90.0), made("c", 80.0, True), made("lazy", 0.0)
    spec = gemm_problem(T.GemmSpec(*(MemoryView.dense((1, 4, 4)) for _ in range(3))))
    allowed = replace(spec, minimal=True)
    choose = lambda spec, *families: FamilyTable(*families).choose(spec, target)
    assert choose(spec, lazy) is None
    assert choose(spec, lazy, a, b, c) is b and choose(allowed, lazy, a, b, c) is c
    assert choose(allowed, a, b, made("d", 81.0, True)) is b, "not by a tenth"
    assert choose(allowed, lazy, c) is c and choose(spec, c) is None
    assert choose(replace(spec, choices=(("rows", 3),)), a, T.TILES) is T.TILES
    lines = FamilyTable(a, lazy, c).table(spec, target, a)
    assert [" ".join(line.split()) for line in lines[:2]] == ["-> a 100 cycles", "lazy not possible: it is lazy"]
    assert "rounds differently" in lines[2]


@pytest.mark.parametrize("isa", ["avx512", "avx2", "generic"])
def test_a_depthwise_convolution_is_computed_as_one(isa: str) -> None:
    """Channel by channel, the product of any other family has one column."""
    rng = np.random.default_rng(9)
    for _ in range(300):
        rank, channels = int(rng.integers(1, 4)), int(rng.integers(2, 700))
        kernel = tuple(int(n) for n in rng.integers(1, 8, rank))
        strides, dilation = (tuple(int(n) for n in rng.integers(1, 4, rank)) for _ in range(2))
        out = tuple(int(n) for n in rng.integers(1, 60, rank))
        space = tuple((n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(out, strides, kernel, dilation))
        data, result = (MemoryView.dense((int(rng.integers(1, 5)), *x, channels)) for x in (space, out))
        spec = T.ConvSpec(data, result, kernel, strides, dilation, (0,) * rank, channels, minimal=True).anywhere()
        assert T.CONVOLUTIONS.choose(spec, TARGETS[isa]) is T.DEPTHWISE, spec


def test_every_family_says_what_it_is() -> None:
    for table in TABLES:
        for name, family in table.families.items():
            assert type(family).__doc__ and family.title and family.name == name
