"""How programs look: numbering, inlining, names, scalars, comments, and which characters belong to which node."""

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
    GlobalVar,
    IRModule,
    Let,
    Op,
    SizeVar,
    TempExpr,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    TypeVar,
    Var,
    const,
    post_order,
    structural_equal,
    var,
)
from relaylab.ir.expr import set_type
from relaylab.text import parse_expr, print_with_map, read_module, text

V = '#[version = "0.0.5"]\n'
X = var("x", shape=(3,))
F32 = TensorType((3,))


def call(name: str, *args: object, **attrs: object) -> Call:
    op = Op.get(name)
    return Call(op, args, op.definition(**attrs) if attrs else None)


GOLDEN = {
    "chain": "def @main(%x: Tensor[(3), float32]) { nn.relu(log(%x + %x)) }",
    "order": "def @main(%x: Tensor[(3), float32]) { (log(exp(%x)) + tanh(%x)) * (negative(%x) - exp(log(%x))) }",
    "sharing": "def @main(%x: float32) { %0 = log(%x); %1 = (%0, %0, %x); (%1.0, %1) }",
    "branches": """def @main(%x: float32, %c: bool) {
        %0 = log(%x); let %y = if (%c) { %0 + %x } else { %0 * %0 }; (if (%c) { %y } else { exp(%0) }, %0) }""",
    "escape": """def @main(%x: float32, %c: bool) {
        %0 = log(%x); %1 = if (%c) { %0 } else { %x }; %2 = exp(tanh(%0)); (%1, %2) }""",
    "closures": """def @main(%x: float32) {
        let %f = fn (%y: float32, Primitive=1) -> float32 { %0 = %y + %x; %0 * %0 };
        let %loop = fn (%n: int32) { if (%n == 0) { %f(%x) } else { %loop(%n - 1) } };
        (%loop(3), fn () { %f }()) }""",
    "inner_let": """def @main(%x: float32) {
        (let %a = exp(log(%x)); let %b = log(tanh(%a)); log(%b), let %c = (let %d = 1f; %d); %c) }""",
    "data": """type List[A] { Cons(A, List[A]), Nil, } type Color { Red, Mix(Color, (float32,)) } extern type Storage
        def @hd[A](%xs: List[A], %s: Storage) -> A { match? (%xs) { Cons(%x, _) => { %x } } }
        def @f(%c: Color) {
            match ((%c, Nil)) { (Red, _) => { 1 }, (Mix(_, (%t,)), Cons(%x, Nil)) => { 2 }, _ => { 3 } } }""",
    "cells": """def @main(%r: ref(int32)) {
        ref_write(%r, ref_read(%r) + 1); let %s = ref(ref(2)); ref_read(ref_read(%s)) }""",
    "attributes": """def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
        %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3], data_layout="NCHW");
        (sum(%0, axis=[1]), split(%0, indices_or_sections=[1, 2]),
         nn.leaky_relu(%0, alpha=0.1f), cast(%0, dtype="int8")) }""",
    "names": """def @main(%x: int32, %x1: int32) {
        let %x = 1; let %_y = %x; fn (%x: int32, %_y: int32) { (%x, %_y, %x1) } }
        def @main2(%x: int32) -> int32 { let %x1 = %x; %x1 }""",
    "scalars": """def @main() {
        (1, -2i64, 3i16, 1f, -0f, 1e-05f, 3.14159f, 0.1f, 16777216f, 1e+10f,
         0.1f64, 1f16, inff, -inff64, nanf, True) }""",
    "polymorphism": """def @id[A](%x: A) -> A { %x }
        def @apply[A, B](%f: fn [C](C) -> C, %a: A, %b: B) { (%f(%a), %f(%b), fn [A](%y: A) -> A { %y }) }""",
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_programs(name: str, golden) -> None:
    mod = read_module(V + GOLDEN[name])
    printed = text(mod, header=True)
    golden(f"text/{name}.relay", printed)
    again = read_module(printed)
    assert structural_equal(mod, again, map_free_vars=True) and text(again, header=True) == printed


# ---- scalars


@pytest.mark.parametrize(
    ("value", "dtype", "shown"),
    [
        (1, "int32", "1"), (1, "int64", "1i64"), (-1, "int16", "-1i16"), (3, "float32", "3f"), (0.1, "float32", "0.1f"),
        (3.14159, "float32", "3.14159f"),
        (1e-5, "float32", "1e-05f"), (1e10, "float32", "1e+10f"), (123456, "float32", "123456f"),
        (1234567, "float32", "1234567f"),
        (1 / 3, "float32", "0.33333334f"), (1 / 3, "float64", "0.3333333333333333f64"),
        (1 / 3, "float16", "0.333252f16"), (True, "bool", "True"),
        (np.inf, "float32", "inff"), (-np.inf, "float16", "-inff16"), (np.nan, "float32", "nanf"),
        (-0.0, "float32", "-0f"),
        (1, "int8", "meta[relay.Constant][0]"), (1, "uint8", "meta[relay.Constant][0]"),
        ([1], "int32", "meta[relay.Constant][0]"),
    ],
)  # fmt: skip
def test_constants(value: object, dtype: str, shown: str) -> None:
    assert text(const(value, dtype)) == shown


def test_floats_read_back_as_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    for dtype, bits in (("float32", "uint32"), ("float16", "uint16"), ("float64", "uint64")):
        for word in rng.integers(0, np.iinfo(bits).max, 400, dtype=bits, endpoint=True):
            constant = Constant(np.asarray(word).view(dtype))
            again = read_module(IRModule({"f": Function([], constant)}).astext())["f"].body
            assert again.data.dtype == dtype and again.data.tobytes() == constant.data.tobytes()


# ---- names


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("x", "%x"), ("1", "%v1"), ("_x", "%v_x"), ("", "%v"), ("a b", "%a_b"), ("conv.1:0", "%conv_1_0"),
        ("a/b", "%a/b"),
        ("a//b", "%a_/b"), ("größe", "%gr__e"), ("let", "%let"),
    ],
)  # fmt: skip
def test_variable_names_are_legal(hint: str, shown: str) -> None:
    assert text(Function([Var(hint)], const(1))).startswith(f"fn ({shown})")


