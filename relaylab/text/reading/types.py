"""Types as text writes them, to types."""

from __future__ import annotations

from relaylab.ir.types import (
    DTYPES,
    AnyDim,
    Dim,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    IntImm,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from relaylab.text.reading.sizes import at_size, size
from relaylab.text.reading.state import State
from relaylab.text.scalars import BadNumber, parse_number

_ALIASES = ("uint1", "int", "uint", "float")
_SCALARS = {name: TensorType((), name) for name in (*DTYPES, *_ALIASES)}
A_TYPE = "a type"
_TENSOR = "a tensor type is Tensor[(1, 3), float32]"
_EXAMPLES = "types are written float32, Tensor[(1, 3), float32], (A, B), fn (A) -> B, List[A], ref(A)"


def type_(p: State, depth: int = 0) -> Type:
    """One type."""
    simple = _simple(p)
    if simple is not None:
        return simple
    p.check_depth(depth, "types")
    match p.kinds[p.i]:
        case "(":
            opened = p.expect("(")
            return TupleType(types(p, ")", opened, depth))
        case "fn":
            return _function(p, depth)
        case "ref":
            return _ref(p, depth)
        case "name":
            return _applied(p, depth)
        case _:
            raise p.unexpected(A_TYPE, help=_EXAMPLES)


def types(p: State, closing: str, opened: int, depth: int = 0) -> list[Type]:
    """Types separated by commas, up to and with `closing`."""
    found: list[Type] = []
    more = not p.accept(closing)
    while more:
        found.append(type_(p, depth + 1))
        more = p.more(closing, opened)
    return found


def _simple(p: State) -> Type | None:
    """A type without types inside; None (and nothing read) if the next one is not simple."""
    kind, text = p.kinds[p.i], p.texts[p.i]
    if text == "_":  # before `=` it is a name to the lexer
        p.i += 1
        return IncompleteType()
    if kind != "name":
        return None
    if text == "Tensor" and p.kinds[p.i + 1] == "[":
        return _tensor(p)
    if text in _SCALARS and text not in p.names.types.known:
        p.i += 1
        return _SCALARS[text]
    if p.kinds[p.i + 1] == "[":
        return None
    if text == "Tensor" and p.kinds[p.i + 1] == "(":
        raise p.stop("parse.unknown-type", "`Tensor` needs the shape and the data type", help=_TENSOR)
    p.i += 1
    return _named(p, p.i - 1)


def _named(p: State, token: int) -> Type:
    """What a bare name means: a type parameter in scope, or a data type without arguments."""
    name = p.texts[token]
    known = p.names.types.known.get(name)
    if known is not None:
        return known
    return TypeCall(_header(p, token), ())


def _header(p: State, token: int) -> GlobalTypeVar:
    name = p.texts[token]
    if name not in p.names.global_types and name.startswith(("int", "uint", "float", "bool", "bfloat")):
        hint = p.near(name, DTYPES) or "the data types are " + " ".join(DTYPES)
        p.report("parse.unknown-dtype", f"`{name}` is not a data type", p.span(token), hint)
    return p.names.global_type(name, token)


def _applied(p: State, depth: int) -> TypeCall:
    """`List[A]`."""
    token = p.expect("name")
    opened = p.expect("[")
    name = p.texts[token]
    if p.at("(") and p.near(name, ("Tensor",)):
        raise p.stop("parse.unknown-type", f"there is no type named `{name}`", token, "did you mean `Tensor`?")
    args = types(p, "]", opened, depth)
    known = p.names.types.known.get(name)
    return TypeCall(known if known is not None else _header(p, token), args)


def _function(p: State, depth: int) -> FuncType:
    """`fn [A](A, B) -> C`."""
    p.expect("fn")
    mark = p.names.types.open()
    params = type_params(p)
    opened = p.expect("(", "`(` and the types of the arguments")
    args = types(p, ")", opened, depth)
    p.expect("->", "`->` and the type of the result")
    result = type_(p, depth + 1)
    p.names.types.close(mark)
    return FuncType(args, result, params)


def _ref(p: State, depth: int) -> RefType:
    """`ref(A)`."""
    p.expect("ref")
    opened = p.expect("(")
    value = type_(p, depth + 1)
    p.expect(")", opened=opened)
    return RefType(value)


def type_params(p: State) -> list[TypeVar]:
    """`[A, B]`, if it is there; the parameters are in scope afterwards."""
    found: list[TypeVar] = []
    opened = p.i
    more = p.accept("[")
    while more:
        token = p.expect("name", "the name of a type parameter")
        name = p.texts[token]
        if any(name == before.name_hint for before in found):
            help = "give one of them another name"
            p.report("parse.duplicate-variable", f"there are two type parameters named {name}", p.span(token), help)
        found.append(TypeVar(name))
        p.names.types.bind(name, found[-1])
        more = p.more("]", opened)
    return found


def _tensor(p: State) -> TensorType:
    """`Tensor[(1, ?), float32]`."""
    p.i += 1
    opened = p.expect("[")
    shape = _shape(p)
    p.expect(",", "`,` and the data type of the elements", opened, _TENSOR)
    token = p.expect("name", "the data type of the elements", opened)
    dtype = p.texts[token]
    p.expect("]", opened=opened)
    if dtype not in _SCALARS:
        hint = p.near(dtype, DTYPES) or "the data types are " + " ".join(DTYPES)
        p.report("parse.unknown-dtype", f"`{dtype}` is not a data type", p.span(token), hint)
        dtype = "float32"
    return TensorType(shape, dtype)


def _shape(p: State) -> list[Dim]:
    opened = p.expect("(", "`(` and the dimensions", help=_TENSOR)
    found: list[Dim] = []
    more = not p.accept(")")
    while more:
        found.append(_dim(p))
        more = p.more(")", opened)
    return found


def _dim(p: State) -> Dim:
    kind, token = p.kinds[p.i], p.i
    if at_size(p):
        return size(p)
    if kind == "number":
        p.i += 1
        return _int_dim(p, token)
    if kind == "?":
        p.i += 1
        return AnyDim()
    if kind == "meta":
        p.i += 1
        value = p.meta.lookup(p, token)
        if isinstance(value, (AnyDim, IntImm)):
            return value
        raise p.stop("parse.bad-dimension", f"`{p.texts[token]}` is not a dimension", token)
    raise p.unexpected("a dimension", help="a dimension is a number that is not negative, a name of a size, or `?`")


def _int_dim(p: State, token: int) -> IntImm:
    try:
        value, dtype = parse_number(p.texts[token])
    except BadNumber as bad:
        raise p.stop(bad.args[0], bad.args[1], token, bad.args[2]) from None
    if not isinstance(value, int):
        raise p.stop("parse.bad-dimension", f"a dimension cannot be {dtype}", token, "write a whole number, or `?`")
    return IntImm(value)
