"""Type inference: what it finds, what it refuses and how it says so."""

from __future__ import annotations


import pytest

import relaylab.op  # noqa: F401
from relaylab.analysis import infer_expr, infer_module, infer_type_local
from relaylab.ir import (
    OPERATORS,
    AnyDim,
    Call,
    Clause,
    Constructor,
    Function,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    If,
    IntImm,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefType,
    RefWrite,
    SizeVar,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    TypeData,
    TypeVar,
    Var,
    const,
    scalar_type,
    type_text,
)
from relaylab.ir.dims import Dim
from relaylab.op.base import call_operator
from relaylab.support.errors import DiagnosticError
from relaylab.support.source import SourceName, Span

pytestmark = pytest.mark.slow

INT, BOOL = scalar_type("int32"), scalar_type("bool")
F3, F4 = TensorType((3,)), TensorType((4,))
A, B = TypeVar("A"), TypeVar("B")
X, Y, N = Var("x", F3), Var("y", F4), Var("n", INT)
HEADER = GlobalTypeVar("List")
CONS, NIL = Constructor("Cons", [A, HEADER(A)], HEADER), Constructor("Nil", [], HEADER)
LISTS = IRModule({}, {HEADER: TypeData(HEADER, [A], [CONS, NIL])})


def add(a, b):
    return call_operator("add", a, b)


def negative(a):
    return call_operator("negative", a)


def conv(x, w, **attrs):
    return OPERATORS["nn.conv2d"].definition.call(x, w, **attrs)


def ident():
    v = Var("v", A)
    return Function([v], v, None, [A])


def factorial(loop):
    one = const(1)
    return Function(
        [N],
        If(
            call_operator("less", N, one),
            one,
            call_operator("multiply", N, Call(loop, [call_operator("subtract", N, one)])),
        ),
    )


F, G, H, T, R, U, W = (Var(n) for n in "fghtruw")
ANY3 = TensorType((AnyDim(),))

