"""The traversal kernel, scopes and well-formedness, on random programs and on very long ones."""

from __future__ import annotations

from functools import cache
from weakref import ref

import numpy as np
import pytest
from support.programs import random_program

from relaylab.analysis import infer_expr
from relaylab.support.errors import DiagnosticError, RelayError
from relaylab.ir import (
    OPERATORS,
    Call,
    Clause,
    Constant,
    Expr,
    ExprMutator,
    ExprVisitor,
    Function,
    If,
    Let,
    Match,
    PatternVar,
    Tuple,
    Var,
    all_vars,
    bound_vars,
    children,
    const,
    fold,
    free_vars,
    let_chain,
    post_order,
    rebuild,
    rewrite,
    substitute,
    users,
    var,
)
from relaylab.ir.scope import lca, lifted, scopes
from relaylab.ir.trail import Trail, recording
from relaylab.ir.visit import operators_in
from relaylab.ir.scope import scope_faults, well_formed
from relaylab.op.base import call_operator

pytestmark = pytest.mark.slow

made = cache(random_program)


@pytest.fixture(params=range(20))
def main(request):
    return made(request.param)["main"]


def add(a, b):
    return call_operator("add", a, b)


def chain(length):
    x = var("x", shape=(2,))
    e = x
    for _ in range(length):
        e = call_operator("negative", e)
    return Function([x], e)


def lets(length):
    x = var("x", shape=(2,))
    names = [x, *(Var(f"v{k}") for k in range(length))]
    body = names[-1]
    for k in reversed(range(1, len(names))):
        body = Let(names[k], add(names[k - 1], x), body)
    return Function([x], body)


LONG = {"chain": chain, "lets": lets}


def test_post_order_is_children_first_and_once(main) -> None:
    order = post_order(main)
    position = {n: k for k, n in enumerate(order)}
    assert len(position) == len(order) and order[-1] is main
    assert all(position[c] < position[n] for n in order for c in children(n))


def test_rebuild_of_the_same_parts_is_the_same_node(main) -> None:
    assert all(rebuild(n, children(n)) is n for n in post_order(main))


def test_rebuild_takes_as_many_parts_as_there_are(main) -> None:
    for node in post_order(main):
        for parts in ((*children(node), main), children(node)[1:]) if children(node) else ((main,),):
            with pytest.raises(RelayError, match=f"{type(node).__name__} has {len(children(node))} direct"):
                rebuild(node, parts)


def test_rewrite_without_change_is_the_same_object(main) -> None:
    assert rewrite(main, lambda new, old: new) is main


def test_rewrite_preserves_sharing(main) -> None:
    new = rewrite(main, lambda new, old: Constant(new.data.numpy() + 0) if isinstance(new, Constant) else new)
    assert len(post_order(new)) == len(post_order(main))
    assert [len(u) for u in users(new).values()] == [len(u) for u in users(main).values()]


def test_rewrite_leaves_a_complete_trail(main) -> None:
    trail = Trail("t")
    with recording(trail):
        new = rewrite(
            main,
            lambda new, old: (
                const(2.0) if isinstance(new, Constant) and new.type.dtype == "float32" and not new.type.shape else new
            ),
        )
    before = set(post_order(main))
    for node in post_order(new):
        assert node in before or trail.parents[node]


def test_visitor_sees_each_node_once(main) -> None:
    seen = []

    class Visitor(ExprVisitor):
        def visit_call(self, call):
            super().visit_call(call)
            seen.append(call)

    Visitor().visit(main)
    assert seen == [n for n in post_order(main) if isinstance(n, Call)]


def test_mutator_without_change_is_the_same_object(main) -> None:
    assert ExprMutator().visit(main) is main


def test_mutator_changes_what_its_method_changes(main) -> None:
    class Swap(ExprMutator):
        def visit_call(self, call):
            new = super().visit_call(call)
            return call_operator("subtract", *new.args) if getattr(new.op, "name", "") == "add" else new

    def names(expr):
        return [getattr(n.op, "name", "") for n in post_order(expr) if isinstance(n, Call)]

    assert names(Swap().visit(main)) == ["subtract" if n == "add" else n for n in names(main)]


