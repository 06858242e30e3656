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
    """A typed module whose convolutions of open images have no padding, and whose grouped ones have the channels of
    their weights side by side, as those of the data are.
    """
    main = mod["main"]
    return with_body(mod, rewrite(main.body, _padded))


def _padded(new: Expr, old: Expr) -> Expr:
    if not is_call_to(new, *CONVOLUTIONS) or not is_dynamic(cast(Call, old).args[0].checked_type):
        return new
    record, (data, weight) = cast(Conv, facets(new)), new.args
    n, letters = len(record.spatial), record.kernel_layout
    if len(record.data_layout) != n + 2 or len(letters) != n + 2:
        return new
    changed: dict[str, object] = {}
    if any(map(any, record.pads)):
        around = dict(zip(record.spatial, record.pads))
        zero = scalar(0, cast(TensorType, cast(Call, old).args[0].checked_type).dtype)
        data = call("nn.pad", data, zero, pad_width=tuple(around.get(axis, (0, 0)) for axis in record.data_layout))
        changed["padding"] = (0,) * (2 * n)
    if record.groups > 1:
        changed["kernel_layout"] = layout = f"{record.spatial}IO"
        weight = call("transpose", weight, axes=tuple(map(letters.index, layout)))
    plain = {**dict(record.items()), **changed}
    return Call(new.op, [data, weight], type(record)(**plain), span=new.span) if changed else new