TYPES = {
    "constant": (const(1.0), "float32"),
    "operator": (add(X, X), "Tensor[(3), float32]"),
    "broadcast": (add(X, const(1.0)), "Tensor[(3), float32]"),
    "tuple": (Tuple([X, Tuple([])]), "(Tensor[(3), float32], ())"),
    "projection": (TupleGetItem(Tuple([X, Y]), 1), "Tensor[(4), float32]"),
    "function": (Function([X], add(X, X)), "fn (Tensor[(3), float32]) -> Tensor[(3), float32]"),
    "unannotated parameter": (Function([W], add(W, W))(X), "Tensor[(3), float32]"),
    "from the result back": (Function([W], negative(W), F3), "fn (Tensor[(3), float32]) -> Tensor[(3), float32]"),
    "later use": (
        Function([W], Tuple([add(W, W), negative(W), If(const(True), W, X)])),
        "fn (Tensor[(3), float32]) -> (Tensor[(3), float32], Tensor[(3), float32], Tensor[(3), float32])",
    ),
    "projection of an unknown": (Function([W], TupleGetItem(W, 0))(Tuple([X])), "Tensor[(3), float32]"),
    "unknown function": (Function([F], Call(F, [X]))(Function([W], W)), "Tensor[(3), float32]"),
    "polymorphic let": (Let(F, ident(), Tuple([Call(F, [X]), Call(F, [N])])), "(Tensor[(3), float32], int32)"),
    "polymorphic function": (ident(), "fn [A](A) -> A"),
    "polymorphic as an argument": (Function([F], Call(F, [N]))(ident()), "int32"),
    "polymorphic or not": (If(const(True), ident(), Function([N], N)), "fn (int32) -> int32"),
    "recursive let": (Let(F, factorial(F), Call(F, [const(5)])), "int32"),
    "if joins dimensions": (If(const(True), X, Var("d", ANY3)), "Tensor[(?), float32]"),
    "reference": (Let(R, RefCreate(X), RefRead(R)), "Tensor[(3), float32]"),
    "writing": (RefWrite(RefCreate(X), X), "()"),
    "operator as a value": (Let(F, OPERATORS["negative"], Call(F, [X])), "Tensor[(3), float32]"),
    "annotated let": (Let(Var("d", ANY3), X, X), "Tensor[(3), float32]"),
    "weight from attributes": (
        (lambda w: Tuple([conv(Var("d", TensorType((1, 3, 8, 8))), w, channels=16, kernel_size=(3, 3)), w]))(Var("w")),
        "(Tensor[(1, 16, 6, 6), float32], Tensor[(16, 3, 3, 3), float32])",
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_type(name) -> None:
    expr, expected = TYPES[name]
    assert type_text(infer_expr(expr).checked_type) == expected


def listed(pattern, *rest, data=None, complete=True):
    data = data if data is not None else Var("l", HEADER(INT))
    return Match(data, [Clause(pattern, const(0)), *rest], complete)


ADTS = {
    "constructor": (Call(CONS, [const(1), Call(NIL, [])]), "List[int32]"),
    "constructor as a value": (CONS, "fn [A](A, List[A]) -> List[A]"),
    "match": (
        Match(
            Var("l", HEADER(F3)),
            [Clause(PatternConstructor(CONS, [PatternVar(H), PatternWildcard()]), H), Clause(PatternWildcard(), X)],
        ),
        "Tensor[(3), float32]",
    ),
    "tail": (
        Match(Var("l", HEADER(F3)), [Clause(PatternConstructor(CONS, [PatternWildcard(), PatternVar(T)]), T)], False),
        "List[Tensor[(3), float32]]",
    ),
    "tuple pattern": (
        Match(Tuple([X, N]), [Clause(PatternTuple([PatternVar(G), PatternVar(U)]), Tuple([U, G]))]),
        "(int32, Tensor[(3), float32])",
    ),
    "type arguments": (Call(NIL, [], None, [INT]), "List[int32]"),
    "polymorphic function": (Function([Var("l", HEADER(B))], const(1), None, [B]), "fn [B](List[B]) -> int32"),
}


@pytest.mark.parametrize("name", ADTS)
def test_data_types(name) -> None:
    expr, expected = ADTS[name]
    expr = Tuple([expr]) if isinstance(expr, Constructor) else expr
    found = infer_expr(expr, LISTS).checked_type
    assert type_text(found.fields[0] if isinstance(expr, Tuple) and name != "tuple pattern" else found) == expected


ERRORS = {
    "shapes": (add(X, Y), "operator", ["Tensor[(3), float32]", "Tensor[(4), float32]"]),
    "data types": (add(X, const(1)), "operator", ["float32", "int32"]),
    "condition": (If(X, X, X), "mismatch", ["bool", "Tensor[(3), float32]"]),
    "branches": (If(const(True), X, Y), "mismatch", ["Tensor[(3), float32]", "Tensor[(4), float32]"]),
    "index": (TupleGetItem(Tuple([X]), 1), "tuple-index", ["1", "(Tensor[(3), float32],)"]),
    "not a tuple": (TupleGetItem(X, 0), "not-a-tuple", ["Tensor[(3), float32]"]),
    "not a function": (Call(X, [Y]), "not-a-function", ["Tensor[(3), float32]"]),
    "arguments": (Call(ident(), [X, Y]), "arity", ["1", "2"]),
    "operator arguments": (Call(OPERATORS["add"], [X]), "arity", ["add", "lhs, rhs"]),
    "no tuple of tensors": (Call(OPERATORS["concatenate"], [X, X]), "arity", ["concatenate((%a, %b), …)"]),
    "argument": (Call(Function([X], X), [Y]), "mismatch", ["Tensor[(3), float32]", "Tensor[(4), float32]"]),
    "result": (Function([X], X, F4), "mismatch", ["Tensor[(4), float32]", "Tensor[(3), float32]"]),
    "let": (Let(Var("v", F4), X, Y), "mismatch", ["%v", "Tensor[(4), float32]", "Tensor[(3), float32]"]),
    "written": (RefWrite(RefCreate(X), Y), "mismatch", ["Tensor[(3), float32]", "Tensor[(4), float32]"]),
    "not a reference": (RefRead(X), "mismatch", ["ref(_)", "Tensor[(3), float32]"]),
    "unknown variable": (Function([W], W), "unresolved", ["%w"]),
    "unknown variable, many uses": (Function([W], add(negative(W), negative(negative(W)))), "unresolved", ["%w"]),
    "unknown element": (Call(NIL, []), "unresolved", ["List[_]"]),
    "unknown result": (Let(F, Function([N], Call(F, [N])), Call(F, [N])), "unresolved", []),
    "projection of another type": (
        Function([W], Tuple([add(TupleGetItem(W, 0), Y), TupleGetItem(W, 1)]))(Tuple([X, X])),
        "operator",
        ["Tensor[(3), float32]", "Tensor[(4), float32]"],
    ),
    "field of another type": (
        Function([W], TupleGetItem(W, 0), F4)(Tuple([X])),
        "mismatch",
        ["Tensor[(4), float32]", "Tensor[(3), float32]"],
    ),
    "infinite": (Function([W], Call(W, [W])), "mismatch", ["function"]),
    "missing function": (Call(GlobalVar("nope"), [X]), "unknown-global", ["@nope"]),
    "missing case": (listed(PatternConstructor(NIL, [])), "match-incomplete", ["Cons(_, _)"]),
    "missing cases": (
        listed(PatternConstructor(CONS, [PatternWildcard(), PatternConstructor(NIL, [])])),
        "match-incomplete",
        ["Cons(_, Cons(_, _)), Nil"],
    ),
    "pattern of another type": (
        Match(X, [Clause(PatternConstructor(NIL, []), X)], False),
        "mismatch",
        ["List", "Tensor[(3), float32]"],
    ),
    "pattern fields": (listed(PatternConstructor(CONS, [PatternWildcard()]), complete=False), "arity", ["2", "1"]),
    "element types": (
        Call(CONS, [N, Call(CONS, [X, Call(NIL, [])])]),
        "mismatch",
        ["List[int32]", "List[Tensor[(3), float32]]"],
    ),
    "kind": (Function([Var("l", HEADER(F3, F3))], X), "kind", ["takes 1 types, not 2"]),
    "unknown type": (Function([Var("l", GlobalTypeVar("Lisst")(F3))], X), "kind", ["List"]),
    "used out of scope": (Tuple([Let(G, X, G), G]), "ill-formed", ["%g"]),
    "attributes": (Call(OPERATORS["nn.dense"], [X, X]), None, ["nn.dense"]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_one_cause_one_error(name) -> None:
    expr, code, parts = ERRORS[name]
    with pytest.raises(DiagnosticError) as caught:
        infer_expr(expr, LISTS)
    (fault,) = caught.value.diagnostics
    assert code is None or fault.code == f"type.{code}"
    assert all(part in fault.message + fault.help for part in parts), str(fault)
    assert fault.place and str(fault) in str(caught.value)


def test_all_errors_of_a_module_at_once_without_cascades() -> None:
    bad = add(X, Y)
    mod = IRModule({"f": Function([X, Y], negative(add(bad, bad)))})
    f = mod.get_global_var("f")
    x, y = Var("x", F3), Var("y", F4)
    mod["main"] = Function([x, y], Tuple([negative(Call(f, [x, y])), If(x, x, x)]))
    with pytest.raises(DiagnosticError) as caught:
        infer_module(mod)
    assert [(d.function, d.code) for d in caught.value.diagnostics] == [
        ("f", "type.operator"),
        ("main", "type.mismatch"),
    ]
    assert "2 errors" in str(caught.value)


def test_place_is_a_caret_in_the_source() -> None:
    text = "def @main(%x, %y) {\n  add(%x, %y)\n}"
    bad = Call(OPERATORS["add"], [X, Y], span=Span(SourceName("page"), 2, 2, 3, 13))
    mod = IRModule({"main": Function([X, Y], bad)})
    mod.source_map["page"] = text
    with pytest.raises(DiagnosticError) as caught:
        infer_module(mod)
    assert "2 |   add(%x, %y)" in caught.value.place and "^^^" in caught.value.place
    assert caught.value.diagnostics[0].node is bad


def test_place_is_the_node_in_its_function() -> None:
    with pytest.raises(DiagnosticError) as caught:
        infer_module(IRModule({"main": Function([X, Y], add(X, Y))}))
    assert "in @main" in caught.value.place and "add(%x, %y)" in caught.value.place


# ---- modules


def test_functions_in_any_order() -> None:
    main, f, g = GlobalVar("main"), GlobalVar("f"), GlobalVar("g")
    mod = IRModule()
    mod[main] = Function([X], Call(f, [X]))
    mod[f] = Function([W], Call(g, [negative(W)]))
    v = Var("v", A)
    mod[g] = Function([v], v, A, [A])
    with pytest.raises(DiagnosticError):
        infer_module(mod)
    mod[f] = Function([W], Call(g, [negative(W)]), F3)
    found = infer_module(mod)
    assert type_text(found["main"].checked_type) == "fn (Tensor[(3), float32]) -> Tensor[(3), float32]"
    assert found["f"].body.type_args == (F3,) and found["main"].ret_type == F3
    assert list(found.functions) == [main, f, g]


def test_recursion_without_annotation() -> None:
    f = GlobalVar("f")
    found = infer_module(IRModule({f: factorial(f)}))
    assert found[f].checked_type == FuncType([INT], INT)


def test_mutual_recursion() -> None:
    even, odd = GlobalVar("even"), GlobalVar("odd")
    k = Var("k", INT)

    def step(param, other, base):
        return Function(
            [param],
            If(
                call_operator("less", param, const(1)),
                const(base),
                Call(other, [call_operator("subtract", param, const(1))]),
            ),
        )

    found = infer_module(IRModule({even: step(N, odd, True), odd: step(k, even, False)}))
    assert found[even].checked_type == found[odd].checked_type == FuncType([INT], BOOL)


def test_nullary_data_types_are_applied() -> None:
    header = GlobalTypeVar("Nat")
    mod = IRModule({}, {header: TypeData(header, [], [Constructor("Z", [], header)])})
    n = Var("n", header)
    mod["f"] = Function([n], n, header)
    found = infer_module(mod)["f"]
    assert type_text(found.checked_type) == "fn (Nat[]) -> Nat[]" and found.params[0].type_annotation == header()
    assert type_text(found.ret_type) == "Nat[]"


# ---- one node


def test_local_inference() -> None:
    typed = infer_expr(add(X, X))
    assert infer_type_local(negative(typed)) == F3
    assert infer_type_local(Tuple([typed, const(1)])) == TupleType([F3, INT])
    assert infer_type_local(RefCreate(X)) == RefType(F3)
    with pytest.raises(DiagnosticError):
        infer_type_local(add(typed, Y))


def test_types_with_shared_parts_are_unified_once() -> None:
    """Each level doubles; an unknown dimension makes the two differ, so that every part is joined."""

    def doubled(extent: Dim, levels: int = 60) -> Type:
        made: Type = TensorType((extent,))
        for _ in range(levels):
            made = TupleType([made, RefType(made)])
        return made

    f, x = Var("f", FuncType([doubled(SizeVar("n"))], doubled(SizeVar("n")))), Var("x", doubled(IntImm(3)))
    for wanted in (doubled(IntImm(3)), doubled(AnyDim())):
        infer_expr(Function([f, x], Let(Var("y", wanted), x, Call(f, [x]))))
    with pytest.raises(DiagnosticError, match="expected"):
        infer_expr(Function([x], Let(Var("y", doubled(IntImm(4))), x, x)))