def test_function_names_stay_as_they_are() -> None:
    mod = IRModule({'a.b "c"': Function([], const(1)), "d": Function([], Call(GlobalVar("e"), []))})
    mod["main"] = Function([], Call(mod.get_global_var('a.b "c"'), []))
    mod.remove("d")
    assert 'def @"a.b \\"c\\""()' in str(mod)
    assert structural_equal(read_module(V + str(mod)), mod, map_free_vars=True)


def test_type_parameters_do_not_collide() -> None:
    outer, inner = TypeVar("A"), TypeVar("A")
    f = Function([Var("f", FuncType([inner, outer], inner, [inner]))], const(1), outer, [outer])
    assert text(f).startswith("fn [A](%f: fn [A1](A1, A) -> A1) -> A {")
    assert structural_equal(parse_expr(text(f)), f)


def test_free_variables_are_declared_where_they_are_first_used() -> None:
    y = Var("x")
    assert text(Tuple([X, y, X])) == "free_var %x: Tensor[(3), float32];\nfree_var %x1;\n(%x, %x1, %x)"


def test_a_variable_bound_twice_is_shown() -> None:
    e = Let(X, const(1.0), Let(X, const(2.0), X))
    assert "%x: Tensor[(3), float32] = 1f" in text(e) and "%x-malformed-ir" in text(e)


# ---- comments


def _typed(e: Call | Tuple | TupleGetItem, t: object) -> object:
    set_type(e, t)
    return e


def test_types_stand_behind_calls_and_constants_of_typed_programs() -> None:
    inner = call("add", X, const(1.0))
    assert text(Function([X], inner)) == "fn (%x: Tensor[(3), float32]) {\n  add(%x, 1f)\n}"
    _typed(inner, F32)
    pair = _typed(Tuple([inner, inner]), TupleType([F32, F32]))
    first = _typed(TupleGetItem(pair, 0), F32)
    assert text(Function([X], first)) == (
        "fn (%x: Tensor[(3), float32]) {\n"
        "  %0 = add(%x, 1f /* ty=float32 */) /* ty=Tensor[(3), float32] */;\n"
        "  %1 = (%0, %0);\n"
        "  %1.0\n}"
    )


def test_annotate_replaces_the_comments() -> None:
    e = Tuple([call("log", X), const(1)])
    shown = text(
        Function([X], e),
        annotate=lambda n: f" /*{type(n).__name__}*/" if isinstance(n, (Call, Constant, Tuple)) else "",
    )
    assert shown == "fn (%x: Tensor[(3), float32]) {\n  %0 = log(%x) /*Call*/;\n  (%0, 1 /*Constant*/) /*Tuple*/\n}"


def test_annotate_is_asked_once_for_each_node() -> None:
    asked: list[object] = []
    f = Function([X], Tuple([call("log", X), X, const(1)]))
    text(f, annotate=lambda n: asked.append(n) or "")
    assert len(asked) == len(set(asked)) and set(asked) == set(post_order(f))


def test_spans_are_printed_on_request() -> None:
    e = parse_expr("let %x = 1;\nlog(%x)", source_name="cell")
    assert text(e, spans=True).endswith("log(%x) /* span=cell:2:1 */")
    named = parse_expr("log(1f)", source_name="a/*/b*/")
    parse_expr(text(named, spans=True))  # comments nest: the name of a source neither opens nor closes one


# ---- meta data


