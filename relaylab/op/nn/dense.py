"""Matrix products: dense, matmul, batch_matmul, packed dense; and bias_add. Choices: docs/choices.md, Kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from relaylab.ir.expr import Call, Constant, Expr
from relaylab.ir.op import facets, is_call_to
from relaylab.ir.types import AnyDim, Dim, IntImm, TensorType, Type, type_text
from relaylab.loop.scalar import NARROW
from relaylab.op import rules
from relaylab.op.base import (
    Broadcast,
    Dtype,
    Input,
    OutElementwiseFusable,
    Sample,
    arg,
    attr,
    call_operator,
    op,
    sample,
)
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import length
from relaylab.op.layout import parse_layout, transform
from relaylab.op.products import dims, elements, exact, in_float32, stored
from relaylab.op.shapes import broadcast_dims, extent, same_dim

FEW_ROWS = 4
NARROW_ROWS = 8  # that wait for constants, which are then read as narrow as they are given; of inputs `FEW_ROWS`
LARGE = 1 << 16  # elements of such a side


class Product(OutElementwiseFusable):
    """A product of matrices whose sums run over one axis; `out_dtype` is that of `data` unless given."""

    out_dtype: Dtype = attr(None, "the data type of sums and result; None or empty: that of the first input")

    def dtype(self, s: TypeSolver, data: TensorType, weight: TensorType) -> str:
        """The data type of the result."""
        return rules.summed(s, self.out_dtype or data.dtype, data, weight)

    def legal(self, inputs: Sequence[Expr], types: Sequence[TensorType]) -> Expr | None:
        return in_float32(self, inputs, types)


class MatrixProduct(Product):
    """The product of a tensor with a matrix, which gets its type from `units` if it has none."""

    units: int | None = attr(doc="the length of the result's last axis, which types an untyped second factor")
    out_dtype: Dtype = None
    transpose_a: ClassVar[bool] = False
    transpose_b: ClassVar[bool] = False
    defaults = {"units": None, "out_dtype": ""}

    def relation(self, s: TypeSolver, a: Type, c: Type) -> Type | None:
        data = rules.tensor(s, a, self.inputs[0])
        if data is None:
            return None
        if not data.shape or (self.transpose_a and len(data.shape) < 2):
            s.fail(f"`{self.inputs[0]}` of {self.op_name} has too few dimensions: {type_text(data)}")
        inner = data.shape[-2 if self.transpose_a else -1]
        weight = self._weight(s, inner, data, c)
        if weight is None:
            return None
        if not same_dim(inner, weight.shape[1 if self.transpose_b else 0]):
            s.fail(f"the inner dimensions of {type_text(data)} and {type_text(weight)} do not match")
        units = weight.shape[0 if self.transpose_b else 1]
        rows = (*data.shape[:-2], data.shape[-1]) if self.transpose_a else data.shape[:-1]
        return TensorType((*rows, units), self.dtype(s, data, weight))

    def _weight(self, s: TypeSolver, inner: Dim, data: TensorType, given: Type) -> TensorType | None:
        """The type of the second matrix, made from `units` where it has none."""
        known = rules.tensor(s, given, self.inputs[1])
        if known is not None:
            rules.rank(s, known, 2, self.inputs[1])
            if self.units is not None and not same_dim(IntImm(self.units), known.shape[0 if self.transpose_b else 1]):
                s.fail(f"{self.op_name} has units={self.units}, but its weight is {type_text(known)}")
        elif self.units is not None:
            shape = (self.units, inner) if self.transpose_b else (inner, self.units)
            return rules.tensor(s, s.unify(given, TensorType(shape, data.dtype)))
        return known

    def legal(self, inputs: Sequence[Expr], types: Sequence[TensorType]) -> Expr | None:
        out = types[-1]
        rows = 0 if out.is_dynamic else math.prod(out.concrete_shape[:-1])
        most = NARROW_ROWS if isinstance(inputs[1], Constant) else FEW_ROWS
        return in_float32(self, inputs, types, keep=_waited_for(types[1]) if 0 < rows <= most else ())

    def reference(self, a: np.ndarray, c: np.ndarray) -> np.ndarray:
        out = self.out_dtype or a.dtype.name
        a, c = exact(out, a, c)
        return stored((a.swapaxes(-1, -2) if self.transpose_a else a) @ (c.T if self.transpose_b else c), out)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, a: Readable, c: Readable) -> Element:
        *lead, n = i
        inner = length(a.shape[-2 if self.transpose_a else -1])

        def product(k: Element) -> Element:
            x = a(*lead[:-1], k, lead[-1]) if self.transpose_a else a(*lead, k)
            y = c(n, k) if self.transpose_b else c(k, n)
            return b.cast(x, out.dtype) * b.cast(y, out.dtype)

        return b.sum(inner, product)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        inner = dims(types[0])[-2 if self.transpose_a else -1]
        return elements(out) * int(inner) if isinstance(inner, int) else 0


def _waited_for(right: TensorType) -> Sequence[int]:
    """The number of the right side of a product of few rows, if it is so large that they wait for it."""
    return (1,) if not right.is_dynamic and math.prod(right.concrete_shape) >= LARGE else ()


def _before_widening(x: Expr) -> Expr:
    """What was floats of 16 bits before it became `x`, of another shape maybe; itself if it was none."""
    at = x
    while isinstance(at, Call) and is_call_to(at, "reshape"):
        at = at.args[0]
    if not isinstance(at, Call) or not is_call_to(at, "cast") or facets(at).dtype != "float32":
        return x
    source = at.args[0].inferred
    return at.args[0] if isinstance(source, TensorType) and source.dtype in NARROW else x


@op("nn.matmul", level=1, attrs_key="Matmul")
class matmul(MatrixProduct):
    """Matrix product of `(..., m, k)` and `(k, n)`; either may be transposed. `units` (n) gives an untyped weight
    its type.
    """

    tensor_a: Input = arg("the first factor", "(..., m, k), or (..., k, m) if `transpose_a`", "any but bool")
    tensor_b: Input = arg("the second factor", "(k, n), or (n, k) if `transpose_b`", "any but bool")
    transpose_a: bool = attr(False, "whether the first factor is given transposed")
    transpose_b: bool = attr(False, "whether the second factor is given transposed")
    yields = "(..., m, n), of `out_dtype`"
    source = "BLAS GEMM; numpy.matmul"

    @classmethod
    def samples(cls) -> list[Sample]:
        small = TensorType((3, 5), "int8"), TensorType((5, 2), "int8")
        return [
            sample((3, 5), (5, 4), units=None),
            sample((3, 5), (4, 5), units=4, transpose_b=True),
            sample((2, 5, 3), (5, 4), units=None, transpose_a=True),
            sample(*small, units=2, out_dtype="int32", low=-128, high=127),
        ]


@op("nn.dense", level=1, attrs_key="Dense")
class dense(MatrixProduct):
    """Fully connected layer: data `(..., k)` times the transpose of weight `(units, k)`."""

    data: Input = arg("what the layer is applied to", "(..., k)", "any but bool")
    weight: Input = arg("one row per unit; typed by `units` if untyped", "(units, k)", "any but bool")
    yields = "(..., units), of `out_dtype`"
    source = "ONNX Gemm with transB = 1"
    transpose_b = True

    @classmethod
    def samples(cls) -> list[Sample]:
        small = TensorType((3, 7), "uint8"), TensorType((2, 7), "int8")
        return [
            sample((3, 5), (4, 5), units=4),
            sample((2, 3, 5), (1, 5), units=None),
            sample((5,), (4, 5), units=4),
            sample(*small, units=2, out_dtype="int32", low=-128, high=255),
            sample(TensorType((2, 3), "float16"), TensorType((4, 3), "float16"), units=4),
            sample(TensorType((2, 3), "bfloat16"), TensorType((4, 3), "bfloat16"), units=4),
        ]


@op("nn.contrib_dense_pack", level=10, attrs_key="DensePack")
class contrib_dense_pack(Product):
    """nn.dense with the weight in blocks of units: layout `NC16n` is `(units / 16, k, 16)`."""

    parameters = "data weight weight_layout units out_dtype"
    defaults = {"units": None, "out_dtype": ""}

    data: Input = arg("what the layer is applied to", "(m, k)", "any but bool")
    weight: Input = arg("the weight in blocks of units", "(units / block, k, block)", "any but bool")
    units: int | None = attr(doc="the number of units; for reading, since the weight has it")
    out_dtype: Dtype = None
    weight_layout: str = attr("NC", "the axes of weight: N for units and C for k, as in NC16n")
    yields = "(m, units), of `out_dtype`"
    source = "the packed form of nn.dense"

    def result_type(self, s: TypeSolver, data: TensorType, weight: TensorType) -> Type | None:
        rules.rank(s, data, 2)
        whole = rules.layout(s, self._layout(weight), "NC", weight, "weight").whole(weight.shape)
        rules.equal_dims(
            s, data.shape[1], whole["C"], f"the inner dimensions of {type_text(data)} and {type_text(weight)}"
        )
        return TensorType((data.shape[0], whole["N"]), self.dtype(s, data, weight))

    def _layout(self, weight: Any) -> str:
        """The layout of the weight; a weight of rank 3 in the plain layout is blocked by its last dimension."""
        return f"NC{weight.shape[2]}n" if self.weight_layout == "NC" and len(weight.shape) == 3 else self.weight_layout

    def reference(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        out = self.out_dtype or data.dtype.name
        plain = transform(weight, parse_layout(self._layout(weight)), parse_layout("NC"))
        x, w = exact(out, data, plain)
        return stored(x @ w.T, out)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, weight: Readable) -> Element:
        layout = parse_layout(self._layout(weight))

        def product(k: Element) -> Element:
            return b.cast(data(i[0], k), out.dtype) * b.cast(weight(*layout.index({"N": i[1], "C": k})), out.dtype)

        return b.sum(data.shape[1], product)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        return elements(out) * elements(types[0]) // max(extent(dims(types[0])[0]), 1)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 5), (2, 5, 4), units=8, weight_layout="NC4n"), sample((2, 3), (3, 3, 2), units=None)]


def _before_turns(x: Expr) -> tuple[Expr, bool, float]:
    """What matrices were before they were scaled and moved as wholes; whether rows are columns now, and the scale."""
    turned, scale = False, 1.0
    while isinstance(x, Call) and isinstance(x.inferred, TensorType):
        rank = len(x.inferred.shape)
        if is_call_to(x, "transpose"):
            axes = [a % rank for a in facets(x).axes or range(rank - 1, -1, -1)]
            if axes != [*range(rank - 2), rank - 1, rank - 2]:
                break
            turned, x = not turned, x.args[0]
        elif is_call_to(x, "reshape") and dims(x.args[0].inferred)[-2:] == dims(x.inferred)[-2:]:
            x = x.args[0]
        elif is_call_to(x, "multiply") and isinstance(x.args[1], Constant) and x.args[1].data.size == 1:
            scale, x = scale * float(x.args[1].data.reshape(())), x.args[0]
        else:
            break
    return x, turned, scale


@op("nn.batch_matmul", level=10, attrs_key="BatchMatmul")
class batch_matmul(Product):
    """Matrix products of two batches of matrices; a batch of 1 goes with any. Either side may be transposed."""

    defaults = {"transpose_b": True, "out_dtype": ""}

    tensor_a: Input = arg("the first factors", "(b, m, k), or (b, k, m) if `transpose_a`", "any but bool")
    tensor_b: Input = arg("the second factors", "(b, k, n), or (b, n, k) if `transpose_b`", "any but bool")
    out_dtype: Dtype = None
    transpose_a: bool = attr(False, "whether the first factors are given transposed")
    transpose_b: bool = attr(False, "whether the second factors are given transposed")
    yields = "(b, m, n), of `out_dtype`; a batch of 1 goes with any b"
    source = "BLAS batched GEMM; torch.bmm"

    def result_type(self, s: TypeSolver, a: TensorType, c: TensorType) -> Type | None:
        rules.rank(s, a, 3, "tensor_a"), rules.rank(s, c, 3, "tensor_b")
        m, k = (a.shape[2], a.shape[1]) if self.transpose_a else (a.shape[1], a.shape[2])
        n, k2 = (c.shape[1], c.shape[2]) if self.transpose_b else (c.shape[2], c.shape[1])
        dynamic = a.is_dynamic or c.is_dynamic
        batch: Dim | None = broadcast_dims(a.shape[0], c.shape[0])
        if a.shape[0] != c.shape[0] and AnyDim in (type(a.shape[0]), type(c.shape[0])):
            batch = AnyDim()
        if not dynamic and (batch is None or k != k2):
            s.fail(f"{type_text(a)} and {type_text(c)} cannot be multiplied", help=self._reading())
        return TensorType((AnyDim() if batch is None else batch, m, n), self.dtype(s, a, c))

    def legal(self, inputs: Sequence[Expr], types: Sequence[TensorType]) -> Expr | None:
        few = not types[0].is_dynamic and types[0].concrete_shape[2 if self.transpose_a else 1] <= FEW_ROWS
        found = in_float32(self, inputs, types, keep=_waited_for(types[1]) if few else ())
        if found is None:
            found = self._of_few_rows(inputs, types)
        return self._narrow(inputs, types) if found is None and few and _waited_for(types[1]) else found

    def _narrow(self, inputs: Sequence[Expr], types: Sequence[TensorType]) -> Expr | None:
        """Few rows by a large right side that was floats of 16 bits: those are read."""
        x = _before_widening(inputs[1])
        if types[-1].dtype != "float32" or x is inputs[1]:
            return None
        right = call_operator("reshape", x, newshape=types[1].concrete_shape)
        return call_operator(self.op_name, inputs[0], right, **{**dict(self.items()), "out_dtype": "float32"})

    def _of_few_rows(self, inputs: Sequence[Expr], types: Sequence[TensorType]) -> Expr | None:
        """Few rows by a right side that was turned, and maybe scaled: the rows are scaled, and it is read as it lies.

        So one query meets all keys that are kept (`scaled_dot_product_attention` of torch).
        """
        known = not (types[0].is_dynamic or types[1].is_dynamic or self.transpose_a)
        if not known or types[0].dtype not in ("float32", "float64") or types[0].concrete_shape[1] > FEW_ROWS:
            return None
        x, turned, scale = _before_turns(inputs[1])
        if not turned or not isinstance(x.inferred, TensorType):
            return None
        shape = (types[1].concrete_shape[0], *x.inferred.concrete_shape[-2:])
        x = _before_widening(x) if types[-1].dtype == "float32" and _waited_for(types[1]) else x
        right = call_operator("reshape", x, newshape=shape)
        by = Constant(np.array(scale, types[0].dtype))
        left = inputs[0] if scale == 1 else call_operator("multiply", inputs[0], by)
        record = {**dict(self.items()), "transpose_b": not self.transpose_b, "out_dtype": types[-1].dtype}
        return call_operator(self.op_name, left, right, **record)

    def _reading(self) -> str:
        a, c = "(b, k, m)" if self.transpose_a else "(b, m, k)", "(b, n, k)" if self.transpose_b else "(b, k, n)"
        return f"with transpose_a={self.transpose_a}, transpose_b={self.transpose_b} they are {a} and {c}"

    def reference(self, a: np.ndarray, c: np.ndarray) -> np.ndarray:
        out = self.out_dtype or a.dtype.name
        a, c = exact(out, a, c)
        return stored(
            (a.swapaxes(1, 2) if self.transpose_a else a) @ (c.swapaxes(1, 2) if self.transpose_b else c), out
        )

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, a: Readable, c: Readable) -> Element:
        batch, m, n = i
        at, ct = (0 if x.shape[0] == 1 else batch for x in (a, c))

        def product(k: Element) -> Element:
            x = a(at, k, m) if self.transpose_a else a(at, m, k)
            y = c(ct, n, k) if self.transpose_b else c(ct, k, n)
            return b.cast(x, out.dtype) * b.cast(y, out.dtype)

        return b.sum(length(a.shape[1 if self.transpose_a else 2]), product)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        inner = dims(types[0])[1 if self.transpose_a else 2]
        return elements(out) * int(inner) if isinstance(inner, int) else 0

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 3, 5), (2, 4, 5), transpose_b=True),
            sample((1, 3, 5), (3, 5, 2)),
            sample((2, 5, 3), (1, 4, 5), transpose_a=True, transpose_b=True),
            sample(TensorType((1, 2, 3), "int8"), TensorType((1, 3, 2), "int8"), out_dtype="int32"),
        ]


@op("nn.bias_add", level=1, attrs_key="BiasAdd")
class bias_add(Broadcast):
    """`data` plus one number per position of `axis`; an untyped bias gets its type from `data`."""

    data: Input = arg("what the bias is added to")
    bias: Input = arg(
        "one number per position of `axis`; typed by data if untyped", "(data.shape[axis],)", "that of data"
    )
    axis: int = attr(1, "the axis of data along which the bias lies; negative ones count from the end")
    yields = "shape and dtype of data"
    source = "ONNX Add of a bias with the axes that follow it inserted"

    def relation(self, s: TypeSolver, data: Type, bias: Type) -> Type | None:
        found = rules.tensor(s, data)
        if found is None:
            return None
        rank = len(found.shape)
        if not -rank <= self.axis < rank:
            s.fail(
                "The axis in bias_add must be in range for the shape; "
                f"attempted to access index {self.axis} of ({', '.join(map(str, found.shape))})"
            )
        s.unify(bias, TensorType((found.shape[self.axis],), found.dtype))
        return found

    def reference(self, data: np.ndarray, bias: np.ndarray) -> np.ndarray:
        return data + bias.reshape([-1 if d == self.axis % data.ndim else 1 for d in range(data.ndim)])

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, bias: Readable) -> Element:
        return data(*i) + bias(i[self.axis % len(i)])

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 3, 4, 5), (3,)),
            sample((2, 3), (3,), axis=-1),
            sample((2, 3, 4), (2,), axis=-3),
            sample(TensorType((2, 3), "int32"), TensorType((3,), "int32")),
        ]
