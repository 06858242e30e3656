"""`relay.nn`: the operators of neural networks."""
# Made from the declarations by `python docs/generate.py reference`.
from collections.abc import Iterator, Sequence
from typing import Any

from relaylab.ir.expr import Call, Constant, Expr, TupleWrapper
from relaylab.ir.op import Op
from relaylab.op.accepted import Arg, Dims, Dtype, Floats, Ints, Pairs
def adaptive_avg_pool1d(data: Arg, output_size: Dims | None = None, layout: str = 'NCW', out_layout: str = '') -> Call:
    """Mean over as many equal windows as the output has positions, one axis.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any; for means any but bool
    output_size: the extents of the pooled axes; one number stands for all, none for those of data
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    Result: (N, C, *output_size) laid out as `layout`, dtype of data
    """
def adaptive_avg_pool2d(data: Arg, output_size: Dims | None = None, layout: str = 'NCHW', out_layout: str = '') -> Call:
    """Mean over as many equal windows as the output has positions, two axes.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any; for means any but bool
    output_size: the extents of the pooled axes; one number stands for all, none for those of data
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    Result: (N, C, *output_size) laid out as `layout`, dtype of data
    """
def adaptive_avg_pool3d(data: Arg, output_size: Dims | None = None, layout: str = 'NCDHW', out_layout: str = '') -> Call:
    """Mean over as many equal windows as the output has positions, three axes.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any; for means any but bool
    output_size: the extents of the pooled axes; one number stands for all, none for those of data
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    Result: (N, C, *output_size) laid out as `layout`, dtype of data
    """
def adaptive_max_pool1d(data: Arg, output_size: Dims | None = None, layout: str = 'NCW', out_layout: str = '') -> Call:
    """Maximum over as many equal windows as the output has positions, one axis.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any; for means any but bool
    output_size: the extents of the pooled axes; one number stands for all, none for those of data
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    Result: (N, C, *output_size) laid out as `layout`, dtype of data
    """
def adaptive_max_pool2d(data: Arg, output_size: Dims | None = None, layout: str = 'NCHW', out_layout: str = '') -> Call:
    """Maximum over as many equal windows as the output has positions, two axes.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any; for means any but bool
    output_size: the extents of the pooled axes; one number stands for all, none for those of data
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    Result: (N, C, *output_size) laid out as `layout`, dtype of data
    """
def adaptive_max_pool3d(data: Arg, output_size: Dims | None = None, layout: str = 'NCDHW', out_layout: str = '') -> Call:
    """Maximum over as many equal windows as the output has positions, three axes.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any; for means any but bool
    output_size: the extents of the pooled axes; one number stands for all, none for those of data
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    Result: (N, C, *output_size) laid out as `layout`, dtype of data
    """
def attention(query: Arg, key: Arg, value: Arg, mask: Arg, scale: float = 1.0, zero_empty: bool = False) -> Call:
    """softmax(query key^T * scale + mask) value, for each matrix of a batch.

    The scores are never in memory as a whole: a block of queries walks over blocks of keys and keeps for each query the
    largest score so far, the sum of exponentials below it, and the values weighted by them. A query whose scores are
    all -inf gives NaN, as softmax does, or with `zero_empty` zeros.

    query: a row for each result; shape (..., m, d); dtype floats
    key: a row for each value; shape (..., n, d); dtype that of query
    value: the rows that are mixed; shape (..., n, e); dtype that of query
    mask: what is added to the scores; 0 for nothing; shape one that broadcasts to (..., m, n); dtype that of query
    scale: what the products are multiplied by, often 1 / sqrt(d)
    zero_empty: whether a query whose scores are all -inf weighs every value with 0
    Result: (..., m, e), of the dtype of query
    """
def avg_pool1d(data: Arg, pool_size: Ints = (1,), strides: Ints = (1,), dilation: Ints = (1,), padding: Ints = (0,), layout: str = 'NCW', out_layout: str = '', ceil_mode: bool = False, count_include_pad: bool = False) -> Call:
    """Mean over sliding windows of one axis.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any
    pool_size: the extents of the window along the pooled axes
    strides: steps of the window along each pooled axis
    dilation: distance between the elements of a window along each pooled axis
    padding: border of each pooled axis: one number, one per axis, or befores then afters
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    ceil_mode: whether a last window that does not fit whole counts too
    count_include_pad: whether the padding counts, as zeros
    Result: (N, C, *extents) laid out as `layout`, dtype of data; along each pooled axis extent = (extent + before + after - dilation * (pool_size - 1) - 1) // stride + 1, rounded up if `ceil_mode`
    """
def avg_pool2d(data: Arg, pool_size: Ints = (1, 1), strides: Ints = (1, 1), dilation: Ints = (1, 1), padding: Ints = (0, 0), layout: str = 'NCHW', out_layout: str = '', ceil_mode: bool = False, count_include_pad: bool = False) -> Call:
    """Mean over sliding windows of two axes.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any
    pool_size: the extents of the window along the pooled axes
    strides: steps of the window along each pooled axis
    dilation: distance between the elements of a window along each pooled axis
    padding: border of each pooled axis: one number, one per axis, or befores then afters
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    ceil_mode: whether a last window that does not fit whole counts too
    count_include_pad: whether the padding counts, as zeros
    Result: (N, C, *extents) laid out as `layout`, dtype of data; along each pooled axis extent = (extent + before + after - dilation * (pool_size - 1) - 1) // stride + 1, rounded up if `ceil_mode`
    """
def avg_pool2d_grad(out_grad: Arg, data: Arg, pool_size: Ints = (1, 1), strides: Ints = (1, 1), padding: Ints = (0, 0), layout: str = 'NCHW', out_layout: str = '', ceil_mode: bool = False, count_include_pad: bool = False) -> Call:
    """Each gradient is spread evenly over the elements of its window; with `count_include_pad` each gets its share of
    the whole window, also of one that `ceil_mode` lets reach beyond the padding.

    out_grad: the gradient of the pool's result; typed by data if untyped; shape that of the pool's result; dtype any
    data: what was pooled, laid out as `layout`; shape (N, C, *extents); dtype any
    pool_size: the extents of the window along the pooled axes
    strides: steps of the window along each pooled axis
    padding: border of each pooled axis: one number, one per axis, or befores then afters
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    ceil_mode: whether a last window that does not fit whole counts too
    count_include_pad: whether the padding counts, as zeros
    Result: the shape of data, and its dtype
    """
def avg_pool3d(data: Arg, pool_size: Ints = (1, 1, 1), strides: Ints = (1, 1, 1), dilation: Ints = (1, 1, 1), padding: Ints = (0, 0, 0), layout: str = 'NCDHW', out_layout: str = '', ceil_mode: bool = False, count_include_pad: bool = False) -> Call:
    """Mean over sliding windows of three axes.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any
    pool_size: the extents of the window along the pooled axes
    strides: steps of the window along each pooled axis
    dilation: distance between the elements of a window along each pooled axis
    padding: border of each pooled axis: one number, one per axis, or befores then afters
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    ceil_mode: whether a last window that does not fit whole counts too
    count_include_pad: whether the padding counts, as zeros
    Result: (N, C, *extents) laid out as `layout`, dtype of data; along each pooled axis extent = (extent + before + after - dilation * (pool_size - 1) - 1) // stride + 1, rounded up if `ceil_mode`
    """
def batch_flatten(data: Arg) -> Call:
    """All dimensions but the first merged into one: (batch, features).

    data: the tensor whose elements are taken in row-major order; shape any; dtype any
    Result: (data.shape[0], product of data.shape[1:]), of the dtype of data
    """
