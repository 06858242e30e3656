"""`relay.nn`: the operators of neural networks."""

from relaylab.op.nn_act import fast_softmax, leaky_relu, log_softmax, prelu, relu, softmax
from relaylab.op.nn_block import batch_to_space_nd, depth_to_space, fifo_buffer, space_to_batch_nd, space_to_depth
from relaylab.op.nn_conv import conv1d, conv2d, conv3d
from relaylab.op.nn_conv_packed import contrib_conv2d_nchwc, contrib_depthwise_conv2d_nchwc
from relaylab.op.nn_conv_transpose import conv1d_transpose, conv2d_transpose, conv3d_transpose
from relaylab.op.nn_dense import batch_matmul, bias_add, contrib_dense_pack, dense, matmul
from relaylab.op.nn_grad import avg_pool2d_grad, max_pool2d_grad
from relaylab.op.nn_grad_weight import conv2d_backward_weight
from relaylab.op.nn_loss import cross_entropy, cross_entropy_with_logits, nll_loss
from relaylab.op.nn_norm import batch_norm, group_norm, instance_norm, layer_norm
from relaylab.op.nn_offset import correlation, deformable_conv2d
from relaylab.op.nn_pad import dilate, mirror_pad, pad
from relaylab.op.nn_pool import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from relaylab.op.nn_pool_adaptive import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    global_avg_pool1d,
    global_avg_pool2d,
    global_avg_pool3d,
    global_max_pool1d,
    global_max_pool2d,
    global_max_pool3d,
)
from relaylab.op.nn_scale import dropout, dropout_raw, l2_normalize, lrn
from relaylab.op.nn_sparse import sparse_add, sparse_dense, sparse_transpose
from relaylab.op.nn_upsampling import upsampling, upsampling3d
from relaylab.op.reshaping import batch_flatten

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool2d_grad",
    "avg_pool3d",
    "batch_flatten",
    "batch_matmul",
    "batch_norm",
    "batch_to_space_nd",
    "bias_add",
    "contrib_conv2d_nchwc",
    "contrib_dense_pack",
    "contrib_depthwise_conv2d_nchwc",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_backward_weight",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "correlation",
    "cross_entropy",
    "cross_entropy_with_logits",
    "deformable_conv2d",
    "dense",
    "depth_to_space",
    "dilate",
    "dropout",
    "dropout_raw",
    "fast_softmax",
    "fifo_buffer",
    "global_avg_pool1d",
    "global_avg_pool2d",
    "global_avg_pool3d",
    "global_max_pool1d",
    "global_max_pool2d",
    "global_max_pool3d",
    "group_norm",
    "instance_norm",
    "l2_normalize",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "lrn",
    "matmul",
    "max_pool1d",
    "max_pool2d",
    "max_pool2d_grad",
    "max_pool3d",
    "mirror_pad",
    "nll_loss",
    "pad",
    "prelu",
    "relu",
    "softmax",
    "space_to_batch_nd",
    "space_to_depth",
    "sparse_add",
    "sparse_dense",
    "sparse_transpose",
    "upsampling",
    "upsampling3d",
]
