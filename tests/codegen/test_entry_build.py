"""relay.build end to end: compiled code against the interpreter, at every level; bad input; stages; saved files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relaylab import relay, study
from relaylab.codegen.build import parse_target
from relaylab.codegen.network.network import is_static_graph, network_of
from relaylab.interp import Interpreter
from relaylab.ir import IRModule
from relaylab.runtime import cpu, cuda, graph_executor, load_module
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.transform import PassContext

pytestmark = pytest.mark.slow

HEAD = '#[version = "0.0.5"]\n'
PROGRAMS = {
    "identity": "def @main(%x: Tensor[(3), float32]) { %x }",
    "constant": "def @main() { add(1f, 2f) }",
    "twice the same": "def @main(%x: Tensor[(3), float32]) { %0 = add(%x, %x); (%0, %x, %0) }",
    "reshapes": "def @main(%x: Tensor[(2, 3), float32]) { %0 = reshape(%x, newshape=[6]);"
    " (%0, reshape(%0, newshape=[3, 2]), add(%0, %0)) }",
    "tuple input": "def @main(%x: (Tensor[(3), float32], Tensor[(2), float32])) { (%x.1, add(%x.0, %x.0)) }",
    "split": "def @main(%x: Tensor[(4, 6), float32]) { split(%x, indices_or_sections=2, axis=1) }",
    "empty": "def @main(%x: Tensor[(0, 3), float32]) { (add(%x, %x), sum(%x, axis=[0])) }",
    "integers": "def @main(%x: Tensor[(4), int64], %y: Tensor[(4), bool]) { where(%y, %x, negative(%x)) }",
    "lets": "def @main(%x: Tensor[(3), float32]) { let %y = add(%x, %x); let %z = multiply(%y, %x); add(%z, %y) }",
    "local function": "def @main(%x: Tensor[(3), float32]) {"
    " let %f = fn (%y: Tensor[(3), float32]) { add(%y, %x) }; %f(%f(%x)) }",
    "global function": "def @f(%x: Tensor[(3), float32]) { add(%x, %x) }"
    " def @main(%x: Tensor[(3), float32]) { @f(@f(%x)) }",
    "dense tail": "def @main(%x: Tensor[(5, 7), float32], %w: Tensor[(9, 7), float32], %b: Tensor[(9), float32]) {"
    " tanh(nn.bias_add(nn.dense(%x, %w, units=None), %b)) }",
    "two products": "def @main(%x: Tensor[(4, 4), float32]) { nn.dense(nn.relu(nn.dense(%x, %x, units=None)), %x,"
    " units=None) }",
    "batch matmul": "def @main(%x: Tensor[(2, 3, 5), float32], %y: Tensor[(2, 4, 5), float32]) {"
    " nn.softmax(nn.batch_matmul(%x, %y, transpose_b=True)) }",
    "weight input": "def @main(%x: Tensor[(1, 3, 9, 9), float32], %w: Tensor[(4, 3, 3, 3), float32]) {"
    " nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1])) }",
    "half": "def @main(%x: Tensor[(2, 3), float16], %w: Tensor[(4, 3), float16]) { nn.dense(%x, %w, units=None) }",
}


def parsed(text: str) -> IRModule:
    return relay.transform.InferType()(relay.fromtext(HEAD + text))


def seeded(type_: object, seed: int) -> object:
    if hasattr(type_, "fields"):
        return tuple(seeded(field, seed + k) for k, field in enumerate(type_.fields))
    values = np.random.default_rng(seed).uniform(-2, 2, type_.concrete_shape)
    return (values > 0 if type_.dtype == "bool" else values).astype(type_.dtype)


def leaves(value: object) -> list[np.ndarray]:
    return [x for v in value for x in leaves(v)] if isinstance(value, (tuple, list)) else [np.asarray(value)]


def compiled(mod: IRModule, level: int = 3, params: dict | None = None) -> graph_executor.GraphModule:
    with PassContext(opt_level=level):
        return graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](cpu(0)))


def check(mod: IRModule, level: int, params: dict | None = None, tolerance: float = 1e-5) -> None:
    """Compiled code and interpreter agree, relative to the largest value of each output."""
    params = params or {}
    main = relay.transform.InferType()(mod)["main"]
    given = [seeded(p.checked_type, k) for k, p in enumerate(main.params) if p.name_hint not in params]
    values = iter(given)
    every = [params[p.name_hint] if p.name_hint in params else next(values) for p in main.params]
    expected = leaves(Interpreter(mod).evaluate()(*every))
    module = compiled(mod, level, params)
    for k, value in enumerate(leaves(given)):
        module.set_input(k, value)
    for _ in range(2):
        module.run()
    assert module.get_num_outputs() == len(expected)
    for k, want in enumerate(expected):
        got = module.get_output(k).numpy()
        scale = float(np.abs(want).max(initial=0)) or 1.0
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got / scale, want / scale, atol=2e-3 if want.dtype == "float16" else tolerance)


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, level: int) -> None:
    mod = parsed(PROGRAMS[name])
    assert is_static_graph(mod)
    check(mod, level)


def conv_net(layout: str, groups: int = 1, channels: int = 16) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A convolution whose result is used with and without a halo, with a residual and pooling."""
    rng = np.random.default_rng(0)
    shape = {"N": 2, "C": channels, "H": 14, "W": 15}
    x = relay.var("x", shape=[shape[c] for c in layout], dtype="float32")
    kernel = "OIHW" if layout == "NCHW" else "HWIO"
    sizes = {"O": channels, "I": channels // groups, "H": 3, "W": 3}
    options = {"data_layout": layout, "kernel_layout": kernel, "channels": channels, "kernel_size": (3, 3)}
    params, value = {}, x
    for k in range(3):
        name = f"w{k}"
        params[name] = rng.normal(size=[sizes[c] for c in kernel]).astype("float32") * 0.1
        conv = relay.nn.conv2d(
            value, relay.var(name, shape=params[name].shape), padding=(1, 1), groups=groups, **options
        )
        value = relay.nn.relu(relay.add(conv, value))
    pooled = relay.nn.max_pool2d(value, (2, 2), (2, 2), layout=layout)
    params["last"] = rng.normal(size=[{**sizes, "I": channels}[c] for c in kernel]).astype("float32")
    out = relay.nn.conv2d(pooled, relay.var("last"), strides=(2, 2), **options)
    body = relay.Tuple([out, relay.nn.batch_flatten(value)])
    return relay.transform.InferType()(IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))), params


