"""What an operator is: one class, every facet in it.

The class body declares the inputs and the attributes (an instance is the record `call.attrs`), the methods are the
facets, the base class is the fusion pattern, and the decorated name is the public builder:

    @op("nn.leaky_relu", level=3, attrs_key="LeakyRelu")
    class leaky_relu(Elementwise):
        \"\"\"Leaky rectified linear unit: data if data > 0, else alpha * data; any shape.\"\"\"

        alpha: float = attr(0.25, "the slope below 0")

        def reference(self, data): return np.where(data > 0, data, self.alpha * data)
        def scalar(self, b, x): return b.select(x > 0, x, x * self.alpha)

Facets
    result_type(s, *tensors)  the result type, from those of the arguments when all are known to be tensors
    relation(s, *types)       where that is not enough: None while too little is known; may complete argument types
    reference(*arrays)        the meaning, in numpy (a tuple-typed argument is a Python tuple of arrays)
    scalar(b, *elements)      elementwise and broadcasting operators: one element from one element each
    lower(b, out, i, *ins)    the element of the result at index `i`, as a loop-level expression
    procedure(p, *outs, *ins) instead of `lower`, where elements depend on each other: the statements that write all
    macs(types, out)          multiply-accumulates of one evaluation
    samples()                 what tests must try
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, Union, cast

import numpy as np

from relaylab.ir.attrs import Attrs
from relaylab.ir.attrs import attr as attr
from relaylab.ir.converters import Converter as Converter
from relaylab.ir.converters import Dims as Dims
from relaylab.ir.converters import Dtype as Dtype
from relaylab.ir.converters import Floats as Floats
from relaylab.ir.converters import Ints as Ints
from relaylab.ir.converters import Pairs as Pairs
from relaylab.ir.converters import Value as Value
from relaylab.ir.expr import Call, Expr, TupleWrapper, as_expr, python_operator
from relaylab.ir.names import IDENT
from relaylab.ir.op import OPERATORS, Op
from relaylab.ir.types import IncompleteType, TensorType, TupleType, Type
from relaylab.op.builder import OperatorBuilder
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Position, Readable, TypeSolver
from relaylab.op.rules import all_known, broadcast, same_dtype, tensor
from relaylab.support.errors import RelayError, RelayValueError

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure

_NAME = re.compile(rf"{IDENT}(?:\.{IDENT})*")
SampleArg = Union[TensorType, np.ndarray, tuple["SampleArg", ...]]


@dataclass(frozen=True, slots=True)
class Input:
    """The annotation of an input in the body of an operator, and what is said of it there; see `arg`."""

    doc: str = ""
    shape: str = ""
    dtype: str = ""


def arg(doc: str, shape: str = "any", dtype: str = "any") -> Input:
    """The description of an input for the class body of an operator: its meaning, shape and data type."""
    return Input(doc, shape, dtype)


class OpPattern(IntEnum):
    """How FuseOps may treat an operator (Relay's numbering)."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8

    @property
    def words(self) -> str:
        """What an operator of this pattern is called."""
        return _PATTERN_WORDS[self]


_PATTERN_WORDS = {
    OpPattern.ELEMWISE: "an elementwise operator",
    OpPattern.BROADCAST: "a broadcasting operator",
    OpPattern.INJECTIVE: "an injective operator",
    OpPattern.COMM_REDUCE: "a reduction",
    OpPattern.OUT_ELEMWISE_FUSABLE: "a heavy operator",
    OpPattern.TUPLE: "a tuple",
    OpPattern.OPAQUE: "an opaque operator",
}


class RelationError(RelayError):
    """Why the types of a call do not fit its operator; inference adds the place."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One case that tests must try: argument types (or arrays, or tuples of them) and attributes.

    `low` and `high` bound the seeded random values; `args` may hold arrays where values matter.
    """

    args: tuple[SampleArg, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    low: float = -2.0
    high: float = 2.0


def sample(*args: object, **attrs: Any) -> Sample:
    """A `Sample`; a tuple of ints stands for a float32 tensor of that shape, a list for a tuple argument.

    `low` and `high` among the attributes bound the values (-2 and 2 if not given).
    """
    low, high = attrs.pop("low", -2.0), attrs.pop("high", 2.0)
    return Sample(tuple(map(_sample_arg, args)), attrs, low, high)


def _sample_arg(arg: object) -> SampleArg:
    if isinstance(arg, list):
        return tuple(map(_sample_arg, arg))
    return TensorType(arg) if isinstance(arg, tuple) else cast(SampleArg, arg)


class Operator(Attrs):
    """The base of all operators; see the module's docstring."""

    op_name: ClassVar[str] = ""
    op: ClassVar[Op]
    inputs: ClassVar[tuple[str, ...]] = ()
    level: ClassVar[int] = 10
    pattern: ClassVar[OpPattern] = OpPattern.OPAQUE
    takes_any: ClassVar[bool] = False
    """A call may have any attributes: the operator was registered by a program."""
    stateful: ClassVar[bool] = False
    """The operator has an effect or a state: never folded, merged or dropped."""
    ordered: ClassVar[bool] = True
    """If it is stateful: its place among other effects counts."""
    computes: ClassVar[bool] = True
    """False for operators that passes must rewrite away before code is made (TNonComputational)."""
    reshapes: ClassVar[bool] = False
    """The result has the same elements in the same order: no copy is needed (TReshapeOp)."""
    refuses_values: ClassVar[bool] = False
    """Types are not all that inference asks of a call: `refusal` looks at constants."""
    reads_bits: ClassVar[bool] = False
    """Its meaning depends on how an element is stored; others see a bfloat16 as the float32 that it is."""
    meta_attrs: ClassVar[bool] = False
    """The operator is registered without its attribute type: the text shows them as meta data."""
    described: ClassVar[dict[str, Input]] = {}
    """What is said of the inputs, by name."""
    parameters: ClassVar[str] = ""
    """The parameters of the builder, where they are not the inputs and then the attributes as declared."""
    defaults: ClassVar[dict[str, Any]] = {}
    """The builder's defaults, where they are not those of the attributes."""
    required: ClassVar[str] = ""
    """Parameters of the builder that must be given, although the attributes have defaults for the text."""
    dynamic: ClassVar[tuple[str, ...]] = ()
    """Attributes that the builder also takes as expressions: it then calls the operator `dyn.` of the same name."""
    waivers: ClassVar[dict[str, str]] = {}
    """Facets that the operator cannot have, each with the reason."""
    extra: ClassVar[dict[str, str]] = {}
    """What those parameters of the builder mean that are neither inputs nor attributes."""
    yields: ClassVar[str] = ""
    """The shape of the result as a formula, and its data type."""
    source: ClassVar[str] = ""
    """Where the operator is defined: a paper, a standard, a specification."""
    errors: ClassVar[dict[str, str]] = {}
    """The codes of the errors that its builder raises beside those of every operator, each with the reason."""

    @classmethod
    def declare(cls, hints: dict[str, object]) -> None:
        own = {n: cls.__dict__.get(n) or Input() for n, hint in hints.items() if hint is Input}
        for name in own.keys() & cls.__dict__.keys():
            delattr(cls, name)
        if not own.keys() <= set(cls.inputs):  # else they are those of the base, described anew
            cls.inputs = tuple(own)
        inherited: dict[str, Input] = {}
        for base in reversed(cls.__bases__):
            inherited |= getattr(base, "described", {})
        cls.described = inherited | own
        if "refusal" in cls.__dict__ and Attrs not in cls.__bases__:
            cls.refuses_values = True
        super().declare({n: hint for n, hint in hints.items() if n not in own})

    def __init__(self, **values: object):
        needed = {n: v for n, v in self.defaults.items() if n not in values and self.fields[n].required}
        super().__init__(**needed, **values)

    @property
    def native(self) -> bool:
        """Whether machine code can stand for a call with these attributes."""
        return "lower" not in self.waivers

    # the facets of an operator name their parameters; `Any` here lets a type checker accept each list of them
    def relation(self, s: TypeSolver, *types: Any, **named: Any) -> Type | None:
        found = all_known(tensor(s, t, name) for t, name in zip(types, self.inputs[: len(types)], strict=True))
        return None if found is None else self.result_type(s, *found)

    def result_type(self, s: TypeSolver, *types: Any) -> Type | None:
        raise RelationError(f"{self.op_name} has no type relation", code="op.no-facet")

    def refusal(self, types: Sequence[Type], values: Sequence[np.ndarray | None]) -> str:
        """Why a call that the relation accepts cannot be computed, as its constant arguments tell (others: None)."""
        return ""

    def reference(self, *arrays: Any, **named: Any) -> Any:
        raise RelayError(f"{self.op_name} has no reference semantics", code="op.no-facet")

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, *ins: Any, **named: Any) -> Element:
        if self.is_procedure():
            message = f"{self.op_name} is a procedure: no element of it is computed by itself"
            raise RelayError(message, code="op.no-facet", help="it is neither fused nor scheduled")
        reason = self.waivers.get("lower", "")
        help = f'{reason}; create_executor("vm") evaluates it' if reason else ""
        raise RelayError(f"{self.op_name} has no loop-level form", code="op.no-facet", help=help)

    def procedure(self, p: Procedure, *tensors: Any, **named: Any) -> None:
        raise RelayError(f"{self.op_name} is no procedure", code="op.no-facet")

    def with_room(self, args: Sequence[Expr]) -> Expr | None:
        """Where data decides how many rows are found: a call of typed arguments that has room for all. Its last field
        says how many rows of each other one are meant, or something negative where `reference` refuses. None: no such.
        """
        return None

    @classmethod
    def is_procedure(cls) -> bool:
        """Whether the loop-level form is a procedure, which is never fused, and not `lower`."""
        return cls.procedure is not Operator.procedure

    def macs(self, types: Sequence[Type], out: Type) -> int:
        return 0

    @classmethod
    def samples(cls) -> list[Sample]:
        return []

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        """The attributes as they are stored, from those that the builder was given (an int for a tuple ...)."""
        return attrs

    @classmethod
    def returns(cls, call: Call) -> Expr | TupleWrapper:
        """What the builder returns for a call: the call, or its tuple as Python sees one."""
        return call

    @classmethod
    def call(cls, *args: object, **attrs: object) -> Call:
        """A call of the operator: positional expressions (lists become tuples), attributes by name."""
        record = cls(**attrs) if cls.fields or attrs else None
        return Call(cls.op, tuple(map(as_expr, args)), record if cls.fields else None)


class Elementwise(Operator):
    """One element of the result from the same element of the argument: unary, same shape and data type."""

    data: Input = arg("the tensor whose elements are taken one by one")
    yields = "the shape of data, and its dtype"
    pattern = OpPattern.ELEMWISE
    result_dtype: ClassVar[str | None] = None
    domain: ClassVar[tuple[float, float]] = (-2.0, 2.0)
    """Between which values the samples lie."""

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        if self.result_dtype is None:
            return tensor(s, s.unify(data, s.out))
        found = tensor(s, data)
        return found and TensorType(found.shape, self.result_dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        low, high = cls.domain
        types = [TensorType((2, 3, 5)), TensorType(()), TensorType((7,), "float64")]
        types += [TensorType((3, 1), "float16"), TensorType((5,), "bfloat16")]
        return [sample(t, low=low, high=high) for t in types]

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        return self.scalar(b, data(*i))

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        help = "write `def scalar(self, b, x)`, which gives an element of the result, or waive it with the reason"
        raise RelayError(f"{self.op_name} has no scalar form", code="op.no-facet", help=help)


class Broadcast(Operator):
    """One element of the result from one element of each argument, shapes broadcast as numpy's; data types must
    agree.
    """

    lhs: Input = arg("the left operand")
    rhs: Input = arg("the right operand, whose shape broadcasts with that of the left one", dtype="that of lhs")
    yields = "the shapes of lhs and rhs broadcast as numpy's are, their dtype"
    pattern = OpPattern.BROADCAST
    result_dtype: ClassVar[str | None] = None
    domain: ClassVar[tuple[float, float]] = (-2.0, 2.0)
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "int32")

    def relation(self, s: TypeSolver, lhs: Type, rhs: Type) -> Type | None:
        a, c = tensor(s, lhs, self.inputs[0]), tensor(s, rhs, self.inputs[1])
        if a is None or c is None:
            return None
        dtype = same_dtype(s, a, c)
        return TensorType(broadcast(s, a, c), self.result_dtype or dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        low, high = cls.domain
        shapes = [((2, 3), (2, 3)), ((4, 1, 5), (3, 1)), ((), (2, 2)), ((1, 3), (2, 1, 1, 3))]
        pairs = [(TensorType(a, d), TensorType(c, d)) for d in cls.dtypes for a, c in shapes]
        return [sample(*pair, low=low, high=high) for pair in pairs]

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, *ins: Readable) -> Element:
        return self.scalar(b, *(element(x, i) for x in ins))

    def scalar(self, b: ElementBuilder, x: Element, y: Element) -> Element:
        raise RelayError(f"{self.op_name} has no scalar form", code="op.no-facet")


class Injective(Operator):
    """Each element of the result is an element of an argument, or depends on one element of each."""

    pattern = OpPattern.INJECTIVE


class CommReduce(Operator):
    """A reduction over axes, in any order."""

    pattern = OpPattern.COMM_REDUCE


class OutElementwiseFusable(Operator):
    """A heavy operator into whose result elementwise operators can be fused: convolutions, matrix products, pooling."""

    pattern = OpPattern.OUT_ELEMWISE_FUSABLE


class Opaque(Operator):
    """Never fused."""

    pattern = OpPattern.OPAQUE


class Known:
    """The solver of a relation whose types are all known."""

    out: Type = IncompleteType()

    def unify(self, a: Type, b: Type) -> Type:
        return b if isinstance(a, IncompleteType) else a

    def fail(self, message: str, help: str = "") -> NoReturn:
        raise RelationError(message, code="type.relation", help=help)


def at_run_time(record: Operator, *arrays: np.ndarray) -> Any:
    """The meaning of an operator whose attributes are known only now; `RelationError` if the arrays do not fit them."""
    record.relation(Known(), *(TensorType(x.shape, x.dtype.name) for x in arrays))
    return record.reference(*arrays)


def element(x: Readable, i: Sequence[Position]) -> Element:
    """The element of `x` that broadcasts to index `i` of a result of higher or equal rank."""
    tail = i[len(i) - len(x.shape) :]
    return x(*(0 if d == 1 else k for d, k in zip(x.shape, tail)))


D = TypeVar("D", bound=Operator)


def op(
    name: str,
    *,
    inputs: tuple[str, ...] | None = None,
    level: int | None = None,
    attrs_key: str = "",
    replace: bool = False,
    **facts: object,
) -> Callable[[type[D]], OperatorBuilder[D]]:
    """Register an operator class under `name`; the decorated name becomes its builder (`.op`, `.definition` lead back).

    A class from the same place (module and qualified name: a cell that is run again) takes the place of its earlier
    form, whose calls keep working; another one only with `replace`, else `RelayValueError` (`operator.duplicate`).
    """

    if not _NAME.fullmatch(name):
        raise RelayValueError(
            f"`{name}` is no name of an operator", code="op.name", help="it is read back from text: nn.relu, my.own_1"
        )

    def register(cls: type[D]) -> OperatorBuilder[D]:
        cls.op_name, cls.attrs_key = name, attrs_key or cls.__name__
        if inputs is not None:
            cls.inputs = inputs
        if level is not None:
            cls.level = level
        for fact, value in facts.items():
            setattr(cls, fact, value)
        if (
            name in OPERATORS
            and not replace
            and (old := _place(cast("type[Operator]", OPERATORS[name].definition))) != _place(cls)
        ):
            raise RelayValueError(
                f"the operator `{name}` exists already",
                code="operator.duplicate",
                help=f"it is {old}; choose another name, or take its place with `op(..., replace=True)`",
            )
        cls.op = OPERATORS.insert(name, Op(name, cls), replace=True)
        return OperatorBuilder(cls)

    return register


def _place(cls: type[Operator]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def call_operator(name: str, *args: object, **attrs: object) -> Call:
    """A call of the operator of that name."""
    return OPERATORS.lookup(name).definition.call(*args, **attrs)


python_operator.register(call_operator)


def known(*types: Type) -> bool:
    """Whether none of the types (or of the fields of tuples) is still incomplete."""
    return not any(isinstance(t, IncompleteType) or (isinstance(t, TupleType) and not known(*t.fields)) for t in types)


def wrap(call: Call, size: int) -> TupleWrapper:
    """A call that returns a tuple of `size` fields, as Python sees it."""
    return TupleWrapper(call, size)


def dtype_min(dtype: str) -> float | int:
    """The smallest value of a data type (minus infinity for floats)."""
    return -np.inf if "float" in dtype else int(np.iinfo(dtype).min) if dtype != "bool" else 0
