"""Slices: strided_slice, slice_like, strided_set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from relaylab.ir.dims import SymbolicDim, UndecidedSize, apply_operation, larger, smaller
from relaylab.ir.expr import Constant, Expr
from relaylab.ir.types import AnyDim, Dim, IntImm, TensorType, Type, dim, type_text
from relaylab.loop.expr import ScalarExpr, Tensor
from relaylab.op import rules
from relaylab.op.base import (
    Dims,
    Injective,
    Input,
    Ints,
    Opaque,
    OpPattern,
    Sample,
    arg,
    attr,
    call_operator,
    op,
    sample,
)
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import as_shape_expr
from relaylab.op.shapes import derive, normalize_axes
from relaylab.support.errors import RelayValueError

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure

WHOLE = slice(None)


@op("strided_slice", level=4, attrs_key="StridedSlice")
class strided_slice(Injective):
    """Elements begin, begin + stride, ... before end along each axis, as numpy's slices; negative positions count
    from the end. `axes` says which axes are meant (else the first ones). In `slice_mode` "size", `end` holds
    extents (-1: all). Where sizes say how many elements there are, `count` does: `end` is not read then, and a tensor
    that has not so many from `begin` on is refused, or with `fewer` gives what it has.
    """

    yields = "along each axis the extent of numpy's slice begin:end:stride, or `count`; of the dtype of data"
    source = "numpy's basic slicing; ONNX Slice"

    defaults = {"strides": (1,), "axes": None}
    dynamic = ("begin", "end", "strides")
    parameters = "data begin end strides axes slice_mode"

    data: Input = arg("the tensor that is sliced")
    begin: Ints | None = attr(doc="the first position along each axis; negative: from the end")
    end: Ints | None = attr(
        doc="the position before which a slice ends; or extents, -1 for all, with `slice_mode` size"
    )
    strides: Ints | None = attr(doc="the distances of the positions, not 0")
    slice_mode: str = attr("end", "what `end` means: end or size")
    axes: Ints | None = attr(doc="which axes are meant; None: the first ones")
    count: Dims | None = attr(None, "how many elements there are along each axis, side by side from `begin` on")
    fewer: bool = attr(False, "whether there may be fewer than `count`: as many as sizes have when they are known")

    def slices(self, rank: int) -> list[slice]:
        """One slice per axis."""
        begin, strides = tuple(self.begin or ()), tuple(self.strides or ())
        axes = range(len(begin)) if self.axes is None else [a % rank for a in self.axes]
        out = [WHOLE] * rank
        for k, axis in enumerate(axes):
            step = strides[k] if k < len(strides) else 1
            out[axis] = self._slice(k, begin[k], step)
        return out

    def _slice(self, k: int, begin: int, step: int) -> slice:
        if self.count is not None:
            many = self.count[k]
            stop = begin + many if isinstance(many, int) else begin  # of sizes only where it begins is asked
            return slice(begin, None if begin < 0 <= stop else stop, 1)
        end = self.end[k] if self.end is not None and k < len(self.end) else None
        if self.slice_mode == "size":
            stop = None if end is None or end < 0 else begin + end
            return slice(begin, None if stop is not None and begin < 0 <= stop else stop, 1)
        return slice(begin, end, step)

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        self._check(s, data)
        if self.count is not None:
            return TensorType(self._counted(s, data, [dim(n) for n in self.count]), data.dtype)
        return TensorType(sliced(data.shape, self.slices(len(data.shape))), data.dtype)

    def _check(self, s: TypeSolver, t: TensorType) -> None:
        if self.slice_mode not in ("end", "size"):
            s.fail(f'slice_mode must be "end" or "size", not "{self.slice_mode}"')
        if 0 in (self.strides or ()):
            s.fail("a stride of strided_slice cannot be 0")
        if len(self.begin or ()) > len(t.shape):
            s.fail(f"strided_slice has {len(self.begin or ())} begins for {type_text(t)}")
        if self.axes is not None:
            rules.axes(s, self.axes, t)
            if len(self.begin or ()) != len(self.axes):
                s.fail(f"strided_slice has {len(self.begin or ())} begins for {len(self.axes)} axes")

    def _counted(self, s: TypeSolver, t: TensorType, count: Sequence[Dim]) -> list[Dim]:
        """The shape with these extents, each of which has to be there."""
        shape, begin = list(t.shape), tuple(self.begin or ())
        axes = rules.axes(s, range(len(begin)) if self.axes is None else self.axes, t)
        if len(count) != len(begin) or {*(self.strides or ())} - {1}:
            s.fail(f"strided_slice has {len(count)} counts for {len(begin)} begins, with strides {self.strides}")
        for axis, first, many in zip(axes, begin, count):
            extent = t.shape[axis]
            if self.fewer and isinstance(extent, int) and isinstance(many, int):
                shape[axis] = IntImm(len(range(*self.slices(len(shape))[axis].indices(extent))))
                continue
            behind = -first if first < 0 else extent - first if isinstance(extent, int) else many
            before = isinstance(extent, int) and -first > extent
            if before or (isinstance(many, int) and isinstance(behind, int) and not 0 <= many <= behind):
                s.fail(f"there are not {many} elements from {first} on along axis {axis} of {type_text(t)}")
            shape[axis] = many
        return shape

    def reference(self, data: np.ndarray) -> np.ndarray:
        found = data[tuple(self.slices(data.ndim))]
        axes = range(data.ndim) if self.axes is None else self.axes
        if (
            self.count is not None
            and not self.fewer
            and [found.shape[a] for _, a in zip(self.count, axes)] != [*self.count]
        ):
            raise RelayValueError(
                f"strided_slice takes {tuple(self.count)} elements from {tuple(self.begin or ())} on: "
                "there are not so many",
                code="op.slice",
            )
        return found

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        ranges = [_start(b, c, n) for c, n in zip(self.slices(len(i)), data.shape)]
        return data(*(k * step + start for k, (start, step) in zip(i, ranges)))

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        return {**attrs, "strides": attrs["strides"] or (1,)}

    @classmethod
    def samples(cls) -> list[Sample]:
        full = {"begin": (1, 0, -2), "end": (3, 9, 5), "strides": (1,)}
        return [
            sample((3, 4, 5), **full),
            sample((3, 4, 5), begin=(0, 1), end=(3, 4), strides=(2, 2)),
            sample((3, 4), begin=(-1, 3), end=(-5, 0), strides=(-1, -2)),
            sample((3, 4, 5), begin=(1,), end=(4,), strides=(2,), axes=(-1,)),
            sample((3, 4), begin=(1, 0), end=(-1, 2), strides=(1,), slice_mode="size"),
            sample(TensorType((4,), "int8"), begin=(2,), end=(2,), strides=(1,)),
            sample((3, 4, 5), begin=(1, -3), end=(3, -1), strides=(1,), axes=(0, 2), count=(2, 2)),
        ]


def sliced(shape: Sequence[Dim], slices: Sequence[slice]) -> tuple[Dim, ...]:
    """The shape after slicing; what is cut from an unknown dimension is unknown, from one with a name what is left."""
    return tuple(n if c == WHOLE else _sliced(n, c) for n, c in zip(shape, slices))


def _sliced(n: Dim, c: slice) -> Dim:
    if isinstance(n, SymbolicDim):
        return _cut(n, c.start, c.stop, 1 if c.step is None else c.step)
    return AnyDim() if isinstance(n, AnyDim) else IntImm(len(range(*c.indices(int(n)))))


FAR = 2**31 - 1
"""Positions from here on mean the end of an axis."""


def _cut(n: SymbolicDim, start: int | None, stop: int | None, step: int) -> Dim:
    """What a slice leaves of an axis. One that begins and ends inside leaves so much less than the axis, also where
    that is no number of elements; any other at most as many as there are.
    """
    try:
        if step < 0:
            first = _place_before(n, FAR if start is None else start)
            behind = _place_before(n, -FAR if stop is None else stop)
            many = cast(SymbolicDim, apply_operation("tir.Sub", first, behind)) - (step + 1)
            return dim(larger(cast(SymbolicDim, many) // -step, 0))
        first, behind = start or 0, FAR if stop is None else stop
        if first >= 0 and (behind < 0 or behind >= FAR):
            return derive(lambda size: (size + (behind if behind < 0 else 0) - first + step - 1) // step, n)
        low: Any = _place(n, first)
        found: Any = _place(n, behind) - low
        if (first < 0) == (behind < 0) or behind >= FAR:
            found = found if behind > first else 0  # one after the other, wherever the axis ends
        else:
            found = larger(found, 0)
        return dim((found + step - 1) // step)
    except UndecidedSize:
        return AnyDim()


def _place_before(n: SymbolicDim, at: int) -> Dim | int:
    """Where a position lies of a slice that goes to the front, from the last element to the place before the first."""
    if at >= FAR or at == -1:
        return n - 1
    return larger(n + at, -1) if at < 0 and at > -FAR else -1 if at < 0 else smaller(n - 1, at)


def _place(n: SymbolicDim, at: int) -> Dim | int:
    """Where a position lies, or the end of an axis before it."""
    if at >= FAR:
        return n
    return smaller(n, at) if at >= 0 else larger(n + at, 0)


@op("slice_like", level=10, attrs_key="SliceLike")
class slice_like(Injective):
    """The first elements along `axes` (none given: all that `shape_like` has), as many as `shape_like` has there."""

    yields = "data.shape with the extents of shape_like along the axes, of the dtype of data"
    source = "MXNet slice_like"

    defaults = {"axes": None}

    data: Input = arg("the tensor that is cut")
    shape_like: Input = arg("the tensor whose extents are taken")
    axes: Ints | None = attr(doc="the axes that are cut; None or empty: all that shape_like has")

    def result_type(self, s: TypeSolver, data: TensorType, shape_like: TensorType) -> Type | None:
        shape = list(data.shape)
        for d in self.axes and rules.axes(s, self.axes, data) or range(min(len(shape), len(shape_like.shape))):
            if d >= len(shape_like.shape):
                s.fail(f"slice_like cuts axis {d}, which {type_text(shape_like)} does not have")
            wanted, given = shape_like.shape[d], shape[d]
            if isinstance(wanted, int) and isinstance(given, int) and wanted > given:
                s.fail(f"{type_text(data)} is smaller than {type_text(shape_like)} along axis {d}")
            shape[d] = shape_like.shape[d]
        return TensorType(shape, data.dtype)

    def reference(self, data: np.ndarray, shape_like: np.ndarray) -> np.ndarray:
        chosen = normalize_axes(self.axes or range(min(data.ndim, shape_like.ndim)), data.ndim) or ()
        return data[tuple(slice(shape_like.shape[d]) if d in chosen else WHOLE for d in range(data.ndim))]

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, shape_like: Readable) -> Element:
        return data(*i)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((3, 4), (2, 3), axes=None),
            sample((3, 4, 5), (9, 2, 3), axes=(1, -1)),
            sample((4,), (4,), axes=()),
            sample((3, 4, 5), (1, 2), axes=None),
        ]


def _start(b: ElementBuilder, part: slice, extent: int | Element) -> tuple[int | Element, int]:
    """Where a slice of an axis begins, and its step."""
    begin, step = part.start or 0, 1 if part.step is None else int(part.step)
    if not isinstance(extent, ScalarExpr):
        start, _, step = part.indices(int(extent))
        return start, step
    if step > 0:
        return begin if begin >= 0 else b.max(extent + begin, 0), step
    if part.start is None or begin == -1 or begin >= FAR:
        return extent - 1, step
    return b.min(extent - 1, begin) if begin >= 0 else b.max(extent + begin, -1), step


def _parts(limits: Sequence[np.ndarray]) -> tuple[slice, ...]:
    """The slices of begins, ends and strides; a stride that is not there is 1."""
    begin, end, strides = (x.tolist() for x in limits)
    return tuple(slice(a, c, strides[k] if k < len(strides) else 1) for k, (a, c) in enumerate(zip(begin, end)))


@op("strided_set", level=4)
class strided_set(Opaque):
    """`data` with the slice begin .. end by strides replaced by `v` (begin, end and strides are tensors)."""

    yields = "the shape of data, and its dtype"
    source = "numpy's assignment to a slice"

    data: Input = arg("the tensor that is updated")
    v: Input = arg("the new elements of the slice", "that of the slice", "that of data")
    begin: Input = arg("the first position along each axis; negative: from the end", "(n,)", "integers")
    end: Input = arg("the position along each axis before which the slice ends", "(n,)", "integers")
    strides: Input = arg("the distances of the positions along each axis, 1 where there is none", "(n,)", "integers")

    pattern = OpPattern.INJECTIVE

    def relation(self, s: TypeSolver, data: Type, v: Type, *limits: Type) -> Type | None:
        found, value = rules.tensor(s, data), rules.tensor(s, v, "v")
        for t, name in zip(limits, self.inputs[2:]):
            if (limit := rules.tensor(s, t, name)) is not None:
                (many,) = rules.integers(s, rules.rank(s, limit, 1, name), name).shape
                if found is not None and isinstance(many, int) and many > len(found.shape):
                    s.fail(f"`{name}` has {many} elements for {type_text(found)}")
        if found is not None and value is not None:
            rules.same_dtype(s, found, value)
            rules.rank(s, value, len(found.shape), "v")
            if any(isinstance(n, int) and isinstance(m, int) and n > m for n, m in zip(value.shape, found.shape)):
                s.fail(f"the slice that {type_text(value)} is to fill is no part of {type_text(found)}")
        return found

    def refusal(self, types: Sequence[Type], values: Sequence[np.ndarray | None]) -> str:
        data, v = types[:2]
        limits = [x for x in values[2:] if x is not None]
        if len(limits) < 3 or not isinstance(data, TensorType) or data.is_dynamic or not isinstance(v, TensorType):
            return ""
        parts, shape = _parts(limits), data.concrete_shape
        if any(p.step == 0 for p in parts):
            return "a stride cannot be 0"
        extents = (*(len(range(*p.indices(n))) for p, n in zip(parts, shape)), *shape[len(parts) :])
        fits = all(n == m or not isinstance(m, int) for n, m in zip(extents, v.shape))
        return "" if fits else f"the slice has the shape {extents}, `v` is {type_text(v)}"

    def reference(self, data: np.ndarray, v: np.ndarray, *limits: np.ndarray) -> np.ndarray:
        out = data.copy()
        parts = _parts(limits)
        if len(parts) > data.ndim or any(p.step == 0 for p in parts):
            text = f"{len(parts)} begins with the strides {limits[2].tolist()} cut no slice of the shape {data.shape}"
            raise RelayValueError(text, code="op.slice-shape")
        part = out[parts]
        if part.shape != v.shape:
            raise RelayValueError(f"the slice has the shape {part.shape}, `v` {v.shape}", code="op.slice-shape")
        part[...] = v
        return out

    def procedure(self, p: Procedure, out: Tensor, data: Tensor, v: Tensor, *limits: Tensor) -> None:
        """A copy, then the slice as far as `v` has elements; what of `v` does not fit into it is left out."""
        b, shape = p.b, data.shape
        p.each(out, lambda *i: data(*i))
        with p.parallel(v.shape[0] if shape else 1) as first:
            many = min(x.shape[0] for x in limits[:2])
            ranges = [self._range(p, d, n, limits) for d, n in enumerate(shape[:many])]
            with p.loops(v.shape[1:]) as rest:
                at, to = (first, *rest)[: len(shape)], list[Element]()
                inside = list[Element]()
                for k, n, (begin, end, step) in zip(at, shape, ranges):
                    place = p.let(begin + k * step)
                    to.append(place)
                    inside += [b.inside(place, n), b.select(step > 0, place < end, b.land(place > end, step < 0))]
                with p.when(b.all_of(*inside)):
                    p.store(out, (*to, *at[len(to) :]), v(*at))

    @staticmethod
    def _range(p: Procedure, d: int, n: int, limits: Sequence[Tensor]) -> tuple[Element, Element, Element]:
        """Where a slice of `n` elements begins, before which position it ends, and its step, as numpy has them."""
        b, (begins, ends, strides) = p.b, limits
        step = b.load_index(strides(d)) if d < strides.shape[0] else b.index(1)
        step = p.let(b.max(b.min(step, n), b.index(0) - n))  # a longer one leaves as much
        least = b.select(step < 0, b.index(-1), b.index(0))
        found = list[Element]()
        for limit in (begins, ends):
            k = p.let(b.load_index(limit(d)))
            found.append(p.let(b.max(b.min(b.select(k < 0, k + n, k), n + least), least)))
        return found[0], found[1], step

    def legal(self, inputs: Sequence[Expr], types: Sequence[TensorType]) -> Expr | None:
        """With limits that are constants `v` is spread over the axes of `data`, and taken where the slice is."""
        data, spread, *limits = inputs
        known = [x.data.numpy() for x in limits if isinstance(x, Constant)]
        if len(known) < len(limits) or types[0].is_dynamic or types[1].is_dynamic:
            return None
        if 0 in types[1].concrete_shape:
            return call_operator("copy", data)
        shape, inside = types[0].concrete_shape, list[np.ndarray]()
        for axis, (part, n) in enumerate(zip(_parts(known), shape)):
            here, place = np.zeros(n, bool), np.zeros(n, "int64")
            here[part], place[part] = True, np.arange(len(range(*part.indices(n))))
            spread = call_operator("take", spread, Constant(place), axis=axis)
            inside.append(here.reshape([n if d == axis else 1 for d in range(len(shape))]))
        for here in inside:
            spread = call_operator("where", Constant(here), spread, data)
        return spread

    @classmethod
    def build(cls, data: Expr, v: Expr, begin: object, end: object, strides: object = None) -> Expr:
        limits = [as_shape_expr(x) for x in (begin, end, strides or (1,))]
        return cls.call(data, v, *limits)

    @classmethod
    def samples(cls) -> list[Sample]:
        of = lambda *limits: [np.array(x, "int32") for x in limits]
        return [
            sample((4, 5), (2, 2), *of((1, 0), (3, 4), (1, 2))),
            sample((7, 5, 6), (4, 2, 6), *of((6, -1), (-9, 0), (-2, -2))),
            sample((5, 3), (2, 3), *of((-3,), (99,), (2,))),
        ]
