"""PartialEvaluate: what it runs, what it leaves, that effects stay what they are, and that it ends.

The programs are those with which TVM tests its pass, and random ones, which plain Python (`support.walker`) runs too.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from fuzz.choices import Choices
from fuzz.families._functional import functional_program
from support.compiled import difference, flat
from support.sequences import apply
from support.walker import Walker

from relaylab import relay
from relaylab.interp import Interpreter, random_inputs
from relaylab.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Let,
    RefRead,
    TypeVar,
    Var,
    children,
    structural_equal,
    walk,
)
from relaylab.relay import transform
from relaylab.relay.testing import make_nat_expr

HEAD = '#[version = "0.0.5"]\n'
CLEAN = [
    transform.InferType(),
    transform.PartialEvaluate(),
    transform.InferType(),
    transform.DeadCodeElimination(inline_once=True, ignore_impurity=True),
    transform.InferType(),
]


def read(text: str) -> IRModule:
    return transform.InferType()(relay.fromtext(HEAD + text))


def cleaned(mod: IRModule) -> IRModule:
    """Evaluated, without what nobody uses: writes to cells that nobody reads go as well."""
    return relay.transform.Sequential(CLEAN)(mod)


def with_main(expr: Expr, mod: IRModule) -> Expr:
    """What becomes of an expression as the body of main."""
    mod["main"] = expr if isinstance(expr, Function) else Function([], expr)
    return cleaned(mod)["main"].body


def library() -> IRModule:
    mod = IRModule()
    relay.prelude.Prelude(mod)
    mod.import_from_std("nat.rly")
    return mod


def typed(expr: Expr, mod: IRModule) -> Expr:
    mod["other"] = Function([], expr)
    return transform.InferType()(mod)["other"].body


def calls(mod: IRModule) -> list[Call]:
    """The calls in main of what is no operator and no constructor."""
    return [n for n in walk((mod["main"],)) if isinstance(n, Call) and isinstance(n.op, (GlobalVar, Var, Function))]


def numbers(n: int) -> Expr:
    return make_nat_expr(relay.prelude.Prelude(library()), n)


class Effects(Walker):
    """Also keeps what was put into cells, in order."""

    def __init__(self, mod: IRModule):
        super().__init__(mod)
        self.log: list[tuple[str, list[np.ndarray]]] = []

    def found(self, e: Expr, env: dict[Any, Any]) -> Any:
        value = super().found(e, env)
        if type(e).__name__ in ("RefCreate", "RefWrite"):
            held = value if type(e).__name__ == "RefCreate" else self.eval(e.ref, env)
            self.log.append((type(e).__name__, [] if callable(held[0]) else flat(held[0])))
        return value


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_random_programs_keep_results_and_effects(part: int) -> None:
    before = after = 0
    for seed in range(25 * part, 25 * part + 25):
        # a cell that closures share is made where A-normal form puts it
        mod = apply(functional_program(Choices(random.Random(seed))), ["ToANormalForm"])
        there = apply(mod, ["PartialEvaluate"])
        inputs = random_inputs(mod["main"], seed)
        walkers = [Effects(m) for m in (mod, there)]
        with np.errstate(all="ignore"):
            want, got = [flat(w.run(*[np.asarray(x) for x in inputs])) for w in walkers]
            same = [flat(Interpreter(m).evaluate()(*inputs)) for m in (there, apply(there, ["DeadCodeElimination"]))]
        assert not any(difference(found, want, 2e-5) for found in (got, *same)), seed
        logs = [w.log for w in walkers]
        assert [kind for kind, _ in logs[0]] == [kind for kind, _ in logs[1]], seed
        for (_, a), (_, b) in zip(*logs):
            assert not difference(a, b, 2e-5), seed
        before, after = before + len(calls(mod)), after + len(calls(apply(there, ["DeadCodeElimination"])))
    assert after < before / 10


def test_functions_of_lists_run_on_known_lists() -> None:
    mod = library()
    a = TypeVar("a")
    x, f = relay.var("x", a), GlobalVar("f")
    _, cons, nil = mod.get_type("List")
    body = with_main(Function([x], mod.get_global_var("hd")(cons(x, nil())), a, [a]), mod)
    assert isinstance(body, Var) and body.name_hint == "x"
    mod = library()
    mod[f] = Function([x], x, a, [a])
    _, cons, nil = mod.get_type("List")
    items = cons(relay.const(1), cons(relay.const(2), nil()))
    assert structural_equal(with_main(mod.get_global_var("map")(f, items), mod), typed(items, mod))


def test_functions_of_numbers_run_on_known_numbers() -> None:
    mod = library()
    assert structural_equal(with_main(mod.get_global_var("nat_double")(numbers(3)), mod), typed(numbers(6), mod))
    mod = library()
    mod.update(
        read("""type nat { Z, S(nat) }
