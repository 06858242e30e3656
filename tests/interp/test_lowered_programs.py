"""Programs with their memory laid out, as TVM prints them for its virtual machine: the numbers of the program that they
come from.
"""

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import structural_equal
from relaylab.support.errors import RelayError

DEVICE = "virtual_device=VirtualDevice(device_type=1, virtual_device_id=0)"
TEN = "meta[relay.Constant][0]"
META = {"relay.Constant": [relay.const(np.array([10], "int64")), relay.const(np.array([2], "int64"))]}


def storage(name, size=40, dtype="float32"):
    return f'let %{name}: Storage[] = memory.alloc_storage({size}i64, 64i64, {DEVICE}, dtype="{dtype}");\n'


def tensor(name, memory, offset=0):
    call = f"memory.alloc_tensor(%{memory}, {offset}i64, {TEN}, const_shape={TEN}, assert_shape=[10])"
    return f"let %{name}: Tensor[(10), float32] = {call};\n"


T = "Tensor[(10), float32]"
RELU = f"let %f = fn (%p0: {T}, Primitive=1) -> {T} {{ nn.relu(%p0) }};\n"
ADD = f"let %g = fn (%p0: {T}, %p1: {T}, Primitive=1) -> {T} {{ add(%p0, %p1) }};\n"


def read(body, params=f"%x: {T}, %y: {T}", result=T):
    return relay.parse(f"def @main({params}) -> {result} {{\n{body}\n}}\nextern type Storage", init_meta_table=META)


RUNNING = ["debug", "vm"]


@pytest.mark.parametrize("kind", RUNNING)
def test_memory_that_is_used_again(kind):
    mod = read(
        storage("s0") + storage("s1") + tensor("t0", "s0") + tensor("t1", "s1") + tensor("t2", "s0") + RELU + ADD
        + "let %a: () = vm.invoke_tvm_op(%f, (%x,), (%t0,));\n"
        + "let %b: () = vm.invoke_tvm_op(%g, (%t0, %y), (%t1,));\n"
        + "let %c: () = vm.invoke_tvm_op(%g, (%t1, %y), (%t2,));\n"
        + "let %d: () = memory.kill(%t1);\n%t2"
    )  # fmt: skip
    x, y = np.random.default_rng(0).normal(size=(2, 10)).astype("float32")
    run = relay.create_executor(kind, mod=mod).evaluate()
    first, second = run(x, y), run(y, x)
    np.testing.assert_array_equal(first.numpy(), np.maximum(x, 0) + y + y)
    np.testing.assert_array_equal(second.numpy(), np.maximum(y, 0) + x + x)


@pytest.mark.parametrize("kind", RUNNING)
def test_two_tensors_in_one_piece_of_memory(kind):
    mod = read(
        storage("s", 104) + tensor("t0", "s") + tensor("t1", "s", 64) + RELU + ADD
        + "let %a: () = vm.invoke_tvm_op(%f, (%x,), (%t0,));\n"
        + "let %b: () = vm.invoke_tvm_op(%g, (%x, %y), (%t1,));\n"
        + "let %c: () = vm.invoke_tvm_op(%g, (%t0, %t1), (%t0,));\n%t0"
    )  # fmt: skip
    x, y = np.random.default_rng(1).normal(size=(2, 10)).astype("float32")
    found = relay.create_executor(kind, mod=mod).evaluate()(x, y)
    np.testing.assert_array_equal(found.numpy(), np.maximum(x, 0) + (x + y))


def test_kernels_are_compiled():
    mod = read(storage("s") + tensor("t", "s") + RELU + "let %a: () = vm.invoke_tvm_op(%f, (%x,), (%t,));\n%t")
    assert len(relay.vm.compile(mod).primitive_ops) == 1


