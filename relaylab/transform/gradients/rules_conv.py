"""The derivatives of convolutions and transposed ones, over one, two and three axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from relaylab.ir import Call, Expr, facets, op_name
from relaylab.op.layout import parse_layout
from relaylab.op.window import reach
from relaylab.transform.engine.build import call, reshaped
from relaylab.transform.engine.infer_type import shape_of
from relaylab.transform.gradients.rules import gradient_of
from relaylab.transform.gradients.rules_nn import as_images, as_lines, laid, window_pads, window_steps


class _Conv:
    """A convolution, or a transposed one, as one of NC(D)HW images; lines are images one row high."""

    def __init__(self, c: Call, kernel: str, parts: Sequence[Expr]):
        """From the attributes of a call, the order of the weight's axes, and data, weight and result."""
        a, spatial = facets(c), kernel[2:]
        self.letters = spatial if len(spatial) > 2 else "HW"
        self.plain = ("NC" + spatial, kernel, "NC" + spatial)
        self.given = (a.data_layout, a.kernel_layout, a.out_layout or a.data_layout)
        sizes = [parse_layout(v).whole(shape_of(x)) for v, x in zip(self.given, parts)]
        self.x, self.w, self.y = ({k: int(cast(int, n)) for k, n in s.items()} for s in sizes)
        self.window = [self.w.get(v, 1) for v in self.letters]
        axes = len(spatial)
        self.strides, self.dilation = window_steps(a.strides, axes), window_steps(a.dilation, axes)
        self.groups, self.padding = int(a.groups), window_pads(a.padding, axes)
        self.name = f"nn.conv{len(self.letters)}d"

    def images(self, x: Expr, which: int) -> Expr:
        return as_images(laid(x, self.given[which], self.plain[which]), self.plain[which])

    def back(self, x: Expr, which: int) -> Expr:
        return laid(as_lines(x, self.plain[which]), self.plain[which], self.given[which])

    @property
    def how(self) -> dict[str, object]:
        steps = {"strides": self.strides, "padding": self.padding, "dilation": self.dilation}
        return {**steps, "groups": self.groups, "kernel_size": self.window}

    @property
    def output_padding(self) -> list[int]:
        """How many elements of the data each axis has behind those that the last window reads."""
        n, extra = len(self.letters), []
        for i, axis in enumerate(self.letters):
            read = (self.y.get(axis, 1) - 1) * self.strides[i] + reach(self.window[i], self.dilation[i])
            extra.append(self.x.get(axis, 1) + self.padding[i] + self.padding[i + n] - read)
        return extra

    def weight_grad(self, grad: Expr, data: Expr, of_grad: dict[str, int], of_data: dict[str, int]) -> Expr:
        """The gradient (O, I, *window) of a convolution's weight from that of its result and its data.

        Over three axes it is a convolution itself: of the data by the gradient, over the batch, with strides and
        dilation exchanged.
        """
        if len(self.letters) == 2:
            return call("nn.conv2d_backward_weight", grad, data, channels=of_grad["C"], **self.how)
        n, ins, size = of_data["N"], of_data["C"] // self.groups, [of_data[v] for v in self.letters]
        space = range(3, 3 + len(size))
        split = reshaped(data, [n, self.groups, ins, *size])
        images = reshaped(call("transpose", split, axes=[2, 1, 0, *space]), [ins, self.groups * n, *size])
        flip = [1, 0, *range(2, 2 + len(size))]
        how = {**self.how, "strides": self.dilation, "dilation": self.strides}
        how |= {"kernel_size": [of_grad[v] for v in self.letters], "channels": of_grad["C"]}
        found = call("transpose", call(self.name, images, call("transpose", grad, axes=flip), **how), axes=flip)
        end = [of_grad["C"], ins, *self.window]
        return call("strided_slice", found, begin=[0] * len(end), end=end, strides=[1] * len(end))

    def transposed(self, g: Expr, w: Expr) -> Expr:
        """The gradient of a convolution's data from that of its result and its weight."""
        # IOHW says what OIDHW says of the sister over three axes: the channels of the gradient first
        kernel = "IOHW" if len(self.letters) == 2 else "OIDHW"
        how = {**self.how, "channels": self.x["C"], "output_padding": self.output_padding, "kernel_layout": kernel}
        return call(f"{self.name}_transpose", g, w, **how)


@gradient_of("nn.conv1d", "nn.conv2d", "nn.conv3d")
def _conv(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    kernel = {"nn.conv1d": "OIW", "nn.conv2d": "OIHW", "nn.conv3d": "OIDHW"}[op_name(c)]
    v = _Conv(c, kernel, (*c.args, c))
    x, g = v.images(c.args[0], 0), v.images(g, 2)
    # the depthwise form (C, multiplier, ...) is that of groups (C * multiplier, 1, ...)
    w = reshaped(v.images(c.args[1], 1), [v.y["C"], v.x["C"] // v.groups, *v.window])
    dw = reshaped(v.weight_grad(g, x, v.y, v.x), [v.w["O"], v.w["I"], *v.window])
    return [v.back(v.transposed(g, w), 0), v.back(dw, 1)]


@gradient_of("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def _conv_transpose(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    kernel = {"nn.conv1d_transpose": "OIW", "nn.conv2d_transpose": "IOHW", "nn.conv3d_transpose": "OIDHW"}[op_name(c)]
    v = _Conv(c, kernel, (*c.args, c))
    x, w, g = v.images(c.args[0], 0), v.images(c.args[1], 1), v.images(g, 2)
    dx = call(v.name, g, w, channels=v.x["C"], **v.how)
    return [v.back(dx, 0), v.back(v.weight_grad(x, g, v.x, v.y), 1)]


@gradient_of("nn.conv2d_backward_weight")
def _conv2d_backward_weight(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    """What a convolution makes of its data with `g` as weight, and what it passes back of the gradient."""
    v = _Conv(c, "OIHW", (c.args[1], c, c.args[0]))
    grad, data, g = v.images(c.args[0], 2), v.images(c.args[1], 0), v.images(g, 1)
    made = call("nn.conv2d", data, g, channels=v.y["C"], **v.how)
    return [v.back(made, 2), v.back(v.transposed(grad, g), 0)]
