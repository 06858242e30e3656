"""What texts mean: grammar, scopes, literals, attributes, places."""

from __future__ import annotations

import numpy as np
import pytest

import relaylab.op  # noqa: F401  (registers the operators)
from relaylab.ir import (
    AnyDim,
    Call,
    Constant,
    Function,
    FuncType,
    If,
    IncompleteType,
    IRModule,
    Let,
    Match,
    Op,
    PatternConstructor,
    PatternTuple,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefType,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    TypeCall,
    Var,
    const,
    structural_equal,
)
from relaylab.support.errors import DiagnosticError
from relaylab.text import ParseWarning, parse_expr, read_module

V = '#[version = "0.0.5"]\n'
LIST = V + "type List[A] { Cons(A, List[A]), Nil, }\n"


def same(a: str, b: str) -> bool:
    return structural_equal(parse_expr(a), parse_expr(b), map_free_vars=True)


# ---- literals

LITERALS = [
    ("1", "int32", 1), ("-1", "int32", -1), ("--1", "int32", 1), ("---1", "int32", -1), ("0", "int32", 0),
    ("2147483647", "int32", 2**31 - 1), ("2147483648", "int64", 2**31), ("-2147483648", "int32", -(2**31)),
    ("-2147483649", "int64", -(2**31) - 1), ("5i16", "int16", 5), ("5i32", "int32", 5), ("5i64", "int64", 5),
    ("5i", "int32", 5),
    ("1f", "float32", 1), ("1.f", "float32", 1), ("1.5f", "float32", 1.5), ("-2.5f16", "float16", -2.5),
    ("3f64", "float64", 3),
    ("1e-05f", "float32", 1e-5), ("1E+3f", "float32", 1000), ("0.1f64", "float64", 0.1),
    ("inff", "float32", np.inf), ("-inff", "float32", -np.inf), ("inff64", "float64", np.inf),
    ("nanf", "float32", np.nan),
    ("True", "bool", True), ("False", "bool", False),
]  # fmt: skip


@pytest.mark.parametrize(("text", "dtype", "value"), LITERALS)
def test_literals(text: str, dtype: str, value: float) -> None:
    expr = parse_expr(text)
    assert isinstance(expr, Constant) and expr.data.shape == () and expr.data.dtype == dtype
    assert np.array_equal(expr.data, np.asarray(value, dtype), equal_nan=dtype.startswith("float"))


def test_negative_zero_keeps_its_sign() -> None:
    assert np.signbit(parse_expr("-0f").data)


# ---- comments and white space


@pytest.mark.parametrize(
    "text", ["/* a */ 1 // b", "1 /* /* nested */ */", "// only\n1", "\t1\r\n", "1/**/", "/* * / */1"]
)
def test_comments_are_dropped(text: str) -> None:
    assert same(text, "1")


def test_a_slash_belongs_to_a_name_but_not_the_start_of_a_comment() -> None:
    expr = parse_expr("free_var %a/b;%a/b// comment")
    assert isinstance(expr, Var) and expr.name_hint == "a/b"
    assert parse_expr("free_var %a;%a/* c */").name_hint == "a"


# ---- operators


@pytest.mark.parametrize(
    ("infix", "calls"),
    [
        ("1 + 2 * 3", "add(1, multiply(2, 3))"),
        ("1 * 2 + 3", "add(multiply(1, 2), 3)"),
        ("1 - 2 - 3", "subtract(subtract(1, 2), 3)"),
        ("(1 - 2) / 3", "divide(subtract(1, 2), 3)"),
        ("1 - (2 - 3)", "subtract(1, subtract(2, 3))"),
        ("1 < 2 == 3 >= 4", "equal(less(1, 2), greater_equal(3, 4))"),
        ("1 != 2 + 3 <= 4 > 5", "not_equal(1, greater(less_equal(add(2, 3), 4), 5))"),
        ("1 -1", "subtract(1, 1)"),
        ("1-1", "subtract(1, 1)"),
        ("1 - -1", "subtract(1, -1)"),
        ("log(1f) + 2f", "add(log(1f), 2f)"),
    ],
)
def test_operators_bind_by_precedence_and_to_the_left(infix: str, calls: str) -> None:
    assert same(infix, calls)


# ---- structure


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("()", Tuple), ("(1,)", Tuple), ("(1, 2)", Tuple), ("(1)", Constant), ("((1, 2)).1", TupleGetItem),
        ("{ { 1 } }", Constant),
        ("let %x = 1; %x", Let), ("1; 2", Let), ("fn () { 1 }", Function), ("fn () { 1 }()", Call),
        ("if (True) { 1 } else { 2 }", If),
        ("ref(1)", RefCreate), ("ref_read(ref(1))", RefRead), ("ref_write(ref(1), 2)", RefWrite),
        ("match (1) { _ => { 1 } }", Match),
        ("log", Op), ("log(let %x = 1f; %x)", Call), ("@f", object), ("match? (1) { _ => 2, }", Match),
    ],
)  # fmt: skip
def test_kinds_of_expressions(text: str, kind: type) -> None:
    assert isinstance(parse_expr(text), kind)


