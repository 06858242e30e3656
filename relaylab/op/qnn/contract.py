"""The quantized dialect's products: qnn.dense, qnn.batch_matmul, qnn.conv2d, qnn.conv2d_transpose.

Each is the ordinary operator on integers less their zero points, summed in int32; the scales are for who reads the
result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from relaylab.ir.expr import Expr, ExprWithOp
from relaylab.ir.types import Type
from relaylab.op import rules
from relaylab.op.base import Dtype, Input, Sample, TensorType, arg, attr, call_operator, sample
from relaylab.op.builder import OperatorBuilder
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.nn.conv import conv2d as plain_conv2d
from relaylab.op.nn.conv_transpose import conv2d_transpose as plain_conv2d_transpose
from relaylab.op.nn.dense import batch_matmul as plain_batch_matmul
from relaylab.op.nn.dense import dense as plain_dense
from relaylab.op.qnn import products
from relaylab.op.qnn.arithmetic import along, along_expr
from relaylab.op.qnn.scale import Quantized, check_parameters, quantized_op, scale_of, zero_of

PRODUCT = ("data", "weight", "input_zero_point", "kernel_zero_point", "input_scale", "kernel_scale")
CONV = (
    "data kernel input_zero_point kernel_zero_point input_scale kernel_scale kernel_size channels strides padding "
    "dilation groups data_layout kernel_layout out_layout out_dtype"
)

CHANNELS = "() or (1,), or one number per output channel or unit"
UNUSED = "; the sums do not depend on it"


def of_integers(plain: OperatorBuilder[Any], name: str) -> Input:
    """The description of an input of the ordinary operator, for integers."""
    return replace(plain.definition.described[name], dtype="integers")


class Shifted:
    """A readable tensor less a zero point, as int32."""

    dtype = "int32"

    def __init__(self, b: ElementBuilder, tensor: Readable, zero: Callable[[tuple], Any]):
        self.b, self.tensor, self.zero, self.shape = b, tensor, zero, tensor.shape

    def __call__(self, *index: Any) -> Any:
        return self.b.cast(self.tensor(*index), "int32") - self.b.cast(self.zero(index), "int32")


class QuantizedProduct(Quantized):
    """A sum of products of two quantized tensors; stands before the ordinary operator among the bases."""

    inputs = PRODUCT
    input_zero_point: Input = zero_of("data", "()")
    kernel_zero_point: Input = zero_of("the weight", CHANNELS)
    input_scale: Input = scale_of("data", "() or (1,)", UNUSED)
    kernel_scale: Input = scale_of("the weight", CHANNELS, UNUSED)
    out_dtype: Dtype = attr(None, "the data type of sums and result, which must be int32")

    def kernel_axis(self) -> int:
        """Along which axis of the weight its zero points lie."""
        return 0

    def relation(self, s: TypeSolver, data: Type, weight: Type, *parameters: Type) -> Type | None:
        if (zero := rules.tensor(s, parameters[0], self.inputs[2])) is not None:
            rules.scalar(s, zero, self.inputs[2])
        for t, name in ((data, self.inputs[0]), (weight, self.inputs[1])):
            if (found := rules.tensor(s, t, name)) is not None:
                rules.integers(s, found, name)
        if self.out_dtype != "int32":
            s.fail(f"the result of {self.op_name} is int32, not {self.out_dtype}", help='give out_dtype="int32"')
        found = super().relation(s, data, weight)
        check_parameters(s, weight, self.kernel_axis(), **dict(zip(self.inputs[2:], parameters)))
        return found

    def reference(
        self, data: np.ndarray, weight: np.ndarray, zero: np.ndarray, kernel_zero: np.ndarray, *scales: np.ndarray
    ) -> Any:
        x = data.astype("int32") - zero.reshape(())
        w = weight.astype("int32") - along(kernel_zero, self.kernel_axis(), weight.ndim)
        return super().reference(x.astype("int32"), w.astype("int32"))

    def lower(
        self,
        b: ElementBuilder,
        out: OutSpec,
        i: Index,
        data: Readable,
        weight: Readable,
        zero: Readable,
        kernel_zero: Readable,
        *scales: Readable,
    ) -> Element:
        axis = self.kernel_axis()
        one = lambda z, index: z(*[index[axis]] * len(z.shape)) if z.shape != (1,) else z(0)
        x = Shifted(b, data, lambda index: zero(*[0] * len(zero.shape)))
        return super().lower(b, out, i, x, Shifted(b, weight, lambda index: one(kernel_zero, index)))

    def canonicalize(self, inputs: list[ExprWithOp], types: list[TensorType]) -> Expr | None:
        rank = len(types[1].shape)
        x = inputs[0].astype("int32") - inputs[2]
        w = inputs[1].astype("int32") - along_expr(inputs[3], self.kernel_axis(), rank, types[3].shape)
        return call_operator(self.op_name.replace("qnn.", "nn."), x, w, **{**dict(self.items()), "out_dtype": "int32"})


ZEROS = (np.int32(3), np.int32(-2), np.float32(0.1), np.float32(0.2))
LOW = {"low": -128, "high": 127}


def int8(*shape: int) -> TensorType:
    """An int8 tensor type."""
    return TensorType(shape, "int8")


@quantized_op("qnn.dense", attrs_key="Dense", defaults={"out_dtype": "int32"}, required="units")
class dense(QuantizedProduct, plain_dense.definition):
    """Fully connected layer of quantized numbers, as int32."""

    data: Input = of_integers(plain_dense, "data")
    weight: Input = of_integers(plain_dense, "weight")

    @classmethod
    def samples(cls) -> list[Sample]:
        zeros = np.array([1, 0, -4, 7], "int32")
        kind = {"units": 4, "out_dtype": "int32", **LOW}
        return [
            sample(int8(3, 5), int8(4, 5), *ZEROS, **kind),
            sample(int8(2, 5), int8(4, 5), np.int32(1), zeros, *ZEROS[2:], **kind),
        ]

    def legalize(self, inputs: list[ExprWithOp], types: list[TensorType]) -> Expr | None:
        return products.for_target(self, self.kernel_axis(), inputs, types)


@quantized_op("qnn.batch_matmul", attrs_key="BatchMatmul", defaults={"out_dtype": "int32", "transpose_b": True})
class batch_matmul(QuantizedProduct, plain_batch_matmul.definition):
    """Products of batches of quantized matrices (the second transposed), as int32."""

    x: Input = arg("the first factors", "(b, m, k)", "integers")
    y: Input = arg("the second factors", "(b, n, k)", "integers")
    x_zero_point: Input = zero_of("x", "()")
    y_zero_point: Input = zero_of("y", "() or (1,)")
    x_scale: Input = scale_of("x", "() or (1,)", UNUSED)
    y_scale: Input = scale_of("y", "() or (1,)", UNUSED)

    parameters = "x y x_zero_point y_zero_point x_scale y_scale out_dtype"

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample(int8(2, 3, 5), int8(2, 4, 5), *ZEROS, out_dtype="int32", transpose_b=True, **LOW)]


@quantized_op(
    "qnn.conv2d", attrs_key="Conv2D", defaults={"out_dtype": "int32"}, parameters=CONV, required="kernel_size channels"
)
class conv2d(QuantizedProduct, plain_conv2d.definition):
    """Convolution of quantized numbers, as int32; the padding stands for real zeros."""

    data: Input = of_integers(plain_conv2d, "data")
    weight: Input = of_integers(plain_conv2d, "weight")

    def kernel_axis(self) -> int:
        return self.layouts[1].position("O")

    def legalize(self, inputs: list[ExprWithOp], types: list[TensorType]) -> Expr | None:
        return products.for_target(self, self.kernel_axis(), inputs, types)

    @classmethod
    def samples(cls) -> list[Sample]:
        kind = {"out_dtype": "int32", "padding": (1, 1), **LOW}
        zeros = np.array([1, 0, -4], "int32")
        nhwc = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        return [
            sample(int8(1, 3, 5, 4), int8(2, 3, 3, 3), *ZEROS, **kind),
            sample(int8(1, 5, 4, 2), int8(3, 3, 2, 3), np.int32(2), zeros, *ZEROS[2:], **nhwc, **kind),
        ]


@quantized_op(
    "qnn.conv2d_transpose", attrs_key="Conv2DTranspose", defaults={"out_dtype": "int32", "kernel_layout": "IOHW"}
)
class conv2d_transpose(QuantizedProduct, plain_conv2d_transpose.definition):
    """Transposed convolution of quantized numbers, as int32."""

    data: Input = of_integers(plain_conv2d_transpose, "data")
    weight: Input = of_integers(plain_conv2d_transpose, "weight")

    parameters = (
        "data weight input_zero_point kernel_zero_point input_scale kernel_scale strides padding dilation groups "
        "channels kernel_size data_layout kernel_layout out_layout output_padding out_dtype"
    )

    def kernel_axis(self) -> int:
        return self.layouts[1].position("O")

    @classmethod
    def samples(cls) -> list[Sample]:
        kind = {"out_dtype": "int32", "kernel_layout": "IOHW", "strides": (2, 2), **LOW}
        return [sample(int8(1, 3, 3, 4), int8(3, 2, 3, 3), *ZEROS, **kind)]
