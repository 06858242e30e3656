"""The types of Relay (compared by value, variables by identity); the dimensions of shapes are in `dims`.

Choices: docs/choices.md, The language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, cast

from relaylab.ir.declare import Each, MaybeEach, One, field, node
from relaylab.ir.dims import AnyDim as AnyDim
from relaylab.ir.dims import Dim, IntImm, dim
from relaylab.ir.node import Node, expect_all, set_field
from relaylab.support.dtypes import DTYPES as DTYPES
from relaylab.support.dtypes import dtype_name as dtype_name
from relaylab.support.errors import RelayTypeError, RelayValueError, shown

if TYPE_CHECKING:
    from relaylab.ir.adt import Constructor


class TypeKind(IntEnum):
    """What a type stands for."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


class Type(Node):
    """The base of all types: equal if they are built of equal parts."""

    __slots__ = ("_hash", "_depth", "is_open")
    span = None
    """Types have no place of their own."""
    _hash: int
    _depth: int
    is_open: bool

    def _key(self) -> tuple[object, ...]:
        return tuple([getattr(self, f) for f in self._fields])

    def __eq__(self, other: object, /) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and hash(self) == hash(other) and self._key() == cast(Type, other)._key()

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:  # computed once: types are keys of many tables
            set_field(self, "_hash", hash((type(self).__name__, self._key())))
            return self._hash

    def __repr__(self) -> str:
        return type_text(self)


DEEPEST = 200
"""How many levels types may nest: hashing and unification walk them by recursion."""


class Nested(Type):
    """The base of types made of types, which may share their parts: walks of them meet each part once."""

    __slots__ = ()

    def __post_init__(self) -> None:
        parts = type_parts(self)
        depth = 1 + max((p._depth for p in parts if isinstance(p, Nested)), default=0)
        if depth > DEEPEST:
            raise RelayValueError(
                f"types may nest {DEEPEST} levels deep, not deeper",
                code="type.too-deep",
                help="a list of any length is a List[T] of the prelude, not tuples within tuples",
            )
        set_field(self, "_depth", depth)
        set_field(self, "is_open", any(map(has_unknowns, parts)))

    def __eq__(self, other: object, /) -> bool:
        return self is other or (isinstance(other, Nested) and _equal(self, other))

    __hash__ = Type.__hash__


class UniqueType(Type):
    """The base of types that are equal only to themselves."""

    __slots__ = ()

    __eq__ = object.__eq__
    __hash__ = object.__hash__


def _shape(dims: Iterable[object]) -> tuple[Dim, ...]:
    return tuple(map(dim, expect_all(dims, object, "a shape")))


def _kind(kind: object) -> TypeKind:
    if not isinstance(kind, int) or kind not in set(TypeKind):
        raise RelayTypeError(
            f"a kind of types cannot be {shown(kind)}", code="type.kind", help="write relay.TypeKind.Type"
        )
    return TypeKind(kind)


