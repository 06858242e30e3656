"""Dataflow patterns: what a piece of a program may look like, built like the program itself.

    conv = is_op("nn.conv2d")(wildcard(), is_constant())
    pattern = conv.optional(lambda x: is_op("nn.relu")(x))

Patterns are compared by identity: one pattern used twice matches one and the same node twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from relaylab.ir import Expr, Op, Type
from relaylab.ir import TensorType as _TensorType
from relaylab.ir.node import expect, expect_all
from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError, kind_of


class _Engine:
    """What can be done with patterns; the modules that do it fill it in (patterns themselves are only data)."""

    match: Any = None
    partition: Any = None


engine = _Engine()


@checked
class DFPattern:
    """The base of patterns. `name` is how rules and messages call what it matches."""

    name: str = ""

    def __init_subclass__(cls, **kwargs: object):
        super().__init_subclass__(**kwargs)
        if cls.__name__ not in ("ExprPattern", "CallPattern"):  # passes build these by thousands: they ask themselves
            checked(cls)

    def parts(self) -> tuple[DFPattern, ...]:
        """The direct sub-patterns."""
        return ()

    def __call__(self, *args: object) -> CallPattern:
        return CallPattern(self, None if args == (None,) else [as_pattern(a) for a in args])

    def __or__(self, other: object) -> AltPattern:
        return AltPattern(self, as_pattern(other))

    def __add__(self, other: object) -> CallPattern:
        return is_op("add")(self, other)

    def __sub__(self, other: object) -> CallPattern:
        return is_op("subtract")(self, other)

    def __mul__(self, other: object) -> CallPattern:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: object) -> CallPattern:
        return is_op("divide")(self, other)

    def named(self, name: str) -> DFPattern:
        """The pattern, under a name by which a rule gets what it matched."""
        self.name = name
        return self

    def has_attr(self, attrs: dict[str, Any]) -> AttrPattern:
        """The pattern, if the node (or its operator) has these attributes."""
        return AttrPattern(self, attrs)

    def has_type(self, ttype: Type) -> TypePattern:
        """The pattern, if the node has this type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """The pattern, if the node is a tensor of this data type."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[int]) -> ShapePattern:
        """The pattern, if the node is a tensor of this shape."""
        return ShapePattern(self, shape)

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> AltPattern:
        """The pattern, or what `option_constructor` builds on it."""
        return self | option_constructor(self)

    def dominates(self, parent: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """The pattern, if all that goes into it comes from `parent` along `path`."""
        return DominatorPattern(parent, path if path is not None else wildcard(), self)

    def match(self, expr: Expr) -> bool:
        """Whether `expr` looks like this."""
        return engine.match(self, expr) is not None

    def partition(
        self, expr: Expr, attrs: dict[str, Any] | None = None, check: Callable[[Expr], bool] | None = None
    ) -> Expr:
        """`expr` with each match made a call of a function of its own."""
        return engine.partition(self, expr, attrs, check)


class ExprPattern(DFPattern):
    """Matches expressions structurally equal to one; an operator matches itself."""

    def __init__(self, expr: Expr):
        self.expr = expect(expr, Expr, "what an ExprPattern matches")

    def __repr__(self) -> str:
        return self.expr.name if isinstance(self.expr, Op) else f"ExprPattern({self.expr!r})"


class VarPattern(DFPattern):
    """Matches variables: any, or those of one name."""

    def __init__(self, name_hint: str = ""):
        self.name_hint = self.name = name_hint

    def __repr__(self) -> str:
        return f"%{self.name_hint or '*'}"


class ConstantPattern(DFPattern):
    """Matches constants."""

    def __repr__(self) -> str:
        return "const"


class WildcardPattern(DFPattern):
    """Matches anything; `redirect_to` lets a recursive pattern be tied later."""

    def __init__(self) -> None:
        self.pattern: DFPattern | None = None

    def redirect_to(self, pat: DFPattern) -> None:
        """Match what `pat` matches from now on."""
        self.pattern = pat

    def parts(self) -> tuple[DFPattern, ...]:
        return () if self.pattern is None else (self.pattern,)

    def __repr__(self) -> str:
        return self.name or "*"


class CallPattern(DFPattern):
    """Matches calls: of what `op` matches, with arguments that `args` match (None: any arguments)."""

    def __init__(self, op: DFPattern, args: Iterable[DFPattern] | None):
        self.op = expect(op, DFPattern, "what a CallPattern calls")
        self.called = op.expr if isinstance(op, ExprPattern) and isinstance(op.expr, Op) else None
        """The operator that the pattern calls, if it is one."""
        self.args = None if args is None else expect_all(args, DFPattern, "the arguments of a CallPattern")

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.op, *(self.args or ()))

    @property
    def op_name(self) -> str:
        """The operator that the pattern calls, or an empty string."""
        return "" if self.called is None else self.called.name

    def __repr__(self) -> str:
        return f"{self.op!r}({'...' if self.args is None else ', '.join(map(repr, self.args))})"


class FunctionPattern(DFPattern):
    """Matches functions by parameters (None: any) and body."""

    def __init__(self, params: Iterable[DFPattern] | None, body: DFPattern):
        self.params = None if params is None else tuple(params)
        self.body = body

    def parts(self) -> tuple[DFPattern, ...]:
        return (*(self.params or ()), self.body)

    def __repr__(self) -> str:
        return f"fn({'...' if self.params is None else ', '.join(map(repr, self.params))}) {{ {self.body!r} }}"


class IfPattern(DFPattern):
    """Matches conditionals."""

    def __init__(self, cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern):
        self.cond, self.true_branch, self.false_branch = cond, true_branch, false_branch

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.cond, self.true_branch, self.false_branch)

    def __repr__(self) -> str:
        return f"if ({self.cond!r}) {{ {self.true_branch!r} }} else {{ {self.false_branch!r} }}"


class LetPattern(DFPattern):
    """Matches lets."""

    def __init__(self, var: DFPattern, value: DFPattern, body: DFPattern):
        self.var, self.value, self.body = var, value, body

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.var, self.value, self.body)

    def __repr__(self) -> str:
        return f"let {self.var!r} = {self.value!r}; {self.body!r}"


class TuplePattern(DFPattern):
    """Matches tuples: with fields that `fields` match, or any (None)."""

    def __init__(self, fields: Iterable[DFPattern] | None):
        self.fields = None if fields is None else tuple(fields)

    def parts(self) -> tuple[DFPattern, ...]:
        return self.fields or ()

    def __repr__(self) -> str:
        return f"({'...' if self.fields is None else ', '.join(map(repr, self.fields))})"


class TupleGetItemPattern(DFPattern):
    """Matches projections: of one field, or of any (-1)."""

    def __init__(self, tuple_value: DFPattern, index: int | None = None):
        self.tuple, self.index = tuple_value, -1 if index is None else int(index)

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.tuple,)

    def __repr__(self) -> str:
        return f"{self.tuple!r}.{'*' if self.index < 0 else self.index}"


class AltPattern(DFPattern):
    """Matches what one of two patterns matches, the left one first."""

    def __init__(self, left: DFPattern, right: DFPattern):
        self.left, self.right = left, right

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.left, self.right)

    def __repr__(self) -> str:
        return f"({self.left!r} | {self.right!r})"


class _Refined(DFPattern):
    """A pattern with a condition on the node."""

    def __init__(self, pattern: DFPattern):
        self.pattern = pattern

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.pattern,)


class TypePattern(_Refined):
    """Matches nodes of one type."""

    def __init__(self, pattern: DFPattern, ttype: Type):
        super().__init__(pattern)
        self.type = ttype

    def __repr__(self) -> str:
        return f"{self.pattern!r}: {self.type}"


class DataTypePattern(_Refined):
    """Matches tensors of one data type."""

    def __init__(self, pattern: DFPattern, dtype: str):
        super().__init__(pattern)
        self.dtype = _TensorType((), dtype).dtype

    def __repr__(self) -> str:
        return f"{self.pattern!r}: {self.dtype}"


class ShapePattern(_Refined):
    """Matches tensors of one shape."""

    def __init__(self, pattern: DFPattern, shape: Sequence[int]):
        super().__init__(pattern)
        self.shape = _TensorType(shape).shape

    def __repr__(self) -> str:
        return f"{self.pattern!r}: Tensor[{self.shape}]"


class AttrPattern(_Refined):
    """Matches nodes with attributes: of the operator (`TOpPattern`), of the call, or of the function."""

    def __init__(self, pattern: DFPattern, attrs: dict[str, Any]):
        super().__init__(pattern)
        self.attrs = dict(attrs)

    def __repr__(self) -> str:
        return f"{self.pattern!r} with {self.attrs}"


class DominatorPattern(DFPattern):
    """Matches a `child` all of whose inputs come from one `parent` along nodes that `path` matches."""

    def __init__(self, parent: DFPattern, path: DFPattern, child: DFPattern):
        self.parent, self.path, self.child = parent, path, child

    def parts(self) -> tuple[DFPattern, ...]:
        return (self.parent, self.path, self.child)

    def __repr__(self) -> str:
        return f"dominates({self.parent!r}, {self.path!r}, {self.child!r})"


# ---- the constructors of Relay


def as_pattern(value: object) -> DFPattern:
    """A pattern from a pattern, an expression, or a list of them (a tuple)."""
    if isinstance(value, DFPattern):
        return value
    if isinstance(value, Expr):
        return ExprPattern(value)
    if isinstance(value, (list, tuple)):
        return is_tuple(value)
    raise RelayTypeError(
        f"{kind_of(value)} is not a pattern",
        code="pattern.not-a-pattern",
        help="use wildcard(), is_op(...), is_constant() ...",
    )


def is_var(name: str = "") -> VarPattern:
    """Any variable, or those named `name`."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """Any constant."""
    return ConstantPattern()


def is_expr(expr: Expr) -> ExprPattern:
    """Expressions structurally equal to `expr`."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """The operator of that name."""
    return ExprPattern(Op.get(op_name))


def is_tuple(fields: Sequence[Any] | None = None) -> TuplePattern:
    """A tuple of these fields, or any tuple."""
    return TuplePattern(None if fields is None else [as_pattern(f) for f in fields])


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A projection, of field `index` or of any."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: object, true_branch: object, false_branch: object) -> IfPattern:
    """A conditional."""
    return IfPattern(as_pattern(cond), as_pattern(true_branch), as_pattern(false_branch))


def is_let(var: object, value: object, body: object) -> LetPattern:
    """A let."""
    return LetPattern(as_pattern(var), as_pattern(value), as_pattern(body))


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def wild(name: str) -> DFPattern:
    """Anything, under a name."""
    return WildcardPattern().named(name)


def has_type(ttype: Type, pattern: DFPattern | None = None) -> TypePattern:
    """What `pattern` matches (default: anything), if it has this type."""
    return TypePattern(pattern or wildcard(), ttype)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """What `pattern` matches (default: anything), if it is a tensor of this data type."""
    return DataTypePattern(pattern or wildcard(), dtype)


def has_shape(shape: Sequence[int], pattern: DFPattern | None = None) -> ShapePattern:
    """What `pattern` matches (default: anything), if it is a tensor of this shape."""
    return ShapePattern(pattern or wildcard(), shape)


def has_attr(attrs: dict[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """What `pattern` matches (default: anything), if it has these attributes."""
    return AttrPattern(pattern or wildcard(), attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """A child all of whose inputs come from `parent` along `path`."""
    return DominatorPattern(parent, path, child)
