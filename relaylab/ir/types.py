"""The types of Relay (compared by value, variables by identity) and the dimensions of shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum

import numpy as np

from relaylab.ir.node import Node, expect, expect_all, set_field
from relaylab.support.errors import RelayTypeError, RelayValueError


class IntImm(int):
    """A constant dimension or index: an int that also has `.value` and `.dtype`."""

    __slots__ = ()
    dtype = "int32"

    @property
    def value(self) -> int:
        return int(self)


class Any:
    """A dimension that is known only at run time, written `?`."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is Any

    def __hash__(self) -> int:
        return 0x3F

    def __repr__(self) -> str:
        return "?"


class SizeVar(Any):
    """A dimension known only at run time that has a name; equal only to itself."""

    __slots__ = ("name",)
    dtype = "int32"

    def __init__(self, name: str = "n", dtype: str = "int32"):
        self.name = name

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self.name


Dim = IntImm | Any


def dim(value: object) -> Dim:
    """A dimension from an int, an `Any`, or an object with `.value`."""
    if isinstance(value, (IntImm, Any)):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        if value < 0:
            raise RelayValueError(f"a dimension cannot be negative: {value}", code="type.negative-dimension")
        return IntImm(value)
    raise RelayTypeError(
        f"a dimension is an int or relay.Any(), not a {type(value).__name__}", code="type.bad-dimension", help="write relay.Any() for an unknown one"
    )


class TypeKind(IntEnum):
    """What a type stands for."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


class Type(Node):
    """The base of all types."""

    __slots__ = ("_hash",)

    def _key(self) -> tuple:
        return tuple(getattr(self, f) for f in self._fields)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and hash(self) == hash(other) and self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        try:
            return self._hash  # type: ignore[has-type]
        except AttributeError:
            set_field(self, "_hash", hash((type(self).__name__, self._key())))
            return self._hash

    def __repr__(self) -> str:
        return type_text(self)


_DTYPE_NAMES = {"int": "int32", "uint": "uint32", "float": "float32"}


def dtype_name(dtype: object) -> str:
    """The canonical name of a data type: `float32`, `int8`, `bool` …; numpy's types are accepted."""
    if isinstance(dtype, str):
        name = _DTYPE_NAMES.get(dtype, dtype)
    else:
        try:
            name = np.dtype(dtype).name  # type: ignore[call-overload]
        except TypeError:
            name = str(dtype)
    if name not in DTYPES:
        raise RelayTypeError(f"`{name}` is not a data type of tensors", code="type.unknown-dtype", help="known: " + " ".join(DTYPES))
    return name


DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "bfloat16")


