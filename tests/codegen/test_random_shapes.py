"""Every operator that has a loop form on other shapes than its samples have: nothing, one element, odd tails, wide
broadcasting. Its types refuse them with a reason, or reference, loop form and compiled code agree.

A run takes a few seeded shapes of each operator; RELAYLAB_RANDOM_ROUNDS=n takes n times as many.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from operator_programs import DTYPES, accepted, commonest, difference, recast, tensors
from support.compiled import TARGETS

from relaylab.ir import OPERATORS, TensorType
from relaylab.op.base import Broadcast, Sample, sample

pytestmark = pytest.mark.slow

EXTENTS = (0, 1, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33)
ROUNDS = int(os.environ.get("RELAYLAB_RANDOM_ROUNDS", "1"))
MOST = 20_000
"""The most elements of one tensor."""


def shaped(arg: Any, extents: dict[int, int]) -> Any:
    """An argument with extents replaced in the shapes of drawn tensors."""
    if isinstance(arg, tuple):
        return tuple(shaped(a, extents) for a in arg)
    return (
        TensorType([extents.get(int(n), int(n)) for n in arg.shape], arg.dtype) if isinstance(arg, TensorType) else arg
    )


def shapes(args: tuple) -> Iterator[tuple[int, ...]]:
    """The shapes of the drawn tensors among arguments."""
    yield from (a.concrete_shape for _, a in tensors(args) if isinstance(a, TensorType))


def resized(name: str, rng: np.random.Generator) -> Sample | None:
    """A sample of the operator with some of its extents replaced, each everywhere by the same; None without samples."""
    samples = OPERATORS[name].definition.samples()
    if not samples:
        return None
    case = samples[rng.integers(len(samples))]
    known = sorted({n for shape in shapes(case.args) for n in shape})
    args = case.args
    if rng.random() < 0.4:
        args = recast(args, commonest(args), str(rng.choice(DTYPES)))
    changed = {n: int(rng.choice(EXTENTS)) for n in known if rng.random() < (1.0 if len(known) < 2 else 0.5)}
    return Sample(tuple(shaped(a, changed) for a in args), case.attrs, case.low, case.high)


def spread(name: str, rng: np.random.Generator) -> Sample:
    """A sample of a broadcasting operator: shapes of rank 0 .. 5 in which any extent may be 1 or missing."""
    case = OPERATORS[name].definition.samples()[0]
    whole = [int(rng.choice(EXTENTS[1:] if k else EXTENTS)) for k in range(rng.integers(0, 6))]
    while math.prod(whole) > MOST:
        whole[int(np.argmax(whole))] = 2
    args, dtype = [], str(rng.choice(DTYPES))
    for _ in case.args:
        shape = [n if rng.random() < 0.6 else 1 for n in whole][
            int(rng.integers(0, len(whole) + 1)) * (rng.random() < 0.5) :
        ]
        args.append(TensorType(shape, dtype))
    return Sample(tuple(args), case.attrs, case.low, case.high)


def small(args: tuple) -> bool:
    """Whether no tensor has too many elements."""
    return all(math.prod(shape) <= MOST for shape in shapes(args))


def chosen(name: str) -> Iterator[Sample]:
    """Seeded cases that the operator's types accept."""
    definition = OPERATORS[name].definition
    rng, wanted = np.random.default_rng(zlib.crc32(name.encode())), 3 * ROUNDS
    for _ in range(20 * ROUNDS if "lower" not in definition.waivers else 0):
        wide = issubclass(definition, Broadcast) and definition.inputs == ("lhs", "rhs") and rng.random() < 0.7
        case = spread(name, rng) if wide else resized(name, rng)
        if case is None or not small(case.args) or not (found := accepted(name, case)):
            continue
        if small(tuple(getattr(found[2], "fields", (found[2],)))):
            yield case
            wanted -= 1
        if not wanted:
            return


def whole(dtype: str, *shape: int) -> TensorType:
    """A tensor type of another data type than float32."""
    return TensorType(shape, dtype)


CLOSE = {"block_shape": (2, 3), "paddings": ((0, 0), (0, 0))}
APART = {"block_shape": (2, 3), "crops": ((0, 0), (0, 0))}
FOUND = [
    ("argmax", sample((2, 0, 31), axis=1, exclude=True)), ("argmin", sample((0, 3, 4), axis=1)),
    ("nn.adaptive_max_pool3d", sample((1, 3, 2, 2, 0), output_size=())), ("nn.dilate", sample((0, 33), strides=(2, 3))),
    ("nn.lrn", sample((2, 0, 3, 2))), ("vision.yolo_reorg", sample((0, 4, 4, 6), stride=2)),
    ("nn.space_to_batch_nd", sample((2, 0, 6, 5), **CLOSE)), ("nn.batch_to_space_nd", sample((12, 2, 0, 2), **APART)),
    ("nn.deformable_conv2d", sample((0, 4, 3, 1), (0, 18, 3, 1), (3, 4, 3, 3), padding=(1, 1))),
    ("variance", sample(whole("int8", 2, 16, 5), whole("int8", 1, 1, 1))),
    ("variance", sample(whole("int32", 2, 0, 4), whole("int32", 1, 1, 1))),
    ("mean", sample(whole("int64", 0, 3), axis=0)),
    ("image.dilation2d", sample(whole("int16", 1, 2, 31, 33), whole("int16", 2, 1, 2), padding=(1, 1))),
    ("image.resize3d", sample(whole("uint8", 1, 2, 4, 5, 3), size=(7, 8, 5), low=0, high=255)),
    ("image.resize2d",
     sample(whole("int8", 1, 4, 3, 2), size=(7, 5), layout="NHWC", method="cubic", low=-128, high=127)),
    ("cumsum", sample((2, 7), axis=1, dtype="uint8")), ("cumprod", sample((2, 3), dtype="int8", exclusive=True)),
    ("sign", sample(whole("bool", 5))), ("floor", sample(whole("bool", 3, 17))), ("abs", sample(whole("bool", 33))),
    ("nn.conv2d", sample(whole("int8", 1, 3, 5, 5), whole("int32", 2, 3, 3, 3), out_dtype="int64", low=-128, high=127)),
    ("qnn.quantize", sample(whole("float16", 2, 3), np.float32(0.05), np.int32(3), out_dtype="int8")),
    ("qnn.quantize", sample(whole("float64", 2, 3), np.float32(0.05), np.int32(3), out_dtype="uint8")),
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "case"), FOUND, ids=[f"{name}-{k}" for k, (name, _) in enumerate(FOUND)])
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_what_once_differed(name: str, case: Sample, target: str) -> None:
    assert accepted(name, case) is not None
    assert not difference(name, case, TARGETS[target])


@pytest.mark.parametrize("name", sorted(OPERATORS))
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_other_shapes(name: str) -> None:
    for k, case in enumerate(chosen(name)):
        target = list(TARGETS.values())[(zlib.crc32(name.encode()) + k) % len(TARGETS)]
        assert not difference(name, case, target), case