def @swap(%x: nat, %y: nat) -> nat { match (%x) { Z => { %y }, S(%n) => { @swap(%y, %n) } } }
def @apart(%x: nat, %y: nat) -> nat {
  match (%x) { Z => { %y }, S(%m) => { match (%y) { Z => { %x }, S(%n) => { @apart(%m, %n) } } } }
}
def @main() -> nat { Z }""")
    )
    for name, given, want in (("swap", (1, 1), 0), ("swap", (3, 5), 2), ("apart", (7, 3), 4), ("apart", (3, 4), 1)):
        body = with_main(mod.get_global_var(name)(*map(numbers, given)), mod)
        assert str(body).count("S(") == want and "Z" in str(body), (name, given, str(body))


@pytest.mark.parametrize(
    "text, left",
    [
        # nothing known: not even once
        ("let %f = fn (%y: float32) -> float32 { tanh(%y) }; @each(%f, %l)", ["each"]),
        # as far as the list is known
        ("let %f = fn (%y: float32) -> float32 { tanh(%y) }; @each(%f, Cons(1f, Cons(%x, %l)))", ["each"]),
        # a number that nothing depends on says nothing; one that is counted down does, up to 256
        ("@scaled(%l, 3)", ["scaled"]),
        ("let %s = @times(5, %x); Cons(%s, %l)", []),
        ("let %s = @times(256, %x); Cons(%s, %l)", []),
        ("let %s = @times(257, %x); Cons(%s, %l)", ["times"]),
        ("let %s = @forever(5, %x); Cons(%s, %l)", ["forever"]),
        ("let %s = @upward(1, %x); Cons(%s, %l)", ["upward"]),
    ],
)
def test_what_is_not_known_stays_a_call(text: str, left: list[str]) -> None:
    mod = read(
        """type List[A] { Cons(A, List[A]), Nil }
