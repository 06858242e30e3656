"""`relay.op.dyn`: operators whose shape arguments are tensors."""

from relaylab.op.dynamic import (
    broadcast_to,
    expand_dims,
    full,
    one_hot,
    ones,
    reshape,
    squeeze,
    strided_slice,
    tile,
    topk,
    zeros,
)
from relaylab.op.dynamic_image import pad, resize2d, upsampling, upsampling3d

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
