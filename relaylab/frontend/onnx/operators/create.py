"""Tensors out of nothing: constants, ranges, random numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.draws import drawn
from relaylab.frontend.graph import Graph, is_open, of_count
from relaylab.frontend.onnx.model import dtype_of
from relaylab.frontend.onnx.node import LARGEST, OnnxNode
from relaylab.frontend.onnx.sizes import grows
from relaylab.frontend.onnx.table import converts
from relaylab.ir import AnyDim, Constant, Expr, const
from relaylab.ir.dims import UndecidedSize
from relaylab.op import random

DESCRIBED = 1 << 31
"""How many elements of one value a tensor may have that is filled when the program is built or runs."""
_NUMBERS = {"value_float": "float32", "value_int": "int64", "value_floats": "float32", "value_ints": "int64"}


@converts("Constant")
def constant(g: Graph, node: OnnxNode) -> Expr:
    for name, dtype in _NUMBERS.items():
        if node.has(name):
            return Constant(np.array(node.get(name), dtype))
    if not node.has("value"):
        raise node.error(
            "no `value` that is numbers", code="import.attribute", help="text and sparse constants are not imported"
        )
    return Constant(node.get("value"))


@converts("ConstantOfShape", since=9)
def constant_of_shape(g: Graph, node: OnnxNode, shape: Expr) -> Expr:
    value = node.get("value", np.zeros(1, "float32")).reshape(())
    extents = g.sizes(shape)
    if extents is None:
        return op.full(Constant(value), shape, value.dtype.name)
    if any(map(is_open, extents)):
        return op.full(Constant(value), tuple(extents), value.dtype.name)
    if min(extents, default=0) >= 0 and LARGEST < math.prod(extents) <= DESCRIBED:
        return op.full(Constant(value), tuple(extents), value.dtype.name)  # made when the program runs, or is built
    node.bound(*extents)
    return Constant(np.full(extents, value))


@converts("EyeLike", since=9)
def eye_like(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    dtype = dtype_of(node.get("dtype"), "the attribute `dtype`") if node.has("dtype") else g.dtype(x)
    if not g.is_static(x):
        ones, k = op.cast(op.ones_like(x), "uint8"), g.const(node.get("k", 0), "int64")
        return op.cast(op.trilu(op.trilu(ones, k, True), k, False), dtype)
    node.bound(*g.shape(x))
    return Constant(np.eye(*g.shape(x), k=node.get("k", 0), dtype=dtype))


@converts("Range", since=11, unused=("stash_type",))
def arange(g: Graph, node: OnnxNode, start: Expr, limit: Expr, delta: Expr) -> Expr:
    known = [k for k in map(g.value, (start, limit, delta)) if k is not None]
    dtype = g.dtype(start)
    if len(known) < 3:
        found = op.arange(*(op.reshape(v, ()) if g.rank(v) else v for v in (start, limit, delta)), dtype=dtype)
        count = _steps(*map(g.sizes, (start, limit, delta))) if dtype.startswith("int") else None
        return found if count is None else of_count(found, count)
    first, last, step = (k.reshape(()).item() for k in known)
    steps = (last - first) / step if step else math.inf
    if not steps <= LARGEST:
        raise node.error(f"a range from {first} to {last} in steps of {step}", code="import.shape")
    return Constant((first + np.arange(math.ceil(max(steps, 0))) * step).astype(dtype))


def _steps(start: list[Any] | None, limit: list[Any] | None, delta: list[Any] | None) -> int | AnyDim | None:
    """How many numbers there are in steps of 1, as an expression of sizes, below 0 for none; None if it is none."""
    if start is None or limit is None or delta != [1]:
        return None
    count = limit[0] - start[0]
    try:
        return count if grows(count) else None
    except UndecidedSize:
        return None


def _drawn(g: Graph, node: OnnxNode, shape: Iterable[Any], dtype: str, kind: str, like: Expr | None = None) -> Expr:
    """Random numbers by Threefry; the key is the node's `seed`, or its number among the random nodes."""
    low, high = (
        (node.get("low", 0.0), node.get("high", 1.0))
        if kind == "uniform"
        else (node.get("mean", 0.0), node.get("scale", 1.0))
    )
    wide = "float64" if dtype == "float64" else "float32"
    if like is not None and any(map(is_open, shape)):
        found = g.converted(drawn(_seed(g, node), like, tuple(shape), kind == "normal"), wide)
        scale = high - low if kind == "uniform" else high
        return g.converted(op.add(op.multiply(found, const(scale, wide)), const(low, wide)), dtype)
    draw = random.uniform if kind == "uniform" else random.normal
    found = draw(key(g, node), tuple(int(d) for d in shape), wide, const(low, wide), const(high, wide))
    return g.converted(found[1], dtype)


