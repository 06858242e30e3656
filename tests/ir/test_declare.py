"""Kinds of nodes are declared: typed, documented fields, and constructors that keep Relay's order and names."""

from __future__ import annotations

import ast
import copy
import inspect
from pathlib import Path

import pytest
import relaylab.ir
from relaylab import relay
from relaylab.ir import Call, Constant, Expr, Function, GlobalVar, IncompleteType, Let, TensorType, Tuple, TypeVar, Var
from relaylab.ir.declare import Each, Maybe, MaybeEach, One, field, node
from relaylab.ir.expr import ExprWithOp
from relaylab.ir.node import Node
from relaylab.support.errors import RelayError, RelayTypeError

pytestmark = pytest.mark.slow

IR = Path(relaylab.ir.__file__).parent
X = Var("x")

# the parameters of the constructors, in order: programs pass them by place and by name
PARAMETERS = {
    "Constant": "data, span=",
    "Var": "name_hint, type_annotation=, span=",
    "GlobalVar": "name_hint, type_annot=, span=",
    "Tuple": "fields=, span=",
    "TupleGetItem": "tuple_value, index, span=",
    "Call": "op, args, attrs=, type_args=, span=",
    "Let": "variable, value, body, span=",
    "If": "cond, true_branch, false_branch, span=",
    "RefCreate": "value, span=",
    "RefRead": "ref, span=",
    "RefWrite": "ref, value, span=",
    "Function": "params, body, ret_type=, type_params=, attrs=, span=",
    "Constructor": "name_hint, inputs, belong_to, tag=, span=",
    "PatternWildcard": "",
    "PatternVar": "var",
    "PatternConstructor": "constructor, patterns=",
    "PatternTuple": "patterns=",
    "Clause": "lhs, rhs",
    "Match": "data, clauses, complete=, span=",
    "TensorType": "shape=, dtype=",
    "TupleType": "fields=",
    "TypeVar": "name_hint, kind=",
    "GlobalTypeVar": "name_hint, kind=",
    "TypeCall": "func, args=",
    "RefType": "value",
    "IncompleteType": "kind=",
    "FuncType": "arg_types, ret_type, type_params=, type_constraints=",
    "TypeData": "header, type_vars, constructors",
    "Op": "name, definition=",
}  # fmt: skip


def declarations() -> dict[str, ast.ClassDef]:
    """The classes under `@node`, as they are written."""
    trees = [ast.parse(p.read_text(encoding="utf-8")) for p in sorted(IR.glob("*.py"))]
    found = [n for t in trees for n in ast.walk(t) if isinstance(n, ast.ClassDef)]
    return {c.name: c for c in found if any(isinstance(d, ast.Name) and d.id == "node" for d in c.decorator_list)}


def test_every_kind_of_node_is_declared() -> None:
    assert declarations().keys() == {*PARAMETERS, "Expr"}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_keep_their_order_and_names(name: str) -> None:
    parameters = inspect.signature(getattr(relaylab.ir, name)).parameters.values()
    assert ", ".join(p.name + "=" * (p.default is not p.empty) for p in parameters) == PARAMETERS[name]
    assert all(p.kind is p.POSITIONAL_OR_KEYWORD and p.annotation is not p.empty for p in parameters)


@pytest.mark.parametrize("name", [*PARAMETERS, "Expr"])
def test_fields_are_typed_and_documented(name: str) -> None:
    body = declarations()[name].body
    fields = {
        k: n.target.id for k, n in enumerate(body) if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    for at, field_name in fields.items():
        behind = body[at + 1]
        said = behind.value.value if isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant) else ""
        assert isinstance(said, str) and said.endswith("."), f"{name}.{field_name} has no description"
    parts = [n for n in fields.values() if (name, n) != ("Constant", "later")]  # how its array comes is no part of it
    assert getattr(relaylab.ir, name)._fields == (() if name == "Expr" else tuple(parts))


def test_the_signature_shows_types() -> None:
    shown = str(inspect.signature(Call)).replace("'", "")
    assert (
        shown.startswith("(op: Expr, args: tuple[Expr, ...], attrs: Attrs | None = None") and "span: AnySpan" in shown
    )


