"""What operators that resample the spatial axes of a tensor share. Choices: docs/choices.md, Numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import ClassVar

import numpy as np

from relaylab.ir.expr import Constant, Expr
from relaylab.ir.op import is_call_to
from relaylab.ir.types import Dim, IntImm, TensorType, type_text
from relaylab.loop.scalar import NARROW
from relaylab.op import rules
from relaylab.op.base import Injective, Input, arg, attr, call_operator
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.nn.pool import positions
from relaylab.op.nn.resample import (
    METHODS,
    MODES,
    ROUNDINGS,
    SLACK,
    Expressions,
    ResamplingArrays,
    Sampling,
    blend,
    settled,
)
from relaylab.op.shapes import extent
from relaylab.op.tensor.casts import as_dtype

GATHERED = 6  # what a gathered element costs of one that is read with its neighbours


def weighted(x: Expr, axis: int, rank: int, extent: int, taps: Sequence[tuple[np.ndarray, np.ndarray | None]]) -> Expr:
    """The sum of elements along an axis of so many, each at its places and times its weights (None: 1)."""
    if is_call_to(x, "add"):  # what is summed is not summed again for each tap
        x = call_operator("annotation.stop_fusion", x)
    total: Expr | None = None
    for index, weight in taps:
        term = chosen(x, axis, rank, extent, index)
        if weight is not None:
            term = call_operator("multiply", term, Constant(weight.reshape([-1, *(1,) * (rank - 1 - axis)])))
        total = term if total is None else call_operator("add", total, term)
    assert total is not None
    return total


def chosen(x: Expr, axis: int, rank: int, extent: int, index: np.ndarray) -> Expr:
    """The elements at places along an axis of so many: repeated or every n-th ones without a table of the places."""
    places, times = np.arange(len(index)), len(index) // extent
    step = int(index[1] - index[0]) if len(index) > 1 else 1
    if times > 1 and len(index) == times * extent and np.array_equal(index, places // times):
        return call_operator("repeat", x, repeats=times, axis=axis)
    if len(index) and step > 0 and np.array_equal(index, places * step + index[0]):
        first, last = int(index[0]), int(index[-1]) + 1
        return call_operator("strided_slice", x, begin=[first], end=[last], strides=[step], axes=[axis])
    return call_operator("take", x, Constant(index.astype("int32")), axis=axis, mode="fast")


def _cheapest(shape: Sequence[int], at: Sequence[int], target: Sequence[int]) -> list[int]:
    """The order in which axes become so long, by numbers of the axes; elements of the innermost one are gathered."""

    def cost(order: Sequence[int]) -> float:
        sizes, total = list(shape), 0.0
        for axis in order:
            sizes[at[axis]] = target[axis]
            total += math.prod(sizes) * (GATHERED if at[axis] == len(shape) - 1 else 1)
        return total

    return list(min(permutations(range(len(at))), key=cost))


def _rounded(x: Expr, dtype: str) -> Expr:
    """What `settled` says of float32 numbers, in their own data type."""
    if "int" in dtype:
        low, zero, high = (Constant(np.array(n, "float32")) for n in (-SLACK, 0.0, SLACK))
        x = call_operator("add", x, call_operator("where", call_operator("less", x, zero), low, high))
    return call_operator("cast", x, dtype=dtype)


class Resampled(Injective):
    """The spatial axes of `data` (those of `spatial` in `layout`) resampled one by one."""

    layout: str = attr("NCHW", "the axes of data and result; channels may be in blocks, as in NCHW16c")
    spatial: ClassVar[str] = "HW"
    data: Input = arg("the batch of signals, images or volumes, laid out as `layout`", "(N, C, *extents)")

    def sampling(self) -> Sampling:
        """How each axis is resampled."""
        return Sampling("nearest_neighbor", "asymmetric")

    def target(self, extents: Sequence[Dim]) -> list[Dim]:
        """The new extents of the spatial axes."""
        return list(extents)

    def region(self, k: int) -> tuple[float, float]:
        """The part of spatial axis `k` that is read, as fractions (only for tf_crop_and_resize)."""
        return (0.0, 1.0)

    def outside(self) -> float | None:
        """The value of positions outside the input, if they do not take the edge's."""
        return None

    def result_dtype(self, data: str) -> str:
        """The data type of the result."""
        return data

    def result_type(self, s: TypeSolver, data: TensorType) -> TensorType:
        how, layout = self.sampling(), rules.layout(s, self.layout, "NC" + self.spatial, data)
        for value, known, name in (
            (how.method, METHODS, "method"),
            (how.mode, MODES, "mode"),
            (how.rounding, ROUNDINGS, "rounding"),
        ):
            if value not in known:
                s.fail(
                    f'the {name} "{value}" of {self.op_name} is not known',
                    help="known: " + ", ".join(filter(None, known)),
                )
        at, shape = positions(self.layout, self.spatial), list(data.shape)
        if any(layout.factor(a) > 1 for a in self.spatial):
            s.fail(f"the layout {self.layout} splits a resampled axis")
        if any(shape[k] == 0 for k in at):
            s.fail(f"{self.op_name} has nothing to resample in {type_text(data)}", help="give an image with elements")
        for k, n in zip(at, self.target([shape[k] for k in at])):
            if n == 0:
                s.fail(f"{self.op_name} leaves nothing of {type_text(data)}", help="take larger factors")
            shape[k] = n
        return TensorType(shape, self.result_dtype(data.dtype))

    def matrices(self, shape: Sequence[int]) -> dict[int, np.ndarray]:
        """For each spatial axis of data of a shape the matrix that resamples it; zeros for what lies outside."""
        at, how, found = positions(self.layout, self.spatial), self.sampling(), dict[int, np.ndarray]()
        target = [extent(n) for n in self.target([IntImm(shape[k]) for k in at])]
        for axis, (k, n) in enumerate(zip(at, target)):
            kept = ~self._beyond(axis, shape[k], n) if self.outside() is not None else np.ones(n)
            found[k] = how.along(np.eye(shape[k]), 0, n, self.region(axis)) * kept[:, None]
        return found

    def reference(self, data: np.ndarray) -> np.ndarray:
        at, how = positions(self.layout, self.spatial), self.sampling()
        target = [extent(n) for n in self.target([IntImm(data.shape[k]) for k in at])]
        out = data.astype("float64")
        for axis, (k, n) in enumerate(zip(at, target)):
            out = how.along(out, k, n, self.region(axis))
        dtype = self.result_dtype(data.dtype.name)
        return as_dtype(settled(ResamplingArrays(), self._cut(out, data.shape, at, target), dtype), dtype)

    def legal(self, inputs: Sequence[Expr], types: Sequence[TensorType]) -> Expr | None:
        """An axis after the other by tables: where the taps lie is known, and what they weigh.

        Two numbers are read for a result of two axes, and then two, instead of two times two. Long integers that are
        interpolated stay: they are rounded once. Bytes and floats of 16 bits are float32 meanwhile.
        """
        (x, *_), data, out = inputs, types[0], types[-1]
        method = self.sampling().method
        exact = method == "nearest_neighbor" or data.dtype in ("float32", "float64")
        # Linear means of bytes are far more exact in float32 than what settles them.
        wide = not exact and (data.dtype in NARROW or method == "linear" and data.dtype in ("uint8", "int8"))
        unknown = data.is_dynamic or out.is_dynamic or self.outside() is not None
        if unknown or not (exact or wide) or data.dtype != out.dtype:
            return None
        if wide:
            data, x = TensorType(data.shape, "float32"), call_operator("cast", x, dtype="float32")
        at = positions(self.layout, self.spatial)
        sizes = [(data.concrete_shape[k], out.concrete_shape[k]) for k in at]
        order = _cheapest(list(data.concrete_shape), at, [n for _, n in sizes])
        gathered = self._gathered_first(at, sizes, len(data.shape))
        for axis in order if gathered is None else [gathered, *(a for a in order if a != gathered)]:
            x = self._along(x, axis, at[axis], *sizes[axis], data)
            if axis == gathered and is_call_to(x, "take"):
                x = call_operator("annotation.stop_fusion", x)
        if x is inputs[0]:
            return None
        return _rounded(x, out.dtype) if wide else x

    def _gathered_first(self, at: Sequence[int], sizes: Sequence[tuple[int, int]], rank: int) -> int | None:
        """The innermost axis if a row is gathered once and then repeated: nearest elements of an image that grows."""
        *outer, (k, (extent, target)) = zip(at, sizes)
        grows = math.prod(n / m for _, (m, n) in outer) > 1 and extent != target
        return len(outer) if self.sampling().method == "nearest_neighbor" and k == rank - 1 and grows else None

    def _along(self, x: Expr, axis: int, k: int, extent: int, target: int, data: TensorType) -> Expr:
        """A tensor resampled along spatial axis `axis`, its axis `k`; itself where that changes nothing."""
        how, places = self.sampling(), np.arange(target, dtype="float64")
        m = ResamplingArrays()
        taps = how.taps(m, how.position(m, places, extent, target, self.region(axis)), extent)
        own = sum((index == places) * (1.0 if weight is None else weight) for index, weight in taps)
        if extent == target and np.all(own == 1.0):
            return x
        found = [(index, None if weight is None else weight.astype(data.dtype)) for index, weight in taps]
        return weighted(x, k, len(data.shape), extent, found)

    def _cut(self, out: np.ndarray, shape: Sequence[int], at: list[int], target: list[int]) -> np.ndarray:
        """`out` with positions outside the input replaced by the value for them, if there is one."""
        fill = self.outside()
        if fill is None:
            return out
        for axis, (k, n) in enumerate(zip(at, target)):
            beyond = self._beyond(axis, shape[k], n)
            out = np.where(beyond.reshape([-1 if d == k else 1 for d in range(out.ndim)]), fill, out)
        return out

    def _beyond(self, axis: int, size: int, target: int) -> np.ndarray:
        """Which positions of a spatial axis lie outside the input."""
        places = np.arange(target, dtype="float64")
        where = self.sampling().position(ResamplingArrays(), places, size, target, self.region(axis))
        return (where < 0) | (where > size - 1)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        at, how, m = positions(self.layout, self.spatial), self.sampling(), Expressions(b)
        taps, inside = [], []
        for axis, k in enumerate(at):
            extent = data.shape[k]
            where = how.position(m, b.cast(i[k], "float64"), extent, out.shape[k], self.region(axis))
            inside.append(m.inside(where, extent))
            taps.append(how.taps(m, where, extent))

        def read(*chosen: Element) -> Element:
            index = dict(zip(at, chosen))
            value = data(*(index.get(d, j) for d, j in enumerate(i)))
            return value if how.method == "nearest_neighbor" else b.cast(value, "float64")

        mixed = blend(read, taps)
        value = b.cast(mixed if how.method == "nearest_neighbor" else settled(m, mixed, out.dtype), out.dtype)
        fill = self.outside()
        return value if fill is None else b.select(b.all_of(*inside), value, b.const(fill, out.dtype))
