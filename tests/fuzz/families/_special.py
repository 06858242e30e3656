"""Short programs on special values: nan, infinities, -0, extremes, denormals; extents of 0 and 1, all data types."""

from __future__ import annotations

from typing import Any

import numpy as np
from fuzz.choices import Choices
from support.networks import Network

from relaylab import relay
from relaylab.analysis import infer_module
from relaylab.ir import Expr, Function, IRModule, Tuple

FLOATS, WHOLE = ("float32", "float64", "float16"), ("int32", "int8", "uint8", "int64", "int16", "uint16", "uint32")
EXACT = (relay.negative, relay.abs, relay.nn.relu, relay.copy)
STEPS = (relay.floor, relay.ceil, relay.trunc, relay.round, relay.sign)
ROUNDED = (
    *(relay.sqrt, relay.exp, relay.log, relay.tanh, relay.sigmoid, relay.sin, relay.cos, relay.atan, relay.erf),
    *(relay.rsqrt, relay.tan, relay.sinh, relay.cosh, relay.log2, relay.log10, relay.asin, relay.acos, relay.asinh),
    *(relay.acosh, relay.atanh),
)
TESTS = (relay.isnan, relay.isinf, relay.isfinite)
PAIRS = (relay.add, relay.subtract, relay.multiply, relay.divide)
PICKS = (relay.maximum, relay.minimum)
ORDERS = (relay.less, relay.equal, relay.not_equal, relay.less_equal, relay.greater, relay.greater_equal)
BITS = (relay.bitwise_and, relay.bitwise_or, relay.bitwise_xor)


