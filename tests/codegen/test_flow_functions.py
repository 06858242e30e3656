"""Recursion, data types, closures and cells as native instructions, beside numpy, plain Python and the interpreter."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from fuzz.choices import Choices
from fuzz.families._functional import functional_program
from support.compiled import difference, flat
from support.walker import Walker

from relaylab import relay
from relaylab.codegen.flow import machine as flow_machine
from relaylab.codegen.flow import stretches
from relaylab.codegen.vm import VirtualMachine
from relaylab.interp import ConstructorValue, create_executor, random_inputs
from relaylab.runtime.ndarray import array
from relaylab.support import progress
from relaylab.support.errors import RelayError
from relaylab.support.progress import heard
from relaylab.text.reading.parser import parse

HEAD = '#[version = "0.0.5"]\n'
UPTO = """
def @upto(%i: int32, %n: int32) -> List[float32] {
  if (less(%i, %n)) { Cons(cast(%i, dtype="float32"), @upto(add(%i, 1), %n)) } else { Nil }
}
"""


def machine(text):
    mod = relay.IRModule()
    mod.import_from_std("prelude.rly")
    return VirtualMachine(relay.vm.compile(parse(HEAD + text, "test", mod), "llvm"))


def native(vm, name="main"):
    """The native form of a function; None if it is evaluated."""
    return vm.exe.functions.at(vm.exe.program.get_global_var(name))


def listed(value):
    out = []
    while value:
        out.append(value[0].numpy() if hasattr(value[0], "numpy") else listed(value[0]))
        value = value[1]
    return out


@pytest.fixture
def little_room(monkeypatch):
    """Frames and objects have hardly any room at first, and runs pause all the time."""
    monkeypatch.setattr(flow_machine, "FIRST_STACK", 16)
    monkeypatch.setattr(flow_machine, "FIRST_HEAP", 320)
    monkeypatch.setattr(stretches, "FIRST_FUEL", 3)


LISTS = {
    "@rev(%xs)": lambda xs: xs[::-1],
    "@map(fn (%x: float32) { multiply(%x, %k) }, %xs)": lambda xs: [2.5 * x for x in xs],
    "@filter(fn (%x: float32) { greater(%x, %k) }, %xs)": lambda xs: [x for x in xs if x > 2.5],
    "@concat(%xs, @tl(Cons(%k, %xs)))": lambda xs: xs + xs,
    "@foldr(fn (%x: float32, %s: List[float32]) { Cons(add(%x, %k), %s) }, Nil, %xs)": lambda xs: [x + 2.5 for x in xs],
    "@map(@compose(fn (%x: float32) { negative(%x) }, @iterate(fn (%x: float32) { add(%x, %k) }, 3)), %xs)": (
        lambda xs: [-(x + 7.5) for x in xs]
    ),
}


@pytest.mark.parametrize("body", LISTS)
def test_functions_on_lists(body, little_room):
    vm = machine(f"{UPTO}def @main(%n: int32, %k: float32) {{ let %xs = @upto(0, %n); {body} }}")
    for n in (0, 1, 7, 200):
        found = listed(vm.invoke("main", np.int32(n), np.float32(2.5)))
        assert np.array_equal(found, LISTS[body]([float(k) for k in range(n)]))
    assert native(vm).collections > 0


CELL = """
def @main(%xs: List[Tensor[(4), float32]], %w: Tensor[(4, 4), float32], %h: Tensor[(4), float32]) {
  let %cell = fn (%h: Tensor[(4), float32], %x: Tensor[(4), float32]) {
    let %row = reshape(add(%h, %x), newshape=[1, 4]);
    reshape(tanh(nn.dense(%row, %w)), newshape=[4])
  };
  let %last = @foldl(%cell, %h, %xs);
  let %all = @map_accuml(fn (%h: Tensor[(4), float32], %x: Tensor[(4), float32]) {
    let %new = %cell(%h, %x); (%new, %new)
  }, %h, %xs);
  (%last, %all.1)
}
"""


def test_a_recurrent_network_over_a_list():
    vm = machine(CELL)
    draw = np.random.default_rng(3)
    w, h = draw.standard_normal((4, 4), "float32"), draw.standard_normal(4, "float32")
    _, cons, nil = vm.exe.program.get_type("List")
    for length in (0, 1, 5, 40):
        rows = draw.standard_normal((length, 4), "float32")
        xs = ConstructorValue(nil.tag, (), nil)
        for row in rows[::-1]:
            xs = ConstructorValue(cons.tag, (row, xs), cons)
        states = [h]
        for row in rows:
            states.append(np.tanh((states[-1] + row) @ w.T))
        last, found = vm.invoke("main", xs, w, h)
        np.testing.assert_allclose(last.numpy(), states[-1], rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(listed(found), states[1:], rtol=2e-5, atol=1e-6)
    assert native(vm) is not None


TREES = """
def @grow(%d: int32, %x: float32) -> Tree[float32] {
  if (less(%d, 1)) { Rose(%x, Nil) } else {
    let %less = subtract(%d, 1);
    Rose(%x, Cons(@grow(%less, add(%x, 1f)), Cons(@grow(%less, multiply(%x, 0.5f)), Nil)))
  }
}
def @total(%t: Tree[float32]) -> float32 {
  match (%t) { Rose(%x, %below) => { add(%x, @totals(%below)) } }
}
def @totals(%ts: List[Tree[float32]]) -> float32 {
  match (%ts) { Cons(%t, %rest) => { add(@total(%t), @totals(%rest)) }, Nil => { 0f } }
}
def @main(%d: int32, %x: float32) { let %t = @grow(%d, %x); (@total(%t), @size(%t)) }
"""


def test_trees_by_functions_that_call_each_other(little_room):
    def total(d, x):
        return x if d < 1 else x + total(d - 1, x + 1) + total(d - 1, x / 2)

    vm = machine(TREES)
    for depth in (0, 1, 8):
        found, size = vm.invoke("main", np.int32(depth), np.float32(1))
        assert size.numpy() == 2 ** (depth + 1) - 1
        np.testing.assert_allclose(found.numpy(), total(depth, 1.0), rtol=1e-5)
    assert native(vm).collections > 0


def test_deep_recursion():
    vm = machine(
        f"{UPTO}def @main(%n: int32) {{ @foldr(fn (%x: float32, %s: float32) {{ add(%x, %s) }}, 0f, @upto(0, %n)) }}"
    )
    assert vm.invoke("main", np.int32(1000)).numpy() == 499500
    assert vm.invoke("main", np.int32(100_000)).numpy() > 4.9e9
    assert native(vm) is not None


def test_recursion_without_end_is_told(monkeypatch):
    monkeypatch.setattr(flow_machine, "MOST_STACK", 1 << 20)
    vm = machine("def @down(%n: int32) -> int32 { add(@down(add(%n, 1)), 1) }\ndef @main(%n: int32) { @down(%n) }")
    monkeypatch.setattr(flow_machine, "KEPT", 1 << 12)
    with pytest.raises(RelayError) as caught:
        vm.invoke("main", np.int32(0))
    assert caught.value.code == "vm.depth"
    form = native(vm)
    assert max(m.nbytes for m in (form.stack, form.heap, form.spare)) <= 1 << 12


def test_frames_may_take_what_is_said(monkeypatch):
    monkeypatch.setattr(flow_machine, "MOST_STACK", 1 << 20)
    vm = machine("""
    def @down(%n: int32) -> int32 { if (less(%n, 1)) { 0 } else { add(@down(subtract(%n, 1)), 1) } }
    def @main(%n: int32) { @down(%n) }""")
    vm.invoke("main", np.int32(1))
    (size,) = [size for _, size, name in native(vm).instructions.frames if name == "down"]
    depth = (1 << 20) // size
    assert vm.invoke("main", np.int32(depth - 10)).numpy() == depth - 10
    with pytest.raises(RelayError):
        vm.invoke("main", np.int32(depth + 10))


def test_deep_frames_are_not_looked_through_for_little_room(little_room):
    vm = machine("""
    def @len(%xs: List[float32]) -> int32 { match (%xs) { Cons(_, %r) => { add(@len(%r), 1) }, Nil => { 0 } } }
    def @main(%xs: List[float32]) { @len(%xs) }""")
    _, cons, nil = vm.exe.program.get_type("List")
    xs = ConstructorValue(nil.tag, (), nil)
    for _ in range(2000):
        xs = ConstructorValue(cons.tag, (np.float32(1), xs), cons)
    assert vm.invoke("main", xs).numpy() == 2000 and native(vm).collections < 10


LOOP = """
def @loop(%i: int32, %o: Option[int32]) -> Option[int32] {
  match (%o) {
    Some(%x) => { if (less(%i, 1)) { %o } else { @loop(subtract(%i, 1), Some(add(%x, 2))) } },
    None => { None }
  }
}
def @main(%n: int32) { @loop(%n, Some(5)) }
"""


def test_a_loop_over_objects_takes_no_frames(monkeypatch):
    monkeypatch.setattr(flow_machine, "MOST_STACK", 1 << 17)
    vm = machine(LOOP)
    found = vm.invoke("main", np.int32(50_000))
    assert found.constructor.name_hint == "Some" and found[0].numpy() == 100_005
    assert native(vm).collections > 0


def test_a_loop_that_needs_room_all_the_time_can_be_interrupted(monkeypatch):
    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(flow_machine, "FIRST_HEAP", 320)
    monkeypatch.setattr(stretches, "FIRST_FUEL", 1000)
    monkeypatch.setattr(progress, "EVERY", 0)
    vm = machine(LOOP)
    with pytest.raises(KeyboardInterrupt), heard(stop):
        vm.invoke("main", np.int32(5000))
    assert vm.invoke("main", np.int32(50))[0].numpy() == 105


STATE = """
def @loop(%i: int32, %x: int32) -> int32 { if (less(%i, 1)) { %x } else { @loop(subtract(%i, 1), add(%x, 2)) } }
def @main(%n: int32) { @loop(%n, 5) }
"""


@pytest.mark.parametrize("text", [LOOP, STATE])
def test_a_call_within_a_run_is_told(text, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0)
    vm = machine(text)
    assert flat(vm.invoke("main", np.int32(3))) == [11]
    with pytest.raises(RelayError) as caught, heard(lambda _: vm.invoke("main", np.int32(3))):
        vm.invoke("main", np.int32(50_000))
    assert caught.value.code == "vm.busy"
    assert flat(vm.invoke("main", np.int32(3))) == [11]


def test_a_value_that_no_clause_matches():
    vm = machine(f"{UPTO}def @main(%n: int32) {{ @hd(@tl(@upto(0, %n))) }}")
    assert vm.invoke("main", np.int32(2)).numpy() == 1
    with pytest.raises(RelayError) as evaluated:
        vm.interpreter.evaluated(vm.exe.program.get_global_var("main"), (np.array(1, "int32"),))
    with pytest.raises(RelayError) as caught:
        vm.invoke("main", np.int32(1))
    assert str(caught.value) == str(evaluated.value) and caught.value.code == "interp.failed"
    assert native(vm) is not None


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed, little_room):
    mod = functional_program(Choices(random.Random(seed)))
    inputs = [np.asarray(x) for x in random_inputs(mod["main"], seed)]
    with relay.transform.PassContext(opt_level=1 + seed % 3, config={"relay.codegen.specializations": 0}):
        vm = VirtualMachine(relay.vm.compile(mod, "llvm"))
    with np.errstate(all="ignore"):
        assert not difference(flat(vm.invoke("main", *inputs)), flat(Walker(mod).run(*inputs)), 2e-5)
    why = vm.exe.functions.made.get(vm.exe.program.get_global_var("main"), "")
    assert not isinstance(why, str) or "without control flow" in why or vm.exe.straight is not None


REFUSED = {
    "fn (%x: float32) { multiply(%x, %k) }": "fn (",
    "let %c = ref(%k); (%c, 1f)": "ref(",
    'if (greater(%k, 1f)) { sum(cast(argwhere(greater(%x, %k)), dtype="float32")) } else { %k }': "no kernel",
    "tanh(%k)": "without control flow",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_evaluated_says_why(body):
    vm = machine(f"def @main(%k: float32, %x: Tensor[(5), float32]) {{ {body} }}")
    args = np.float32(2), np.array([3, 1, 2, 5, 4], "float32")
    with relay.transform.PassContext(config={"relay.codegen.specializations": 0}):
        vm.invoke("main", *args)
    entry = vm.exe.program.get_global_var("main")
    vm.interpreter.called(entry, tuple(map(np.asarray, args)))
    assert REFUSED[body] in vm.exe.functions.made[entry] and "evaluated" in vm.exe.stats


def test_arguments_of_other_types_are_left_to_the_evaluator():
    vm = machine(
        "def @main(%xs: List[float32]) -> float32 { @foldl(fn (%a: float32, %b: float32) { add(%a, %b) }, 0f, %xs) }"
    )
    _, cons, nil = vm.exe.program.get_type("List")
    xs = ConstructorValue(nil.tag, (), nil)
    for x in (1, 2, 3):
        xs = ConstructorValue(cons.tag, (np.float32(x), xs), cons)
    assert vm.invoke("main", xs).numpy() == 6
    wide = ConstructorValue(cons.tag, (np.ones(1000, "float32"), xs), cons)
    form = native(vm)
    assert form.run([wide]) is None and form.run([xs]).numpy() == 6


@pytest.mark.parametrize("compiled", [True, False], ids=["native", "evaluated"])
def test_what_lies_in_several_places_goes_out_and_in_as_one(compiled):
    """A tree of 61 objects, written out one of 2^60."""
    vm = machine("""
    type Both { Leaf(float32), Node(Both, Both), }
    def @grow(%n: int32) -> Both {
      if (equal(%n, 0)) { Leaf(1f) } else { let %t = @grow(subtract(%n, 1)); Node(%t, %t) }
    }
    def @left(%t: Both) -> float32 { match (%t) { Leaf(%x) => %x, Node(%l, %r) => add(@left(%l), 1f) } }
    def @main(%n: int32, %t: Both) { (@grow(%n), @left(%t)) }""")
    _, leaf, _ = vm.exe.program.get_type("Both")
    main = vm.run if compiled else create_executor("debug", mod=vm.exe.program).evaluate()
    tree, _ = main(np.int32(60), ConstructorValue(leaf.tag, (np.float32(1),), leaf))
    left, right = tree.fields
    assert left is right and len(repr(tree)) < 100_000
    _, found = main(np.int32(0), tree)
    assert float(np.asarray(found)) == 61 and (native(vm) is not None or not compiled)


def test_a_kernel_that_gives_a_tuple_of_one_field():
    vm = machine("""
    def @f(%n: int32, %x: Tensor[(4), float32]) -> (Tensor[(4), float32],) {
      if (less(%n, 1)) { split(add(%x, 1f), indices_or_sections=1) } else { @f(subtract(%n, 1), add(%x, 1f)) }
    }
    def @main(%n: int32, %x: Tensor[(4), float32]) { @f(%n, %x) }""")
    (found,) = vm.invoke("main", np.int32(2), np.zeros(4, "float32"))
    assert native(vm) is not None and (found.numpy() == 3).all()


def test_small_arguments_are_copied_where_the_last_ones_were():
    vm = machine("""
    def @pick(%n: int32, %x: Tensor[(5), float32], %y: Tensor[(5), float32]) -> Tensor[(5), float32] {
      if (less(%n, 1)) { %x } else { @pick(subtract(%n, 1), %y, add(%x, %y)) }
    }
    def @main(%n: int32, %x: Tensor[(5), float32], %y: Tensor[(5), float32]) { (@pick(%n, %x, %y), %y) }""")
    kept = []
    for n in (0, 3, 0, 1):
        x, y = (np.random.default_rng([n, k]).standard_normal(5).astype("float32") for k in range(2))
        a, b = x, y
        for _ in range(n):
            a, b = b, a + b
        kept.append((vm.invoke("main", np.int32(n), x, y), (a, y)))
        kept.append((vm.invoke("main", np.array(n, "int32"), array(x), np.repeat(y, 2)[::2]), (a, y)))
    for got, wanted in kept:
        for one, other in zip(got, wanted):
            np.testing.assert_array_equal(one.numpy(), other)
    assert native(vm).plain is not None
    for wrong in (np.ones(4, "float32"), np.ones((5, 1), "float32")):
        with pytest.raises(RelayError):
            vm.invoke("main", np.int32(0), wrong, y)


def test_large_arguments_are_read_where_they_lie():
    vm = machine("""
    def @pick(%n: int32, %x: Tensor[(64, 64), float32], %y: Tensor[(64, 64), float32]) -> Tensor[(64, 64), float32] {
      if (less(%n, 1)) { %x } else { @pick(subtract(%n, 1), %y, add(%x, %y)) }
    }
    def @main(%n: int32, %x: Tensor[(64, 64), float32], %y: Tensor[(64, 64), float32]) { (@pick(%n, %x, %y), %y) }""")
    form = native(vm)
    x, y = array(np.ones((64, 64), "float32")), array(np.full((64, 64), 2, "float32"))
    flipped = np.asarray(np.arange(4096, dtype="float32").reshape(64, 64).T)
    for n, wanted in enumerate([1, 2, 3, 5, 8]):
        first, second = vm.interpreter.called(
            vm.exe.program.get_global_var("main"), (np.int32(n), x.numpy(), y.numpy())
        )
        assert (first.numpy() == wanted).all() and (second.numpy() == 2).all()
    places, held = form.values.given((np.array(0, "int32"), x.view(), y.view()), form.types)
    assert [held.arrays[p] is not None for p in places[1:]] == [True, True] and held.block.nbytes < 4096
    first, second = vm.interpreter.called(vm.exe.program.get_global_var("main"), (np.int32(1), flipped, flipped))
    np.testing.assert_array_equal(first.numpy(), flipped)
    same = x.view()
    _, held = form.values.given((np.array(0, "int32"), same, same), form.types)
    assert len(held.arrays) == 1 and held.block.nbytes < 4096


def test_functions_that_hold_functions():
    vm = machine("""
    def @twice(%f: fn (float32) -> float32) -> fn (float32) -> float32 { fn (%x: float32) -> float32 { %f(%f(%x)) } }
    def @tower(%n: int32, %f: fn (float32) -> float32) -> fn (float32) -> float32 {
      if (less(%n, 1)) { %f } else { @tower(subtract(%n, 1), @twice(%f)) }
    }
    def @main(%n: int32, %x: float32) { let %f = @tower(%n, fn (%y: float32) { add(%y, %x) }); %f(0f) }""")
    for n in (0, 1, 6):
        assert vm.invoke("main", np.int32(n), np.float32(3)).numpy() == 3 * 2**n
    assert native(vm) is not None


def test_a_result_is_its_own_and_runs_take_turns():
    vm = machine(f"{UPTO}def @main(%n: int32) {{ @map(fn (%x: float32) {{ multiply(%x, 2f) }}, @upto(0, %n)) }}")
    first = vm.invoke("main", np.int32(4))
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda n: listed(vm.invoke("main", np.int32(n))), [*range(20)] * 3)]
    assert all(np.array_equal(f, 2.0 * np.arange(len(f))) for f in found) and {*map(len, found)} == {*range(20)}
    assert listed(first) == [0, 2, 4, 6]

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), heard(stop):
        vm.invoke("main", np.int32(3_000_000))
    assert listed(vm.invoke("main", np.int32(3))) == [0, 2, 4]
    again = VirtualMachine(relay.vm.Executable.load_exec(*vm.exe.save()))
    assert listed(again.invoke("main", np.int32(3))) == [0, 2, 4]


def test_functions_besides_main_and_their_listing():
    vm = machine(TREES)
    with pytest.raises(RelayError):
        vm.invoke("grow", np.int32(1))
    found = vm.invoke("grow", np.int32(1), np.float32(4))
    assert [x.tolist() for x in flat(found)] == [4, 5, 2]
    text = vm.exe.bytecode.partition("native")[2]
    assert "enter grow" in text and "alloc_object Rose" in text and "= call grow" in text and "return" in text


def test_known_shapes_with_many_choices_are_functions():
    branch = "if (greater(sum(%x), {0}f)) {{ {1} }} else {{ {2} }}"
    body = "%x"
    for k in range(6):
        body = branch.format(k, body, f"multiply({body}, 0.5f)")
    vm = VirtualMachine(relay.vm.compile(relay.fromtext(f"{HEAD}def @main(%x: Tensor[(3), float32]) {{ {body} }}")))
    debug = create_executor("debug", vm.exe.program).evaluate()
    for value in (-1.0, 0.5, 1.2, 5.0):
        x = np.full(3, value, "float32")
        np.testing.assert_array_equal(vm.invoke("main", x).numpy(), debug(x))
    assert "more than" in vm.exe.specializations.closed and native(vm) is not None


KERNEL_RESULTS = {
    "a reshape that moves nothing": (
        "if (less(%n, 1)) { reshape(%x, newshape=[2, 2]) } else { reshape(add(%x, 1f), newshape=[2, 2]) }",
        lambda n, x: x.reshape(2, 2) + (n > 0),
    ),
    "several results of a function that is handed on": (
        """let %f = fn (%y: Tensor[(4), float32], Primitive=1) { (add(%y, 1f), multiply(%y, 2f)) };
        let %made = @map(%f, Cons(%x, Nil));
        match? (%made) { Cons(%pair, _) => { subtract(%pair.0, %pair.1) } }""",
        lambda n, x: 1 - x,
    ),
}


@pytest.mark.parametrize("body", KERNEL_RESULTS)
def test_what_kernels_give_is_of_its_own_shape_and_kind(body):
    text, wanted = KERNEL_RESULTS[body]
    vm = machine(f"def @main(%n: int32, %x: Tensor[(4), float32]) {{ {text} }}")
    x = np.arange(4, dtype="float32")
    for n in (0, 1):
        entry = vm.exe.program.get_global_var("main")
        found = vm.interpreter.called(entry, (np.array(n, "int32"), x))
        np.testing.assert_array_equal(found.numpy(), wanted(n, x))
    assert native(vm) is not None
