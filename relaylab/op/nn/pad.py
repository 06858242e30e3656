"""Padding: nn.pad, nn.mirror_pad, nn.dilate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from relaylab.ir.dims import AnyDim, Dim, dim, larger
from relaylab.ir.expr import Expr
from relaylab.ir.leaves import const
from relaylab.ir.types import TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Injective, Input, Ints, Pairs, Sample, arg, attr, call_operator, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import as_shape_expr, ints, is_dynamic
from relaylab.op.shapes import derive
from relaylab.op.tensor.casts import as_dtype

NUMPY_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect"}


class Padded(Injective):
    """A tensor with elements put before and after it along each axis."""

    data: Input = arg("what is padded")
    pad_width: Pairs = attr(doc="(before, after) of each axis: how many elements are added")
    yields = "along each axis k extent = data.shape[k] + before + after; dtype of data"

    def grown(self, s: TypeSolver, data: TensorType) -> TensorType:
        """The type after padding."""
        if len(self.pad_width) != len(data.shape) or any(len(p) != 2 for p in self.pad_width):
            s.fail(
                f"`pad_width` needs one (before, after) for each dimension of {type_text(data)}, not {self.pad_width}"
            )
        if any(isinstance(d, int) and d + sum(p) < 0 for d, p in zip(data.shape, self.pad_width)):
            s.fail(f"`pad_width` {self.pad_width} cuts more from {type_text(data)} than there is")
        shape = [derive(lambda n, low, high: n + low + high, d, *p) for d, p in zip(data.shape, self.pad_width)]
        return TensorType(shape, data.dtype)

    def repeatable(self, s: TypeSolver, data: TensorType) -> TensorType:
        """`data`, of which every axis that its own elements extend must have some, and none can be cut."""
        if any(k < 0 for p in self.pad_width for k in p):
            s.fail(f"only a constant border can be cut: `pad_width` is {self.pad_width}")
        if any(d == 0 and any(p) for d, p in zip(data.shape, self.pad_width)):
            s.fail(f"{self.op_name} has nothing to repeat along an axis of {type_text(data)}")
        return data

    def repeated(
        self, b: ElementBuilder, i: Index, data: Readable, place: Callable[[Element, int], Element]
    ) -> Element:
        """The element at `i` of data with a border of its own elements: `place` says which, along an axis."""
        at = [k - low for k, (low, _) in zip(i, self.pad_width)]
        own = [place(k, n) if any(p) else k for k, n, p in zip(at, data.shape, self.pad_width)]
        if not i or not any(self.pad_width[-1]):
            return data(*own)
        # what lies inside along the last axis is copied in a loop of its own
        return b.guard(b.inside(at[-1], data.shape[-1]), lambda: data(*own[:-1], at[-1]), data(*own))


@op("nn.pad", level=2, attrs_key="Pad")
class pad(Padded):
    """`data` with pad_width[k] = (before, after) elements added along axis k: a constant, the edge, or a reflection.
    Negative widths cut (constant mode only).
    """

    data: Input = arg("what is padded")
    pad_val: Input = arg("the value of a constant border, cast to the dtype of data", "() or (1,)")
    pad_width: Pairs = attr(doc="(before, after) of each axis: how many elements are added, or cut if negative")
    pad_mode: str = attr("constant", "what the border holds: constant, edge (the nearest element) or reflect")
    extra = {"pad_value": "a number or an expression of one: the value of a constant border, cast to the dtype of data"}
    source = "numpy.pad; ONNX Pad"

    def relation(self, s: TypeSolver, data: Type, pad_value: Type) -> Type | None:
        found, value = rules.tensor(s, data), rules.tensor(s, pad_value, "pad_value")
        if self.pad_mode not in NUMPY_MODES:
            s.fail(f'pad_mode must be one of {", ".join(NUMPY_MODES)}, not "{self.pad_mode}"')
        if value is not None:
            rules.scalar(s, value, "pad_value")
        if found is not None and self.pad_mode != "constant":
            self.repeatable(s, found)
        return found and self.grown(s, found)

    def reference(self, data: np.ndarray, pad_value: np.ndarray) -> np.ndarray:
        if self.pad_mode != "constant":
            return np.pad(data, self.pad_width, mode=cast(Any, self.pad_mode))
        value = as_dtype(pad_value, data.dtype.name).reshape(())
        out = np.full([n + sum(p) for n, p in zip(data.shape, self.pad_width)], value, data.dtype)
        here, there = [], []
        for n, m, (low, _) in zip(data.shape, out.shape, self.pad_width):
            first = max(low, 0)
            end = max(min(n + low, m), first)
            here.append(slice(first, end)), there.append(slice(first - low, end - low))
        out[tuple(here)] = data[tuple(there)]
        return out

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, pad_value: Readable) -> Element:
        at = [k - low for k, (low, _) in zip(i, self.pad_width)]
        if self.pad_mode != "constant":
            return self.repeated(b, i, data, b.clamp_index if self.pad_mode == "edge" else partial(reflect, b))
        value = b.cast(pad_value(*[0] * len(pad_value.shape)), out.dtype)
        inside = b.all_of(*(b.inside(k, n) for k, n, p in zip(at, data.shape, self.pad_width) if any(p)))
        return b.guard(inside, lambda: data(*at), value)

    @classmethod
    def build(cls, data: Expr, pad_width: object, pad_value: object = 0, pad_mode: str = "constant") -> Expr:
        value = pad_value if isinstance(pad_value, Expr) else const(pad_value)
        if is_dynamic(pad_width):
            return call_operator("dyn.nn.pad", data, as_shape_expr(pad_width), value, pad_width=(), pad_mode=pad_mode)
        return cls.call(data, value, pad_width=ints(pad_width), pad_mode=pad_mode)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 3), (), pad_width=((1, 2), (0, 1))),
            sample((4, 5), (), pad_width=((-1, 1), (2, -2))),
            sample((1, 2), (), pad_width=((-1, 2), (3, -4))),
            sample((4, 5), (), pad_width=((1, 2), (0, 3)), pad_mode="edge"),
            sample((4, 5), (), pad_width=((1, 3), (4, 0)), pad_mode="reflect"),
            sample(TensorType((2, 2), "int8"), (), pad_width=((0, 0), (1, 1)), low=-3, high=5),
        ]


def reflect(b: ElementBuilder, k: Element, extent: int, repeat_edge: int = 0) -> Element:
    """Index `k` mirrored at both ends of an axis; `repeat_edge` 1 repeats the edge elements (numpy's "symmetric")."""
    period = 2 * extent - (0 if repeat_edge else 2)
    period = max(period, 1) if isinstance(period, int) else b.max(period, 1)
    inside = b.floormod(k, period)
    return b.select(inside < extent, inside, (period - repeat_edge) - inside)


@op("nn.mirror_pad", level=2, attrs_key="MirrorPad", parameters="data pad_width mode")
class mirror_pad(Padded):
    """`data` with its mirror image added at the ends of each axis: with the edge repeated (SYMMETRIC) or not
    (REFLECT).
    """

    mode: str = attr("SYMMETRIC", "whether the mirror repeats the edge (SYMMETRIC) or not (REFLECT)")
    pad_width: Pairs
    source = "tf.pad with mode SYMMETRIC or REFLECT; numpy.pad"

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        if self.mode not in ("SYMMETRIC", "REFLECT"):
            s.fail(f'mode must be SYMMETRIC or REFLECT, not "{self.mode}"')
        return found and self.grown(s, self.repeatable(s, found))

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.pad(data, self.pad_width, mode=cast(Any, self.mode.lower()))

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        return self.repeated(b, i, data, partial(reflect, b, repeat_edge=1 if self.mode == "SYMMETRIC" else 0))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((4, 3), pad_width=((2, 3), (1, 0)), mode=m) for m in ("SYMMETRIC", "REFLECT")]


