"""Helpers of tests on programs: run one pass, count operators, draw values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np

from relaylab.analysis import infer_module
from relaylab.ir import Call, Expr, Function, IRModule, Op, walk
from relaylab.runtime.ndarray import NDArray, array
from relaylab.support.errors import RelayTypeError

E = TypeVar("E", bound=Expr)


def run_opt_pass(expr: Expr, opt_pass: Callable[[IRModule], IRModule], import_prelude: bool = False) -> Expr:
    """`expr` after InferType and one pass: a function if it was one, else the body."""
    if not callable(opt_pass):
        raise RelayTypeError(
            "opt_pass must be a pass", code="zoo.not-a-pass", help="call the factory: relay.transform.FoldConstant()"
        )
    mod = IRModule.from_expr(expr)
    if import_prelude:
        mod.import_from_std("prelude.rly")
    entry = opt_pass(infer_module(mod))["main"]
    return entry if isinstance(expr, Function) else entry.body


def run_infer_type(expr: E) -> E:
    """`expr` with types."""
    return cast(E, run_opt_pass(expr, infer_module))


def count_ops(expr: Expr) -> Counter[str]:
    """How often each operator is called."""
    return Counter(n.op.name for n in walk((expr,)) if isinstance(n, Call) and isinstance(n.op, Op))


def rand(dtype: str = "float32", *shape: int) -> NDArray:
    """Values from [0, 1) as an array of a data type."""
    return array(np.random.rand(*shape).astype(dtype))
