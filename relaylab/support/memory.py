"""Who may write to the memory of an array."""

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