def _seed(g: Graph, node: OnnxNode) -> int:
    seed = node.get("seed")
    return int(g.random.integers(1 << 31)) if seed is None else int(np.float32(seed).view("uint32"))


def key(g: Graph, node: OnnxNode) -> Expr:
    """The key of a random node."""
    return random.threefry_key(_seed(g, node))


@converts("RandomUniform", "RandomNormal")
def random_of_shape(g: Graph, node: OnnxNode) -> Expr:
    dtype = dtype_of(node.get("dtype", 1), "the attribute `dtype`")
    return _drawn(g, node, node.need("shape"), dtype, "uniform" if node.op_type == "RandomUniform" else "normal")


@converts("RandomUniformLike", "RandomNormalLike")
def random_like(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    dtype = dtype_of(node.get("dtype"), "the attribute `dtype`") if node.has("dtype") else g.dtype(x)
    return _drawn(g, node, g.dims(x), dtype, "uniform" if node.op_type == "RandomUniformLike" else "normal", x)


@converts("Bernoulli", since=15)
def bernoulli(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    dtype = dtype_of(node.get("dtype"), "the attribute `dtype`") if node.has("dtype") else g.dtype(x)
    drawn = random.uniform(key(g, node), g.shape(x), g.dtype(x), g.const(0, x), g.const(1, x))[1]
    return g.converted(op.less(drawn, x), dtype)


@converts("Multinomial", since=7)
def multinomial(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """Classes by their log probabilities: what they add up to passes a random number."""
    dtype, count = dtype_of(node.get("dtype", 6), "the attribute `dtype`"), node.get("sample_size", 1)
    batch, classes = g.shape(x)
    weights = op.exp(op.subtract(x, op.max(x, axis=[1], keepdims=True)))
    share = op.cumsum(op.divide(weights, op.sum(weights, axis=[1], keepdims=True)), axis=1)
    drawn = random.uniform(key(g, node), (batch, count), g.dtype(x), g.const(0, x), g.const(1, x))[1]
    below = op.less_equal(op.expand_dims(share, 1), op.expand_dims(drawn, 2))
    return g.converted(op.minimum(op.sum(op.cast(below, "int32"), axis=[2]), const(classes - 1, "int32")), dtype)


def _window(g: Graph, node: OnnxNode, size: Expr, terms: tuple[float, ...]) -> Expr:
    """A sum of cosines over a window; a periodic one leaves out the last point."""
    n, dtype = g.ints(size, "size")[0], dtype_of(node.get("output_datatype", 1), "the attribute `output_datatype`")
    node.bound(n)
    steps = n if node.get("periodic", 1) else n - 1
    angle = 2 * np.pi * np.arange(n) / max(steps, 1)
    total = sum(t * np.cos(k * angle) for k, t in enumerate(terms))
    return Constant(np.asarray(total).astype(dtype))


@converts("HannWindow", "HammingWindow", "BlackmanWindow", since=17)
def window(g: Graph, node: OnnxNode, size: Expr) -> Expr:
    terms = {"HannWindow": (0.5, -0.5), "HammingWindow": (25 / 46, -21 / 46), "BlackmanWindow": (0.42, -0.5, 0.08)}
    return _window(g, node, size, terms[node.op_type])
