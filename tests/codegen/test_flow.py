"""Loops as native instructions, held against numpy and the interpreter."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.vm import VirtualMachine
from relaylab.ir.dims import SizeVar
from relaylab.support.errors import RelayError
from relaylab.support.progress import heard

SWAPPING = """
#[version = "0.0.5"]
def @main(%n: int64, %x: Tensor[(4), float32]) {
  let %loop = fn(%i: int64, %a: Tensor[(4), float32], %b: Tensor[(4), float32]) {
    if (less(%i, %n)) {
      %loop(add(%i, 1i64), %b, add(%a, multiply(%x, 0.5f)))
    } else { (%i, %a, %b) }
  };
  let %r = %loop(0i64, %x, negative(%x));
  (%r.0, add(%r.1, %r.2))
}
"""
UNTIL = """
#[version = "0.0.5"]
def @halve(%x: float32, %rows: Tensor[(?, 1), float32]) -> (float32, Tensor[(?, 1), float32]) {
  if (greater(%x, 1f)) {
    @halve(multiply(%x, 0.5f), concatenate((%rows, reshape(%x, newshape=[1, 1])), axis=0))
  } else { (%x, %rows) }
}
def @main(%x: float32, %none: Tensor[(0, 1), float32]) { @halve(%x, %none) }
"""


def machine(text):
    return VirtualMachine(relay.vm.compile(relay.fromtext(text), "llvm"))


@pytest.mark.parametrize("turns", [0, 1, 2, 5, 10000])
def test_a_state_whose_parts_change_places(turns):
    vm = machine(SWAPPING)
    x = np.arange(4, dtype="float32")
    a, b = x, -x
    for _ in range(turns):
        a, b = b, a + x * np.float32(0.5)
    count, total = vm.invoke("main", np.array(turns, "int64"), x)
    assert count.numpy() == turns and vm.exe.specializations.open.repeats
    np.testing.assert_array_equal(total.numpy(), a + b)


def test_rows_of_a_loop_that_ends_by_its_data():
    vm = machine(UNTIL)
    empty = np.zeros((0, 1), "float32")
    for start in (np.float32(0.5), np.float32(1e30), np.float32(np.nan), np.float32(100)):
        last, rows = vm.invoke("main", start, empty)
        wanted = []
        while start > 1:
            wanted.append(start)
            start = start * np.float32(0.5)
        np.testing.assert_array_equal(last.numpy(), start)
        np.testing.assert_array_equal(rows.numpy().reshape(-1), np.array(wanted, "float32"))
    assert vm.exe.specializations.open is not None


def test_collectors_make_room():
    text = SWAPPING.replace("(%i, %a, %b) }", "(%i, %a, %b, %all) }").replace(
        "%b: Tensor[(4), float32]) {", "%b: Tensor[(4), float32], %all: Tensor[(?, 4), float32]) {"
    )
    text = text.replace("0.5f)))", "0.5f)), concatenate((%all, expand_dims(%a, axis=0)), axis=0))")
    text = text.replace("negative(%x));", "negative(%x), %none);").replace("%r.2))", "%r.2), %r.3)")
    text = text.replace("%x: Tensor[(4), float32]) {", "%x: Tensor[(4), float32], %none: Tensor[(0, 4), float32]) {", 1)
    vm = machine(text)
    x = np.arange(4, dtype="float32")
    _, _, rows = vm.invoke("main", np.array(3000, "int64"), x, np.zeros((0, 4), "float32"))
    a, b, wanted = x, -x, []
    for _ in range(3000):
        wanted.append(a)
        a, b = b, a + x * np.float32(0.5)
    np.testing.assert_array_equal(rows.numpy(), np.stack(wanted))
    assert vm.exe.specializations.open is not None


def test_the_instructions_are_listed():
    vm = machine(SWAPPING)
    vm.invoke("main", np.array(2, "int64"), np.ones(4, "float32"))
    native = vm.exe.bytecode.partition("native")[2]
    assert "unless" in native and "goto" in native and "copy" in native and "invoke" in native


GIVEN = "%n: int64, %x: Tensor[(3), float32], %none: Tensor[(0, 3), float32]"
ROWS = """let %loop = fn(%i: int64, %rows: Tensor[(?, 3), float32]) -> Tensor[(?, 3), float32] {
  if (less(%i, %n)) {
    %loop(add(%i, 1i64), concatenate((%rows, expand_dims(multiply(%x, cast(%i, dtype="float32")), axis=0)), axis=0))
  } else { %rows }
};
let %r = %loop(0i64, %none);"""
OUTER = f"""let %outer = fn(%n: int64, %s: Tensor[(4, 3), float32]) -> Tensor[(4, 3), float32] {{
  if (less(%n, 5i64)) {{ {ROWS} %outer(add(%n, 1i64), add(%s, reshape(%r, newshape=[4, 3]))) }} else {{ %s }}
}};
%outer(%n, zeros(shape=[4, 3], dtype="float32"))"""
ENDS = {
    "known": (ROWS + "exp(reshape(%r, newshape=[4, 3]))", True),
    "twice": (ROWS + "add(reshape(%r, newshape=[4, 3]), reshape(%r, newshape=[1, 3]))", True),
    "in a branch": ("if (greater(sum(%x), 0f)) {" + ROWS + "reshape(%r, newshape=[4, 3]) }"
                    'else { zeros(shape=[4, 3], dtype="float32") }', True),
    "in each turn": (OUTER, True),
    "used": (ROWS + "sum(%r, axis=[0])", True),
    "chosen": ("if (greater(sum(%x), 0f)) {" + ROWS + "%r } else { reshape(%x, newshape=[-1, 3]) }", True),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_rows_of_another_number_are_refused(name):
    end, native = ENDS[name]
    text = f'#[version = "0.0.5"]\ndef @main({GIVEN}) {{ {end} }}'
    vm, debug = machine(text), relay.create_executor("debug", mod=relay.fromtext(text)).evaluate()
    none = np.zeros((0, 3), "float32")
    for turns, sign in [(4, 1), (3, 1), (4, -1), (5, 1), (3, -1), (4, 1)]:
        args = np.array(turns, "int64"), sign * np.arange(3, dtype="float32"), none
        try:
            wanted = debug(*args).numpy()
        except RelayError as error:
            with pytest.raises(RelayError) as caught:
                vm.invoke("main", *args)
            assert caught.value.code == error.code
        else:
            np.testing.assert_allclose(vm.invoke("main", *args).numpy(), wanted, rtol=1e-6)
    assert (vm.exe.specializations.open is not None) == native


def test_parameters_without_known_sizes_run_a_turn_at_a_time():
    text = SWAPPING.replace("Tensor[(4)", "Tensor[(?)")
    vm = machine(text)
    x = np.ones(3, "float32")
    np.testing.assert_array_equal(vm.invoke("main", np.array(1, "int64"), x)[1].numpy(), x * 0.5)
    assert vm.exe.specializations.open.found == "found by loop"


def chain(length):
    step = "let %v{1} = if (greater(sum(%x), {0}f)) {{ add(%v{0}, 1f) }} else {{ multiply(%v{0}, 0.5f) }};"
    lines = "\n".join(step.format(k, k + 1) for k in range(length))
    return (
        f'#[version = "0.0.5"]\ndef @main(%v0: Tensor[(3), float32]) {{ let %x = negative(%v0);\n{lines} %v{length} }}'
    )


def test_choices_after_one_another_are_compiled_once():
    vm = machine(chain(20))
    for value in (-5.0, 1.0, -1.0):
        x = np.full(3, value, "float32")
        wanted = x
        for k in range(20):
            wanted = wanted + np.float32(1) if (-x).sum() > k else wanted * np.float32(0.5)
        np.testing.assert_allclose(vm.invoke("main", x).numpy(), wanted, rtol=1e-6)
    assert len(vm.exe.specializations.open.blocks) <= 3 * 20


def test_functions_that_double_are_evaluated():
    head = "def @f0(%x: float32) -> float32 { if (greater(%x, 1f)) { %x } else { add(%x, 1f) } }\n"
    for k in range(12):
        head += f"def @f{k + 1}(%x: float32) -> float32 {{ add(@f{k}(%x), @f{k}(negative(%x))) }}\n"
    vm = machine(f'#[version = "0.0.5"]\n{head}def @main(%x: float32) {{ @f12(%x) }}')
    debug = relay.create_executor("debug", mod=vm.exe.program).evaluate()
    assert vm.invoke("main", np.float32(0.5)).numpy() == debug(np.float32(0.5)).numpy()
    assert "more than" in vm.exe.specializations.closed


def test_threads_take_turns_and_a_run_that_was_stopped_leaves_nothing():
    vm, x = machine(SWAPPING), np.arange(4, dtype="float32")
    wanted = [(x, -x)]
    for _ in range(20):
        a, b = wanted[-1]
        wanted.append((b, a + x * np.float32(0.5)))

    def check(turns):
        total = vm.invoke("main", np.array(turns, "int64"), x)[1].numpy()
        return np.array_equal(total, sum(wanted[turns]))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(check, [*range(20)] * 5))

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), heard(stop):
        vm.invoke("main", np.array(10**15, "int64"), x)
    assert check(7)
    again = VirtualMachine(relay.vm.Executable.load_exec(*vm.exe.save()))
    np.testing.assert_array_equal(again.invoke("main", np.array(3, "int64"), x)[1].numpy(), sum(wanted[3]))
    assert again.exe.specializations.open.repeats


def test_rows_without_elements_are_evaluated_where_forms_are_for_known_sizes():
    n = SizeVar("n")
    k, x = relay.var("k", shape=(9000,)), relay.var("x", shape=(1, n))  # too large to be put in
    none, rows = relay.var("none", shape=(0, n)), relay.var("rows", shape=(relay.Any(), n))
    i, loop = relay.var("i", shape=()), relay.var("loop")
    more = loop(i + relay.const(1.0), relay.concatenate([rows, x], axis=0))
    turn = relay.Function([i, rows], relay.If(relay.less(i, relay.sum(k)), more, rows), rows.type_annotation)
    main = relay.Function([k, x, none], relay.Let(loop, turn, loop(relay.const(0.0), none)))
    vm = VirtualMachine(relay.vm.compile(relay.IRModule.from_expr(main), "llvm"))
    for size in (3, 0, 0, 0, 0, 3):
        given = np.full(9000, 1 / 4096, "float32"), np.ones((1, size), "float32"), np.ones((0, size), "float32")
        assert (vm.invoke("main", *given).numpy() == np.ones((3, size))).all()
        vm.exe.specializations.open.seconds = 0.0
    assert len(vm.exe.specializations.forms) == 2


@pytest.mark.parametrize("size", ["4", "?"])
@pytest.mark.parametrize("last", ["@main(tanh(%x), subtract(%n, 1))", "add(@main(tanh(%x), subtract(%n, 1)), %x)"])
def test_main_may_call_itself(size, last):
    """As a loop or not: what the first turn computed is not what the next ones need."""
    text = f"""#[version = "0.0.5"]
    def @main(%x: Tensor[({size}), float32], %n: int32) -> Tensor[({size}), float32] {{
      if (greater(%n, 0)) {{ {last} }} else {{ exp(%x) }}
    }}"""
    vm = machine(text)

    def wanted(x, n):
        if n == 0:
            return np.exp(x)
        return wanted(np.tanh(x), n - 1) + (x if last.startswith("add") else 0)

    x = np.linspace(-1, 1, 4, dtype="float32")
    for n in (0, 1, 3, 2, 7):
        np.testing.assert_allclose(vm.invoke("main", x, np.array(n, "int32")).numpy(), wanted(x, n), rtol=1e-5)
