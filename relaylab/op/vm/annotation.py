"""Annotations: operators that pass their argument on and tell passes something about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from relaylab.ir.base import UNCONSTRAINED, VirtualDevice, placed, virtual_device
from relaylab.ir.converters import Converter
from relaylab.ir.expr import Expr, Function, FunctionWithFields, Var
from relaylab.ir.types import Type
from relaylab.ir.visit import substitute
from relaylab.op.base import Dtype, Input, Opaque, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.support.errors import RelayValueError


class Annotation(Opaque):
    """Its argument as it is, of any type."""

    data: Input = arg("the value: a tensor or a tuple")
    yields = "its argument, of the same type"
    source = "TVM 0.10, relay.annotation"

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        return s.unify(data, s.out)

    def reference(self, data: Any) -> Any:
        return data

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        return (data[out.field] if isinstance(data, tuple) else data)(*i)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3)), sample([(2,), ()])]


@op("annotation.stop_fusion")
class stop_fusion(Annotation):
    """A wall for FuseOps: what is before and what is after become different kernels."""


@op("annotation.checkpoint")
class checkpoint(Annotation):
    """Marks what the gradient shall compute again instead of keeping."""


@op("annotation.bitpack_start")
class bitpack_start(Annotation):
    """Marks where bit-packed values begin."""


@op("annotation.bitpack_end")
class bitpack_end(Annotation):
    """Marks where bit-packed values end."""


@op("annotation.cast_hint", attrs_key="CastHint", meta_attrs=True)
class cast_hint(Annotation):
    """Tells quantisation in which data type the value shall be kept."""

    dtype: Dtype = attr(doc="the data type that the value shall be kept in")

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), dtype="int8")]


OnDevice = Annotated[VirtualDevice, Converter("Device", "a device", virtual_device)]
"""Where a value lives."""


class Region(Annotation):
    """A border of a region for an external compiler."""

    compiler: str = attr(doc="the name of the external compiler")

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), compiler="mine")]


@op("annotation.compiler_begin", attrs_key="Compiler", meta_attrs=True)
class compiler_begin(Region):
    """An input of a region for the external compiler of that name."""


@op("annotation.compiler_end", attrs_key="Compiler", meta_attrs=True)
class compiler_end(Region):
    """An output of a region for the external compiler of that name."""


@op("on_device", attrs_key="OnDevice", computes=False)
class on_device(Annotation):
    """Says on which device the body (and, if asked, the result) lives."""

    body: Input = arg("the value that lives on the device: a tensor, a tuple or a function")
    virtual_device: OnDevice = attr(UNCONSTRAINED, "the device")
    constrain_result: bool = attr(False, "whether the result must live on the device as well")
    constrain_body: bool = attr(True, "whether the body must live on the device")
    extra = {"device": "the device"}
    source = "TVM 0.10, the pass PlanDevices"

    @classmethod
    def build(cls, body: Expr, device: object, constrain_result: bool = False, constrain_body: bool = True) -> Expr:
        asked = virtual_device(device if constrain_result or constrain_body else None)
        return cls.call(body, virtual_device=asked, constrain_result=constrain_result, constrain_body=constrain_body)


def function_on_device(function: Function, param_devices: Sequence[object], result_device: object) -> Function:
    """A function whose parameters and result live on these devices. RelayValueError for another number of them."""
    if len(param_devices) != len(function.params):
        raise RelayValueError(
            f"{len(function.params)} parameters live on as many devices, {len(param_devices)} are given",
            code="op.devices",
        )
    params = {
        p: placed(Var(p.name_hint, p.type_annotation, span=p.span), virtual_device(d))
        for p, d in zip(function.params, param_devices)
    }
    body = substitute(function.body, dict(params))
    return FunctionWithFields(function, list(params.values()), body, virtual_device=virtual_device(result_device))


@op("device_copy", attrs_key="DeviceCopy")
class device_copy(Annotation):
    """A copy from one device to another."""

    src_virtual_device: OnDevice = attr(doc="the device on which the value lives")
    dst_virtual_device: OnDevice = attr(doc="the device on which the copy lives")
    extra = {"src_device": "the device on which the value lives", "dst_device": "the device on which the copy lives"}
    source = "TVM 0.10, the pass PlanDevices"

    @classmethod
    def build(cls, data: Expr, src_device: object, dst_device: object) -> Expr:
        devices = {"src_virtual_device": virtual_device(src_device), "dst_virtual_device": virtual_device(dst_device)}
        return cls.call(data, **devices)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), src_virtual_device=1, dst_virtual_device=1)]
