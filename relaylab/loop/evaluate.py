"""The evaluator of scalar expressions: a whole output tensor with numpy, obviously right rather than fast.

Every axis, of the output or of a reduction, owns one dimension of the arrays of the evaluation.
An axis is an `arange` along its own dimension, a value has extent 1 along the dimensions it does not
depend on, and a reduction reduces its own dimensions. The output box is halved until the largest
array stays under `LIMIT` elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from relaylab.loop.builder import OutSpec, b
from relaylab.loop.dependence import Dependence
from relaylab.loop.expr import Apply, Axis, Cast, Const, Guard, Load, Reduce, ScalarExpr, Tensor, children, post_order
from relaylab.loop.scalar import SCALAR_OPS, Array, compute_dtype, convert, highest, is_float, lowest
from relaylab.support.errors import RelayIndexError, RelayTypeError

LIMIT = 1 << 22
Box = tuple[tuple[int, int], ...]
Ins = Sequence[Array | Sequence[Array]]
Readable = Tensor | tuple[Tensor, ...]


def compute(out: OutSpec, lower: Callable[..., ScalarExpr], inputs: Ins) -> Array:
    """The output that `lower(b, out, i, *ins)` describes, for numpy `inputs` (a tuple of arrays for a tuple input).

    A read outside a tensor that no guard excuses raises `RelayIndexError`.
    """
    values: dict[Tensor, Array] = {}
    readables = [_readable(f"in{k}", x, values) for k, x in enumerate(inputs)]
    axes = tuple(Axis(f"i{d}", n) for d, n in enumerate(out.shape))
    return evaluate(lower(b, out, axes, *readables), axes, out.dtype, values)


def _readable(name: str, x: Array | Sequence[Array], values: dict[Tensor, Array]) -> Readable:
    if isinstance(x, (tuple, list)):
        return tuple(_tensor(f"{name}_{k}", y, values) for k, y in enumerate(x))
    return _tensor(name, np.asarray(x), values)


def _tensor(name: str, x: Array, values: dict[Tensor, Array]) -> Tensor:
    array = np.asarray(x)
    tensor = Tensor(name, tuple(array.shape), array.dtype.name)
    values[tensor] = array
    return tensor


def evaluate(value: ScalarExpr, axes: tuple[Axis, ...], dtype: str, inputs: dict[Tensor, Array]) -> Array:
    """The array of `value` over the box of `axes`, stored as `dtype`."""
    if value.dtype != dtype:
        message = f"the expression has dtype {value.dtype}, the output {dtype}"
        raise RelayTypeError(message, code="loop.dtype-mismatch", help="end with b.cast(value, out.dtype)")
    out = np.zeros([a.extent for a in axes], dtype)
    evaluation = _Evaluation(value, axes, inputs)
    boxes: list[Box] = [tuple((0, a.extent) for a in axes)] if out.size else []  # nothing is read for nothing
    while boxes:
        box = boxes.pop()
        halves = _halve(box, evaluation.inner)
        if halves:
            boxes.extend(halves)
        else:
            with np.errstate(all="ignore"):
                out[tuple(slice(lo, hi) for lo, hi in box)] = evaluation.run(box)
    return out


def _halve(box: Box, inner: int) -> list[Box]:
    """Two halves of a box that is too large, nothing if it is small enough."""
    sizes = [hi - lo for lo, hi in box]
    if math.prod(sizes) * inner <= LIMIT or max(sizes, default=0) <= 1:
        return []
    d = sizes.index(max(sizes))
    lo, hi = box[d]
    middle = (lo + hi) // 2
    return [(*box[:d], part, *box[d + 1 :]) for part in ((lo, middle), (middle, hi))]


class _Evaluation:
    """One expression made ready: its order, a dimension for each axis, and which loads must be in bounds."""

    def __init__(self, value: ScalarExpr, axes: tuple[Axis, ...], inputs: dict[Tensor, Array]):
        self.value, self.axes, self.inputs = value, axes, inputs
        self.order = list(post_order(value))
        self.guarded = guarded_only(value)
        loops = [a for n in self.order if isinstance(n, Reduce) for a in n.axes]
        self.dimension = {a: d for d, a in enumerate(dict.fromkeys((*axes, *loops)))}
        self.inner = largest_reduction(self.order)

    def run(self, box: Box) -> Array:
        """The values over a box of the output axes."""
        ranges = dict(zip(self.axes, box))
        done: dict[int, Array] = {}
        for node in self.order:
            done[id(node)] = self._node(node, done, ranges)
        flat = done[id(self.value)].reshape(done[id(self.value)].shape[: len(box)])
        return np.broadcast_to(flat, [hi - lo for lo, hi in box])

    def _node(self, node: ScalarExpr, done: dict[int, Array], ranges: dict[Axis, tuple[int, int]]) -> Array:
        match node:
            case Const(value, dtype):
                return np.full((1,) * len(self.dimension), value, compute_dtype(dtype))
            case Axis():
                return self._axis(node, *ranges.get(node, (0, node.extent)))
            case Load():
                return self._load(node, [done[id(i)] for i in node.indices])
            case Apply(op, args):
                return np.asarray(SCALAR_OPS[op].meaning(*(done[id(a)] for a in args)))
            case Cast(value, dtype):
                return convert(done[id(value)], dtype)
            case Guard(condition, value, otherwise):
                return np.where(done[id(condition)], done[id(value)], done[id(otherwise)])
            case Reduce():
                return self._reduce(node, done[id(node.value)])
            case _:
                raise RelayTypeError(f"not a scalar expression: {node!r}", code="loop.not-an-expression")

    def _axis(self, axis: Axis, lo: int, hi: int) -> Array:
        shape = [1] * len(self.dimension)
        shape[self.dimension[axis]] = hi - lo
        return np.arange(lo, hi, dtype="int64").reshape(shape)

    def _load(self, load: Load, indices: list[Array]) -> Array:
        array = self.inputs[load.tensor]
        dtype = compute_dtype(load.tensor.dtype)
        shape = np.broadcast_shapes((1,) * len(self.dimension), *(i.shape for i in indices))
        if id(load) not in self.guarded:
            _check_bounds(load.tensor, indices)
        if array.size == 0:
            return np.zeros(shape, dtype)
        picked = array[tuple(np.clip(i, 0, n - 1) for i, n in zip(indices, array.shape))]
        return np.asarray(picked).reshape(shape).astype(dtype)

    def _reduce(self, node: Reduce, value: Array) -> Array:
        dims = tuple(self.dimension[a] for a in node.axes)
        shape = list(value.shape)
        for axis, d in zip(node.axes, dims):
            shape[d] = axis.extent
        return reduce_box(node.kind, np.broadcast_to(value, shape), dims)


def _check_bounds(tensor: Tensor, indices: list[Array]) -> None:
    for d, (index, extent) in enumerate(zip(indices, tensor.shape)):
        if index.size and (index.min() < 0 or index.max() >= extent):
            message = f"`{tensor.name}` is read at {index.min()} .. {index.max()} along axis {d} of extent {extent}"
            raise RelayIndexError(message, code="loop.out-of-bounds", help="clamp the index or use b.guard")


def reduce_box(kind: str, value: Array, dims: tuple[int, ...]) -> Array:
    """`value` reduced along `dims`, which are kept with extent 1; floats are summed in float64."""
    dtype = value.dtype
    match kind:
        case "sum" | "prod":
            wide = "float64" if is_float(dtype.name) else dtype  # the yardstick must not add rounding of its own
            return getattr(np, kind)(value, axis=dims, keepdims=True, dtype=wide).astype(dtype)
        case "max":
            return np.max(value, axis=dims, keepdims=True, initial=lowest(dtype.name))
        case "min":
            return np.min(value, axis=dims, keepdims=True, initial=highest(dtype.name))
        case "any" | "all":
            return getattr(np, kind)(value, axis=dims, keepdims=True)
        case _:
            return _first_extreme(kind, value, dims)


def _first_extreme(kind: str, value: Array, dims: tuple[int, ...]) -> Array:
    """argmax or argmin: the flat index, along `dims`, of the first extreme."""
    last = np.moveaxis(value, dims, range(value.ndim - len(dims), value.ndim))
    kept = [1 if d in dims else n for d, n in enumerate(value.shape)]
    flat = last.reshape(*last.shape[: value.ndim - len(dims)], math.prod(value.shape[d] for d in dims))
    return getattr(np, kind)(flat, axis=-1).reshape(kept).astype("int64")


def guarded_only(root: ScalarExpr) -> set[int]:
    """The ids of the nodes that are reached only through the guarded side of some `Guard`."""
    free: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in free:
            continue
        free.add(id(node))
        stack.extend((node.condition, node.otherwise) if isinstance(node, Guard) else children(node))
    return {id(n) for n in post_order(root)} - free


def largest_reduction(order: Sequence[ScalarExpr]) -> int:
    """The largest number of reduction points that one value under the order depends on."""
    depends = Dependence()
    boxes = (depends(n.value) | set(n.axes) for n in order if isinstance(n, Reduce))
    return max((math.prod(a.extent for a in box) for box in boxes), default=1)
