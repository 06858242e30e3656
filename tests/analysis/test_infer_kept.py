"""Type inference keeps: what is typed, sharing, constants, the trail; and time that grows with the program."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest
from support.programs import random_program
from test_infer import F3, F4, W, X, add, negative

import relaylab.op  # noqa: F401
from relaylab.analysis import infer_expr, infer_module
from relaylab.analysis.infer import module as inference
from relaylab.ir import (
    OPERATORS,
    Call,
    Constant,
    Constructor,
    Function,
    GlobalVar,
    IRModule,
    Let,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    children,
    const,
    post_order,
    rewrite,
    structural_equal,
)
from relaylab.ir.trail import Trail, recording
from relaylab.op.base import call_operator
from relaylab.support.errors import DiagnosticError

pytestmark = pytest.mark.slow


# ---- what is kept


untyped = cache(partial(random_program, typed=False))
SHARED = (Op, GlobalVar, Constructor)


@pytest.fixture(params=range(20))
def mod(request):
    return untyped(request.param)


def test_every_node_has_a_type(mod) -> None:
    for func in infer_module(mod).functions.values():
        for node in post_order(func):
            assert isinstance(node, SHARED) or node.inferred is not None
            if isinstance(node, Var):
                assert node.type_annotation == node.checked_type
            if isinstance(node, Function):
                assert node.ret_type == node.checked_type.ret_type


def test_a_typed_module_is_the_same_object(mod) -> None:
    once = infer_module(mod)
    assert infer_module(once) is once
    again = once.shallow_copy()
    for gv in list(again.functions):
        again.functions[gv] = infer_expr(again.functions[gv], once)
        assert again.functions[gv] is once.functions[gv]


def test_the_input_is_left_alone(mod) -> None:
    before = {n: n.inferred for f in mod.functions.values() for n in post_order(f)}
    infer_module(mod)
    assert all(n.inferred is t for n, t in before.items())


def test_sharing_and_meaning_are_kept(mod) -> None:
    typed = infer_module(mod)
    for gv, func in mod.functions.items():
        assert len(post_order(typed[gv])) == len(post_order(func))
        assert [type(n) for n in post_order(typed[gv])] == [type(n) for n in post_order(func)]


def test_constants_and_annotated_variables_stay(mod) -> None:
    typed = infer_module(mod)
    for gv, func in mod.functions.items():
        kept = set(post_order(typed[gv]))
        for node in post_order(func):
            stays = isinstance(node, (Constant, *SHARED)) or (isinstance(node, Var) and node.inferred is not None)
            assert node in kept or not stays


def test_the_trail_accounts_for_every_node(mod) -> None:
    trail = Trail("InferType")
    with recording(trail):
        typed = infer_module(mod)
    for gv, func in mod.functions.items():
        old = set(post_order(func))
        for node in post_order(typed[gv]):
            assert node in old or (
                len(trail.parents[node]) == 1 and trail.became[next(iter(trail.parents[node]))] is node
            )
            assert node in old or node.span == next(iter(trail.parents[node])).span


def test_one_change_keeps_the_rest() -> None:
    mod = infer_module(random_program(3, features={"graph", "let", "if", "tuple"}))
    main = mod["main"]
    target = next(n for n in post_order(main) if isinstance(n, Call) and n.op.name == "tanh")
    changed = mod.shallow_copy()
    changed["main"] = rewrite(main, lambda new, old: call_operator("negative", *new.args) if old is target else new)
    typed = infer_module(changed)
    fresh = set(post_order(typed["main"])) - set(post_order(main))
    above = {target}
    for node in post_order(main):
        if not above.isdisjoint(children(node)):
            above.add(node)
    assert len(fresh - {OPERATORS["negative"]}) == len(above)


def test_a_changed_callee_changes_its_callers() -> None:
    f = GlobalVar("f")
    x = Var("x", F3)
    total = call_operator("sum", Call(f, [X]))
    mod = infer_module(IRModule({"main": Function([X], Tuple([total, negative(X)])), f: Function([x], negative(x))}))
    changed = mod.shallow_copy()
    changed[f] = Function([x], call_operator("expand_dims", x, axis=0))
    body, before = infer_module(changed)["main"].body, mod["main"].body
    assert body.fields[0].args[0].checked_type == TensorType((1, 3))
    assert body.fields[1] is before.fields[1]
    same = mod.shallow_copy()
    same[f] = Function([x], add(x, x))
    assert infer_module(same)["main"] is mod["main"]


def test_a_changed_callee_with_another_parameter_is_an_error_of_the_caller() -> None:
    f, x, y = GlobalVar("f"), Var("x", F3), Var("y", F4)
    mod = infer_module(IRModule({"main": Function([X], Call(f, [X])), f: Function([x], negative(x))}))
    mod = mod.shallow_copy()
    mod[f] = Function([y], negative(y))
    with pytest.raises(DiagnosticError) as caught:
        infer_module(mod)
    assert caught.value.diagnostics[0].function == "main"


def test_typed_and_untyped_programs_are_equal_up_to_annotations() -> None:
    mod = IRModule({"main": Function([X], add(X, X), F3)})
    assert structural_equal(infer_module(mod), mod)


# ---- size


def test_long_chain_solved_from_the_far_end() -> None:
    e = w = Var("w")
    for _ in range(100_000):
        e = negative(e)
    typed = infer_expr(Call(Function([w], e), [X]))
    assert typed.checked_type == F3 and typed.op.params[0].checked_type == F3


def test_long_let_chain() -> None:
    names = [W, *(Var(f"v{k}") for k in range(50_000))]
    body = names[-1]
    for k in reversed(range(1, len(names))):
        body = Let(names[k], add(names[k - 1], names[k - 1]), body)
    assert infer_expr(Call(Function([W], body), [X])).checked_type == F3


def test_diamond() -> None:
    e = X
    for _ in range(30):
        e = add(e, e)
    assert infer_expr(e).checked_type == F3
    t = X
    for _ in range(30):
        t = Tuple([t, t])
    for _ in range(30):
        t = TupleGetItem(t, 0)
    assert infer_expr(t).checked_type == F3


def test_work_per_node_does_not_grow() -> None:
    """Counts constraint attempts, not time: a chain whose types come last is solved in linear work."""
    attempts = 0
    definition = OPERATORS["add"].definition
    original = definition.relation

    def counted(self, *args):
        nonlocal attempts
        attempts += 1
        return original(self, *args)

    definition.relation = counted
    try:
        for length in (200, 400):
            attempts, e, w = 0, (v := Var("w")), v
            for _ in range(length):
                e = add(e, w)
            infer_expr(Call(Function([w], e), [X]))
            assert attempts <= 3 * length
    finally:
        definition.relation = original


def test_constants_keep_their_arrays() -> None:
    c = const(np.ones((3,), "float32"))
    typed = infer_expr(add(c, X))
    assert typed.args[0] is c


def test_functions_that_an_expression_does_not_name_are_not_looked_at() -> None:
    wrong, right, user = GlobalVar("wrong"), GlobalVar("right"), GlobalVar("user")
    x, y, z = (Var("x", F4) for _ in range(3))
    mod = IRModule()
    mod[right] = Function([x], negative(x))
    mod[user] = Function([y], Call(right, [y]))
    mod[wrong] = Function([z], Call(right, [Tuple([z, z])]))
    v = Var("v", F4)
    assert infer_expr(Call(user, [v]), mod).checked_type == F4
    with pytest.raises(DiagnosticError):
        infer_expr(Call(wrong, [v]), mod)


def test_a_function_of_another_type_changes_those_that_name_it() -> None:
    """What is known of a module is held against its functions of now, of which some may have been exchanged."""
    first, second = GlobalVar("first"), GlobalVar("second")
    x, y, v = (Var("x", F4) for _ in range(3))
    mod = infer_module(IRModule({first: Function([x], negative(x)), second: Function([y], Call(first, [y]))}))
    assert infer_expr(Call(second, [v]), mod).checked_type == F4
    for made, fits in ((negative(negative(x)), True), (Tuple([x, x]), False), (negative(x), True)):
        mod[first] = Function([x], made)
        if fits:
            assert infer_expr(Call(second, [v]), mod).checked_type == F4
            continue
        for infer in (lambda: infer_expr(Call(second, [v]), mod), lambda: infer_module(mod)):
            with pytest.raises(DiagnosticError, match="expected Tensor"):
                infer()


@pytest.mark.parametrize("seed", range(8))
def test_graphs_have_the_types_that_the_rules_for_all_programs_find(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mod = random_program(seed, features={"graph", "tuple"}, typed=False)
    quick = infer_module(mod)
    monkeypatch.setattr(inference, "typed_graph", lambda func, typer: None)
    slow = infer_module(mod)
    for gv, func in slow.functions.items():
        for a, b in zip(post_order(quick[gv]), post_order(func), strict=True):
            assert type(a) is type(b) and a.inferred == b.inferred and a.span is b.span
            assert not isinstance(a, Call) or a.type_args == b.type_args
        assert structural_equal(quick[gv], func)


def test_the_order_of_a_typed_graph_is_that_of_a_walk() -> None:
    shared = call_operator("negative", X)
    func = Function([X], Tuple([add(shared, shared), negative(X)]))
    typed = infer_module(IRModule.from_expr(func))["main"]
    again = Function(typed.params, typed.body)
    assert typed is not func and post_order(typed)[:-1] == post_order(again)[:-1]
