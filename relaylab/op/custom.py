"""Operators registered by a program, facet by facet, as TVM's `relay.op.op.register` has it.

    register("mine.log")
    get("mine.log").set_num_inputs(1)
    get("mine.log").add_type_rel("Identity")
    register_compute("mine.log", lambda attrs, inputs, out_type: [numpy.log(inputs[0])])

An operator as a class (`relaylab.op.base`) says the same in one place, and can have a loop-level form. What is
registered here is evaluated in numpy, by the interpreter and the virtual machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

from relaylab.ir.attrs import DictAttrs, Field
from relaylab.ir.converters import Value
from relaylab.ir.expr import Call
from relaylab.ir.op import OPERATORS, Op
from relaylab.ir.types import IncompleteType, Type
from relaylab.op.base import Broadcast, Elementwise, Opaque, OpPattern, RelationError
from relaylab.op.helpers import TypeSolver
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])
Facet = Callable[..., Any]
Fact = Any
"""What is registered, or the decorator that takes it."""
TypeRelationFunction = Callable[[list[Type], DictAttrs | None], Type | None]
_NO_LOOPS = "it is registered with a function on numpy arrays"


class _Compared(Broadcast):
    """Broadcasting with a truth value for each element."""

    result_dtype = "bool"


RELATIONS: Mapping[str, Callable[..., Type | None]] = {
    "Identity": Elementwise.relation,
    "Broadcast": Broadcast.relation,
    "BroadcastComp": _Compared.relation,
}
"""The type relations that have a name of their own."""
_SELVES = {"Identity": Elementwise, "Broadcast": Broadcast, "BroadcastComp": _Compared}


class Registered(Opaque):
    """The base of operators that a program registers; their attributes are what a call gives."""

    takes_any: ClassVar[bool] = True
    named: ClassVar[tuple[str, ...]] = ()
    type_relation: ClassVar[TypeRelationFunction | str] = "Identity"
    waivers = {"lower": _NO_LOOPS, "samples": _NO_LOOPS}

    def __init__(self, **values: object):
        self.__dict__["fields"] = {name: Field(name, Value, value) for name, value in values.items()}
        super().__init__(**values)

    def given(self) -> DictAttrs | None:
        """The attributes of the call; None if it has none."""
        return DictAttrs(dict(self.items())) if self.fields else None

    def relation(self, s: TypeSolver, *types: Type) -> Type | None:
        rule = type(self).type_relation
        if isinstance(rule, str):
            return RELATIONS[rule](_SELVES[rule](), s, *types)
        found = rule(list(types), self.given())
        if isinstance(found, (list, tuple)):  # TVM: the types of the results
            found = found[-1]
        return None if found is None or isinstance(found, IncompleteType) else found

    def reference(self, *arrays: Fact) -> Fact:
        compute = cast("Facet | None", self.op.get_attr("FTVMCompute"))
        if compute is None:
            raise RelationError(
                f"{self.op_name} has no compute function",
                code="op.no-facet",
                help=f'register_compute("{self.op_name}")',
            )
        results = compute(self.given(), list(arrays), None)
        if not isinstance(results, (list, tuple)):
            return results
        return results[0] if len(results) == 1 else tuple(results)

    @classmethod
    def set_relation(cls, name: str, function: TypeRelationFunction | None) -> None:
        """The type relation: a function, or one that is known by its name."""
        if function is None and name not in RELATIONS:
            help = did_you_mean(name, RELATIONS) or f"known by name: {', '.join(RELATIONS)}"
            raise RelayValueError(f"there is no type relation `{name}`", code="op.type-relation", help=help)
        cls.type_relation = name if function is None else function

    @classmethod
    def set_key(cls, key: str) -> None:
        """The kind of its attributes, of which there is one."""
        if key != "DictAttrs":
            raise RelayValueError(
                f"the attributes of {cls.op_name} cannot be {key}", code="op.attributes", help='write "DictAttrs"'
            )

    @classmethod
    def call(cls, *args: Fact, **attrs: object) -> Call:
        return Call(cls.op, args, cast(Any, DictAttrs(attrs)) if attrs else None)


def register(op_name: str, describe: str = "") -> Op:
    """A new operator without inputs or type relation yet: see `Op.set_num_inputs`, `add_type_rel`, `register_compute`.

    RelayValueError (`operator.duplicate`) for the name of an operator of relaylab; one that a program registered is
    made anew.
    """
    if op_name in OPERATORS and not _is_registered(OPERATORS[op_name]):
        raise RelayValueError(
            f"the operator `{op_name}` exists already", code="operator.duplicate", help="choose another name"
        )
    doc = describe or f"The operator {op_name}."
    # of the program, as a class written in it is: tables of relaylab's own operators leave it out
    made = type(op_name, (Registered,), {"op_name": op_name, "__doc__": doc, "__module__": "__main__"})
    made.op = OPERATORS.insert(op_name, Op(op_name, cast(Any, made)), replace=True)
    return made.op


def _is_registered(op: Op) -> bool:
    return isinstance(op.definition, type) and issubclass(op.definition, Registered)


def _attr_register(key: str) -> Callable[..., Any]:
    """The function that registers the fact `key` of operators: by name, value and level, or as a decorator."""

    def register_fact(op_name: str, value: Fact = None, level: int = 10) -> Fact:
        def keep(function: F) -> F:
            Op.get(op_name).set_attr(key, function, level)
            return function

        return keep(value) if value is not None else keep

    register_fact.__name__ = key
    register_fact.__doc__ = f"Register the fact `{key}` of an operator; usable as a decorator."
    return register_fact


def register_compute(op_name: str, compute: Facet | None = None, level: int = 10) -> Fact:
    """Register `compute(attrs, inputs, out_type) -> arrays` on numpy arrays, for operators made by `register`.

    Usable as a decorator. `out_type` is None. Operators of relaylab keep their own meaning.
    """
    return _attr_register("FTVMCompute")(op_name, compute, level)


def register_pattern(op_name: str, pattern: int, level: int = 10) -> None:
    """Register how FuseOps treats an operator."""
    Op.get(op_name).set_attr("TOpPattern", OpPattern(pattern), level)


def register_stateful(op_name: str, stateful: bool, level: int = 10) -> None:
    """Register whether an operator made by `register` has an effect: such are never folded, merged or dropped."""
    made = Op.get(op_name)
    made.set_attr("TOpIsStateful", bool(stateful), level)
    if _is_registered(made):
        cast("type[Registered]", made.definition).stateful = bool(stateful)


def register_gradient(op_name: str, fgradient: Facet | None = None, level: int = 10) -> Fact:
    """Register `fgradient(call, grad) -> [gradient of each argument]`; usable as a decorator.

    The gradient of a tuple is a tuple. It is asked before the rule that relaylab has for the operator.
    """
    return _attr_register("FPrimalGradient")(op_name, fgradient, level)


def register_shape_func(
    op_name: str, data_dependent: bool | Sequence[bool], shape_func: Facet | None = None, level: int = 10
) -> Fact:
    """Kept as facts of the operator: what runs here computes shapes with the values, so nothing asks for it."""
    Op.get(op_name).set_attr("TShapeDataDependent", data_dependent, level)
    return _attr_register("FShapeFunc")(op_name, shape_func, level)


def register_external_compiler(op_name: str, fexternal: Facet | None = None, level: int = 10) -> Fact:
    """Register `fexternal(attrs, args, compiler) -> bool`: whether another code generator takes the operator."""
    return _attr_register("FTVMExternalCompiler")(op_name, fexternal, level)


def register_fake_quantization_to_integer(op_name: str, func: Facet | None = None, level: int = 10) -> Fact:
    """Register `func(call, types) -> [integers, TensorAffineType]`, which FakeQuantizationToInteger asks first.

    `types` maps each argument (its form on integers) and the call to its affine type. Usable as a decorator.
    """
    return _attr_register("FTVMFakeQuantizationToInteger")(op_name, func, level)


def register_optional_fake_quantization_to_integer(op_name: str, func: Facet | None = None, level: int = 10) -> Fact:
    """As `register_fake_quantization_to_integer`, asked where FakeQuantizationToInteger has `use_qat`."""
    return _attr_register("FTVMOptionalFakeQuantizationToInteger")(op_name, func, level)


def register_mixed_precision_conversion(op_name: str, func: Facet | None = None, level: int = 10) -> Fact:
    """Register `func(call, mixed_precision_type) -> [category, accumulation dtype, output dtype]` for ToMixedPrecision.

    It is asked before the table of the pass; categories are 0 (always), 1 (follow), 2 (never). Usable as a decorator.
    """
    return _attr_register("FTVMMixedPrecisionConversionType")(op_name, func, level)


def register_infer_correct_layout(op_name: str, infer_layout: Facet | None = None, level: int = 10) -> Fact:
    """Kept as a fact of the operator; `register_convert_op_layout` is what ConvertLayout asks."""
    return _attr_register("FInferCorrectLayout")(op_name, infer_layout, level)


def register_strategy(op_name: str, fstrategy: Facet | None = None, level: int = 10) -> Fact:
    """Kept as a fact of the operator: kernels are chosen by their shapes, nothing asks for strategies or schedules."""
    return _attr_register("FTVMStrategy")(op_name, fstrategy, level)


def register_schedule(op_name: str, schedule: Facet | None = None, level: int = 10) -> Fact:
    """As `register_strategy`."""
    return _attr_register("FTVMSchedule")(op_name, schedule, level)


def register_injective_schedule(op_name: str, level: int = 10) -> None:
    """As `register_strategy`, for operators whose elements can be computed in any order."""
    Op.get(op_name).set_attr("FTVMSchedule", "injective", level)


register_broadcast_schedule = register_reduce_schedule = register_injective_schedule

__all__ = sorted(name for name in globals() if name.startswith("register"))
