"""FlattenAtrousConv: a convolution between space-to-batch and batch-to-space is a dilated convolution."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.ir import Call, Constant, Expr, Function, IRModule, TensorType, facets, is_call_to, rebuild, rewrite
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import shape_of, type_of
from relaylab.transform.engine.manager import FunctionPass

_TO_BATCH, _TO_SPACE, _CONVS = "nn.space_to_batch_nd", "nn.batch_to_space_nd", ("nn.conv2d", "qnn.conv2d")


def _chain(expr: Expr) -> tuple[Call, Call, Call] | None:
    """space-to-batch, convolution, batch-to-space, or None."""
    if not is_call_to(expr, _TO_SPACE):
        return None
    conv = expr.args[0]
    if not is_call_to(conv, *_CONVS) or not is_call_to(conv.args[0], _TO_BATCH):
        return None
    return conv.args[0], conv, expr


def _padding(to_batch: Call, conv: Call, to_space: Call) -> list[int] | None:
    """The padding [top, left, bottom, right] of the dilated convolution; None if there is none that means the same."""
    source, result = type_of(to_batch.args[0]), type_of(to_space)
    if (
        not isinstance(source, TensorType)
        or not isinstance(result, TensorType)
        or source.is_dynamic
        or result.is_dynamic
    ):
        return None
    kernel, first, last = _kernel_size(conv), facets(to_batch), facets(to_space)
    before, after = [], []
    for axis in range(2):
        own = facets(conv).pads[axis][0] * int(first.block_shape[axis])  # around each phase: that many pixels of all
        pad = own + int(first.paddings[axis][0]) - int(last.crops[axis][0])
        reach = (kernel[axis] - 1) * int(first.block_shape[axis]) + 1
        rest = result.concrete_shape[axis + 1] + reach - 1 - source.concrete_shape[axis + 1] - pad
        before.append(pad)
        after.append(rest)
    return [*before, *after] if min(*before, *after) >= 0 else None


def _kernel_size(conv: Call) -> Sequence[int]:
    attrs = facets(conv)
    if attrs.kernel_size is not None:
        return attrs.kernel_size
    shape = shape_of(conv.args[1])
    return [int(shape[attrs.kernel_layout.index(letter)]) for letter in "HW"]


def _plain(conv: Call) -> bool:
    """A convolution that does nothing but convolve."""
    attrs = facets(conv)
    ones = all(int(v) == 1 for v in (*attrs.strides, *attrs.dilation))
    return attrs.data_layout == "NHWC" and attrs.out_layout in ("", "NHWC") and ones


def _padded_with(conv: Call) -> float | None:
    """What stands around the input of a convolution; None if it is not known."""
    if is_call_to(conv, "nn.conv2d"):
        return 0
    zero = conv.args[2]
    return float(zero.data.item()) if isinstance(zero, Constant) and zero.data.size == 1 else None


def _flatten(new: Expr, old: Expr) -> Expr:
    found, was = _chain(new), _chain(old)
    if found is None or was is None:
        return new
    source, conv, _ = found
    to_batch, attrs, to_space = (facets(c) for c in was)
    if (
        not _plain(was[1])
        or list(to_batch.block_shape) != list(to_space.block_shape)
        or to_batch.pad_value != _padded_with(was[1])
    ):
        return new
    padding = _padding(*was)
    if padding is None:
        return new
    dilated = attrs.replace(padding=padding, dilation=to_batch.block_shape, kernel_size=_kernel_size(was[1]))
    return rebuild(Call(conv.op, conv.args, dilated, conv.type_args), (conv.op, source.args[0], *conv.args[1:]))


@pass_(level=0, requires=("InferType",), idempotent=True)
class FlattenAtrousConv(FunctionPass):
    """Writes space-to-batch, convolution, batch-to-space (NHWC) as one convolution with dilation."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return rewrite(func, _flatten, only=(_TO_SPACE,))
