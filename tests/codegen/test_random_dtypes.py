"""Every operator on other data types than its samples have: refused by its types with a reason, or computed alike by
its reference, its loop form and its compiled code.

A run takes a seeded part of the table of operators, samples, arguments and data types; RELAYLAB_RANDOM_ROUNDS=n takes
n times as much.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator

import numpy as np
import pytest
from operator_programs import DTYPES, commonest, difference, recast, tensors
from support.compiled import TARGETS

from relaylab.ir import OPERATORS
from relaylab.op.base import Sample

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("RELAYLAB_RANDOM_ROUNDS", "1"))


def variants(name: str, case: Sample) -> Iterator[Sample]:
    """The sample in other data types: of all its drawn tensors that have the commonest one, of each tensor alone, and
    of each attribute that names one.
    """
    places = [] if "start" in case.attrs else list(tensors(case.args))
    common = commonest(case.args)
    for group in [common] * bool(places and common) + [[p] for p, _ in places if [p] != common]:
        for dtype in DTYPES:
            args = recast(case.args, group, dtype)
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