def spaced(n: Dim, step: int) -> Dim:
    """How far elements reach that are a step apart."""
    last = derive(lambda n: (n - 1) * step + 1, n) if isinstance(n, AnyDim) else (int(n) - 1) * step + 1
    return dim(larger(last, 0))


@op("nn.dilate", level=10, attrs_key="Dilate", meta_attrs=True, required="strides")
class dilate(Injective):
    """`data` with strides[k] - 1 elements of `dilation_value` put between neighbours along axis k."""

    x: Input = arg("what is spread out")
    strides: Ints = attr((1, 1), "the distance of neighbours in the result, along each axis")
    dilation_value: float = attr(0.0, "what is put between neighbours, in the dtype of data")
    yields = "along each axis k extent = (data.shape[k] - 1) * strides[k] + 1; dtype of data"
    source = "Dumoulin and Visin, A guide to convolution arithmetic for deep learning, 2016"
    parameters = "data strides dilation_value"

    def relation(self, s: TypeSolver, of: Type) -> Type | None:
        data = rules.tensor(s, of)
        if data is None:
            return None
        if len(self.strides) != len(data.shape) or any(n < 1 for n in self.strides):
            s.fail(f"`strides` must have a positive number for each dimension of {type_text(data)}, not {self.strides}")
        rules.held(s, self.dilation_value, data.dtype, "dilation_value")
        return TensorType([spaced(n, st) for n, st in zip(data.shape, self.strides)], data.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        shape = [max((n - 1) * st + 1, 0) for n, st in zip(data.shape, self.strides)]
        out = np.full(shape, self.dilation_value, data.dtype)
        out[tuple(slice(None, None, st) for st in self.strides)] = data
        return out

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        hits = [b.eq(k % st, 0) for k, st in zip(i, self.strides) if st > 1]
        read = lambda: data(*(k // st for k, st in zip(i, self.strides)))
        return b.guard(b.all_of(*hits), read, b.const(self.dilation_value, out.dtype))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), strides=(2, 3)), sample((2, 3, 2), strides=(1, 2, 1), dilation_value=1.5)]
