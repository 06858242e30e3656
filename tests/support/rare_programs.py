"""Random programs as those of `programs`, of all data types, with axes of length 0 and 1.

    from support.rare_programs import rare_inputs, rare_program

    mod = rare_program(7)                               # a typed module; its features follow from the seed
    inputs = rare_inputs(mod, 7)                        # arrays for `main`

Integers wrap, so what is computed of them is exact; floats stay small, and become integers only after a clip.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from support.programs import FEATURES, INT, ProgramMaker, Scope

from relaylab.analysis import infer_module
from relaylab.ir import Expr, Function, GlobalVar, If, IRModule, Let, RefCreate, RefRead, RefWrite, TensorType, Tuple
from relaylab.ir import TupleGetItem, const
from relaylab.op.base import call_operator

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SHAPES = ([(), (3,), (1, 3), (2, 1), (2, 3)], [(), (0,), (1, 0), (2, 1), (2, 0)], [(), (1,), (1, 1)])
"""Shapes that occur in one program; each broadcasts with each."""
KINDS = (
    FEATURES, FEATURES - {"ref"}, {"graph"}, {"graph", "tuple"}, {"graph", "let", "tuple", "if"},
    {"graph", "closure", "function", "recursion", "let"}, {"graph", "adt", "if", "tuple", "poly", "function"},
)  # fmt: skip


def rare_program(seed: int, size: int = 10) -> IRModule:
    """A typed module; the same for the same arguments."""
    rng = np.random.default_rng(seed)
    features = frozenset(KINDS[int(rng.integers(len(KINDS)))])
    return infer_module(RareMaker(rng, size, features).module())


def rare_inputs(mod: IRModule, seed: int) -> list[np.ndarray]:
    """Arrays for the parameters of `main`."""
    rng = np.random.default_rng(seed)
    return [numbers(rng, p.checked_type, 5) for p in mod["main"].params]


def numbers(rng: Any, t: TensorType, most: int) -> np.ndarray:
    """Small numbers of a type."""
    shape, dtype = t.concrete_shape, np.dtype(t.dtype)
    if t.dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if t.dtype in FLOATS:
        return np.asarray(rng.uniform(-1, 1, shape)).astype(dtype)
    return np.asarray(rng.integers(0 if t.dtype[0] == "u" else -most, most + 1, shape)).astype(dtype)


class RareMaker(ProgramMaker):
    """Grows programs over one to four data types."""

    def __init__(self, rng: Any, size: int, features: frozenset[str]):
        super().__init__(rng, size, features)
        self.shapes: list[tuple[int, ...]] = self.draw([*SHAPES, SHAPES[0]])
        self.dtypes = [self.draw([*FLOATS, *INTS, "bool"]) for _ in range(1 + int(rng.integers(4)))]

    def shape(self) -> TensorType:
        return TensorType(self.draw(self.shapes), self.draw(self.dtypes))

    def constant(self, t: TensorType) -> Expr:
        return const(numbers(self.rng, t, 3), t.dtype)

    def tensor(self, scope: Scope) -> tuple[Expr, TensorType]:
        found = [(e, t) for e, t in scope if isinstance(t, TensorType) and t.dtype in self.dtypes]
        found = [(e, t) for e, t in found if t.concrete_shape in self.shapes]
        return self.draw(found[-8:]) if found else (self.constant(t := self.shape()), t)

    def squash(self, x: Expr, dtype: str) -> Expr:
        """Another value of the type, small if it is a float."""
        if dtype == "bool":
            return call_operator("logical_not", x)
        return call_operator("tanh", x) if dtype in FLOATS else call_operator("negative", x)

    def recast(self, x: Expr, t: TensorType, dtype: str) -> Expr:
        """The value as another data type; what no integer can hold is cut off."""
        if t.dtype == dtype:
            return x
        limited = call_operator("clip", x, a_min=0.0, a_max=3.0) if t.dtype in FLOATS and dtype in INTS else x
        return call_operator("cast", limited, dtype=dtype)

    def coerce(self, scope: Scope, t: TensorType) -> Expr:
        value, found = self.tensor(scope)
        if found == t:
            return value
        if np.broadcast_shapes(found.concrete_shape, t.concrete_shape) != t.concrete_shape:
            return self.squash(self.pick(scope, t), t.dtype)
        return call_operator(
            "logical_or" if t.dtype == "bool" else "add", self.recast(value, found, t.dtype), self.pick(scope, t)
        )

    def makers(self, depth: int) -> list:
        return [*super().makers(depth), self.cast, self.where, self.shaped]

    # ---- steps

    def unary(self, scope: Scope, lets: list, depth: int):
        value, t = self.tensor(scope)
        plain = ["negative", "abs", "nn.relu", "copy", "sign"]
        more = {"bool": ["logical_not", "copy"], **dict.fromkeys(INTS, [*plain, "bitwise_not"])}
        return call_operator(self.draw(more.get(t.dtype, [*plain, "tanh", "sigmoid", "cos", "floor"])), value), t

    def binary(self, scope: Scope, lets: list, depth: int):
        (a, t), (b, u) = self.tensor(scope), self.tensor(scope)
        shape = np.broadcast_shapes(t.concrete_shape, u.concrete_shape)
        b = self.recast(b, u, t.dtype)
        if t.dtype == "bool":
            return call_operator(self.draw(["logical_and", "logical_or", "logical_xor", "equal"]), a, b), TensorType(
                shape, "bool"
            )
        if self.rng.random() < 0.15:
            return call_operator(self.draw(["less", "equal", "greater_equal"]), a, b), TensorType(shape, "bool")
        names = ["add", "subtract", "multiply", "maximum", "minimum"]
        value = call_operator(self.draw(names + ["bitwise_and", "bitwise_xor"] * (t.dtype in INTS)), a, b)
        return self.squash(value, t.dtype), TensorType(shape, t.dtype)

    def cast(self, scope: Scope, lets: list, depth: int):
        (value, t), dtype = self.tensor(scope), self.draw(self.dtypes)
        return self.recast(value, t, dtype), TensorType(t.shape, dtype)

    def where(self, scope: Scope, lets: list, depth: int):
        value, t = self.tensor(scope)
        chosen = value if t.dtype == "bool" else call_operator("less", self.pick(scope, t), value)
        return call_operator("where", chosen, value, self.pick(scope, t)), t

    def shaped(self, scope: Scope, lets: list, depth: int):
        value, t = self.tensor(scope)
        shape, kind = t.concrete_shape, self.draw(["sum", "concatenate", "reshape", "transpose", "slice", "zeros_like"])
        if kind == "zeros_like":
            return call_operator(kind, value), t
        if kind == "sum" and t.dtype != "bool" and shape:
            return self.squash(call_operator(kind, value), t.dtype), TensorType((), t.dtype)
        if kind == "reshape":
            longer = call_operator("reshape", value, newshape=[*shape, 1])
            return call_operator("squeeze", longer, axis=[len(shape)]), t
        if len(shape) < 2:
            return None
        if kind == "transpose":
            return call_operator(kind, call_operator(kind, value, axes=[1, 0]), axes=[1, 0]), t
        if kind == "concatenate" and shape[0] == 1 and (2, shape[1]) in self.shapes:
            return call_operator(kind, Tuple([value, self.pick(scope, t)]), axis=0), TensorType((2, shape[1]), t.dtype)
        if kind == "slice" and shape[0] == 2 and (1, shape[1]) in self.shapes:
            row = call_operator("strided_slice", value, begin=[1], end=[2], strides=[1], axes=[0])
            return row, TensorType((1, shape[1]), t.dtype)
        return None

    def tuple(self, scope: Scope, lets: list, depth: int):
        (a, t), (b, u) = self.tensor(scope), self.tensor(scope)
        both: Expr = Tuple([a, Tuple([b, Tuple([]), self.pick(scope, INT)])])
        if "let" in self.features and self.rng.random() < 0.5:
            var = self.var(None, "t")
            lets.append((var, both))
            both = var
        return (TupleGetItem(both, 0), t) if self.rng.random() < 0.5 else (TupleGetItem(TupleGetItem(both, 1), 0), u)

    def cell(self, scope: Scope, lets: list, depth: int):
        t, ref, done, seen = self.shape(), self.var(None, "r"), self.var(None, "u"), self.var(None, "s")
        both = "logical_xor" if t.dtype == "bool" else "add"
        write: Expr = RefWrite(ref, self.squash(call_operator(both, RefRead(ref), self.pick(scope, t)), t.dtype))
        if self.rng.random() < 0.4:
            write = If(self.condition(scope), write, RefWrite(ref, self.pick(scope, t)))
        last = call_operator(both, RefRead(ref), seen)
        return Let(ref, RefCreate(self.pick(scope, t)), Let(seen, RefRead(ref), Let(done, write, last))), t

    def function(self, name: str) -> None:
        takes = [*(self.shape() for _ in range(int(self.rng.integers(1, 4)))), INT]
        gives, params = self.shape(), [self.var(t, "x") for t in takes]
        main = name == "main"
        steps = self.size if main else max(2, self.size // 3)
        body = self.body(list(zip(params, takes)), gives, steps, 2 if main else 1)
        self.mod[GlobalVar(name)] = Function(params, body, gives if self.rng.random() < 0.5 else None)
        self.calls.append((self.mod.get_global_var(name), takes, gives))
