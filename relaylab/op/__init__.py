"""The operators of Relay: one class each, all facets in it; here their builders, by the names users know."""

from relaylab.ir.op import Op
from relaylab.op import dyn, image, nn, qnn, random, vision, vm
from relaylab.op.builder import offered as _offered
from relaylab.op.nn.activation import fast_erf, fast_exp, fast_tanh
from relaylab.op.nn.matrices import cholesky, lu, solve_triangular
from relaylab.op.nn.orthogonal import one_sided_svd, qr
from relaylab.op.tensor.argwhere import argwhere, unique
from relaylab.op.tensor.binary import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    divide,
    floor_divide,
    floor_mod,
    gcd,
    left_shift,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    power,
    right_shift,
    subtract,
    trunc_divide,
    trunc_mod,
)
from relaylab.op.tensor.broadcast import broadcast_to, broadcast_to_like, collapse_sum_like, collapse_sum_to
from relaylab.op.tensor.casts import cast, cast_like, fixed_point_multiply, reinterpret
from relaylab.op.tensor.compare import equal, greater, greater_equal, less, less_equal, not_equal
from relaylab.op.tensor.composite import logsumexp, mean_std, mean_variance, reverse_reshape, segment_sum, std
from relaylab.op.tensor.create import arange, full, full_like, ndarray_size, ones, shape_of, zeros
from relaylab.op.tensor.einsum import einsum, stft
from relaylab.op.tensor.elementwise import (
    bitwise_not,
    clip,
    copy,
    isfinite,
    isinf,
    isnan,
    logical_not,
    ones_like,
    sign,
    zeros_like,
)
from relaylab.op.tensor.index_tricks import adv_index, invert_permutation, meshgrid, sliding_window, unravel_index
from relaylab.op.tensor.join import concatenate, split, stack
from relaylab.op.tensor.masks import matrix_set_diag, reverse_sequence, sequence_mask, trilu
from relaylab.op.tensor.moments import mean, variance
from relaylab.op.tensor.reduce import all, any, argmax, argmin, max, min, prod, sum
from relaylab.op.tensor.reorder import layout_transform, repeat, reverse, tile, transpose
from relaylab.op.tensor.reshaping import contrib_reverse_reshape, expand_dims, reshape, reshape_like, squeeze
from relaylab.op.tensor.scatter import cumprod, cumsum, scatter, scatter_add, scatter_nd
from relaylab.op.tensor.select import gather, gather_nd, one_hot, take, where
from relaylab.op.tensor.sorting import argsort, searchsorted, sort, topk
from relaylab.op.tensor.sparse import sparse_fill_empty_rows, sparse_reshape, sparse_to_dense
from relaylab.op.tensor.strided import slice_like, strided_set, strided_slice
from relaylab.op.tensor.unary import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    erf,
    exp,
    floor,
    log,
    log2,
    log10,
    negative,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from relaylab.op.vm import annotation, memory
from relaylab.op.vm.annotation import device_copy, on_device
from relaylab.op.vm.machine import call_lowered, debug

get = Op.get

__all__ = _offered(globals())


def __dir__() -> list[str]:
    """What is meant for others: the builders, and the modules that programs name."""
    return sorted([*__all__, "annotation", "dyn", "image", "memory", "nn", "qnn", "random", "vision", "vm"])
