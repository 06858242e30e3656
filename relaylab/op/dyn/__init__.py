"""`relay.op.dyn`: operators whose shape arguments are tensors."""

from relaylab.op.builder import offered as _offered
from relaylab.op.dyn.operators import (
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
from relaylab.op.dyn.resize import pad, resize2d, upsampling, upsampling3d

__all__ = _offered(globals())