def batch_matmul(tensor_a: Arg, tensor_b: Arg, out_dtype: Dtype = '', transpose_a: bool = False, transpose_b: bool = True) -> Call:
    """Matrix products of two batches of matrices; a batch of 1 goes with any. Either side may be transposed.

    tensor_a: the first factors; shape (b, m, k), or (b, k, m) if `transpose_a`; dtype any but bool
    tensor_b: the second factors; shape (b, k, n), or (b, n, k) if `transpose_b`; dtype any but bool
    out_dtype: the data type of sums and result; None or empty: that of the first input
    transpose_a: whether the first factors are given transposed
    transpose_b: whether the second factors are given transposed
    Result: (b, m, n), of `out_dtype`; a batch of 1 goes with any b
    """
def batch_norm(data: Arg, gamma: Arg, beta: Arg, moving_mean: Arg, moving_var: Arg, axis: int = 1, epsilon: float = 1e-05, center: bool = True, scale: bool = True) -> TupleWrapper:
    """(data - mean) / sqrt(var + epsilon) * gamma + beta per position of `axis`, with given mean and variance
    (inference). Gives a tuple: the result, the mean, the variance.

    data: what is normalised; shape (..., C, ...), with C along `axis`; dtype floats
    gamma: the scale per position of `axis`; typed by data if untyped; shape (C,); dtype that of data
    beta: the shift per position of `axis`; typed by data if untyped; shape (C,); dtype that of data
    moving_mean: the mean per position of `axis`; typed by data if untyped; shape (C,); dtype that of data
    moving_var: the variance per position of `axis`; typed by data if untyped; shape (C,); dtype that of data
    axis: the axis along which gamma and beta lie; negative ones count from the end
    epsilon: what is added to the variance, against division by 0
    center: whether beta is added
    scale: whether the result is multiplied by gamma
    Result: a tuple: the shape of data, (C,) and (C,), all of the dtype of data
    """
def batch_to_space_nd(data: Arg, block_shape: Ints, crops: Pairs) -> Call:
    """Batches become blocks of the spatial axes 1, 2, ..., which are then cropped: the inverse of space_to_batch_nd.

    data: the blocks; shape (N, *extents, ...), N a multiple of prod(block_shape); dtype any
    block_shape: the extents of a block, one per spatial axis
    crops: (before, after) of each spatial axis: how many elements are cut from the result
    Result: (N / prod(block_shape), ..., extent * block - before - after, ...), dtype of data
    """
def bias_add(data: Arg, bias: Arg, axis: int = 1) -> Call:
    """`data` plus one number per position of `axis`; an untyped bias gets its type from `data`.

    data: what the bias is added to; shape any; dtype any
    bias: one number per position of `axis`; typed by data if untyped; shape (data.shape[axis],); dtype that of data
    axis: the axis of data along which the bias lies; negative ones count from the end
    Result: shape and dtype of data
    """
def bitpack(data: Arg, bits: int = 1, pack_axis: int = 1, bit_axis: int = 2, pack_type: Dtype = 'uint32', name: str = 'BitPack') -> Call:
    """Splits whole numbers into their lowest bits and packs each of these bits into words: one word has a bit of
    neighbours along `pack_axis`, that of the first one highest.

    data: the numbers, as many along `pack_axis` as fill words; shape any; dtype integers
    bits: how many bits each number has, 1 to 8; higher ones are not looked at
    pack_axis: the axis of data along which bits become words
    bit_axis: the axis of the result that counts the bits, lowest first; -1 puts it behind the others
    pack_type: the data type of words: uint8, uint16, uint32 or uint64; None: uint32
    name: a name, without effect
    Result: the shape of data with `pack_axis` divided by the bits of a word and a new axis of `bits`; `pack_type`
    """
def bitserial_conv2d(data: Arg, weight: Arg, strides: Ints = (1, 1), padding: Ints = (0, 0), channels: int | None = None, kernel_size: Ints = (3, 3), activation_bits: int = 1, weight_bits: int = 1, data_layout: str = 'NCHW', kernel_layout: str = 'OIHW', pack_dtype: Dtype = 'uint32', out_dtype: Dtype = 'int16', unipolar: bool = True) -> Call:
    """Two-dimensional convolution of whole numbers of few bits: the lowest bits of data, without sign, times the
    weight, whose bits may be packed. What lies behind the borders is 0.

    data: the images, laid out as `data_layout`, where C numbers fill words; shape (N, C, H, W); dtype integers
    weight: the kernels, laid out as `kernel_layout`, or what nn.bitpack makes of them with the axis of C as pack_axis and bit_axis 4; shape (O, C, KH, KW), or (O, words, KH, KW, weight_bits); dtype integers, or `pack_dtype`
    strides: steps of the window along both axes
    padding: zeros around both axes: one number, one per axis, or befores then afters
    channels: the number O of output channels; None: that of the weight
    kernel_size: the kernel's spatial extents
    activation_bits: how many bits each number of data has, 1 to 8; higher ones are not looked at
    weight_bits: how many bits each number of the weight has, 1 to 8
    data_layout: the axes of data and result, such as NHWC
    kernel_layout: the axes of the kernels, such as HWIO
    pack_dtype: the data type of words, uint8 to uint64, that inner extents fill; None: uint32
    out_dtype: the data type of sums and result; None or empty: that of data
    unipolar: whether each bit of the weight stands for 1 or -1, so that w means 2 * w + 1 - 2**weight_bits; else w
    Result: (N, O, height, width) laid out as `data_layout`, of `out_dtype`, in which sums wrap; extent = (extent + before + after - kernel) // stride + 1
    """
def bitserial_dense(data: Arg, weight: Arg, units: int | None = None, data_bits: int = 1, weight_bits: int = 1, pack_dtype: Dtype = 'uint32', out_dtype: Dtype = 'int16', unipolar: bool = True) -> Call:
    """Fully connected layer of whole numbers of few bits: the lowest bits of data, without sign, times the weight,
    whose bits may be packed.

    data: what the layer is applied to; shape (..., k), where k numbers fill words; dtype integers
    weight: one row per unit, or what nn.bitpack makes of it with pack_axis 1 and bit_axis 2; shape (units, k), or (units, words, weight_bits); dtype integers, or `pack_dtype`
    units: the number of units; None: that of the weight
    data_bits: how many bits each number of data has, 1 to 8; higher ones are not looked at
    weight_bits: how many bits each number of the weight has, 1 to 8
    pack_dtype: the data type of words, uint8 to uint64, that inner extents fill; None: uint32
    out_dtype: the data type of sums and result; None or empty: that of data
    unipolar: whether each bit of the weight stands for 1 or -1, so that w means 2 * w + 1 - 2**weight_bits; else w
    Result: (..., units), of `out_dtype`, in which sums wrap
    """
def contrib_conv2d_gemm_weight_transform(weights: Arg, tile_rows: int, tile_cols: int) -> Call:
    """The weight of a convolution as the tiles of a matrix, (KH * KW * C) x O, each of them transposed; zeros behind
    the matrix.

    weights: the kernels; shape (KH, KW, C, O); dtype any
    tile_rows: how many output channels a tile has
    tile_cols: how many elements of their kernels a tile has
    Result: (ceil(O / tile_rows), K / tile_cols, tile_rows, tile_cols), dtype of weights; K = KH * KW * C rounded up to a multiple of 4 * tile_cols
    """