class Shaped(Type):
    """The base of the types of tensors. What is asked of every value, again and again, is found once."""

    __slots__ = ("is_dynamic", "_numbers")
    shape: tuple[Dim, ...]
    is_dynamic: bool
    """Whether a dimension is known only at run time."""
    _numbers: tuple[int, ...] | None

    def __post_init__(self) -> None:
        known = {IntImm}.issuperset(map(type, self.shape))
        set_field(self, "is_dynamic", not known)
        set_field(self, "_numbers", tuple(map(int, cast("tuple[IntImm, ...]", self.shape))) if known else None)

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape as ints; `RelayTypeError` if a dimension is unknown."""
        if self._numbers is None:
            raise RelayTypeError(f"the shape of {self} is not known before run time", code="type.dynamic-shape")
        return self._numbers


@node
class TensorType(Shaped):
    """A tensor; rank 0 is a scalar."""

    shape: tuple[Dim, ...] = field(default=(), converter=_shape)
    """The extents of its axes."""
    dtype: str = field(default="float32", converter=dtype_name)
    """The data type of its elements."""

    def _key(self) -> tuple[object, ...]:
        return self.shape, self.dtype


@node
class TupleType(Nested):
    """A tuple of types."""

    fields: tuple[Type, ...] = field(default=(), converter=Each(Type, "the fields of a TupleType"))
    """The types of the fields in their order."""


@node
class TypeVar(UniqueType):
    """A type parameter of a function or of an algebraic data type; equal only to itself."""

    name_hint: str = field(converter=One(str, "the name of a TypeVar"))
    """The name as written."""
    kind: TypeKind = field(default=TypeKind.Type, converter=_kind)
    """What it stands for: a type, or a shape."""

    def __call__(self, *args: Type) -> TypeCall:
        return TypeCall(self, args)


@node
class GlobalTypeVar(Type):
    """The name of an algebraic data type in a module; equal by name."""

    name_hint: str = field(converter=One(str, "the name of a GlobalTypeVar"))
    """The name as written."""
    kind: TypeKind = field(default=TypeKind.AdtHandle, converter=_kind)
    """What it stands for."""

    def __call__(self, *args: Type) -> TypeCall:
        return TypeCall(self, args)


@node
class IncompleteType(UniqueType):
    """A type that inference is still to find; equal only to itself."""

    kind: TypeKind = field(default=TypeKind.Type, converter=_kind)
    """What it stands for."""


@node
class TypeCall(Nested):
    """A data type applied to its arguments: `List[int32]`."""

    func: GlobalTypeVar | TypeVar | IncompleteType = field(
        converter=One((GlobalTypeVar, TypeVar, IncompleteType), "the function of a TypeCall")
    )
    """The name of the data type (or a variable for it)."""
    args: tuple[Type, ...] = field(default=(), converter=Each(Type, "the arguments of a TypeCall"))
    """What stands for its type variables."""


@node
class RefType(Nested):
    """A mutable cell holding a value of one type."""

    value: Type = field(converter=One(Type, "the content of a RefType"))
    """The type of the content."""


@node
class FuncType(Nested):
    """The type of a function; equal up to the names of its type parameters, whose kinds count."""

    arg_types: tuple[Type, ...] = field(converter=Each(Type, "the arguments of a FuncType"))
    """The types of the parameters."""
    ret_type: Type = field(converter=One(Type, "the result of a FuncType"))
    """The type of a call."""
    type_params: tuple[TypeVar, ...] = field(
        default=None, converter=MaybeEach(TypeVar, "the type parameters of a FuncType")
    )
    """The variables that stand for any type."""
    type_constraints: tuple[object, ...] = field(
        default=None, converter=MaybeEach(object, "the constraints of a FuncType")
    )
    """Kept for programs that give them; nothing reads them."""

    def __hash__(self) -> int:
        return hash(("FuncType", len(self.arg_types), len(self.type_params)))

    def instantiate(self, args: Iterable[Type]) -> FuncType:
        """The type without parameters that results from putting `args` in their place."""
        binds: dict[Type, Type] = dict(zip(self.type_params, args, strict=True))
        return FuncType([substitute_type(t, binds) for t in self.arg_types], substitute_type(self.ret_type, binds))


def _constructors(given: Iterable[Constructor]) -> tuple[Constructor, ...]:
    return tuple(given)


@node
class TypeData(UniqueType):
    """The definition of an algebraic data type; equal only to itself."""

    header: GlobalTypeVar = field(converter=One(GlobalTypeVar, "the header of a TypeData"))
    """The name of the type."""
    type_vars: tuple[TypeVar, ...] = field(converter=Each(TypeVar, "the type variables of a TypeData"))
    """The variables that the inputs of its constructors may use."""
    constructors: tuple[Constructor, ...] = field(converter=_constructors)
    """What makes its values."""


def map_type(t: Type, fn: Callable[[Type], Type]) -> Type:
    """`t` with `fn` applied to each component; the same object if nothing changed."""
    match t:
        case TupleType():
            parts = tuple(fn(f) for f in t.fields)
            return t if _same(parts, t.fields) else TupleType(parts)
        case FuncType():
            parts, ret = tuple(fn(a) for a in t.arg_types), fn(t.ret_type)
            return (
                t
                if ret is t.ret_type and _same(parts, t.arg_types)
                else FuncType(parts, ret, t.type_params, t.type_constraints)
            )
        case TypeCall():
            func, parts = fn(t.func), tuple(fn(a) for a in t.args)
            return t if func is t.func and _same(parts, t.args) else TypeCall(cast(GlobalTypeVar, func), parts)
        case RefType():
            value = fn(t.value)
            return t if value is t.value else RefType(value)
        case _:
            return t


def _same(a: tuple[Type, ...], b: tuple[Type, ...]) -> bool:
    return all(x is y for x, y in zip(a, b))


def _equal(a: Type, b: Type) -> bool:
    """Whether two types are built of equal parts; each pair of parts is compared once."""
    stack, seen = [(a, b)], dict[tuple[int, int], object]()
    while stack:
        pair = x, y = stack.pop()
        if x is y or (id(x), id(y)) in seen:
            continue
        if type(x) is not type(y) or hash(x) != hash(y):
            return False
        if not isinstance(x, Nested):
            if x != y:
                return False
            continue
        seen[id(x), id(y)] = pair  # kept: an id is that of one object as long as it lives
        if isinstance(x, FuncType) and isinstance(y, FuncType) and x.type_params:
            if any(p.kind != q.kind for p, q in zip(x.type_params, y.type_params)):
                return False
            y = y.instantiate(x.type_params)
        parts, others = type_parts(x), type_parts(y)
        if len(parts) != len(others):
            return False
        stack.extend(zip(parts, others))
    return True


def renew_type(t: Type, at: Callable[[Type], Type | None], after: Callable[[Type], Type] = lambda new: new) -> Type:
    """`t` with each part that `at` has another type for replaced, and `after` applied to the others once their parts
    are. The same object if nothing changed.
    """
    made: dict[int, Type] = {}

    def go(part: Type) -> Type:
        if id(part) not in made:
            made[id(part)] = after(map_type(part, go)) if (new := at(part)) is None else new
        return made[id(part)]

    return go(t)


def substitute_type(t: Type, binds: Mapping[Type, Type]) -> Type:
    """`t` with type variables replaced; the same object if none occurs in it."""
    if not binds or not isinstance(t, Nested):
        return binds.get(t, t)
    return renew_type(t, binds.get)


def has_unknowns(t: Type) -> bool:
    """Whether a part of `t` is still to be inferred."""
    return t.is_open if isinstance(t, Nested) else type(t) is IncompleteType


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
    return not any(isinstance(part, (IncompleteType, GlobalTypeVar)) for part in type_leaves(t, _applied))


def _applied(t: Type) -> tuple[Type, ...]:
    return t.args if isinstance(t, TypeCall) else type_parts(t)


def type_leaves(t: Type, below: Callable[[Type], Iterable[Type]] = type_parts) -> list[Type]:
    """The types of which `t` is built, itself included, outermost first; an object that occurs several times is there
    once.
    """
    out: dict[int, Type] = {}
    stack = [t]
    while stack:
        part = stack.pop()
        if id(part) not in out:
            out[id(part)] = part
            stack.extend(reversed(tuple(below(part))))
    return list(out.values())


LONGEST = 20_000
"""Of how many parts the text of a type consists at most: where parts are shared it could be exponentially long."""


def type_text(t: Type) -> str:
    """The type as the text format writes it; an incomplete type is `_`. `…` ends what is too long."""
    out: list[str] = []
    stack: list[str | Type] = [t]
    while stack and len(out) < LONGEST:
        part = stack.pop()
        if isinstance(part, str):
            out.append(part)
        else:
            stack.extend(reversed(text_parts(part)))
    return "".join(out) + ("…" if stack else "")


def text_parts(t: Type, params: str = "") -> list[str | Type]:
    """The strings and types that a type's text consists of; `params` are the type parameters of a function."""
    match t:
        case TensorType():
            return [f"Tensor[({', '.join(map(str, t.shape))}), {t.dtype}]" if t.shape else t.dtype]
        case TupleType(fields=(only,)):
            return ["(", only, ",)"]
        case TupleType():
            return ["(", *_commas(t.fields), ")"]
        case FuncType():
            own = f"[{', '.join(p.name_hint for p in t.type_params)}]" if t.type_params else ""
            return [f"fn {params or own}(", *_commas(t.arg_types), ") -> ", t.ret_type]
        case TypeVar() | GlobalTypeVar():
            return [t.name_hint]
        case TypeCall():
            return [t.func, "[", *_commas(t.args), "]"]
        case RefType():
            return ["ref(", t.value, ")"]
        case TypeData():
            return [f"type {t.header.name_hint}"]
        case _:
            return ["_"]


def _commas(parts: Iterable[Type]) -> list[str | Type]:
    return [one for part in parts for one in (part, ", ")][:-1]


def scalar_type(dtype: object) -> TensorType:
    """The type of a rank-0 tensor."""
    return TensorType((), dtype)


def ShapeVar(name: str) -> TypeVar:
    """A type variable that stands for a shape."""
    return TypeVar(name, TypeKind.ShapeVar)


def is_dynamic(t: Type) -> bool:
    """Whether a tensor type (or one inside a tuple) has an unknown dimension."""
    if type(t) is TensorType:
        return t.is_dynamic
    return any(isinstance(p, TensorType) and p.is_dynamic for p in type_leaves(t))
