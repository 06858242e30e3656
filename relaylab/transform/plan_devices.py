"""PlanDevices: every value gets a device. With one device, as here, this leaves the program as it is.

`on_device` annotations name the device of their argument; with a single CPU all of them agree, and
they have done their work once this has been checked.
"""

from __future__ import annotations

from typing import Annotated

from relaylab.ir import Expr, IRModule, facets, is_call_to
from relaylab.support.errors import RelayValueError
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.engine.renewal import rewrite_function

CPU = 1


def _device_type(device: object) -> int | None:
    """The kind of device that an annotation names, if it names one."""
    found = getattr(device, "device_type", device)
    return int(found) if isinstance(found, int) and found > 0 else None


def _without_annotation(new: Expr, old: Expr) -> Expr:
    if not is_call_to(new, "on_device", "device_copy"):
        return new
    attrs = facets(new)
    wanted = {
        _device_type(getattr(attrs, name, None))
        for name in ("virtual_device", "src_virtual_device", "dst_virtual_device")
    }
    foreign = wanted - {None, CPU}
    if foreign:
        raise RelayValueError(
            f"the program asks for a device of type {foreign.pop()}; there is only the CPU", code="devices.unknown"
        )
    return new.args[0]


@pass_(level=0, idempotent=True)
class PlanDevices(ModulePass):
    """Places every value on the one CPU and drops annotations that say so; another device is an error."""

    config: Annotated[object, "Taken for TVM's sake: there is one device."] = None

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        functions = {gv: rewrite_function(func, _without_annotation) for gv, func in mod.functions.items()}
        return mod.with_functions(functions)
