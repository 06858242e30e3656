"""The expressions of Relay: frozen nodes, compared by identity, with a type and a place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

import numpy as np

from relaylab.ir.attrs import Attrs, DictAttrs
from relaylab.ir.base import Expr, VirtualDevice, no_items, placed, python_truth, set_type
from relaylab.ir.declare import Each, Maybe, MaybeEach, One, field, node
from relaylab.ir.display import Shown
from relaylab.ir.node import expect, set_field
from relaylab.ir.types import FuncType, TensorType, Type, TypeVar, is_complete
from relaylab.support.checked import checked
from relaylab.support.errors import RelayIndexError, RelayTypeError, kind_of
from relaylab.support.hook import Hook
from relaylab.support.memory import TensorData, made_read_only, read_only
from relaylab.support.source import AnySpan


@Hook
def python_operator(name: str, *args: Any, **attrs: Any) -> Call:
    """A call of the operator of that name, which the op room makes (ir knows no operators)."""
    raise RelayTypeError(f"the operator `{name}` is not loaded", code="ir.no-operators", help="import relaylab.op")


class Callee(Expr):
    """An expression that is called as Python calls a function: `f(x)`."""

    __slots__ = ()

    def __call__(self, *args: Expr) -> Call:
        return Call(self, args)


class ExprWithOp(Callee):
    """An expression that Python's operators apply to: `x + y`, `-x`, `x @ y`, `x < y`, `x(y)`, `x.astype("int8")`.

    What stands on the other side is an expression: `RelayTypeError` for numbers, arrays and tuples.
    """

    __slots__ = ()
    __getitem__ = no_items
    __array_ufunc__ = None  # numpy leaves `array + x` to x, in the place of a sum for each number of the array

    def _binary(self, name: str, other: object) -> ExprWithOp:
        if isinstance(other, Expr):
            return python_operator(name, self, other)
        if isinstance(other, (int, float, np.generic)):
            known = getattr(self.inferred or getattr(self, "type_annotation", None), "dtype", None)
            plain = cast(object, other.item()) if isinstance(other, np.generic) else other
            help = f"write relay.const({plain!r}" + (f', "{known}")' if known else ")")
            raise RelayTypeError(f'convert "{other}" with `const` first', code="ir.python-number", help=help)
        helps: dict[type, str] = {np.ndarray: "write relay.const(array)", TupleWrapper: "take one field: x[0]"}
        message = f"`{name}` is not supported between an expression and {kind_of(other)}"
        raise RelayTypeError(message, code="ir.bad-operand", help=helps.get(type(other), ""))

    def __neg__(self) -> ExprWithOp:
        return python_operator("negative", self)

    def __lt__(self, other: object) -> ExprWithOp:
        return self._binary("less", other)

    def __gt__(self, other: object) -> ExprWithOp:
        return self._binary("greater", other)

    def __le__(self, other: object) -> ExprWithOp:
        return self._binary("less_equal", other)

    def __ge__(self, other: object) -> ExprWithOp:
        return self._binary("greater_equal", other)

    def __add__(self, other: object) -> ExprWithOp:
        return self._binary("add", other)

    def __sub__(self, other: object) -> ExprWithOp:
        return self._binary("subtract", other)

    def __mul__(self, other: object) -> ExprWithOp:
        return self._binary("multiply", other)

    def __truediv__(self, other: object) -> ExprWithOp:
        return self._binary("divide", other)

    def __pow__(self, other: object) -> ExprWithOp:
        return self._binary("power", other)

    def __matmul__(self, other: object) -> ExprWithOp:
        return self._binary("nn.matmul", other)

    # Of two expressions the left one is asked: what comes to these is refused, whatever the side.
    __radd__, __rsub__, __rmul__, __rtruediv__ = __add__, __sub__, __mul__, __truediv__
    __rpow__, __rmatmul__ = __pow__, __matmul__

    def astype(self, dtype: object) -> ExprWithOp:
        """The expression cast to a data type."""
        return python_operator("cast", self, dtype=dtype)


@lru_cache(maxsize=4096)
def _array_type(shape: tuple[int, ...], dtype: np.dtype) -> TensorType:
    """The type of an array: one object for equal ones, which makes comparing them short."""
    return TensorType(shape, dtype)


@node
class Constant(ExprWithOp):
    """A tensor that is part of the program."""

    _fields = ("data",)  # how the array comes is no part of it
    data: TensorData = field(converter=read_only)
    """A read-only array (`data.numpy()` as plain numpy)."""
    later: Callable[[], np.ndarray] | None = field(init=False)
    """Computes the array of a constant that nobody has asked for yet."""

    def __post_init__(self) -> None:
        set_type(self, _array_type(self.data.shape, self.data.dtype))  # refuses data types that are not Relay's

    @classmethod
    def computed(cls, type: TensorType, compute: Callable[[], np.ndarray]) -> Constant:
        """A constant of a known type whose array is computed when somebody asks for it."""
        made = cls.__new__(cls)
        Expr.__init__(made)
        set_field(made, "later", compute)
        set_type(made, type)
        return made

    def __getattr__(self, name: str) -> TensorData:
        if name != "data" or self.later is None:  # only a field that is not set comes here
            raise AttributeError(f"a Constant has no `{name}`")
        set_field(self, "data", made_read_only(self.later()))
        return self.data

    @property
    def type(self) -> TensorType:
        """The type, which a constant always has."""
        return cast(TensorType, self.inferred)

    def same_value(self, other: object) -> bool:
        """Whether both hold the same bits."""
        if self is other or not isinstance(other, Constant):
            return self is other
        a, b = self.data, other.data
        return a.dtype == b.dtype and a.shape == b.shape and a.numpy().tobytes() == b.numpy().tobytes()


@node
class Var(ExprWithOp):
    """A variable: a parameter, or the name that a `let` or a pattern binds. Its identity matters, its name does not.

    An annotation is the variable's type: `checked_type` is there from the start.
    """

    name_hint: str = field(converter=One(str, "the name of a Var"))
    """The name as written; others may have the same."""
    type_annotation: Type | None = field(default=None, converter=Maybe(Type, "the annotation of a Var"))
    """The type that the program states."""

    def __post_init__(self) -> None:
        if self.type_annotation is not None and is_complete(self.type_annotation):
            set_type(self, self.type_annotation)

    @property
    def vid(self) -> Var:
        """What identifies the variable: itself."""
        return self


@node
class GlobalVar(Callee):
    """The name of a function of a module."""

    name_hint: str = field(converter=One(str, "the name of a GlobalVar"))
    """The name without its `@`."""

    def __init__(self, name_hint: str, type_annot: Type | None = None, span: AnySpan | None = None):
        Expr.__init__(self, span=span)
        set_field(self, "name_hint", expect(name_hint, str, "the name of a GlobalVar"))
        if type_annot is not None:
            set_type(self, expect(type_annot, Type, "the annotation of a GlobalVar"))

    def same_value(self, other: object) -> bool:
        """Whether both name the same function."""
        return isinstance(other, GlobalVar) and self.name_hint == other.name_hint


@node
class Tuple(ExprWithOp):
    """A tuple of values."""

    fields: tuple[Expr, ...] = field(default=(), converter=Each(Expr, "the fields of a Tuple"))
    """The values in their order."""

    def __getitem__(self, index: int) -> Expr:
        if not -len(self.fields) <= index < len(self.fields):
            raise RelayIndexError(f"field {index} of a tuple of {len(self.fields)}", code="ir.tuple-index")
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def astype(self, dtype: object) -> ExprWithOp:
        raise RelayTypeError("a tuple has no data type to cast", code="ir.tuple-operand", help="cast its fields")


def _projection_index(index: int) -> int:
    index = int(expect(index, (int, np.integer), "the index of a projection"))
    if index < 0:
        raise RelayIndexError(f"the index of a projection cannot be negative: {index}", code="ir.tuple-index")
    return index


@node
class TupleGetItem(ExprWithOp):
    """One field of a tuple."""

    tuple_value: Expr = field(converter=One(Expr, "the tuple of a projection"))
    """An expression whose value is a tuple."""
    index: int = field(converter=_projection_index)
    """Which field, from 0."""


class _CallAttrs(Maybe[Attrs]):
    """A text may give a `DictAttrs`: it is read as a record is, and `Op.facets` makes one of it."""

    __slots__ = ()

    def __call__(self, value: Attrs | DictAttrs | None) -> Attrs | None:
        return super().__call__(cast("Attrs | None", value))


_call_attrs = _CallAttrs(cast("type[Attrs]", (Attrs, DictAttrs)), "the attributes of a Call")


@node
class Call(ExprWithOp):
    """An operator, a function, a constructor or any function value applied to arguments."""

    op: Expr = field(converter=One(Expr, "what a Call calls"))
    """An `Op`, a `GlobalVar`, a `Constructor`, or any expression of a function type."""
    args: tuple[Expr, ...] = field(converter=Each(Expr, "the arguments of a Call"))
    """The arguments in the order of the parameters."""
    attrs: Attrs | None = field(default=None, converter=_call_attrs)
    """The attributes of an operator; None where they are not written."""
    type_args: tuple[Type, ...] = field(default=None, converter=MaybeEach(Type, "the type arguments of a Call"))
    """What stands for the type parameters of the callee."""

    def __bool__(self) -> bool:
        return python_truth(self.op)


@node
class Let(ExprWithOp):
    """`let var = value; body`: explicit order and scope."""

    var: Var = field(alias="variable", converter=One(Var, "the variable of a Let"))
    """The variable that the body sees; a function as the value sees it too."""
    value: Expr = field(converter=One(Expr, "the value of a Let"))
    """What the variable stands for, computed first."""
    body: Expr = field(converter=One(Expr, "the body of a Let"))
    """The value of the whole."""


@node
class If(ExprWithOp):
    """One of two branches, by a scalar boolean."""

    cond: Expr = field(converter=One(Expr, "the condition of an If"))
    """A tensor of rank 0 and dtype bool."""
    true_branch: Expr = field(converter=One(Expr, "a branch of an If"))
    """The value where the condition holds."""
    false_branch: Expr = field(converter=One(Expr, "a branch of an If"))
    """The value where it does not, of the same type."""


@node
class RefCreate(ExprWithOp):
    """A new mutable cell."""

    value: Expr = field(converter=One(Expr, "the content of a RefCreate"))
    """Its first content."""


@node
class RefRead(ExprWithOp):
    """The content of a cell."""

    ref: Expr = field(converter=One(Expr, "the cell of a RefRead"))
    """An expression of a reference type."""


@node
class RefWrite(ExprWithOp):
    """Puts a value into a cell; evaluates to the empty tuple."""

    ref: Expr = field(converter=One(Expr, "the cell of a RefWrite"))
    """An expression of a reference type."""
    value: Expr = field(converter=One(Expr, "the value of a RefWrite"))
    """The new content."""


def _function_attrs(attrs: Mapping[str, object] | None) -> DictAttrs | None:
    return attrs if isinstance(attrs, DictAttrs) else DictAttrs(attrs) if attrs else None


@checked
@node
class Function(Callee, Shown):
    """A function: parameters, body, declared result type, type parameters and attributes."""

    params: tuple[Var, ...] = field(converter=Each(Var, "the parameters of a Function"))
    """The parameters, each with its type annotation if it has one."""
    body: Expr = field(converter=One(Expr, "the body of a Function"))
    """The value of a call."""
    ret_type: Type | None = field(default=None, converter=Maybe(Type, "the result type of a Function"))
    """The type of the result, if it is written."""
    type_params: tuple[TypeVar, ...] = field(
        default=None, converter=MaybeEach(TypeVar, "the type parameters of a Function")
    )
    """The variables that types in the function may use."""
    attrs: DictAttrs | None = field(default=None, converter=_function_attrs)
    """Facts about the function (`Primitive`, `Compiler` …); None if there are none."""

    def attr(self, name: str, default: object = None) -> Any:
        """The value of a function attribute, or `default`."""
        return self.attrs.get(name, default) if self.attrs is not None else default

    @property
    def is_primitive(self) -> bool:
        """Whether the function is one kernel, made by FuseOps."""
        return self.attrs is not None and bool(self.attrs.get("Primitive", 0))

    def with_attr(self, attr_key_or_dict: str | Mapping[str, object], attr_value: object = None) -> Function:
        """The function with attributes added."""
        new = {attr_key_or_dict: attr_value} if isinstance(attr_key_or_dict, str) else attr_key_or_dict
        return FunctionWithFields(self, attrs={**(self.attrs or {}), **new})

    def without_attr(self, attr_key: str) -> Function:
        """The function with one attribute left out."""
        kept = {} if self.attrs is None else {k: v for k, v in self.attrs.items() if k != attr_key}
        return FunctionWithFields(self, attrs=kept)

    def annotated_type(self) -> FuncType | None:
        """The type that the annotations state, or None if one is missing."""
        types = [p.type_annotation for p in self.params]
        if self.ret_type is None or None in types:
            return None
        return FuncType([t for t in types if t is not None], self.ret_type, self.type_params)


BaseFunc = Function
_KEEP: Any = object()  # as a default: the field stays; None means None


def FunctionWithFields(
    function: Function,
    params: Iterable[Var] | None = None,
    body: Expr | None = None,
    ret_type: Type | None = _KEEP,
    ty_params: Iterable[TypeVar] | None = None,
    attrs: Mapping[str, object] | None = None,
    virtual_device: VirtualDevice | None = None,
    span: AnySpan | None = None,
) -> Function:
    """`function` with some fields replaced; the same object if nothing changes."""
    new = (
        function.params if params is None else tuple(params),
        function.body if body is None else body,
        function.ret_type if ret_type is _KEEP else ret_type,
        function.type_params if ty_params is None else tuple(ty_params),
    )
    attributes = function.attrs if attrs is None else attrs
    old = (function.params, function.body, function.ret_type, function.type_params)
    device = function.device if virtual_device is None else virtual_device
    same = all(map(_is_same, new, old)) and device == function.device
    if same and (attributes is function.attrs or (attributes or {}) == (function.attrs or {})):
        return function
    return placed(Function(*new, attrs=attributes, span=span or function.span), device)


def _is_same(a: object, b: object) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        one, two = cast("tuple[object, ...]", a), cast("tuple[object, ...]", b)
        return len(one) == len(two) and all(x is y for x, y in zip(one, two))
    return a is b


class TempExpr(Expr):
    """The base of expressions that live only inside a pass."""

    __slots__ = ()

    def realize(self) -> Expr:
        """The ordinary expression that this one stands for."""
        raise RelayTypeError(f"{type(self).__name__} cannot be realized", code="ir.temp-expr")


@checked
class TupleWrapper:
    """A call that returns a tuple of known size, usable like a Python sequence of its fields; not itself an
    expression.
    """

    def __init__(self, tuple_value: Expr, size: int):
        self.tuple_value, self.size = tuple_value, size

    def astuple(self) -> Expr:
        """The tuple-valued expression."""
        return self.tuple_value

    def astext(self, show_meta_data: bool = True, annotate: Callable[[Expr], str] | None = None) -> str:
        """The text of the tuple-valued expression."""
        return self.tuple_value.astext(show_meta_data, annotate)

    def __getitem__(self, index: int) -> Expr:
        if not -self.size <= index < self.size:
            raise RelayIndexError(f"field {index} of a tuple of {self.size}", code="ir.tuple-index")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Expr]:
        return (self[i] for i in range(self.size))

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value!r}, {self.size})"


def as_expr(value: object) -> Expr:
    """An expression from what builders accept: an expression, a tuple wrapper, or a list of them (a Tuple)."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, TupleWrapper):
        return value.astuple()
    if isinstance(value, (list, tuple)):
        return Tuple(map(as_expr, cast(Iterable[object], value)))
    number = isinstance(value, (int, float, np.generic, np.ndarray))
    code, help = ("ir.python-number", "write relay.const(value)") if number else ("ir.wrong-kind", "")
    raise RelayTypeError(f"expected an expression, not {kind_of(value)}", code=code, help=help)
