"""Who may write to the memory of an array, and arrays that nobody writes to."""

from __future__ import annotations

from typing import Any, cast

import numpy as np


def may_change(array: np.ndarray) -> bool:
    """Whether someone can write to the memory of an array: to it, or to what it is a view of."""
    owner: Any = array
    while owner is not None:
        if isinstance(owner, np.ndarray) and owner.flags.writeable:
            return True
        owner = getattr(cast(object, owner), "base", None)
    return False


class TensorData(np.ndarray):
    """The read-only array of a constant; `.numpy()` is the plain array."""

    def numpy(self) -> np.ndarray:
        return self.view(np.ndarray)

    asnumpy = numpy


def as_array(data: object) -> np.ndarray[Any, np.dtype[Any]]:
    """An array from numbers, lists of them, an array, or what has `.numpy()`; its bytes in this machine's order."""
    array = np.asarray(getattr(data, "numpy", lambda: data)())
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def read_only(data: object) -> TensorData:
    """The array, or a copy of it if somebody can write to its memory."""
    array = as_array(data)
    if may_change(array):
        array = array.copy()
        array.setflags(write=False)
    return array.view(TensorData)