def contrib_conv2d_gemm_without_weight_transform(data: Arg, weight: Arg, strides: Ints = (1, 1), padding: Ints = (0, 0), dilation: Ints = (1, 1), groups: int = 1, channels: int | None = None, kernel_size: Ints | None = None, data_layout: str = 'NCHW', kernel_layout: str = 'OIHW', out_layout: str = '', out_dtype: Dtype = '') -> Call:
    """Two-dimensional convolution of a weight that nn.contrib_conv2d_gemm_weight_transform has laid out in tiles;
    zero padding, dilation, no groups.

    data: the batch of images, laid out as `data_layout`; shape (N, C, *extents); dtype any but bool
    weight: the kernels as nn.contrib_conv2d_gemm_weight_transform lays them out; shape (at least O / tile_rows, at least KH * KW * C / tile_cols, tile_rows, tile_cols); dtype any but bool
    strides: steps of the window along each spatial axis
    padding: zeros around each spatial axis: one number, one per axis, or befores then afters
    dilation: distance between the kernel's elements along each spatial axis
    groups: into how many groups the channels split: only 1
    channels: the number O of output channels; None: as many as the tiles hold
    kernel_size: the spatial extents of the kernel before the transform; it must be given
    data_layout: the axes of data; channels may be in blocks, as in NCHW16c
    kernel_layout: the axes of the kernels before the transform; without effect
    out_layout: the axes of the result; empty: those of data
    out_dtype: the data type of sums and result; None or empty: that of data
    Result: (N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = (extent + before + after - dilation * (kernel - 1) - 1) // stride + 1
    """
def contrib_conv2d_nchwc(data: Arg, kernel: Arg, strides: Ints = (1, 1), padding: Ints = (0, 0), dilation: Ints = (1, 1), groups: int = 1, channels: int | None = None, kernel_size: Ints | None = None, data_layout: str = 'NCHW8c', kernel_layout: str = 'OIHW', out_layout: str = '', out_dtype: Dtype = '') -> Call:
    """Convolution with data in `NCHW16c` and weight in `OIHW16i16o` (any block sizes).

    data: the batch of images, laid out as `data_layout`; shape (N, C, *extents); dtype any but bool
    kernel: the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped; shape (O, C / groups, *kernel), or (C, multiplier, *kernel) if groups = C; dtype any but bool
    strides: steps of the window along each spatial axis
    padding: zeros around each spatial axis: one number, one per axis, or befores then afters
    dilation: distance between the kernel's elements along each spatial axis
    groups: into how many groups the channels split, each with kernels of its own
    channels: the number O of output channels; None: that of the weight
    kernel_size: the kernel's spatial extents; None: those of the weight
    data_layout: the axes of data; channels may be in blocks, as in NCHW16c
    kernel_layout: the axes of weight, O for output and I for input channels
    out_layout: the axes of the result; empty: those of data
    out_dtype: the data type of sums and result; None or empty: that of data
    Result: (N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = (extent + before + after - dilation * (kernel - 1) - 1) // stride + 1
    """
def contrib_conv2d_winograd_nnpack_weight_transform(weight: Arg, convolution_algorithm: int, out_dtype: Dtype = '') -> Call:
    """The weight of a convolution with kernels of 3 x 3 for tiles of 6 x 6 results, as NNPACK's points make it: 0, 1,
    -1, 2, -2, 1/2, -1/2 and infinity.

    weight: the kernels; shape (O, I, 3, 3); dtype floats
    convolution_algorithm: NNPACK's number of the algorithm: 3, or 6, which keeps half precision
    out_dtype: the data type of the result; None or empty: that of weight
    Result: (O, I, 8, 8), of `out_dtype`
    """
def contrib_conv2d_winograd_weight_transform(weight: Arg, tile_size: int) -> Call:
    """The weight of a two-dimensional convolution at the points of Winograd's algorithm: 0, -1, 1, 1/2, -2, -1/2, 2,
    ..., as many as are needed, and infinity.

    weight: the kernels; shape (O, I, KH, KW); dtype floats
    tile_size: how many neighbouring results a tile has along each axis that is transformed
    Result: (tile_size + KH - 1, tile_size + KW - 1, O, I), dtype of weight
    """
def contrib_conv2d_winograd_without_weight_transform(data: Arg, weight: Arg, tile_size: int, strides: Ints = (1, 1), padding: Ints = (0, 0), dilation: Ints = (1, 1), groups: int = 1, channels: int | None = None, kernel_size: Ints | None = None, data_layout: str = 'NCHW', kernel_layout: str = 'OIHW', out_layout: str = '', out_dtype: Dtype = '') -> Call:
    """Two-dimensional convolution by Winograd's algorithm, of a weight that
    nn.contrib_conv2d_winograd_weight_transform has transformed. Each element is computed on its own: nn.conv2d, for
    which relaylab chooses the algorithm itself, is much faster.

    data: the batch of images, laid out as `data_layout`; shape (N, C, *extents); dtype any but bool
    weight: the kernels as nn.contrib_conv2d_winograd_weight_transform makes them; typed by `channels` if untyped; shape (tile_size + KH - 1, tile_size + KW - 1, O, C); dtype floats
    tile_size: how many neighbouring results a tile has along each axis that is transformed
    strides: steps of the window along each spatial axis, which must be 1
    padding: zeros around each spatial axis: one number, one per axis, or befores then afters
    dilation: distance between the kernel's elements, which must be 1
    groups: into how many groups the channels split: only 1
    channels: the number O of output channels; None: that of the weight
    kernel_size: the spatial extents of the kernel before the transform; it must be given
    data_layout: the axes of data; channels may be in blocks, as in NCHW16c
    kernel_layout: the axes of the kernels before the transform; without effect
    out_layout: the axes of the result; empty: those of data
    out_dtype: the data type of sums and result; None or empty: that of data
    Result: (N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = (extent + before + after - dilation * (kernel - 1) - 1) // stride + 1
    """
def contrib_conv3d_winograd_weight_transform(weight: Arg, tile_size: int) -> Call:
    """The weight of a three-dimensional convolution at the points of Winograd's algorithm, those of the
    two-dimensional one; its depth is transformed only if it is 3 to 7.

    weight: the kernels; shape (O, I, KD, KH, KW); dtype floats
    tile_size: how many neighbouring results a tile has along each axis that is transformed
    Result: (tile_size + KD - 1, tile_size + KH - 1, tile_size + KW - 1, O, I) if 2 < KD < 8, else (tile_size + KH - 1, tile_size + KW - 1, KD, O, I); dtype of weight
    """
def contrib_conv3d_winograd_without_weight_transform(data: Arg, weight: Arg, tile_size: int, strides: Ints = (1, 1, 1), padding: Ints = (0, 0, 0), dilation: Ints = (1, 1, 1), groups: int = 1, channels: int | None = None, kernel_size: Ints | None = None, data_layout: str = 'NCDHW', kernel_layout: str = 'OIDHW', out_layout: str = '', out_dtype: Dtype = '') -> Call:
    """Three-dimensional convolution by Winograd's algorithm, of a weight that
    nn.contrib_conv3d_winograd_weight_transform has transformed. Each element is computed on its own: nn.conv3d is
    much faster.

    data: the batch of images, laid out as `data_layout`; shape (N, C, *extents); dtype any but bool
    weight: the kernels as nn.contrib_conv3d_winograd_weight_transform makes them; typed by `channels` if untyped; shape as that operator says, with I = C; dtype floats
    tile_size: how many neighbouring results a tile has along each axis that is transformed
    strides: steps of the window along each spatial axis, which must be 1
    padding: zeros around each spatial axis: one number, one per axis, or befores then afters
    dilation: distance between the kernel's elements, which must be 1
    groups: into how many groups the channels split: only 1
    channels: the number O of output channels; None: that of the weight
    kernel_size: the spatial extents of the kernel before the transform; it must be given
    data_layout: the axes of data; channels may be in blocks, as in NCHW16c
    kernel_layout: the axes of the kernels before the transform; without effect
    out_layout: the axes of the result; empty: those of data
    out_dtype: the data type of sums and result; None or empty: that of data
    Result: (N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = (extent + before + after - dilation * (kernel - 1) - 1) // stride + 1
    """