@pytest.mark.parametrize("level", [0, 2, 3])
@pytest.mark.parametrize(("layout", "groups"), [("NCHW", 1), ("NHWC", 1), ("NCHW", 16), ("NCHW", 4)])
def test_convolutions_in_every_layout(layout: str, groups: int, level: int) -> None:
    mod, params = conv_net(layout, groups)
    check(mod, level, params)


def test_every_intermediate_value_is_right() -> None:
    mod, params = conv_net("NCHW")
    with PassContext(opt_level=3):
        final, _ = relay.optimize(mod, "llvm", params)
        module = compiled(mod, 3, params)
    network = network_of(final["main"])
    x = seeded(mod["main"].params[0].checked_type, 0)
    module.set_input("x", x)

    def value(tensor: object) -> object:
        if isinstance(tensor, tuple):
            return tuple(map(value, tensor))
        given = {"input": x, "constant": tensor.data}.get(tensor.origin)
        return module._executor.debug_output(tensor.node, tensor.output).numpy() if given is None else given

    for operation in network.operations:
        wanted = leaves(Interpreter(final).evaluate(operation.function)(*map(value, operation.inputs)))
        for tensor, want in zip(operation.outputs, wanted):
            np.testing.assert_allclose(value(tensor), want, atol=1e-4 * max(1.0, float(np.abs(want).max())))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_do_not_change_results(threads: int) -> None:
    mod, params = conv_net("NCHW")
    lib = relay.build(mod, "llvm", params=params)
    x = seeded(mod["main"].params[0].checked_type, 0)
    results = []
    for count in (1, threads):
        module = graph_executor.GraphModule(lib.instantiate(cpu(0), num_threads=count))
        module.run(x=x)
        results.append(module.get_output(0).numpy())
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("def @main(%x: Tensor[(3), float32], %c: bool) { if (%c) { %x } else { add(%x, %x) } }", "an `if`"),
        ("def @main(%x: Tensor[(?), float32]) { add(%x, %x) }", "unknown shape"),
        (
            "def @f(%x: Tensor[(3), float32]) -> Tensor[(3), float32] { @f(%x) }"
            " def @main(%x: Tensor[(3), float32]) { @f(%x) }",
            "function @f",
        ),
        ("def @main(%x: Tensor[(3), float32]) { let %r = ref(%x); ref_read(%r) }", "a reference"),
        ("def @main(%x: Tensor[(3), float32]) { fn (%y: Tensor[(3), float32]) { add(%y, %x) } }", "a closure"),
    ],
)
def test_what_is_no_static_graph_is_named(text: str, word: str) -> None:
    mod = parsed(text)
    assert not is_static_graph(mod)
    with pytest.raises(RelayError, match=word) as caught:
        relay.build(mod, "llvm")
    assert caught.value.code == "build.not-static" and "create_executor" in str(caught.value)


