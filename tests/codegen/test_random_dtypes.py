"""Every operator on other data types than its samples have: refused by its types with a reason, or computed alike by
its reference, its loop form and its compiled code.

A run takes a seeded part of the table of operators, samples, arguments and data types; RELAYLAB_RANDOM_ROUNDS=n takes
n times as much.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from operator_programs import difference
from support.compiled import TARGETS

from relaylab.ir import OPERATORS, TensorType
from relaylab.op.base import Sample

DTYPES = ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "bool")
ROUNDS = int(os.environ.get("RELAYLAB_RANDOM_ROUNDS", "1"))
Path = tuple[int, ...]


def tensors(args: tuple, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The tensors among arguments, by where they are."""
    for k, a in enumerate(args):
        if isinstance(a, tuple):
            yield from tensors(a, (*path, k))
        else:
            yield (*path, k), a


def replaced(args: tuple, path: Path, by: Any) -> tuple:
    """The arguments with another tensor at a place."""
    new = by if len(path) == 1 else replaced(args[path[0]], path[1:], by)
    return (*args[: path[0]], new, *args[path[0] + 1 :])


def retyped(arg: Any, dtype: str) -> Any:
    """A tensor type or an array in another data type; None where integers would not stay what they are."""
    if isinstance(arg, TensorType):
        return TensorType(arg.shape, dtype)
    array = np.asarray(arg)
    with np.errstate(all="ignore"):
        new = array.astype(dtype)
    return new if array.dtype.kind == "f" or np.array_equal(new.astype(array.dtype), array) else None


def variants(name: str, case: Sample) -> Iterator[Sample]:
    """The sample in other data types: of all its drawn tensors that have the commonest one, of each tensor alone, and
    of each attribute that names one.
    """
    places = [] if "start" in case.attrs else list(tensors(case.args))
    drawn = [a.dtype for _, a in places if isinstance(a, TensorType)]
    common = [p for p, a in places if isinstance(a, TensorType) and a.dtype == max(set(drawn), key=drawn.count)]
    groups = [common] * bool(common) + [[p] for p, _ in places if [p] != common]
    for group in groups:
        for dtype in DTYPES:
            args = case.args
            for p in group:
                new = retyped(dict(places)[p], dtype)
                args = args if new is None or args is None else replaced(args, p, new)
            if args is not case.args:
                yield Sample(args, case.attrs, case.low, case.high)
    for attribute in (k for k in OPERATORS[name].definition.fields if "dtype" in k):
        for dtype in DTYPES:
            yield Sample(case.args, {**case.attrs, attribute: dtype}, case.low, case.high)


def chosen(name: str) -> list[tuple[str, Sample]]:
    """(target, variant): a seeded choice among the variants of an operator's samples; most are not compiled."""
    table = [v for case in OPERATORS[name].definition.samples() for v in variants(name, case)]
    seed = zlib.crc32(name.encode())
    order = np.random.default_rng(seed).permutation(len(table))[: 12 * ROUNDS]
    targets = [list(TARGETS.values())[(seed + k) % len(TARGETS)] if k < 3 * ROUNDS else "" for k in range(len(order))]
    return list(zip(targets, (table[at] for at in order)))


@pytest.mark.parametrize("name", sorted(OPERATORS))
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_other_data_types(name: str) -> None:
    wrong = [(why, case) for target, case in chosen(name) if (why := difference(name, case, target))]
    assert not wrong