def @each[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @each(%f, %t)) }, Nil => { Nil } }
}
def @scaled(%l: List[float32], %n: int32) -> List[float32] {
  match (%l) { Cons(%h, %t) => { Cons(%h * cast(%n, dtype="float32"), @scaled(%t, %n)) }, Nil => { Nil } }
}
def @times(%n: int32, %x: float32) -> float32 { if (%n < 1) { %x } else { @times(%n - 1, tanh(%x)) } }
def @forever(%n: int32, %x: float32) -> float32 { if (%n < 1) { %x } else { @forever(%n, %x) } }
def @upward(%n: int32, %x: float32) -> float32 { if (9 < %n) { %x } else { @upward(%n + 1, tanh(%x)) } }
def @main(%x: float32, %l: List[float32]) -> List[float32] { TEXT }""".replace("TEXT", text)
    )
    # what counts up is unrolled once: 2 is not smaller than 1
    assert [c.op.name_hint for c in calls(cleaned(mod))] == left


def test_a_loop_of_a_closure_is_unrolled_if_its_count_is_known() -> None:
    text = """def @main(%x: float32, %n: int32) -> float32 {
  let %loop = fn (%i: int32, %s: float32) -> float32 { if (%i < 1) { %s } else { %loop(%i - 1, %s + %x) } };
  %loop(COUNT, 0f)
}"""
    assert not calls(cleaned(read(text.replace("COUNT", "4"))))
    assert len(calls(cleaned(read(text.replace("COUNT", "%n"))))) == 2


CELLS = {
    # what both branches agree on is known after them
    "agreed": "let %r = ref(1f); let %u = if (%c) { ref_write(%r, %x) } else { ref_write(%r, %x) }; ref_read(%r)",
    "branch": "let %r = ref(1f); let %u = if (%c) { ref_write(%r, %x) } else { () }; ref_read(%r)",
    "clause": """let %r = ref(1f);
      let %p = if (%c) { (%c, %x) } else { (%c, %x) };
      let %u = match (%p) { (%d, %y) => { let %z = %y + %y; ref_write(%r, %z) } }; ref_read(%r)""",
    "closure": """let %r = ref(%x); let %f = fn () -> () { ref_write(%r, ref_read(%r) + 1f) };
      let %u = %f(); let %v = %f(); ref_read(%r)""",
    "unknown call": """let %r = ref(1f); let %f = fn () -> () { ref_write(%r, %x) };
      let %g = if (%c) { %f } else { %f }; let %u = %g(); ref_read(%r)""",
    "alias": """let %r = ref(1f); let %s = ref(2f); let %t = if (%c) { %r } else { %s }; let %u = ref_write(%t, %x);
      ref_read(%r) + ref_read(%s)""",
    "cell in a cell": """let %r = ref(%x); let %s = ref(%r); let %t = ref_read(%s); let %u = ref_write(%t, 5f);
      ref_read(%r)""",
    "knot": """let %k = ref(fn (%n: int32) -> float32 { 0f });
      let %f = fn (%n: int32) -> float32 { if (%n < 1) { %x } else { let %h = ref_read(%k); %h(%n - 1) * 2f } };
      let %u = ref_write(%k, %f); let %h = ref_read(%k); %h(3)""",
}


@pytest.mark.parametrize(
    "name, reads", [(n, {"branch": 1, "clause": 1, "unknown call": 1, "alias": 2}.get(n, 0)) for n in CELLS]
)
def test_reads_of_known_cells_go(name: str, reads: int) -> None:
    mod = read(f"def @main(%c: bool, %x: float32) -> float32 {{ {CELLS[name]} }}")
    after = transform.InferType()(transform.PartialEvaluate()(mod))
    small = transform.DeadCodeElimination(inline_once=True)(after)
    # functions that nobody knows to be called read what they find
    outside = walk((small["main"].body,), lambda n: () if isinstance(n, Function) else children(n))
    assert sum(isinstance(n, RefRead) for n in outside) == reads
    for c in (True, False):
        want = Walker(mod).run(np.array(c), np.float32(3))
        for m in (after, small, transform.InferType()(small)):
            assert Interpreter(m).evaluate()(np.array(c), np.float32(3)) == want


def test_writes_vanish_only_where_all_reads_were_known() -> None:
    mod = read("""def @main(%x: float32) -> float32 {
      let %r = ref(%x); let %u = ref_write(%r, ref_read(%r) * 2f);
      let %v = ref_write(%r, ref_read(%r) + 1f); ref_read(%r)
    }""")
    small = cleaned(mod)
    assert "ref" not in small.astext()
    assert Interpreter(small).evaluate()(np.float32(3)) == 7


SELF = {
    "self": "%w(Mk(%w))",
    "copies": "let %v = fn (%d: D) -> int32 { match (%d) { Mk(%f) => { GROW } } }; %v(Mk(%v))".replace(
        "GROW", "let %g = fn (%e: D) -> int32 { match (%e) { Mk(%h) => { %h(%e) } } }; %f(Mk(%g))"
    ),
}


@pytest.mark.parametrize("name", SELF)
def test_programs_that_do_not_end_are_evaluated_to_an_end(name: str) -> None:
    mod = read(f"""type D {{ Mk(fn (D) -> int32) }}
def @main() -> int32 {{
  let %w = fn (%d: D) -> int32 {{ match (%d) {{ Mk(%f) => {{ %f(%d) }} }} }}; {SELF[name]}
}}""")
    assert calls(transform.PartialEvaluate()(mod))


def test_a_recursion_that_branches_gets_no_more_than_its_share() -> None:
    text = """def @fib(%n: int32) -> int32 { if (%n < 2) { %n } else { @fib(%n - 1) + @fib(%n - 2) } }
def @main() -> int32 { @fib(N) }"""
    assert cleaned(read(text.replace("N)", "12)")))["main"].body.data.numpy() == 144
    large = transform.PartialEvaluate()(read(text.replace("N)", "40)")))
    lets = sum(isinstance(n, Let) for n in walk((large["main"],)))
    assert calls(large) and lets < 5000 * 8


def test_functions_given_to_themselves_are_entered_again() -> None:
    mod = read("""def @twice(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%f(%x)) }
def @main(%x: float32) -> float32 {
  @twice(fn (%y: float32) -> float32 { @twice(fn (%z: float32) -> float32 { %z + %x }, %y) }, %x)
}""")
    small = cleaned(mod)
    assert not calls(small)
    assert Interpreter(small).evaluate()(np.float32(2)) == 10
