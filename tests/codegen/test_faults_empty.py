"""Tensors without elements everywhere: empty results, the identities of reductions, or an error that says so."""

from __future__ import annotations

import numpy as np
import pytest
from fault_programs import alike, program

from relaylab.support.errors import RelayError

pytestmark = pytest.mark.slow

ANY = (
    "add(%a, %a)", "exp(%a)", "nn.relu(%a)", "sum(%a)", "sum(%a, axis=[0])", "prod(%a)", "mean(%a)", "max(%a)",
    "min(%a, axis=[0])", "all(isnan(%a))", "any(isnan(%a))", "nn.softmax(%a)", "nn.log_softmax(%a)", "transpose(%a)",
    "concatenate((%a, %a), axis=0)", "concatenate((%a, %a), axis=1)", "stack((%a, %a), axis=0)",
    "reshape(%a, newshape=[-1])",
    "cumsum(%a, axis=0)", "split(%a, indices_or_sections=1, axis=0)", "tile(%a, reps=[2, 2])", "reverse(%a, axis=0)",
    "repeat(%a, repeats=2, axis=0)", "nn.batch_flatten(%a)", 'cast(%a, dtype="int8")', "where(less(%a, 0f), %a, %a)",
    "variance(%a, mean(%a, axis=[0], keepdims=True), axis=[0])",
    "squeeze(expand_dims(%a, axis=0), axis=[0])",
    'one_hot(cast(%a, dtype="int32"), 1f, 0f, depth=3, axis=-1, dtype="float32")',
    "nn.l2_normalize(%a, eps=1e-5f, axis=[1])",
)  # fmt: skip
CONV = "nn.conv2d(%a, %b, padding=[1, 1, 1, 1])"
OTHERS = [
    ("concatenate((%a, %b), axis=0)", (0, 3), (2, 3)), ("nn.pad(%a, 1f, pad_width=[[1, 1], [1, 1]])", (0, 3)),
    ("nn.dense(%a, %b, units=None)", (0, 4), (5, 4)), ("nn.dense(%a, %b, units=None)", (3, 0), (5, 0)),
    ("nn.relu(nn.dense(%a, %b, units=None))", (3, 4), (0, 4)),
    ("nn.batch_matmul(%a, %b, transpose_b=True)", (0, 4, 3), (0, 5, 3)),
    ("nn.batch_matmul(%a, %b, transpose_b=True)", (2, 4, 0), (2, 5, 0)),
    (CONV, (0, 3, 8, 8), (4, 3, 3, 3)), (CONV, (1, 0, 8, 8), (4, 0, 3, 3)), (CONV, (1, 3, 8, 8), (0, 3, 3, 3)),
    (CONV.replace("(%a", "(add(%a, 1f)"), (3, 1, 16, 0), (8, 1, 1, 1)), (CONV, (2, 5, 0, 0), (4, 5, 2, 2)),
    (CONV, (0, 128, 8, 8), (128, 128, 3, 3)), (CONV[:-1] + ", groups=32)", (0, 32, 8, 8), (32, 1, 3, 3)),
    ("nn.conv2d_transpose(%a, %b)", (0, 3, 8, 8), (4, 3, 3, 3)),
    ("nn.max_pool2d(%a, pool_size=[2, 2], strides=[2, 2])", (0, 3, 8, 8)),
    ("nn.avg_pool2d(%a, pool_size=[2, 2], strides=[2, 2])", (1, 0, 8, 8)),
    ("nn.global_avg_pool2d(%a)", (1, 3, 0, 8)), ("nn.global_max_pool2d(%a)", (1, 3, 0, 8)),
    ("nn.adaptive_avg_pool2d(%a, output_size=[2, 2])", (1, 3, 0, 8)), ("nn.layer_norm(%a, %b, %b)", (0, 3), (3,)),
    ("nn.batch_norm(%a, %b, %b, %b, %b).0", (0, 3, 8, 8), (3,)), ("image.resize2d(%a, size=[4, 4])", (0, 3, 8, 8)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "level"), [((0, 3), 3), ((3, 0), 0), ((0, 0), 3), ((2, 0, 4), 3)])
def test_any_operators(shape: tuple[int, ...], level: int) -> None:
    alike(f"({', '.join(ANY)})", np.zeros(shape, "float32"), level=level)


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("case", OTHERS, ids=lambda c: f"{c[0][:24]} {c[1]}")
def test_operators_with_several_inputs(case: tuple, level: int) -> None:
    body, *shapes = case
    alike(body, *(np.ones(shape, "float32") for shape in shapes), level=level)


def test_nothing_is_taken() -> None:
    alike("take(%a, %b, axis=0)", np.ones((4, 3), "float32"), np.zeros(0, "int32"))


@pytest.mark.parametrize(("body", "shape", "words"), [
    ("argmax(%a)", (3, 0), "nothing to choose from"), ("argmin(%a, axis=[1])", (3, 0), "nothing to choose from"),
    (CONV.replace("%b", "ones(shape=[4, 3, 3, 3], dtype=\"float32\")"), (1, 3, 0, 8), "does not fit"),
    ("nn.max_pool2d(%a, pool_size=[2, 2])", (1, 3, 0, 8), "does not fit"),
    ("image.resize2d(%a, size=[4, 4])", (1, 3, 0, 8), "nothing to resample"),
])  # fmt: skip
def test_what_has_no_answer_is_refused(body: str, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(RelayError, match=words) as caught:
        program(body, np.zeros(shape, "float32"))
    assert caught.value.code == "type.operator" and caught.value.place and caught.value.help