def contrib_dense_pack(data: Arg, weight: Arg, weight_layout: str = 'NC', units: int | None = None, out_dtype: Dtype = '') -> Call:
    """nn.dense with the weight in blocks of units: layout `NC16n` is `(units / 16, k, 16)`.

    data: what the layer is applied to; shape (m, k); dtype any but bool
    weight: the weight in blocks of units; shape (units / block, k, block); dtype any but bool
    weight_layout: the axes of weight: N for units and C for k, as in NC16n
    units: the number of units; for reading, since the weight has it
    out_dtype: the data type of sums and result; None or empty: that of the first input
    Result: (m, units), of `out_dtype`
    """
def contrib_dense_uint4(data: Arg, weight: Arg, scales: Arg, zeros: Arg, units: int, rounded: bool = False) -> Call:
    """nn.dense with a weight of 4 bits: blocks of it share a scale and a zero point, (number - zero) * scale is meant.

    An int32 of the weight holds eight numbers 0 .. 15 of one unit, the first in the lowest bits; a panel has some units
    side by side. They stay packed in memory and become floats in registers. Sums are of float32.

    With `rounded` a block of data becomes whole numbers -127 .. 127 with a scale of its own, halves to even, and the
    sums of a block are exact: faster, and what ONNX Runtime does with `accuracy_level=4`.

    data: what the layer is applied to; shape (..., k); dtype floats
    weight: the numbers, eight in a word; shape (panels, k / 8, lanes); dtype int32
    scales: the scales of the blocks; shape (panels, k / block, lanes); dtype floats
    zeros: the zero points of the blocks; shape that of scales, or (1, 1, 1) for all; dtype any but bool
    units: how many of the panels * lanes units there are
    rounded: whether each block of data is rounded to 8 bits first
    Result: (..., units), the dtype of data
    """
def contrib_depthwise_conv2d_nchwc(data: Arg, kernel: Arg, strides: Ints = (1, 1), padding: Ints = (0, 0), dilation: Ints = (1, 1), groups: int = 1, channels: int | None = None, kernel_size: Ints | None = None, data_layout: str = 'NCHW8c', kernel_layout: str = 'OIHW', out_layout: str = '', out_dtype: Dtype = '') -> Call:
    """Depthwise convolution with data in `NCHW16c` and weight in `OIHW1i16o` (any block size).

    data: the batch of images, laid out as `data_layout`; shape (N, C, *extents); dtype any but bool
    kernel: the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped; shape (O, C / groups, *kernel), or (C, multiplier, *kernel) if groups = C; dtype any but bool
    strides: steps of the window along each spatial axis
    padding: zeros around each spatial axis: one number, one per axis, or befores then afters
    dilation: distance between the kernel's elements along each spatial axis
    groups: into how many groups the channels split, each with kernels of its own
    channels: the number O of output channels; None: that of the weight
    kernel_size: the kernel's spatial extents; None: those of the weight
    data_layout: the axes of data; channels may be in blocks, as in NCHW16c
    kernel_layout: the axes of weight, O for output and I for input channels
    out_layout: the axes of the result; empty: those of data
    out_dtype: the data type of sums and result; None or empty: that of data
    Result: (N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = (extent + before + after - dilation * (kernel - 1) - 1) // stride + 1
    """
def conv1d(data: Arg, weight: Arg, strides: Ints = (1,), padding: Ints = (0, 0), dilation: Ints = (1,), groups: int = 1, channels: int | None = None, kernel_size: Ints | None = None, data_layout: str = 'NCW', kernel_layout: str = 'OIW', out_layout: str = '', out_dtype: Dtype = '') -> Call:
    """Convolution over one spatial axis: data `NCW`, weight `OIW`; zero padding, groups, dilation.

    data: the batch of images, laid out as `data_layout`; shape (N, C, *extents); dtype any but bool
    weight: the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped; shape (O, C / groups, *kernel), or (C, multiplier, *kernel) if groups = C; dtype any but bool
    strides: steps of the window along each spatial axis
    padding: zeros around each spatial axis: one number, one per axis, or befores then afters
    dilation: distance between the kernel's elements along each spatial axis
    groups: into how many groups the channels split, each with kernels of its own
    channels: the number O of output channels; None: that of the weight
    kernel_size: the kernel's spatial extents; None: those of the weight
    data_layout: the axes of data; channels may be in blocks, as in NCHW16c
    kernel_layout: the axes of weight, O for output and I for input channels
    out_layout: the axes of the result; empty: those of data
    out_dtype: the data type of sums and result; None or empty: that of data
    Result: (N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = (extent + before + after - dilation * (kernel - 1) - 1) // stride + 1
    """
def conv1d_transpose(data: Arg, weight: Arg, strides: Ints = (1,), padding: Ints = (0,), dilation: Ints = (1,), groups: int = 1, channels: int | None = None, kernel_size: Ints | None = None, data_layout: str = 'NCW', kernel_layout: str = 'OIW', out_layout: str = '', output_padding: Ints = (0,), out_dtype: Dtype = '') -> Call:
    """Transposed convolution over one axis: data `NCW`; weight (in channels, out channels / groups, width), called
    `OIW`.

    data: the batch of images, laid out as `data_layout`; shape (N, C, *extents); dtype any but bool
    weight: the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped; shape (C, O / groups, *kernel); dtype any but bool
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
    out_dtype: the data type of sums and result; None or empty: that of data
    Result: (N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = stride * (extent - 1) + dilation * (kernel - 1) + 1 - before - after + output_padding
    """
def conv2d(data: Arg, weight: Arg, strides: Ints = (1, 1), padding: Ints = (0, 0), dilation: Ints = (1, 1), groups: int = 1, channels: int | None = None, kernel_size: Ints | None = None, data_layout: str = 'NCHW', kernel_layout: str = 'OIHW', out_layout: str = '', out_dtype: Dtype = '') -> Call:
    """Convolution over two spatial axes: data `NCHW` or any other layout, weight `OIHW`; zero padding, groups,
    dilation.

    data: the batch of images, laid out as `data_layout`; shape (N, C, *extents); dtype any but bool
    weight: the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped; shape (O, C / groups, *kernel), or (C, multiplier, *kernel) if groups = C; dtype any but bool
    strides: steps of the window along each spatial axis
    padding: zeros around each spatial axis: one number, one per axis, or befores then afters
    dilation: distance between the kernel's elements along each spatial axis
    groups: into how many groups the channels split, each with kernels of its own
    channels: the number O of output channels; None: that of the weight
    kernel_size: the kernel's spatial extents; None: those of the weight
    data_layout: the axes of data; channels may be in blocks, as in NCHW16c
    kernel_layout: the axes of weight, O for output and I for input channels
    out_layout: the axes of the result; empty: those of data
    out_dtype: the data type of sums and result; None or empty: that of data
    Result: (N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = (extent + before + after - dilation * (kernel - 1) - 1) // stride + 1
    """