@pytest.mark.parametrize(
    ("act", "error", "word"),
    [
        (lambda: relay.build("def @main"), TypeError, "a module or a Function"),
        (lambda: relay.build(IRModule()), ValueError, "no function @main"),
        (lambda: relay.build(simple(), "cuda"), ValueError, "llvm"),
        (lambda: relay.build(simple(), ["llvm", "llvm"]), ValueError, "one target"),
        (lambda: relay.build(simple(), 3.5), TypeError, "target"),
        (lambda: relay.build(simple(), executor="grpah"), ValueError, "did you mean `graph`"),
        (lambda: relay.build(simple(), params={"x": np.zeros((4, 4), "float32")}), ValueError, "x"),
        (lambda: relay.build(simple())["defualt"], AttributeError, "did you mean `default`"),
        (lambda: relay.build(simple())["default"](cuda(0)), ValueError, "does not exist"),
    ],
)
def test_bad_input(act: object, error: type[Exception], word: str) -> None:
    with pytest.raises(error) as caught:
        act()
    assert word in str(caught.value)


def simple() -> IRModule:
    return parsed("def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) { exp(add(%x, %y)) }")


@pytest.mark.parametrize(
    "target",
    [
        None,
        "llvm",
        {"kind": "llvm"},
        ["llvm"],
        {"cpu": "llvm"},
        {1: "llvm"},
        "llvm -mcpu=x86-64",
        {"kind": "llvm", "mcpu": "x86-64", "mattr": ["+avx2", "+fma"]},
    ],
)
def test_ways_to_name_a_target(target: object) -> None:
    relay.build(simple(), target)


def test_a_dict_has_all_options_of_a_target() -> None:
    given = {"mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72", "mattr": ["+crc", "-fullfp16"], "num-cores": 2}
    text = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -mattr=+crc,-fullfp16 -num-cores=2"
    assert parse_target({"kind": "llvm", "keys": ["cpu"], **given}) == parse_target(text)
    with pytest.raises(RelayValueError, match="-mcup=haswell"):
        parse_target({"kind": "llvm", "mcup": "haswell"})


def test_a_function_is_wrapped_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="IRModule"):
        lib = relay.build(simple()["main"], "llvm")
    with pytest.warns(DeprecationWarning):
        graph, library, params = lib
    assert json.loads(graph)["arg_nodes"] == [0, 1] and params == {}
    graph_executor.create(graph, library, cpu(0)).run(x=np.zeros((2, 3)), y=np.zeros((2, 3)))


def test_the_graph_describes_the_network() -> None:
    mod, params = conv_net("NCHW")
    with PassContext(opt_level=3):
        lib = relay.build(mod, "llvm", params=params, mod_name="net")
    graph = json.loads(lib.get_graph_json())
    names = [node["name"] for node in graph["nodes"]]
    entries = graph["node_row_ptr"][-1]
    assert len(set(names)) == len(names) and names[0] == "x" and "p0" in names
    assert all(len(graph["attrs"][key][1]) == entries for key in ("shape", "dltype", "storage_id", "device_index"))
    kernels = {n["attrs"]["func_name"] for n in graph["nodes"] if n["op"] == "tvm_op"} - {"__nop"}
    assert kernels == set(lib.kernels())
    assert all(name.startswith("tvmgen_net_fused_") for name in kernels)
    assert set(lib.get_params()) == {n for n in names if n.startswith("p")}
    assert lib["net"](cpu(0)) is not None


def test_stages_can_be_looked_at() -> None:
    mod, params = conv_net("NCHW")
    lib = relay.build(mod, "llvm", params=params)
    for name in lib.kernels():
        assert "Primitive=1" in lib.inspect("relay", name) and "parallel" in lib.inspect("loop", name)
        assert "define void @" in lib.inspect("llvm", name) and "ret" in lib.inspect("asm", name)


