"""The operators of Relay: one class each, all facets in it; here their builders, by the names users know."""
# Made from the declarations by `python docs/generate.py reference`.
from collections.abc import Iterator, Sequence
from typing import Any

from relaylab.ir.expr import Call, Constant, Expr, TupleWrapper
from relaylab.ir.op import Op
from relaylab.op.accepted import Arg, Dims, Dtype, Floats, Ints, Pairs
from relaylab.op import dyn as dyn, image as image, nn as nn, qnn as qnn, random as random
from relaylab.op import vision as vision, vm as vm
from relaylab.op.vm import annotation as annotation, memory as memory
def abs(data: Arg) -> Call:
    """Absolute value of each element; the least integer of a type stays as it is.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, and its dtype
    """
def acos(data: Arg) -> Call:
    """Inverse cosine of each element, in radians; NaN outside -1 .. 1.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def acosh(data: Arg) -> Call:
    """Inverse hyperbolic cosine of each element; NaN below 1.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def add(lhs: Arg, rhs: Arg) -> Call:
    """Sum of two tensors.

    lhs: the left operand; shape any; dtype any
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def adv_index(inputs: Arg) -> Call:
    """data[i0, i1, ...] as numpy's advanced indexing: the index tensors broadcast; the rest of data's axes follow.

    inputs: a tuple or list: the tensor, then its integer indices, which broadcast; shape any; dtype any
    Result: (*broadcast shape of the m indices, *data.shape[m:]), of the dtype of the tensor
    """
def all(data: Arg, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Whether all bools are true, over axes.

    data: the truths; shape any; dtype bool
    axis: the axes that are reduced, negative ones from the last; None: all
    keepdims: whether reduced axes stay, with the extent 1
    exclude: whether the axes that are not named are reduced
    Result: data.shape without the axes (1 in their place with `keepdims`), of the dtype of data
    """