def test_fields_match_by_place() -> None:
    match Let(X, X, X):
        case Let(var, value, body):
            assert (var, value, body) == (X, X, X)
        case _:
            raise AssertionError


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Call(3, []), "what a Call calls must be an Expr, not an int"),
        (lambda: Call(X, 3), "the arguments of a Call must be a list, not an int"),
        (lambda: Call(X, "xy"), "the arguments of a Call must be a list, not a str"),
        (lambda: Call(X, [3]), "each of the arguments of a Call must be an Expr, not an int"),
        (lambda: Call(X, [X], 3), "the attributes of a Call must be an Attrs or DictAttrs, not an int"),
        (lambda: Var(3), "the name of a Var must be a str, not an int"),
        (lambda: Var("x", 3), "the annotation of a Var must be a Type, not an int"),
        (lambda: GlobalVar("x", 3), "the annotation of a GlobalVar must be a Type, not an int"),
        (lambda: Let("x", X, X), "the variable of a Let must be a Var, not a str"),
        (
        lambda: Function([X], X, type_params=[3]),
        "each of the type parameters of a Function must be a TypeVar, not an int",
        ),
    ],
)  # fmt: skip
def test_wrong_kinds_are_refused(build, message: str) -> None:
    with pytest.raises(RelayTypeError) as caught:
        build()
    assert caught.value.message == message and caught.value.code == "ir.wrong-kind"


def test_missing_and_unknown_arguments_name_the_constructor() -> None:
    with pytest.raises(TypeError, match="Call: missing a required argument: 'args'"):
        Call(X)
    with pytest.raises(TypeError, match="unexpected keyword argument 'arg'"):
        Call(X, [], arg=1)


def test_nodes_have_no_other_attributes_and_stay_as_they_are() -> None:
    call = Call(X, [X])
    assert not hasattr(call, "__dict__") and copy.deepcopy(call) is copy.copy(call) is call
    for name in ("op", "span", "inferred", "anything"):
        with pytest.raises(RelayTypeError, match="cannot be changed") as caught:
            setattr(call, name, X)
        assert caught.value.code == "ir.frozen-node"
    with pytest.raises(RelayTypeError, match="cannot be changed"):
        del call.op


def test_types_come_with_constants_and_annotations_only() -> None:
    t = TensorType((2,))
    assert Constant([1.0]).type == TensorType((1,), "float64") and Var("x", t).checked_type is t
    for untyped in (X, Var("x", IncompleteType()), Call(X, []), GlobalVar("f")):
        assert untyped.inferred is None
        with pytest.raises(RelayError, match="has no type yet"):
            _ = untyped.checked_type
        assert untyped._checked_type_ is None
    assert GlobalVar("f", t).checked_type is t


def test_variables_of_types_are_equal_only_to_themselves() -> None:
    assert TypeVar("t") != TypeVar("t") and IncompleteType() != IncompleteType()


def test_what_is_called_and_what_prints() -> None:
    log = relay.op.get("log")
    assert all(isinstance(f(X), Call) for f in (X, GlobalVar("f"), Function([X], X), log))
    assert all("%x" in e.astext() for e in (X, log(X), Function([X], X), Tuple([X])))


def test_a_kind_of_ones_own() -> None:
    @node
    class Range(ExprWithOp):
        """All from one value to another."""

        first: Expr = field(converter=One(Expr, "the first of a Range"))
        steps: tuple[Expr, ...] = field(default=None, converter=MaybeEach(Expr, "the steps of a Range"))
        last: Expr | None = field(default=None, alias="until", converter=Maybe(Expr, "the last of a Range"))
        name: str = "range"

        def __post_init__(self) -> None:
            seen.append(self)

    seen: list[Node] = []
    made = Range(X, until=X)
    assert (made.first, made.steps, made.last, made.name, made.inferred) == (X, (), X, "range", None)
    assert seen == [made] and made.span is not None and Range._fields == ("first", "steps", "last", "name")
    with pytest.raises(RelayTypeError, match="the last of a Range must be an Expr"):
        Range(X, (), 3)
    assert Each(Expr, "them")(e for e in (X, X)) == (X, X)
