"""What forward and backward folding of scales share: which axes of a value may be scaled, and where a scale fits.

Multiplying the channels of a tensor by a vector commutes with a convolution (Jacob et al., CVPR 2018,
section 3.2): the vector can be multiplied into the weights instead, once and for all.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylab.ir import AnyDim, Call, Constant, Expr, Op, TensorType, facets, is_call_to, op_name, walk
from relaylab.op.base import OpPattern
from relaylab.op.layout import Layout, parse_layout
from relaylab.transform.engine.build import call, expand_to_axis, reshaped
from relaylab.transform.engine.infer_type import shape_of, type_of

ADDITIONS = ("add", "subtract")
ACTIVATIONS = ("nn.relu", "nn.leaky_relu")
CONVOLUTIONS = ("nn.conv2d", "nn.conv3d")
_SIGNED = ("float32", "float64", "int8", "int32", "uint8", "uint32")


@dataclass(frozen=True, slots=True)
class Message:
    """The axes along which a value may be scaled, and whether only by factors that are not negative, or by which can
    be divided.
    """

    axes: tuple[int, ...]
    positive: bool = False
    divisor: bool = False

    def meet(self, other: Message | None) -> Message | None:
        """What two uses both allow."""
        if other is None or other.axes != self.axes:
            return None
        return Message(self.axes, self.positive or other.positive, self.divisor or other.divisor)

    def allows(self, scale: Expr) -> bool:
        """Whether a scale is what is asked for."""
        return (not self.positive or is_nonnegative(scale)) and (not self.divisor or is_divisor(scale))


def fits(data: Expr, factor: Expr, axes: Sequence[int]) -> bool:
    """Whether `factor` broadcasts against `data` along exactly `axes`."""
    d, f = type_of(data), type_of(factor)
    if not isinstance(d, TensorType) or not isinstance(f, TensorType) or len(d.shape) < len(f.shape):
        return False
    base = len(d.shape) - len(f.shape)
    for i, dim in enumerate(d.shape):
        if i in axes:
            if i < base or dim != f.shape[i - base] or isinstance(dim, AnyDim):
                return False
        elif i >= base and not (isinstance(f.shape[i - base], int) and f.shape[i - base] == 1):
            return False
    return True


def is_light(factor: Expr) -> bool:
    """Whether a scale is computed without convolutions, products or pooling.

    Others depend on the data of each run (gates of recurrent cells, squeeze-and-excitation): scaling weights by
    them costs more than it saves.
    """
    ops = (e.op for e in walk((factor,)) if isinstance(e, Call) and isinstance(e.op, Op))
    return all(op.pattern < OpPattern.OUT_ELEMWISE_FUSABLE for op in ops)


def squeezed(factor: Expr, data: Expr, axes: Sequence[int], typed: Expr | None = None) -> Expr:
    """`factor`, which fits `data`, with one dimension for each of `axes`; `typed` is a node of its type."""
    rank = len(shape_of(factor if typed is None else typed))
    base = len(shape_of(data)) - rank
    ones = [i for i in range(rank) if i + base not in axes]
    return call("squeeze", factor, axis=ones) if ones else factor


def spread(scale: Expr, data: Expr, axes: Sequence[int]) -> Expr:
    """`scale` (one dimension for each of `axes`) in a shape that broadcasts against `data`."""
    shape = shape_of(data)
    if len(axes) == 1:
        return expand_to_axis(scale, len(shape), axes)
    return reshaped(scale, [int(d) if i in axes else 1 for i, d in enumerate(shape)])


def _numbers(expr: Expr) -> np.ndarray | None:
    """The elements of a constant, seen through changes of shape."""
    while is_call_to(expr, "expand_dims", "reshape", "transpose", "squeeze"):
        expr = expr.args[0]
    return expr.data.numpy() if isinstance(expr, Constant) else None


def is_nonnegative(expr: Expr) -> bool:
    """Whether an expression is a constant without negative elements."""
    found = _numbers(expr)
    return found is not None and found.dtype.name in _SIGNED and bool(np.all(found >= 0))


def is_divisor(expr: Expr) -> bool:
    """Whether an expression is a constant by which other numbers can be divided: none is 0, or so small that quotients
    overflow. (A trained normalisation often scales some channels by 0.)
    """
    found = _numbers(expr)
    return (
        found is not None
        and found.dtype.kind == "f"
        and bool(np.all(np.abs(found) > np.sqrt(np.finfo(found.dtype).tiny)))
    )


# ---- the heavy operators


def _is_depthwise(conv: Call) -> bool:
    attrs = facets(conv)
    weight = type_of(conv.args[1])
    if not isinstance(weight, TensorType):
        return False
    extents = parse_layout(attrs.kernel_layout).whole(weight.shape)
    return extents["O"] == attrs.groups and extents["I"] == 1


def channel_axes(conv: Call, layout_text: str) -> tuple[int, ...] | None:
    """The channel axes of a convolution's data, or None if its scale cannot be folded."""
    attrs = facets(conv)
    kernel, data = parse_layout(attrs.kernel_layout), parse_layout(layout_text)
    blocked = [_small(kernel, "O") >= 0, _small(kernel, "I") >= 0, _small(data, "C") >= 0]
    if not (attrs.groups == 1 or _is_depthwise(conv)) or len(set(blocked)) > 1:
        return None
    axes = (data.position("C"), _small(data, "C"))
    return axes if blocked[0] else axes[:1]


def _small(layout: Layout, letter: str) -> int:
    """The position of the axis inside the blocks of a letter; -1 if it is not split."""
    return next((i for i, a in enumerate(layout.axes) if a.letter == letter and a.factor), -1)


def out_layout(conv: Call) -> str:
    """The layout of a convolution's result."""
    attrs = facets(conv)
    return attrs.out_layout or attrs.data_layout


def scaled_weight(heavy: Call, weight: Expr, scale: Expr, letter: str) -> Expr:
    """`weight` scaled along its axis for the result's (`O`) or the data's (`I`) channels."""
    if op_name(heavy) == "nn.dense":
        return call("multiply", weight, scale if letter == "I" else call("expand_dims", scale, axis=1, num_newaxis=1))
    attrs = facets(heavy)
    kernel = parse_layout(attrs.kernel_layout)
    letter = "O" if letter == "I" and _is_depthwise(heavy) else letter
    axes = [i for i in (kernel.position(letter), _small(kernel, letter)) if i >= 0]
    return call("multiply", weight, spread(scale, heavy.args[1], axes))


def heavy_axes(heavy: Expr, result: bool) -> tuple[int, ...] | None:
    """The axes of the data (or of the result) of a convolution or dense layer that a scale may be folded along.

    Only floats of one type: integers wrap earlier in a scaled weight than in a scaled sum.
    """
    if not is_call_to(heavy, *CONVOLUTIONS, "nn.dense"):
        return None
    kinds = {getattr(type_of(e), "dtype", "") for e in (heavy, *heavy.args)}
    if len(kinds) > 1 or "float" not in min(kinds):
        return None
    if is_call_to(heavy, *CONVOLUTIONS):
        return channel_axes(heavy, out_layout(heavy) if result else facets(heavy).data_layout)
    data = type_of(heavy.args[0])
    return (1,) if isinstance(data, TensorType) and len(data.shape) == 2 else None
