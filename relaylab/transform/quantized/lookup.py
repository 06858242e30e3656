"""Functions of quantized numbers as tables: one entry for each integer of an 8 or 16 bit data type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relaylab.interp import Interpreter
from relaylab.ir import Constant, Expr, const
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.transform.engine.build import call
from relaylab.transform.engine.infer_type import typed

Real = Callable[[np.ndarray], np.ndarray]


def run_const_expr(expr: Expr) -> np.ndarray:
    """The value of an expression without free variables."""
    return np.asarray(Interpreter().evaluate(typed(expr)))


def create_integer_lookup_table(
    floating_point_func: Real,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    in_axis: int = -1,
    out_axis: int = -1,
    in_dtype: str = "uint8",
    out_dtype: str = "uint8",
) -> Constant:
    """A table of `floating_point_func`: entry k is the quantized result for the input whose bits are those of k.

    RelayTypeError for data types that are no integers of at most 16 bits.
    """
    info = np.dtype(in_dtype)
    if info.kind not in "iu" or info.itemsize > 2:
        raise RelayTypeError(f"a table of {in_dtype} would be too large", code="qnn.lookup", help="use int8 or uint8")
    bits = np.arange(2 ** (8 * info.itemsize)).astype(f"uint{8 * info.itemsize}")
    real = call("qnn.dequantize", const(bits.view(in_dtype), in_dtype), input_scale, input_zero_point, axis=in_axis)
    results = const(np.asarray(floating_point_func(run_const_expr(real)), "float32"))
    found = call("qnn.quantize", results, output_scale, output_zero_point, axis=out_axis, out_dtype=out_dtype)
    return const(run_const_expr(found), out_dtype)


def create_integer_lookup_op(
    input_arg: Expr,
    floating_point_func: Real,
    in_scale: Expr,
    in_zero_point: Expr,
    out_scale: Expr,
    out_zero_point: Expr,
    in_axis: int = -1,
    out_axis: int = -1,
    in_dtype: str = "uint8",
    out_dtype: str = "uint8",
) -> Expr:
    """`floating_point_func` of a quantized tensor as a look-up; scales and zero points are constant numbers."""
    quantization = (in_scale, in_zero_point, out_scale, out_zero_point)
    if not all(isinstance(q, Constant) and q.data.size == 1 for q in quantization):
        raise RelayValueError("a table needs one constant scale and zero point each", code="qnn.lookup")
    table = create_integer_lookup_table(floating_point_func, *quantization, in_axis, out_axis, in_dtype, out_dtype)
    index = call("reinterpret", input_arg, dtype=f"uint{8 * np.dtype(in_dtype).itemsize}")
    return call("take", table, index, axis=0, mode="fast")
