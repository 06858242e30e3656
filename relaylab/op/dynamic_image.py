"""Padding, resizing and enlarging by amounts that tensors hold: dyn.nn.pad, dyn.image.resize2d, dyn.nn.upsampling."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from relaylab.ir.types import Any as Unknown
from relaylab.ir.types import TensorType, Type
from relaylab.op import rules
from relaylab.op.base import Dims, Dtype, Floats, Sample, op, sample
from relaylab.op.dynamic import Dynamic, unknown, vector
from relaylab.op.image_resize import resize2d as static_resize2d
from relaylab.op.nn_pad import pad as static_pad
from relaylab.op.nn_pool import positions
from relaylab.op.nn_upsampling import upsampling as static_upsampling
from relaylab.op.nn_upsampling import upsampling3d as static_upsampling3d


@op("dyn.nn.pad", inputs=("data", "pad_width", "pad_val"), level=2, attrs_key="Pad")
class pad(Dynamic):
    """Padding (see nn.pad) by widths that a (rank, 2) tensor holds."""

    pad_width: Any
    pad_mode: str = "constant"
    defaults = {"pad_width": None}
    static, values = static_pad, ("pad_width",)

    def result(self, s: Any, *types: TensorType) -> Type:
        rules.rank(s, rules.integers(s, types[1], "pad_width"), 2, "pad_width")
        return TensorType(unknown(len(types[0].shape)), types[0].dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 3), np.array([[1, 0], [0, 2]], "int64"), ()),
            sample((3,), np.array([[2, 1]], "int64"), (), pad_mode="edge"),
        ]


class DynamicImage(Dynamic):
    """Images of a size that tensors hold."""

    spatial: ClassVar[str] = "HW"

    def result(self, s: Any, *types: TensorType) -> Type:
        data = types[0]
        rules.layout(s, self.layout, "NC" + self.spatial, data)
        shape: Any = list(data.shape)
        for k in positions(self.layout, self.spatial):
            shape[k] = Unknown()
        return TensorType(shape, getattr(self, "out_dtype", None) or data.dtype)


@op("dyn.image.resize2d", inputs=("data", "size", "roi"), level=5, attrs_key="Resize2D")
class resize2d(DynamicImage):
    """Images resized (see image.resize2d) to a size that a tensor holds."""

    size: Dims | None = None
    roi: Floats | None = None
    layout: str = "NCHW"
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = "round"
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    extrapolation_value: float = 0.0
    out_dtype: Dtype = None
    static, values = static_resize2d, ("size", "roi")

    def result(self, s: Any, *types: TensorType) -> Type:
        rules.integers(s, types[1], "size")
        return super().result(s, *types)

    @classmethod
    def samples(cls) -> list[Sample]:
        roi = np.zeros(4, "float32")
        return [
            sample((1, 2, 4, 5), vector(7, 3), roi),
            sample((1, 4, 4, 2), vector(2, 8), roi, layout="NHWC", method="cubic"),
        ]


@op("dyn.nn.upsampling", inputs=("data", "scale_h", "scale_w"), level=2, attrs_key="UpSampling")
class upsampling(DynamicImage):
    """Images enlarged (see nn.upsampling) by factors that scalar tensors hold."""

    scale_h: float
    scale_w: float
    layout: str = "NCHW"
    method: str = "nearest_neighbor"
    align_corners: bool = False
    defaults = {"scale_h": 0.0, "scale_w": 0.0}
    static, values = static_upsampling, ("scale_h", "scale_w")

    def value(self, name: str, array: np.ndarray) -> Any:
        return float(array.reshape(()))

    @classmethod
    def samples(cls) -> list[Sample]:
        two, more = np.array(2, "float32"), np.array(1.5, "float32")
        return [sample((1, 2, 3, 4), two, more), sample((1, 3, 4, 2), two, two, layout="NHWC", method="bilinear")]


@op("dyn.nn.upsampling3d", inputs=("data", "scale_d", "scale_h", "scale_w"), level=2, attrs_key="UpSampling3D")
class upsampling3d(DynamicImage):
    """Volumes enlarged (see nn.upsampling3d) by factors that scalar tensors hold."""

    scale_d: float
    scale_h: float
    scale_w: float
    layout: str = "NCDHW"
    method: str = "nearest_neighbor"
    coordinate_transformation_mode: str = "half_pixel"
    defaults = {"scale_d": 0.0, "scale_h": 0.0, "scale_w": 0.0}
    static, values = static_upsampling3d, ("scale_d", "scale_h", "scale_w")
    spatial = "DHW"

    def value(self, name: str, array: np.ndarray) -> Any:
        return float(array.reshape(()))

    @classmethod
    def samples(cls) -> list[Sample]:
        two = np.array(2, "float32")
        return [sample((1, 1, 2, 3, 2), two, two, np.array(1, "float32"))]
