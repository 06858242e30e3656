"""Arguments that do not fit an operator: the message names what was given and what was expected."""

from __future__ import annotations

import re

import numpy as np
import pytest
from op_cases import infer

from relaylab.ir import OPERATORS, AnyDim, IRModule, TensorType, TupleType
from relaylab.support.errors import RelayError


def T(*shape, dtype="float32"):
    return TensorType(shape, dtype)


CASES = [
    ("add", [T(2, 3), T(2, 3, dtype="int32")], {}, "float32 and int32 do not match"),
    ("add", [T(2, 3), T(4)], {}, r"\(2, 3\).*\(4\).*cannot be broadcast"),
    ("add", [T(2), TupleType([T(2)])], {}, "`rhs` must be a tensor"),
    ("nn.relu", [TupleType([T(2)])], {}, "must be a tensor"),
    ("bitwise_and", [T(2), T(2)], {}, "`lhs` must hold integers, not float32"),
    ("bitwise_not", [T(2)], {}, "must hold integers"),
    ("sum", [T(2, 3)], {"axis": 2}, r"axis \(2,\) is out of range"),
    ("all", [T(2)], {}, "needs bools, not float32"),
    ("argmax", [T()], {}, "at least one dimension"),
    ("concatenate", [T(2)], {}, "must be a tuple of tensors"),
    ("concatenate", [TupleType([])], {}, "at least one tensor"),
    ("concatenate", [TupleType([T(2, 3), T(2, 4)])], {}, r"\(2, 3\).*\(2, 4\).*cannot be joined"),
    ("concatenate", [TupleType([T(2, 3), T(2, 3)])], {"axis": 2}, "axis of concatenate 2 is out of range for 2"),
    ("stack", [TupleType([T(2), T(3)])], {}, "cannot be joined"),
    ("split", [T(5)], {"indices_or_sections": 2}, "5 elements .* do not split into 2"),
    ("split", [T(5)], {"indices_or_sections": (3, 2)}, "must rise from 0 to 5"),
    ("reshape", [T(2, 3)], {"newshape": (4, 2)}, r"\(2, 3\) cannot be reshaped to \(4, 2\): 6 elements"),
    ("reshape", [T(2, 3)], {"newshape": (-1, -1)}, "-1 may occur once"),
    ("reshape", [T(2, 3)], {"newshape": (6, 0, 0)}, "not that many dimensions"),
    ("reshape", [T(2, 3)], {"newshape": (-5,)}, "no code -5"),
    ("squeeze", [T(2, 1)], {"axis": 0}, "axis 0 of .* cannot be squeezed"),
    ("squeeze", [T(AnyDim(), 1)], {}, "squeeze needs `axis`"),
    ("expand_dims", [T(2)], {"axis": 3}, "axis 3 of expand_dims is out of range"),
    ("transpose", [T(2, 3)], {"axes": (0, 0)}, "must name each axis .* once"),
    ("transpose", [T(2, 3)], {"axes": (0,)}, "must name each axis"),
    ("broadcast_to", [T(2, 3)], {"shape": (2, 2)}, "cannot be broadcast to"),
    ("broadcast_to", [T(2, 3)], {"shape": (3,)}, "cannot be broadcast to"),
    ("strided_slice", [T(4)], {"begin": (0,), "end": (4,), "strides": (0,)}, "cannot be 0"),
    ("strided_slice", [T(4)], {"begin": (0, 0), "end": (4, 4), "strides": (1,)}, "2 begins"),
    ("take", [T(4), T(2)], {"axis": 0}, "`indices` must hold integers"),
    ("take", [T(4), T(2, dtype="int32")], {"axis": 1}, "axis of take 1"),
    ("take", [T(0, 3), T(2, dtype="int32")], {"axis": 0}, "axis 0 of .* has no elements that .* could choose from"),
    ("take", [T(0, 3), T(dtype="int32")], {}, "has no elements"),
    ("gather", [T(0, 3), T(1, 3, dtype="int64")], {"axis": 0}, "axis 0 of .* has no elements"),
    ("gather_nd", [T(4), T(2, 3, dtype="int32")], {}, "2 coordinates are too many"),
    ("scatter", [T(0, 3), T(2, 3, dtype="int32"), T(2, 3)], {"axis": 0}, "axis 0 of .* has no elements"),
    ("scatter_nd", [T(0, 3), T(1, 2, dtype="int32"), T(2, 3)], {"mode": "add"}, "has no elements"),
    ("nn.nll_loss", [T(4, 0), T(4, dtype="int32"), T(0)], {"ignore_index": 0}, "has no elements"),
    ("nn.sparse_transpose", [T(4), T(4, dtype="int32"), T(1, dtype="int32")], {}, "no rows"),
    ("gather_nd", [T(4), T(0, 3, dtype="int32")], {}, "at least one coordinate"),
    ("adv_index", [TupleType([T(0, 4), T(2, dtype="int32")])], {}, "has no elements"),
    ("gather_nd", [T(3, 0), T(2, 5, dtype="int32")], {}, "has no elements"),
    ("one_hot", [T(2, dtype="int32"), T(0), T()], {"depth": 3}, "`on_value` must be a scalar"),
    ("sparse_to_dense", [T(3, 2, dtype="int32"), T(3), T(0)], {"output_shape": (3, 4)}, "`default_value` must be a sc"),
    ("nn.sparse_transpose", [T(4), T(4, dtype="int32"), T(0, dtype="int32")], {}, "one element more than there are"),
    ("nn.pad", [T(4, 5), T()], {"pad_width": ((0, -1), (0, 0)), "pad_mode": "edge"}, "only a constant border can be c"),
    ("layout_transform", [T(1, 6, 2, 2)], {"src_layout": "NCHW", "dst_layout": "NCHW4c"}, "4 does not divide"),
    ("auto_scheduler_layout_transform", [T(6)], {"src_layout": "6C", "dst_layout": "C"}, "`C` is not a layout with"),
    ("auto_scheduler_layout_transform", [T(6)], {"src_layout": "6C", "dst_layout": "4C2c"}, "must be split as a whole"),
    ("auto_scheduler_layout_transform", [T(6)], {"src_layout": "6C", "dst_layout": "6C1N"}, "must be split as a whole"),
    ("auto_scheduler_layout_transform", [T(7)], {"src_layout": "6C", "dst_layout": "6C"}, "7 and 6 differ"),
    ("layout_transform", [T(1, 6, 2)], {"src_layout": "NCHW", "dst_layout": "NHWC"}, "has 3 dimensions"),
    ("nn.dense", [T(2, 3), T(4, 5)], {"units": 4}, "inner dimensions"),
    ("nn.dense", [T(2, 3), T(4, 3)], {"units": 5}, "units=5, but its weight"),
    ("nn.dense", [T(2, 3), T(3)], {"units": None}, "must have 2 dimensions"),
    ("nn.batch_matmul", [T(2, 3, 4), T(3, 3, 4)], {}, "cannot be multiplied"),
    ("nn.batch_matmul", [T(2, 3, 4), T(2, 3)], {}, "`tensor_b` must have 3 dimensions"),
    ("nn.bias_add", [T(2, 3), T(3)], {"axis": 2}, "The axis in bias_add must be in range for the shape"),
    ("nn.bias_add", [T(2, 3), T(4)], {}, "do not match"),
    ("nn.softmax", [T(2)], {"axis": 1}, "axis of nn.softmax 1 is out of range"),
    ("nn.batch_norm", [T(2, 3)] + [T(3)] * 4, {"axis": -2}, "axis -2 of nn.batch_norm"),
    ("nn.conv2d", [T(1, 3, 8, 8), T(4, 2, 3, 3)], {}, "reads 2 channels, but .* has 3"),
    ("nn.conv2d", [T(1, 3, 8, 8), T(4, 3, 3, 3)], {"channels": 5}, "channels=5, but the weight"),
    ("nn.conv2d", [T(1, 3, 8, 8), T(4, 3, 3, 3)], {"kernel_size": (5, 5)}, r"kernel_size=\[5, 5\]"),
    ("nn.conv2d", [T(1, 3, 8), T(4, 3, 3, 3)], {}, "layout NCHW, but .* has 3 dimensions"),
    ("nn.conv2d", [T(1, 3, 2, 2), T(4, 3, 3, 3)], {}, "does not fit into 2 elements"),
    ("nn.conv2d", [T(1, 3, 8, 8), T(4, 3, 3, 3)], {"data_layout": "NCW"}, "must have the axes N C H W"),
    ("nn.conv2d", [T(1, 3, 8, 8), T(4, 3, 3, 3)], {"strides": (0, 1)}, "`strides` must be 2 positive values"),
    ("nn.conv2d_transpose", [T(1, 3, 8, 8), T(4, 2, 3, 3)], {"kernel_layout": "IOHW"}, "reads 4 channels"),
    ("nn.max_pool2d", [T(1, 3, 8, 8)], {"pool_size": (9, 9)}, "window of 9"),
    ("nn.pad", [T(2, 3), T()], {"pad_width": ((1, 1),)}, "for each dimension"),
    ("nn.pad", [T(2), T()], {"pad_width": ((1, 1),), "pad_mode": "wrap"}, "pad_mode must be one of"),
    ("where", [T(2, dtype="bool"), T(2), T(2, dtype="int8")], {}, "float32 and int8 do not match"),
    ("one_hot", [T(2), T(), T()], {"depth": 3}, "`indices` must hold integers"),
    ("topk", [T(3)], {"k": 5}, "k = 5 elements are more than"),
    ("full", [T(2)], {"shape": (2,)}, "must be a scalar"),
    ("image.resize2d", [T(1, 2, 3, 3)], {"size": (0, 4)}, "2 positive values"),
    ("image.resize2d", [T(1, 2, 3, 3)], {"size": (4, 4), "method": "magic"}, 'method "magic" .* is not known'),
    ("subtract", [T(2, dtype="bool"), T(2, dtype="bool")], {}, "`lhs` must hold numbers, not bools"),
    ("negative", [T(2, dtype="bool")], {}, "`data` must hold numbers, not bools"),
    ("exp", [T(2, dtype="bool")], {}, "must hold numbers"),
    ("left_shift", [T(2, dtype="bool"), T(2, dtype="bool")], {}, "must hold integers, not bool"),
    ("nn.softmax", [T(2, 3, dtype="int32")], {}, "`data` must hold floats, not int32"),
    ("nn.batch_norm", [T(2, 3, dtype="int8")] + [T(3, dtype="int8")] * 4, {}, "must hold floats, not int8"),
    ("nn.layer_norm", [T(2, 3, dtype="int8"), T(3, dtype="int8"), T(3, dtype="int8")], {}, "must hold floats"),
    ("nn.lrn", [T(1, 2, 3, 3, dtype="int32")], {}, "must hold floats"),
    ("nn.leaky_relu", [T(3, dtype="int32")], {}, "must hold floats"),
    ("nn.cross_entropy", [T(2, 3, dtype="int32"), T(2, 3, dtype="int32")], {}, "`predictions` must hold floats"),
    ("nn.avg_pool2d", [T(1, 1, 2, 2, dtype="bool")], {"pool_size": (1, 1)}, "must hold numbers"),
    ("nn.max_pool2d_grad", [T(1, 1, 2, 2, dtype="bool")] * 2, {"pool_size": (1, 1)}, "must hold numbers"),
    ("nn.dense", [T(2, 3), T(4, 3)], {"units": 4, "out_dtype": "int32"}, "float32 cannot be summed in int32"),
    ("nn.dense", [T(2, 3, dtype="int8"), T(4, 3)], {"units": 4}, "float32 cannot be summed in int8"),
    ("nn.conv2d", [T(1, 1, 3, 3, dtype="bool"), T(1, 1, 3, 3, dtype="bool")], {}, "cannot be summed in bool"),
    (
        "sequence_mask",
        [T(2, 3, dtype="uint8"), T(3, dtype="int32")],
        {"mask_value": -1.0},
        r"-1.0 is not a value of uint8",
    ),
    ("qnn.add", [T(2)] * 2 + [T(), T(dtype="int32")] * 3, {}, "`lhs` must hold integers"),
    ("qnn.quantize", [T(2), T(), T(dtype="int32")], {"out_dtype": "float32"}, "must hold integers"),
    (
        "qnn.dense",
        [T(2, 3, dtype="int8"), T(2, 3, dtype="int8"), T(dtype="int8"), T(dtype="int32"), T(), T()],
        {"units": 2, "out_dtype": "int32"},
        "`input_zero_point` must be a scalar or a vector of int32",
    ),
    ("qnn.dequantize", [T(2, 7, dtype="int8"), T(3), T(dtype="int32")], {}, r"`input_scale` and axis -1 of .*\(2, 7\)"),
    (
        "qnn.quantize",
        [T(), T(3), T(3, dtype="int32")],
        {"out_dtype": "int8"},
        "the axis of `output_scale` -1 is out of range",
    ),
    (
        "qnn.dense",
        [T(2, 3, dtype="int8"), T(2, 3, dtype="int8"), T(2, dtype="int32"), T(dtype="int32"), T(), T()],
        {"units": 2, "out_dtype": "int32"},
        "`input_zero_point` must be a scalar",
    ),
    (
        "qnn.dense",
        [T(2, 3, dtype="int8"), T(2, 3, dtype="int8"), T(dtype="int32"), T(dtype="int32"), T(), T()],
        {"units": 2, "out_dtype": "int16"},
        "the result of qnn.dense is int32",
    ),
    (
        "layout_transform",
        [T(1, 2, 3, 3, 5)],
        {"src_layout": "NCHW4c", "dst_layout": "NCHW"},
        "the blocks of C .* have 5",
    ),
    (
        "nn.conv2d",
        [T(1, 2, 4, 4, 2), T(2, 2, 3, 3, 2, 7)],
        {"data_layout": "NCHW2c", "kernel_layout": "OIHW2i4o"},
        "blocks of O",
    ),
    ("nn.conv1d_transpose", [T(1, 3, 0), T(3, 2, 3)], {}, "nothing to enlarge along W"),
    (
        "nn.conv2d_backward_weight",
        [T(1, 3, 3, 3), T(1, 2, 4, 4)],
        {"kernel_size": (2, 2), "groups": 2},
        "output channels do not split",
    ),
    ("nn.conv2d_backward_weight", [T(1, 2, 8, 8), T(1, 2, 4, 4)], {"kernel_size": (2, 2)}, "does not make .* along H"),
    ("nn.group_norm", [T(2, 0, 3), T(0), T(0)], {"num_groups": 2}, "0 channels do not split"),
    (
        "nn.sparse_add",
        [T(5, 4), T(4), T(4, dtype="int32"), T(4, dtype="int32")],
        {},
        "the rows of .* and those that sparse_indptr",
    ),
    ("nn.sparse_dense", [T(3, 5), T(3, 2, 2), T(3, dtype="int32"), T(3, dtype="int32")], {}, "5 columns do not split"),
    ("nn.sparse_dense", [T(3, 5), T(3, 0, 1), T(3, dtype="int32"), T(3, dtype="int32")], {}, "have no elements"),
    (
        "sparse_to_dense",
        [T(3, 2, dtype="int32"), T(5), T()],
        {"output_shape": (3, 4)},
        "the numbers of sparse_indices and sparse_values",
    ),
    ("random.multinomial", [T(10, dtype="uint64"), T(0)], {}, "nothing to choose from"),
    ("stft", [T(1, 8), T(2)], {"n_fft": 4, "hop_length": 2, "win_length": 4}, "win_length = 4 must be"),
    ("nn.pad", [T(3, 0), T()], {"pad_width": ((0, 0), (1, 1)), "pad_mode": "edge"}, "nothing to repeat"),
    ("nn.mirror_pad", [T(0, 3)], {"pad_width": ((1, 1), (0, 0))}, "nothing to repeat"),
    ("vision.multibox_prior", [T(1, 3, 0, 2)], {}, "no cells"),
    (
        "vision.non_max_suppression",
        [T(1, 2, 6), T(1), T(1, 2, dtype="int32"), T(dtype="int32"), T()],
        {},
        "`valid_count` must hold integers",
    ),
    ("dyn.nn.pad", [T(2, 3), T(2, 2), T()], {}, "`pad_width` must hold integers"),
    ("mean", [T(3, dtype="bool")], {}, "must hold numbers"),
    ("stft", [T(1, 8, dtype="int16"), T(4)], {"n_fft": 4, "hop_length": 2, "win_length": 4}, "must hold floats"),
    ("vision.get_valid_counts", [T(1, 2, 6, dtype="uint8"), T()], {}, "must hold floats"),
    ("nn.sparse_dense", [T(2, 5, dtype="float64"), T(4), T(4, dtype="int32"), T(4, dtype="int32")], {}, "do not match"),
    ("scatter_nd", [T(2, 2), T(1, 3, dtype="int32"), T(3, 3)], {"mode": "update"}, r"must have the shape \(3, 2\)"),
    ("nn.conv2d", [T(1, 2, 5, 5), T(3, 2, 2, 2)], {"padding": (-1, 0)}, "padding cannot be negative"),
    ("nn.avg_pool1d", [T(1, 2, 5)], {"pool_size": (2,), "padding": (0, -1)}, "padding cannot be negative"),
    ("nn.conv1d_transpose", [T(1, 3, 4), T(3, 2, 3)], {"padding": (-1, 0)}, "`padding` must be 2 values from 0 on"),
    ("nn.conv1d_transpose", [T(1, 3, 4), T(3, 2, 3)], {"output_padding": (-1,)}, "`output_padding` must be 1 values"),
    ("nn.conv1d_transpose", [T(1, 3, 4), T(3, 2, 3)], {"output_padding": (0, 1)}, "`output_padding` must be 1 values"),
    ("nn.conv2d_backward_weight", [T(1, 4, 3, 3), T(1, 2, 4, 4)], {"groups": 0}, "`groups` must be at least 1"),
    ("nn.deformable_conv2d", [T(1, 4, 3, 3), T(1, 2, 3, 3), T(2, 4, 1, 1)], {"deformable_groups": 0}, "at least 1"),
    ("nn.correlation", [T(1, 2, 5, 5)] * 2, {"stride2": 0}, "`stride2` must be at least 1"),
    ("nn.correlation", [T(1, 2, 5, 5)] * 2, {"max_displacement": -1}, "`max_displacement` must be"),
    ("nn.mirror_pad", [T(4)], {"pad_width": ((-1, 1),)}, "only a constant border can be cut"),
    ("nn.space_to_batch_nd", [T(2, 4, 3)], {"block_shape": (0,), "paddings": ((0, 0),)}, "`block_shape` must be 1 pos"),
    ("nn.space_to_batch_nd", [T(2, 4, 3)], {"block_shape": (2,), "paddings": ((-2, 0),)}, "`paddings` .* are not"),
    ("nn.batch_to_space_nd", [T(2, 4, 3)], {"block_shape": (2,), "crops": ((-1, 0),)}, "`crops` .* are not 1 pairs"),
    ("nn.batch_to_space_nd", [T(2, 4, 3)], {"block_shape": (2,), "crops": ((1, 8),)}, "cut more from"),
    ("nn.upsampling", [T(1, 2, 3, 3)], {"scale_h": 0.0, "scale_w": 2.0}, "leaves nothing of"),
    ("nn.lrn", [T(1, 5, 2, 2)], {"size": 4}, "`size` of nn.lrn must be odd"),
    ("nn.prelu", [T(1, 2, dtype="bool"), T(2, dtype="bool")], {}, "must hold numbers"),
    ("nn.sparse_transpose", [T(2, 2, 1), T(2, dtype="int32"), T(3, dtype="int32")], {}, "must have 1 dimensions"),
    ("searchsorted", [T(), T(2)], {}, "must have rank 1"),
    ("einsum", [TupleType([T(3)])], {"equation": "i->ii"}, "names axes twice"),
    ("einsum", [TupleType([T(3)])], {"equation": "é->é"}, "does not fit 1 dimensions"),
    ("dyn.strided_slice", [T(2, 3), *[T(1, dtype="int64")] * 3], {"axes": (5,)}, "is out of range for"),
    ("vision.roi_align", [T(1, 2, 5, 5), T(1, 5)], {"pooled_size": (2,), "spatial_scale": 1.0}, "must be 2 positive"),
    ("image.crop_and_resize", [T(1, 2, 5, 5), T(1, 4), T(1, dtype="int32")], {"crop_size": (2,)}, "must be 2 positive"),
    ("image.affine_grid", [T(1, 2, 3)], {"target_shape": (2,)}, "must be 2 positive"),
    ("image.dilation2d", [T(1, 2, 5, 6), T(2, 3, 2)], {"strides": (0, 1)}, "`strides` must be 2 positive"),
    ("image.dilation2d", [T(1, 2, 5, 6), T(2, 3, 2)], {"dilations": (1, -1)}, "`dilations` must be 2 positive"),
    ("image.resize1d", [T(1, 2, 5)], {"size": (3,), "roi": (0.0,), "layout": "NCW"}, "must be 2 numbers"),
    (
        "nn.contrib_conv2d_gemm_without_weight_transform",
        [T(1, 5, 6, 2), T(2, 8, 4, 3)],
        {"channels": -1, "kernel_size": (3, 3), "data_layout": "NHWC", "kernel_layout": "HWIO"},
        "`channels` must be at least 0",
    ),
    ("nn.conv2d_backward_weight", [T(1, 4, 3, 3), T(1, 2, 4, 4)], {"kernel_size": ()}, "`kernel_size` must be 2 pos"),
    ("nn.upsampling", [T(1, 2, 3, 3)], {"scale_h": float("nan"), "scale_w": 2.0}, "must be numbers"),
    ("qnn.leaky_relu", [T(3, dtype="int8"), *[T(), T(dtype="int32")] * 2], {"alpha": float("inf")}, "must be a number"),
    ("vision.multibox_prior", [T(1, 3, 2, 2)], {"ratios": (1.0, 0.0)}, "ratios above 0"),
    ("vision.multibox_prior", [T(1, 3, 2, 2)], {"steps": (0.5,)}, "two steps"),
    ("vision.multibox_transform_loc", [T(1, 2, 3), T(1, 12), T(1, 3, 4)], {"variances": (1.0,)}, "must be 4 numbers"),
    ("vision.get_valid_counts", [T(1, 2, 6), T()], {"score_index": -1}, "no column -1"),
    (
        "vision.proposal",
        [T(1, 2, 3, 4), T(1, 4, 3, 4), T(1, 3)],
        {"scales": (8.0,), "ratios": (1.0,), "rpn_post_nms_top_n": -1},
        "a number of boxes from 0 on",
    ),
    ("clip", [T(3, dtype="int32")], {"a_min": float("nan"), "a_max": 1.0}, "int32 cannot be limited to nan"),
]


