"""Minimal filtering kernels against direct convolution in float64: tilings, tails, epilogues, error bounds."""

from __future__ import annotations

from dataclasses import replace

import conv_reference as reference
import numpy as np
import pytest
from kernel_runner import TARGETS, bias_relu_residual, convolved, framed, index_scale, runnable_targets

from relaylab.codegen import templates as T
from relaylab.codegen.kernels.kernel import MemoryView, dense_strides
from relaylab.codegen.templates.family import FamilyTable

pytestmark = pytest.mark.slow

CASES = [  # batch, height, width, in channels, out channels, padding
    (1, 8, 8, 16, 16, 1),
    (1, 7, 9, 20, 33, 1),
    (2, 6, 5, 3, 8, 0),
    (1, 14, 14, 96, 160, 1),
    (1, 30, 29, 32, 32, 1),
    (1, 3, 3, 130, 128, 1),
]


def spec_of(case, m, pitch=0):
    n, h, w, ic, oc, pad = case
    shape = (n, h + 2 * pad - 2, w + 2 * pad - 2, oc)
    out = MemoryView("float32", shape, dense_strides((*shape[:-1], oc + pitch)), pitch // 2)
    arguments = out, (3, 3), (1, 1), (1, 1), (pad, pad)
    halo = T.MINIMAL[m, 3].reads(T.ConvSpec(MemoryView.dense((n, h, w, ic)), *arguments))
    return T.ConvSpec(framed((n, h, w, ic), halo), *arguments)


def run(case, m, target, pitch=0, epilogue=None, splits=1, scale=1.0):
    spec, rng = spec_of(case, m, pitch), np.random.default_rng(5)
    x, r, bias = (rng.standard_normal(s).astype("f") for s in (spec.data.shape, spec.out.shape, spec.out.shape[-1:]))
    w = (rng.standard_normal((case[4], case[3], 3, 3)) * scale).astype("f")
    want = reference.conv(x, w, spec.out.shape[1:3], (1, 1), (1, 1), spec.padding, 1)
    extra = None
    if epilogue in ("residual", "in place"):
        extra, want = bias_relu_residual(spec.out), np.maximum(want + bias + r, 0)
    elif epilogue == "index":
        extra, want = index_scale(4), want * (1 + np.indices(want.shape).sum(0))
    sides = {"residual": r, "bias": bias, "in_place": epilogue == "in place"}
    got, made = convolved(T.MINIMAL[m, 3], spec, TARGETS[target], x, w, extra, splits, **sides)
    assert bool(made.workspaces) == (len(made.kernels) == 3)
    return got, want


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_against_direct(case, m, target):
    got, want = run(case, m, target)
    np.testing.assert_allclose(got, want, rtol=0, atol={2: 2e-6, 4: 1e-5}[m] * abs(want).max())


@pytest.mark.parametrize("epilogue", ["residual", "index", "in place"])
@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("case", CASES[:4], ids=str)
def test_epilogue_into_a_slice(case, m, epilogue):
    got, want = run(case, m, runnable_targets()[-1], pitch=6, epilogue=epilogue)
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * abs(want).max())


@pytest.mark.parametrize("m", [2, 4])
def test_error_grows_slowly_with_depth(m):
    """The documented bound: a small multiple of the rounding unit times the square root of the depth."""
    for channels in (16, 64, 256):
        got, want = run((1, 12, 12, channels, 32, 1), m, runnable_targets()[-1])
        bound = {2: 1.5e-7, 4: 6e-8}[m] * np.sqrt(9 * channels)
        assert np.sqrt(np.mean((got - want) ** 2)) / np.sqrt(np.mean(want**2)) < bound


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("case", [CASES[1], CASES[3]], ids=str)
def test_split_of_items_does_not_change_a_bit(case, m):
    whole, _ = run(case, m, runnable_targets()[-1])
    for splits in (2, 3):
        assert (run(case, m, runnable_targets()[-1], splits=splits)[0] == whole).all()


@pytest.mark.parametrize(
    "size,ic,oc,allowed,m",
    [
        (56, 64, 64, (2, 4), 4),
        (14, 256, 256, (2, 4), 4),
        (56, 64, 64, (2,), 2),
        (56, 64, 64, (), 0),
        (224, 3, 64, (2, 4), 0),
        (1, 64, 64, (2, 4), 0),
        (7, 512, 512, (2, 4), 2),  # F(4, 3) would read 38 MB of weights
    ],
)
def test_choice_between_algorithms(size, ic, oc, allowed, m):
    spec = replace(spec_of((1, size, size, ic, oc, 1), 4), minimal=True)
    families = FamilyTable(T.DIRECT, *(T.MINIMAL[k, 3] for k in allowed))
    assert families.choose(spec, TARGETS["avx512"]) is (T.MINIMAL[m, 3] if m else T.DIRECT)


