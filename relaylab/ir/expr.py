"""The expressions of Relay: frozen nodes, compared by identity, with a type and a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylab.ir.attrs import Attrs, DictAttrs
from relaylab.ir.node import Node, expect, expect_all, set_field
from relaylab.ir.trail import default_span
from relaylab.ir.types import FuncType, TensorType, Type, TypeVar, is_complete
from relaylab.support.errors import RelayIndexError, RelayTypeError, RelayValueError
from relaylab.support.source import AnySpan

if TYPE_CHECKING:
    pass

set_ = set_field


class Expr(Node):
    """The base of all expressions. `checked_type` is filled in by InferType, `span` tells where the node comes from."""

    __slots__ = ("_checked_type", "span")

    def _start(self, span: AnySpan | None) -> None:
        set_(self, "_checked_type", None)
        set_(self, "span", span if span is not None else default_span())

    @property
    def checked_type(self) -> Type:
        """The type that InferType found; `RelayValueError` if it has not run on this node."""
        if self._checked_type is None:
            raise RelayValueError(
                f"this {type(self).__name__} has no type yet",
                code="type.not-inferred",
                help="run relay.transform.InferType() and look at the module that it returns",
            )
        return self._checked_type

    def __repr__(self) -> str:
        return node_text(self)


class _Printing:
    """How programs print and draw themselves; the text and viz rooms fill it in (ir knows neither)."""

    text = staticmethod(lambda node, **options: object.__repr__(node))
    rich: Any = None


printing = _Printing()


def node_text(node: object, **options: Any) -> str:
    """The text of a node, or a plain name while the text room is not loaded."""
    return printing.text(node, **options)


def rich_display(program: object) -> dict[str, str] | None:
    """What a notebook shows of a program that is the last value of a cell: its picture, if the viz room is loaded."""
    return printing.rich(program) if printing.rich is not None else None


class _Sugar:
    """The builders that Python's operators stand for; the op room fills it in (ir knows no operators)."""

    call: Any = None


sugar = _Sugar()


