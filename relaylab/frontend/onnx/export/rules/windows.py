"""Convolutions and poolings: windows that move over one to three axes, in any plain layout."""

from __future__ import annotations

from relaylab.frontend.onnx.export.rules.base import (
    attributes,
    dtype_of,
    ints,
    one_dtype,
    only,
    operator,
    pads,
    refused,
    rule,
    shape_of,
)
from relaylab.frontend.onnx.export.writer import Value, Writer
from relaylab.ir import Call

_AXES = "DHW"


def order_of(call: Call, layout: str, wanted: str) -> list[int]:
    """The order of axes that brings a tensor from one plain layout into another."""
    if sorted(layout) != sorted(wanted):
        raise refused(call, f"the layout {layout}", f"it is written for the axes {wanted}")
    return [layout.index(axis) for axis in wanted]


class WindowForm:
    """How many axes the windows of a call have, and its data in ONNX's layout (batch, channels, then those axes)."""

    def __init__(self, w: Writer, call: Call, layout: str):
        self.w, self.call = w, call
        self.axes = len(shape_of(call.args[0])) - 2
        self.plain = "NC" + _AXES[3 - self.axes :]
        order = order_of(call, layout, self.plain)
        self.back = [order.index(k) for k in range(len(order))]
        self.order = order
        self.shape = [shape_of(call.args[0])[k] for k in order]
        self.out = [shape_of(call)[k] for k in order]

    def data(self, name: str) -> str:
        """An operand in ONNX's layout."""
        return self.w.transposed(name, self.order)

    def result(self, name: str) -> str:
        """A result in the layout of the call."""
        return self.w.transposed(name, self.back)


def _kernel(w: Writer, call: Call, name: str, wanted: str) -> tuple[str, list[int]]:
    """A kernel in ONNX's layout, and its shape there."""
    order = order_of(call, str(attributes(call)["kernel_layout"]), wanted)
    return w.transposed(name, order), [shape_of(call.args[1])[k] for k in order]


def _product(
    w: Writer, call: Call, name: str, ins: list[str], form: WindowForm, shape: list[int], **more: list[int]
) -> str:
    """A convolution of data and kernel in ONNX's layouts."""
    a, n = attributes(call), form.axes
    found = w.emit(
        name, [form.data(ins[0]), ins[1]], strides=ints(a["strides"], n), pads=pads(a["padding"], n),
        dilations=ints(a["dilation"], n), group=int(a["groups"]), kernel_shape=shape[2:], **more,
    )  # fmt: skip
    return form.result(found)


def _form_of_product(w: Writer, call: Call) -> WindowForm:
    one_dtype(call)
    layout = attributes(call)["data_layout"]
    only(call, out_layout=layout)
    return WindowForm(w, call, str(layout))


@rule("nn.conv1d", "nn.conv2d", "nn.conv3d")
def _conv(w: Writer, call: Call, ins: list[str]) -> Value:
    form = _form_of_product(w, call)
    kernel, shape = _kernel(w, call, ins[1], f"OI{form.plain[2:]}")
    if shape[0] != form.out[1]:  # depthwise: (channels, multiplier, …) in Relay, (channels · multiplier, 1, …) in ONNX
        shape = [form.out[1], 1, *shape[2:]]
        kernel = w.reshape(kernel, shape)
    return _product(w, call, "Conv", [ins[0], kernel], form, shape)


