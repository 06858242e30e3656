"""FoldExplicitPadding: a pad before a convolution or a pooling becomes part of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab.ir import Call, Constant, Expr, Function, facets, is_call_to, op_name, rewrite
from relaylab.op.layout import parse_layout
from relaylab.transform.build import scalar_value
from relaylab.transform.infer_type import dtype_of
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass

_CONVS = ("nn.conv1d", "nn.conv2d", "nn.conv3d", "qnn.conv2d")
_MAX = ("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")
_AVG = ("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")


def _lowest(dtype: str) -> float | int:
    info = np.finfo(dtype) if dtype.startswith("float") else np.iinfo(dtype)
    return info.min.item() if hasattr(info.min, "item") else info.min


def _value_fits(name: str, consumer: Call, pad: Call) -> bool:
    """Whether the consumer pads with the same value itself."""
    value = scalar_value(pad.args[1])
    if name in _MAX:
        return value is not None and (value == _lowest(dtype_of(pad.args[0])) or value == -np.inf)
    if name == "qnn.conv2d":
        return value is not None and value == scalar_value(consumer.args[2])
    return value == 0


def _spatial(attrs: Any, pad_width: Any) -> tuple[list[int], list[int]] | None:
    """What a pad adds before and after each spatial axis; None if it pads batch or channels."""
    layout = parse_layout(getattr(attrs, "data_layout", None) or attrs.layout)
    before, after = [], []
    for axis, (low, high) in zip(layout.axes, pad_width):
        if low < 0 or high < 0:
            return None
        if axis.letter in "DHW" and not axis.factor:
            before.append(int(low))
            after.append(int(high))
        elif low or high:
            return None
    return before, after


def _full_padding(padding: Any, spatial: int) -> list[int]:
    """[before ..., after ...] of all spatial axes, from any short form."""
    given = [int(p) for p in padding]
    if len(given) == 1:
        return given * (2 * spatial)
    return given * 2 if len(given) == spatial else given


def _fold(new: Expr, old: Expr) -> Expr:
    name = op_name(new)
    if name not in (*_CONVS, *_MAX, *_AVG) or not isinstance(new, Call) or not is_call_to(new.args[0], "nn.pad"):
        return new
    pad, attrs = new.args[0], facets(new)
    was = old.args[0]  # type: ignore[attr-defined]
    constant = isinstance(pad.args[1], Constant) and facets(pad).pad_mode == "constant"
    if not constant or not is_call_to(was, "nn.pad"):
        return new
    added = _spatial(attrs, facets(pad).pad_width)  # type: ignore[arg-type]
    if added is None or not _value_fits(name, new, was):  # type: ignore[arg-type]
        return new
    return _merged(new, name, attrs, pad.args[0], added)  # type: ignore[attr-defined]


def _merged(call: Call, name: str, attrs: Any, data: Expr, added: tuple[list[int], list[int]]) -> Expr:
    before, after = added
    own = _full_padding(attrs.padding, len(before))
    changes: dict[str, Any] = {"padding": [a + b for a, b in zip(own, (*before, *after))]}
    if name in _AVG:
        if attrs.ceil_mode or (any(own) and not attrs.count_include_pad):
            return call  # the zeros of the pad count, those of the pooling do not: not one padding
        changes["count_include_pad"] = True
    return Call(call.op, (data, *call.args[1:]), attrs.replace(**changes), call.type_args)


@register_pass(idempotent=True)
def FoldExplicitPadding() -> Pass:
    """Moves constant padding into the padding of the convolution or pooling that reads it."""

    def run(func: Function, mod: object, ctx: object) -> Function:
        return rewrite(func, _fold)  # type: ignore[return-value]

    return FunctionPass(PassInfo(0, "FoldExplicitPadding", ("InferType",)), run)
