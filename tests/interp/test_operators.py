"""Every operator on every one of its samples: inference finds its type, the evaluator a value of that type."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import relaylab.op  # noqa: F401
from relaylab.analysis import infer_expr, infer_module
from relaylab.interp import Interpreter, random_value
from relaylab.ir import (
    OPERATORS,
    Call,
    Constant,
    Expr,
    Function,
    IncompleteType,
    IRModule,
    TensorType,
    Tuple,
    Var,
    substitute,
)
from relaylab.ir.types import type_leaves
from relaylab.op.base import Sample

pytestmark = pytest.mark.slow

CASES = [
    pytest.param(name, case, id=f"{name}-{k}")
    for name in sorted(OPERATORS)
    if "reference" not in OPERATORS[name].definition.waivers
    for k, case in enumerate(OPERATORS[name].definition.samples())
]


def program(name: str, case: Sample) -> tuple[Function, list]:
    """A function that calls the operator, types becoming parameters and arrays constants; and its arguments."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    params: list[Var] = []
    values: list = []

    def operand(arg) -> Expr:
        if isinstance(arg, tuple):
            return Tuple(map(operand, arg))
        if not isinstance(arg, TensorType):
            return Constant(np.asarray(arg))
        params.append(Var(f"x{len(params)}", arg))
        values.append(random_value(arg, rng, case.low, case.high))
        return params[-1]

    record = OPERATORS[name].definition(**case.attrs)
    call = Call(OPERATORS[name], [operand(a) for a in case.args], record if record.fields else None)
    return Function(params, call), values


@pytest.mark.parametrize("name, case", CASES)
def test_sample(name, case) -> None:
    func, values = program(name, case)
    mod = infer_module(IRModule.from_expr(func))
    typed = mod["main"]
    assert not any(isinstance(t, IncompleteType) for t in type_leaves(typed.checked_type))
    assert typed.body.type_args == tuple(a.checked_type for a in typed.body.args)
    assert infer_module(mod) is mod
    Interpreter(mod).evaluate()(*values)  # refuses results of another type than inferred


@pytest.mark.parametrize("name, case", CASES)
def test_sample_with_types_that_come_last(name, case) -> None:
    """The call is typed when its arguments' types become known only afterwards."""
    func, _ = program(name, case)
    params = [Var(p.name_hint) for p in func.params]
    late = Function(params, substitute(func.body, dict(zip(func.params, params))))
    call = infer_expr(Call(late, func.params))
    assert call.checked_type == infer_expr(func).checked_type.ret_type
