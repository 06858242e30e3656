"""Gradients of pooling with respect to its data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylab.ir.types import TensorType, Type
from relaylab.loop.expr import Tensor
from relaylab.loop.scalar import compute_dtype, is_float
from relaylab.op import rules
from relaylab.op.base import Input, Ints, OpPattern, Sample, arg, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import ravel, unravel
from relaylab.op.nn.pool import AvgPool, Pool, border, positions
from relaylab.op.tensor.moments import divided, quotient

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure


def wide(dtype: np.dtype) -> np.dtype:
    """The data type in which gradients are summed: integers wrap in their own."""
    return np.dtype("float64") if dtype.kind == "f" else dtype


class PoolGrad(Pool):
    """The gradient of a pool: inputs (out_grad, data), the type of `data`."""

    out_grad: Input = arg("the gradient of the pool's result; typed by data if untyped", "that of the pool's result")
    data: Input = arg("what was pooled, laid out as `layout`", "(N, C, *extents)")
    yields = "the shape of data, and its dtype"

    def relation(self, s: TypeSolver, out_grad: Type, data: Type) -> Type | None:
        x = rules.tensor(s, data)
        if x is None:
            return None
        s.unify(out_grad, self.result_type(s, rules.numbers(s, x)))
        return x

    def covering(self, b: ElementBuilder, i: Index, taps: Sequence[Any], out_grad: Readable) -> tuple[Any, tuple]:
        """Whether a window has data index `i` at its position `taps`, and which one."""
        at, hits = list(i), []
        parts = zip(positions(self.layout, self.spatial), taps, self.windows, self.pads)
        for k, tap, (_, stride, dilation), (before, _) in parts:
            place = i[k] + before - tap * dilation
            at[k] = place // stride
            hits += [b.eq(place % stride, 0), b.inside(at[k], out_grad.shape[k])]
        return b.all_of(*hits), tuple(at)


@op(
    "nn.max_pool2d_grad",
    level=2,
    attrs_key="MaxPool2D",
    defaults={"pool_size": (1, 1)},
    parameters="out_grad data pool_size strides padding layout out_layout ceil_mode",
)
class max_pool2d_grad(PoolGrad):
    """Each gradient goes to the (first) largest element of its window; that of a window in the padding to none."""

    pool_size: Ints
    strides: Ints = (1, 1)
    dilation: Ints = (1, 1)
    padding: Ints = (0, 0)
    layout: str = "NCHW"
    out_layout: str = ""
    ceil_mode: bool = False
    source = "ONNX MaxPool"
    pattern = OpPattern.OPAQUE

    def reference(self, out_grad: np.ndarray, data: np.ndarray) -> np.ndarray:
        seen = np.stack(list(self.taps(data, border(data.dtype.name))))
        places = np.stack(list(self.taps(np.arange(data.size).reshape(data.shape), data.size)))
        winners = np.take_along_axis(places, seen.argmax(axis=0)[None], 0)[0]
        out = np.zeros(data.size + 1, wide(data.dtype))
        np.add.at(out, winners.reshape(-1), out_grad.reshape(-1))
        return out[:-1].reshape(data.shape).astype(data.dtype)

    def procedure(self, p: Procedure, out: Tensor, out_grad: Tensor, data: Tensor) -> None:
        """A row of windows side by side: the largest element of each so far, and at which tap it is."""
        b, first = p.b, min(positions(self.layout, self.spatial))
        (*rows, last), sizes = out_grad.shape[first:], [size for size, _, _ in self.windows]
        with p.parallel(math.prod(out.shape[:first])) as plane:
            image = unravel(b, plane, out.shape[:first])
            totals = p.scratch(math.prod(out.shape[first:]), compute_dtype(out.dtype))
            best, winner = p.scratch(last, totals.dtype), p.scratch(last, "int32")
            with p.loop(totals.shape[0], kind="vectorized") as k:
                p.store(totals, k, 0)
            with p.loops(rows) as row:
                with p.loop(last, kind="vectorized") as x:
                    p.store(best, x, b.lowest(best.dtype))
                    p.store(winner, x, 0)
                with p.loops(sizes) as taps, p.loop(last, kind="vectorized") as x:
                    seen = p.let(b.cast(self.element(b, (*image, *row, x), taps, data), best.dtype))
                    more = seen > best(x)
                    if is_float(best.dtype):
                        more = b.lor(more, b.land(b.isnan(seen), b.lnot(b.isnan(best(x)))))
                    more = p.let(more)
                    p.store(winner, x, b.select(more, b.cast(ravel(taps, sizes), "int32"), winner(x)))
                    p.store(best, x, b.select(more, seen, best(x)))
                with p.loop(last) as x:
                    window = (*image, *row, x)
                    inside, index = self.read(b, window, data, unravel(b, p.let(b.index(winner(x))), sizes))
                    with p.when(inside):
                        at = p.let(ravel(index[first:], out.shape[first:]))
                        p.store(totals, at, totals(at) + b.cast(out_grad(*window), totals.dtype))
            with p.loops(out.shape[first:-1]) as row, p.loop(out.shape[-1], kind="vectorized") as x:
                at = ravel((*row, x), out.shape[first:])
                p.store(out, (*image, *row, x), b.cast(totals(at), out.dtype))

    def element(self, b: ElementBuilder, window: Index, taps: Sequence[Element], data: Readable) -> Element:
        """What a window sees at a tap."""
        inside, index = self.read(b, window, data, taps)
        return b.guard(inside, lambda: data(*index), b.const(border(data.dtype), data.dtype))

    @classmethod
    def samples(cls) -> list[Sample]:
        pool = {"pool_size": (2, 2), "strides": (2, 2)}
        return [
            sample((1, 2, 3, 2), (1, 2, 6, 4), **pool),
            sample((1, 2, 3, 2), (1, 2, 5, 4), pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 0)),
            sample(TensorType((1, 2, 3, 2), "int32"), TensorType((1, 2, 6, 4), "int32"), low=-50, high=50, **pool),
            sample((1, 1, 6, 6), (1, 1, 4, 4), pool_size=(1, 1), padding=(1, 1)),
        ]


@op(
    "nn.avg_pool2d_grad",
    level=2,
    attrs_key="AvgPool2D",
    defaults={"pool_size": (1, 1)},
    parameters="out_grad data pool_size strides padding layout out_layout ceil_mode count_include_pad",
)
class avg_pool2d_grad(PoolGrad, AvgPool):
    """Each gradient is spread evenly over the elements of its window; with `count_include_pad` each gets its share of
    the whole window, also of one that `ceil_mode` lets reach beyond the padding.
    """

    pool_size: Ints
    strides: Ints = (1, 1)
    dilation: Ints = (1, 1)
    padding: Ints = (0, 0)
    layout: str = "NCHW"
    out_layout: str = ""
    ceil_mode: bool = False
    count_include_pad: bool = False

    def reference(self, out_grad: np.ndarray, data: np.ndarray) -> np.ndarray:
        places = list(self.taps(np.arange(1, data.size + 1).reshape(data.shape), 0))
        counts: Any = sum(p > 0 for p in places)
        if self.count_include_pad:
            counts = len(places)
        out = np.zeros(data.size + 1, wide(data.dtype))
        shares = divided(out_grad, np.maximum(counts, 1), out.dtype.name).reshape(-1)
        for p in places:
            np.add.at(out, p.reshape(-1), shares)
        return out[1:].reshape(data.shape).astype(data.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, out_grad: Readable, data: Readable) -> Element:
        def term(*taps: Element) -> Element:
            covered, window = self.covering(b, i, taps, out_grad)
            whole = math.prod(size for size, _, _ in self.windows)
            count = lambda: whole if self.count_include_pad else self._count(b, window, data)
            read = lambda: quotient(b, out_grad(*window), count(), out.dtype)
            return b.guard(covered, read, b.const(0, out.dtype))

        return b.sum([size for size, _, _ in self.windows], term)

    @classmethod
    def samples(cls) -> list[Sample]:
        window = {"pool_size": (3, 2), "strides": (2, 1), "padding": (1, 0, 1, 1)}
        return [
            sample((1, 2, 3, 2), (1, 2, 6, 4), pool_size=(2, 2), strides=(2, 2)),
            sample(TensorType((1, 1, 3, 4), "int32"), TensorType((1, 1, 5, 4), "int32"), low=-50, high=50, **window),
            sample((1, 1, 3, 4), (1, 1, 5, 4), **window),
            sample((1, 1, 3, 4), (1, 1, 5, 4), count_include_pad=True, **window),
        ]
