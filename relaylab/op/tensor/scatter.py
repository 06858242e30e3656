"""Scattering updates into a tensor, and running sums and products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from relaylab.ir.types import TensorType, Type, type_text
from relaylab.loop.expr import Local, Tensor, as_index
from relaylab.loop.scalar import NARROW
from relaylab.op import rules
from relaylab.op.base import Dtype, Input, Opaque, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, TypeSolver
from relaylab.op.indexing import found_inside, place, ravel, unravel
from relaylab.op.shapes import extent, product, same_dim
from relaylab.op.tensor.casts import as_dtype

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure


FEW_LANES = 64  # lines side by side of which all totals are in registers, or those of half


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

    def places(self, data: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, ...]:
        """Where each update goes, in order, as numpy's indices."""
        return place(np.indices(indices.shape, sparse=True), self.axis % data.ndim, indices)

    def combine(self, b: ElementBuilder, old: Element, new: Element) -> Element:
        """What a place holds after an update."""
        return new

    def procedure(self, p: Procedure, out: Tensor, data: Tensor, indices: Tensor, updates: Tensor) -> None:
        """A copy, then the updates in their order; an index beyond the axis changes nothing."""
        axis, rank = self.axis % len(data.shape), len(data.shape)
        p.each(out, lambda *i: data(*i))
        apart = rank > 1 and axis > 0  # lines along other axes have no place in common
        with (
            p.parallel(indices.shape[0] if apart else 1) as line,
            p.loops(indices.shape[1:] if apart else indices.shape) as inner,
        ):
            at = (line, *inner) if apart else inner
            k = p.let(wrapped(p.b, indices(*at), data.shape[axis]))
            with p.when(found_inside(p.b, (k,), (data.shape[axis],))):
                to = place(at, axis, k)
                p.store(out, to, self.combine(p.b, out(*to), updates(*at)))

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
        out[self.places(data, indices)] = updates  # of equal places the last one counts
        return out


@op("scatter_add", level=10, attrs_key="ScatterAdd", meta_attrs=True, required="axis")
class scatter_add(Scattering):
    """`data` with updates added to elements along `axis`."""

    source = "ONNX ScatterElements with reduction=add; torch.Tensor.scatter_add"

    def reference(self, data: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        out = data.copy()
        np.add.at(out, self.places(data, indices), updates)
        return out

    def combine(self, b: ElementBuilder, old: Element, new: Element) -> Element:
        return old + new


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
    combine: ClassVar[dict[str, np.ufunc]] = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}

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

    def procedure(self, p: Procedure, out: Tensor, data: Tensor, indices: Tensor, updates: Tensor) -> None:
        """A copy, then the updates in their order, lanes of a slice together; a place outside of data is left out."""
        p.each(out, lambda *i: data(*i))
        depth, b = indices.shape[0], p.b
        outer, (lanes, *_) = data.shape[depth:-1], (*data.shape[depth:][-1:], 1)
        with (
            p.parallel(outer[0] if outer else 1) as part,
            p.loops(indices.shape[1:]) as y,
            p.loops(outer[1:]) as middle,
        ):
            found = [p.let(wrapped(b, indices(m, *y), data.shape[m])) for m in range(depth)]
            with p.when(found_inside(b, found, data.shape)):
                with p.loop(lanes, kind="vectorized") as lane:
                    rest = (*((part,) if outer else ()), *middle, lane)[: len(data.shape) - depth]
                    to = (*found, *rest)
                    p.store(out, to, self.combined(b, out(*to), updates(*y, *rest)))

    def combined(self, b: ElementBuilder, old: Element, new: Element) -> Element:
        """What a place holds after an update."""
        return {
            "update": lambda: new,
            "add": lambda: old + new,
            "mul": lambda: old * new,
            "min": lambda: b.min(old, new),
            "max": lambda: b.max(old, new),
        }[self.mode]()

    @classmethod
    def samples(cls) -> list[Sample]:
        two = np.array([[0, 1, 0], [2, 0, 2]], "int32")
        rows = np.array([[2, 0, 2]], "int64")
        return [sample((2, 3), two, (3,), mode=m) for m in ("update", "add", "mul", "min", "max")] + [
            sample((3, 4), rows, (3, 4), mode="add"),
            sample((3, 2), rows, (3, 2), mode="update"),
        ]


