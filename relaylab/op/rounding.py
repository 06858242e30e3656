"""The meaning of operators for bfloat16, which numpy's functions do not know: computed in float32, then rounded.

Choices: docs/choices.md, Numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from relaylab.ir.types import TensorType, TupleType, Type
from relaylab.op.base import Known, Operator
from relaylab.support.dtypes import BFLOAT16


def evaluated(record: Operator, args: Sequence[object], out: Type | None = None) -> object:
    """`record.reference(*args)`, of which bfloat16 arguments become float32, and the parts that `out` (None: what the
    operator's type relation says) has as bfloat16 are rounded to the nearest, halves to even.
    """
    if record.reads_bits or not any(map(_has_bfloat, args)):
        return record.reference(*args)
    if out is None:
        out = record.relation(Known(), *map(type_of, args))
    return _narrow(record.reference(*map(_wide, args)), out)


def _has_bfloat(value: object) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_bfloat, cast("tuple[object, ...]", value)))
    return isinstance(value, np.ndarray) and value.dtype == BFLOAT16


def type_of(value: object) -> Type:
    """The type of an array, or of a tuple of arrays."""
    if isinstance(value, tuple):
        return TupleType(map(type_of, cast("tuple[object, ...]", value)))
    array = np.asarray(value)
    return TensorType(array.shape, array.dtype.name)


def _wide(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(map(_wide, cast("tuple[object, ...]", value)))
    return np.asarray(value).astype("float32") if _has_bfloat(value) else value


def _narrow(value: object, t: Type | None) -> object:
    if isinstance(t, TupleType) and isinstance(value, (tuple, list)):
        return tuple(map(_narrow, cast("Sequence[object]", value), t.fields))
    if not isinstance(t, TensorType) or t.dtype != BFLOAT16.name:
        return value
    with np.errstate(all="ignore"):
        return np.asarray(value).astype("float32").astype(BFLOAT16)
