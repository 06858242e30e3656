"""Enlarging images by factors: nn.upsampling, nn.upsampling3d."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from relaylab.ir.types import Dim, TensorType
from relaylab.op.base import Sample, attr, op, sample
from relaylab.op.helpers import TypeSolver
from relaylab.op.nn.resample import Sampling
from relaylab.op.nn.resampling import Resampled
from relaylab.op.shapes import scaled


class Scaled(Resampled):
    """A resize by factors."""

    yields = "(N, C, *round(extent * scale)) laid out as `layout`, dtype of data; halves round to even"
    source = "ONNX Upsample and Resize; Keys, Cubic convolution interpolation for digital image processing, 1981"

    def factors(self) -> list[float]:
        """The factor of each spatial axis."""
        return [getattr(self, f"scale_{a.lower()}") for a in self.spatial]

    def result_type(self, s: TypeSolver, data: TensorType) -> TensorType:
        if not all(map(isfinite, self.factors())):
            s.fail(f"the factors of {self.op_name} must be numbers, not {self.factors()}")
        return super().result_type(s, data)

    def target(self, extents: Sequence[Dim]) -> list[Dim]:
        return [scaled(d, f) for d, f in zip(extents, self.factors())]


@op("nn.upsampling", level=2, attrs_key="UpSampling", defaults={"scale_h": 1, "scale_w": 1})
class upsampling(Scaled):
    """Images enlarged by factors, by repetition (nearest_neighbor), bilinear or bicubic interpolation."""

    dynamic = ("scale_h", "scale_w")

    scale_h: float = attr(doc="the factor of the height")
    scale_w: float = attr(doc="the factor of the width")
    layout: str = "NCHW"
    method: str = attr(
        "nearest_neighbor", "how a place between elements is read: nearest_neighbor, bilinear or bicubic"
    )
    align_corners: bool = attr(False, "whether the corner elements of data and result fall together")

    def sampling(self) -> Sampling:
        return Sampling(self.method.removeprefix("bi"), "align_corners" if self.align_corners else "asymmetric")

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((1, 2, 3, 4), scale_h=2, scale_w=3),
            sample((1, 3, 4, 2), scale_h=1.5, scale_w=2, method="bilinear", layout="NHWC"),
            sample((1, 2, 3, 3), scale_h=2, scale_w=2, method="bicubic", align_corners=True),
            sample((1, 1, 3, 3, 2), scale_h=2, scale_w=2, layout="NCHW2c"),
        ]


@op("nn.upsampling3d", level=2, attrs_key="UpSampling3D")
class upsampling3d(Scaled):
    """Volumes enlarged by factors, by repetition (nearest_neighbor) or trilinear interpolation."""

    defaults = {"scale_d": 1, "scale_h": 1, "scale_w": 1}
    dynamic = ("scale_d", "scale_h", "scale_w")

    scale_d: float = attr(doc="the factor of the depth")
    scale_h: float = attr(doc="the factor of the height")
    scale_w: float = attr(doc="the factor of the width")
    layout: str = "NCDHW"
    method: str = attr("nearest_neighbor", "how a place between elements is read: nearest_neighbor or trilinear")
    coordinate_transformation_mode: str = attr(
        "half_pixel",
        "where a position of the result lies in data: half_pixel, align_corners, asymmetric, pytorch_half_pixel or "
        "tf_half_pixel_for_nn",
    )
    spatial = "DHW"

    def sampling(self) -> Sampling:
        return Sampling(self.method.removeprefix("tri"), self.coordinate_transformation_mode)

    @classmethod
    def samples(cls) -> list[Sample]:
        scales = {"scale_d": 2, "scale_h": 1.5, "scale_w": 2}
        return [
            sample((1, 2, 2, 4, 3), **scales),
            sample((1, 2, 4, 3, 2), method="trilinear", layout="NDHWC", **scales),
        ]
