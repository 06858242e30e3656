"""`relay.image`: operators on images."""
# Made from the declarations by `python docs/generate.py reference`.
from collections.abc import Iterator, Sequence
from typing import Any

from relaylab.ir.expr import Call, Constant, Expr, TupleWrapper
from relaylab.ir.op import Op
from relaylab.op.accepted import Arg, Dims, Dtype, Floats, Ints, Pairs
def affine_grid(data: Arg, target_shape: Ints | None = None) -> Call:
    """Sampling grids (batch, 2, height, width) for grid_sample from (batch, 2, 3) affine matrices: positions -1 ..
    1.

    data: the matrices that take (x, y, 1) of the result to the (x, y) that is read; shape (N, 2, 3); dtype floats
    target_shape: the height and width of the grids; one number stands for both
    Result: (N, 2, *target_shape), of the dtype of data: data @ (x, y, 1) with x and y from -1 to 1
    """
def crop_and_resize(data: Arg, boxes: Arg, box_indices: Arg, crop_size: Ints | None, layout: str, method: str = 'bilinear', extrapolation_value: float = 0.0, out_dtype: Dtype = None) -> Call:
    """Boxes (y1, x1, y2, x2, as fractions) cut from images and resized to `crop_size`; box n comes from image
    box_indices[n]; places outside read as `extrapolation_value`.

    data: the images, laid out as `layout`; shape (N, C, H, W); dtype any
    boxes: corners y1, x1, y2, x2: 0 is the first row or column, 1 the last; y1 > y2 flips; shape (R, 4); dtype any
    box_indices: the image that each box is cut from, limited to those there are; shape (R,); dtype integers
    crop_size: the height and width of the crops; one number stands for both
    layout: the axes of data and result
    method: how a place between pixels is read: bilinear, or nearest_neighbor (halves go up)
    extrapolation_value: what places outside the image read as
    out_dtype: the data type of the result; None: that of data
    Result: (R, C, *crop_size) laid out as `layout`, of `out_dtype`; row k of n lies at (H - 1) * (y1 + k * (y2 - y1) / (n - 1)), the only row at (H - 1) * (y1 + y2) / 2
    """
def dilation2d(data: Arg, weight: Arg, strides: Ints = (1, 1), padding: Ints = (0, 0), dilations: Ints = (1, 1), data_layout: str = 'NCHW', kernel_layout: str = 'IHW', out_dtype: Dtype = None) -> Call:
    """Grey-scale dilation: the largest data + weight over a window, channel by channel; weight is (C, h, w) as
    `IHW`.

    data: the batch of images, laid out as `data_layout`; shape (N, C, H, W); dtype any but bool
    weight: the structuring element of each channel, laid out as `kernel_layout`; shape (C, h, w); dtype any
    strides: steps of the window along height and width
    padding: zeros around height and width: one number, one per axis, or befores then afters
    dilations: distance between the window's elements along height and width
    data_layout: the axes of data and result
    kernel_layout: the axes of weight, I for the channels
    out_dtype: the data type of sums and result; None: that of data
    Result: (N, C, *extents) laid out as `data_layout`, of `out_dtype`; along height and width extent = (extent + before + after - dilation * (window - 1) - 1) // stride + 1
    """
def grid_sample(data: Arg, grid: Arg, method: str = 'bilinear', layout: str = 'NCHW', padding_mode: str = 'zeros', align_corners: bool = True) -> Call:
    """`data` (N, C, H, W) or (N, C, D, H, W) read at the places of `grid` (N, 2 or 3, ...): x, y (, z) of -1 .. 1, by
    nearest, bilinear or bicubic interpolation.

    data: the batch of images or volumes, laid out as `layout`; shape (N, C, H, W) or (N, C, D, H, W); dtype any
    grid: the places: x, y (, z) from -1 to 1 over width, height (, depth); shape (N, 2 or 3, *extents); dtype any
    method: how a place between pixels is read: nearest (halves away from 0), bilinear or bicubic
    layout: NCHW, or NCDHW for volumes
    padding_mode: what lies outside: zeros, the border, or a reflection
    align_corners: whether -1 and 1 are the middles of the outermost pixels, or else their outer edges
    Result: (N, C, *extents), of the dtype of data
    """