def _summed_in(dtype: str) -> str:
    """What running sums have: float64 for floats, of 16 bits float32, from which rounding is one instruction."""
    return "float32" if dtype in NARROW else "float64" if "float" in dtype else dtype


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
        wide = "float64" if "float" in dtype else dtype
        data = as_dtype(data, dtype)
        x, axis = (data.reshape(-1), 0) if self.axis is None else (data, self.axis)
        if self.exclusive:
            line = np.moveaxis(x, axis, 0)
            x = np.moveaxis(np.concatenate([np.full_like(line[:1], self.start), line[:-1]]), 0, axis)
        return getattr(np, self.numpy_name)(x, axis=axis, dtype=wide).astype(dtype)

    def procedure(self, p: Procedure, out: Tensor, data: Tensor) -> None:
        """Lines along the axis, in parallel before it and side by side behind it."""
        axis, b = 0 if self.axis is None else self.axis % len(out.shape), p.b
        before, count, behind = out.shape[:axis], out.shape[axis], out.shape[axis + 1 :]
        lanes, wide = math.prod(behind), _summed_in(out.dtype)

        def step(total: Element, at: Sequence[Element], source: Sequence[Element]) -> Local:
            """One element; the total with it."""
            x = b.cast(b.cast(data(*source), out.dtype), wide)
            new = p.let(total + x if self.numpy_name == "cumsum" else total * x)
            p.store(out, at, b.cast(total if self.exclusive else new, out.dtype))
            return new

        with p.parallel(math.prod(before)) as line:
            place_of = lambda k, lane: (*unravel(b, line, before), k, *unravel(b, lane, behind))
            if lanes == 1 and out.dtype in NARROW and self.axis is not None:
                self._by_rows(p, out, lambda at: b.cast(data(*at), out.dtype), place_of, count)
                return
            if lanes == 1:  # a register: what goes through memory is waited for
                alone = p.let(b.const(self.start, wide))
                with p.loops(data.shape if self.axis is None else (count,)) as each:
                    at = (as_index(ravel(each, data.shape)),) if self.axis is None else place_of(each[0], as_index(0))
                    p.set(alone, step(alone, at, each if self.axis is None else at))
                return
            if isinstance(lanes, int) and lanes <= FEW_LANES:
                self._in_registers(p, out, lambda at: b.cast(data(*at), out.dtype), place_of, (count, lanes))
                return
            totals = p.scratch(lanes, wide)
            with p.loop(lanes, kind="vectorized") as lane:
                p.store(totals, lane, self.start)
            with p.loop(count) as k, p.loop(lanes, kind="vectorized") as lane:
                at = place_of(k, lane)
                p.store(totals, lane, step(p.let(totals(lane)), at, at))

    def _by_rows(
        self,
        p: Procedure,
        out: Tensor,
        element: Callable[[Sequence[Element]], Element],
        place_of: Callable[[Element, Element], Sequence[Element]],
        count: int,
    ) -> None:
        """Floats of 16 bits become wide and narrow again by vectors: one by one each would wait for the total."""
        b, wide = p.b, _summed_in(out.dtype)
        row, total = p.scratch(count, wide), p.let(b.const(self.start, wide))
        with p.loop(count, kind="vectorized") as k:
            p.store(row, k, b.cast(element(place_of(k, as_index(0))), wide))
        with p.loop(count) as k:
            x = p.let(row(k))
            new = p.let(total + x if self.numpy_name == "cumsum" else total * x)
            p.store(row, k, total if self.exclusive else new)
            p.set(total, new)
        with p.loop(count, kind="vectorized") as k:
            p.store(out, place_of(k, as_index(0)), b.cast(row(k), out.dtype))

    def _in_registers(
        self,
        p: Procedure,
        out: Tensor,
        element: Callable[[Sequence[Element]], Element],
        place_of: Callable[[Element, Element], Sequence[Element]],
        extents: tuple[int, int],
    ) -> None:
        """Few lines side by side: their totals need no memory, which would be waited for."""
        (count, lanes), b, wide = extents, p.b, _summed_in(out.dtype)
        with p.loop(lanes, kind="vectorized", unroll=max(1, min(4, lanes // 8))) as lane:
            total = p.let(b.const(self.start, wide))
            with p.loop(count) as k:
                at = place_of(k, lane)
                x = b.cast(element(at), wide)
                if self.exclusive:
                    p.store(out, at, b.cast(total, out.dtype))
                p.add(total, x, "sum" if self.numpy_name == "cumsum" else "prod")
                if not self.exclusive:
                    p.store(out, at, b.cast(total, out.dtype))

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
