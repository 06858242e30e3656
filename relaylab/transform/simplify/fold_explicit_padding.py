"""FoldExplicitPadding: a pad before a convolution or a pooling becomes part of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from relaylab.ir import Call, Constant, Expr, Function, IRModule, facets, is_call_to, op_name, rewrite
from relaylab.op.layout import parse_layout
from relaylab.op.nn.pool import border
from relaylab.transform.engine.build import scalar_value
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import dtype_of
from relaylab.transform.engine.manager import FunctionPass

_CONVS = ("nn.conv1d", "nn.conv2d", "nn.conv3d", "qnn.conv2d")
_MAX = ("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")
_AVG = ("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")


def _value_fits(name: str, consumer: Call, pad: Call) -> bool:
    """Whether the consumer pads with the same value itself."""
    value = scalar_value(pad.args[1])
    if name in _MAX:
        return value is not None and value == border(dtype_of(pad.args[0]))
    if name == "qnn.conv2d":
        return value is not None and value == scalar_value(consumer.args[2])
    return value == 0


def _spatial(consumer: Call, pad: Call) -> tuple[list[int], list[int]] | None:
    """What a pad adds before and after each spatial axis; None if it pads batch or channels."""
    attrs = facets(consumer)
    layout = parse_layout(getattr(attrs, "data_layout", None) or attrs.layout)
    before, after = [], []
    for axis, (low, high) in zip(layout.axes, facets(pad).pad_width):
        if low < 0 or high < 0:
            return None
        if axis.letter in "DHW" and not axis.factor:
            before.append(int(low))
            after.append(int(high))
        elif low or high:
            return None
    return before, after


def _full_padding(padding: Sequence[int], spatial: int) -> list[int]:
    """[before ..., after ...] of all spatial axes, from any short form."""
    given = [int(p) for p in padding]
    if len(given) == 1:
        return given * (2 * spatial)
    return given * 2 if len(given) == spatial else given


def _fold(new: Expr, old: Expr) -> Expr:
    name = op_name(new)
    if name not in (*_CONVS, *_MAX, *_AVG) or not isinstance(new, Call) or not is_call_to(new.args[0], "nn.pad"):
        return new
    pad = new.args[0]
    was = cast(Call, old).args[0]
    constant = isinstance(pad.args[1], Constant) and facets(pad).pad_mode == "constant"
    if not constant or not is_call_to(was, "nn.pad"):
        return new
    added = _spatial(new, pad)
    if added is None or not _value_fits(name, new, was):
        return new
    return _merged(new, name, pad.args[0], added)


def _merged(call: Call, name: str, data: Expr, added: tuple[list[int], list[int]]) -> Expr:
    (before, after), attrs = added, facets(call)
    own = _full_padding(attrs.padding, len(before))
    changes: dict[str, Any] = {"padding": [a + b for a, b in zip(own, (*before, *after))]}
    if name in _AVG:
        if attrs.ceil_mode or (any(own) and not attrs.count_include_pad):
            return call  # the zeros of the pad count, those of the pooling do not: not one padding
        changes["count_include_pad"] = True
    return Call(call.op, (data, *call.args[1:]), attrs.replace(**changes), call.type_args)


@pass_(level=0, requires=("InferType",), idempotent=True)
class FoldExplicitPadding(FunctionPass):
    """Moves constant padding into the padding of the convolution or pooling that reads it."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return rewrite(func, _fold)
