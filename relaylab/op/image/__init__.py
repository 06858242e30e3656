"""`relay.image`: operators on images."""

from relaylab.op.image.crop import crop_and_resize, dilation2d
from relaylab.op.image.resize import resize1d, resize2d, resize3d
from relaylab.op.image.sample import affine_grid, grid_sample

__all__ = ["affine_grid", "crop_and_resize", "dilation2d", "grid_sample", "resize1d", "resize2d", "resize3d"]
