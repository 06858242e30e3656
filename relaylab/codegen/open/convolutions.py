"""Convolutions of open images read no zeros around them: what pads is a step of its own before the kernel.

Zeros that kernels of known sizes write once around a tensor would lie elsewhere for every size.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from typing import cast

from relaylab.codegen.specialize import with_body
from relaylab.ir.expr import Call, Expr
from relaylab.ir.module import IRModule
from relaylab.ir.op import facets, is_call_to
from relaylab.ir.types import TensorType, is_dynamic
from relaylab.ir.visit import rewrite
from relaylab.op.nn.conv import Conv
from relaylab.transform.engine.build import call, scalar

CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")


def with_padded_images(mod: IRModule) -> IRModule:
    """A typed module whose convolutions of open images, but for depthwise ones and groups, have no padding."""
    main = mod["main"]
    return with_body(mod, rewrite(main.body, _padded))


def _padded(new: Expr, old: Expr) -> Expr:
    if not is_call_to(new, *CONVOLUTIONS) or not is_dynamic(cast(Call, old).args[0].checked_type):
        return new
    record = cast(Conv, facets(new))
    if record.groups > 1 or not any(map(any, record.pads)):
        return new
    around = dict(zip(record.spatial, record.pads))
    widths = tuple(around.get(axis, (0, 0)) for axis in record.data_layout)
    if len(widths) != len(record.spatial) + 2:
        return new
    dtype = cast(TensorType, cast(Call, old).args[0].checked_type).dtype
    data = call("nn.pad", new.args[0], scalar(0, dtype), pad_width=widths)
    plain = {**dict(record.items()), "padding": (0,) * (2 * len(record.spatial))}
    return Call(new.op, [data, new.args[1]], type(record)(**plain), span=new.span)
