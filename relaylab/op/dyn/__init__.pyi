"""`relay.op.dyn`: operators whose shape arguments are tensors."""
# Made from the declarations by `python docs/generate.py reference`.
from collections.abc import Iterator, Sequence
from typing import Any

from relaylab.ir.expr import Call, Constant, Expr, TupleWrapper
from relaylab.ir.op import Op
from relaylab.op.accepted import Arg, Dims, Dtype, Floats, Ints, Pairs
def broadcast_to(data: Arg, shape: Arg, dtype: Dtype = None) -> Call:
    """`data` broadcast to a shape that a tensor holds.

    data: the tensor that the static operator takes; shape any; dtype any
    shape: the extents of the result, as a vector of integers
    dtype: not used: the result keeps the data type of data
    Result: (?, ...) with one dimension for each value of shape, of the dtype of data
    """
def expand_dims(data: Arg, axis: Arg, num_newaxis: int = 1) -> Call:
    """`data` with `num_newaxis` dimensions of extent 1 inserted before an axis that a scalar tensor holds.

    data: the tensor whose elements are taken in row-major order; shape any; dtype any
    axis: where the new dimensions stand in the result; negative: from behind the last; shape () or ones; dtype integers
    num_newaxis: how many dimensions are inserted
    Result: (?, ...) with `num_newaxis` dimensions more than data, of its dtype
    """
def full(fill_value: Arg, shape: Arg, dtype: Dtype = None) -> Call:
    """A scalar repeated in a shape that a tensor holds.

    fill_value: the number that is repeated; shape () or ones; dtype any
    shape: the extents of the result, as a vector of integers
    dtype: the data type of the result; None: that of fill_value, or float32
    Result: (?, ...) with one dimension for each value of shape, of `dtype`
    """
def one_hot(indices: Arg, on_value: Arg, off_value: Arg, depth: Arg, axis: int = -1, dtype: Dtype = None) -> Call:
    """One-hot vectors (see one_hot) of a depth that a scalar tensor holds.

    indices: which position is on; shape any; dtype integers
    on_value: what stands at the index; shape () or ones; dtype any
    off_value: what stands elsewhere; shape () or ones; dtype any
    depth: the extent of the new axis, as an integer scalar
    axis: where the new axis stands in the result; negative: from behind the last
    dtype: the data type of the result; None: float32
    Result: indices.shape with ? inserted at `axis`, of `dtype`
    """
def ones(shape: Arg, dtype: Dtype = None) -> Call:
    """Ones in a shape that a tensor holds.

    shape: the extents of the result, as a vector of integers
    dtype: the data type of the result; None: that of fill_value, or float32
    Result: (?, ...) with one dimension for each value of shape, of `dtype`
    """
def pad(data: Arg, pad_width: Arg, pad_val: Arg, pad_mode: str = 'constant') -> Call:
    """Padding (see nn.pad) by widths that a (rank, 2) tensor holds.

    data: the tensor that the static operator takes; shape any; dtype any
    pad_width: how many elements before and after each axis, as integers (rank, 2)
    pad_val: what stands around with pad_mode constant; shape () or ones; dtype that of data
    pad_mode: what stands around: constant (pad_val), edge (the nearest element) or reflect
    Result: (?, ...) of the rank of data, of its dtype
    """
def reshape(data: Arg, newshape: Arg, allowzero: bool = False) -> Call:
    """`data` reshaped by codes (see reshape) that a tensor holds.

    data: the tensor that the static operator takes; shape any; dtype any
    newshape: the new extents with the codes of reshape, as a vector of integers
    allowzero: whether 0 is an extent, not a code
    Result: (?, ...) with one dimension for each value of newshape, of the dtype of data
    """
def resize2d(data: Arg, size: Arg, roi: Arg, layout: str = 'NCHW', method: str = 'linear', coordinate_transformation_mode: str = 'half_pixel', rounding_method: str = 'round', cubic_alpha: float = -0.5, cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: Dtype = None) -> Call:
    """Images resized (see image.resize2d) to a size that a tensor holds.

    data: the tensor that the static operator takes; shape any; dtype any
    size: the height and width of the result, as a vector of two integers
    roi: the region that is resized: y0, x0, y1, x1 as parts of the extents, for tf_crop_and_resize
    layout: the axes of data: N for the batch, C for channels, H and W
    method: how elements are made: nearest_neighbor, linear or cubic
    coordinate_transformation_mode: how positions of the result map to those of data, as in image.resize2d
    rounding_method: how nearest_neighbor rounds a position, as in image.resize2d
    cubic_alpha: the parameter a of cubic interpolation
    cubic_exclude: whether weights of positions outside are 0 and the others scaled up
    extrapolation_value: what stands outside, for tf_crop_and_resize
    out_dtype: the data type of the result; None: that of data
    Result: data.shape with ? along H and W, of `out_dtype`
    """
