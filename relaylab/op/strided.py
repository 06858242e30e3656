"""Slices: strided_slice, slice_like, strided_set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylab.ir.types import Any as Unknown
from relaylab.ir.types import Dim, IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Injective, Ints, Sample, op, sample
from relaylab.op.indexing import as_shape_expr
from relaylab.op.shapes import normalize_axes

WHOLE = slice(None)


@op("strided_slice", inputs=("data",), level=4, attrs_key="StridedSlice")
class strided_slice(Injective):
    """Elements begin, begin + stride, ... before end along each axis, as numpy's slices; negative positions count
    from the end. `axes` says which axes are meant (else the first ones). In `slice_mode` "size", `end` holds
    extents (-1: all).
    """

    defaults = {"strides": (1,), "axes": None}
    dynamic = ("begin", "end", "strides")
    parameters = "data begin end strides axes slice_mode"

    begin: Ints | None
    end: Ints | None
    strides: Ints | None
    slice_mode: str = "end"
    axes: Ints | None

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
        end = self.end[k] if self.end is not None and k < len(self.end) else None
        if self.slice_mode == "size":
            return slice(begin, None if end is None or end < 0 else begin + end, 1)
        return slice(begin, end, step)

    def relation(self, s: Any, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        self._check(s, found)
        return TensorType(sliced(found.shape, self.slices(len(found.shape))), found.dtype)

    def _check(self, s: Any, t: TensorType) -> None:
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

    def reference(self, data: np.ndarray) -> np.ndarray:
        return data[tuple(self.slices(data.ndim))]

    def lower(self, b: Any, out: Any, i: tuple, data: Any) -> Any:
        ranges = [c.indices(int(n)) for c, n in zip(self.slices(len(i)), data.shape)]
        return data(*(k * step + start for k, (start, _, step) in zip(i, ranges)))

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
        ]


def sliced(shape: Sequence[Dim], slices: Sequence[slice]) -> tuple[Dim, ...]:
    """The shape after slicing; an unknown dimension stays unknown."""
    return tuple(
        n if isinstance(n, Unknown) or c == WHOLE else IntImm(len(range(*c.indices(int(n)))))
        for n, c in zip(shape, slices)
    )


@op("slice_like", inputs=("data", "shape_like"), level=10, attrs_key="SliceLike")
class slice_like(Injective):
    """The first elements along `axes` (all when empty), as many as `shape_like` has there."""

    defaults = {"axes": None}

    axes: Ints | None

    def chosen(self, rank: int) -> tuple[int, ...]:
        """The axes that are cut."""
        return normalize_axes(self.axes or None, rank) or ()

    def relation(self, s: Any, data: Type, shape_like: Type) -> Type | None:
        found, like = rules.tensor(s, data), rules.tensor(s, shape_like, "shape_like")
        if found is None or like is None:
            return None
        shape = list(found.shape)
        for d in rules.axes(s, self.axes or None, found):
            if d >= len(like.shape):
                s.fail(f"slice_like cuts axis {d}, which {type_text(like)} does not have")
            if isinstance(like.shape[d], int) and isinstance(shape[d], int) and like.shape[d] > shape[d]:  # type: ignore[operator]
                s.fail(f"{type_text(found)} is smaller than {type_text(like)} along axis {d}")
            shape[d] = like.shape[d]
        return TensorType(shape, found.dtype)

    def reference(self, data: np.ndarray, shape_like: np.ndarray) -> np.ndarray:
        chosen = self.chosen(data.ndim)
        return data[tuple(slice(shape_like.shape[d]) if d in chosen else WHOLE for d in range(data.ndim))]

    def lower(self, b: Any, out: Any, i: tuple, data: Any, shape_like: Any) -> Any:
        return data(*i)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((3, 4), (2, 3), axes=None),
            sample((3, 4, 5), (9, 2, 3), axes=(1, -1)),
            sample((4,), (4,), axes=()),
        ]


@op("strided_set", inputs=("data", "v", "begin", "end", "strides"), level=4)
class strided_set(Injective):
    """`data` with the slice begin .. end by strides replaced by `v` (begin, end and strides are tensors)."""

    waivers = {"lower": "which elements are replaced depends on the values of begin, end and strides"}

    def relation(self, s: Any, data: Type, v: Type, *limits: Type) -> Type | None:
        found, value = rules.tensor(s, data), rules.tensor(s, v, "v")
        for t, name in zip(limits, self.inputs[2:]):
            if (limit := rules.tensor(s, t, name)) is not None:
                rules.integers(s, rules.rank(s, limit, 1, name), name)
        if found is not None and value is not None:
            rules.same_dtype(s, found, value)
        return found

    def reference(self, data: np.ndarray, v: np.ndarray, *limits: np.ndarray) -> np.ndarray:
        begin, end, strides = (x.tolist() for x in limits)
        out = data.copy()
        out[tuple(slice(a, c, strides[k] if k < len(strides) else 1) for k, (a, c) in enumerate(zip(begin, end)))] = v
        return out

    @classmethod
    def build(cls, data: Any, v: Any, begin: Any, end: Any, strides: Any = None) -> Any:
        limits = [as_shape_expr(x) for x in (begin, end, strides or (1,))]
        return cls.call(data, v, *limits)

    @classmethod
    def samples(cls) -> list[Sample]:
        limits = [np.array(x, "int32") for x in ((1, 0), (3, 4), (1, 2))]
        return [sample((4, 5), (2, 2), *limits)]
