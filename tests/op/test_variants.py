"""Every sample of these operators with each extent made 1, dropped or one larger.

What type inference accepts, the reference and the loop form compute, equally and without a read outside a tensor
(the loop evaluator checks each); everything else is refused by a `RelayError`. Where the loop form is waived, a result
that depends on values may also be refused at run time. What values say of places, as indices do, the reference alone
refuses; the loop form then computes something.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from op_cases import OF_PLACES, arrays_of, cases, infer, lowered, type_of
from test_facets_agree import close, fits

from relaylab.op.rounding import evaluated
from relaylab.ir import OPERATORS, TensorType
from relaylab.support.errors import RelayError

pytestmark = pytest.mark.slow

ROOMS = tuple(f"relaylab.op.{room}" for room in ("tensor", "dyn", "image", "vision", "random", "vm"))
NAMES = [n for n in sorted(OPERATORS) if OPERATORS[n].definition.__module__.startswith(ROOMS)]
CHANGES = ("one", "dropped", "larger")


def changed(arg, axis: int, change: str):
    """An argument of a sample with one of its extents changed; arrays keep their values where they can."""
    if isinstance(arg, np.ndarray):
        n = arg.shape[axis]
        at = {"one": [0], "dropped": 0, "larger": [*range(n), n - 1]}[change]
        return np.take(arg, at, axis)
    new = {"one": (1,), "dropped": (), "larger": (int(arg.shape[axis]) + 1,)}[change]
    return TensorType((*arg.shape[:axis], *new, *arg.shape[axis + 1 :]), arg.dtype)


def variants(args: tuple) -> Iterator[tuple[str, tuple]]:
    """The arguments of a sample, and with each extent of each of them changed in each way."""
    yield "as it is", args
    for k, arg in enumerate(args):
        if isinstance(arg, tuple):
            yield from ((f"{k}.{what}", (*args[:k], inner, *args[k + 1 :])) for what, inner in variants(arg))
            continue
        for axis in range(len(arg.shape)):
            for change in CHANGES:
                new = changed(np.asarray(arg) if not isinstance(arg, TensorType) else arg, axis, change)
                yield f"{k}: axis {axis} {change}", (*args[:k], new, *args[k + 1 :])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_accepted_is_computed(name):
    for _, k, case in (c for c in cases() if c[0] == name):
        record = OPERATORS[name].definition(**case.attrs)
        for what, args in variants(case.args):
            arrays = arrays_of(replace(case, args=args))
            try:
                check(record, arrays, f"{name}, sample {k}, argument {what}")
            except IndexError:  # indices of the sample that are outside now: what the extents do is still to be seen
                check(record, zeroed(arrays, case.args), f"{name}, sample {k}, argument {what}, indices of 0")


def zeroed(arrays, given):
    """The arrays with those that the sample gives by their values filled with zeros."""
    parts = (
        (zeroed(a, g) if isinstance(g, tuple) else a * 0 if not isinstance(g, TensorType) else a)
        for a, g in zip(arrays, given)
    )
    return tuple(parts) if isinstance(arrays, tuple) else list(parts)


def check(record, arrays, what: str) -> None:
    try:
        found = infer(record, *map(type_of, arrays))
    except RelayError:
        return
    assert found is not None, what
    try:
        expected = evaluated(record, arrays)
    except RelayError as error:
        if "lower" not in record.waivers:
            assert error.code in OF_PLACES, what
            lowered(record, arrays, found)
        return
    assert fits(found, type_of(expected)), what
    if "lower" in record.waivers:
        return
    actual = lowered(record, arrays, found)
    for want, got in zip(*((v if isinstance(v, tuple) else (v,)) for v in (expected, actual)), strict=True):
        close(want, got)
