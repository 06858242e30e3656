"""Scattering updates into a tensor, and running sums and products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from relaylab.ir.types import TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dtype, Input, Opaque, Sample, arg, attr, op, sample
from relaylab.op.helpers import Body, Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import place, unravel
from relaylab.op.shapes import extent, product, same_dim
from relaylab.op.tensor.casts import as_dtype


def wrapped(b: ElementBuilder, index: Element, extent: int) -> Element:
    """An index of which negative values count from the end."""
    k = b.load_index(index)
    return b.select(k < 0, k + extent, k)


class Scattering(Opaque):
    """Updates put along one axis: out[.., indices[.., k, ..], ..] gets updates[.., k, ..]."""

    yields = "the shape of data, and its dtype"

    axis: int = attr(0, "the axis along which the indices count; negative: from the last")
    data: Input = arg("the tensor that is updated")
    indices: Input = arg(
        "where along `axis` each update goes; negative ones count from the end",
        "that of updates, not above that of data but along `axis`",
        "integers",
    )
    updates: Input = arg("the new elements", "the rank of data", "that of data")

    def result_type(self, s: TypeSolver, x: TensorType, at: TensorType, new: TensorType) -> TensorType:
        rules.integers(s, at, "indices"), rules.same_dtype(s, x, new)
        axis = rules.axis(s, self.axis, len(x.shape), f"axis of {self.op_name}")
        rules.something(s, (x.shape[axis],), at, f"axis {axis} of {type_text(x)}")
        if (
            len(at.shape) != len(x.shape)
            or len(new.shape) != len(x.shape)
            or not all(map(same_dim, at.shape, new.shape))
        ):
            s.fail(f"{type_text(at)} and {type_text(new)} must have one shape, of the rank of {type_text(x)}")
        for d, (n, m) in enumerate(zip(at.shape, x.shape)):
            if d != axis and isinstance(n, int) and isinstance(m, int) and n > m:
                s.fail(f"{type_text(at)} reaches beyond {type_text(x)} along axis {d}")
        return x

    def places(self, data: np.ndarray, indices: np.ndarray) -> list[tuple[tuple, tuple]]:
        """(where in the result, where in the updates) of each update, in order."""
        axis = self.axis % data.ndim
        return [(place(at, axis, int(indices[at])), at) for at in np.ndindex(*indices.shape)]

    def search(self, b: ElementBuilder, i: Index, data: Readable, indices: Readable) -> tuple[int, Any, Callable]:
        """The axis's extent in the updates, whether the other axes reach `i`, and whether update k hits index `i`."""
        axis = self.axis % len(i)
        extent = int(data.shape[axis])
        reach = b.all_of(
            *(j < int(n) for d, (j, n, m) in enumerate(zip(i, indices.shape, data.shape)) if d != axis and n != m)
        )
        hit = lambda k: b.guard(reach, lambda: b.eq(wrapped(b, indices(*place(i, axis, k)), extent), i[axis]), False)
        return int(indices.shape[axis]), reach, hit

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((4, 3), np.array([[0, 2, -1], [0, 1, 3]], "int32"), (2, 3)),
            sample((2, 5), np.array([[1, 4, 1]], "int64"), (1, 3), axis=-1),
        ]


