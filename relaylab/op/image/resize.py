"""Resizing to a given size: image.resize1d, image.resize2d, image.resize3d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylab.ir.types import AnyDim, Dim, IntImm, TensorType
from relaylab.op.base import Dims, Dtype, Floats, Input, Sample, arg, attr, op, sample
from relaylab.op.helpers import TypeSolver
from relaylab.op.indexing import ints
from relaylab.op.nn.resample import Sampling
from relaylab.op.nn.resampling import Resampled
from relaylab.op.window import spread


class Resize(Resampled):
    """A resize to a given size."""

    data: Input = arg("the batch of signals, images or volumes, laid out as `layout`", "(N, C, *extents)")
    required = "size"
    size: Dims | None = attr(None, "the new extents of the spatial axes; one number stands for all of them")
    roi: Floats | None = attr(None, "the part that tf_crop_and_resize reads, as fractions: begins, then ends")
    layout: str = attr("NCHW", "the axes of data and result")
    method: str = attr("linear", "how a place between elements is read: nearest_neighbor, linear or cubic")
    coordinate_transformation_mode: str = attr(
        "half_pixel",
        "where a position of the result lies in data: half_pixel, align_corners, asymmetric, pytorch_half_pixel, "
        "tf_half_pixel_for_nn or tf_crop_and_resize",
    )
    rounding_method: str = attr(
        "round",
        "how nearest_neighbor rounds: round, floor, ceil, round_prefer_floor or round_prefer_ceil; empty: round for "
        "align_corners, else floor",
    )
    cubic_alpha: float = attr(-0.5, "the coefficient of cubic interpolation: -0.5, or -0.75 as torch has it")
    cubic_exclude: int = attr(0, "1: cubic interpolation leaves out what lies outside, the other weights sum to 1")
    extrapolation_value: float = attr(0.0, "what places outside data read as, for tf_crop_and_resize")
    out_dtype: Dtype = attr(None, "the data type of the result; None: that of data")
    yields = "(N, C, *size) laid out as `layout`, of `out_dtype`"
    source = "ONNX Resize; Keys, Cubic convolution interpolation for digital image processing, 1981"
    defaults = {"rounding_method": ""}

    def sampling(self) -> Sampling:
        mode, rounding = self.coordinate_transformation_mode, self.rounding_method
        return Sampling(self.method, mode, rounding, self.cubic_alpha, bool(self.cubic_exclude))

    def target(self, extents: Sequence[Dim]) -> list[Dim]:
        return [n if isinstance(n, AnyDim) else IntImm(n) for n in self.size or ()]

    def region(self, k: int) -> tuple[float, float]:
        n = len(self.spatial)
        return (self.roi[k], self.roi[k + n]) if self.roi else (0.0, 1.0)

    def outside(self) -> float | None:
        return self.extrapolation_value if self.coordinate_transformation_mode == "tf_crop_and_resize" else None

    def result_dtype(self, data: str) -> str:
        return self.out_dtype or data

    def result_type(self, s: TypeSolver, data: TensorType) -> TensorType:
        size = self.size or ()
        if len(size) != len(self.spatial) or any(not isinstance(n, AnyDim) and n < 1 for n in size):
            s.fail(f"`size` of {self.op_name} must be {len(self.spatial)} positive values, not {self.size}")
        if self.roi and len(self.roi) != 2 * len(self.spatial):
            s.fail(f"`roi` of {self.op_name} must be {2 * len(self.spatial)} numbers, not {self.roi}")
        return super().result_type(s, data)

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        n, roi, size = len(cls.spatial), attrs.get("roi"), ints(attrs.get("size"))
        size = (size,) * n if isinstance(size, AnyDim) else size and spread(size, n)
        return {**attrs, "size": size, "roi": (0.0,) * 2 * n if roi is None else ints(roi)}

    @classmethod
    def samples(cls) -> list[Sample]:
        n = len(cls.spatial)
        shape, last = (1, 2, *(4, 5, 3)[:n]), (1, *(4, 3, 5)[:n], 2)
        up, down = (7, 8, 5)[:n], (2, 3, 2)[:n]
        mode = lambda name: {"coordinate_transformation_mode": name}
        return [
            sample(shape, size=up),
            sample(shape, size=down, method="nearest_neighbor", rounding_method="", **mode("asymmetric")),
            sample(last, size=up, layout=f"N{cls.spatial}C", **mode("align_corners")),
            sample(shape, size=up, method="cubic", cubic_alpha=-0.75, **mode("pytorch_half_pixel")),
            sample(shape, size=down, method="cubic", cubic_exclude=1),
            sample(
                shape,
                size=up,
                roi=(0.1, 0.2, 0.0, 0.9, 1.3, 1.0)[: 2 * n] if n == 3 else (0.1,) * n + (1.2,) * n,
                extrapolation_value=9.0,
                **mode("tf_crop_and_resize"),
            ),
            sample(
                TensorType(shape, "uint8"),
                size=up,
                method="nearest_neighbor",
                rounding_method="ceil",
                **mode("tf_half_pixel_for_nn"),
            ),
            sample(
                shape, size=up, method="nearest_neighbor", rounding_method="round_prefer_floor", out_dtype="float64"
            ),
        ]


@op("image.resize1d", level=5, attrs_key="Resize1D")
class resize1d(Resize):
    """Signals resized to `size`: nearest, linear or cubic, with the coordinate rules of ONNX."""

    layout, spatial = "NCW", "W"


@op("image.resize2d", level=5, attrs_key="Resize2D")
class resize2d(Resize):
    """Images resized to `size` (height, width): nearest, linear or cubic, with the coordinate rules of ONNX."""

    defaults = {"rounding_method": "", "roi": (0.0,) * 4}
    dynamic = ("size", "roi")
    parameters = (
        "data size roi layout method coordinate_transformation_mode rounding_method "
        "cubic_alpha cubic_exclude extrapolation_value out_dtype"
    )


@op("image.resize3d", level=5, attrs_key="Resize3D")
class resize3d(Resize):
    """Volumes resized to `size` (depth, height, width): nearest, linear or cubic, with the coordinate rules of ONNX."""

    layout, spatial = "NCDHW", "DHW"
    roi = attr(None, "the part that tf_crop_and_resize reads, as fractions: x0, y0, z0, x1, y1, z1")

    def region(self, k: int) -> tuple[float, float]:
        return super().region(2 - k)