class ExprWithOp(Expr):
    """An expression that Python's operators apply to: `x + y`, `-x`, `x < y`, `x(y)`, `x.astype("int8")`."""

    __slots__ = ()

    def _binary(self, name: str, other: object) -> Expr:
        if isinstance(other, Expr):
            return sugar.call(name, self, other)
        if isinstance(other, (int, float, np.generic)):
            raise RelayTypeError(f'convert "{other}" with `const` first', code="ir.python-number", help=f"write relay.const({other!r})")
        if hasattr(other, "astuple"):
            raise RelayTypeError(f"`{name}` needs one expression; this is a tuple of {len(other)}", code="ir.tuple-operand", help="take one field: x[0]")  # type: ignore[arg-type]
        raise RelayTypeError(f"`{name}` is not supported between an expression and a {type(other).__name__}", code="ir.bad-operand")

    def __neg__(self) -> Expr:
        return sugar.call("negative", self)

    def __lt__(self, other: object) -> Expr:
        return self._binary("less", other)

    def __gt__(self, other: object) -> Expr:
        return self._binary("greater", other)

    def __le__(self, other: object) -> Expr:
        return self._binary("less_equal", other)

    def __ge__(self, other: object) -> Expr:
        return self._binary("greater_equal", other)

    def __add__(self, other: object) -> Expr:
        return self._binary("add", other)

    __radd__ = __add__

    def __sub__(self, other: object) -> Expr:
        return self._binary("subtract", other)

    def __mul__(self, other: object) -> Expr:
        return self._binary("multiply", other)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Expr:
        return self._binary("divide", other)

    def __rsub__(self, other: object) -> Expr:
        return self._binary("subtract", other)

    def __rtruediv__(self, other: object) -> Expr:
        return self._binary("divide", other)

    def astype(self, dtype: object) -> Expr:
        """The expression cast to a data type."""
        return sugar.call("cast", self, dtype=dtype)

    def __call__(self, *args: Expr) -> Call:
        return Call(self, args)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The expression in the text format, with its version header."""
        return node_text(self, header=True, meta=show_meta_data, annotate=annotate)


class TensorData(np.ndarray):
    """The read-only array of a constant; `.numpy()` is the plain array."""

    def numpy(self) -> np.ndarray:
        return self.view(np.ndarray)

    asnumpy = numpy


class Constant(ExprWithOp):
    """A tensor that is part of the program. `data` is a read-only array (`data.numpy()` as plain numpy)."""

    __slots__ = _fields = ("data",)

    def __init__(self, data: object, span: AnySpan | None = None):
        array = np.asarray(data.numpy() if hasattr(data, "numpy") else data)
        found = TensorType(array.shape, array.dtype)  # refuses data types that are not Relay's
        if array.flags.writeable:
            array = array.copy()
            array.setflags(write=False)
        set_(self, "data", array.view(TensorData))
        self._start(span)
        set_(self, "_checked_type", found)

    @property
    def type(self) -> TensorType:
        """The type, which a constant always has."""
        return self._checked_type


class Var(ExprWithOp):
    """A variable: a parameter, or the name that a `let` or a pattern binds. Its identity matters, its name does not.

    An annotation is the variable's type: `checked_type` is there from the start.
    """

    __slots__ = _fields = ("name_hint", "type_annotation")

    def __init__(self, name_hint: str, type_annotation: Type | None = None, span: AnySpan | None = None):
        set_(self, "name_hint", expect(name_hint, str, "the name of a Var"))
        set_(self, "type_annotation", None if type_annotation is None else expect(type_annotation, Type, "the annotation of a Var"))
        self._start(span)
        if type_annotation is not None and is_complete(type_annotation):
            set_(self, "_checked_type", type_annotation)

    @property
    def vid(self) -> Var:
        """What identifies the variable: itself."""
        return self


class GlobalVar(Expr):
    """The name of a function of a module."""

    __slots__ = _fields = ("name_hint",)

    def __init__(self, name_hint: str, type_annot: Type | None = None, span: AnySpan | None = None):
        set_(self, "name_hint", expect(name_hint, str, "the name of a GlobalVar"))
        self._start(span)
        if type_annot is not None:
            set_(self, "_checked_type", expect(type_annot, Type, "the annotation of a GlobalVar"))

    def __call__(self, *args: Expr) -> Call:
        return Call(self, args)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        return node_text(self, header=True, meta=show_meta_data, annotate=annotate)


class Tuple(ExprWithOp):
    """A tuple of values."""

    __slots__ = _fields = ("fields",)

    def __init__(self, fields: Iterable[Expr] = (), span: AnySpan | None = None):
        set_(self, "fields", expect_all(fields, Expr, "the fields of a Tuple"))
        self._start(span)

    def __getitem__(self, index: int) -> Expr:
        if index >= len(self.fields):
            raise RelayIndexError(f"field {index} of a tuple of {len(self.fields)}", code="ir.tuple-index")
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def astype(self, dtype: object) -> Expr:
        raise RelayTypeError("a tuple has no data type to cast", code="ir.tuple-operand", help="cast its fields")


class TupleGetItem(ExprWithOp):
    """One field of a tuple."""

    __slots__ = _fields = ("tuple_value", "index")

    def __init__(self, tuple_value: Expr, index: int, span: AnySpan | None = None):
        set_(self, "tuple_value", expect(tuple_value, Expr, "the tuple of a projection"))
        set_(self, "index", int(index))
        if self.index < 0:
            raise RelayIndexError(f"the index of a projection cannot be negative: {index}", code="ir.tuple-index")
        self._start(span)


class Call(ExprWithOp):
    """An operator, a function, a constructor or any function value applied to arguments."""

    __slots__ = _fields = ("op", "args", "attrs", "type_args")

    def __init__(self, op: Expr, args: Iterable[Expr], attrs: Attrs | None = None, type_args: Iterable[Type] | None = None, span: AnySpan | None = None):
        if isinstance(op, Attrs) or not isinstance(op, Expr):
            expect(op, Expr, "what a Call calls")
        set_(self, "op", op)
        set_(self, "args", expect_all(args, Expr, "the arguments of a Call"))
        set_(self, "attrs", None if attrs is None else expect(attrs, (Attrs, DictAttrs), "the attributes of a Call"))
        set_(self, "type_args", expect_all(type_args or (), Type, "the type arguments of a Call"))
        self._start(span)


class Let(ExprWithOp):
    """`let var = value; body`: explicit order and scope."""

    __slots__ = _fields = ("var", "value", "body")

    def __init__(self, variable: Var, value: Expr, body: Expr, span: AnySpan | None = None):
        set_(self, "var", expect(variable, Var, "the variable of a Let"))
        set_(self, "value", expect(value, Expr, "the value of a Let"))
        set_(self, "body", expect(body, Expr, "the body of a Let"))
        self._start(span)


class If(ExprWithOp):
    """One of two branches, by a scalar boolean."""

    __slots__ = _fields = ("cond", "true_branch", "false_branch")

    def __init__(self, cond: Expr, true_branch: Expr, false_branch: Expr, span: AnySpan | None = None):
        set_(self, "cond", expect(cond, Expr, "the condition of an If"))
        set_(self, "true_branch", expect(true_branch, Expr, "a branch of an If"))
        set_(self, "false_branch", expect(false_branch, Expr, "a branch of an If"))
        self._start(span)


class RefCreate(ExprWithOp):
    """A new mutable cell."""

    __slots__ = _fields = ("value",)

    def __init__(self, value: Expr, span: AnySpan | None = None):
        set_(self, "value", expect(value, Expr, "the content of a RefCreate"))
        self._start(span)


class RefRead(ExprWithOp):
    """The content of a cell."""

    __slots__ = _fields = ("ref",)

    def __init__(self, ref: Expr, span: AnySpan | None = None):
        set_(self, "ref", expect(ref, Expr, "the cell of a RefRead"))
        self._start(span)


class RefWrite(ExprWithOp):
    """Puts a value into a cell; evaluates to the empty tuple."""

    __slots__ = _fields = ("ref", "value")

    def __init__(self, ref: Expr, value: Expr, span: AnySpan | None = None):
        set_(self, "ref", expect(ref, Expr, "the cell of a RefWrite"))
        set_(self, "value", expect(value, Expr, "the value of a RefWrite"))
        self._start(span)


class Function(Expr):
    """A function: parameters, body, declared result type, type parameters and attributes."""

    __slots__ = _fields = ("params", "body", "ret_type", "type_params", "attrs")

    def __init__(
        self,
        params: Iterable[Var],
        body: Expr,
        ret_type: Type | None = None,
        type_params: Iterable[TypeVar] | None = None,
        attrs: Mapping[str, object] | None = None,
        span: AnySpan | None = None,
    ):
        set_(self, "params", expect_all(params, Var, "the parameters of a Function"))
        set_(self, "body", expect(body, Expr, "the body of a Function"))
        set_(self, "ret_type", None if ret_type is None else expect(ret_type, Type, "the result type of a Function"))
        set_(self, "type_params", expect_all(type_params or (), TypeVar, "the type parameters of a Function"))
        set_(self, "attrs", attrs if isinstance(attrs, DictAttrs) else DictAttrs(attrs) if attrs else None)
        self._start(span)

    def __call__(self, *args: Expr) -> Call:
        return Call(self, args)

    def attr(self, name: str, default: object = None) -> Any:
        """The value of a function attribute, or `default`."""
        return self.attrs.get(name, default) if self.attrs is not None else default

    @property
    def is_primitive(self) -> bool:
        """Whether the function is one kernel, made by FuseOps."""
        return bool(self.attr("Primitive", 0))

    def with_attr(self, attr_key_or_dict: str | Mapping[str, object], attr_value: object = None) -> Function:
        """The function with attributes added."""
        new = {attr_key_or_dict: attr_value} if isinstance(attr_key_or_dict, str) else attr_key_or_dict
        return FunctionWithFields(self, attrs={**(self.attrs or {}), **new})

    def without_attr(self, attr_key: str) -> Function:
        """The function with one attribute left out."""
        return FunctionWithFields(self, attrs={k: v for k, v in (self.attrs or {}).items() if k != attr_key})

    def annotated_type(self) -> FuncType | None:
        """The type that the annotations state, or None if one is missing."""
        types = [p.type_annotation for p in self.params]
        if self.ret_type is None or None in types:
            return None
        return FuncType(types, self.ret_type, self.type_params)  # type: ignore[arg-type]

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        return node_text(self, header=True, meta=show_meta_data, annotate=annotate)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str] | None:
        return rich_display(self)


BaseFunc = Function
_KEEP: Any = object()


def FunctionWithFields(
    function: Function, params=_KEEP, body=_KEEP, ret_type=_KEEP, ty_params=_KEEP, attrs=_KEEP, virtual_device=None, span=None
) -> Function:
    """`function` with some fields replaced; the same object if nothing changes."""
    new = {
        "params": tuple(params) if params is not _KEEP and params is not None else function.params,
        "body": body if body is not _KEEP and body is not None else function.body,
        "ret_type": function.ret_type if ret_type is _KEEP else ret_type,
        "type_params": tuple(ty_params) if ty_params is not _KEEP and ty_params is not None else function.type_params,
    }
    attributes = function.attrs if attrs is _KEEP or attrs is None else attrs
    same = all(_is_same(v, getattr(function, k)) for k, v in new.items())
    if same and (attributes is function.attrs or (attributes or {}) == (function.attrs or {})):
        return function
    return Function(**new, attrs=attributes, span=span or function.span)


def _is_same(a: object, b: object) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(x is y for x, y in zip(a, b))
    return a is b


class TempExpr(Expr):
    """The base of expressions that live only inside a pass."""

    __slots__ = ()

    def realize(self) -> Expr:
        """The ordinary expression that this one stands for."""
        raise RelayTypeError(f"{type(self).__name__} cannot be realized", code="ir.temp-expr")


class TupleWrapper:
    """A call that returns a tuple of known size, usable like a Python sequence of its fields; not itself an expression."""

    def __init__(self, tuple_value: Expr, size: int):
        self.tuple_value, self.size = tuple_value, size

    def astuple(self) -> Expr:
        """The tuple-valued expression."""
        return self.tuple_value

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        return self.tuple_value.astext(show_meta_data, annotate)  # type: ignore[attr-defined]

    def __getitem__(self, index: int) -> Expr:
        if not -self.size <= index < self.size:
            raise RelayIndexError(f"field {index} of a tuple of {self.size}", code="ir.tuple-index")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self):
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
        return Tuple(map(as_expr, value))
    if isinstance(value, (int, float, np.generic, np.ndarray)):
        raise RelayTypeError(f"expected an expression, not a {type(value).__name__}", code="ir.python-number", help="write relay.const(value)")
    raise RelayTypeError(f"expected an expression, not a {type(value).__name__}", code="ir.wrong-kind")


def var(name_hint: str, type_annotation: Type | str | None = None, shape: Iterable[object] | None = None, dtype: object = "float32") -> Var:
    """A variable. With `shape` its type is a tensor of `dtype`; a string annotation is a scalar's data type; with neither it is untyped."""
    if type_annotation is not None and shape is not None:
        raise RelayValueError("give a type annotation or a shape, not both", code="ir.var-annotation")
    if shape is not None:
        type_annotation = TensorType(shape, dtype)
    elif isinstance(type_annotation, str):
        type_annotation = TensorType((), type_annotation)
    return Var(name_hint, type_annotation)


_NARROW = {np.dtype("int64"): np.dtype("int32"), np.dtype("float64"): np.dtype("float32")}


def const(value: object, dtype: object = None) -> Constant:
    """A constant from a number, a list or an array; without `dtype` 64-bit numbers become 32-bit ones, as in Relay."""
    if isinstance(value, Expr):
        raise RelayTypeError("relay.const takes a Python number or an array, not an expression", code="ir.wrong-kind")
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if array.dtype == object:
        raise RelayValueError("relay.const takes numbers, and all rows of one length", code="ir.bad-constant")
    if dtype is None:
        array = array.astype(_NARROW.get(array.dtype, array.dtype))
    else:
        array = array.astype(np.dtype(dtype))
    return Constant(array)
