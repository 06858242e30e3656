"""Loops as native instructions, held against numpy and the interpreter."""

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.vm import VirtualMachine

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
