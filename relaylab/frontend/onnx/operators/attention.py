"""Attention as onnxruntime's tools write it (domain com.microsoft). Vaswani et al., Attention is all you need, 2017.

Heads are (batch, heads, length, size) throughout, masks numbers that are added to the scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.arithmetic import same
from relaylab.frontend.onnx.operators.contract import product
from relaylab.frontend.onnx.operators.indexing import extent_of, places_along
from relaylab.frontend.onnx.operators.quantized import integer_product
from relaylab.frontend.onnx.table import CONTRIB, converts
from relaylab.ir import Constant, Expr, const
from relaylab.op import nn
from relaylab.support.dtypes import finfo


def _heads(g: Graph, x: Expr, count: int) -> Expr:
    """(batch, length, heads * size) with the heads in front; what has them already as it is."""
    if g.rank(x) == 4:
        return x
    batch, length, _ = g.named(x)
    width = g.extents(x, 2)[0]
    return op.transpose(op.reshape(x, (batch, length, count, width // count), allowzero=True), [0, 2, 1, 3])


def _joined(g: Graph, x: Expr) -> Expr:
    batch, heads, length, size = g.named(x)
    return op.reshape(op.transpose(x, [0, 2, 1, 3]), (batch, length, heads * size), allowzero=True)


def _attend(g: Graph, q: Expr, k: Expr, v: Expr, scale: float, masks: Iterable[Expr], softcap: float = 0.0) -> Expr:
    """softmax(q k' scale + masks) v, the heads side by side: (batch, length, heads * size)."""
    scores = op.multiply(product(g, q, op.transpose(k, [0, 1, 3, 2])), g.const(scale, q))
    if softcap:
        scores = op.multiply(op.tanh(op.divide(scores, g.const(softcap, q))), g.const(softcap, q))
    return _joined(g, product(g, nn.softmax(reduce(op.add, masks, scores), axis=-1), v))


def _extent(g: Graph, x: Expr, axis: int) -> Expr:
    """The extent of an axis, as a number or by the tensor."""
    extent = extent_of(g, x, axis)
    return const(extent, "int64") if isinstance(extent, int) else extent


def _filled(g: Graph, keeps: Expr, like: Expr, fill: float) -> Expr:
    """0 where it keeps, else `fill`."""
    return op.where(keeps, g.const(0, like), g.const(fill, like))


def _least(g: Graph, x: Expr) -> float:
    return float(finfo(g.dtype(x)).min)


def _key_mask(g: Graph, node: OnnxNode, mask: Expr, q: Expr, k: Expr, fill: float) -> Expr:
    """A mask of keys: where they end (and begin) per batch, or 0 for each that is left out."""
    batch, _, length, _ = g.named(q)
    shape, total, whole = g.named(mask), g.named(k)[2], same(g, mask, "int64")
    if shape in ((batch,), (2 * batch,)):
        end, *begin = [whole] if shape == (batch,) else op.split(whole, 2, 0)
        end, *begin = (op.reshape(p, (batch, 1, 1, 1)) for p in (end, *begin))
        at = op.expand_dims(places_along(g, k, 2), 0, 3)
        keeps = op.less(at, end)
        keeps = op.logical_and(keeps, op.greater_equal(at, begin[0])) if begin else keeps
    elif shape in ((batch, total), (batch, length, total)):
        keeps = op.expand_dims(op.greater(whole, const(0, "int64")), 1, 4 - len(shape))
    else:
        raise node.error(f"a mask of the shape {shape} for {total} keys is not imported", code="import.shape")
    return _filled(g, keeps, q, fill)


def _ahead(g: Graph, q: Expr, k: Expr) -> Expr:
    """Nobody sees what comes after; the queries are the last of the keys."""
    length, total = g.named(q)[2], g.named(k)[2]
    if isinstance(length, int) and isinstance(total, int):
        return g.const(np.triu(np.full((length, total), _least(g, q)), total - length + 1), q)
    last = op.add(places_along(g, q, 2), op.subtract(_extent(g, k, 2), _extent(g, q, 2)))
    return _filled(g, op.less_equal(places_along(g, k, 2), op.expand_dims(last, 1)), q, _least(g, q))


def _self_attention(
    g: Graph, node: OnnxNode, joined: Expr, mask: Expr | None, past: Expr | None, more: Expr | None
) -> list[Expr]:
    """From queries, keys and values side by side, (batch, length, sum of widths)."""
    heads, width = node.need("num_heads"), g.extents(joined, 2)[0]
    sizes = node.ints("qkv_hidden_sizes") or [width // 3] * 3
    for name in ("do_rotary", "past_present_share_buffer"):
        if node.get(name, 0):
            raise node.error(f"{name} is not imported", code="import.attribute")
    ends = np.cumsum([0, *sizes]).tolist()
    if len(sizes) != 3 or ends[-1] != width or any(s % heads for s in sizes):
        raise node.error(f"{width} columns are not {sizes} in {heads} heads", code="import.shape")
    q, k, v = (_heads(g, op.strided_slice(joined, [a], [b], [1], axes=[2]), heads) for a, b in zip(ends, ends[1:]))
    if past is not None:
        k, v = (op.concatenate([op.squeeze(p, axis=[0]), new], 2) for p, new in zip(op.split(past, 2, 0), (k, v)))
    out = _with_masks(g, node, q, k, v, mask, more)
    return [out] if len(node.outputs) < 2 else [out, op.stack([k, v], 0)]


def _with_masks(g: Graph, node: OnnxNode, q: Expr, k: Expr, v: Expr, mask: Expr | None, more: Expr | None) -> Expr:
    size, fill = g.extents(q, 3)[0], node.get("mask_filter_value", -10000.0)
    masks = [] if mask is None else [_key_mask(g, node, mask, q, k, fill)]
    masks += [_ahead(g, q, k)] if node.get("unidirectional", 0) else []
    masks += [] if more is None else [more]
    return _attend(g, q, k, v, node.get("scale") or size**-0.5, masks)


@converts("Attention", domain=CONTRIB, unused=("rotary_embedding_dim",))
def attention(
    g: Graph, node: OnnxNode, x: Expr, weight: Expr, bias: Expr | None = None, mask: Expr | None = None,
    past: Expr | None = None, more: Expr | None = None,
) -> list[Expr]:  # fmt: skip
    """Self-attention; queries, keys and values are one product."""
    joined = product(g, x, weight)
    return _self_attention(g, node, joined if bias is None else op.add(joined, bias), mask, past, more)


@converts("QAttention", domain=CONTRIB)
def quantized_attention(
    g: Graph, node: OnnxNode, x: Expr, weight: Expr, bias: Expr, x_scale: Expr, w_scale: Expr,
    mask: Expr | None = None, x_zero: Expr | None = None, w_zero: Expr | None = None, past: Expr | None = None,
) -> list[Expr]:  # fmt: skip
    """The product is one of integers."""
    total = op.cast(integer_product(g, x, weight, x_zero, w_zero), g.dtype(bias))
    joined = op.add(op.multiply(total, op.multiply(x_scale, w_scale)), bias)
    return _self_attention(g, node, joined, mask, past, None)


@converts("MultiHeadAttention", domain=CONTRIB)
def multi_head_attention(
    g: Graph, node: OnnxNode, query: Expr, key: Expr | None = None, value: Expr | None = None,
    bias: Expr | None = None, mask: Expr | None = None, more: Expr | None = None,
    past_key: Expr | None = None, past_value: Expr | None = None,
) -> list[Expr]:  # fmt: skip
    """Queries, keys and values are (batch, length, width); keys and values may also come with their heads in front."""
    if key is None or value is None or g.rank(query) != 3:
        raise node.error("queries, keys and values that are packed together are not imported", code="import.input")
    heads, parts = node.need("num_heads"), [query, key, value]
    if bias is not None:
        ends = np.cumsum(
            [0, *(g.extents(p, g.rank(p) - 1)[0] * (heads if g.rank(p) == 4 else 1) for p in parts)]
        ).tolist()
        shifts = [op.strided_slice(bias, [a], [b], [1], axes=[0]) for a, b in zip(ends, ends[1:])]
        parts = [op.add(p, s) if g.rank(p) == 3 else p for p, s in zip(parts, shifts)]
    q, k, v = (_heads(g, p, heads) for p in parts)
    if past_key is not None and past_value is not None:
        k, v = op.concatenate([past_key, k], 2), op.concatenate([past_value, v], 2)
    return [_with_masks(g, node, q, k, v, mask, more), k, v]


@converts("RotaryEmbedding", domain=CONTRIB, unused=("is_packed_batching",))
def rotary_embedding(g: Graph, node: OnnxNode, x: Expr, places: Expr, cosines: Expr, sines: Expr) -> Expr:
    """Pairs of elements turned by angles that grow with their place. Su et al., RoFormer, 2021."""
    joined, width = g.rank(x) == 3, node.get("rotary_embedding_dim", 0) or 2 * g.shape(cosines)[1]
    heads = node.get("num_heads", 0) or (g.extents(x, 2)[0] // width if joined else 0)
    wide = _heads(g, x, heads)
    if node.get("scale", 1.0) != 1:
        raise node.error("a scale is not imported", code="import.attribute")
    if g.rank(places) < 2 or g.dims(places) == (1, 1):  # one number: where the sequences begin
        places = op.add(op.reshape(same(g, places, "int64"), (1, 1)), op.expand_dims(places_along(g, wide, 2), 0))
    turns = op.take(cosines, places, axis=0), op.take(sines, places, axis=0)
    out = turned(g, wide, *turns, bool(node.get("interleaved", 0)))
    return _joined(g, out) if joined else out


def turned(g: Graph, x: Expr, cosines: Expr, sines: Expr, interleaved: bool) -> Expr:
    """The first elements of (batch, heads, length, size) turned by angles (batch or 1, length, half of them)."""
    *shape, size = g.named(x)
    half = g.extents(cosines, g.rank(cosines) - 1)[0]
    head, rest = (op.strided_slice(x, [a], [b], [1], axes=[3]) for a, b in ((0, 2 * half), (2 * half, size)))
    pairs = op.reshape(head, (*shape, half, 2) if interleaved else (*shape, 2, half), allowzero=True)
    axis = 4 if interleaved else 3
    a, b = (op.squeeze(p, axis=[axis]) for p in op.split(pairs, 2, axis))
    c, s = (op.expand_dims(t, 1) for t in (cosines, sines))
    first = op.subtract(op.multiply(a, c), op.multiply(b, s))
    out = op.reshape(
        op.stack([first, op.add(op.multiply(a, s), op.multiply(b, c))], axis), (*shape, 2 * half), allowzero=True
    )
    return op.concatenate([out, rest], 3) if 2 * half < size else out


@converts("GroupQueryAttention", domain=CONTRIB, unused=("kv_cache_bit_width",))
def group_query_attention(
    g: Graph, node: OnnxNode, query: Expr, key: Expr | None, value: Expr | None, past_key: Expr | None,
    past_value: Expr | None, ends: Expr, count: Expr, cosines: Expr | None = None, sines: Expr | None = None,
    places: Expr | None = None, more: Expr | None = None,
) -> list[Expr]:  # fmt: skip
    """Causal attention of a step whose keys join those of a cache; several queries share one key. `ends` is the last
    place of each sequence, `count` how many keys the longest one has. Ainslie et al., GQA, 2023.
    """
    heads, shared = node.need("num_heads"), node.need("kv_num_heads")
    _check_group(node, heads, shared)
    q, k, v = (_heads(g, p, n) for p, n in zip(_unpacked(g, node, query, key, value), (heads, shared, shared)))
    batch, size, steps = g.named(q)[0], g.extents(q, 3)[0], places_along(g, q, 2)
    last = op.reshape(same(g, ends, "int64"), (batch, 1, 1, 1))
    begin, numbers = _begun(g, q, last, past_key, count)
    interleaved = bool(node.get("rotary_interleaved", 0))
    if node.get("do_rotary", 0):
        if cosines is None or sines is None:
            raise node.error("no cosines and sines are given", code="import.arity")
        at = op.add(op.reshape(begin, (batch, 1)), steps) if places is None else places
        turns = op.take(cosines, at, axis=0), op.take(sines, at, axis=0)
        q, k = (turned(g, x, *turns, interleaved) for x in (q, k))
    k, v = (_cached(g, p, n, begin, numbers) for p, n in ((past_key, k), (past_value, v)))
    keys, at = op.expand_dims(numbers, 0, 3), op.add(begin, op.expand_dims(steps, 1))
    keeps = op.less_equal(keys, op.minimum(at, last))
    if (window := node.get("local_window_size", -1)) > 0:
        keeps = op.logical_and(keeps, op.greater(keys, op.subtract(at, const(window, "int64"))))
    masks = [_filled(g, keeps, q, _least(g, q)), *([] if more is None else [more])]
    wide = lambda x: op.repeat(x, heads // shared, 1) if heads > shared else x
    out = _attend(g, q, wide(k), wide(v), node.get("scale") or size**-0.5, masks, node.get("softcap", 0.0))
    return [out, k, v]


def _check_group(node: OnnxNode, heads: int, shared: int) -> None:
    if shared < 1 or heads % shared:
        raise node.error(f"{heads} heads do not share {shared}", code="import.shape")
    usual = {"smooth_softmax": 0, "qk_output": 0, "k_quant_type": "NONE", "v_quant_type": "NONE", "causal": 1}
    for name, value in {**usual, "sliding_window_cache": 0}.items():
        if node.get(name, value) != value:
            raise node.error(f"{name}={node.get(name)!r} is not imported", code="import.attribute")


def _unpacked(g: Graph, node: OnnxNode, query: Expr, key: Expr | None, value: Expr | None) -> list[Expr]:
    """Queries, keys and values, which may lie side by side in one."""
    if key is not None and value is not None:
        return [query, key, value]
    heads, shared = node.need("num_heads"), node.need("kv_num_heads")
    size = g.extents(query, 2)[0] // (heads + 2 * shared)
    ends = [0, heads * size, (heads + shared) * size, (heads + 2 * shared) * size]
    return [op.strided_slice(query, [a], [b], [1], axes=[2]) for a, b in zip(ends, ends[1:])]


def _begun(g: Graph, q: Expr, last: Expr, past: Expr | None, count: Expr) -> tuple[Expr, Expr]:
    """Where the step begins (a first step at 0), and the numbers of all places that the cache then has.

    A cache of open extent is as long as the keys so far: another `count` is refused when the program runs.
    """
    length, before = g.named(q)[2], 0 if past is None else g.named(past)[2]
    begin = op.subtract(last, op.subtract(_extent(g, q, 2), const(1, "int64")))
    if isinstance(length, int) and isinstance(before, int) and g.value(count) is not None:
        total = g.ints(count, "total_sequence_length")[0]
        start = op.zeros_like(last) if total == length else begin
        return start, Constant(np.arange(max(before, total)))
    if isinstance(before, int) and before:  # room for more than there are, perhaps
        g.known(count, "total_sequence_length")
    total, none = op.reshape(same(g, count, "int64"), ()), const(0, "int64")
    numbers = op.reshape(op.arange(none, total, const(1, "int64"), dtype="int64"), (before + length,), allowzero=True)
    return op.where(op.equal(total, _extent(g, q, 2)), none, begin), numbers


def _cached(g: Graph, past: Expr | None, new: Expr, begin: Expr, numbers: Expr) -> Expr:
    """The cache with the new keys at their places and zeros behind, as long as the longest sequence or as itself."""
    batch, heads, length, size = g.named(new)
    extent, before = g.named(numbers)[0], 0 if past is None else g.named(past)[2]
    empty = op.full(g.const(0, new), (batch, heads, extent, size), g.dtype(new))
    if past is None or isinstance(before, int) and not before:
        past = empty
    elif not isinstance(extent, int):
        past = op.concatenate([past, op.zeros_like(new)], 2)
    elif before < extent:
        past = nn.pad(past, ((0, 0), (0, 0), (0, extent - before), (0, 0)), 0.0)
    at = op.subtract(op.expand_dims(op.expand_dims(numbers, 0, 2), 3), begin)
    fresh = op.logical_and(op.greater_equal(at, const(0, "int64")), op.less(at, _extent(g, new, 2)))
    last = op.subtract(_extent(g, new, 2), const(1, "int64"))
    inside = op.minimum(op.maximum(at, const(0, "int64")), last)
    moved = op.gather(new, 2, op.broadcast_to(inside, (batch, heads, extent, size)))
    return op.where(fresh, moved, op.where(op.less(at, const(0, "int64")), past, empty))
