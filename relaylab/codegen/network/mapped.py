"""Programs whose weights lie in files that may be written over.

Choices: docs/choices.md, Importing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from relaylab.ir import Constant, Expr, IRModule, walk
from relaylab.runtime.ndarray import NDArray
from relaylab.support.memory import check_files, files_under


@contextmanager
def unchanged_files(mod: IRModule | Expr, params: Mapping[str, Any] | None = None) -> Iterator[None]:
    """ChangedFile, before the block or after it, if weights of a program lie in a file that is written over."""
    values = (v.values() if isinstance(v, NDArray) else v for v in (params or {}).values())
    given = (v for v in values if isinstance(v, np.ndarray))
    roots = mod.functions.values() if isinstance(mod, IRModule) else (mod,)
    files = files_under(given) | files_under(n.data for n in walk(roots) if isinstance(n, Constant))
    check_files(files)
    yield
    check_files(files)