def test_variables(main) -> None:
    assert free_vars(main) == []
    assert set(free_vars(main.body)) <= set(main.params)
    assert set(bound_vars(main)) == set(all_vars(main))


def test_random_programs_are_well_formed(main) -> None:
    assert well_formed(main) and scope_faults(main) == []


def test_scope_of_a_node_is_the_common_ancestor_of_its_uses(main) -> None:
    home = scopes(main)
    assert set(home) == set(post_order(main))
    for node, using in users(main).items():
        for user in using:
            assert lca(home[node], home[user]) is home[node] or home[node].parent is home[user]


@pytest.mark.parametrize("name", LONG)
def test_long_programs_pass(name) -> None:
    func = LONG[name](100_000)
    assert fold(func, lambda n, below: 1 + max(below, default=0)) > 100_000
    assert rewrite(func, lambda new, old: new) is func
    assert ExprMutator().visit(func) is func
    assert well_formed(func) and free_vars(func) == []
    assert len(scopes(func)) == len(post_order(func))


def test_a_method_of_ones_own_may_recurse_deeply() -> None:
    class Count(ExprVisitor):
        calls = 0

        def visit_call(self, call):
            self.calls += 1
            super().visit_call(call)

    counter = Count()
    counter.visit(chain(20_000))
    assert counter.calls == 20_000


def test_diamond_is_linear() -> None:
    x = var("x", shape=(2,))
    e = x
    for _ in range(30):
        e = add(e, e)
    assert len(post_order(e)) == 32
    assert fold(e, lambda n, below: sum(below) or 1 if isinstance(n, (Call, Var)) else 0) == 2**30


def test_let_chain_and_substitute() -> None:
    func = lets(5)
    found, body = let_chain(func.body)
    assert len(found) == 5 and body is found[-1].var
    y = var("y", shape=(2,))
    assert free_vars(substitute(func.body, {func.params[0]: y})) == [y]


X, C = var("x", shape=(2,)), var("c", "bool")
V, W = Var("v"), Var("w")
Z = add(V, V)
ILL_FORMED = {
    "bound twice by lets": Let(V, X, Let(V, X, V)),
    "bound twice by a function": Function([X, X], X),
    "let and parameter": Function([V], Let(V, X, V)),
    "used after its let": Tuple([Let(V, X, V), V]),
    "used before its let": Tuple([V, Let(V, X, V)]),
    "shared out of its let": Tuple([Let(V, X, Z), Z]),
    "parameter outside": Tuple([Function([V], V), V]),
    "pattern variable in another clause": Match(X, [Clause(PatternVar(V), V), Clause(PatternVar(W), V)]),
    "branch": If(C, Let(V, X, V), V),
}
WELL_FORMED = {
    "free": Z,
    "recursive let": Let(V, Function([W], V(W)), V),
    "shared function": (lambda f: Tuple([f, f]))(Function([V], V)),
    "shared in one scope": Let(V, X, Tuple([Z, Z])),
    "clauses": Match(X, [Clause(PatternVar(V), V), Clause(PatternVar(W), W)]),
    "shared by branches": Let(V, X, If(C, Z, Z)),
}


@pytest.mark.parametrize("name", ILL_FORMED)
def test_ill_formed(name) -> None:
    assert not well_formed(ILL_FORMED[name])
    message, node = scope_faults(ILL_FORMED[name])[0]
    assert "%v" in message or "%x" in message
    assert node in post_order(ILL_FORMED[name])


@pytest.mark.parametrize("name", WELL_FORMED)
def test_well_formed(name) -> None:
    assert well_formed(WELL_FORMED[name])


def test_lifted_is_what_crosses_a_scope() -> None:
    z = add(X, X)
    assert lifted(Function([X, C], If(C, z, add(z, z)))) == [z]
    assert lifted(Function([X, C], If(C, z, add(X, X)))) == []
    assert lifted(Function([X], add(z, z))) == []