def test_the_version_line_and_the_metadata_section() -> None:
    f = IRModule({"main": Function([], const([1.0, 2.0]))})
    assert f.astext().startswith(V) and "#[metadata]\n{" in f.astext()
    assert str(f) == "def @main() {\n  meta[relay.Constant][0]\n}\n"
    assert "/* The metadata is not shown" in f.astext(show_meta_data=False)
    assert "metadata" not in IRModule({"main": Function([], const(1.0))}).astext()


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "float64", "int8", "uint8", "int64", "uint64", "bool", "int16"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (1, 1, 4)])
def test_constants_survive(dtype: str, shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    mod = IRModule({"main": Function([], Tuple([Constant(data), const([7.0])]))})
    again = read_module(mod.astext())
    assert structural_equal(mod, again) and again["main"].body.fields[0].data.dtype == dtype


def test_one_constant_is_stored_once() -> None:
    c = const([1.0])
    mod = read_module(IRModule({"main": Function([], Tuple([c, c, const([1.0])]))}).astext())
    a, b, d = mod["main"].body.fields
    assert a is b and a is not d


def test_named_dimensions_and_module_attributes_survive() -> None:
    n = SizeVar("n")
    f = Function([Var("x", TensorType((n, 2))), Var("y", TensorType((n, AnyDim())))], const(1))
    mod = IRModule({"main": f}).with_attr("mod_name", 'a "b"').with_attr("sizes", [1, {"x": None}])
    again = read_module(mod.astext())
    a, b = (p.type_annotation.shape[0] for p in again["main"].params)
    assert a is b and a.name == "n" and again.attrs == mod.attrs and again.astext() == mod.astext()


def test_records_that_relay_keeps_in_the_metadata() -> None:
    op = Op.get("broadcast_to")
    mod = IRModule({"main": Function([X], Call(op, [X], op.definition(shape=(2, 3))))})
    assert "meta[relay.attrs." in mod.astext() and "meta[relay.attrs." not in str(mod)
    assert "broadcast_to(%x, shape=[2, 3])" in str(mod)
    assert structural_equal(read_module(mod.astext()), mod) and structural_equal(read_module(V + str(mod)), mod)


# ---- the source map


def test_every_node_has_its_characters() -> None:
    mod = read_module(V + GOLDEN["closures"])
    shown, ranges = print_with_map(mod)
    assert shown == str(mod)
    nodes = {node for _, _, node in ranges}
    assert set(post_order(mod["main"])) <= nodes and mod.get_global_var("main") in nodes
    for start, end, node in ranges:
        piece = shown[start:end]
        assert piece and piece == piece.strip()
        if isinstance(node, Var):
            assert piece.startswith("%") and piece.rstrip("0123456789").endswith(node.name_hint.rstrip("0123456789"))
        if isinstance(node, Op):
            assert piece == node.name


def test_ranges_nest_and_come_outer_first() -> None:
    _, ranges = print_with_map(read_module(V + GOLDEN["branches"]))
    open_: list[tuple[int, int]] = []
    for start, end, _ in ranges:
        while open_ and open_[-1][1] <= start:
            open_.pop()
        assert not open_ or (open_[-1][0] <= start and end <= open_[-1][1])
        open_.append((start, end))


def test_a_definition_covers_its_line_and_a_use_its_number() -> None:
    e = parse_expr("free_var %x;\n%0 = log(%x);\n(%0, %0)")
    shown, ranges = print_with_map(e)
    log = e.fields[0]
    assert [shown[s:t] for s, t, n in ranges if n is log] == ["%0 = log(%x)", "%0", "%0"]


# ---- anything can be printed


class Marker(TempExpr):
    """A node that only a pass knows."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()


@pytest.mark.parametrize(
    ("thing", "shown"),
    [
        (F32, "Tensor[(3), float32]"), (Marker(), "<Marker>"), (call("log", Marker()), "%0 = <Marker>;\nlog(%0)"),
        (Op.get("log"), "log"), (GlobalVar("f"), "@f"), (3, "3"), (TupleGetItem(const(3), 0), "(3).0"),
        (Call(const(1), []), "1()"), (IRModule(), ""), (call("log"), "log()"),
    ],
)  # fmt: skip
def test_ill_formed_programs_and_other_things(thing: object, shown: str) -> None:
    assert text(thing) == shown


def test_patterns_and_clauses() -> None:
    e = parse_expr("match (1) { (%x: int32, _) => { %x } }")
    assert text(e.clauses[0].lhs) == "(%x: int32, _)"
    assert text(e.clauses[0]) == "(%x: int32, _) => {\n  %x\n}"


def test_types_with_shared_parts_do_not_explode() -> None:
    t = TensorType((3,))
    for _ in range(40):
        t = TupleType([t, t])
    assert text(Function([Var("x", t)], const(1))) == "fn (%x: _) {\n  1\n}"


def test_functions_of_a_module_may_share_nodes() -> None:
    body = call("log", X)
    mod = IRModule({"a": Function([X], Tuple([body, body])), "b": Function([X], body)})
    assert str(mod) == (
        "def @a(%x: Tensor[(3), float32]) {\n  %0 = log(%x);\n  (%0, %0)\n}\n\n"
        "def @b(%x1: Tensor[(3), float32]) {\n  log(%x1)\n}\n"
    )


def test_printing_is_hooked_into_the_nodes() -> None:
    f = Function([X], X)
    assert repr(f) == text(f) and f.astext() == V + text(f)
    assert IRModule.from_text(V + "def @main() { 1 }")["main"].body.data == 1