def resize1d(data: Arg, size: Dims | None, roi: Floats | None = None, layout: str = 'NCW', method: str = 'linear', coordinate_transformation_mode: str = 'half_pixel', rounding_method: str = '', cubic_alpha: float = -0.5, cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: Dtype = None) -> Call:
    """Signals resized to `size`: nearest, linear or cubic, with the coordinate rules of ONNX.

    data: the batch of signals, images or volumes, laid out as `layout`; shape (N, C, *extents); dtype any
    size: the new extents of the spatial axes; one number stands for all of them
    roi: the part that tf_crop_and_resize reads, as fractions: begins, then ends
    layout: the axes of data and result
    method: how a place between elements is read: nearest_neighbor, linear or cubic
    coordinate_transformation_mode: where a position of the result lies in data: half_pixel, align_corners, asymmetric, pytorch_half_pixel, tf_half_pixel_for_nn or tf_crop_and_resize
    rounding_method: how nearest_neighbor rounds: round, floor, ceil, round_prefer_floor or round_prefer_ceil; empty: round for align_corners, else floor
    cubic_alpha: the coefficient of cubic interpolation: -0.5, or -0.75 as torch has it
    cubic_exclude: 1: cubic interpolation leaves out what lies outside, the other weights sum to 1
    extrapolation_value: what places outside data read as, for tf_crop_and_resize
    out_dtype: the data type of the result; None: that of data
    Result: (N, C, *size) laid out as `layout`, of `out_dtype`
    """
def resize2d(data: Arg, size: Dims | Expr | None, roi: Floats | Expr | None = (0.0, 0.0, 0.0, 0.0), layout: str = 'NCHW', method: str = 'linear', coordinate_transformation_mode: str = 'half_pixel', rounding_method: str = '', cubic_alpha: float = -0.5, cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: Dtype = None) -> Call:
    """Images resized to `size` (height, width): nearest, linear or cubic, with the coordinate rules of ONNX.

    data: the batch of signals, images or volumes, laid out as `layout`; shape (N, C, *extents); dtype any
    size: the new extents of the spatial axes; one number stands for all of them
    roi: the part that tf_crop_and_resize reads, as fractions: begins, then ends
    layout: the axes of data and result
    method: how a place between elements is read: nearest_neighbor, linear or cubic
    coordinate_transformation_mode: where a position of the result lies in data: half_pixel, align_corners, asymmetric, pytorch_half_pixel, tf_half_pixel_for_nn or tf_crop_and_resize
    rounding_method: how nearest_neighbor rounds: round, floor, ceil, round_prefer_floor or round_prefer_ceil; empty: round for align_corners, else floor
    cubic_alpha: the coefficient of cubic interpolation: -0.5, or -0.75 as torch has it
    cubic_exclude: 1: cubic interpolation leaves out what lies outside, the other weights sum to 1
    extrapolation_value: what places outside data read as, for tf_crop_and_resize
    out_dtype: the data type of the result; None: that of data
    Result: (N, C, *size) laid out as `layout`, of `out_dtype`
    """
def resize3d(data: Arg, size: Dims | None, roi: Floats | None = None, layout: str = 'NCDHW', method: str = 'linear', coordinate_transformation_mode: str = 'half_pixel', rounding_method: str = '', cubic_alpha: float = -0.5, cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: Dtype = None) -> Call:
    """Volumes resized to `size` (depth, height, width): nearest, linear or cubic, with the coordinate rules of ONNX.

    data: the batch of signals, images or volumes, laid out as `layout`; shape (N, C, *extents); dtype any
    size: the new extents of the spatial axes; one number stands for all of them
    roi: the part that tf_crop_and_resize reads, as fractions: x0, y0, z0, x1, y1, z1
    layout: the axes of data and result
    method: how a place between elements is read: nearest_neighbor, linear or cubic
    coordinate_transformation_mode: where a position of the result lies in data: half_pixel, align_corners, asymmetric, pytorch_half_pixel, tf_half_pixel_for_nn or tf_crop_and_resize
    rounding_method: how nearest_neighbor rounds: round, floor, ceil, round_prefer_floor or round_prefer_ceil; empty: round for align_corners, else floor
    cubic_alpha: the coefficient of cubic interpolation: -0.5, or -0.75 as torch has it
    cubic_exclude: 1: cubic interpolation leaves out what lies outside, the other weights sum to 1
    extrapolation_value: what places outside data read as, for tf_crop_and_resize
    out_dtype: the data type of the result; None: that of data
    Result: (N, C, *size) laid out as `layout`, of `out_dtype`
    """
