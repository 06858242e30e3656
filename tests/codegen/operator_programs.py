"""Programs of one operator: what its types, its reference, its loop form and its code say of the same arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from codegen.fault_programs import leaves
from op.op_cases import OF_PLACES, arrays_of, infer, lowered, type_of

from relaylab.op.rounding import evaluated
from relaylab import relay
from relaylab.ir import OPERATORS, Call, Expr, Function, IRModule, TensorType, Tuple, TupleType, Type, Var
from relaylab.op.base import Operator, Sample
from relaylab.runtime import cpu, graph_executor
from relaylab.support.errors import RelayError
from relaylab.transform import PassContext

TOLERANCE = {"bfloat16": 6e-2, "float16": 8e-3, "float32": 1e-4, "float64": 1e-9}
NAMES = "abcdefghijklmnop"
DTYPES = ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "bool")
Place = tuple[int, ...]
"""Where a tensor is among arguments that may be tuples."""


def tensors(args: tuple, path: Place = ()) -> Iterator[tuple[Place, Any]]:
    """The tensors among arguments, by where they are."""
    for k, a in enumerate(args):
        if isinstance(a, tuple):
            yield from tensors(a, (*path, k))
        else:
            yield (*path, k), a


def replaced(args: tuple, path: Place, by: Any) -> tuple:
    """The arguments with another tensor at a place."""
    new = by if len(path) == 1 else replaced(args[path[0]], path[1:], by)
    return (*args[: path[0]], new, *args[path[0] + 1 :])


def retyped(arg: Any, dtype: str) -> Any:
    """A tensor type or an array in another data type; None where integers would not stay what they are."""
    if isinstance(arg, TensorType):
        return TensorType(arg.shape, dtype)
    array = np.asarray(arg)
    with np.errstate(all="ignore"):
        new = array.astype(dtype)
    return new if array.dtype.kind == "f" or np.array_equal(new.astype(array.dtype), array) else None


def commonest(args: tuple) -> list[Place]:
    """The places of the drawn tensors that have the commonest data type."""
    drawn = {p: a.dtype for p, a in tensors(args) if isinstance(a, TensorType)}
    found = list(drawn.values())
    return [p for p, dtype in drawn.items() if dtype == max(sorted(set(found)), key=found.count)]


def recast(args: tuple, places: list[Place], dtype: str) -> tuple:
    """The arguments with the tensors at some places in another data type, where that changes no integers."""
    given = dict(tensors(args))
    for p in places:
        new = retyped(given[p], dtype)
        args = args if new is None else replaced(args, p, new)
    return args


def argument(t: Type, params: list[Var]) -> Expr:
    """A parameter of type `t`, or a tuple of parameters."""
    if isinstance(t, TupleType):
        return Tuple([argument(f, params) for f in t.fields])
    params.append(Var(NAMES[len(params)], t))
    return params[-1]


def program(record: Operator, arrays: list) -> IRModule:
    """The program that applies the operator to inputs of the types of the arrays."""
    params: list[Var] = []
    args = [argument(type_of(a), params) for a in arrays]
    return IRModule.from_expr(Function(params, Call(record.op, args, record if record.fields else None)))


def compiled(record: Operator, arrays: list, target: str, level: int = 3) -> list[np.ndarray]:
    """What compiled code gives, at its second run, into memory that the first run has filled."""
    with PassContext(opt_level=level):
        lib = relay.build(program(record, arrays), target)
    module = graph_executor.GraphModule(lib["default"](cpu(0)))
    for name, value in zip(NAMES, leaves(arrays)):
        module.set_input(name, value)
    module.run()
    module.run()
    return [module.get_output(k).numpy() for k in range(module.get_num_outputs())]


def unlike(what: str, got: list[np.ndarray], want: list[np.ndarray], tolerance: dict[str, float]) -> str:
    """How results differ from those of the reference; nothing where they agree."""
    for a, b in zip(got, want, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{what} gives {a.dtype}{a.shape}, the reference {b.dtype}{b.shape}"
        near = tolerance.get(b.dtype.name, 0)
        if not np.allclose(a.astype("float64"), b.astype("float64"), rtol=near, atol=near, equal_nan=True):
            off = ~np.isclose(a.astype("float64"), b.astype("float64"), rtol=near, atol=near, equal_nan=True)
            return f"{what} gives {a[off][:4]}, the reference {b[off][:4]}, in {off.sum()} of {off.size} places"
    return ""


def accepted(name: str, case: Sample) -> tuple[Operator, list, Type] | None:
    """(attributes, arrays, type of the result) of a case, or None if its types are refused."""
    record, args = OPERATORS[name].definition(**case.attrs), arrays_of(case)
    try:
        return record, args, infer(record, *map(type_of, args))
    except RelayError:
        return None


def difference(name: str, case: Sample, target: str = "", tolerance: dict[str, float] = TOLERANCE) -> str:
    """What is wrong with an operator on a case; nothing if it is refused or all its forms agree (compiled code with a
    target only).
    """
    found = accepted(name, case)
    if found is None or "reference" in found[0].waivers:
        return ""
    record, args, out = found
    try:
        with np.errstate(all="ignore"):
            want = leaves(evaluated(record, args))
    except LookupError:  # an index of the case lies outside its tensor
        return ""
    except RelayError as error:  # what says places does not fit, which compiled code leaves out
        if error.code not in OF_PLACES:
            raise
        return ""
    wrong = mistyped(out, want)
    if wrong or "lower" in record.waivers:
        return wrong
    return unlike("the loop form", leaves(lowered(record, args, out)), want, tolerance) or (
        unlike(f"compiled code ({target})", compiled(record, args, target), want, tolerance) if target else ""
    )


def mistyped(out: Any, want: list[np.ndarray]) -> str:
    """How the results of the reference differ from the type that the relation found."""
    for t, value in zip(getattr(out, "fields", (out,)), want, strict=True):
        if t.dtype != value.dtype.name or len(t.shape) != value.ndim:
            return f"the type is {t}, the result {value.dtype}{value.shape}"
        if any(isinstance(n, int) and n != m for n, m in zip(t.shape, value.shape)):
            return f"the type is {t}, the result {value.dtype}{value.shape}"
    return ""