@rule("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def _conv_transpose(w: Writer, call: Call, ins: list[str]) -> Value:
    form = _form_of_product(w, call)
    # one and three axes: channels of data stand first, and are called O
    kernel, shape = _kernel(w, call, ins[1], ("IO" if form.axes == 2 else "OI") + form.plain[2:])
    more = {"output_padding": ints(attributes(call)["output_padding"], form.axes)}
    return _product(w, call, "ConvTranspose", [ins[0], kernel], form, shape, **more)


def _windows(form: WindowForm) -> dict[str, list[int]]:
    """The windows of pooling; `ceil_mode` is said as padding behind, since ONNX drops some of its windows."""
    a, n = attributes(form.call), form.axes
    sizes, strides, dilation = (ints(a[name], n) for name in ("pool_size", "strides", "dilation"))
    around = pads(a["padding"], n)
    for k, (size, count) in enumerate(zip(form.shape[2:], form.out[2:])):
        reach = (count - 1) * strides[k] + (sizes[k] - 1) * dilation[k] + 1
        around[k + n] = max(around[k + n], reach - size - around[k])
        if (count - 1) * strides[k] - around[k] >= size:
            raise refused(form.call, "a window that holds only padding", "ceil_mode makes it: leave it out")
    return {"kernel_shape": sizes, "strides": strides, "pads": around}


def _form(w: Writer, call: Call) -> WindowForm:
    only(call, out_layout=attributes(call)["layout"])
    return WindowForm(w, call, str(attributes(call)["layout"]))


@rule("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")
def _max_pool(w: Writer, call: Call, ins: list[str]) -> Value:
    form = _form(w, call)
    dilations = ints(attributes(call)["dilation"], form.axes)
    return form.result(w.emit("MaxPool", [form.data(ins[0])], dilations=dilations, **_windows(form)))


@rule("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")
def _avg_pool(w: Writer, call: Call, ins: list[str]) -> Value:
    form = _form(w, call)
    only(call, dilation=(1,) * form.axes)
    windows, counts = _windows(form), bool(attributes(call)["count_include_pad"])
    if counts and windows["pads"] != pads(attributes(call)["padding"], form.axes):
        raise refused(call, "ceil_mode and count_include_pad", "ONNX counts what ceil_mode adds")
    return form.result(w.emit("AveragePool", [form.data(ins[0])], count_include_pad=int(counts), **windows))


@rule("nn.global_avg_pool2d", "nn.global_max_pool2d")
def _global_pool(w: Writer, call: Call, ins: list[str]) -> Value:
    form = _form(w, call)
    name = "GlobalAveragePool" if operator(call) == "nn.global_avg_pool2d" else "GlobalMaxPool"
    return form.result(w.emit(name, [form.data(ins[0])]))


@rule(*(f"nn.adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)))
def _adaptive_pool(w: Writer, call: Call, ins: list[str]) -> Value:
    """Windows of equal size where they divide the axis; else each from its own part of it."""
    form = _form(w, call)
    average = "avg" in operator(call)
    sizes, counts = form.shape[2:], form.out[2:]
    x = form.data(ins[0])
    if all(size % count == 0 for size, count in zip(sizes, counts)):
        kernel = [size // count for size, count in zip(sizes, counts)]
        return form.result(w.emit("AveragePool" if average else "MaxPool", [x], kernel_shape=kernel, strides=kernel))
    for k, (size, count) in enumerate(zip(sizes, counts), 2):
        parts: list[str] = []
        for at in range(count):
            ends = [at * size // count], [-(-(at + 1) * size // count)], [k], [1]
            part = w.emit("Slice", [x, *(w.numbers(v) for v in ends)])
            parts.append(w.emit("ReduceMean" if average else "ReduceMax", [part, w.numbers([k])], keepdims=1))
        x = w.emit("Concat", parts, axis=k)
    return form.result(x)


_METHODS = {"nearest_neighbor": "nearest", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
_PLACES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
_ROUNDINGS = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


@rule("nn.upsampling", "nn.upsampling3d", "image.resize1d", "image.resize2d", "image.resize3d")
def _resize(w: Writer, call: Call, ins: list[str]) -> Value:
    a, image = attributes(call), operator(call).startswith("image")
    form = WindowForm(w, call, str(a["layout"]))
    mode = _METHODS.get(str(a["method"]), str(a["method"]))
    if "coordinate_transformation_mode" in a:
        places = str(a["coordinate_transformation_mode"])
    else:
        places = "align_corners" if a["align_corners"] else "asymmetric"
    if places not in _PLACES:
        raise refused(call, f"coordinate_transformation_mode={places!r}", f"ONNX has {', '.join(_PLACES)}")
    settings: dict[str, str | float | int] = {"mode": mode, "coordinate_transformation_mode": places}
    if mode == "nearest":
        rounding = str(a["rounding_method"]) if image else ""
        rounding = rounding or ("round" if places == "align_corners" else "floor")
        settings["nearest_mode"] = rounding if rounding in _ROUNDINGS else "round_prefer_ceil"
    elif mode == "cubic":
        settings["cubic_coeff_a"] = float(a["cubic_alpha"]) if image else -0.5
        settings["exclude_outside"] = int(bool(a["cubic_exclude"])) if image else 0
    dtype, out = dtype_of(call.args[0]), dtype_of(call)
    data = ins[0] if "float" in dtype or mode == "nearest" else w.cast(ins[0], "float32")
    found = w.emit("Resize", [form.data(data), "", "", w.numbers(form.out)], **settings)
    return form.result(found if out == dtype and data is ins[0] else w.cast(found, out))
