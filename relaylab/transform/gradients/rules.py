"""The derivatives of operators: for the gradient of a result, the gradients of the arguments.

A rule gets the call (typed), the call's value and the gradient of that value, and returns one
gradient for each argument; for an operator that returns a tuple the gradient is a list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

from relaylab.ir import Call, Expr, Op, TensorType, Tuple, TupleGetItem, TupleType, Type, as_expr, facets, op_name
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean, registered
from relaylab.transform.engine.build import call, reshaped, scalar
from relaylab.transform.engine.infer_type import dtype_of, fields_of, rank_of, shape_of, type_of

GradientRule = Callable[[Call, Expr, Any], Sequence[Any]]
GRADIENTS: dict[str, GradientRule] = {}


def gradient_of(*names: str) -> Callable[[GradientRule], GradientRule]:
    """Register a rule for operators (also one of your own)."""
    return registered(GRADIENTS, names)


def gradient_rule(node: Call) -> GradientRule:
    """The rule of the operator that is called, one that a program has registered first; `RelayValueError` if there is
    none.
    """
    name = op_name(node)
    own = node.op.get_attr("FPrimalGradient") if isinstance(node.op, Op) else None
    if own is not None:
        made = lambda call, grad: cast(Callable[..., Sequence[Any]], own)(call, _as_tuple(grad))
        return lambda call, value, grad: [
            _as_fields(g, type_of(a)) for g, a in zip(made(call, grad), call.args, strict=True)
        ]
    if name not in GRADIENTS:
        hint = did_you_mean(name, GRADIENTS) or "register one with relaylab.transform.gradients.rules.gradient_of"
        raise RelayValueError(f"the gradient of {name} is not known", code="gradient.unknown", help=hint)
    rule = GRADIENTS[name]
    return _narrowed(node, rule) if node.attrs is not None and node.attrs.get("out_dtype") else rule


def _narrowed(node: Call, rule: GradientRule) -> GradientRule:
    """The rule of a product whose sums are wider than what it is made of: gradients are of the types of these."""
    found = type_of(node)
    if not isinstance(found, TensorType) or all(dtype_of(a) == found.dtype for a in node.args):
        return rule

    def narrowed(c: Call, y: Expr, g: Expr | list[Expr]) -> list[Expr]:
        return [call("cast", d, dtype=dtype_of(a)) for d, a in zip(rule(c, y, g), node.args, strict=True)]

    return narrowed


def _as_tuple(grad: Expr | list[Any]) -> Expr:
    return Tuple(list(map(_as_tuple, grad))) if isinstance(grad, list) else grad


def _as_fields(grad: object, t: Type | None) -> object:
    """A gradient; of a tuple a list, which it may be an expression of."""
    if not isinstance(t, TupleType):
        return grad
    whole = as_expr(grad)
    parts = whole.fields if isinstance(whole, Tuple) else [TupleGetItem(whole, i) for i in range(len(t.fields))]
    return [_as_fields(g, f) for g, f in zip(parts, t.fields, strict=True)]


def add(x: Expr, y: Expr) -> Expr:
    return call("add", x, y)


def sub(x: Expr, y: Expr) -> Expr:
    return call("subtract", x, y)


def mul(x: Expr, y: Expr) -> Expr:
    return call("multiply", x, y)


def div(x: Expr, y: Expr) -> Expr:
    return call("divide", x, y)


def neg(x: Expr) -> Expr:
    return call("negative", x)


def like(value: float, x: Expr) -> Expr:
    """A scalar of the data type of `x`."""
    return scalar(value, dtype_of(x))


def square(x: Expr) -> Expr:
    return mul(x, x)


def unbroadcast(g: Expr, x: Expr) -> Expr:
    """A gradient summed over what `x` was broadcast along."""
    return call("collapse_sum_like", g, x)


# ---- one argument: the derivative from the argument and the result

_UNARY: dict[str, Callable[[Expr, Expr], Expr]] = {
    "exp": lambda x, y: y,
    "log": lambda x, y: div(like(1, x), x),
    "log2": lambda x, y: div(like(1 / math.log(2), x), x),
    "log10": lambda x, y: div(like(1 / math.log(10), x), x),
    "sqrt": lambda x, y: div(like(0.5, x), y),
    "rsqrt": lambda x, y: mul(like(-0.5, x), mul(y, square(y))),
    "sigmoid": lambda x, y: mul(y, sub(like(1, x), y)),
    "tanh": lambda x, y: sub(like(1, x), square(y)),
    "negative": lambda x, y: neg(call("ones_like", x)),  # of unsigned numbers, too
    "copy": lambda x, y: call("ones_like", x),
    "abs": lambda x, y: call("sign", x),
    "sin": lambda x, y: call("cos", x),
    "cos": lambda x, y: neg(call("sin", x)),
    "tan": lambda x, y: add(like(1, x), square(y)),
    "sinh": lambda x, y: call("cosh", x),
    "cosh": lambda x, y: call("sinh", x),
    "asin": lambda x, y: call("rsqrt", sub(like(1, x), square(x))),
    "acos": lambda x, y: neg(call("rsqrt", sub(like(1, x), square(x)))),
    "atan": lambda x, y: div(like(1, x), add(like(1, x), square(x))),
    "asinh": lambda x, y: call("rsqrt", add(square(x), like(1, x))),
    "acosh": lambda x, y: call("rsqrt", sub(square(x), like(1, x))),
    "atanh": lambda x, y: div(like(1, x), sub(like(1, x), square(x))),
    "erf": lambda x, y: mul(like(2 / math.sqrt(math.pi), x), call("exp", neg(square(x)))),
}
for _name, _derivative in _UNARY.items():
    gradient_of(_name)(lambda c, y, g, d=_derivative: [mul(g, d(c.args[0], y))])

for _name in ("floor", "ceil", "round", "trunc", "sign", "zeros_like", "ones_like"):
    gradient_of(_name)(lambda c, y, g: [call("zeros_like", c.args[0])])
for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    gradient_of(_name)(lambda c, y, g: [call("zeros_like", a) for a in c.args])
for _name in ("zeros", "ones"):
    gradient_of(_name)(lambda c, y, g: [call("zeros_like", a) for a in c.args])
for _name in ("reshape", "nn.batch_flatten", "expand_dims", "squeeze", "contrib_reverse_reshape"):
    gradient_of(_name)(lambda c, y, g: [call("reshape_like", g, c.args[0])])


def _masked(g: Expr, keep: Expr) -> Expr:
    return call("where", keep, g, call("zeros_like", g))


@gradient_of("nn.relu")
def _relu(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x = c.args[0]
    return [_masked(g, call("greater", x, call("zeros_like", x)))]


@gradient_of("nn.leaky_relu")
def _leaky_relu(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x = c.args[0]
    return [call("where", call("greater", x, call("zeros_like", x)), g, mul(g, like(facets(c).alpha, x)))]


@gradient_of("clip")
def _clip(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x, a = c.args[0], facets(c)
    low = call("full_like", x, like(a.a_min, x))
    high = call("full_like", x, like(a.a_max, x))
    return [_masked(_masked(g, call("greater_equal", x, low)), call("less_equal", x, high))]


@gradient_of("cast", "cast_like")
def _cast(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    return [call("cast", g, dtype=dtype_of(c.args[0])), *(call("zeros_like", a) for a in c.args[1:])]


# ---- two arguments


@gradient_of("add")
def _add(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    return [unbroadcast(g, a) for a in c.args]


@gradient_of("subtract")
def _subtract(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    return [unbroadcast(g, c.args[0]), unbroadcast(neg(g), c.args[1])]


@gradient_of("multiply")
def _multiply(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    a, b = c.args
    return [unbroadcast(mul(g, b), a), unbroadcast(mul(g, a), b)]


@gradient_of("divide")
def _divide(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    a, b = c.args
    return [unbroadcast(div(g, b), a), unbroadcast(neg(div(mul(g, a), square(b))), b)]


@gradient_of("power")
def _power(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    """Without the infinities that meet a factor of zero: x ** 0 has no slope, nor has 0 ** y for y from 0 on."""
    a, b = c.args
    one, none = like(1, b), like(0, b)
    left = mul(g, mul(b, call("power", a, sub(call("where", call("equal", b, none), one, b), one))))
    flat = call("logical_and", call("equal", a, none), call("greater_equal", b, none))
    return [unbroadcast(left, a), unbroadcast(mul(g, mul(y, call("log", call("where", flat, one, a)))), b)]


@gradient_of("maximum", "minimum")
def _extremum(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    a, b = c.args
    first = call("greater_equal" if op_name(c) == "maximum" else "less_equal", a, b)
    zeros = call("zeros_like", g)
    return [unbroadcast(call("where", first, g, zeros), a), unbroadcast(call("where", first, zeros, g), b)]


@gradient_of("where")
def _where(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    cond, a, b = c.args
    zeros = call("zeros_like", g)
    return [
        call("zeros_like", cond),
        unbroadcast(call("where", cond, g, zeros), a),
        unbroadcast(call("where", cond, zeros, g), b),
    ]


# ---- shapes and tuples


@gradient_of("transpose")
def _transpose(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    rank = rank_of(c.args[0])
    axes = [a % rank for a in facets(c).axes or range(rank - 1, -1, -1)]
    return [call("transpose", g, axes=[axes.index(i) for i in range(rank)])]


@gradient_of("reshape_like", "broadcast_to_like", "collapse_sum_like")
def _as_other(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    back = {
        "reshape_like": "reshape_like",
        "broadcast_to_like": "collapse_sum_like",
        "collapse_sum_like": "broadcast_to_like",
    }
    return [call(back[op_name(c)], g, c.args[0]), call("zeros_like", c.args[1])]


@gradient_of("broadcast_to")
def _broadcast_to(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    return [unbroadcast(g, c.args[0])]


@gradient_of("concatenate")
def _concatenate(c: Call, y: Expr, g: Expr) -> Sequence[Any]:
    fields = [f for f in fields_of(c.args[0]) if isinstance(f, TensorType)]
    axis = facets(c).axis % rank_of(c)
    ends, total = [], 0
    for f in fields[:-1]:
        total += f.concrete_shape[axis]
        ends.append(total)
    if not ends:
        return [[g]]
    parts = call("split", g, indices_or_sections=ends, axis=axis)
    return [[TupleGetItem(parts, i) for i in range(len(fields))]]


@gradient_of("split")
def _split(c: Call, y: Expr, g: Sequence[Expr]) -> Sequence[Expr]:
    return [call("concatenate", Tuple(g), axis=facets(c).axis)]


@gradient_of("stack")
def _stack(c: Call, y: Expr, g: Expr) -> Sequence[Any]:
    fields = fields_of(c.args[0])
    axis = facets(c).axis % rank_of(c)
    parts = call("split", g, indices_or_sections=len(fields), axis=axis)
    return [[call("squeeze", TupleGetItem(parts, i), axis=[axis]) for i in range(len(fields))]]


# ---- reductions


def reduced(c: Call) -> list[int]:
    return list(facets(c).axes(rank_of(c.args[0])))


def spread(c: Call, value: Expr) -> Expr:
    """A value of the result's shape, broadcast along the axes that were reduced."""
    x = c.args[0]
    axes = reduced(c)
    kept = [1 if i in axes else int(d) for i, d in enumerate(shape_of(x))]
    return call("broadcast_to", reshaped(value, kept), shape=shape_of(x))


@gradient_of("sum")
def _sum(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    return [spread(c, g)]


def shared(c: Call, g: Expr, count: int) -> Expr:
    """The gradient of a call, divided by a number that may be more than a float16 holds."""
    return mul(g, like(1 / count, c)) if count > 65504 else div(g, like(count, c))


@gradient_of("mean")
def _mean(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    count = math.prod(int(shape_of(c.args[0])[i]) for i in reduced(c))
    return [spread(c, shared(c, g, count))]


def divided(c: Call, g: Expr, found: Expr, **how: object) -> Expr:
    """The gradient of an extremum for each of the equals that were found: all of it would be more than moving them
    together changes.
    """
    many = call("sum", call("cast", found, dtype="int32"), exclude=False, **how)
    return div(g, call("cast", many, dtype=dtype_of(c)))


@gradient_of("max", "min")
def _max(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    if not (axes := reduced(c)):
        return [g]
    found = call("equal", c.args[0], spread(c, y))
    return [_masked(spread(c, divided(c, g, found, axis=axes, keepdims=facets(c).keepdims)), found)]
