"""Convolutions whose channels are blocked (NCHW16c), as layout passes make them."""

from __future__ import annotations

from relaylab.op.base import Sample, op, sample
from relaylab.op.nn.conv import conv2d

_conv2d = conv2d.definition


class Packed(_conv2d):
    """A two-dimensional convolution of blocked channels; data and result may be blocked differently."""

    parameters = (
        "data kernel strides padding dilation groups channels kernel_size "
        "data_layout kernel_layout out_layout out_dtype"
    )
    defaults = {"data_layout": "NCHW8c", "out_dtype": ""}


@op("nn.contrib_conv2d_NCHWc", level=10, attrs_key="Conv2D")
class contrib_conv2d_nchwc(Packed):
    """Convolution with data in `NCHW16c` and weight in `OIHW16i16o` (any block sizes)."""

    @classmethod
    def samples(cls) -> list[Sample]:
        packed = {"data_layout": "NCHW4c", "kernel_layout": "OIHW4i2o", "out_layout": "NCHW2c"}
        return [
            sample((1, 2, 5, 4, 4), (3, 2, 3, 3, 4, 2), padding=(1, 1, 1, 1), **packed),
            sample((2, 1, 5, 5, 4), (1, 1, 1, 1, 4, 2), strides=(2, 2), **packed),
        ]


@op("nn.contrib_depthwise_conv2d_NCHWc", level=10, attrs_key="Conv2D")
class contrib_depthwise_conv2d_nchwc(Packed):
    """Depthwise convolution with data in `NCHW16c` and weight in `OIHW1i16o` (any block size)."""

    @classmethod
    def samples(cls) -> list[Sample]:
        packed = {"data_layout": "NCHW4c", "kernel_layout": "OIHW1i4o", "out_layout": "NCHW4c"}
        return [sample((1, 2, 5, 4, 4), (2, 1, 3, 3, 1, 4), groups=8, padding=(1, 1, 1, 1), **packed)]