@op("scatter", level=10, attrs_key="Scatter", meta_attrs=True, required="axis")
class scatter(Scattering):
    """`data` with elements along `axis` replaced by updates; of several for one place the last counts."""

    source = "ONNX ScatterElements"

    def reference(self, data: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        out = data.copy()
        for to, source in self.places(data, indices):
            out[to] = updates[source]
        return out

    def lower(
        self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, indices: Readable, updates: Readable
    ) -> Element:
        count, reach, hit = self.search(b, i, data, indices)
        last = b.rmax(count, lambda k: b.select(hit(k), k, -1))
        hits = b.all_of(reach, last >= 0)
        return b.guard(hits, lambda: updates(*place(i, self.axis % len(i), last)), data(*i))


@op("scatter_add", level=10, attrs_key="ScatterAdd", meta_attrs=True, required="axis")
class scatter_add(Scattering):
    """`data` with updates added to elements along `axis`."""

    source = "ONNX ScatterElements with reduction=add; torch.Tensor.scatter_add"

    def reference(self, data: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        out = data.copy()
        for to, source in self.places(data, indices):
            out[to] += updates[source]
        return out

    def lower(
        self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, indices: Readable, updates: Readable
    ) -> Element:
        count, _, hit = self.search(b, i, data, indices)
        axis, zero = self.axis % len(i), b.const(0, out.dtype)
        return data(*i) + b.sum(count, lambda k: b.guard(hit(k), lambda: updates(*place(i, axis, k)), zero))


@op("scatter_nd", level=3, attrs_key="ScatterND", meta_attrs=True)
class scatter_nd(Opaque):
    """out[indices[0, y], ..., indices[M-1, y]] gets updates[y] for all y: it replaces ("update", the last counts) or is
    combined ("add", "mul", "min", "max"). `indices` is (M, Y...), `updates` (Y..., rest of data).
    """

    yields = "the shape of data, and its dtype"
    source = "ONNX ScatterND, with the coordinates along the first axis"

    data: Input = arg("the tensor that is updated")
    indices: Input = arg("coordinates in the first M axes of data, along the first axis", "(M, *Y)", "integers")
    updates: Input = arg("the new elements or slices", "(*Y, *data.shape[M:])", "that of data")
    mode: str = attr(doc="what an update does to what is there: update, add, mul, min or max")
    defaults = {"mode": "update"}
    combine: ClassVar[dict[str, Any]] = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}

    def result_type(self, s: TypeSolver, x: TensorType, at: TensorType, new: TensorType) -> TensorType:
        rules.integers(s, at, "indices"), rules.same_dtype(s, x, new)
        if self.mode != "update" and self.mode not in self.combine:
            s.fail(f'mode of scatter_nd must be update, add, mul, min or max, not "{self.mode}"')
        if not at.shape or not isinstance(at.shape[0], int) or at.shape[0] > len(x.shape):
            s.fail(f"the first dimension of {type_text(at)} must be at most the rank of {type_text(x)}")
        along = extent(at.shape[0])
        rules.something(s, x.shape[:along], TensorType(at.shape[1:], at.dtype), type_text(x))
        wanted = (*at.shape[1:], *x.shape[along:])
        if len(wanted) != len(new.shape) or not all(map(same_dim, wanted, new.shape)):
            s.fail(f"`updates` must have the shape ({', '.join(map(str, wanted))}), not {type_text(new)}")
        return x

    def reference(self, data: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        out = data.copy()
        for y in np.ndindex(*indices.shape[1:]):
            to = tuple(int(k) for k in indices[(slice(None), *y)])
            out[to] = updates[y] if self.mode == "update" else self.combine[self.mode](out[to], updates[y])
        return out

    def lower(
        self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, indices: Readable, updates: Readable
    ) -> Element:
        depth, box = int(indices.shape[0]), [int(n) for n in indices.shape[1:]]

        def hit(*y: Element) -> Element:
            return b.all_of(*(b.eq(wrapped(b, indices(m, *y), int(data.shape[m])), i[m]) for m in range(depth)))

        if self.mode == "update":
            flat = lambda y: sum((k * math.prod(box[d + 1 :]) for d, k in enumerate(y)), b.index(0))
            last = b.rmax(box, lambda *y: b.select(hit(*y), flat(y), -1))
            return b.guard(last >= 0, lambda: updates(*unravel(b, last, box), *i[depth:]), data(*i))
        return self._combined(b, data(*i), box, hit, lambda *y: updates(*y, *i[depth:]), out.dtype)

    def _combined(
        self, b: ElementBuilder, x: Element, box: list[int], hit: Callable[..., Element], update: Body, dtype: str
    ) -> Element:
        neutral = {"add": b.const(0, dtype), "mul": b.const(1, dtype), "min": b.highest(dtype), "max": b.lowest(dtype)}
        reduce = {"add": b.sum, "mul": b.prod, "min": b.rmin, "max": b.rmax}[self.mode]
        total = reduce(box, lambda *y: b.guard(hit(*y), lambda: update(*y), neutral[self.mode]))
        return {
            "add": lambda: x + total,
            "mul": lambda: x * total,
            "min": lambda: b.min(x, total),
            "max": lambda: b.max(x, total),
        }[self.mode]()

    @classmethod
    def samples(cls) -> list[Sample]:
        two = np.array([[0, 1, 0], [2, 0, 2]], "int32")
        rows = np.array([[2, 0, 2]], "int64")
        return [sample((2, 3), two, (3,), mode=m) for m in ("update", "add", "mul", "min", "max")] + [
            sample((3, 4), rows, (3, 4), mode="add"),
            sample((3, 2), rows, (3, 2), mode="update"),
        ]


class Scan(Opaque):
    """A running combination along `axis` (of the flattened data if None); `exclusive` leaves out the element itself."""

    yields = "the shape of data ((number of elements,) without `axis`), of `dtype`"

    axis: int | None = attr(None, "the axis along which is counted; None: the flattened tensor")
    dtype: Dtype = attr(None, "the data type of sums and result; None: that of data, int32 for bools")
    exclusive: bool = attr(False, "whether an element itself is left out of its sum or product")
    data: Input = arg("the tensor whose elements are combined")
    numpy_name: ClassVar[str] = "cumsum"
    defaults = {"exclusive": None}
    start: ClassVar[int] = 0

    def result_dtype(self, data: str) -> str:
        """The data type of the result: int32 for bools unless given."""
        return self.dtype or ("int32" if data == "bool" else data)

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        shape = data.shape if self.axis is not None else (product(data.shape),)
        rules.axis(s, self.axis or 0, len(shape), f"axis of {self.op_name}")
        return TensorType(shape, self.result_dtype(data.dtype))

    def reference(self, data: np.ndarray) -> np.ndarray:
        dtype = self.result_dtype(data.dtype.name)
        wide = "float64" if dtype.startswith("float") else dtype
        data = as_dtype(data, dtype)
        x, axis = (data.reshape(-1), 0) if self.axis is None else (data, self.axis)
        if self.exclusive:
            line = np.moveaxis(x, axis, 0)
            x = np.moveaxis(np.concatenate([np.full_like(line[:1], self.start), line[:-1]]), 0, axis)
        return getattr(np, self.numpy_name)(x, axis=axis, dtype=wide).astype(dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        axis = 0 if self.axis is None else self.axis % len(i)
        read = (lambda k: data(*unravel(b, k, data.shape))) if self.axis is None else lambda k: data(*place(i, axis, k))
        neutral = b.const(self.start, out.dtype)
        reduce = b.sum if self.numpy_name == "cumsum" else b.prod

        def term(k: Element) -> Element:
            return b.guard(k < i[axis] if self.exclusive else k <= i[axis], lambda: b.cast(read(k), out.dtype), neutral)

        return reduce(int(out.shape[axis]), term)

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        return {**attrs, "exclusive": False if attrs.get("exclusive") is None else attrs["exclusive"]}

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 3)),
            sample((2, 5, 3), axis=1),
            sample(TensorType((4, 3), "int8"), axis=-1, dtype="int32", exclusive=True),
            sample(TensorType((5,), "bool"), axis=0),
        ]


@op("cumsum", level=3, attrs_key="Scanop", meta_attrs=True)
class cumsum(Scan):
    """Running sums along an axis."""

    source = "numpy.cumsum"


@op("cumprod", level=3, attrs_key="Scanop", meta_attrs=True, numpy_name="cumprod", start=1)
class cumprod(Scan):
    """Running products along an axis."""

    source = "numpy.cumprod"