def test_equivalent_ways_to_write() -> None:
    assert same("let %x = 1; let %y = 2; %y", "let %x = 1; (let %y = 2; %y)")
    assert same("1; 2", "let %_anon = 1; 2")
    assert same("free_var %t; %t.0.1", "free_var %t; (%t.0).1")
    assert same("{ 1 }", "1") and same("(1,)", "(1, )") and not same("(1)", "(1,)")


def test_graph_variables_share_nodes() -> None:
    pair = parse_expr("%0 = log(1f); (%0, %0)")
    assert pair.fields[0] is pair.fields[1]


def test_the_first_binding_of_a_graph_variable_stays_and_the_second_is_warned_about() -> None:
    with pytest.warns(ParseWarning, match="%0 is bound at line 1 already"):
        expr = parse_expr("%0 = 1;\n%0 = 2;\n%0")
    assert int(expr.data) == 1


def test_graph_variables_are_known_in_the_whole_text() -> None:
    mod = read_module(V + "def @a() { %0 = log(1f); %0 }\ndef @b() { exp(%0) }")
    assert mod["b"].body.args[0] is mod["a"].body


# ---- scopes


def test_let_shadows_and_its_value_sees_the_outer_variable() -> None:
    f = parse_expr("fn (%x: int32) { let %x = add(%x, 1); %x }")
    assert f.body.value.args[0] is f.params[0] and f.body.body is f.body.var


def test_a_let_bound_function_may_call_itself() -> None:
    e = parse_expr("let %f = fn (%n: int32) { %f(%n) }; %f")
    assert e.value.body.op is e.var
    e = parse_expr("free_var %f; let %f = fn () { %f() }; %f")
    assert e.value.body.op is e.var


@pytest.mark.parametrize(
    "text",
    [
        "(let %x = 1; %x, %x)", "if (True) { let %x = 1; %x } else { %x }", "fn () { fn (%x) { 1 }; %x }",
        "match (1) { %x => { 1 }, _ => { %x } }", "{ let %x = 1; %x }; %x",
    ],
)  # fmt: skip
def test_names_end_with_their_scope(text: str) -> None:
    with pytest.raises(DiagnosticError, match="%x is not bound here"):
        parse_expr(text)


def test_free_variables_are_declared_once_for_the_whole_text() -> None:
    e = parse_expr("fn () { free_var %x: int32; %x }; %x")
    assert isinstance(e.body, Var) and e.value.body is e.body and e.body.type_annotation == TensorType((), "int32")


# ---- functions and types


def test_functions() -> None:
    f = parse_expr(
        "fn [A](%x: A, %y, %z {virtual_device=meta[V][0]}: (A,), Primitive=1, a.b=[1, 2]) -> A { %x }".replace(
            "meta[V][0]", "None"
        )
    )
    (a,) = f.type_params
    assert [p.name_hint for p in f.params] == ["x", "y", "z"]
    assert f.params[0].type_annotation is a and f.ret_type is a and f.params[1].type_annotation is None
    assert dict(f.attrs) == {"Primitive": 1, "a.b": (1, 2)}


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("float32", TensorType((), "float32")), ("bool", TensorType((), "bool")), ("int", TensorType((), "int32")),
        ("uint", TensorType((), "uint32")), ("float", TensorType((), "float32")),
        ("Tensor[(), int8]", TensorType((), "int8")),
        ("Tensor[(1, 2), float16]", TensorType((1, 2), "float16")), ("Tensor[(3,), float32]", TensorType((3,))),
        ("Tensor[(?, 2i64), float32]", TensorType((AnyDim(), 2))), ("()", TupleType([])),
        ("(int32,)", TupleType([TensorType((), "int32")])),
        ("(int32)", TupleType([TensorType((), "int32")])), ("ref(int32)", RefType(TensorType((), "int32"))),
        ("fn (int32) -> ()", FuncType([TensorType((), "int32")], TupleType([]))),
    ],
)  # fmt: skip
def test_types(text: str, type_: object) -> None:
    assert parse_expr(f"fn (%x: {text}) {{ 1 }}").params[0].type_annotation == type_


@pytest.mark.parametrize("text", ["let %x: _ = 1; %x", "let %x: List[_] = 1; %x", "fn (%x: _, a=1) { %x }"])
def test_a_type_may_be_left_open(text: str) -> None:
    e = parse_expr(text)
    t = (e.var if isinstance(e, Let) else e.params[0]).type_annotation
    assert isinstance(t.args[0] if isinstance(t, TypeCall) else t, IncompleteType)


def test_polymorphic_function_types() -> None:
    t = parse_expr("fn (%f: fn [A, B](A) -> (A, B)) { 1 }").params[0].type_annotation
    assert t.arg_types[0] is t.type_params[0] and t.ret_type.fields[1] is t.type_params[1]