def conv2d_backward_weight(grad: Arg, data: Arg, strides: int | Sequence[int] = (1, 1), padding: int | Sequence[int] = (0, 0), dilation: int | Sequence[int] = (1, 1), groups: int = 1, channels: Any = None, kernel_size: int | Sequence[int] | None = None, grad_layout: str = 'NCHW', data_layout: str = 'NCHW', kernel_layout: str = 'OIHW', out_dtype: Any = '') -> Expr:
    """The gradient of conv2d with respect to its weight (of `kernel_size`), from the gradient of its result and its
    data. `data_layout` and `kernel_layout` are the convolution's; `out_layout` is that of the gradient.

    grad: the gradient of the convolution's result, laid out as `grad_layout`; shape (N, O, height, width); dtype any
    data: the convolution's data, laid out as `data_layout`; shape (N, C, H, W); dtype any but bool
    strides: steps of the window along each spatial axis
    padding: zeros around each spatial axis: one number, one per axis, or befores then afters
    dilation: distance between the kernel's elements along each spatial axis
    groups: into how many groups the channels split, each with kernels of its own
    channels: the number O of output channels; None: that of the weight
    kernel_size: the kernel's height and width; None: as large as they can be
    grad_layout: the axes of grad
    data_layout: the axes of data; channels may be in blocks, as in NCHW16c
    kernel_layout: the axes of the result, O for output and I for input channels
    out_dtype: the data type of sums and result; None or empty: that of grad
    Result: (O, C / groups, *kernel_size) laid out as `kernel_layout`, of `out_dtype`
    """
def conv2d_transpose(data: Arg, weight: Arg, strides: Ints = (1, 1), padding: Ints = (0, 0), dilation: Ints = (1, 1), groups: int = 1, channels: int | None = None, kernel_size: Ints | None = None, data_layout: str = 'NCHW', kernel_layout: str = 'IOHW', out_layout: str = '', output_padding: Ints = (0, 0), out_dtype: Dtype = '') -> Call:
    """Transposed convolution over two axes: data `NCHW`; weight `IOHW` is (in channels, out channels / groups, h,
    w).

    data: the batch of images, laid out as `data_layout`; shape (N, C, *extents); dtype any but bool
    weight: the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped; shape (C, O / groups, *kernel); dtype any but bool
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
    out_dtype: the data type of sums and result; None or empty: that of data
    Result: (N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = stride * (extent - 1) + dilation * (kernel - 1) + 1 - before - after + output_padding
    """
def conv3d(data: Arg, weight: Arg, strides: Ints = (1, 1, 1), padding: Ints = (0, 0, 0), dilation: Ints = (1, 1, 1), groups: int = 1, channels: int | None = None, kernel_size: Ints | None = None, data_layout: str = 'NCDHW', kernel_layout: str = 'OIDHW', out_layout: str = '', out_dtype: Dtype = '') -> Call:
    """Convolution over three spatial axes: data `NCDHW`, weight `OIDHW`; zero padding, groups, dilation.

    data: the batch of images, laid out as `data_layout`; shape (N, C, *extents); dtype any but bool
    weight: the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped; shape (O, C / groups, *kernel), or (C, multiplier, *kernel) if groups = C; dtype any but bool
    strides: steps of the window along each spatial axis
    padding: zeros around each spatial axis: one number, one per axis, or befores then afters
    dilation: distance between the kernel's elements along each spatial axis
    groups: into how many groups the channels split, each with kernels of its own
    channels: the number O of output channels; None: that of the weight
    kernel_size: the kernel's spatial extents; None: those of the weight
    data_layout: the axes of data; channels may be in blocks, as in NCHW16c
    kernel_layout: the axes of weight, O for output and I for input channels
    out_layout: the axes of the result; empty: those of data
    out_dtype: the data type of sums and result; None or empty: that of data
    Result: (N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = (extent + before + after - dilation * (kernel - 1) - 1) // stride + 1
    """
def conv3d_transpose(data: Arg, weight: Arg, strides: Ints = (1, 1, 1), padding: Ints = (0, 0, 0), dilation: Ints = (1, 1, 1), groups: int = 1, channels: int | None = None, kernel_size: Ints | None = None, data_layout: str = 'NCDHW', kernel_layout: str = 'OIDHW', out_layout: str = '', output_padding: Ints = (0, 0, 0), out_dtype: Dtype = '') -> Call:
    """Transposed convolution over three axes: data `NCDHW`; weight (in channels, out channels / groups, d, h, w),
    called `OIDHW`.

    data: the batch of images, laid out as `data_layout`; shape (N, C, *extents); dtype any but bool
    weight: the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped; shape (C, O / groups, *kernel); dtype any but bool
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
    out_dtype: the data type of sums and result; None or empty: that of data
    Result: (N, O, *extents) laid out as `out_layout`, of `out_dtype`; along each spatial axis extent = stride * (extent - 1) + dilation * (kernel - 1) + 1 - before - after + output_padding
    """
def correlation(data1: Arg, data2: Arg, kernel_size: int, max_displacement: int, stride1: int, stride2: int, padding: Ints, is_multiply: bool, layout: str) -> Call:
    """How patches of data1 match displaced patches of data2: products (or absolute differences) averaged over
    channels and a kernel, one output channel per displacement. Dosovitskiy et al., 2015.

    data1: the images whose patches stay in place; shape (N, C, H, W); dtype floats
    data2: the images whose patches are displaced; typed by data1 if untyped; shape that of data1; dtype that of data1
    kernel_size: the height and width of a patch, odd
    max_displacement: the largest displacement in each direction, in elements
    stride1: steps between the patches of data1
    stride2: steps between displacements
    padding: zeros around height and width: one number, one per axis, or befores then afters
    is_multiply: whether elements are multiplied; else their absolute difference is taken
    layout: the axes of data1, data2 and result: only NCHW
    Result: (N, (2 * (max_displacement // stride2) + 1)^2, height, width), dtype of data1; with border = max_displacement + (kernel_size - 1) // 2, extent = ceil((extent + before + after - 2 * border) / stride1)
    """
def cross_entropy(predictions: Arg, targets: Arg) -> Call:
    """Mean over the batch of -sum(targets * log(predictions)).

    predictions: the probabilities of the classes; shape (N, classes); dtype floats
    targets: the wanted probabilities of the classes; shape (N, classes); dtype that of predictions
    Result: (), dtype of predictions
    """
def cross_entropy_with_logits(predictions: Arg, targets: Arg) -> Call:
    """Mean over the batch of -sum(targets * predictions), for predictions that are logarithms already.

    predictions: the logarithms of the classes' probabilities; shape (N, classes); dtype floats
    targets: the wanted probabilities of the classes; shape (N, classes); dtype that of predictions
    Result: (), dtype of predictions
    """
