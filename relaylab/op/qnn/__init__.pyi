"""`relay.qnn.op`: the quantized dialect."""
# Made from the declarations by `python docs/generate.py reference`.
from collections.abc import Iterator, Sequence
from typing import Any

from relaylab.ir.expr import Call, Constant, Expr, TupleWrapper
from relaylab.ir.op import Op
from relaylab.op.accepted import Arg, Dims, Dtype, Floats, Ints, Pairs
from relaylab.op import qnn as _qnn
from relaylab.op.qnn.scale import RequantizeConfig

op = _qnn
def abs(x: Arg, scale: Arg, zero_point: Arg, output_scale: Arg, output_zero_point: Arg) -> Call:
    """Absolute value of quantized numbers.

    x: the quantized tensor; shape any; dtype integers
    scale: the real number that one step of x stands for; shape () or (1,), or one number per position of its axis; dtype float32
    zero_point: the integer that stands for 0 in x; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    Result: shape and dtype of x
    """
def add(lhs: Arg, rhs: Arg, lhs_scale: Arg, lhs_zero_point: Arg, rhs_scale: Arg, rhs_zero_point: Arg, output_scale: Arg, output_zero_point: Arg, lhs_axis: int = -1, rhs_axis: int = -1) -> Call:
    """Sum of quantized tensors, each requantized to the scale of the result (halves go up).

    lhs: the left operand; shape any; dtype integers
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    lhs_scale: the real number that one step of lhs stands for; shape () or (1,), or one number per position of its axis; dtype float32
    lhs_zero_point: the integer that stands for 0 in lhs; shape () or (1,), or one number per position of its axis; dtype int32
    rhs_scale: the real number that one step of rhs stands for; shape () or (1,), or one number per position of its axis; dtype float32
    rhs_zero_point: the integer that stands for 0 in rhs; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    lhs_axis: the axis of lhs along which its scales and zero points lie, if they are vectors
    rhs_axis: the axis of rhs along which its scales and zero points lie, if they are vectors
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def batch_matmul(x: Arg, y: Arg, x_zero_point: Arg, y_zero_point: Arg, x_scale: Arg, y_scale: Arg, out_dtype: Dtype = 'int32') -> Call:
    """Products of batches of quantized matrices (the second transposed), as int32.

    x: the first factors; shape (b, m, k); dtype integers
    y: the second factors; shape (b, n, k); dtype integers
    x_zero_point: the integer that stands for 0 in x; shape (); dtype int32
    y_zero_point: the integer that stands for 0 in y; shape () or (1,); dtype int32
    x_scale: the real number that one step of x stands for; the sums do not depend on it; shape () or (1,); dtype float32
    y_scale: the real number that one step of y stands for; the sums do not depend on it; shape () or (1,); dtype float32
    out_dtype: the data type of sums and result, which must be int32
    Result: (b, m, n), of `out_dtype`; a batch of 1 goes with any b
    """
def concatenate(data: Arg, input_scales: Arg, input_zero_points: Arg, output_scale: Arg, output_zero_point: Arg, axis: int) -> Call:
    """Quantized tensors, each with its scale and zero point, brought to one scale and joined along an axis.

    data: a tuple of quantized tensors; shape equal but along `axis`; dtype one integer type
    input_scales: a tuple with the scale of each tensor; shape () or (1,), or one number per position of the last axis; dtype float32
    input_zero_points: a tuple with the zero point of each tensor; shape () or (1,), or one number per position of the last axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,); dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,); dtype int32
    axis: the axis along which the tensors are joined; negative ones count from the end
    Result: the shape of the tensors with the sum of their extents along `axis`, their dtype
    """
def conv2d(data: Arg, kernel: Arg, input_zero_point: Arg, kernel_zero_point: Arg, input_scale: Arg, kernel_scale: Arg, kernel_size: Ints | None, channels: int | None, strides: Ints = (1, 1), padding: Ints = (0, 0), dilation: Ints = (1, 1), groups: int = 1, data_layout: str = 'NCHW', kernel_layout: str = 'OIHW', out_layout: str = '', out_dtype: Dtype = 'int32') -> Call:
    """Convolution of quantized numbers, as int32; the padding stands for real zeros.

    data: the batch of images, laid out as `data_layout`; shape (N, C, *extents); dtype integers
    kernel: the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped; shape (O, C / groups, *kernel), or (C, multiplier, *kernel) if groups = C; dtype integers
    input_zero_point: the integer that stands for 0 in data; shape (); dtype int32
    kernel_zero_point: the integer that stands for 0 in the weight; shape () or (1,), or one number per output channel or unit; dtype int32
    input_scale: the real number that one step of data stands for; the sums do not depend on it; shape () or (1,); dtype float32
    kernel_scale: the real number that one step of the weight stands for; the sums do not depend on it; shape () or (1,), or one number per output channel or unit; dtype float32
    kernel_size: the kernel's spatial extents; None: those of the weight
    channels: the number O of output channels; None: that of the weight
    strides: steps of the window along each spatial axis
    padding: zeros around each spatial axis: one number, one per axis, or befores then afters
    dilation: distance between the kernel's elements along each spatial axis
    groups: into how many groups the channels split, each with kernels of its own
    data_layout: the axes of data; channels may be in blocks, as in NCHW16c
    kernel_layout: the axes of weight, O for output and I for input channels
    out_layout: the axes of the result; empty: those of data
    out_dtype: the data type of sums and result, which must be int32
    Result: (N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = (extent + before + after - dilation * (kernel - 1) - 1) // stride + 1
    """
def conv2d_transpose(data: Arg, weight: Arg, input_zero_point: Arg, kernel_zero_point: Arg, input_scale: Arg, kernel_scale: Arg, strides: Ints = (1, 1), padding: Ints = (0, 0), dilation: Ints = (1, 1), groups: int = 1, channels: int | None = None, kernel_size: Ints | None = None, data_layout: str = 'NCHW', kernel_layout: str = 'IOHW', out_layout: str = '', output_padding: Ints = (0, 0), out_dtype: Dtype = 'int32') -> Call:
    """Transposed convolution of quantized numbers, as int32.

    data: the batch of images, laid out as `data_layout`; shape (N, C, *extents); dtype integers
    weight: the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped; shape (C, O / groups, *kernel); dtype integers
    input_zero_point: the integer that stands for 0 in data; shape (); dtype int32
    kernel_zero_point: the integer that stands for 0 in the weight; shape () or (1,), or one number per output channel or unit; dtype int32
    input_scale: the real number that one step of data stands for; the sums do not depend on it; shape () or (1,); dtype float32
    kernel_scale: the real number that one step of the weight stands for; the sums do not depend on it; shape () or (1,), or one number per output channel or unit; dtype float32
    strides: how far neighbours of data lie apart in the result, along each spatial axis
    padding: what is cut from the result: one number, one per axis, or befores then afters
    dilation: distance between the kernel's elements along each spatial axis
    groups: into how many groups the channels split, each with kernels of its own
    channels: the number O of output channels; None: that of the weight
    kernel_size: the kernel's spatial extents; None: those of the weight
    data_layout: the axes of data; channels may be in blocks, as in NCHW16c
    kernel_layout: the axes of weight; the builder's default names input channels first
    out_layout: the axes of the result; empty: those of data
    output_padding: elements added after the result along each spatial axis
    out_dtype: the data type of sums and result, which must be int32
    Result: (N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = stride * (extent - 1) + dilation * (kernel - 1) + 1 - before - after + output_padding
    """
def current_requantize_config() -> RequantizeConfig:
    """The configuration of the innermost block, or that without one: UPWARD, int64."""
def dense(data: Arg, weight: Arg, input_zero_point: Arg, kernel_zero_point: Arg, input_scale: Arg, kernel_scale: Arg, units: int | None, out_dtype: Dtype = 'int32') -> Call:
    """Fully connected layer of quantized numbers, as int32.

    data: what the layer is applied to; shape (..., k); dtype integers
    weight: one row per unit; typed by `units` if untyped; shape (units, k); dtype integers
    input_zero_point: the integer that stands for 0 in data; shape (); dtype int32
    kernel_zero_point: the integer that stands for 0 in the weight; shape () or (1,), or one number per output channel or unit; dtype int32
    input_scale: the real number that one step of data stands for; the sums do not depend on it; shape () or (1,); dtype float32
    kernel_scale: the real number that one step of the weight stands for; the sums do not depend on it; shape () or (1,), or one number per output channel or unit; dtype float32
    units: the length of the result's last axis, which types an untyped second factor
    out_dtype: the data type of sums and result, which must be int32
    Result: (..., units), of `out_dtype`
    """
def dequantize(data: Arg, input_scale: Arg, input_zero_point: Arg, axis: int = -1) -> Call:
    """(data - zero_point) * scale, as float32.

    data: the quantized tensor; shape any; dtype integers
    input_scale: the real number that one step of data stands for; shape () or (1,), or one number per position of its axis; dtype float32
    input_zero_point: the integer that stands for 0 in data; shape () or (1,), or one number per position of its axis; dtype int32
    axis: the axis of data along which scales and zero points lie, if they are vectors
    Result: the shape of data, float32
    """
def erf(x: Arg, scale: Arg, zero_point: Arg, output_scale: Arg, output_zero_point: Arg) -> Call:
    """Error function of quantized numbers.

    x: the quantized tensor; shape any; dtype integers
    scale: the real number that one step of x stands for; shape () or (1,), or one number per position of its axis; dtype float32
    zero_point: the integer that stands for 0 in x; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    Result: shape and dtype of x
    """
def exp(x: Arg, scale: Arg, zero_point: Arg, output_scale: Arg, output_zero_point: Arg) -> Call:
    """Exponential of quantized numbers.

    x: the quantized tensor; shape any; dtype integers
    scale: the real number that one step of x stands for; shape () or (1,), or one number per position of its axis; dtype float32
    zero_point: the integer that stands for 0 in x; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    Result: shape and dtype of x
    """
def hardswish(x: Arg, scale: Arg, zero_point: Arg, output_scale: Arg, output_zero_point: Arg) -> Call:
    """x * clip(x + 3, 0, 6) / 6 of quantized numbers. Howard et al., 2019.

    x: the quantized tensor; shape any; dtype integers
    scale: the real number that one step of x stands for; shape () or (1,), or one number per position of its axis; dtype float32
    zero_point: the integer that stands for 0 in x; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    Result: shape and dtype of x
    """
def leaky_relu(x: Arg, alpha: float, input_scale: Arg, input_zero_point: Arg, output_scale: Arg, output_zero_point: Arg) -> Call:
    """Leaky rectified linear unit of quantized numbers: requantized, then alpha * x in fixed point where x < 0.

    x: the quantized tensor; shape any; dtype integers
    alpha: the slope below 0
    input_scale: the real number that one step of x stands for; shape () or (1,), or one number per position of its axis; dtype float32
    input_zero_point: the integer that stands for 0 in x; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    Result: shape and dtype of x
    """
def log(x: Arg, scale: Arg, zero_point: Arg, output_scale: Arg, output_zero_point: Arg) -> Call:
    """Natural logarithm of quantized numbers.

    x: the quantized tensor; shape any; dtype integers
    scale: the real number that one step of x stands for; shape () or (1,), or one number per position of its axis; dtype float32
    zero_point: the integer that stands for 0 in x; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    Result: shape and dtype of x
    """
def mul(lhs: Arg, rhs: Arg, lhs_scale: Arg, lhs_zero_point: Arg, rhs_scale: Arg, rhs_zero_point: Arg, output_scale: Arg, output_zero_point: Arg, lhs_axis: int = -1, rhs_axis: int = -1) -> Call:
    """Product of quantized tensors, element by element: that of the integers, requantized (halves go up).

    lhs: the left operand; shape any; dtype integers
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    lhs_scale: the real number that one step of lhs stands for; shape () or (1,), or one number per position of its axis; dtype float32
    lhs_zero_point: the integer that stands for 0 in lhs; shape () or (1,), or one number per position of its axis; dtype int32
    rhs_scale: the real number that one step of rhs stands for; shape () or (1,), or one number per position of its axis; dtype float32
    rhs_zero_point: the integer that stands for 0 in rhs; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    lhs_axis: the axis of lhs along which its scales and zero points lie, if they are vectors
    rhs_axis: the axis of rhs along which its scales and zero points lie, if they are vectors
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def quantize(data: Arg, output_scale: Arg, output_zero_point: Arg, axis: int = -1, out_dtype: Dtype = 'int8') -> Call:
    """round(data / scale) + zero_point, clamped to the integer type; divided in float32, or float64 if data is.

    data: the real numbers; shape any; dtype floats
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    axis: the axis of data along which scales and zero points lie, if they are vectors
    out_dtype: the integer type of the result
    Result: the shape of data, of `out_dtype`
    """
def requantize(data: Arg, input_scale: Arg, input_zero_point: Arg, output_scale: Arg, output_zero_point: Arg, axis: int = -1, rounding: str = 'None', compute_dtype: str = 'None', out_dtype: Dtype = 'int8') -> Call:
    """Integers of one scale as integers of another: (data - zero) * scale / new_scale, rounded half up ("UPWARD", the
    default) or half away from 0 ("TONEAREST"), moved and clamped. The ratio is a fixed-point number of 31 bits, or
    a float with all that follows (`compute_dtype`).

    data: the quantized tensor; shape any; dtype integers
    input_scale: the real number that one step of data stands for; shape () or (1,), or one number per position of its axis; dtype float32
    input_zero_point: the integer that stands for 0 in data; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    axis: the axis of data along which scales and zero points lie, if they are vectors
    rounding: where halves go: "UPWARD" or "TONEAREST" (away from 0); "None" is UPWARD
    compute_dtype: in which type: "int64", "float32" or "float64"; "None" is int64
    out_dtype: the integer type of the result; None: int8
    Result: the shape of data, of `out_dtype`
    """
def requantize_config(rounding: str = 'None', compute_dtype: str = 'None') -> RequantizeConfig:
    """Within `with`, how requantizations with rounding or compute_dtype "None" do it: "UPWARD" or "TONEAREST" (halves
    away from 0), in "int64" (fixed-point), "float32" or "float64"; "None" here is what holds outside.

    That is asked when a program is interpreted or lowered (`QnnCanonicalizeOps`, `relay.build`); where QnnLegalize is
    disabled the attributes alone count. `RelayValueError` for other values.
    """
def rsqrt(x: Arg, scale: Arg, zero_point: Arg, output_scale: Arg, output_zero_point: Arg) -> Call:
    """Reciprocal square root of quantized numbers.

    x: the quantized tensor; shape any; dtype integers
    scale: the real number that one step of x stands for; shape () or (1,), or one number per position of its axis; dtype float32
    zero_point: the integer that stands for 0 in x; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    Result: shape and dtype of x
    """
def sigmoid(x: Arg, scale: Arg, zero_point: Arg, output_scale: Arg, output_zero_point: Arg) -> Call:
    """Logistic function of quantized numbers.

    x: the quantized tensor; shape any; dtype integers
    scale: the real number that one step of x stands for; shape () or (1,), or one number per position of its axis; dtype float32
    zero_point: the integer that stands for 0 in x; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    Result: shape and dtype of x
    """
def simulated_dequantize(data: Arg, input_scale: Arg, input_zero_point: Arg, axis: int = -1, in_dtype: str | Expr = 'int8') -> Call:
    """qnn.dequantize of integers kept in floats.

    data: integers, kept in floats; shape any; dtype floats
    input_scale: the real number that one step of data stands for; shape () or (1,), or one number per position of its axis; dtype float32
    input_zero_point: the integer that stands for 0 in data; shape () or (1,), or one number per position of its axis; dtype int32
    axis: the axis of data along which scales and zero points lie, if they are vectors
    in_dtype: the simulated type: "int8", "uint8", "int32" or "disable", or an int32 scalar with its code (1, 2, 3; 0)
    Result: the shape of data, and its dtype
    """
def simulated_quantize(data: Arg, output_scale: Arg, output_zero_point: Arg, axis: int = -1, out_dtype: str | Expr = 'int8') -> Call:
    """qnn.quantize with its result kept in floats.

    data: the real numbers; shape any; dtype floats
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    axis: the axis of data along which scales and zero points lie, if they are vectors
    out_dtype: the simulated type: "int8", "uint8", "int32" or "disable", or an int32 scalar with its code (1, 2, 3; 0)
    Result: the shape of data, and its dtype
    """
def sqrt(x: Arg, scale: Arg, zero_point: Arg, output_scale: Arg, output_zero_point: Arg) -> Call:
    """Square root of quantized numbers.

    x: the quantized tensor; shape any; dtype integers
    scale: the real number that one step of x stands for; shape () or (1,), or one number per position of its axis; dtype float32
    zero_point: the integer that stands for 0 in x; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    Result: shape and dtype of x
    """
def subtract(lhs: Arg, rhs: Arg, lhs_scale: Arg, lhs_zero_point: Arg, rhs_scale: Arg, rhs_zero_point: Arg, output_scale: Arg, output_zero_point: Arg, lhs_axis: int = -1, rhs_axis: int = -1) -> Call:
    """Difference of quantized tensors, each requantized to the scale of the result (halves go up).

    lhs: the left operand; shape any; dtype integers
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    lhs_scale: the real number that one step of lhs stands for; shape () or (1,), or one number per position of its axis; dtype float32
    lhs_zero_point: the integer that stands for 0 in lhs; shape () or (1,), or one number per position of its axis; dtype int32
    rhs_scale: the real number that one step of rhs stands for; shape () or (1,), or one number per position of its axis; dtype float32
    rhs_zero_point: the integer that stands for 0 in rhs; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    lhs_axis: the axis of lhs along which its scales and zero points lie, if they are vectors
    rhs_axis: the axis of rhs along which its scales and zero points lie, if they are vectors
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def tanh(x: Arg, scale: Arg, zero_point: Arg, output_scale: Arg, output_zero_point: Arg) -> Call:
    """Hyperbolic tangent of quantized numbers.

    x: the quantized tensor; shape any; dtype integers
    scale: the real number that one step of x stands for; shape () or (1,), or one number per position of its axis; dtype float32
    zero_point: the integer that stands for 0 in x; shape () or (1,), or one number per position of its axis; dtype int32
    output_scale: the real number that one step of the result stands for; shape () or (1,), or one number per position of its axis; dtype float32
    output_zero_point: the integer that stands for 0 in the result; shape () or (1,), or one number per position of its axis; dtype int32
    Result: shape and dtype of x
    """
