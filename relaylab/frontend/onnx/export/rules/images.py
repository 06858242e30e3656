"""Sampling of images."""

from __future__ import annotations

import numpy as np

from relaylab.frontend.onnx.export.rules.base import attributes, dtype_of, ints, only, rule, shape_of
from relaylab.frontend.onnx.export.rules.windows import order_of
from relaylab.frontend.onnx.export.writer import Value, Writer
from relaylab.ir import Call


@rule("image.grid_sample")
def _grid_sample(w: Writer, call: Call, ins: list[str]) -> Value:
    a = attributes(call)
    only(call, layout="NCHW")
    rank = len(shape_of(call.args[1]))
    grid = w.transposed(ins[1], [0, *range(2, rank), 1])
    settings = {"mode": str(a["method"]), "padding_mode": str(a["padding_mode"])}
    return w.emit("GridSample", [ins[0], grid], align_corners=int(bool(a["align_corners"])), **settings)


@rule("image.affine_grid")
def _affine_grid(w: Writer, call: Call, ins: list[str]) -> Value:
    height, width = ints(attributes(call)["target_shape"])
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    places = np.stack([x.reshape(-1), y.reshape(-1), np.ones(height * width)]).astype(dtype_of(call))
    return w.reshape(w.emit("MatMul", [ins[0], w.constant(places)]), shape_of(call))


@rule("vision.roi_align")
def _roi_align(w: Writer, call: Call, ins: list[str]) -> Value:
    a = attributes(call)
    only(call, mode="avg")  # ONNX takes the largest of weighted pixels, not of samples
    order = order_of(call, str(a["layout"]), "NCHW")
    height, width = ints(a["pooled_size"])
    part = lambda low, high: w.emit("Slice", [ins[1], *(w.numbers(v) for v in ([low], [high], [1], [1]))])
    batch = w.cast(w.reshape(part(0, 1), [-1]), "int64")
    found = w.emit(
        "RoiAlign", [w.transposed(ins[0], order), part(1, 5), batch], output_height=height, output_width=width,
        spatial_scale=float(a["spatial_scale"]), sampling_ratio=max(int(a["sample_ratio"]), 0), mode=str(a["mode"]),
        coordinate_transformation_mode="half_pixel" if a["aligned"] else "output_half_pixel",
    )  # fmt: skip
    return w.transposed(found, [order.index(k) for k in range(4)])