def test_random_programs_are_the_same_for_the_same_seed() -> None:
    from relaylab.ir import structural_equal

    assert structural_equal(random_program(5), random_program(5), map_free_vars=True)
    assert not structural_equal(random_program(5), random_program(6), map_free_vars=True)


@pytest.mark.parametrize("what", [None, "x", 3])
def test_what_is_no_expression_is_not_visited(what: object) -> None:
    with pytest.raises(RelayError) as caught:
        ExprVisitor().visit(what)
    assert caught.value.code == "ir.cannot-visit"


def test_the_order_of_a_function_lives_as_long_as_the_function() -> None:
    x = var("x", shape=(2,))
    made = Tuple([x, Call(x, [x])])
    func, parts = Function([x], made), [x, made.fields[1], made]
    assert post_order(func) == post_order(func) == [*parts, func]
    func, freed = None, ref(func)
    assert freed() is None and post_order(made) == parts


def test_where_no_operator_is_that_is_looked_for_nothing_is_visited() -> None:
    x = var("x", shape=(2,))
    func = Function([x], call_operator("tanh", call_operator("exp", x)))
    seen: list[Expr] = []

    def post(new: Expr, old: Expr) -> Expr:
        seen.append(old)
        return new

    assert operators_in(func) == operators_in(func.body) == {OPERATORS["tanh"], OPERATORS["exp"]}
    assert rewrite(func, post, only=("add", "nn.relu")) is func and not seen
    assert rewrite(func, post, only=("exp",)) is func and seen == post_order(func)


def test_what_is_made_anew_of_parts_of_the_same_types_keeps_its_type() -> None:
    x = var("x", shape=(2,))
    func = infer_expr(Function([x], call_operator("add", call_operator("exp", call_operator("tanh", x)), x)))
    exp = func.body.args[0]
    y = var("y", shape=(2,))
    same = rewrite(func.body, lambda new, old: new, memo={exp.args[0]: y})
    assert same is not func.body and same.inferred is func.body.inferred and same.args[0].inferred is exp.inferred
    assert infer_expr(same) is same
    known = rewrite(func.body, lambda new, old: new, memo={exp.args[0]: const([1.0, 2.0])})
    assert known.inferred is func.body.inferred and known.args[0].inferred is exp.inferred
    for other in (var("y", shape=(2, 2)), call_operator("tanh", x)):  # another type, none
        new = rewrite(func.body, lambda new, old: new, memo={exp.args[0]: other})
        assert new.inferred is None and infer_expr(new).checked_type.shape[-1] == 2


def test_a_constant_that_an_operator_may_refuse_is_shown_to_inference() -> None:
    data, v, stride = var("x", shape=(4,)), var("v", shape=(2,)), var("s", shape=(1,), dtype="int64")
    limits = [const(np.array([n], "int64")) for n in (0, 4)]
    func = infer_expr(Function([data, v, stride], call_operator("strided_set", data, v, *limits, stride)))
    new = rewrite(func.body, lambda new, old: new, memo={stride: const(np.array([0], "int64"))})
    assert new.inferred is None
    with pytest.raises(DiagnosticError, match="a stride cannot be 0"):
        infer_expr(new)


def test_what_a_node_becomes_is_an_expression() -> None:
    func = Function([x := var("x", shape=(2,))], call_operator("tanh", x))
    for post in (lambda new, old: None, lambda new, old: 3 if new is x else new):
        with pytest.raises(RelayError, match="what a node becomes must be an Expr, not"):
            rewrite(func, post)
    with pytest.raises(RelayError, match="what stands for a variable must be an Expr, not"):
        substitute(func.body, {x: 3})


def test_a_rewrite_that_changes_late_has_the_parts_that_changed() -> None:
    x = var("x", shape=(2,))
    a, b = call_operator("tanh", x), call_operator("exp", x)
    both = call_operator("add", a, b)
    new = rewrite(both, lambda new, old: call_operator("sin", x) if old is b else new)
    assert new.args[0] is a and new.args[1].op.name == "sin" and rewrite(both, lambda new, old: new) is both