def squeeze(data: Arg, axis: Arg) -> Call:
    """`data` without the dimensions of extent 1 that a tensor names.

    data: the tensor that the static operator takes; shape any; dtype any
    axis: the dimensions that go, as a vector of integers
    Result: (?, ...) with as many dimensions fewer than data, of its dtype
    """
def strided_slice(data: Arg, begin: Arg, end: Arg, strides: Arg, slice_mode: str = 'end', axes: Ints | None = None) -> Call:
    """A slice (see strided_slice) whose limits are tensors.

    data: the tensor that the static operator takes; shape any; dtype any
    begin: the first position along each axis, as a vector of integers
    end: the position before which a slice ends, or the extents, as a vector of integers
    strides: the distances of the positions, as a vector of integers
    slice_mode: what `end` means: end or size
    axes: which axes are meant; None: the first ones
    Result: data.shape with ? along the axes that are cut, of the dtype of data
    """
def tile(data: Arg, reps: Arg) -> Call:
    """`data` repeated along each axis as often as a tensor says.

    data: the tensor that the static operator takes; shape any; dtype any
    reps: how often along each axis, counted from the last, as a vector of integers
    Result: (?, ...) with the rank of data or as many dimensions as reps has values, of the dtype of data
    """
def topk(data: Arg, k: Arg, axis: int = -1, ret_type: str = 'both', is_ascend: bool = False, dtype: Dtype = None) -> Call:
    """The first elements in order (see topk), as many as a scalar tensor says.

    data: the tensor that the static operator takes; shape any; dtype any
    k: how many elements are given, all if below 1, as an integer scalar
    axis: the axis along which is ordered; negative: from the last
    ret_type: what is given: both (a tuple), values or indices
    is_ascend: whether the smallest elements are given, not the largest
    dtype: the data type of the indices; None: int32
    Result: data.shape with ? along `axis`: values of the dtype of data, indices of `dtype`
    """
def upsampling(data: Arg, scale_h: Arg, scale_w: Arg, layout: str = 'NCHW', method: str = 'nearest_neighbor', align_corners: bool = False) -> Call:
    """Images enlarged (see nn.upsampling) by factors that scalar tensors hold.

    data: the tensor that the static operator takes; shape any; dtype any
    scale_h: the factor of the height, as a scalar
    scale_w: the factor of the width, as a scalar
    layout: the axes of data: N for the batch, C for channels, H and W
    method: how elements are made: nearest_neighbor, bilinear or bicubic
    align_corners: whether the corners of data and result coincide
    Result: data.shape with ? along the spatial axes, of the dtype of data
    """
def upsampling3d(data: Arg, scale_d: Arg, scale_h: Arg, scale_w: Arg, layout: str = 'NCDHW', method: str = 'nearest_neighbor', coordinate_transformation_mode: str = 'half_pixel') -> Call:
    """Volumes enlarged (see nn.upsampling3d) by factors that scalar tensors hold.

    data: the tensor that the static operator takes; shape any; dtype any
    scale_d: the factor of the depth, as a scalar
    scale_h: the factor of the height, as a scalar
    scale_w: the factor of the width, as a scalar
    layout: the axes of data: N for the batch, C for channels, D, H and W
    method: how elements are made: nearest_neighbor or trilinear
    coordinate_transformation_mode: how positions of the result map to those of data, as in image.resize3d
    Result: data.shape with ? along the spatial axes, of the dtype of data
    """
def zeros(shape: Arg, dtype: Dtype = None) -> Call:
    """Zeros in a shape that a tensor holds.

    shape: the extents of the result, as a vector of integers
    dtype: the data type of the result; None: that of fill_value, or float32
    Result: (?, ...) with one dimension for each value of shape, of `dtype`
    """