def any(data: Arg, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Whether a bool is true, over axes.

    data: the truths; shape any; dtype bool
    axis: the axes that are reduced, negative ones from the last; None: all
    keepdims: whether reduced axes stay, with the extent 1
    exclude: whether the axes that are not named are reduced
    Result: data.shape without the axes (1 in their place with `keepdims`), of the dtype of data
    """
def arange(start: Arg, stop: Any = None, step: Arg | None = None, dtype: Any = 'float32') -> Expr:
    """start, start + step, ... before stop: ceil((stop - start) / step) elements, known when all three are
    constants.

    start: the first number where it is a constant; 0 if only one is given, which is then the stop
    stop: the number before which the sequence ends, where it is a constant
    step: the distance of the numbers, not 0, where it is a constant; None: 1
    dtype: the data type of the result
    Result: (max(ceil((stop - start) / step), 0),), of `dtype`; unknown length if one of the three is no constant
    """
def argmax(data: Arg, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, select_last_index: bool = False) -> Call:
    """Position of the largest element over axes (the first of equals, or the last).

    data: the tensor that is reduced; shape any; dtype any
    axis: the axes that are searched, negative ones from the last; None: all
    keepdims: whether searched axes stay, with the extent 1
    exclude: whether the axes that are not named are searched
    select_last_index: whether the last of equal elements counts, not the first
    Result: data.shape without the axes (1 in their place with `keepdims`), int32
    """
def argmin(data: Arg, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, select_last_index: bool = False) -> Call:
    """Position of the smallest element over axes (the first of equals, or the last).

    data: the tensor that is reduced; shape any; dtype any
    axis: the axes that are searched, negative ones from the last; None: all
    keepdims: whether searched axes stay, with the extent 1
    exclude: whether the axes that are not named are searched
    select_last_index: whether the last of equal elements counts, not the first
    Result: data.shape without the axes (1 in their place with `keepdims`), int32
    """
def argsort(data: Arg, axis: int = -1, is_ascend: bool = True, dtype: Dtype = 'int32') -> Call:
    """The indices that put the elements in order along an axis; equal ones keep their order.

    data: the tensor whose elements are ordered; shape any; dtype any
    axis: the axis along which is sorted; negative: from the last
    is_ascend: whether the smallest element comes first, not the largest
    dtype: the data type of the result, for indices
    Result: the shape of data, of `dtype`
    """
def argwhere(condition: Arg) -> Call:
    """The int32 coordinates (count, rank) of the elements that are not 0, in row-major order.

    condition: the tensor that is searched; shape any; dtype any
    Result: (number of elements that are not 0, rank of condition), int32
    """
def asin(data: Arg) -> Call:
    """Inverse sine of each element, in radians; NaN outside -1 .. 1.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def asinh(data: Arg) -> Call:
    """Inverse hyperbolic sine of each element.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def atan(data: Arg) -> Call:
    """Inverse tangent of each element, in radians.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def atanh(data: Arg) -> Call:
    """Inverse hyperbolic tangent of each element; NaN outside -1 .. 1.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def bitwise_and(lhs: Arg, rhs: Arg) -> Call:
    """Bits that are set in both integers.

    lhs: the left operand; shape any; dtype integers or bool
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def bitwise_not(data: Arg) -> Call:
    """The bits of each integer flipped; the negation of bools.

    data: the tensor whose bits are flipped; shape any; dtype integers or bool
    Result: the shape of data, and its dtype
    """
def bitwise_or(lhs: Arg, rhs: Arg) -> Call:
    """Bits that are set in one of the integers or both.

    lhs: the left operand; shape any; dtype integers or bool
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def bitwise_xor(lhs: Arg, rhs: Arg) -> Call:
    """Bits that are set in one of the integers but not both.

    lhs: the left operand; shape any; dtype integers or bool
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def broadcast_to(data: Arg, shape: Dims | Expr | None) -> Call:
    """`data` repeated along its dimensions of extent 1, and new ones in front, to have `shape`.

    data: the tensor that is repeated; shape any that broadcasts to `shape`; dtype any
    shape: the shape of the result, or an expression that gives it at run time
    Result: `shape`, of the dtype of data
    """
def broadcast_to_like(data: Arg, broadcast_type: Arg) -> Call:
    """`data` broadcast to the shape of the second tensor.

    data: the tensor that is repeated; shape any that broadcasts to that of broadcast_type; dtype any
    broadcast_type: the tensor whose shape is taken; shape any; dtype any
    Result: the shape of broadcast_type, the dtype of data
    """
def call_lowered(func: Arg, call_args: Arg, metadata: Any = None) -> Call:
    """A call of a lowered function with a tuple of arguments.

    func: the lowered function; shape any; dtype any
    call_args: its arguments: a tuple; shape any; dtype any
    metadata: what is known of the call, as a dictionary
    Result: the result type of func
    """
def cast(data: Arg, dtype: Dtype) -> Call:
    """Each element in another data type: integers wrap, floats that become integers lose their fraction and
    saturate.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    dtype: the new data type
    Result: the shape of data, of `dtype`
    """
def cast_like(data: Arg, dtype_like: Arg) -> Call:
    """Each element of `data` in the data type of `dtype_like`.

    data: the tensor whose elements are converted; shape any; dtype any
    dtype_like: the tensor whose data type is taken; shape any; dtype any
    Result: the shape of data, the dtype of dtype_like
    """
def ceil(data: Arg) -> Call:
    """The smallest whole number not below each element.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, and its dtype
    """
def cholesky(data: Arg) -> Call:
    """The lower triangles L with L L^T = data, of symmetric matrices of which the lower triangles are read; NaN where
    they are not positive definite.

    data: the matrices; shape (..., n, n); dtype floats
    Result: the type of data
    """
def clip(a: Arg, a_min: float, a_max: float) -> Call:
    """Each element limited to a_min .. a_max (for integers: to those of the limits that the type can hold).

    a: the tensor whose elements are taken one by one; shape any; dtype any
    a_min: the lowest number of the result
    a_max: the highest number of the result
    Result: the shape of data, and its dtype
    """
def collapse_sum_like(data: Arg, collapse_type: Arg) -> Call:
    """`data` summed to the shape of the second tensor, from which it could have been broadcast.

    data: the tensor that is summed; shape any; dtype any
    collapse_type: the tensor whose shape is taken; shape one that broadcasts to that of data; dtype any
    Result: the shape of collapse_type, the dtype of data
    """
def collapse_sum_to(data: Arg, shape: Arg) -> Expr:
    """`data` summed to `shape`, from which it could have been broadcast; the shape is also given as a tensor.

    data: the tensor that is summed; shape any; dtype any
    shape: the shape of the result, which broadcasts to that of data
    Result: `shape`, of the dtype of data
    """
def concatenate(data: Arg, axis: int) -> Call:
    """Tensors joined end to end along an existing axis; the other dimensions must agree.

    data: the tensors, as a tuple or list; shape one for all, but for the extent of `axis`; dtype one for all
    axis: the axis along which they stand end to end; negative: from the last
    Result: the common shape with the sum of the extents along `axis`, of the dtype of data
    """
def contrib_reverse_reshape(data: Arg, newshape: Dims, allowzero: bool = False) -> Call:
    """Reshape with the codes of `newshape` read from the right.

    data: the tensor whose elements are taken in row-major order; shape any; dtype any
    newshape: the new extents, with codes that are read from the right
    allowzero: whether 0 is an extent, not a code
    Result: `newshape` with its codes replaced, of the dtype of data
    """
def copy(data: Arg) -> Call:
    """Each element as it is.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, and its dtype
    """
def cos(data: Arg) -> Call:
    """Cosine of each element, in radians.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def cosh(data: Arg) -> Call:
    """Hyperbolic cosine of each element.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def cumprod(data: Arg, axis: int | None = None, dtype: Dtype = None, exclusive: bool | None = None) -> Call:
    """Running products along an axis.

    data: the tensor whose elements are combined; shape any; dtype any
    axis: the axis along which is counted; None: the flattened tensor
    dtype: the data type of sums and result; None: that of data, int32 for bools
    exclusive: whether an element itself is left out of its sum or product
    Result: the shape of data ((number of elements,) without `axis`), of `dtype`
    """
def cumsum(data: Arg, axis: int | None = None, dtype: Dtype = None, exclusive: bool | None = None) -> Call:
    """Running sums along an axis.

    data: the tensor whose elements are combined; shape any; dtype any
    axis: the axis along which is counted; None: the flattened tensor
    dtype: the data type of sums and result; None: that of data, int32 for bools
    exclusive: whether an element itself is left out of its sum or product
    Result: the shape of data ((number of elements,) without `axis`), of `dtype`
    """
def debug(program: Arg, debug_func: Any = None) -> Call:
    """Its argument as it is; the interpreter and the virtual machine call `debug_func` with it.

    A program built for the graph executor calls nothing; a constant is looked at where it is folded.

    program: the value that is looked at: a tensor or a tuple; shape any; dtype any
    debug_func: a function that is called with the value: a numpy array or a tuple; else nothing is called
    Result: its argument, of the same type
    """
def device_copy(data: Arg, src_device: Any, dst_device: Any) -> Expr:
    """A copy from one device to another.

    data: the value: a tensor or a tuple; shape any; dtype any
    src_device: the device on which the value lives
    dst_device: the device on which the copy lives
    Result: its argument, of the same type
    """
def divide(lhs: Arg, rhs: Arg) -> Call:
    """Quotient of two tensors: lhs / rhs; integers are truncated towards 0.

    lhs: the left operand; shape any; dtype any but bool
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def einsum(data: Arg, equation: str) -> Call:
    """Sums of products over the letters that the result does not have, as numpy.einsum.

    data: the operands, as a tuple or list; shape one dimension per letter of its term; dtype one for all
    equation: terms of letters with commas between them, perhaps -> and the result's; ... for any axes
    Result: the extents of the letters of the result (without ->: those that occur once, sorted), of the dtype of data
    """
def equal(lhs: Arg, rhs: Arg) -> Call:
    """Whether two elements are equal.

    lhs: the left operand; shape any; dtype any
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, bool
    """
def erf(data: Arg) -> Call:
    """Error function of each element.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def exp(data: Arg) -> Call:
    """Exponential: e to the power of each element.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def expand_dims(data: Arg, axis: int | Expr, num_newaxis: int = 1) -> Call:
    """`num_newaxis` dimensions of extent 1 inserted before position `axis` (negative: counted from behind the last).

    data: the tensor whose elements are taken in row-major order; shape any; dtype any
    axis: where the new dimensions stand in the result; negative: from behind the last
    num_newaxis: how many dimensions are inserted
    Result: (*data.shape[:axis], 1, ..., *data.shape[axis:]), of the dtype of data
    """
def fast_erf(data: Arg) -> Call:
    """Error function by a rational approximation on -4 .. 4 (absolute error below 1e-6 in float32).

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def fast_exp(data: Arg) -> Call:
    """Exponential that may be approximated; computed like exp.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def fast_tanh(data: Arg) -> Call:
    """Hyperbolic tangent by a rational approximation on -9 .. 9 (absolute error below 1e-6 in float32).

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def fixed_point_multiply(data: Arg, multiplier: int, shift: int) -> Call:
    """data * multiplier * 2^(shift - 31) for int32, rounded half up: a product with a Q31 fixed-point number.

    data: the tensor whose elements are multiplied; shape any; dtype int32
    multiplier: the factor as a Q31 number: that many times 2^-31
    shift: how many places the product is moved left (right if negative)
    Result: the shape of data, and its dtype
    """
def floor(data: Arg) -> Call:
    """The largest whole number not above each element.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, and its dtype
    """
def floor_divide(lhs: Arg, rhs: Arg) -> Call:
    """Quotient rounded down.

    lhs: the left operand; shape any; dtype any but bool
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def floor_mod(lhs: Arg, rhs: Arg) -> Call:
    """Remainder of the quotient rounded down: it has the sign of rhs.

    lhs: the left operand; shape any; dtype any but bool
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def full(fill_value: Arg, shape: Dims | Expr | None = (), dtype: Dtype = None) -> Call:
    """A scalar repeated in a shape, cast to a data type if one is given.

    fill_value: the number that is repeated; shape (); dtype any
    shape: the shape of the result, or an expression that gives it at run time
    dtype: the data type of the result; None: that of fill_value
    Result: `shape`, of `dtype`
    """
def full_like(data: Arg, fill_value: Arg) -> Call:
    """A scalar repeated in the shape and data type of `data`.

    data: the tensor whose shape and data type are taken; shape any; dtype any
    fill_value: the number that is repeated; shape (); dtype any
    Result: the shape of data, and its dtype
    """
def gather(data: Arg, axis: int | None, indices: Arg) -> Call:
    """out[i, j, ...] = data[i, indices[i, j, ...], ...]: one element of `data` along `axis` for each index.

    data: the tensor whose elements are taken; shape any; dtype any
    axis: the axis along which the indices count; None: the first
    indices: where along `axis`; negative ones count from the end; shape that of data but for the extent of `axis`; dtype integers
    Result: the shape of indices, the dtype of data
    """
def gather_nd(data: Arg, indices: Arg, batch_dims: int = 0, index_rank: int | None = None) -> Call:
    """out[y] = data[indices[0, y], ..., indices[M-1, y]]: the first axis of `indices` (M, Y...) holds coordinates; the
    first `batch_dims` axes of both go together.

    data: the tensor whose elements or slices are taken; shape any; dtype any
    indices: coordinates, along the first axis; negative ones count from the end; shape (M, *Y); dtype integers
    batch_dims: how many first axes of data are also the first axes of Y
    index_rank: the number M of coordinates where the type does not say it
    Result: (*Y, *data.shape[batch_dims + M:]), of the dtype of data
    """
def gcd(lhs: Arg, rhs: Arg) -> Call:
    """The largest numbers that divide both of two, never negative; 0 for two zeros.

    lhs: whole numbers; shape any; dtype integers
    rhs: whole numbers; shape that of lhs; dtype that of lhs
    Result: the type of lhs
    """
def get(op_name: str) -> Op:
    """The operator of that name; an unknown one raises and offers the closest names."""
def greater(lhs: Arg, rhs: Arg) -> Call:
    """Whether lhs > rhs.

    lhs: the left operand; shape any; dtype any
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, bool
    """
def greater_equal(lhs: Arg, rhs: Arg) -> Call:
    """Whether lhs >= rhs.

    lhs: the left operand; shape any; dtype any
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, bool
    """
def invert_permutation(data: Arg) -> Call:
    """The inverse of a permutation: out[data[i]] = i; the first i counts, and 0 stands where there is none.

    data: each of 0 .. n - 1 once; shape (n,); dtype integers
    Result: (n,), of the dtype of data
    """
def isfinite(data: Arg) -> Call:
    """Whether each element is neither infinite nor NaN.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, bool
    """
def isinf(data: Arg) -> Call:
    """Whether each element is infinite.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, bool
    """
def isnan(data: Arg) -> Call:
    """Whether each element is not a number.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, bool
    """
def layout_transform(data: Arg, src_layout: str, dst_layout: str) -> Call:
    """The same tensor in another layout: `NCHW` to `NCHW16c` splits the channels into blocks of 16, `NHWC` moves
    them.

    data: the tensor, laid out as `src_layout`; shape any; dtype any
    src_layout: the axes of data as letters, such as NCHW; 16c is a block of 16 of C
    dst_layout: the axes of the result, of the same letters
    Result: the extents of data in the order and blocks of `dst_layout`, of the dtype of data
    """
def left_shift(lhs: Arg, rhs: Arg) -> Call:
    """lhs with its bits shifted left by rhs places; 0 when rhs reaches the width.

    lhs: whose bits are shifted; shape any; dtype integers
    rhs: by how many places; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def less(lhs: Arg, rhs: Arg) -> Call:
    """Whether lhs < rhs.

    lhs: the left operand; shape any; dtype any
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, bool
    """
def less_equal(lhs: Arg, rhs: Arg) -> Call:
    """Whether lhs <= rhs.

    lhs: the left operand; shape any; dtype any
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, bool
    """
def log(data: Arg) -> Call:
    """Natural logarithm of each element; NaN below 0.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def log10(data: Arg) -> Call:
    """Logarithm to base 10 of each element; NaN below 0.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def log2(data: Arg) -> Call:
    """Logarithm to base 2 of each element; NaN below 0.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def logical_and(lhs: Arg, rhs: Arg) -> Call:
    """Whether both elements are true.

    lhs: the left operand; shape any; dtype any
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def logical_not(data: Arg) -> Call:
    """Whether each element is zero, in the data type of the argument.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, and its dtype
    """
def logical_or(lhs: Arg, rhs: Arg) -> Call:
    """Whether one of the elements is true, or both.

    lhs: the left operand; shape any; dtype any
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def logical_xor(lhs: Arg, rhs: Arg) -> Call:
    """Whether one of the elements is true but not both.

    lhs: the left operand; shape any; dtype any
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def logsumexp(data: Arg, axis: Any = None, keepdims: bool = False) -> Expr:
    """log(sum(exp(data))) over axes, with the largest element subtracted first if it is finite."""
def lu(data: Arg) -> Any:
    """Matrices as products of triangular ones, with rows exchanged so that pivots are large: row i of L U is row
    `order[i]` of the matrix. Both triangles are in one matrix, but for the ones on the diagonal of L; a column without
    a pivot stays as it is.

    data: the matrices; shape (..., n, n); dtype floats
    Result: (the triangles: the type of data; order: (..., n), int32)
    """
def matrix_set_diag(data: Arg, diagonal: Arg, k: int | Sequence[int] = 0, align: str = 'RIGHT_LEFT') -> Expr:
    """Matrices with their diagonals k1 .. k2 replaced; shorter diagonals lie right or left in their row of
    `diagonal`.

    data: the matrices; shape (..., rows, columns); dtype any
    diagonal: the new diagonals, from k2 down to k1; shape (..., longest), or (..., k2 - k1 + 1, longest); dtype that of data
    k: the diagonal that is set, or the lowest and the highest of several
    align: where shorter diagonals above the main one lie in their row, then those below, as RIGHT_LEFT
    Result: the shape of data, and its dtype
    """
def max(data: Arg, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Largest element over axes; NaN if one is NaN.

    data: the tensor that is reduced; shape any; dtype any
    axis: the axes that are reduced, negative ones from the last; None: all
    keepdims: whether reduced axes stay, with the extent 1
    exclude: whether the axes that are not named are reduced
    Result: data.shape without the axes (1 in their place with `keepdims`), of the dtype of data
    """
def maximum(lhs: Arg, rhs: Arg) -> Call:
    """The larger of two elements; NaN if one is NaN.

    lhs: the left operand; shape any; dtype any
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def mean(data: Arg, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Arithmetic mean over axes; integers are summed in their own type and divided towards 0.

    data: the tensor that is reduced; shape any; dtype any but bool
    axis: the axes that are reduced, negative ones from the last; None: all
    keepdims: whether reduced axes stay, with the extent 1
    exclude: whether the axes that are not named are reduced
    Result: data.shape without the axes (1 in their place with `keepdims`), of the dtype of data
    """
def mean_std(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> TupleWrapper:
    """Mean and standard deviation over axes, which share the mean."""
def mean_variance(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> TupleWrapper:
    """Mean and variance over axes, which share the mean."""
def meshgrid(data: Arg, indexing: str = 'ij') -> Any:
    """Coordinate grids from vectors, as a tuple: field k varies along axis k ("ij"), or with the first two axes swapped
    ("xy").

    data: the coordinates of each axis, as a tuple or list; shape (n,) or () each; dtype one for all
    indexing: `ij`: field k varies along axis k; `xy`: along axis 1 - k for the first two
    Result: a tuple of as many tensors as data has fields, each (n_0, n_1, ...) by `indexing`, of their dtype
    """
def min(data: Arg, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Smallest element over axes; NaN if one is NaN.

    data: the tensor that is reduced; shape any; dtype any
    axis: the axes that are reduced, negative ones from the last; None: all
    keepdims: whether reduced axes stay, with the extent 1
    exclude: whether the axes that are not named are reduced
    Result: data.shape without the axes (1 in their place with `keepdims`), of the dtype of data
    """
def minimum(lhs: Arg, rhs: Arg) -> Call:
    """The smaller of two elements; NaN if one is NaN.

    lhs: the left operand; shape any; dtype any
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def mod(lhs: Arg, rhs: Arg) -> Call:
    """Remainder of the quotient rounded towards 0: it has the sign of lhs.

    lhs: the left operand; shape any; dtype any but bool
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def multiply(lhs: Arg, rhs: Arg) -> Call:
    """Product of two tensors, element by element.

    lhs: the left operand; shape any; dtype any
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def ndarray_size(data: Arg, dtype: Dtype = 'int32') -> Call:
    """The number of elements of a tensor, as a scalar.

    data: the tensor whose elements are counted; shape any; dtype any
    dtype: the data type of the result
    Result: (), of `dtype`
    """
def negative(data: Arg) -> Call:
    """Each element with its sign changed; integers wrap.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def not_equal(lhs: Arg, rhs: Arg) -> Call:
    """Whether two elements differ.

    lhs: the left operand; shape any; dtype any
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, bool
    """
def on_device(body: Arg, device: Any, constrain_result: bool = False, constrain_body: bool = True) -> Expr:
    """Says on which device the body (and, if asked, the result) lives.

    body: the value that lives on the device: a tensor, a tuple or a function; shape any; dtype any
    device: the device
    constrain_result: whether the result must live on the device as well
    constrain_body: whether the body must live on the device
    Result: its argument, of the same type
    """
def one_hot(indices: Arg, on_value: Arg, off_value: Arg, depth: int | Expr, axis: int, dtype: Dtype) -> Call:
    """A new axis of `depth` with on_value at the index and off_value elsewhere; an index outside gives no on_value.

    indices: which position is on; shape any; dtype integers
    on_value: what stands at the index; shape () or ones; dtype any
    off_value: what stands elsewhere; shape () or ones; dtype any
    depth: the extent of the new axis, or an expression that gives it at run time
    axis: where the new axis stands in the result; negative: from behind the last
    dtype: the data type of the result; None: float32
    Result: indices.shape with `depth` inserted at `axis`, of `dtype`
    """
def one_sided_svd(data: Arg) -> Any:
    """Matrices as products u v: the rows of v are orthonormal, the columns of u orthogonal and as long as s says, the
    longest first, which are the singular values. By Jacobi's rotations of columns; the largest number in a row of v
    is positive.

    data: the matrices, of at least as many rows as columns; shape (..., m, n); dtype floats
    Result: (u: the type of data, s: (..., n), v: (..., n, n)), of the dtype of data
    """
def ones(shape: Dims | Expr | None, dtype: Dtype) -> Call:
    """Ones in a shape and a data type.

    shape: the shape of the result, or an expression that gives it at run time
    dtype: the data type of the result; None: float32
    Result: `shape`, of `dtype`
    """
def ones_like(data: Arg) -> Call:
    """Ones in the shape and data type of the argument.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, and its dtype
    """
def power(lhs: Arg, rhs: Arg) -> Call:
    """lhs to the power of rhs.

    lhs: the left operand; shape any; dtype any but bool
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def prod(data: Arg, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Product over axes, in the data type of the argument.

    data: the tensor that is reduced; shape any; dtype any
    axis: the axes that are reduced, negative ones from the last; None: all
    keepdims: whether reduced axes stay, with the extent 1
    exclude: whether the axes that are not named are reduced
    Result: data.shape without the axes (1 in their place with `keepdims`), of the dtype of data
    """
def qr(data: Arg, complete: bool = False) -> Any:
    """Matrices as products q r of one with orthonormal columns and an upper triangular one, by Householder's
    reflections: a number on the diagonal of r has the sign that the column's first number had not.

    data: the matrices; shape (..., m, n); dtype floats
    complete: whether q is square, not only as wide as the smaller of m and n
    Result: (q: (..., m, k), r: (..., k, n)), of the dtype of data
    """
def reinterpret(data: Arg, dtype: Dtype) -> Call:
    """The bits of each element read as another data type of the same width (a signaling NaN of 16 bits may become a
    quiet one).

    data: the tensor whose bits are read; shape any; dtype any
    dtype: the new data type, as wide as that of data
    Result: the shape of data, of `dtype`
    """
def repeat(data: Arg, repeats: int, axis: int | None) -> Call:
    """Each element `repeats` times in a row along an axis (of the flattened tensor if there is none).

    data: the tensor whose elements are repeated; shape any; dtype any
    repeats: how often each element stands in the result
    axis: the axis along which elements are repeated; None: that of the flattened tensor
    Result: data.shape with the extent of `axis` times `repeats`, of the dtype of data
    """
def reshape(data: Arg, newshape: Dims | Expr, allowzero: bool = False) -> Call:
    """The elements in a new shape. Codes in `newshape`: 0 copies a dimension (unless `allowzero`), -1 is what is
    left, -2 copies all remaining ones, -3 merges the next two, -4 splits one into the two factors that follow (one
    may be -1).

    data: the tensor whose elements are taken in row-major order; shape any; dtype any
    newshape: the new extents, with codes; or an expression that gives them at run time
    allowzero: whether 0 is an extent, not a code
    Result: `newshape` with its codes replaced, of the dtype of data
    """
def reshape_like(data: Arg, shape_like: Arg, lhs_begin: int = 0, lhs_end: int | None = None, rhs_begin: int = 0, rhs_end: int | None = None) -> Call:
    """`data` with its dimensions lhs_begin .. lhs_end replaced by those rhs_begin .. rhs_end of `shape_like`.

    data: the tensor whose elements are taken in row-major order; shape any; dtype any
    shape_like: the tensor whose extents are taken; shape any; dtype any
    lhs_begin: the first dimension of data that is replaced; negative: from the last
    lhs_end: the dimension of data before which it ends; None: all that follow
    rhs_begin: the first dimension of shape_like that is taken; negative: from the last
    rhs_end: the dimension of shape_like before which it ends; None: all that follow
    Result: (*data.shape[:lhs_begin], *shape_like.shape[rhs_begin:rhs_end], *data.shape[lhs_end:]), of the dtype of data
    """
def reverse(data: Arg, axis: int | None) -> Call:
    """The elements in opposite order along an axis.

    data: the tensor whose elements are reversed; shape any; dtype any
    axis: the axis that is reversed; None: the first
    Result: the shape of data, and its dtype
    """
def reverse_reshape(data: Arg, newshape: Any) -> Expr:
    """Reshape with the codes of `newshape` read from the right."""
def reverse_sequence(data: Arg, seq_lengths: Arg, seq_axis: int = 1, batch_axis: int = 0) -> Call:
    """The first seq_lengths[b] elements along `seq_axis` reversed, for each b along `batch_axis`; lengths are limited
    to 0 .. the extent of `seq_axis`.

    data: the sequences; shape any; dtype any
    seq_lengths: how many elements of each sequence are reversed; shape (extent of `batch_axis`,); dtype integers
    seq_axis: the axis along which a sequence runs
    batch_axis: the axis that counts the sequences, another one
    Result: the shape of data, and its dtype
    """
def right_shift(lhs: Arg, rhs: Arg) -> Call:
    """lhs with its bits shifted right by rhs places; the sign is kept.

    lhs: whose bits are shifted; shape any; dtype integers
    rhs: by how many places; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def round(data: Arg) -> Call:
    """The nearest whole number, halves away from 0.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, and its dtype
    """
def rsqrt(data: Arg) -> Call:
    """Reciprocal square root of each element: 1 / sqrt(x).

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def scatter(data: Arg, indices: Arg, updates: Arg, axis: int) -> Call:
    """`data` with elements along `axis` replaced by updates; of several for one place the last counts.

    data: the tensor that is updated; shape any; dtype any
    indices: where along `axis` each update goes; negative ones count from the end; shape that of updates, not above that of data but along `axis`; dtype integers
    updates: the new elements; shape the rank of data; dtype that of data
    axis: the axis along which the indices count; negative: from the last
    Result: the shape of data, and its dtype
    """
def scatter_add(data: Arg, indices: Arg, updates: Arg, axis: int) -> Call:
    """`data` with updates added to elements along `axis`.

    data: the tensor that is updated; shape any; dtype any
    indices: where along `axis` each update goes; negative ones count from the end; shape that of updates, not above that of data but along `axis`; dtype integers
    updates: the new elements; shape the rank of data; dtype that of data
    axis: the axis along which the indices count; negative: from the last
    Result: the shape of data, and its dtype
    """
def scatter_nd(data: Arg, indices: Arg, updates: Arg, mode: str = 'update') -> Call:
    """out[indices[0, y], ..., indices[M-1, y]] gets updates[y] for all y: it replaces ("update", the last counts) or is
    combined ("add", "mul", "min", "max"). `indices` is (M, Y...), `updates` (Y..., rest of data).

    data: the tensor that is updated; shape any; dtype any
    indices: coordinates in the first M axes of data, along the first axis; shape (M, *Y); dtype integers
    updates: the new elements or slices; shape (*Y, *data.shape[M:]); dtype that of data
    mode: what an update does to what is there: update, add, mul, min or max
    Result: the shape of data, and its dtype
    """
def searchsorted(sorted_sequence: Arg, values: Arg, right: bool = False, dtype: Dtype = 'int32') -> Call:
    """Where each value would be inserted into a sorted sequence (one for all, or one per row), before equal
    elements or, with `right`, behind them.

    sorted_sequence: the sorted elements; shape (n,), or (*values.shape[:-1], n); dtype that of values
    values: what is looked for; shape any; dtype any
    right: whether the place behind equal elements is meant, not before them
    dtype: the data type of the result
    Result: the shape of values, of `dtype`
    """
def segment_sum(data: Arg, segment_ids: Any, num_segments: Any = None) -> Expr:
    """The sums of the rows of `data` with the same segment id: one row per segment (by default up to the last id)."""
def sequence_mask(data: Arg, valid_length: Arg, mask_value: float = 0.0, axis: int = 0) -> Call:
    """`data` (length, batch, ...) (or batch first, with axis 1) with what lies behind valid_length[b] masked.

    data: the sequences; shape (length, batch, ...), or (batch, length, ...) with axis 1; dtype any
    valid_length: how many elements of each sequence stay; shape (batch,); dtype any
    mask_value: what takes the place of the others
    axis: the axis along which a sequence runs, 0 or 1
    Result: the shape of data, and its dtype
    """
def shape_of(data: Arg, dtype: Dtype = 'int32') -> Call:
    """The shape of a tensor, as a tensor of rank 1.

    data: the tensor whose shape is asked for; shape any; dtype any
    dtype: the data type of the result
    Result: (rank of data,), of `dtype`
    """
def sigmoid(data: Arg) -> Call:
    """Logistic function of each element: 1 / (1 + exp(-x)).

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def sign(data: Arg) -> Call:
    """-1, 0 or 1 by the sign of each element; NaN gives 0.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, and its dtype
    """
def sin(data: Arg) -> Call:
    """Sine of each element, in radians.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def sinh(data: Arg) -> Call:
    """Hyperbolic sine of each element.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def slice_like(data: Arg, shape_like: Arg, axes: Ints | None = None) -> Call:
    """The first elements along `axes` (none given: all that `shape_like` has), as many as `shape_like` has there.

    data: the tensor that is cut; shape any; dtype any
    shape_like: the tensor whose extents are taken; shape any; dtype any
    axes: the axes that are cut; None or empty: all that shape_like has
    Result: data.shape with the extents of shape_like along the axes, of the dtype of data
    """
def sliding_window(data: Arg, axis: int, window_shape: Ints, strides: Ints) -> Call:
    """All windows of `window_shape` over the axes from `axis` on: (..., number of windows..., window...).

    data: the tensor from which windows are taken; shape any; dtype any
    axis: the first axis along which windows move; they move along all from it on
    window_shape: the extents of a window, one for each of those axes
    strides: the distances of the windows, one for each of those axes
    Result: (*data.shape[:axis], *((n - window) // stride + 1 of each axis), *window_shape), of the dtype of data
    """
def solve_triangular(data: Arg, right: Arg, upper: bool = False, unit: bool = False) -> Call:
    """The x with data x = right, for triangular matrices; what is beyond the triangle is not read.

    data: the matrices; shape (..., n, n); dtype floats
    right: the right sides, of the same leading axes; shape (..., n, m); dtype that of data
    upper: whether the upper triangle is meant, or the lower one
    unit: whether ones stand for the diagonal, which is not read then
    Result: the type of right
    """
def sort(data: Arg, axis: int = -1, is_ascend: bool = True) -> Call:
    """The elements in order along an axis.

    data: the tensor whose elements are ordered; shape any; dtype any
    axis: the axis along which is sorted; negative: from the last
    is_ascend: whether the smallest element comes first, not the largest
    Result: the shape of data, and its dtype
    """
def sparse_fill_empty_rows(sparse_indices: Arg, sparse_values: Arg, dense_shape: Arg, default_value: Arg) -> TupleWrapper:
    """A sparse tensor with a default value in column 0 of every row that has none: a tuple of coordinates, values,
    and for each row 1 if it was empty, else 0.

    sparse_indices: the coordinates of the values, sorted by rows; shape (count, rank); dtype integers
    sparse_values: the values; shape (count,); dtype any
    dense_shape: the shape of the whole tensor; shape (rank,); dtype integers
    default_value: what stands in rows that have no value; shape () or ones; dtype that of sparse_values
    Result: a tuple: (m, rank) of the dtype of sparse_indices, (m,) of that of sparse_values, (dense_shape[0],) int64
    """
def sparse_reshape(sparse_indices: Arg, prev_shape: Arg, new_shape: Arg) -> TupleWrapper:
    """Coordinates (count, rank) of a sparse tensor after a reshape (one entry of the new shape may be -1): a tuple
    of the new coordinates and the new shape.

    sparse_indices: the coordinates; shape (count, rank); dtype integers
    prev_shape: the shape in which they lie; shape (rank,); dtype integers
    new_shape: the shape after the reshape, with at most one -1; shape (new rank,); dtype integers
    Result: a tuple: (count, new rank) of the dtype of sparse_indices, and (new rank,) of that of new_shape
    """
def sparse_to_dense(sparse_indices: Arg, output_shape: Any, sparse_values: Arg, default_value: Arg | float = 0) -> Expr:
    """A tensor of `output_shape` with values at coordinates (a scalar, a vector, or (count, rank)) and a default
    elsewhere; of several values for one place the last counts.

    sparse_indices: the coordinates of the values; shape (count, rank), (count,) or (); dtype integers
    output_shape: the shape of the result, or an expression that gives it at run time
    sparse_values: the values, or one for all coordinates; shape (count,), (1,) or (); dtype any
    default_value: what stands elsewhere; shape () or ones; dtype any
    Result: `output_shape`, of the dtype of sparse_values
    """
def split(data: Arg, indices_or_sections: int | Ints, axis: int = 0) -> TupleWrapper:
    """A tensor cut along an axis, into equal sections (an int) or at given indices (a tuple); gives a tuple.

    data: the tensor that is cut; shape any; dtype any
    indices_or_sections: into how many equal sections, or the indices at which a new section begins
    axis: the axis along which the tensor is cut; negative: from the last
    Result: a tuple of tensors: the shape of data but for the extents along `axis`, of the dtype of data
    """
def sqrt(data: Arg) -> Call:
    """Square root of each element; NaN below 0.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def squeeze(data: Arg, axis: Ints | Expr | None = None) -> Call:
    """`data` without dimensions of extent 1: those of `axis`, or all of them.

    data: the tensor whose elements are taken in row-major order; shape any; dtype any
    axis: the dimensions that go, each of extent 1; None: all of that extent
    Result: data.shape without those dimensions, of the dtype of data
    """
def stack(data: Arg, axis: int) -> Call:
    """Tensors of one shape joined along a new axis.

    data: the tensors, as a tuple or list; shape one for all; dtype one for all
    axis: where the new axis stands in the result; negative: from behind the last
    Result: the shape of one tensor with their number inserted at `axis`, of the dtype of data
    """
def std(data: Arg, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> Expr:
    """Standard deviation over axes: the square root of the variance."""
def stft(data: Arg, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Arg | None = None, normalized: bool = False, onesided: bool = True) -> Expr:
    """The short-time Fourier transform of signals (batch, length): (batch, frequencies, frames, 2), real and
    imaginary.

    data: the signals; shape (batch, length); dtype floats
    n_fft: the length of a transform
    hop_length: the distance of the frames; None: n_fft // 4
    win_length: the length of a frame; None: n_fft
    window: the weights of a frame, at least `win_length` of them; None: ones; shape (n,); dtype any
    normalized: whether the result is divided by the square root of n_fft
    onesided: whether only the frequencies 0 .. n_fft / 2 are given; the others are conjugates
    Result: (batch, n_fft // 2 + 1 or n_fft, (length - n_fft) // hop_length + 1, 2), of the dtype of data
    """
def strided_set(data: Arg, v: Arg, begin: Arg, end: Arg, strides: Arg | None = None) -> Expr:
    """`data` with the slice begin .. end by strides replaced by `v` (begin, end and strides are tensors).

    data: the tensor that is updated; shape any; dtype any
    v: the new elements of the slice; shape that of the slice; dtype that of data
    begin: the first position along each axis; negative: from the end; shape (n,); dtype integers
    end: the position along each axis before which the slice ends; shape (n,); dtype integers
    strides: the distances of the positions along each axis, 1 where there is none; shape (n,); dtype integers
    Result: the shape of data, and its dtype
    """
def strided_slice(data: Arg, begin: Ints | Expr | None, end: Ints | Expr | None, strides: Ints | Expr | None = (1,), axes: Ints | None = None, slice_mode: str = 'end') -> Call:
    """Elements begin, begin + stride, ... before end along each axis, as numpy's slices; negative positions count
    from the end. `axes` says which axes are meant (else the first ones). In `slice_mode` "size", `end` holds
    extents (-1: all). Where sizes say how many elements there are, `count` does: `end` is not read then, and a tensor
    that has not so many from `begin` on is refused, or with `fewer` gives what it has.

    data: the tensor that is sliced; shape any; dtype any
    begin: the first position along each axis; negative: from the end
    end: the position before which a slice ends; or extents, -1 for all, with `slice_mode` size
    strides: the distances of the positions, not 0
    axes: which axes are meant; None: the first ones
    slice_mode: what `end` means: end or size
    Result: along each axis the extent of numpy's slice begin:end:stride, or `count`; of the dtype of data
    """
def subtract(lhs: Arg, rhs: Arg) -> Call:
    """Difference of two tensors: lhs - rhs.

    lhs: the left operand; shape any; dtype any but bool
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def sum(data: Arg, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Sum over axes, in the data type of the argument.

    data: the tensor that is reduced; shape any; dtype any
    axis: the axes that are reduced, negative ones from the last; None: all
    keepdims: whether reduced axes stay, with the extent 1
    exclude: whether the axes that are not named are reduced
    Result: data.shape without the axes (1 in their place with `keepdims`), of the dtype of data
    """
def take(data: Arg, indices: Arg, axis: int | None = None, batch_dims: int = 0, mode: str = 'clip') -> Call:
    """Slices of `data` along `axis` at integer indices (of the flattened data if there is no axis). Indices outside are
    clamped ("clip" and "fast") or wrapped around ("wrap"); the first `batch_dims` axes go together.

    data: the tensor whose slices are taken; shape any; dtype any
    indices: which slices; shape any; dtype integers
    axis: the axis along which slices are taken; None: elements of the flattened tensor
    batch_dims: how many first axes data and indices share
    mode: what an index outside stands for: clip and fast the nearest one inside, wrap the one modulo the extent
    Result: (*data.shape[:axis], *indices.shape[batch_dims:], *data.shape[axis + 1:]), of the dtype of data
    """
def tan(data: Arg) -> Call:
    """Tangent of each element, in radians.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def tanh(data: Arg) -> Call:
    """Hyperbolic tangent of each element.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    Result: the shape of data, and its dtype
    """
def tile(data: Arg, reps: Dims | Expr) -> Call:
    """The whole tensor repeated `reps[k]` times along axis k, aligned right as in numpy.

    data: the tensor that is repeated; shape any; dtype any
    reps: how often along each axis, counted from the last; or an expression that gives it at run time
    Result: data.shape and `reps` aligned right and multiplied, of the dtype of data
    """
def topk(data: Arg, k: int | Expr | None = 1, axis: int = -1, ret_type: str = 'both', is_ascend: bool = False, dtype: Dtype = 'int32') -> Any:
    """The k first elements in order along an axis (all if k < 1) and their indices; `ret_type` "values", "indices" or
    "both" (a tuple). The largest come first unless `is_ascend`.

    data: the tensor whose elements are ordered; shape any; dtype any
    k: how many elements are given, all if below 1; or an expression that gives it at run time
    axis: the axis along which is ordered; negative: from the last
    ret_type: what is given: both (a tuple), values or indices
    is_ascend: whether the smallest elements are given, not the largest
    dtype: the data type of the indices
    Result: data.shape with `k` along `axis`: values of the dtype of data, indices of `dtype`
    """
def transpose(data: Arg, axes: Ints | None = None) -> Call:
    """Axes in a new order: axis k of the result is axis `axes[k]` of `data`; without `axes`, all reversed.

    data: the tensor whose axes are moved; shape any; dtype any
    axes: for each axis of the result which one of data it is; None: all reversed
    Result: (data.shape[axes[0]], data.shape[axes[1]], ...), of the dtype of data
    """
def trilu(data: Arg, k: Arg, upper: bool = True) -> Expr:
    """The upper (or lower) triangle of matrices, from the k-th diagonal on; zeros elsewhere.

    data: the matrices; shape (..., rows, columns); dtype any
    k: the diagonal at which the triangle ends; 0 is the main one; shape () or ones; dtype integers
    upper: whether the upper triangle is kept, or the lower one
    Result: the shape of data, and its dtype
    """
def trunc(data: Arg) -> Call:
    """Each element without its fraction.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, and its dtype
    """
def trunc_divide(lhs: Arg, rhs: Arg) -> Call:
    """Quotient rounded towards 0.

    lhs: the left operand; shape any; dtype any but bool
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def trunc_mod(lhs: Arg, rhs: Arg) -> Call:
    """Remainder of the quotient rounded towards 0: it has the sign of lhs.

    lhs: the left operand; shape any; dtype any but bool
    rhs: the right operand, whose shape broadcasts with that of the left one; shape any; dtype that of lhs
    Result: the shapes of lhs and rhs broadcast as numpy's are, their dtype
    """
def unique(data: Arg, is_sorted: bool = True, return_counts: bool = False) -> TupleWrapper:
    """The different elements of a vector: a tuple of them, the index of the first of each, for each element which
    one it is, their number, and (if asked) how often each occurs. All but the number have the length of `data`;
    what lies behind the number of different elements is 0. Sorted, or in the order of first occurrence.

    data: the elements; shape (n,); dtype any
    is_sorted: whether the different elements are sorted, or in the order in which they first occur
    return_counts: whether how often each element occurs is a field more
    Result: a tuple: elements (n,) of the dtype of data, first places (n,), classes (n,), number (1,), counts (n,), all int32
    """
def unravel_index(data: Arg, shape: Arg) -> Call:
    """The coordinates of flat indices in a tensor of `shape` (itself a tensor): (rank, indices...). Every axis wraps
    around, the first one too.

    data: flat indices; shape any; dtype integers
    shape: the shape that is indexed; shape (rank,); dtype integers
    Result: (rank, *data.shape), of the dtype of data
    """
def variance(data: Arg, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False, with_mean: Any = None) -> Expr:
    """Variance over axes given the mean (with its axes kept): the mean of squared differences; `unbiased` divides
    by n - 1. That of integers is computed in int64.

    data: the tensor that is reduced; shape any; dtype any but bool
    axis: the axes that are reduced, negative ones from the last; None: all
    keepdims: whether reduced axes stay, with the extent 1
    exclude: whether the axes that are not named are reduced
    unbiased: whether the sum of squares is divided by n - 1, not by the number n of elements
    with_mean: the mean with the reduced axes kept, if known; shape that broadcasts to data; dtype that of data
    Result: data.shape without the axes (1 in their place with `keepdims`), of the dtype of data
    """
def where(condition: Arg, x: Arg, y: Arg) -> Call:
    """The element of x where the condition is true (not 0), else of y; all three broadcast.

    condition: which element is chosen: that of x where it is not 0; shape any; dtype any
    x: what stands where the condition holds; shape any; the three broadcast; dtype any
    y: what stands elsewhere; shape any; the three broadcast; dtype that of x
    Result: the shapes of condition, x and y broadcast, the dtype of x
    """
def zeros(shape: Dims | Expr | None, dtype: Dtype) -> Call:
    """Zeros in a shape and a data type.

    shape: the shape of the result, or an expression that gives it at run time
    dtype: the data type of the result; None: float32
    Result: `shape`, of `dtype`
    """
def zeros_like(data: Arg) -> Call:
    """Zeros in the shape and data type of the argument.

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, and its dtype
    """