def test_saved_modules_run_without_the_compiler(tmp_path: Path) -> None:
    mod, params = conv_net("NCHW")
    lib = relay.build(mod, "llvm", params=params)
    x = seeded(mod["main"].params[0].checked_type, 0)
    module = graph_executor.GraphModule(lib["default"](cpu(0)))
    module.run(x=x)
    lib.export_library(tmp_path / "net.tar")
    np.save(tmp_path / "x.npy", x)
    program = f"""
import sys, numpy as np
from relaylab.runtime import load_module, cpu, graph_executor
lib = load_module({str(tmp_path / "net.tar")!r})
m = graph_executor.GraphModule(lib["default"](cpu(0)))
m.run(x=np.load({str(tmp_path / "x.npy")!r}))
np.save({str(tmp_path / "y.npy")!r}, m.get_output(0).numpy())
assert {{n.split(".")[1] for n in sys.modules if n.startswith("relaylab.")}} <= {{"runtime", "support", "compat"}}
assert "define void" in lib.inspect("llvm")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), module.get_output(0).numpy())
    assert graph_executor.GraphModule(load_module(tmp_path / "net.tar")["default"](cpu(0))).get_num_outputs() == 2


def test_parameters_can_be_set_as_inputs() -> None:
    mod, params = conv_net("NCHW")
    x = seeded(mod["main"].params[0].checked_type, 0)
    fixed = compiled(mod, 3, params)
    free = compiled(mod, 3)
    free.set_input(**params)
    for module in (fixed, free):
        module.run(x=x)
    np.testing.assert_allclose(fixed.get_output(0).numpy(), free.get_output(0).numpy(), rtol=1e-4, atol=1e-4)


ROWS = np.arange(6, dtype="float32").reshape(2, 3)
BYTES = np.frombuffer(b"\0" + ROWS.tobytes(), np.uint8)


@pytest.mark.parametrize(
    "values",
    [
        ROWS.astype(">f4"), ROWS[::-1], np.asfortranarray(ROWS), np.broadcast_to(ROWS[:1], (2, 3)),
        BYTES[1:].view("float32").reshape(2, 3),
    ],
    ids=["big-endian", "reversed", "columns", "repeated", "misaligned"],
)  # fmt: skip
def test_arrays_in_any_order_are_built_in(values: np.ndarray) -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(2, 3))
    lib = relay.build(
        IRModule.from_expr(relay.Tuple([x + w, x * relay.Constant(values)])), "llvm", params={"w": values}
    )
    added, scaled = lib.run(x=np.full((2, 3), 2, "float32"))
    np.testing.assert_array_equal(added, values + 2)
    np.testing.assert_array_equal(scaled, values * 2)


@pytest.mark.parametrize(
    ("kernel", "padding"), [((1, 7), (0, 3)), ((7, 1), (3, 0)), ((1, 1), (0, 0)), ((2, 2), (0, 0))]
)
def test_large_convolutions(kernel: tuple[int, int], padding: tuple[int, int]) -> None:
    weight = np.random.default_rng(1).normal(size=(*kernel, 128, 128)).astype("float32")
    x = relay.var("x", shape=(1, 17, 17, 128))
    conv = relay.nn.conv2d(
        x,
        relay.const(weight),
        padding=padding,
        channels=128,
        kernel_size=kernel,
        data_layout="NHWC",
        kernel_layout="HWIO",
    )
    check(relay.transform.InferType()(IRModule.from_expr(relay.Function([x], conv))), 3)


def test_winograd_can_be_turned_off() -> None:
    mod, params = conv_net("NCHW")
    with PassContext(opt_level=3, config={"relay.codegen.winograd": False}):
        plain = relay.build(mod, "llvm", params=params).inspect("loop")
    with PassContext(opt_level=3):
        minimal = relay.build(mod, "llvm", params=params).inspect("loop")
    assert "winograd" in minimal and "winograd" not in plain


def test_a_long_chain_of_kernels() -> None:
    x = relay.var("x", shape=(2,), dtype="float32")
    value = x
    for _ in range(3000):
        value = relay.nn.relu(relay.add(value, relay.const(1.0)))
    mod = relay.transform.InferType()(IRModule.from_expr(relay.Function([x], value)))
    module = compiled(mod, 0)
    module.run(x=np.zeros(2))
    assert module.get_output(0).numpy().tolist() == [3000, 3000]


@pytest.mark.parametrize("opt_level", [0, 3])
def test_a_part_of_a_concatenation_is_read_after_the_whole_was_overwritten_nowhere(opt_level: int) -> None:
    """`x + concat(x, y)`: x lies in the concatenation's buffer and is broadcast over it, so the sum needs its own."""
    a, b = relay.var("a", shape=(1, 3)), relay.var("b", shape=(1, 3))
    x = relay.tanh(a)
    mod = relay.IRModule.from_expr(
        relay.Function([a, b], relay.negative(relay.add(x, relay.concatenate([x, relay.sigmoid(b)], 0))))
    )
    found = study.check(mod, opt_level=opt_level)
    assert found.agrees, found
