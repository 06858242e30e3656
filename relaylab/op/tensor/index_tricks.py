"""Index tricks: meshgrid, adv_index, unravel_index, invert_permutation, sliding_window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relaylab.ir.expr import Call, Expr, TupleWrapper
from relaylab.ir.types import Dim, IntImm, TensorType, TupleType, Type, type_text
from relaylab.loop.expr import Tensor
from relaylab.loop.scalar import SCALAR_OPS, convert
from relaylab.op import rules
from relaylab.op.base import Injective, Input, Ints, Opaque, Sample, arg, attr, element, op, sample, wrap
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import length
from relaylab.op.shapes import broadcast_shapes, derive
from relaylab.op.tensor.join import OfSeveral

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure


@op("meshgrid", level=3, attrs_key="Meshgrid")
class meshgrid(OfSeveral):
    """Coordinate grids from vectors, as a tuple: field k varies along axis k ("ij"), or with the first two axes swapped
    ("xy").
    """

    yields = "a tuple of as many tensors as data has fields, each (n_0, n_1, ...) by `indexing`, of their dtype"
    source = "numpy.meshgrid"

    data: Input = arg("the coordinates of each axis, as a tuple or list", "(n,) or () each", "one for all")
    indexing: str = attr("ij", "`ij`: field k varies along axis k; `xy`: along axis 1 - k for the first two")

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        fields = rules.tensors(s, data)
        if fields is None:
            return None
        if self.indexing not in ("ij", "xy"):
            s.fail(f'indexing of meshgrid must be "ij" or "xy", not "{self.indexing}"')
        if any(len(t.shape) > 1 for t in fields):
            s.fail("meshgrid takes vectors and scalars")
        dtype = rules.same_dtype(s, *fields)
        lengths = [t.shape[0] if t.shape else IntImm(1) for t in fields]
        shape = [lengths[self._source(d, len(lengths))] for d in range(len(lengths))]
        return TupleType([TensorType(shape, dtype)] * len(fields))

    def _source(self, axis: int, rank: int) -> int:
        """Which vector runs along an axis (and along which axis a vector runs)."""
        return 1 - axis if self.indexing == "xy" and axis < 2 <= rank else axis

    def reference(self, data: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        return tuple(np.meshgrid(*data, indexing="xy" if self.indexing == "xy" else "ij"))

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: tuple[Readable, ...]) -> Element:
        x = data[out.field]
        return x(i[self._source(out.field, len(i))]) if x.shape else x()

    @classmethod
    def returns(cls, call: Call) -> Expr | TupleWrapper:
        fields = getattr(call.args[0], "fields", ())
        return wrap(call, len(fields)) if fields else call

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample([(3,), (2,), (4,)]),
            sample([(3,), (2,), (2,)], indexing="xy"),
            sample([(2,), ()]),
            sample([(3,)]),
        ]


@op("adv_index", level=3)
class adv_index(Injective):
    """data[i0, i1, ...] as numpy's advanced indexing: the index tensors broadcast; the rest of data's axes follow."""

    yields = "(*broadcast shape of the m indices, *data.shape[m:]), of the dtype of the tensor"
    source = "numpy's advanced indexing: data[i0, i1, ...]"

    inputs: Input = arg("a tuple or list: the tensor, then its integer indices, which broadcast")

    def relation(self, s: TypeSolver, inputs: Type) -> Type | None:
        fields = rules.tensors(s, inputs, "inputs")
        if fields is None:
            return None
        data, *indices = fields
        if not 0 < len(indices) <= len(data.shape):
            s.fail(f"{type_text(data)} cannot be indexed by {len(indices)} tensors")
        shape: tuple[Dim, ...] | None = ()
        for k, t in enumerate(indices):
            rules.integers(s, t, f"inputs[{k + 1}]")
            shape = broadcast_shapes(shape or (), t.shape)
            if shape is None:
                s.fail("the index tensors of adv_index cannot be broadcast together")
        rules.something(s, data.shape[: len(indices)], TensorType(shape or (), data.dtype), type_text(data))
        return TensorType((*(shape or ()), *data.shape[len(indices) :]), data.dtype)

    def reference(self, inputs: tuple[np.ndarray, ...]) -> np.ndarray:
        return inputs[0][tuple(x.astype("int64") for x in inputs[1:])]

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, inputs: tuple[Readable, ...]) -> Element:
        data, *indices = inputs
        width = len(i) - (len(data.shape) - len(indices))
        at = []
        for x, n in zip(indices, data.shape):
            k = b.load_index(element(x, i[:width]))
            at.append(b.select(k < 0, k + length(n), k))
        return data(*at, *i[width:])

    @classmethod
    def samples(cls) -> list[Sample]:
        rows, columns = np.array([[0], [-1]], "int32"), np.array([1, 0, 3], "int64")
        return [sample([(3, 4, 2), rows, columns]), sample([(4,), columns])]


@op("unravel_index", level=3)
class unravel_index(Injective):
    """The coordinates of flat indices in a tensor of `shape` (itself a tensor): (rank, indices...). Every axis wraps
    around, the first one too.
    """

    yields = "(rank, *data.shape), of the dtype of data"
    source = "numpy.unravel_index, mode='wrap'"

    data: Input = arg("flat indices", dtype="integers")
    shape: Input = arg("the shape that is indexed", "(rank,)", "integers")

    def result_type(self, s: TypeSolver, data: TensorType, dims: TensorType) -> Type | None:
        rules.integers(s, data, "data"), rules.integers(s, rules.rank(s, dims, 1, "shape"), "shape")
        return TensorType((dims.shape[0], *data.shape), data.dtype)

    def reference(self, data: np.ndarray, shape: np.ndarray) -> np.ndarray:
        out, flat = [], data.astype("int64")
        for n in shape.astype("int64")[::-1]:
            out.append(SCALAR_OPS["floormod"].meaning(flat, n))
            flat = SCALAR_OPS["floordiv"].meaning(flat, n)
        return convert(np.stack(out[::-1]), data.dtype.name) if out else np.zeros((0, *data.shape), data.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, shape: Readable) -> Element:
        rank = int(shape.shape[0])
        flat, sizes = b.load_index(data(*i[1:])), [b.load_index(shape(d)) for d in range(rank)]
        value = b.index(0)
        for d in reversed(range(rank)):
            value = b.select(b.eq(i[0], d), b.floormod(flat, sizes[d]), value)
            flat = b.floordiv(flat, sizes[d])
        return b.cast(value, out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        flat = np.array([[0, 7], [23, 11]], "int32")
        return [sample(flat, np.array([2, 3, 4], "int32")), sample(flat[0], np.array([8], "int64"))]


@op("invert_permutation", level=1)
class invert_permutation(Injective):
    """The inverse of a permutation: out[data[i]] = i; the first i counts, and 0 stands where there is none."""

    yields = "(n,), of the dtype of data"
    source = "tf.math.invert_permutation"

    data: Input = arg("each of 0 .. n - 1 once", "(n,)", "integers")

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        return found and rules.integers(s, rules.rank(s, found, 1), "data")

    def reference(self, data: np.ndarray) -> np.ndarray:
        out, inside = np.zeros_like(data), np.flatnonzero((data >= 0) & (data < len(data)))[::-1]
        out[data[inside]] = inside
        return out

    def procedure(self, p: Procedure, out: Tensor, data: Tensor) -> None:
        """Zeros, then every place from the last one on, so that the first counts."""
        b, n = p.b, data.shape[0]
        p.each(out, lambda i: b.const(0, out.dtype))
        with p.parallel(1), p.loop(n) as k:
            i = p.let(n - 1 - k)
            to = p.let(b.load_index(data(i)))
            with p.when(b.inside(to, n)):
                p.store(out, to, b.cast(i, out.dtype))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample(np.array([2, 0, 3, 1], "int32")), sample(np.array([0], "int64"))]


@op("sliding_window", attrs_key="SlidingWindow")
class sliding_window(Opaque):
    """All windows of `window_shape` over the axes from `axis` on: (..., number of windows..., window...)."""

    yields = "(*data.shape[:axis], *((n - window) // stride + 1 of each axis), *window_shape), of the dtype of data"
    source = "numpy.lib.stride_tricks.sliding_window_view"

    data: Input = arg("the tensor from which windows are taken")
    axis: int = attr(doc="the first axis along which windows move; they move along all from it on")
    window_shape: Ints = attr(doc="the extents of a window, one for each of those axes")
    strides: Ints = attr(doc="the distances of the windows, one for each of those axes")

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        axis = rules.axis(s, self.axis, len(data.shape))
        if len(self.window_shape) != len(data.shape) - axis or len(self.strides) != len(self.window_shape):
            s.fail(f"`window_shape` and `strides` need one value for each axis of {type_text(data)} from {axis} on")
        counts = []
        for n, w, step in zip(data.shape[axis:], self.window_shape, self.strides):
            rules.positive(s, w, "window_shape"), rules.positive(s, step, "strides")
            if isinstance(n, int) and w > n:
                s.fail(f"a window of {w} does not fit into {n} elements")
            counts.append(derive(lambda n, w, step: (n - w) // step + 1, n, IntImm(w), IntImm(step)))
        return TensorType((*data.shape[:axis], *counts, *self.window_shape), data.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        axes = tuple(range(self.axis % data.ndim, data.ndim))
        windows = np.lib.stride_tricks.sliding_window_view(data, self.window_shape, axes)
        return windows[(..., *(slice(None, None, st) for st in self.strides), *[slice(None)] * len(axes))]

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        n = len(self.window_shape)
        lead = len(i) - 2 * n
        return data(*i[:lead], *(k * st + w for k, st, w in zip(i[lead : lead + n], self.strides, i[lead + n :])))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 5, 7), axis=1, window_shape=(3, 2), strides=(1, 2)),
            sample((6,), axis=-1, window_shape=(4,), strides=(1,)),
        ]
