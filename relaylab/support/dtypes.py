"""The data types of tensors, and the one that numpy lacks: importing this makes `np.dtype("bfloat16")` known, by the
package ml_dtypes.

Choices: docs/choices.md, Numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import ml_dtypes
import numpy as np
from ml_dtypes import finfo as finfo

from relaylab.support.errors import RelayTypeError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
"""One sign bit, 8 of the exponent, 7 of the fraction: the upper half of a float32."""

_DTYPE_NAMES = {"int": "int32", "uint": "uint32", "float": "float32", "uint1": "bool"}


def dtype_name(dtype: object) -> str:
    """The canonical name of a data type: `float32`, `int8`, `bool` …; numpy's types are accepted."""
    if isinstance(dtype, str):
        name = _DTYPE_NAMES.get(dtype, dtype)
    elif type(dtype) in _NUMPY_NAMES:  # numpy makes the name anew each time
        return _NUMPY_NAMES[type(dtype)]
    else:
        try:
            name = np.dtype(cast("DTypeLike", dtype)).name
        except (TypeError, ValueError, SyntaxError):
            name = str(dtype)
    if name not in DTYPES:
        raise RelayTypeError(
            f"`{name}` is not a data type of tensors", code="type.unknown-dtype", help="known: " + " ".join(DTYPES)
        )
    return name


DTYPES = (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    BFLOAT16.name,
)  # fmt: skip
_NUMPY_NAMES: dict[type, str] = {type(np.dtype(name)): name for name in DTYPES}
"""By numpy's own classes, of which each data type has one: numpy makes a name anew each time."""
