"""`relay.op.dyn`: operators whose shape arguments are tensors."""

from relaylab.op.dynamic import (
    broadcast_to,
    expand_dims,
    full,
    one_hot,
    ones,
    pad,
    reshape,
    resize2d,
    squeeze,
    strided_slice,
    tile,
    topk,
    upsampling,
    upsampling3d,
    zeros,
)

__all__ = [
    "broadcast_to",
    "expand_dims",
    "full",
    "one_hot",
    "ones",
    "pad",
    "reshape",
    "resize2d",
    "squeeze",
    "strided_slice",
    "tile",
    "topk",
    "upsampling",
    "upsampling3d",
    "zeros",
]