def deformable_conv2d(data: Arg, offset: Arg, weight: Arg, strides: Ints = (1, 1), padding: Ints = (0, 0), dilation: Ints = (1, 1), deformable_groups: int = 1, groups: int = 1, channels: int | None = None, kernel_size: Ints | None = None, data_layout: str = 'NCHW', kernel_layout: str = 'OIHW', out_layout: str = '', out_dtype: Dtype = '') -> Call:
    """Convolution whose taps are moved by `offset`, (N, deformable_groups * taps * 2, H, W) with (y, x) last, and read
    bilinearly; each neighbour outside is 0.

    data: the batch of images, laid out as `data_layout`; shape (N, C, H, W); dtype floats
    offset: how far each tap moves, (y, x) last among the channels, laid out as `data_layout`; typed by data if untyped; shape (N, deformable_groups * KH * KW * 2, height, width); dtype that of data
    weight: the kernels, laid out as `kernel_layout`; typed by `channels` and `kernel_size` if untyped; shape (O, C / groups, KH, KW); dtype any but bool
    strides: steps of the window along each spatial axis
    padding: zeros around each spatial axis: one number, one per axis, or befores then afters
    dilation: distance between the kernel's elements along each spatial axis
    deformable_groups: into how many groups the channels split, each with offsets of its own
    groups: into how many groups the channels split, each with kernels of its own
    channels: the number O of output channels; None: that of the weight
    kernel_size: the kernel's spatial extents; None: those of the weight
    data_layout: the axes of data; channels may be in blocks, as in NCHW16c
    kernel_layout: the axes of weight, O for output and I for input channels
    out_layout: without effect: the axes of the result are those of data
    out_dtype: the data type of sums and result; None or empty: that of data
    Result: (N, O, height, width) laid out as `data_layout`, of `out_dtype`; along both axes extent = (extent + before + after - dilation * (kernel - 1) - 1) // stride + 1
    """
def dense(data: Arg, weight: Arg, units: int | None = None, out_dtype: Dtype = '') -> Call:
    """Fully connected layer: data `(..., k)` times the transpose of weight `(units, k)`.

    data: what the layer is applied to; shape (..., k); dtype any but bool
    weight: one row per unit; typed by `units` if untyped; shape (units, k); dtype any but bool
    units: the length of the result's last axis, which types an untyped second factor
    out_dtype: the data type of sums and result; None or empty: that of the first input
    Result: (..., units), of `out_dtype`
    """
def depth_to_space(data: Arg, block_size: int, layout: str = 'NCHW', mode: str = 'DCR') -> Call:
    """Channels become blocks of pixels. DCR: channel (y, x, c); CRD: channel (c, y, x).

    data: the batch of images, laid out as `layout`; shape (N, C, H, W); dtype any
    block_size: the height and width of a block of pixels
    layout: the axes of data and result
    mode: the order within channels: block then channel (DCR), or channel then block (CRD)
    Result: (N, C / block_size^2, H * block_size, W * block_size) laid out as `layout`, dtype of data
    """
def dilate(data: Arg, strides: Ints, dilation_value: float = 0.0) -> Call:
    """`data` with strides[k] - 1 elements of `dilation_value` put between neighbours along axis k.

    data: what is spread out; shape any; dtype any
    strides: the distance of neighbours in the result, along each axis
    dilation_value: what is put between neighbours, in the dtype of data
    Result: along each axis k extent = (data.shape[k] - 1) * strides[k] + 1; dtype of data
    """
def dropout(data: Arg, rate: float = 0.5) -> Expr:
    """Dropout as it is at inference: data as it is. Gives a tuple of data and a mask of ones; the builder returns
    the first.

    data: what stays as it is; shape any; dtype any
    rate: the share of elements that training would drop; without effect here
    Result: a tuple of two tensors with the shape and dtype of data, of which the builder returns the first
    """
def dropout_raw(data: Arg, rate: float = 0.5) -> TupleWrapper:
    """Dropout with its mask: a tuple of two."""
def fast_softmax(data: Arg, axis: int = -1) -> Call:
    """Softmax for which the exponential may be approximated; computed like nn.softmax.

    data: the tensor, whose lines along `axis` are taken one by one; shape any; dtype floats
    axis: the axis along which the function is taken; negative ones count from the end
    Result: the shape of data, and its dtype
    """
def fifo_buffer(data: Arg, buffer: Arg, axis: int = 0) -> Call:
    """The buffer moved along `axis` by as much as `data` has, with data at its end.

    data: what enters the buffer; shape that of buffer but along `axis`, where it is at most as long; dtype any
    buffer: the earlier contents, oldest first; shape any; dtype that of data
    axis: the axis along which the buffer moves; negative ones count from the end
    Result: the shape of buffer, and its dtype
    """
def global_avg_pool1d(data: Arg, layout: str = 'NCW', out_layout: str = '') -> Expr:
    """Mean over the width, which stays with extent 1."""
def global_avg_pool2d(data: Arg, layout: str = 'NCHW', out_layout: str = '') -> Call:
    """Mean over height and width, which stay with extent 1.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any; for means any but bool
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    Result: (N, C, 1, 1) laid out as `layout`, dtype of data
    """
def global_avg_pool3d(data: Arg, layout: str = 'NCDHW', out_layout: str = '') -> Expr:
    """Mean over depth, height and width, which stay with extent 1."""
def global_max_pool1d(data: Arg, layout: str = 'NCW', out_layout: str = '') -> Expr:
    """Maximum over the width, which stays with extent 1."""
def global_max_pool2d(data: Arg, layout: str = 'NCHW', out_layout: str = '') -> Call:
    """Maximum over height and width, which stay with extent 1.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any; for means any but bool
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    Result: (N, C, 1, 1) laid out as `layout`, dtype of data
    """
def global_max_pool3d(data: Arg, layout: str = 'NCDHW', out_layout: str = '') -> Expr:
    """Maximum over depth, height and width, which stay with extent 1."""
def group_norm(data: Arg, gamma: Arg, beta: Arg, num_groups: int, axis: int = 1, epsilon: float = 1e-05, center: bool = True, scale: bool = True) -> Call:
    """Mean and variance over each of `num_groups` groups of positions of `axis` and all later axes, then gamma and
    beta.

    data: what is normalised; shape (..., C, ...), with C along `axis`; dtype floats
    gamma: the scale per position of `axis`; typed by data if untyped; shape (C,); dtype that of data
    beta: the shift per position of `axis`; typed by data if untyped; shape (C,); dtype that of data
    num_groups: into how many groups the positions of `axis` split
    axis: the axis along which gamma and beta lie; negative ones count from the end
    epsilon: what is added to the variance, against division by 0
    center: whether beta is added
    scale: whether the result is multiplied by gamma
    Result: the shape of data, and its dtype
    """
def grouped_matmul(data: Arg, weight: Arg, ends: Arg) -> Call:
    """The rows of a matrix in groups, each times a matrix of its own: group g ends before row `ends[g]` and begins
    where the one before it ends. Rows behind the last group are 0.

    No matrix is copied, and none of a group without rows is read.

    data: the rows, those of a group side by side; shape (m, k); dtype floats
    weight: a matrix for each group; shape (groups, k, n); dtype that of data
    ends: how many rows the groups up to each one have, ascending; shape (groups,); dtype int32 or int64
    Result: (m, n), of the dtype of data
    """
def instance_norm(data: Arg, gamma: Arg, beta: Arg, axis: int = 1, epsilon: float = 1e-05, center: bool = True, scale: bool = True) -> Call:
    """Mean and variance over all axes but the first and `axis`, then gamma and beta.

    data: what is normalised; shape (..., C, ...), with C along `axis`; dtype floats
    gamma: the scale per position of `axis`; typed by data if untyped; shape (C,); dtype that of data
    beta: the shift per position of `axis`; typed by data if untyped; shape (C,); dtype that of data
    axis: the axis along which gamma and beta lie; negative ones count from the end
    epsilon: what is added to the variance, against division by 0
    center: whether beta is added
    scale: whether the result is multiplied by gamma
    Result: the shape of data, and its dtype
    """
