"""`relay.nn`: the operators of neural networks."""

from relaylab.op.builder import offered as _offered
from relaylab.op.nn.activation import fast_softmax, leaky_relu, log_softmax, prelu, relu, softmax
from relaylab.op.nn.attention import attention
from relaylab.op.nn.conv import conv1d, conv2d, conv3d
from relaylab.op.nn.conv_packed import contrib_conv2d_nchwc, contrib_depthwise_conv2d_nchwc
from relaylab.op.nn.conv_transpose import conv1d_transpose, conv2d_transpose, conv3d_transpose
from relaylab.op.nn.deformable import correlation, deformable_conv2d
from relaylab.op.nn.dense import batch_matmul, bias_add, contrib_dense_pack, dense, matmul
from relaylab.op.nn.grad import avg_pool2d_grad, max_pool2d_grad
from relaylab.op.nn.grad_weight import conv2d_backward_weight
from relaylab.op.nn.grouped import grouped_matmul
from relaylab.op.nn.loss import cross_entropy, cross_entropy_with_logits, nll_loss
from relaylab.op.nn.norm import batch_norm, group_norm, instance_norm, layer_norm
from relaylab.op.nn.pad import dilate, mirror_pad, pad
from relaylab.op.nn.pool import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from relaylab.op.nn.pool_adaptive import (
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
from relaylab.op.nn.prepared.bitserial import bitpack, bitserial_conv2d, bitserial_dense
from relaylab.op.nn.prepared.dense_uint4 import contrib_dense_uint4
from relaylab.op.nn.prepared.gemm import (
    contrib_conv2d_gemm_weight_transform,
    contrib_conv2d_gemm_without_weight_transform,
)
from relaylab.op.nn.prepared.winograd import (
    contrib_conv2d_winograd_nnpack_weight_transform,
    contrib_conv2d_winograd_weight_transform,
    contrib_conv2d_winograd_without_weight_transform,
    contrib_conv3d_winograd_weight_transform,
    contrib_conv3d_winograd_without_weight_transform,
)
from relaylab.op.nn.scale import dropout, dropout_raw, l2_normalize, lrn
from relaylab.op.nn.space_depth import batch_to_space_nd, depth_to_space, fifo_buffer, space_to_batch_nd, space_to_depth
from relaylab.op.nn.sparse import sparse_add, sparse_conv2d, sparse_dense, sparse_transpose
from relaylab.op.nn.upsampling import upsampling, upsampling3d
from relaylab.op.tensor.reshaping import batch_flatten

__all__ = _offered(globals())
