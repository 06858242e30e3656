"""Digests of fused functions, by which equal ones are known: their names, their kernels, their records."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np

from relaylab.codegen.llvm.cache import digest
from relaylab.ir import Call, Function, Op, post_order, structural_hash, walk

_known: WeakKeyDictionary[Function, str | None] = WeakKeyDictionary()
"""Asked several times in a build; a function never changes."""


def function_digest(function: Function) -> str | None:
    """A digest of all of a function, the same in every process; None if it has operators from outside the package."""
    if function not in _known:
        _known[function] = _digest_of(function)
    return _known[function]


def _digest_of(function: Function) -> str | None:
    operators = (n.op for n in walk((function,)) if isinstance(n, Call) and isinstance(n.op, Op))
    own = all(op.definition.__module__.startswith("relaylab.") for op in operators)
    return digest(str(structural_hash(function)), *_numbers(function)) if own else None


def _numbers(function: Function) -> Iterator[str]:
    """The attributes of all calls to the last bit: a structural hash leaves out what is equal within a tolerance."""
    for node in post_order(function):
        if isinstance(node, Call) and node.attrs is not None:
            yield from (f"{name}={_exact(value)}" for name, value in node.attrs.items())


def _exact(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(_exact, value))})"
    return f"{value.dtype}{value.shape}{value.tobytes().hex()}" if isinstance(value, np.ndarray) else repr(value)