PHASED = [  # batch, height, width, in channels, out channels, kernel, stride, padding, m
    (1, 20, 20, 32, 64, 4, 2, 0, 3),
    (1, 21, 17, 4, 32, 8, 4, 0, 3),
    (2, 16, 13, 20, 18, 4, 2, 1, 3),
    (1, 9, 9, 130, 16, 4, 2, 1, 3),
    (1, 12, 12, 8, 16, 2, 1, 0, 3),
    (1, 22, 18, 6, 16, 6, 2, 2, 2),
    (1, 22, 18, 6, 16, 6, 2, 2, 4),
    (1, 20, 19, 32, 64, 4, 2, 0, 2),
    (2, 9, 9, 130, 96, 2, 1, 1, 2),
    (1, 14, 13, 20, 33, 5, 1, 2, 2),
    (2, 12, 10, 16, 18, 4, 1, 2, 3),
    (1, 30, 29, 3, 64, 7, 2, 3, 3),
    (1, 21, 24, 8, 16, 5, 2, 0, 4),
    (1, 40, 37, 3, 16, 11, 4, 2, 4),
    (1, 18, 16, 40, 20, 3, 2, 1, 3),
]
TURNED = [  # of transposed ones, with output padding at the end
    (1, 8, 8, 32, 64, 4, 2, 1, 2, 0),
    (2, 5, 6, 20, 18, 4, 2, 0, 2, 0),
    (1, 7, 4, 130, 16, 4, 2, 3, 3, 1),
    (1, 4, 5, 7, 33, 8, 4, 2, 2, 0),
    (1, 5, 7, 6, 16, 6, 2, 5, 4, 1),
    (1, 5, 7, 6, 16, 9, 3, 2, 2, 1),
    (2, 6, 6, 16, 20, 3, 1, 1, 4, 0),
    (1, 5, 7, 6, 16, 5, 2, 2, 4, 1),
    (1, 6, 5, 20, 33, 3, 2, 1, 2, 1),
    (1, 6, 5, 20, 17, 10, 2, 4, 2, 0),
    (1, 6, 6, 16, 20, 2, 1, 2, 2, 0),
]


DILATED = [  # the same with dilation
    (1, 14, 13, 20, 33, 3, 2, 2, 4),
    (2, 9, 20, 130, 96, 3, 4, 4, 2),
    (1, 12, 12, 8, 16, 2, 3, 0, 3),
    (1, 24, 17, 16, 20, 5, 2, 4, 2),
    (1, 5, 3, 16, 20, 3, 6, 6, 4),
]


def computed(family, spec, gap, x, weight, target, splits=1):
    """What the kernels of a family make of it; `gap` elements lie between pixels of the input."""
    halo = family.reads(spec)
    spec = replace(spec, data=framed(spec.data.shape, (*halo[:3], (0, gap))))
    return convolved(family, spec, TARGETS[target], x, weight, splits=splits)[0]


def phased(case, target, gap=0, splits=1):
    """(got, wanted) of a convolution, or a transposed one."""
    n, h, w, ic, oc, k, s, pad, m, *turned = case
    rng = np.random.default_rng(6)
    edge = lambda n: (n - 1) * s - 2 * pad + k + turned[0] if turned else (n + 2 * pad - k) // s + 1
    out, family = MemoryView.dense((n, edge(h), edge(w), oc)), (T.FLIPPED if turned else T.MINIMAL)[m, -(-k // s)]
    spec = T.ConvSpec(MemoryView.dense((n, h, w, ic)), out, (k, k), (s, s), (1, 1), (pad, pad))
    x = rng.standard_normal((n, h, w, ic)).astype("f")
    weight = rng.standard_normal((ic, oc, k, k) if turned else (oc, ic, k, k)).astype("f")
    by = reference.conv_transpose if turned else reference.conv
    want = by(x, weight, out.shape[1:3], (s, s), (1, 1), (pad, pad), 1)
    return computed(family, spec, gap, x, weight, target, splits), want


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("case", DILATED, ids=str)
def test_dilation_makes_phases_of_results_with_the_same_weights(case, target):
    n, h, w, ic, oc, k, d, pad, m = case
    rng = np.random.default_rng(7)
    out = MemoryView.dense((n, h + 2 * pad - d * (k - 1), w + 2 * pad - d * (k - 1), oc))
    spec = T.ConvSpec(MemoryView.dense((n, h, w, ic)), out, (k, k), (1, 1), (d, d), (pad, pad))
    x, weight = rng.standard_normal((n, h, w, ic)).astype("f"), rng.standard_normal((oc, ic, k, k)).astype("f")
    want = reference.conv(x, weight, out.shape[1:3], (1, 1), (d, d), (pad, pad), 1)
    for gap in (0, 16):
        got = computed(T.MINIMAL[m, k], spec, gap, x, weight, target)
        np.testing.assert_allclose(got, want, rtol=0, atol=(1e-5 if m + k > 5 else 2e-6) * abs(want).max())


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("gap", [0, 16])
@pytest.mark.parametrize("case", PHASED + TURNED, ids=str)
def test_strides_become_phases(case, gap, target):
    got, want = phased(case, target, gap)
    np.testing.assert_allclose(
        got, want, rtol=0, atol=(1e-5 if case[8] + -(-case[5] // case[6]) > 5 else 2e-6) * abs(want).max()
    )


@pytest.mark.parametrize("case", [PHASED[0], TURNED[0]], ids=str)
def test_split_of_tiles_in_phases_does_not_change_a_bit(case):
    target = runnable_targets()[-1]
    assert (phased(case, target, splits=3)[0] == phased(case, target)[0]).all()


@pytest.mark.parametrize(
    "size,ic,oc,kernel,stride,m",
    [
        (20, 32, 64, 4, 2, 3),
        (84, 4, 32, 8, 4, 3),
        (224, 3, 64, 7, 2, 3),
        (14, 256, 512, 3, 2, 0),
        (56, 64, 64, 5, 1, 2),
        (56, 64, 64, 7, 1, 0),
    ],
)
def test_kernels_of_other_sizes_are_filtered_where_that_takes_less(size, ic, oc, kernel, stride, m):
    data = MemoryView.dense((1, size, size, ic))
    edge = (size - kernel) // stride + 1
    spec = T.ConvSpec(data, MemoryView.dense((1, edge, edge, oc)), (kernel,) * 2, (stride,) * 2, (1, 1), (0, 0))
    chosen = T.CONVOLUTIONS.choose(replace(spec, minimal=True).anywhere(), TARGETS["avx512"])
    assert chosen is (T.MINIMAL[m, -(-kernel // stride)] if m else T.DIRECT)