def values(draw: Choices, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array of a dtype in which about half of the elements are special."""
    rng = draw.arrays()
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.startswith("float"):
        f = np.finfo(dtype)
        odd = [0.0, -0.0, 1, -1, 0.5, -2.5, np.inf, -np.inf, np.nan, f.max, f.min, f.tiny, -f.tiny]
        odd += [f.smallest_subnormal, f.tiny / 4, f.eps, 1 - f.eps, 2.0**24 + 1 if f.bits > 16 else 2049, -0.75]
        plain = rng.uniform(-4, 4, shape)
    else:
        i = np.iinfo(dtype)
        odd = [0, 1, i.max, i.min, i.max - 1, 2, max(i.min, -1), max(i.min, -3), 7]
        plain = rng.integers(max(i.min, -9), 10, shape)
    picked = np.array(odd, dtype)[rng.integers(0, len(odd), shape)]
    return np.where(rng.random(shape) < 0.5, picked, np.asarray(plain).astype(dtype))


class Maker:
    """Grows a program; `rough` are the expressions that have been rounded, which only selections may read."""

    def __init__(self, draw: Choices):
        self.draw = draw
        self.inputs: dict[Any, np.ndarray] = {}
        self.params: dict[str, np.ndarray] = {}
        self.pool: list[tuple[Expr, tuple[int, ...], str]] = []
        self.rough: set[Expr] = set()
        self.whole = [draw.choice((2, 1, 0, 3, 5, 17)) for _ in range(draw.randrange(4))]

    def leaf(self, dtype: str, data: np.ndarray | None = None) -> Any:
        d = self.draw
        if data is None:
            shape = [n if not d.chance(0.3) else 1 for n in self.whole][d.choice((0, 0, 1)) :]
            data = values(d, tuple(shape), dtype)
        how = d.choice(("input", "input", "parameter", "constant"))
        if how == "constant":
            expr: Any = relay.const(data, dtype)
        else:
            expr = relay.var(f"x{len(self.inputs)}", shape=data.shape, dtype=dtype)
            self.inputs[expr] = data
            if how == "parameter":
                self.params[expr.name_hint] = data
        return self.keep(expr, data.shape, dtype, False)

    def keep(self, expr: Expr, shape: tuple[int, ...], dtype: str, rough: bool) -> Any:
        self.pool.append((expr, shape, dtype))
        if rough:
            self.rough.add(expr)
        return self.pool[-1]

    def other(self, dtype: str) -> Any:
        found = [p for p in self.pool if p[2] == dtype and p[0] not in self.rough]
        return self.draw.choice(found) if found and self.draw.chance(0.5) else self.leaf(dtype)

    def step(self) -> None:
        d = self.draw
        x, shape, dtype = d.choice(self.pool[-3:])
        if x in self.rough:
            self.select(x, shape, dtype, True)
        elif dtype == "bool":
            self.logic(x, shape)
        elif dtype in FLOATS:
            d.choice((self.select, self.element, self.pair, self.compare, self.reduce))(x, shape, dtype, False)
        else:
            d.choice((self.select, self.pair, self.compare, self.reduce, self.integers))(x, shape, dtype, False)

    def select(self, x: Expr, shape: tuple[int, ...], dtype: str, rough: bool) -> None:
        """What gives elements that it was given, up to their sign."""
        d = self.draw
        how = d.choice(("unary", "pick", "where", "transpose", "concatenate", "reshape"))
        if how in ("pick", "where", "concatenate"):
            y, other, _ = self.other(dtype)
        if how == "unary":
            self.keep(d.choice(EXACT if dtype[0] != "u" else EXACT[2:])(x), shape, dtype, rough)
        elif how == "pick":
            self.keep(d.choice(PICKS)(x, y), np.broadcast_shapes(shape, other), dtype, rough)
        elif how == "where":
            c, third, _ = self.leaf("bool")
            self.keep(relay.where(c, x, y), np.broadcast_shapes(shape, other, third), dtype, rough)
        elif how == "transpose":
            self.keep(relay.reshape(relay.transpose(x), newshape=shape), shape, dtype, rough) if shape[1:] == shape[
                :-1
            ] else None
        elif how == "concatenate" and shape and other == shape:
            made = relay.concatenate([x, y], axis=-1)
            self.keep(relay.split(made, 2, axis=-1)[d.randrange(2)], shape, dtype, rough)
        else:
            self.keep(relay.reverse(x, axis=0) if shape else relay.copy(x), shape, dtype, rough)

    def element(self, x: Expr, shape: tuple[int, ...], dtype: str, _: bool) -> None:
        how = self.draw.choice((STEPS, ROUNDED, ROUNDED, TESTS, "clip"))
        if how == "clip":
            self.keep(relay.clip(x, -1.5, 2.0), shape, dtype, False)
        else:
            made = self.draw.choice(how)(x)
            self.keep(made, shape, "bool" if how is TESTS else dtype, how is ROUNDED)

    def pair(self, x: Expr, shape: tuple[int, ...], dtype: str, _: bool) -> None:
        y, other, _ = self.other(dtype)
        ops = PAIRS if dtype in FLOATS else PAIRS[:3]
        self.keep(self.draw.choice(ops)(x, y), np.broadcast_shapes(shape, other), dtype, dtype in FLOATS)

    def integers(self, x: Expr, shape: tuple[int, ...], dtype: str, _: bool) -> None:
        d = self.draw
        y, other, _ = self.other(dtype)
        how = d.choice(("bits", "divide", "shift"))
        if how == "divide":
            ops = (relay.floor_divide, relay.floor_mod, relay.trunc_divide, relay.trunc_mod)
            made = d.choice(ops)(x, relay.maximum(y, relay.const(1, dtype)))
        elif how == "shift":
            few = relay.clip(y, 0, np.iinfo(dtype).bits - 1)
            made = d.choice((relay.right_shift, relay.left_shift))(x, few)
        else:
            made = d.choice(BITS)(x, y)
        self.keep(made, np.broadcast_shapes(shape, other), dtype, False)

    def compare(self, x: Expr, shape: tuple[int, ...], dtype: str, _: bool) -> None:
        y, other, _ = self.other(dtype)
        self.keep(self.draw.choice(ORDERS)(x, y), np.broadcast_shapes(shape, other), "bool", False)

    def reduce(self, x: Expr, shape: tuple[int, ...], dtype: str, _: bool) -> None:
        d = self.draw
        axis = d.randrange(len(shape)) if shape else 0
        if not shape or not shape[axis]:
            return
        op = d.choice((relay.max, relay.min, relay.argmax, relay.argmin))
        made = op(x, axis=axis, keepdims=True)
        dtype = "int32" if op in (relay.argmax, relay.argmin) else dtype
        self.keep(made, (*shape[:axis], 1, *shape[axis + 1 :]), dtype, False)

    def logic(self, x: Expr, shape: tuple[int, ...]) -> None:
        y, other, _ = self.other("bool")
        d = self.draw
        if d.chance(0.3):
            self.keep(relay.logical_not(x), shape, "bool", False)
        else:
            made = d.choice((relay.logical_and, relay.logical_or, relay.logical_xor))(x, y)
            self.keep(made, np.broadcast_shapes(shape, other), "bool", False)


def special_program(draw: Choices) -> Network:
    """A program of one to six steps with its inputs."""
    m = Maker(draw)
    m.leaf(draw.choice(FLOATS[:1] * 4 + FLOATS[1:] * 2 + WHOLE + ("bool",)))
    for _ in range(1 + draw.randrange(6)):
        m.step()
    results = [m.pool[-1][0], *(draw.choice(m.pool)[0] for _ in range(draw.randrange(3)))]
    body = Tuple(results) if len(results) > 1 else results[0]
    mod = infer_module(IRModule.from_expr(Function(list(m.inputs), body)))
    return Network(mod, {v.name_hint: data for v, data in m.inputs.items()}, m.params, 0.0)