def l2_normalize(data: Arg, eps: float, axis: Ints | None = None) -> Call:
    """data / sqrt(max(sum(data^2 over axes), eps)).

    data: what is normalised; shape any; dtype floats
    eps: the least sum of squares that is divided by
    axis: the axes whose squares are summed; negative ones count from the end, None: all
    Result: the shape of data, and its dtype
    """
def layer_norm(data: Arg, gamma: Arg, beta: Arg, axis: int = -1, epsilon: float = 1e-05, center: bool = True, scale: bool = True) -> Call:
    """Mean and variance over `axis`, then gamma and beta along it.

    data: what is normalised; shape (..., C, ...), with C along `axis`; dtype floats
    gamma: the scale per position of `axis`; typed by data if untyped; shape (C,); dtype that of data
    beta: the shift per position of `axis`; typed by data if untyped; shape (C,); dtype that of data
    axis: the axis along which gamma and beta lie; negative ones count from the end
    epsilon: what is added to the variance, against division by 0
    center: whether beta is added
    scale: whether the result is multiplied by gamma
    Result: the shape of data, and its dtype
    """
def leaky_relu(data: Arg, alpha: float = 0.01) -> Call:
    """Leaky rectified linear unit: x where x > 0, else alpha * x.

    data: the tensor whose elements are taken one by one; shape any; dtype floats
    alpha: the slope where data is not above 0
    Result: the shape of data, and its dtype
    """
def log_softmax(data: Arg, axis: int = -1) -> Call:
    """x - log(sum(exp(x))) along an axis, with the largest x subtracted first.

    data: the tensor, whose lines along `axis` are taken one by one; shape any; dtype floats
    axis: the axis along which the function is taken; negative ones count from the end
    Result: the shape of data, and its dtype
    """
def lrn(data: Arg, size: int = 5, axis: int = 1, bias: float = 2.0, alpha: float = 1e-05, beta: float = 0.75) -> Call:
    """Local response normalisation: data / (bias + alpha / size * sum of squares of `size` neighbours along
    axis)^beta.

    data: what is normalised; shape any; dtype floats
    size: how many neighbours are summed, the element itself among them; odd
    axis: the axis of the neighbours; negative ones count from the end
    bias: what is added to the scaled sum
    alpha: the scale of the sum of squares
    beta: the exponent of the divisor
    Result: the shape of data, and its dtype
    """
def matmul(tensor_a: Arg, tensor_b: Arg, units: int | None = None, out_dtype: Dtype = '', transpose_a: bool = False, transpose_b: bool = False) -> Call:
    """Matrix product of `(..., m, k)` and `(k, n)`; either may be transposed. `units` (n) gives an untyped weight
    its type.

    tensor_a: the first factor; shape (..., m, k), or (..., k, m) if `transpose_a`; dtype any but bool
    tensor_b: the second factor; shape (k, n), or (n, k) if `transpose_b`; dtype any but bool
    units: the length of the result's last axis, which types an untyped second factor
    out_dtype: the data type of sums and result; None or empty: that of the first input
    transpose_a: whether the first factor is given transposed
    transpose_b: whether the second factor is given transposed
    Result: (..., m, n), of `out_dtype`
    """
def max_pool1d(data: Arg, pool_size: Ints = (1,), strides: Ints = (1,), dilation: Ints = (1,), padding: Ints = (0,), layout: str = 'NCW', out_layout: str = '', ceil_mode: bool = False) -> Call:
    """Maximum over sliding windows of one axis.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any
    pool_size: the extents of the window along the pooled axes
    strides: steps of the window along each pooled axis
    dilation: distance between the elements of a window along each pooled axis
    padding: border of each pooled axis: one number, one per axis, or befores then afters
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    ceil_mode: whether a last window that does not fit whole counts too
    Result: (N, C, *extents) laid out as `layout`, dtype of data; along each pooled axis extent = (extent + before + after - dilation * (pool_size - 1) - 1) // stride + 1, rounded up if `ceil_mode`
    """
def max_pool2d(data: Arg, pool_size: Ints = (1, 1), strides: Ints = (1, 1), dilation: Ints = (1, 1), padding: Ints = (0, 0), layout: str = 'NCHW', out_layout: str = '', ceil_mode: bool = False) -> Call:
    """Maximum over sliding windows of two axes.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any
    pool_size: the extents of the window along the pooled axes
    strides: steps of the window along each pooled axis
    dilation: distance between the elements of a window along each pooled axis
    padding: border of each pooled axis: one number, one per axis, or befores then afters
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    ceil_mode: whether a last window that does not fit whole counts too
    Result: (N, C, *extents) laid out as `layout`, dtype of data; along each pooled axis extent = (extent + before + after - dilation * (pool_size - 1) - 1) // stride + 1, rounded up if `ceil_mode`
    """
def max_pool2d_grad(out_grad: Arg, data: Arg, pool_size: Ints = (1, 1), strides: Ints = (1, 1), padding: Ints = (0, 0), layout: str = 'NCHW', out_layout: str = '', ceil_mode: bool = False) -> Call:
    """Each gradient goes to the (first) largest element of its window; that of a window in the padding to none.

    out_grad: the gradient of the pool's result; typed by data if untyped; shape that of the pool's result; dtype any
    data: what was pooled, laid out as `layout`; shape (N, C, *extents); dtype any
    pool_size: the extents of the window along the pooled axes
    strides: steps of the window along each pooled axis
    padding: border of each pooled axis: one number, one per axis, or befores then afters
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    ceil_mode: whether a last window that does not fit whole counts too
    Result: the shape of data, and its dtype
    """
def max_pool3d(data: Arg, pool_size: Ints = (1, 1, 1), strides: Ints = (1, 1, 1), dilation: Ints = (1, 1, 1), padding: Ints = (0, 0, 0), layout: str = 'NCDHW', out_layout: str = '', ceil_mode: bool = False) -> Call:
    """Maximum over sliding windows of three axes.

    data: the batch of images, laid out as `layout`; shape (N, C, *extents); dtype any
    pool_size: the extents of the window along the pooled axes
    strides: steps of the window along each pooled axis
    dilation: distance between the elements of a window along each pooled axis
    padding: border of each pooled axis: one number, one per axis, or befores then afters
    layout: the axes of data; channels may be in blocks, as in NCHW16c
    out_layout: the axes of the result: those of data, or empty
    ceil_mode: whether a last window that does not fit whole counts too
    Result: (N, C, *extents) laid out as `layout`, dtype of data; along each pooled axis extent = (extent + before + after - dilation * (pool_size - 1) - 1) // stride + 1, rounded up if `ceil_mode`
    """
def mirror_pad(data: Arg, pad_width: Pairs, mode: str = 'SYMMETRIC') -> Call:
    """`data` with its mirror image added at the ends of each axis: with the edge repeated (SYMMETRIC) or not
    (REFLECT).

    data: what is padded; shape any; dtype any
    pad_width: (before, after) of each axis: how many elements are added
    mode: whether the mirror repeats the edge (SYMMETRIC) or not (REFLECT)
    Result: along each axis k extent = data.shape[k] + before + after; dtype of data
    """
def nll_loss(predictions: Arg, targets: Arg, weights: Arg, reduction: str = 'mean', ignore_index: int = -100) -> Call:
    """Negative log likelihood: -predictions[n, t, ...] * weights[t] for the class t = targets[n, ...]; classes equal to
    `ignore_index` count 0. `reduction`: "none", "sum", or "mean" (divided by the sum of the weights).

    predictions: the logarithms of the classes' probabilities; shape (N, classes, ...); dtype floats
    targets: the wanted classes; one outside stands for the nearest; shape (N, ...); dtype integers
    weights: how much each class counts; typed by predictions if untyped; shape (classes,); dtype that of predictions
    reduction: what becomes of the losses: mean (weighted), sum, or none (they stay)
    ignore_index: the target that counts nothing
    Result: (), or (N, ...) if `reduction` is none; dtype of predictions
    """