def dynamic():
    any_ = "Tensor[(?), float32]"
    shape = "meta[relay.Constant][1]"
    return read(
        f"let %f = fn (%p0: {any_}, %p1: {any_}, Primitive=1) -> {any_} {{ concatenate((%p0, %p1)) }};\n"
        + 'let %n = vm.shape_of(%x, dtype="int64");\nlet %m = vm.shape_of(%y, dtype="int64");\n'
        + storage("s", 8, "int64")
        + "let %o: Tensor[(1), int64] = memory.alloc_tensor(%s, 0i64, cast(shape_of(%n), dtype=\"int64\"), "
        + f"const_shape={shape}, assert_shape=[1], dtype=\"int64\");\n"
        + "let %a: () = vm.shape_func(%f, (%n, %m), (%o,), is_input=[False, False]);\n"
        + "let %bytes = multiply(prod(%o), 4i64);\n"
        + f'let %s1: Storage[] = memory.alloc_storage(%bytes, 64i64, {DEVICE}, dtype="float32");\n'
        + f"let %t: {any_} = memory.alloc_tensor(%s1, 0i64, %o, const_shape=None, assert_shape=[?]);\n"
        + "let %b: () = vm.invoke_tvm_op(%f, (%x, %y), (%t,));\n%t",
        f"%x: {any_}, %y: {any_}", any_,
    )  # fmt: skip


@pytest.mark.parametrize("kind", RUNNING)
def test_shapes_are_computed_at_run_time(kind):
    run = relay.create_executor(kind, mod=dynamic()).evaluate()
    for n, m in ((2, 3), (4, 0)):
        x, y = np.arange(n, dtype="float32"), np.ones(m, "float32")
        np.testing.assert_array_equal(run(x, y).numpy(), np.concatenate([x, y]))


def test_text_keeps_them():
    mod = dynamic()
    assert structural_equal(relay.parse(mod.astext()), mod)


@pytest.mark.parametrize("kind", RUNNING)
def test_memory_that_is_too_small_is_an_error(kind):
    mod = read(storage("s", 12) + tensor("t", "s") + RELU + "let %a: () = vm.invoke_tvm_op(%f, (%x,), (%t,));\n%t")
    x = np.ones(10, "float32")
    with pytest.raises(RelayError, match="memory.alloc_tensor failed"):
        relay.create_executor(kind, mod=mod).evaluate()(x, x)


@pytest.mark.parametrize("kind", RUNNING)
def test_results_that_do_not_fit_are_an_error(kind):
    twice = f"let %f = fn (%p0: {T}, Primitive=1) -> Tensor[(20), float32] {{ concatenate((%p0, %p0)) }};\n"
    mod = read(storage("s") + tensor("t", "s") + twice + "let %a: () = vm.invoke_tvm_op(%f, (%x,), (%t,));\n%t")
    x = np.ones(10, "float32")
    with pytest.raises(RelayError, match="a lowered call writes"):
        relay.create_executor(kind, mod=mod).evaluate()(x, x)


def test_a_shape_function_needs_to_know_what_it_is_given():
    mod = relay.parse(dynamic().astext().replace("is_input=[False, False]", "is_input=[False]"))
    with pytest.raises(RelayError, match="one entry for each of 2 parameters"):
        relay.create_executor("debug", mod=mod).evaluate()(np.ones(2, "float32"), np.ones(3, "float32"))


@pytest.mark.parametrize("kind", RUNNING)
def test_calls_of_lowered_functions(kind):
    mod = relay.parse(
        f"def @relu(%p0: {T}, Primitive=1) -> {T} {{ nn.relu(%p0) }}\n"
        f"def @main(%x: {T}) -> {T} {{ %0 = (%x,); call_lowered(@relu, %0, metadata={{}}) }}"
    )
    x = np.linspace(-1, 1, 10, dtype="float32")
    found = relay.create_executor(kind, mod=mod).evaluate()(x)
    np.testing.assert_array_equal(found.numpy(), np.maximum(x, 0))


def test_static_executors_refuse_them():
    mod = read(storage("s") + tensor("t", "s") + RELU + "let %a: () = vm.invoke_tvm_op(%f, (%x,), (%t,));\n%t")
    x = np.ones(10, "float32")
    with pytest.raises(RelayError, match="Storage") as raised:
        relay.create_executor("graph", mod=mod).evaluate()(x, x)
    assert "vm" in raised.value.help
