"""`relay.image`: operators on images."""

from relaylab.op.image_resize import resize1d, resize2d, resize3d

__all__ = ["resize1d", "resize2d", "resize3d"]
