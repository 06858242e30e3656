"""Resizing to a given size: image.resize1d, image.resize2d, image.resize3d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from relaylab.ir.types import Dim, IntImm, TensorType, Type
from relaylab.op.base import Dims, Dtype, Floats, Sample, op, sample
from relaylab.op.indexing import ints
from relaylab.op.resample import Sampling
from relaylab.op.resampled import Resampled
from relaylab.op.window import spread


class Resize(Resampled):
    """A resize to a given size."""

    size: ClassVar[Any]
    roi: ClassVar[Any]
    method: ClassVar[Any]
    coordinate_transformation_mode: ClassVar[Any]
    rounding_method: ClassVar[Any]
    cubic_alpha: ClassVar[Any]
    cubic_exclude: ClassVar[Any]
    extrapolation_value: ClassVar[Any]
    out_dtype: ClassVar[Any]
    defaults = {"rounding_method": ""}

    def sampling(self) -> Sampling:
        mode, rounding = self.coordinate_transformation_mode, self.rounding_method
        return Sampling(self.method, mode, rounding, self.cubic_alpha, bool(self.cubic_exclude))

    def target(self, extents: Sequence[Dim]) -> list[Dim]:
        return [IntImm(n) for n in self.size]

    def region(self, k: int) -> tuple[float, float]:
        n = len(self.spatial)
        return (self.roi[k], self.roi[k + n]) if self.roi else (0.0, 1.0)

    def outside(self) -> float | None:
        return self.extrapolation_value if self.coordinate_transformation_mode == "tf_crop_and_resize" else None

    def result_dtype(self, data: str) -> str:
        return self.out_dtype or data

    def relation(self, s: Any, data: Type) -> Type | None:
        if len(self.size or ()) != len(self.spatial) or any(n < 1 for n in self.size):
            s.fail(f"`size` of {self.op_name} must be {len(self.spatial)} positive values, not {self.size}")
        return super().relation(s, data)

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        n, roi = len(cls.spatial), attrs.get("roi")
        return {**attrs, "size": spread(ints(attrs["size"]), n), "roi": (0.0,) * 2 * n if roi is None else ints(roi)}

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

    size: Dims | None = None
    roi: Floats | None = None
    layout: str = "NCW"
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = "round"
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    extrapolation_value: float = 0.0
    out_dtype: Dtype = None
    spatial = "W"


@op("image.resize2d", level=5, attrs_key="Resize2D")
class resize2d(Resize):
    """Images resized to `size` (height, width): nearest, linear or cubic, with the coordinate rules of ONNX."""

    defaults = {"rounding_method": "", "roi": (0.0,) * 4}
    dynamic = ("size", "roi")
    parameters = (
        "data size roi layout method coordinate_transformation_mode rounding_method "
        "cubic_alpha cubic_exclude extrapolation_value out_dtype"
    )

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


@op("image.resize3d", level=5, attrs_key="Resize3D")
class resize3d(Resize):
    """Volumes resized to `size` (depth, height, width): nearest, linear or cubic, with the coordinate rules of ONNX."""

    size: Dims | None = None
    roi: Floats | None = None
    layout: str = "NCDHW"
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = "round"
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    extrapolation_value: float = 0.0
    out_dtype: Dtype = None
    spatial = "DHW"
