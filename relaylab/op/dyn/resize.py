"""Padding, resizing and enlarging by amounts that tensors hold: dyn.nn.pad, dyn.image.resize2d, dyn.nn.upsampling."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from relaylab.ir.types import AnyDim, IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dims, Dtype, Floats, Input, Sample, Value, arg, attr, op, sample
from relaylab.op.dyn.operators import Dynamic, unknown, vector
from relaylab.op.helpers import TypeSolver
from relaylab.op.image.resize import resize2d as static_resize2d
from relaylab.op.nn.pad import pad as static_pad
from relaylab.op.nn.pool import positions
from relaylab.op.nn.upsampling import upsampling as static_upsampling
from relaylab.op.nn.upsampling import upsampling3d as static_upsampling3d


@op("dyn.nn.pad", inputs=("data", "pad_width", "pad_val"), level=2, attrs_key="Pad")
class pad(Dynamic):
    """Padding (see nn.pad) by widths that a (rank, 2) tensor holds."""

    pad_val: Input = arg("what stands around with pad_mode constant", "() or ones", "that of data")
    yields = "(?, ...) of the rank of data, of its dtype"
    source = "numpy.pad; ONNX Pad"

    pad_width: Value = attr(doc="how many elements before and after each axis, as integers (rank, 2)")
    pad_mode: str = attr("constant", "what stands around: constant (pad_val), edge (the nearest element) or reflect")
    defaults = {"pad_width": None}
    static, values = static_pad, ("pad_width",)

    def result_type(self, s: TypeSolver, *types: TensorType) -> Type:
        width = rules.rank(s, rules.integers(s, types[1], "pad_width"), 2, "pad_width")
        rules.equal_dims(
            s, width.shape[0], IntImm(len(types[0].shape)), f"`pad_width` and the rank of {type_text(types[0])}"
        )
        rules.equal_dims(s, width.shape[1], IntImm(2), "the columns of `pad_width`")
        return TensorType(unknown(len(types[0].shape)), types[0].dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 3), np.array([[1, 0], [0, 2]], "int64"), ()),
            sample((3,), np.array([[2, 1]], "int64"), (), pad_mode="edge"),
        ]


class DynamicImage(Dynamic):
    """Images of a size that tensors hold."""

    yields = "data.shape with ? along the spatial axes, of the dtype of data"

    layout: str = attr("NCHW", "the axes of data, N for the batch, C for channels, the others spatial")
    spatial: ClassVar[str] = "HW"

    def result_type(self, s: TypeSolver, *types: TensorType) -> Type:
        data = types[0]
        rules.layout(s, self.layout, "NC" + self.spatial, data)
        shape: Any = list(data.shape)
        for k in positions(self.layout, self.spatial):
            shape[k] = AnyDim()
        return TensorType(shape, getattr(self, "out_dtype", None) or data.dtype)


@op("dyn.image.resize2d", inputs=("data", "size", "roi"), level=5, attrs_key="Resize2D")
class resize2d(DynamicImage):
    """Images resized (see image.resize2d) to a size that a tensor holds."""

    yields = "data.shape with ? along H and W, of `out_dtype`"
    source = "ONNX Resize; Keys, Cubic convolution interpolation for digital image processing, 1981"

    size: Dims | None = attr(None, "the height and width of the result, as a vector of two integers")
    roi: Floats | None = attr(
        None, "the region that is resized: y0, x0, y1, x1 as parts of the extents, for tf_crop_and_resize"
    )
    layout: str = attr("NCHW", "the axes of data: N for the batch, C for channels, H and W")
    method: str = attr("linear", "how elements are made: nearest_neighbor, linear or cubic")
    coordinate_transformation_mode: str = attr(
        "half_pixel", "how positions of the result map to those of data, as in image.resize2d"
    )
    rounding_method: str = attr("round", "how nearest_neighbor rounds a position, as in image.resize2d")
    cubic_alpha: float = attr(-0.5, "the parameter a of cubic interpolation")
    cubic_exclude: int = attr(0, "whether weights of positions outside are 0 and the others scaled up")
    extrapolation_value: float = attr(0.0, "what stands outside, for tf_crop_and_resize")
    out_dtype: Dtype = attr(None, "the data type of the result; None: that of data")
    static, values = static_resize2d, ("size", "roi")

    def result_type(self, s: TypeSolver, *types: TensorType) -> Type:
        rules.integers(s, types[1], "size")
        for t, name, count in zip(types[1:], self.values, (2, 4)):
            rules.equal_dims(s, rules.rank(s, t, 1, name).shape[0], IntImm(count), f"the length of `{name}`")
        return super().result_type(s, *types)

    @classmethod
    def samples(cls) -> list[Sample]:
        roi = np.zeros(4, "float32")
        return [
            sample((1, 2, 4, 5), vector(7, 3), roi),
            sample((1, 4, 4, 2), vector(2, 8), roi, layout="NHWC", method="cubic"),
        ]


class DynamicScales(DynamicImage):
    """Images enlarged by factors that scalar tensors hold."""

    source = "ONNX Resize"

    def result_type(self, s: TypeSolver, *types: TensorType) -> Type:
        for t, name in zip(types[1:], self.values):
            rules.scalar(s, t, name)
        return super().result_type(s, *types)

    def value(self, name: str, array: np.ndarray) -> Any:
        return float(array.reshape(()))


@op("dyn.nn.upsampling", inputs=("data", "scale_h", "scale_w"), level=2, attrs_key="UpSampling")
class upsampling(DynamicScales):
    """Images enlarged (see nn.upsampling) by factors that scalar tensors hold."""

    scale_h: float = attr(doc="the factor of the height, as a scalar")
    scale_w: float = attr(doc="the factor of the width, as a scalar")
    layout: str = attr("NCHW", "the axes of data: N for the batch, C for channels, H and W")
    method: str = attr("nearest_neighbor", "how elements are made: nearest_neighbor, bilinear or bicubic")
    align_corners: bool = attr(False, "whether the corners of data and result coincide")
    defaults = {"scale_h": 0.0, "scale_w": 0.0}
    static, values = static_upsampling, ("scale_h", "scale_w")

    @classmethod
    def samples(cls) -> list[Sample]:
        two, more = np.array(2, "float32"), np.array(1.5, "float32")
        return [sample((1, 2, 3, 4), two, more), sample((1, 3, 4, 2), two, two, layout="NHWC", method="bilinear")]


@op("dyn.nn.upsampling3d", inputs=("data", "scale_d", "scale_h", "scale_w"), level=2, attrs_key="UpSampling3D")
class upsampling3d(DynamicScales):
    """Volumes enlarged (see nn.upsampling3d) by factors that scalar tensors hold."""

    scale_d: float = attr(doc="the factor of the depth, as a scalar")
    scale_h: float = attr(doc="the factor of the height, as a scalar")
    scale_w: float = attr(doc="the factor of the width, as a scalar")
    layout: str = attr("NCDHW", "the axes of data: N for the batch, C for channels, D, H and W")
    method: str = attr("nearest_neighbor", "how elements are made: nearest_neighbor or trilinear")
    coordinate_transformation_mode: str = attr(
        "half_pixel", "how positions of the result map to those of data, as in image.resize3d"
    )
    defaults = {"scale_d": 0.0, "scale_h": 0.0, "scale_w": 0.0}
    static, values = static_upsampling3d, ("scale_d", "scale_h", "scale_w")
    spatial = "DHW"

    @classmethod
    def samples(cls) -> list[Sample]:
        two = np.array(2, "float32")
        return [sample((1, 1, 2, 3, 2), two, two, np.array(1, "float32"))]
