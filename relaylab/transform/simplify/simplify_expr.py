"""SimplifyExpr: algebra that needs no knowledge of values: rules until none fits. Choices: docs/choices.md, Passes."""

from __future__ import annotations

import math

import numpy as np

from relaylab.ir import Call, Constant, Expr, Function, IRModule, TensorType, op_name
from relaylab.ir.dims import AnyDim
from relaylab.op.base import OpPattern
from relaylab.transform.engine.build import call, is_scalar_constant, reshaped, scalar, scalar_value
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.pattern import is_constant, is_op, wild, wildcard
from relaylab.transform.rewriting.rules import RuleSet, Types, apply_rules, rule
from relaylab.transform.simplify.canonicalize_cast import bits
from relaylab.transform.simplify.simplify_shapes import SHAPES

x, like, c1, c2 = wild("x"), wild("like"), is_constant().named("c1"), is_constant().named("c2")


def _static(types: Types, expr: Expr) -> TensorType | None:
    found = types.tensor(expr)
    return found if found is not None and not found.is_dynamic else None


def _as_wide(types: Types, x: Expr, root: Expr) -> bool:
    """Whether an operand has the shape of the result: of two unknown extents one may be 1."""
    t, whole = types.tensor(x), types.tensor(root)
    if t is None or whole is None or t.shape != whole.shape:
        return False
    return not any(type(d) is AnyDim for d in t.shape)


# ---- what is "like" another tensor, when the shape is known


@rule(is_op("zeros_like")(like))
def zeros_like(root, types):
    """zeros_like(x) is zeros of x's shape."""
    t = _static(types, root)
    return t and call("zeros", shape=t.shape, dtype=t.dtype)


@rule(is_op("ones_like")(like))
def ones_like(root, types):
    """ones_like(x) is ones of x's shape."""
    t = _static(types, root)
    return t and call("ones", shape=t.shape, dtype=t.dtype)


@rule(is_op("full_like")(like, x))
def full_like(root, types, x):
    """full_like(y, x) is full(x) of y's shape."""
    t = _static(types, root)
    return t and call("full", x, shape=t.shape, dtype=t.dtype)


@rule(is_op("reshape_like")(x, like))
def reshape_like(root, types, x):
    """reshape_like(x, y) is reshape(x) to y's shape."""
    t = _static(types, root)
    return t and reshaped(x, t.shape)


@rule(is_op("collapse_sum_like")(x, like))
def collapse_sum_like(root, types, x):
    """collapse_sum_like(x, y) is collapse_sum_to(x) of y's shape."""
    t = _static(types, root)
    return t and call("collapse_sum_to", x, Constant(np.array(t.concrete_shape, "int64")), shape=t.shape)


@rule(is_op("broadcast_to_like")(x, like))
def broadcast_to_like(root, types, x):
    """broadcast_to_like(x, y) is broadcast_to(x) of y's shape."""
    t = _static(types, root)
    return t and call("broadcast_to", x, shape=t.shape)


LIKE = RuleSet([zeros_like, ones_like, full_like, reshape_like, collapse_sum_like, broadcast_to_like])

# ---- arithmetic


@rule(wild("numerator") / is_op("sqrt")(x))
def reciprocal_sqrt(root, types, numerator, x):
    """a / sqrt(x) is a * rsqrt(x), except for integers, of which rsqrt keeps nothing."""
    t = types.tensor(root)
    return call("multiply", numerator, call("rsqrt", x)) if t is None or "float" in t.dtype else None


_number = is_constant().named("number")
_zeros = is_op("zeros")() | is_op("zeros_like")(wildcard()) | _number
_ones = is_op("ones")() | is_op("ones_like")(wildcard()) | _number


@rule((x + _zeros) | (x - _zeros) | (x * _ones) | (x / _ones))
def identity(root, types, x, number):
    """x + 0, x - 0, x * 1 and x / 1 are x, if the type stays; a zero of floats keeps its sign."""
    neutral = 0 if op_name(root) in ("add", "subtract") else 1
    if number is not None and not (is_scalar_constant(number) and number.data == neutral):
        return None
    same = types(x) is not None and types(x) == types(root)
    return x if same and (number is not None or _as_wide(types, x, root)) else None


_value = is_constant().named("value")
_filled_ones = is_op("ones")() | is_op("ones_like")(wildcard())
_filled_zeros = is_op("zeros")() | is_op("zeros_like")(wildcard())
_filled = (is_op("full")(_value) | is_op("full_like")(wildcard(), _value) | _filled_ones | _filled_zeros).named(
    "filled"
)
_broadcast = wildcard().has_attr({"TOpPattern": int(OpPattern.BROADCAST)})