class TensorType(Type):
    """A tensor of a `shape` and a `dtype`; rank 0 is a scalar."""

    __slots__ = _fields = ("shape", "dtype")

    def __init__(self, shape: Iterable[object] = (), dtype: object = "float32"):
        set_field(self, "shape", tuple(map(dim, shape)))
        set_field(self, "dtype", dtype_name(dtype))

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape as ints; `RelayTypeError` if a dimension is unknown."""
        if self.is_dynamic:
            raise RelayTypeError(f"the shape of {self} is not known before run time", code="type.dynamic-shape")
        return tuple(int(d) for d in self.shape)  # type: ignore[arg-type]

    @property
    def is_dynamic(self) -> bool:
        """Whether a dimension is known only at run time."""
        return any(isinstance(d, Any) for d in self.shape)


class TupleType(Type):
    """A tuple of types."""

    __slots__ = _fields = ("fields",)

    def __init__(self, fields: Iterable[Type] = ()):
        set_field(self, "fields", expect_all(fields, Type, "the fields of a TupleType"))


class TypeVar(Type):
    """A type parameter of a function or of an algebraic data type; equal only to itself."""

    __slots__ = _fields = ("name_hint", "kind")

    def __init__(self, name_hint: str, kind: TypeKind = TypeKind.Type):
        set_field(self, "name_hint", expect(name_hint, str, "the name of a TypeVar"))
        set_field(self, "kind", TypeKind(kind))

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __call__(self, *args: Type) -> TypeCall:
        return TypeCall(self, args)


class GlobalTypeVar(Type):
    """The name of an algebraic data type in a module; equal by name."""

    __slots__ = _fields = ("name_hint", "kind")

    def __init__(self, name_hint: str, kind: TypeKind = TypeKind.AdtHandle):
        set_field(self, "name_hint", expect(name_hint, str, "the name of a GlobalTypeVar"))
        set_field(self, "kind", TypeKind(kind))

    def __call__(self, *args: Type) -> TypeCall:
        return TypeCall(self, args)


class TypeCall(Type):
    """A data type applied to its arguments: `List[int32]`."""

    __slots__ = _fields = ("func", "args")

    def __init__(self, func: Type, args: Iterable[Type] = ()):
        set_field(self, "func", expect(func, (GlobalTypeVar, TypeVar, IncompleteType), "the function of a TypeCall"))
        set_field(self, "args", expect_all(args, Type, "the arguments of a TypeCall"))


class RefType(Type):
    """A mutable cell holding a value of one type."""

    __slots__ = _fields = ("value",)

    def __init__(self, value: Type):
        set_field(self, "value", expect(value, Type, "the content of a RefType"))


class IncompleteType(Type):
    """A type that inference is still to find; equal only to itself."""

    __slots__ = _fields = ("kind",)

    def __init__(self, kind: TypeKind = TypeKind.Type):
        set_field(self, "kind", TypeKind(kind))

    __eq__ = object.__eq__
    __hash__ = object.__hash__


class FuncType(Type):
    """The type of a function; equal up to the names of its type parameters."""

    __slots__ = _fields = ("arg_types", "ret_type", "type_params", "type_constraints")

    def __init__(self, arg_types: Iterable[Type], ret_type: Type, type_params: Iterable[TypeVar] | None = None, type_constraints: Iterable[object] | None = None):
        set_field(self, "arg_types", expect_all(arg_types, Type, "the arguments of a FuncType"))
        set_field(self, "ret_type", expect(ret_type, Type, "the result of a FuncType"))
        set_field(self, "type_params", expect_all(type_params or (), TypeVar, "the type parameters of a FuncType"))
        set_field(self, "type_constraints", tuple(type_constraints or ()))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, FuncType) or len(self.type_params) != len(other.type_params) or len(self.arg_types) != len(other.arg_types):
            return False
        if self.type_params:
            other = other.instantiate(self.type_params)
        return self.arg_types == other.arg_types and self.ret_type == other.ret_type

    def __hash__(self) -> int:
        return hash(("FuncType", len(self.arg_types), len(self.type_params)))

    def instantiate(self, args: Iterable[Type]) -> FuncType:
        """The type without parameters that results from putting `args` in their place."""
        binds = dict(zip(self.type_params, args, strict=True))
        return FuncType([substitute_type(t, binds) for t in self.arg_types], substitute_type(self.ret_type, binds))


class TypeData(Type):
    """The definition of an algebraic data type; equal only to itself."""

    __slots__ = _fields = ("header", "type_vars", "constructors")

    def __init__(self, header: GlobalTypeVar, type_vars: Iterable[TypeVar], constructors: Iterable[object]):
        set_field(self, "header", expect(header, GlobalTypeVar, "the header of a TypeData"))
        set_field(self, "type_vars", expect_all(type_vars, TypeVar, "the type variables of a TypeData"))
        set_field(self, "constructors", tuple(constructors))

    __eq__ = object.__eq__
    __hash__ = object.__hash__


def map_type(t: Type, fn) -> Type:
    """`t` with `fn` applied to each component; the same object if nothing changed."""
    match t:
        case TupleType():
            parts = tuple(fn(f) for f in t.fields)
            return t if _same(parts, t.fields) else TupleType(parts)
        case FuncType():
            parts, ret = tuple(fn(a) for a in t.arg_types), fn(t.ret_type)
            return t if ret is t.ret_type and _same(parts, t.arg_types) else FuncType(parts, ret, t.type_params, t.type_constraints)
        case TypeCall():
            func, parts = fn(t.func), tuple(fn(a) for a in t.args)
            return t if func is t.func and _same(parts, t.args) else TypeCall(func, parts)
        case RefType():
            value = fn(t.value)
            return t if value is t.value else RefType(value)
        case _:
            return t


def _same(a: tuple, b: tuple) -> bool:
    return all(x is y for x, y in zip(a, b))


def substitute_type(t: Type, binds: Mapping[Type, Type]) -> Type:
    """`t` with type variables replaced; the same object if none occurs in it."""
    if not binds:
        return t
    return binds[t] if t in binds else map_type(t, lambda part: substitute_type(part, binds))


def type_parts(t: Type) -> tuple[Type, ...]:
    """The component types of `t`."""
    match t:
        case TupleType():
            return t.fields
        case FuncType():
            return (*t.arg_types, t.ret_type)
        case TypeCall():
            return (t.func, *t.args)
        case RefType():
            return (t.value,)
        case _:
            return ()


def is_complete(t: Type) -> bool:
    """Whether a type has no unknown part, and each data type in it is applied to its arguments."""
    if type(t) is TensorType:
        return True
    applied = lambda part: part.args if isinstance(part, TypeCall) else type_parts(part)
    return not any(isinstance(part, (IncompleteType, GlobalTypeVar)) for part in type_leaves(t, applied))


def type_leaves(t: Type, below: Callable[[Type], Iterable[Type]] = type_parts) -> list[Type]:
    """The types of which `t` is built, itself included, outermost first; an object that occurs several times is there once."""
    out: dict[int, Type] = {}
    stack = [t]
    while stack:
        part = stack.pop()
        if id(part) not in out:
            out[id(part)] = part
            stack.extend(reversed(tuple(below(part))))
    return list(out.values())


def type_text(t: Type) -> str:
    """The type as the text format writes it; an incomplete type is `_`."""
    match t:
        case TensorType(shape=()):
            return t.dtype
        case TensorType():
            return f"Tensor[({', '.join(map(str, t.shape))}), {t.dtype}]"
        case TupleType(fields=(only,)):
            return f"({type_text(only)},)"
        case TupleType():
            return f"({', '.join(map(type_text, t.fields))})"
        case FuncType():
            params = f"[{', '.join(p.name_hint for p in t.type_params)}]" if t.type_params else ""
            return f"fn {params}({', '.join(map(type_text, t.arg_types))}) -> {type_text(t.ret_type)}"
        case TypeVar() | GlobalTypeVar():
            return t.name_hint
        case TypeCall():
            return f"{type_text(t.func)}[{', '.join(map(type_text, t.args))}]"
        case RefType():
            return f"ref({type_text(t.value)})"
        case TypeData():
            return f"type {t.header.name_hint}"
        case _:
            return "_"


def scalar_type(dtype: object) -> TensorType:
    """The type of a rank-0 tensor."""
    return TensorType((), dtype)


def ShapeVar(name: str) -> TypeVar:
    """A type variable that stands for a shape."""
    return TypeVar(name, TypeKind.ShapeVar)


def is_dynamic(t: Type) -> bool:
    """Whether a tensor type (or one inside a tuple) has an unknown dimension."""
    return any(isinstance(p, TensorType) and p.is_dynamic for p in type_leaves(t))
