"""Calls: of operators, whose type relations are solved when enough is known, and of functions.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard, cast

from relaylab.analysis.infer.sizes import result_of_call
from relaylab.analysis.infer.solver import FAILED, Conflict, Constraint, FailedType
from relaylab.ir.adt import Constructor
from relaylab.ir.attrs import Attrs
from relaylab.ir.expr import Call, Constant, Expr, GlobalVar, Var
from relaylab.ir.op import Op
from relaylab.ir.types import FuncType, IncompleteType, TensorType, TupleType, Type, type_leaves
from relaylab.ir.visit import children
from relaylab.op.base import RelationError
from relaylab.op.tensor.join import OfSeveral
from relaylab.support.errors import RelayError

if TYPE_CHECKING:
    from relaylab.analysis.infer.typer import Typer


OF_THE_RULE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError
)  # fmt: skip
"""What a type relation that a program wrote may raise."""


class Relation:
    """One use of an operator, as its type relation sees it: `out`, `unify` and `fail`. `sound`: nothing was refused."""

    __slots__ = ("typer", "site", "op", "record", "args", "result", "sound")

    def __init__(self, typer: Typer, site: Expr, op: Op, record: Any, args: tuple[Type, ...]):
        self.typer, self.site, self.op, self.record, self.args = typer, site, op, record, args
        self.result: Type = IncompleteType()
        self.sound = True

    @property
    def out(self) -> Type:
        """What is known of the result."""
        return self.typer.solver.resolve(self.result)

    def unify(self, a: Type, b: Type) -> Type:
        """Make two types equal; the result is what is known of them."""
        return self.typer.solver.resolve(self.typer.solver.unify(a, b))

    def fail(self, message: str, help: str = "") -> NoReturn:
        """Refuse the call."""
        raise RelationError(message, code="type.operator", help=help)

    def attempt(self) -> bool:
        """Try to find the result; False if too little is known."""
        solver = self.typer.solver
        types = [solver.resolve(a) for a in self.args]
        if self.typer.tainted and any(isinstance(p, FailedType) for t in types for p in type_leaves(t)):
            solver.unify(self.result, FAILED)
            return True
        try:
            found = self.record.relation(self, *types)
            if found is not None:
                solver.unify(self.result, found)
        except (Conflict, RelayError, *OF_THE_RULE) as error:
            self._report(error, types)
            return True
        return found is not None

    def _report(self, error: Exception, types: list[Type]) -> None:
        self.sound = False
        given = ", ".join(map(str, types))
        if isinstance(error, Conflict):
            left, right = self.typer.solver.resolve(error.left), self.typer.solver.resolve(error.right)
            what, help = f"{self.op.name}: expected {left}, found {right}", error.detail
        elif isinstance(error, RelayError):
            what, help = f"{self.op.name}: {error.message}", error.help
        else:
            what, help = (
                f"{self.op.name} cannot take ({given}): {error}",
                f"raised by its type relation as {type(error).__name__}",
            )
        self.typer.fail("operator", what, self.site, help or f"it was given ({given})")
        if type(self.out) is IncompleteType:
            self.typer.solver.unify(self.result, FAILED)


class Solved:
    """What type relations found for arguments whose types are known: it follows from these and the attributes alone.

    Passes build the same calls with the same attribute records again and again, and layers of a network have equal
    ones.
    """

    LIMIT = 1 << 15

    def __init__(self) -> None:
        self._found: dict[tuple[int, tuple[Type, ...]], tuple[Any, Type]] = {}
        self._equal: dict[tuple[object, ...], Type] = {}

    def get(self, record: Attrs, args: tuple[Type, ...]) -> Type | None:
        """The type of the result, if it was found before."""
        known = self._found.get((id(record), args))
        if known is not None and known[0] is record:
            return known[1]
        try:
            found = self._equal.get(_by_value(record, args))
        except TypeError:  # an array among the attributes
            return None
        if found is not None:
            self._keep(record, args, found)
        return found

    def put(self, record: Attrs, args: tuple[Type, ...], result: Type) -> None:
        """Keep a result."""
        if all(map(is_known, args)) and is_known(result):
            self._keep(record, args, result)
            with suppress(TypeError):
                self._equal[_by_value(record, args)] = result

    def _keep(self, record: Attrs, args: tuple[Type, ...], result: Type) -> None:
        if len(self._found) >= self.LIMIT:
            self._found.clear()
            self._equal.clear()
        self._found[id(record), args] = record, result  # with the record, so that no other gets its address


def _by_value(record: Attrs, args: tuple[Type, ...]) -> tuple[object, ...]:
    return type(record), tuple(v for _, v in record.items()), args


_solved = Solved()


def is_known(t: object) -> TypeGuard[Type]:
    """Whether a type is that of a tensor, or of a tuple of tensors."""
    return type(t) is TensorType or (type(t) is TupleType and {TensorType}.issuperset(map(type, t.fields)))


def relate(t: Typer, site: Expr, op: Op, attrs: Attrs | None, args: tuple[Type, ...]) -> Type:
    """The type of `op` applied to arguments of these types."""
    record = op.default if attrs is None else attrs
    known = _solved.get(cast(Attrs, record), args) if type(record) is op.definition else None
    return known if known is not None else _relate(t, site, op, attrs, args)


def _relate(t: Typer, site: Expr, op: Op, attrs: Attrs | None, args: tuple[Type, ...]) -> Type:
    names = op.definition.inputs
    if len(names) != len(args):
        given = (
            f"{op.name} takes {len(names)} argument{'s' * (len(names) != 1)} ({', '.join(names)}), {len(args)} given"
        )
        joined = isinstance(op.definition, type) and issubclass(op.definition, OfSeveral)
        return t.fail("arity", given, site, f"it takes one tuple: {op.name}((%a, %b), …)" if joined else "")
    try:
        record = op.facets(attrs)
    except RelayError as error:
        return t.fail("attributes", f"{op.name}: {error.message}", site, error.help)
    relation = Relation(t, site, op, record, args)
    t.solver.post(Constraint(relation.attempt, (*args, relation.result)))
    result = t.solver.shallow(relation.result)
    if relation.sound and (attrs is None or record is attrs):
        _solved.put(record, args, result)
    return result


def operator_value(t: Typer, op: Op) -> FuncType:
    """The type of one use of an operator as a function value."""
    args = tuple(IncompleteType() for _ in op.definition.inputs)
    return FuncType(args, relate(t, op, op, None, args))


def finish_call(t: Typer, call: Call) -> Type:
    """The type of a call whose parts have theirs."""
    args = tuple([t.of(a) for a in call.args])
    if isinstance(call.op, Op):
        t.type_args[call] = args
        found = relate(t, call, call.op, call.attrs, args)
        if call.op.definition.refuses_values and not isinstance(found, FailedType):
            values = [a.data.numpy() if isinstance(a, Constant) else None for a in call.args]
            why = call.op.facets(call.attrs).refusal([t.solver.resolve(a) for a in args], values)
            return t.fail("operator", f"{call.op.name}: {why}", call) if why else found
        return found
    callee = t.solver.shallow(t.of(call.op))
    if type(callee) is IncompleteType:
        result = IncompleteType()
        t.require(callee, FuncType(args, result), call, "the function called")
        return result
    if not isinstance(callee, FuncType):
        what = f"only a function can be called, found {t.solver.resolve(callee)}"
        return callee if isinstance(callee, FailedType) else t.fail("not-a-function", what, call)
    return _apply(t, call, callee, args)


def _apply(t: Typer, call: Call, callee: FuncType, args: tuple[Type, ...]) -> Type:
    if len(callee.arg_types) != len(args):
        return t.fail(
            "arity",
            f"{_name(call.op)} takes {len(callee.arg_types)} arguments, {len(args)} given",
            call,
            f"its type is {t.solver.resolve(callee)}",
        )
    if len(call.type_args) > len(callee.type_params):
        return t.fail(
            "arity",
            f"{_name(call.op)} takes {len(callee.type_params)} type arguments, {len(call.type_args)} given",
            call,
        )
    if callee.type_params:
        fresh = [IncompleteType() for _ in callee.type_params]
        for var, given in zip(fresh, call.type_args):
            t.solver.unify(var, t.annotation(given, call))
        t.type_args[call] = tuple(fresh)
        callee = callee.instantiate(fresh)
    for k, (wanted, found, arg) in enumerate(zip(callee.arg_types, args, call.args)):
        t.require(wanted, found, arg if children(arg) else call, f"argument {k} of {_name(call.op)}")
    return result_of_call(t, call, callee, args)


def _name(callee: Expr) -> str:
    if isinstance(callee, GlobalVar):
        return f"@{callee.name_hint}"
    return (
        f"%{callee.name_hint}"
        if isinstance(callee, Var)
        else callee.name_hint
        if isinstance(callee, Constructor)
        else "the function"
    )