@pytest.mark.parametrize("name, types, attrs, message", CASES, ids=[f"{c[0]}-{k}" for k, c in enumerate(CASES)])
def test_misfits_are_explained(name, types, attrs, message):
    with pytest.raises(RelayError) as caught:
        infer(OPERATORS[name].definition(**attrs), *types)
    assert re.search(message, str(caught.value)), str(caught.value)


def test_untyped_weight_of_a_grouped_convolution_is_refused():
    from relaylab.ir import IncompleteType

    record = OPERATORS["nn.conv2d"].definition(groups=2, channels=4, kernel_size=(3, 3))
    with pytest.raises(RelayError, match="Weight shape must be specified when groups is greater than 1."):
        infer(record, T(1, 4, 8, 8), IncompleteType())


@pytest.mark.parametrize(
    "value, begin, end, strides, message",
    [
        ((3, 3), [0, 0], [2, 2], [1], r"the slice has the shape \(2, 2\)"),
        ((2, 4), [-2], [9], [2], r"the slice has the shape \(1, 4\)"),
        ((3, 3), [0, 0], [3, 3], [0, 1], "a stride cannot be 0"),
        ((3, 3), [0, 0, 0], [3, 3, 3], [1], "`begin` has 3 elements"),
    ],
)
def test_a_slice_of_constant_limits_is_looked_at(value, begin, end, strides, message):
    from relaylab import relay

    data, v = relay.var("d", shape=(4, 4)), relay.var("v", shape=value)
    with pytest.raises(RelayError, match=message):
        relay.transform.InferTypeLocal(relay.strided_set(data, v, begin, end, strides))