@rule(_broadcast(_filled, x) | _broadcast(x, _filled))
def filled_operand(root, types, found, x, filled, value):
    """A tensor filled with one number, as an operand that does not change the shape, is that number."""
    t = types.tensor(filled)
    # an attribute may name an axis of the operand
    if t is None or root.op.definition.fields or not _as_wide(types, x, root):
        return None
    number = value if value is not None else scalar(1 if _filled_ones in found else 0, t.dtype)
    if not is_scalar_constant(number) or number.data.dtype.name != t.dtype:
        return None
    args = (number, x) if root.args[0] is filled else (x, number)
    return Call(root.op, args, root.attrs, root.type_args)


@rule((x + c1) + c2)
def add_constants(x, c1, c2):
    """(x + c1) + c2 is x + (c1 + c2); floats are rounded, and overflow, in another place."""
    return None if isinstance(x, Constant) else call("add", x, call("add", c1, c2))


ARITHMETIC = RuleSet([reciprocal_sqrt, identity])

# ---- casts

_cast1 = (is_op("cast")(x) | is_op("cast_like")(x, wildcard())).named("inner")


@rule(is_op("cast")(x) | is_op("cast_like")(x, wildcard()))
def same_cast(root, types, x):
    """A cast to the data type that is there already is nothing."""
    source, target = types.tensor(x), types.tensor(root)
    return x if source is not None and target is not None and source.dtype == target.dtype else None


@rule(is_op("cast")(_cast1) | is_op("cast_like")(_cast1, wildcard()))
def two_casts(root, types, x, inner):
    """Two casts are one if the first loses nothing; by way of a float, integers saturate where they else wrap."""
    source, middle, target = types.tensor(x), types.tensor(inner), types.tensor(root)
    if source is None or middle is None or target is None or not widens(source.dtype, middle.dtype):
        return None
    whole = "int" in source.dtype and "int" in target.dtype and "int" not in middle.dtype
    return call("cast", x, dtype=target.dtype) if not whole or widens(source.dtype, target.dtype) else None


@rule(is_op("cast_like")(x, like))
def cast_like(root, types, x):
    """The data type of another tensor is known: that tensor is not needed."""
    target = types.tensor(root)
    return call("cast", x, dtype=target.dtype) if target is not None else None


def widens(source: str, target: str) -> bool:
    """Whether a cast keeps every value. (Numpy takes float64 for wide enough for int64, which it is not.)"""
    return np.can_cast(source, target) and not (bits(source) == 64 and "float" in target and "int" in source)


CASTS = RuleSet([same_cast, two_casts, cast_like])

# ---- order statistics do not see quantization


_quantized = is_op("qnn.dequantize")(x, wild("scale"), wild("zero"))


@rule(is_op("argmax")(_quantized) | is_op("argmin")(_quantized) | is_op("argsort")(_quantized))
def of_dequantized(root, types, x, scale, zero):
    """The order of quantized numbers is that of the numbers, if all have one scale, above 0, and one zero point.

    Floats do not tell wide integers apart.
    """
    source = types.tensor(x)
    if source is None or bits(source.dtype) > 16 or not (scalar_value(scale) or 0) > 0:
        return None
    one = all((t := _static(types, p)) is not None and math.prod(t.concrete_shape) == 1 for p in (scale, zero))
    return Call(root.op, (x,), root.attrs, root.type_args) if one else None


SIMPLIFY = LIKE + ARITHMETIC + SHAPES + CASTS + RuleSet([filled_operand, add_constants, of_dequantized])


@pass_(level=0, requires=("InferType",), idempotent=True)
class SimplifyExpr(FunctionPass):
    """Applies algebraic rules until none fits: identities, chains of reshapes, transposes and casts, filled tensors.

    As in the reference, floats are taken for numbers: x + 0 is x (-0.0 stays -0.0, where the sum is 0.0), (x + a) + b
    is x + (a + b) (1 + 1e8 - 1e8 is 1, not 0; a + b may overflow where the sums do not), a / sqrt(x) is a * rsqrt(x),
    rounded once more. NaN and infinities of x stay: x * 0 and x - x are not touched. For the bits of IEEE 754 leave the
    pass out: `PassContext(disabled_pass=["SimplifyExpr"])`.
    """

    rules = SIMPLIFY

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return apply_rules(func, SIMPLIFY, mod)