def pad(data: Arg, pad_width: Any, pad_value: Any = 0, pad_mode: str = 'constant') -> Expr:
    """`data` with pad_width[k] = (before, after) elements added along axis k: a constant, the edge, or a reflection.
    Negative widths cut (constant mode only).

    data: what is padded; shape any; dtype any
    pad_width: (before, after) of each axis: how many elements are added, or cut if negative
    pad_value: a number or an expression of one: the value of a constant border, cast to the dtype of data
    pad_mode: what the border holds: constant, edge (the nearest element) or reflect
    Result: along each axis k extent = data.shape[k] + before + after; dtype of data
    """
def prelu(data: Arg, alpha: Arg, axis: int = 1) -> Call:
    """Leaky rectified linear unit with one slope per position of `axis`: x where x > 0, else alpha[c] * x.

    data: the tensor whose elements are taken one by one; shape any; dtype any but bool
    alpha: one slope per position of `axis`; typed by data if untyped; shape (data.shape[axis],); dtype that of data
    axis: the axis of data along which the slopes lie; negative ones count from the end
    Result: the shape of data, and its dtype
    """
def relu(data: Arg) -> Call:
    """Rectified linear unit: max(x, 0).

    data: the tensor whose elements are taken one by one; shape any; dtype any
    Result: the shape of data, and its dtype
    """
def softmax(data: Arg, axis: int = -1) -> Call:
    """exp(x) / sum(exp(x)) along an axis, with the largest x subtracted first.

    data: the tensor, whose lines along `axis` are taken one by one; shape any; dtype floats
    axis: the axis along which the function is taken; negative ones count from the end
    Result: the shape of data, and its dtype
    """
def space_to_batch_nd(data: Arg, block_shape: Ints, paddings: Pairs, pad_value: float = 0.0) -> Call:
    """Blocks of the (padded) spatial axes 1, 2, ... become batches: (blocks * batch, ...).

    data: what is cut into blocks; shape (N, *extents, ...); dtype any
    block_shape: the extents of a block, one per spatial axis
    paddings: (before, after) of each spatial axis: how many elements are added before it is cut
    pad_value: what the added elements hold, in the dtype of data
    Result: (N * prod(block_shape), ..., (extent + before + after) / block, ...), dtype of data
    """
def space_to_depth(data: Arg, block_size: int, layout: str = 'NCHW') -> Call:
    """Blocks of pixels become channels. DCR: channel (y, x, c); CRD, of programs in text: channel (c, y, x).

    data: the batch of images, laid out as `layout`; shape (N, C, H, W); dtype any
    block_size: the height and width of a block of pixels
    layout: the axes of data and result
    Result: (N, C * block_size^2, H / block_size, W / block_size) laid out as `layout`, dtype of data
    """
def sparse_add(dense_mat: Arg, sparse_mat: Any) -> Expr:
    """A dense matrix plus a sparse one.

    dense_mat: expression: the dense matrix; shape (m, k); dtype that of the sparse one's data
    sparse_mat: three expressions (data, indices, indptr), or an object with these: the sparse matrix in CSR or BSR form; data (nnz,) or (blocks, rows, columns), indices (nnz,) and indptr (n + 1,) integers
    Result: the shape of dense_mat, and its dtype
    """
def sparse_conv2d(dense_mat: Arg, sparse_mat: Any, layout: str = 'NHWC', kernel_size: int = 1) -> Expr:
    """A convolution of stride 1 that keeps the size of the image, with a sparse weight.

    The weight is a matrix with a row for each channel of the result. Its columns are the taps, row by row, each with
    all channels of the image (NHWC), or the channels, each with all taps (NCHW).

    dense_mat: expression: the images, laid out as `layout`; dtype that of the sparse matrix' data
    sparse_mat: three expressions (data, indices, indptr), or an object with these: the sparse matrix in CSR or BSR form; data (nnz,) or (blocks, rows, columns), indices (nnz,) and indptr (n + 1,) integers
    layout: the layout of the images: NHWC or NCHW
    kernel_size: the extent of the kernel along both axes: odd
    Result: the shape of dense_mat with the rows of the sparse matrix as channels; dtype of dense_mat
    """
def sparse_dense(dense_mat: Arg, sparse_mat: Any, sparse_lhs: bool = False) -> Expr:
    """nn.dense with a sparse weight, or (`sparse_lhs`) sparse data: the product of the first with the other's
    transpose.

    dense_mat: expression: the dense matrix; shape (m, k); dtype that of the sparse one's data
    sparse_mat: three expressions (data, indices, indptr), or an object with these: the sparse matrix in CSR or BSR form; data (nnz,) or (blocks, rows, columns), indices (nnz,) and indptr (n + 1,) integers
    sparse_lhs: whether the sparse matrix is the first factor: sparse times dense transposed
    Result: (m, n), or (n, m) if `sparse_lhs`, for a sparse matrix of n rows; dtype of dense_mat
    """
def sparse_transpose(x: Arg) -> TupleWrapper:
    """The transpose of a square sparse matrix in CSR form: a tuple of its data, indices and indptr.

    x: three expressions (data, indices, indptr), or an object with these: a square matrix of n rows in CSR form; data (nnz,), indices (nnz,) and indptr (n + 1,) integers
    Result: a tuple: data (nnz,), indices (nnz,) and indptr (n + 1,), with the dtypes of those of x
    """
def upsampling(data: Arg, scale_h: float | Expr = 1, scale_w: float | Expr = 1, layout: str = 'NCHW', method: str = 'nearest_neighbor', align_corners: bool = False) -> Call:
    """Images enlarged by factors, by repetition (nearest_neighbor), bilinear or bicubic interpolation.

    data: the batch of signals, images or volumes, laid out as `layout`; shape (N, C, *extents); dtype any
    scale_h: the factor of the height
    scale_w: the factor of the width
    layout: the axes of data and result; channels may be in blocks, as in NCHW16c
    method: how a place between elements is read: nearest_neighbor, bilinear or bicubic
    align_corners: whether the corner elements of data and result fall together
    Result: (N, C, *round(extent * scale)) laid out as `layout`, dtype of data; halves round to even
    """
def upsampling3d(data: Arg, scale_d: float | Expr = 1, scale_h: float | Expr = 1, scale_w: float | Expr = 1, layout: str = 'NCDHW', method: str = 'nearest_neighbor', coordinate_transformation_mode: str = 'half_pixel') -> Call:
    """Volumes enlarged by factors, by repetition (nearest_neighbor) or trilinear interpolation.

    data: the batch of signals, images or volumes, laid out as `layout`; shape (N, C, *extents); dtype any
    scale_d: the factor of the depth
    scale_h: the factor of the height
    scale_w: the factor of the width
    layout: the axes of data and result; channels may be in blocks, as in NCHW16c
    method: how a place between elements is read: nearest_neighbor or trilinear
    coordinate_transformation_mode: where a position of the result lies in data: half_pixel, align_corners, asymmetric, pytorch_half_pixel or tf_half_pixel_for_nn
    Result: (N, C, *round(extent * scale)) laid out as `layout`, dtype of data; halves round to even
    """