def test_data_types_may_be_defined_after_their_use() -> None:
    mod = read_module(
        V
        + "def @f(%x: List[nat]) -> nat { match? (%x) { Cons(%a, _) => { %a } } }\n"
        + LIST[len(V) :]
        + "type nat { Z, S(nat) }"
    )
    data = mod["List"] if "List" in mod else mod.type_definitions[mod.get_global_type_var("List")]
    assert [c.name_hint for c in data.constructors] == ["Cons", "Nil"]
    (param,) = mod["f"].params
    assert param.type_annotation == TypeCall(
        mod.get_global_type_var("List"), [TypeCall(mod.get_global_type_var("nat"), [])]
    )
    assert mod["f"].body.clauses[0].lhs.constructor is data.constructors[0]


def test_extern_types_need_not_be_last() -> None:
    mod = read_module(V + "extern type Storage\ndef @f(%x: Storage) { %x }\ntype Other { One, }")
    assert len(mod.type_definitions) == 2 and "f" in mod


def test_patterns_and_constructors() -> None:
    mod = read_module(
        LIST + "def @f(%x: List[int32]) { match ((%x, Nil)) { (Cons(_, %r: List[int32]), _) => { %r }, _ => { Nil } } }"
    )
    first, second = mod["f"].body.clauses
    assert isinstance(first.lhs, PatternTuple) and isinstance(first.lhs.patterns[0], PatternConstructor)
    assert isinstance(first.lhs.patterns[1], PatternWildcard)
    assert isinstance(second.rhs, Call) and second.rhs.args == () and second.rhs.op.name_hint == "Nil"
    assert mod["f"].body.complete and not parse_expr("match? (1) { _ => { 1 } }").complete


def test_functions_call_each_other_through_one_global_variable() -> None:
    mod = read_module(V + "def @a() { @b() } def @b() { @a() }")
    assert mod["a"].body.op is mod.get_global_var("b") and mod["b"].body.op is mod.get_global_var("a")


# ---- attributes


def test_attributes_get_defaults_and_kinds() -> None:
    call = parse_expr("nn.leaky_relu(1f, alpha=1)")
    assert call.attrs.alpha == 1.0 and isinstance(call.attrs.alpha, float)
    assert parse_expr("nn.leaky_relu(1f)").attrs.alpha == 0.25
    assert parse_expr("sum(1f, keepdims=1)").attrs.keepdims is True
    assert parse_expr("sum(1f, axis=[-1, 2])").attrs.axis == (-1, 2)
    assert parse_expr("log(1f)").attrs is None


VALUES = [
    ("1", 1), ("-2", -2), ("3i64", 3), ("1.5f", 1.5), ("-1e-10f", -1e-10), ("True", True), ("None", None),
    ("nullptr", None), ("inff", np.inf),
    ('"NCHW"', "NCHW"), (r'"a\"b\\c\nd\x41\u00e9\q"', 'a"b\\c\ndAé\\q'), ("[]", ()),
    ("[1, [2f, None]]", (1, (2.0, None))), ("(1)", 1),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_attribute_values(text: str, value: object) -> None:
    found = parse_expr(f"fn (a={text}) {{ 1 }}").attrs["a"]
    assert found == value and isinstance(found, type(value)) and isinstance(found, bool) is isinstance(value, bool)


def test_attribute_names_may_be_keywords_dotted_or_quoted() -> None:
    attrs = parse_expr('fn (type=1, a.def=2, "x y"=3, d={if=4, e=[5]}) { 1 }').attrs
    assert dict(attrs) | {"d": dict(attrs["d"])} == {"type": 1, "a.def": 2, "x y": 3, "d": {"if": 4, "e": (5,)}}


def test_calls_of_functions_may_have_attributes() -> None:
    assert dict(parse_expr("@f(1, a=2)").attrs) == {"a": 2}
    attrs = parse_expr('@f(1, axis=2, attrs_type_key="relay.attrs.ReduceAttrs")').attrs
    assert attrs.type_key == "relay.attrs.ReduceAttrs" and attrs.axis == (2,)


# ---- places


def test_nodes_know_their_places() -> None:
    e = parse_expr("let %x = log(1f);\n  add(%x,\n    %x)", source_name="cell")
    assert str(e.var.span) == "cell:1:5" and str(e.value.span) == "cell:1:10" and str(e.body.span) == "cell:2:3"
    assert (e.body.span.end_line, e.body.span.end_column) == (3, 7)
    assert str(e.value.args[0].span) == "cell:1:14" and (e.span.line, e.span.end_line) == (1, 3)


def test_init_module_and_meta_table() -> None:
    base = read_module(LIST + "def @f() { 1 }")
    mod = read_module(
        V + "def @g(%x: List[int32]) { (@f(), meta[relay.Constant][0]) }",
        init_module=base,
        init_meta_table={"relay.Constant": [const([1, 2])]},
    )
    assert mod["g"].body.fields[0].op is base.get_global_var("f") and "g" not in base
    assert mod["g"].body.fields[1].data.tolist() == [1, 2]


def test_parse_runs_registered_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    from relaylab.text import fromtext, hooks, parse

    monkeypatch.setattr(hooks.typed, "function", lambda mod: ("typed", mod))
    assert parse(V + "def @f() { 1 }")[0] == "typed" == fromtext(V + "def @f() { 1 }")[0]
    monkeypatch.setattr(hooks.typed, "function", lambda mod: mod)
    assert isinstance(parse(V + "def @f() { 1 }"), IRModule)
