"""PlanDevices: every value gets a device.

`on_device` annotations name the device of their argument, `device_copy` that of its result; with a single CPU all of
them agree, and they have done their work once this has been checked. Given what a program is compiled for, functions
and their parameters say the device that they live on; without it that goes without saying, and nothing is written.
"""

from __future__ import annotations

from typing import Annotated, Protocol, cast, runtime_checkable

from relaylab.ir import Expr, Function, FunctionWithFields, IRModule, Var, facets, is_call_to, op_name, rewrite, walk
from relaylab.ir.base import UNKNOWN_DEVICE, VirtualDevice, placed, set_type
from relaylab.ir.trail import derived
from relaylab.support.errors import RelayValueError
from relaylab.support.foreign import FOREIGN, READ_AS_CPU
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.engine.renewal import rewrite_function

CPU = 1


@runtime_checkable
class Placement(Protocol):
    """What a program is compiled for, as far as it says where values live."""

    @property
    def default_primitive_virtual_device(self) -> VirtualDevice: ...


def _without_annotation(new: Expr, old: Expr) -> Expr:
    if not is_call_to(new, "on_device", "device_copy"):
        return new
    named = [value.device_type for _, value in facets(new).items() if isinstance(value, VirtualDevice)]
    foreign = [kind for kind in named if kind not in (UNKNOWN_DEVICE, CPU)]
    if foreign and not FOREIGN.read(f"a device of type {foreign[0]}"):
        raise RelayValueError(
            f"the program asks for a device of type {foreign[0]}; there is only the CPU",
            code="devices.unknown",
            help=f"leave out `{op_name(new)}`, or name the CPU; {READ_AS_CPU}",
        )
    return new.args[0]


class _Placing:
    """Puts a device on functions and their parameters; kernels have none of their own."""

    def __init__(self, device: VirtualDevice):
        self.device = device
        self.memo: dict[Expr, Expr] = {}

    def function(self, func: Function) -> Function:
        """The function with all that are written in it."""
        for node in walk((func,)):
            if isinstance(node, Function) and not node.is_primitive:
                self.memo |= {p: self.parameter(p) for p in node.params if p.device is None}
        return cast(Function, rewrite(func, self.placed, memo=self.memo))

    def parameter(self, var: Var) -> Var:
        typ = var.inferred
        new = placed(Var(var.name_hint, var.type_annotation, span=var.span), self.device)
        set_type(new, typ)
        return derived(new, var)

    def placed(self, new: Expr, old: Expr) -> Expr:
        if not isinstance(new, Function) or new.is_primitive or new.device is not None:
            return new
        made = FunctionWithFields(new, virtual_device=self.device)
        if new.body.inferred is not None:  # a node with a type has typed parts: inference looks no further
            set_type(made, old.inferred)
        return made


@pass_(level=0, idempotent=True)
class PlanDevices(ModulePass):
    """Places every value on the one CPU and drops annotations that say so; another device is an error.

    In programs for TVM it is read as the CPU.
    """

    config: Annotated[
        Placement | None,
        "What the program is compiled for: `make_compilation_config`; functions then say where they are.",
    ] = None

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        functions = {gv: rewrite_function(func, _without_annotation) for gv, func in mod.functions.items()}
        if self.config is not None:
            placing = _Placing(self.config.default_primitive_virtual_device)
            functions = {gv: placing.function(func) for gv, func in functions.items()}
        return mod.with_functions(functions)
