"""Convolutions of open images read no zeros around them: what pads is a step of its own before the kernel, but of those
of which every channel has its own kernel.

Zeros that kernels of known sizes write once around a tensor would lie elsewhere for every size.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from relaylab.codegen.specialize import with_body
from relaylab.ir.expr import Call, Constant, Expr
from relaylab.ir.module import IRModule
from relaylab.ir.op import facets, is_call_to
from relaylab.ir.types import TensorType, is_dynamic
from relaylab.ir.visit import rewrite, walk
from relaylab.op.nn.conv import Conv
from relaylab.op.nn.conv_transpose import ConvTranspose
from relaylab.transform import InferType
from relaylab.transform.engine.build import call, scalar

CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
TRANSPOSED = tuple(f"{name}_transpose" for name in CONVOLUTIONS)


def with_padded_images(mod: IRModule) -> IRModule:
    """A module whose convolutions of open images have no padding, and whose grouped ones have the channels of
    their weights side by side, as those of the data are. Transposed ones are convolutions with a result for each step.
    """
    if not any(is_call_to(node, *CONVOLUTIONS, *TRANSPOSED) for node in walk((mod["main"].body,))):
        return mod
    mod = InferType()(mod)
    plain = with_body(mod, rewrite(mod["main"].body, _turned))
    return with_body(plain, rewrite(plain["main"].body, _padded))


def _padded(new: Expr, old: Expr) -> Expr:
    if not is_call_to(new, *CONVOLUTIONS) or not is_dynamic(cast(Call, old).args[0].checked_type):
        return new
    record, (data, weight) = cast(Conv, facets(new)), new.args
    n, letters = len(record.spatial), record.kernel_layout
    if len(record.data_layout) != n + 2 or len(letters) != n + 2:
        return new
    changed: dict[str, object] = {}
    if any(map(any, record.pads)) and not _every_channel(record, cast(Call, old)):
        around = dict(zip(record.spatial, record.pads))
        zero = scalar(0, cast(TensorType, cast(Call, old).args[0].checked_type).dtype)
        data = call("nn.pad", data, zero, pad_width=tuple(around.get(axis, (0, 0)) for axis in record.data_layout))
        changed["padding"] = (0,) * (2 * n)
    if record.groups > 1:
        changed["kernel_layout"] = layout = f"{record.spatial}IO"
        weight = call("transpose", weight, axes=tuple(map(letters.index, layout)))
    plain = {**dict(record.items()), **changed}
    return Call(new.op, [data, weight], type(record)(**plain), span=new.span) if changed else new


def _every_channel(record: Conv, old: Call) -> bool:
    """Whether every channel has its own kernel: that asks where the images end, and copies none."""
    data, weight = (cast(TensorType, a.checked_type) for a in old.args)
    channels = data.shape[record.data_layout.index("C")], weight.shape[record.kernel_layout.index("O")]
    return record.groups > 1 and all(n == record.groups for n in channels) and isinstance(old.args[1], Constant)


def _turned(new: Expr, old: Expr) -> Expr:
    """A transposed convolution whose every stride-th results are those of a convolution by every stride-th weight.

    Shi et al., Is the deconvolution layer the same as a convolutional layer?, 2016.
    """
    if not is_call_to(new, *TRANSPOSED) or not is_dynamic(cast(Call, old).args[0].checked_type):
        return new
    record, (data, weight) = cast(ConvTranspose, facets(new)), new.args
    axes = f"N{record.spatial}C"
    plain = sorted(record.data_layout) == sorted(axes) and record.out_layout in ("", record.data_layout)
    if not plain or record.groups > 1 or not isinstance(weight, Constant) or any(d > 1 for _, d, _ in record.steps):
        return new
    letters = f"{record.ins}{record.outs}{record.spatial}"
    matrix = weight.data.numpy().transpose(list(map(record.kernel_layout.index, letters)))
    spans = [
        _Span(k, stride, low, high - extra)
        for k, (stride, _, extra), (low, high) in zip(matrix.shape[2:], record.steps, record.pads)
    ]
    x = call("transpose", data, axes=tuple(map(record.data_layout.index, axes)))
    y = call("transpose", _by_steps(x, matrix, spans, record), axes=tuple(map(axes.index, record.data_layout)))
    return y


@dataclass(frozen=True)
class _Span:
    """An axis of a transposed convolution: taps of the kernel, the stride, what is cut before and after."""

    kernel: int
    stride: int
    before: int
    after: int

    @property
    def taps(self) -> int:
        """Weights for each step; so many that what is left over is no less than what is cut."""
        return max(-(-self.kernel // self.stride), -(-(self.kernel - self.after) // self.stride))

    @property
    def left(self) -> int:
        """How many results there are too many at the end."""
        return self.taps * self.stride - self.kernel + self.after


def _by_steps(x: Expr, matrix: np.ndarray, spans: Sequence[_Span], record: ConvTranspose) -> Expr:
    """The convolution of x (N, ..., C) whose channels are the steps, which are then put side by side; cut to size."""
    n, (ins, outs) = len(spans), matrix.shape[:2]
    whole = np.pad(matrix, [(0, 0), (0, 0), *((0, a.taps * a.stride - a.kernel) for a in spans)])
    apart = whole.reshape(ins, outs, *(m for a in spans for m in (a.taps, a.stride)))
    turned = np.flip(apart, tuple(range(2, 2 + 2 * n, 2)))
    order = [*range(3, 3 + 2 * n, 2), 1, 0, *range(2, 2 + 2 * n, 2)]
    kernel = np.ascontiguousarray(turned.transpose(order).reshape(-1, ins, *(a.taps for a in spans)))
    y = call(
        f"nn.conv{n}d",
        x,
        Constant(kernel),
        strides=(1,) * n,
        padding=tuple(a.taps - 1 for a in spans) * 2,
        dilation=(1,) * n,
        data_layout=f"N{record.spatial}C",
        kernel_layout=f"OI{record.spatial}",
        out_dtype=record.out_dtype,
    )
    # Within another kernel a reshape of sizes is divided out for each element; on its own it is nothing.
    alone = lambda e: call("annotation.stop_fusion", e)
    for k, a in enumerate(spans):
        y = call("reshape", y, newshape=(*[0] * (n + 1 + k), -4, a.stride, -1))
    if n > 1:
        sides = [axis for k in range(n) for axis in (1 + k, n + 1 + k)]
        y = alone(call("transpose", alone(y), axes=(0, *sides, 2 * n + 1)))
    y = alone(call("reshape", y, newshape=(0, *[-3] * n, 0)))
    cut = ((0, 0), *((-a.before, -a.left) for a in spans), (0, 0))
    return call("nn.pad", y, scalar(0, matrix.dtype.name), pad_width=cut) if any(map(any, cut)) else y
