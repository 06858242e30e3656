"""Convolution kernels against numpy: 1-3 axes, strides, dilation, groups, halos, strided outputs, every ISA."""

from __future__ import annotations

import conv_reference as reference
import numpy as np
import pytest
from kernel_runner import TARGETS, bias_relu_residual, convolved, framed, index_scale, runnable_targets

from relaylab.codegen import templates as T
from relaylab.codegen.kernels.kernel import MemoryView, dense_strides
from relaylab.support.errors import RelayValueError

pytestmark = pytest.mark.slow

# batch, spatial, in channels, out channels, kernel, strides, dilation, padding, groups
DIRECT = [
    (1, (7, 7), 16, 32, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (2, (9, 11), 5, 33, (3, 3), (2, 2), (1, 1), (1, 1), 1),
    (1, (12, 13), 3, 20, (7, 7), (2, 2), (1, 1), (3, 3), 1),
    (1, (14, 14), 24, 40, (1, 1), (1, 1), (1, 1), (0, 0), 1),
    (2, (10, 10), 8, 16, (1, 1), (2, 2), (1, 1), (0, 0), 1),
    (1, (11, 9), 6, 18, (3, 2), (1, 2), (2, 3), (2, 1), 3),
    (1, (30,), 4, 9, (5,), (2,), (1,), (2,), 1),
    (2, (5, 6, 7), 3, 10, (3, 2, 3), (1, 2, 1), (1, 1, 2), (1, 0, 2), 1),
    (1, (6, 6), 64, 130, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (1, (1, 40), 2, 1, (1, 3), (1, 1), (1, 1), (0, 1), 1),
    (1, (8, 8), 12, 12, (3, 3), (1, 1), (1, 1), (1, 1), 4),
    (1, (9, 8), 21, 3, (3, 3), (1, 1), (1, 1), (1, 1), 1),  # few output channels: lanes along the input's
    (2, (6, 7), 34, 4, (3, 3), (2, 1), (1, 2), (1, 1), 2),
    (2, (9, 20), 70, 33, (3, 3), (1, 1), (6, 8), (6, 8), 1),  # taps of which some tiles read the border only
    (1, (8, 7), 40, 18, (3, 5), (2, 1), (9, 7), (9, 14), 1),  # or all
    (2, (26,), 24, 20, (4,), (3,), (9,), (12,), 2),
    (1, (5, 6, 4), 20, 17, (3, 3, 3), (1, 2, 1), (3, 7, 2), (3, 7, 2), 1),
]
DEPTHWISE = [
    (1, (14, 15), 40, 40, (3, 3), (1, 1), (1, 1), (1, 1), 40),
    (2, (13, 12), 16, 16, (3, 3), (2, 2), (1, 1), (1, 1), 16),
    (1, (9, 10), 21, 21, (5, 5), (1, 1), (2, 2), (4, 4), 21),
    (1, (12, 12), 8, 8, (7, 7), (2, 1), (1, 1), (3, 3), 8),
    (1, (33,), 19, 19, (4,), (3,), (1,), (0,), 19),
    (1, (5, 6, 7), 10, 10, (3, 3, 3), (1, 2, 1), (1, 1, 1), (1, 1, 1), 10),
]
TRANSPOSED = [  # ... then output padding
    (1, (4, 4), 16, 33, (4, 4), (2, 2), (1, 1), (1, 1), 1, (0, 0)),
    (2, (5, 3), 6, 8, (3, 3), (2, 3), (1, 1), (1, 0), 2, (1, 2)),
    (1, (6, 5), 4, 20, (2, 2), (3, 3), (1, 1), (0, 0), 1, (0, 0)),
    (1, (7,), 5, 6, (5,), (1,), (2,), (3,), 1, (0,)),
    (1, (4, 4), 3, 7, (3, 3), (2, 2), (2, 2), (1, 1), 1, (1, 1)),
    (1, (3, 4, 2), 4, 5, (3, 2, 4), (2, 1, 2), (1, 1, 1), (1, 0, 1), 1, (1, 0, 0)),
    (1, (5, 4), 35, 3, (4, 4), (2, 2), (1, 1), (1, 1), 1, (0, 0)),
]


def direct_spec(case, dtype="float32", pitch=0, channels_first=False):
    n, spatial, ic, oc, kernel, strides, dilation, padding, groups = case
    out = tuple(
        (s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, t, d, p in zip(spatial, kernel, strides, dilation, padding)
    )
    return fit(T.DIRECT.reads, case, (n, *spatial, ic), (n, *out, oc), dtype, pitch, channels_first)


def transposed_spec(case, dtype="float32", pitch=0):
    n, spatial, ic, oc, kernel, strides, dilation, padding, groups, extra = case
    out = tuple(
        (s - 1) * t - 2 * p + d * (k - 1) + 1 + e
        for s, k, t, d, p, e in zip(spatial, kernel, strides, dilation, padding, extra)
    )
    return fit(T.PHASES.reads, case, (n, *spatial, ic), (n, *out, oc), dtype, pitch)


def fit(halo, case, data_shape, out_shape, dtype, pitch, channels_first=False):
    """The spec with exactly the halo it needs; `pitch` makes the output a slice of a wider buffer."""
    out = MemoryView(dtype, out_shape, dense_strides((*out_shape[:-1], out_shape[-1] + pitch)), pitch // 2)
    bare = T.ConvSpec(MemoryView.dense(data_shape, dtype), out, *case[4:9])
    data = framed(data_shape, halo(bare), dtype)
    if channels_first:
        first = framed(
            (data_shape[0], data_shape[-1], *data_shape[1:-1]), (data.halo[0], data.halo[-1], *data.halo[1:-1]), dtype
        )
        back = (0, *range(2, len(data_shape)), 1)
        data = MemoryView(dtype, data_shape, tuple(first.strides[a] for a in back), first.offset, data.halo)
    return T.ConvSpec(data, out, *case[4:9])


def check(spec, target, family, refer, weight_shape, epilogue=None, splits=1):
    rng = np.random.default_rng(3)
    dtype = spec.data.dtype
    make = (lambda s: rng.integers(-9, 9, s)) if "int" in dtype else rng.standard_normal
    x, r, bias = (make(s).astype(dtype) for s in (spec.data.shape, spec.out.shape, spec.out.shape[-1:]))
    w = make(weight_shape).astype(dtype)
    want = refer(x, w, spec.out.shape[1:-1], spec.strides, spec.dilation, spec.padding, spec.groups)
    extra = None
    if epilogue in ("residual", "rolled", "in place"):
        extra, want = bias_relu_residual(spec.out, epilogue == "rolled"), np.maximum(want + bias + r, 0)
    elif epilogue == "index":
        extra, want = index_scale(len(spec.out.shape)), want * (1 + np.indices(spec.out.shape).sum(0))
    sides = {"residual": r, "bias": bias, "in_place": epilogue == "in place"}
    got, made = convolved(family, spec, TARGETS[target], x, w, extra, splits, **sides)
    assert len(made.kernels) == 1
    np.testing.assert_allclose(got, want, rtol=3e-5, atol=5e-6 * max(10, abs(want).max()))
    return got


def check_direct(case, target, **options):
    spec_options = {k: options.pop(k) for k in ("dtype", "pitch", "channels_first") if k in options}
    shape = (case[3], case[2] // case[8], *case[4])
    return check(direct_spec(case, **spec_options), target, T.DIRECT, reference.conv, shape, **options)


def check_depthwise(case, target, pitch=0, **options):
    return check(direct_spec(case, pitch=pitch), target, T.DEPTHWISE, reference.conv, (case[3], 1, *case[4]), **options)


def check_transposed(case, target, pitch=0, **options):
    return check(
        transposed_spec(case, pitch=pitch),
        target,
        T.PHASES,
        reference.conv_transpose,
        (case[2], case[3] // case[8], *case[4]),
        **options,
    )


KINDS = [(check_direct, DIRECT), (check_depthwise, DEPTHWISE), (check_transposed, TRANSPOSED)]
EVERY = [pytest.param(run, case, id=f"{run.__name__}-{case}") for run, cases in KINDS for case in cases]


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("run,case", EVERY)
def test_plain(run, case, target):
    run(case, target)


@pytest.mark.parametrize("epilogue", ["residual", "index", "rolled", "in place"])
@pytest.mark.parametrize("run,case", EVERY)
def test_epilogue_into_a_slice(run, case, epilogue):
    run(case, runnable_targets()[-1], pitch=6, epilogue=epilogue)


@pytest.mark.parametrize("target", runnable_targets())
def test_channels_first_input_and_other_dtypes(target):
    check_direct(DIRECT[1], target, channels_first=True)
    check_direct(DIRECT[5], target, dtype="float64")
    check_direct(DIRECT[0], target, dtype="int32")


@pytest.mark.parametrize(
    "run,case", [(run, cases[0]) for run, cases in KINDS], ids=["direct", "depthwise", "transposed"]
)
def test_split_of_items_does_not_change_a_bit(run, case):
    whole = run(case, runnable_targets()[-1])
    for splits in (2, 5):
        assert (run(case, runnable_targets()[-1], splits=splits) == whole).all()


def test_missing_halo_is_declined():
    spec = direct_spec(DIRECT[0])
    bare = T.ConvSpec(MemoryView.dense(spec.data.shape), spec.out, *DIRECT[0][4:9])
    assert "halo" in T.DIRECT.declines(bare, TARGETS["generic"])
    with pytest.raises(RelayValueError, match="halo"):
        T.DIRECT.build(bare, TARGETS["generic"])