def test_limits_that_only_a_run_knows_are_looked_at_before_the_slice():
    from relaylab import relay

    data, v = relay.var("d", shape=(4, 4)), relay.var("v", shape=(2, 2))
    with pytest.raises(RelayError, match="`end` has 3 elements"):
        ends = [relay.var(n, TensorType((k,), "int32")) for n, k in (("b", 2), ("e", 3), ("s", 1))]
        relay.transform.InferTypeLocal(relay.strided_set(data, v, *ends))
    limits = [relay.var(n, TensorType((2,), "int32")) for n in "bes"]
    func = relay.Function([data, v, *limits], relay.strided_set(data, v, *limits))
    run = relay.create_executor("debug", mod=IRModule.from_expr(func)).evaluate()
    with pytest.raises(RelayError, match="cut no slice"):
        run(np.zeros((4, 4), "f"), np.zeros((2, 2), "f"), *(np.array(x, "int32") for x in ([0, 0], [2, 2], [0, 1])))


def test_a_slice_of_constant_limits_that_fits_is_taken():
    from relaylab import relay

    data, v = relay.var("d", shape=(4, 4)), relay.var("v", shape=(2, 4))
    found = relay.transform.InferTypeLocal(relay.strided_set(data, v, [-1], [0], [-2]))
    assert found == relay.TensorType((4, 4), "float32")
