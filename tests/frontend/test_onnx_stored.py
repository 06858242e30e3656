"""Models in files and bytes whose large weights are not parsed: they mean what onnx's own parser makes of them."""

from __future__ import annotations

import itertools
import mmap
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx_tools import compare, helper, imported, model, numpy_helper, onnx, run

from relaylab import relay
from relaylab.frontend.onnx.model import MAPPED, read_model
from relaylab.frontend.onnx.stored import LARGE
from relaylab.runtime import cpu, graph_executor
from relaylab.interp import Interpreter
from relaylab.ir import Constant, IRModule, structural_equal, structural_hash, walk
from relaylab.support.errors import RelayError
from relaylab.viz import show

WIDTH = 192
X = np.linspace(-1, 1, WIDTH, dtype="float32").reshape(1, WIDTH)
RNG = np.random.default_rng(0)
W = RNG.standard_normal((2, WIDTH, WIDTH), "float32") / 14
B = RNG.standard_normal((2, WIDTH), "float32")


def layers(repeat: int = 1):
    """Two layers, small and large initializers in turn; with `repeat` a third that makes the file one to map."""
    constants = {"w0": W[0], "b0": B[0], "w1": W[1], "b1": B[1]}
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["m0"]), helper.make_node("Add", ["m0", "b0"], ["a0"]),
        helper.make_node("MatMul", ["a0", "w1"], ["m1"]), helper.make_node("Add", ["m1", "b1"], ["y"]),
    ]  # fmt: skip
    if repeat > 1:
        constants["wide"] = np.tile(W[0], (1, repeat))
        nodes.append(helper.make_node("MatMul", ["y", "wide"], ["z"]))
    return model(nodes, {"x": X}, ["z" if repeat > 1 else "y"], constants)


WANTED = (X @ W[0] + B[0]) @ W[1] + B[1]


def field(number: int, content: bytes) -> bytes:
    """A field of protobuf with a length."""
    length, out = len(content), bytearray([number << 3 | 2])
    while length > 127:
        out.append(length & 127 | 128)
        length >>= 7
    return bytes(out) + bytes([length]) + content


def constants_of(mod: IRModule) -> list[np.ndarray]:
    return [e.data.numpy() for e in walk((mod["main"].body,)) if isinstance(e, Constant)]


def owner(array: np.ndarray) -> object:
    found = array
    while isinstance(found, np.ndarray):
        found = found.base
    return found.obj if isinstance(found, memoryview) else found


def outcome(source) -> object:
    """What an import gives: the module, or the error without the name of the source."""
    try:
        return imported(source)
    except RelayError as error:
        return error.code, re.sub("^the (bytes|model): ", "", error.message), error.place, error.help


def test_weights_of_bytes_are_views_of_them():
    data = layers().SerializeToString()
    found = [c for c in constants_of(imported(data)) if c.nbytes >= LARGE]
    whole = np.frombuffer(data, np.uint8)
    assert len(found) == 2 and all(np.shares_memory(c, whole) and not c.flags.writeable for c in found)
    changed = bytearray(data)
    mod = imported(changed)
    changed[:] = bytes(len(changed))  # what can be written to is copied
    compare(run(mod, {"x": X}), [WANTED], 1e-4)


def test_weights_of_a_file_are_its_pages(tmp_path):
    onnx.save(layers(8), tmp_path / "m.onnx")
    mod = imported(tmp_path / "m.onnx")
    found = [c for c in constants_of(mod) if c.nbytes >= LARGE]
    assert len(found) == 3 and {type(owner(c)) for c in found} == {mmap.mmap}
    assert len({id(owner(c)) for c in found}) == 1
    assert structural_equal(mod, imported(layers(8)))
    compare(run(mod, {"x": X}), [np.tile(WANTED @ W[0], (1, 8))], 1e-4)


@pytest.mark.parametrize("shift", range(4))
def test_weights_may_lie_anywhere(shift, tmp_path):
    proto = layers(8)
    proto.producer_name = "x" * shift  # before the graph
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    places = {c.__array_interface__["data"][0] % 4 for c in constants_of(imported(tmp_path / "m.onnx"))}
    assert len(places) > 1 or places != {0} or shift == 0
    for executor in ("debug", "graph", "vm"):
        mod = imported(tmp_path / "m.onnx")
        compare(run(mod, {"x": X}, executor), [np.tile(WANTED @ W[0], (1, 8))], 1e-4)


@pytest.mark.parametrize("shift", range(4))
def test_parameters_are_where_the_weights_are_until_they_are_written_to(shift, tmp_path):
    proto = layers(8)
    proto.producer_name = "x" * shift
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    mod, params = relay.frontend.from_onnx(tmp_path / "m.onnx", freeze_params=False)
    wanted = np.tile(WANTED @ W[0], (1, 8))
    assert isinstance(owner(params["w0"].read()), mmap.mmap)
    compare([np.asarray(relay.build(mod, "llvm", params=params).run(x=X))], [wanted], 1e-4)
    module = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](cpu(0)))
    module.set_input(**params)
    module.run(x=X)
    compare([module.get_output(0).numpy()], [wanted], 1e-4)
    for executor in ("debug", "vm"):
        given = [params.get(p.name_hint, X) for p in mod["main"].params]
        compare([relay.create_executor(executor, mod, target="llvm").evaluate()(*given).numpy()], [wanted], 1e-4)
    assert isinstance(owner(params["w0"].read()), mmap.mmap)
    params["w0"].copyfrom(-W[0])
    params["b0"].view()[:] = 0
    wanted = np.tile((-X @ W[0] @ W[1] + B[1]) @ W[0], (1, 8))
    compare([np.asarray(relay.build(mod, "llvm", params=params).run(x=X))], [wanted], 1e-4)
    onnx.save(layers(9), tmp_path / "m.onnx")
    with pytest.raises(RelayError, match="was written over"):
        relay.build(mod, "llvm", params=params)


def rearranged() -> dict[str, bytes]:
    """Bytes that are models too, as protobuf reads them."""
    whole = layers()
    data, graph = whole.SerializeToString(), whole.graph.SerializeToString()
    rest = type(whole).FromString(data)
    rest.ClearField("graph")
    head = rest.SerializeToString()
    nodes, tensors = type(whole.graph).FromString(graph), type(whole.graph)()
    tensors.initializer.extend(nodes.initializer)
    nodes.ClearField("initializer")
    twice = type(whole.graph).FromString(graph)
    twice.initializer.append(numpy_helper.from_array(W[0] + 1, "w0"))
    first, *others = (t.SerializeToString() for t in tensors.initializer)
    listed = type(tensors.initializer[0]).FromString(first)
    listed.ClearField("raw_data")
    listed.float_data.extend(W[0].ravel().tolist())
    plain = nodes.SerializeToString()
    several = b"".join(field(5, t) for t in others)
    both = listed.SerializeToString() + field(9, W[1].tobytes())
    unknown = b"\xf9\x01" + bytes(8) + field(9, b"?")
    return {
        "graph in parts": head + field(7, plain) + field(7, tensors.SerializeToString()),
        "graph before and after": field(7, tensors.SerializeToString()) + head + field(7, plain),
        "a name twice": head + field(7, twice.SerializeToString()),
        "data twice": head + field(7, plain + several + field(5, first + field(9, W[1].tobytes()))),
        "two kinds of data": head + field(7, plain + several + field(5, both)),
        "unknown fields": head + b"\xfd\x01\x01\x02\x03\x04" + field(7, unknown + graph),
        "a group": head + field(7, graph + b"\xfb\x01\xfc\x01"),
        "long numbers": head + field(7, plain + several + b"\xaa\x80\x00" + field(5, first)[1:]),
    }  # fmt: skip


@pytest.mark.parametrize("how", rearranged())
def test_what_protobuf_merges_is_merged(how):
    data = rearranged()[how]
    proto = onnx.ModelProto.FromString(data)
    assert structural_equal(outcome(data), outcome(proto))
    found = constants_of(imported(data))
    assert len(found) == len(constants_of(imported(proto)))


def test_functions_branches_and_names_do_not_confuse_weights():
    """A graph in an attribute has a weight of the name of one of the model; the model has functions."""
    other = numpy_helper.from_array(W[1], "w0")
    branch = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w0"], ["t"])], "b", [], [helper.make_empty_tensor_value_info("t")], [other]
    )
    nodes = [
        helper.make_node("twice", ["x"], ["xx"], domain="own"), helper.make_node("MatMul", ["xx", "w0"], ["m"]),
        helper.make_node("If", ["c"], ["i"], then_branch=branch, else_branch=branch),
        helper.make_node("Add", ["m", "i"], ["y"]),
    ]  # fmt: skip
    proto = model(nodes, {"x": X, "c": np.array(True)}, ["y"], {"w0": W[0]}, domain="own")
    body = [helper.make_node("Add", ["v", "v"], ["r"])]
    proto.functions.append(helper.make_function("own", "twice", ["v"], ["r"], body, [helper.make_opsetid("", 17)]))
    mod = imported(proto.SerializeToString())
    compare(run(mod, {"x": X, "c": np.array(True)}), [2 * X @ W[0] + X @ W[1]], 1e-4)


def test_integers_of_four_bits_are_unpacked_from_where_they_lie():
    values = RNG.integers(-8, 8, (WIDTH * 4, WIDTH)).astype("int8")
    packed = (values.reshape(-1, 2) & 15).astype("uint8")
    tensor = helper.make_tensor(
        "q", onnx.TensorProto.INT4, values.shape, (packed[:, 0] | packed[:, 1] << 4).tobytes(), raw=True
    )
    proto = model(
        [helper.make_node("DequantizeLinear", ["q", "s"], ["w"]), helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": np.ones((1, WIDTH * 4), "float32")}, ["y"], {"s": np.array(0.5, "float32")}, opset=21,
    )  # fmt: skip
    proto.graph.initializer.append(tensor)
    data = proto.SerializeToString()
    assert "q" in read_model(data).weights
    wanted = values.sum(0, dtype="float64").reshape(1, -1) * 0.5
    compare(run(imported(data), {"x": np.ones((1, WIDTH * 4), "float32")}), [wanted.astype("float32")], 1e-5)


CHANGES = {
    "dims": lambda t: t.dims.append(7),
    "negative": lambda t: t.dims.__setitem__(0, -2),
    "short": lambda t: setattr(t, "raw_data", t.raw_data[:-1]),
    "type": lambda t: setattr(t, "data_type", 8),
    "name": lambda t: t.ClearField("name"),
    "outside": lambda t: setattr(t, "data_location", onnx.TensorProto.EXTERNAL),
}


@pytest.mark.parametrize("change", CHANGES)
def test_weights_that_do_not_fit_are_refused_as_in_a_proto(change):
    proto = layers()
    CHANGES[change](proto.graph.initializer[0])
    found = outcome(proto.SerializeToString())
    assert isinstance(found, tuple) and found == outcome(proto)


def test_damaged_files_are_what_the_parser_of_onnx_says():
    """Bytes are changed, left out and put in wherever they are no weights; then the file is cut short."""
    data = layers().SerializeToString()
    starts = [data.index(w.tobytes()) for w in W]
    places = [*range(starts[0]), *range(starts[0] + W[0].nbytes, starts[1]), *range(starts[1] + W[1].nbytes, len(data))]
    draw = random.Random(0)
    ends = (k for at in (0, *starts) for k in range(at, min(at + 40, len(data)), 7))
    cases = itertools.chain(
        (data[:at] + bytes([data[at] ^ draw.choice((1, 2, 8, 0x15, 0x80))]) + data[at + 1 :] for at in places[::7]),
        (data[:at] + data[at + 1 :] for at in places[::29]),
        (data[:at] + bytes([draw.randrange(256)]) + data[at:] for at in places[::29]),
        (data[:end] for end in ends),
    )
    refused = 0
    for broken in cases:
        found = outcome(broken)
        try:
            proto = onnx.ModelProto.FromString(broken)
        except Exception:
            assert isinstance(found, tuple) and found[0] == "import.garbage"
            refused += 1
            continue
        if not proto.HasField("graph"):
            assert isinstance(found, tuple) and found[0] == "import.garbage"
            continue
        wanted = outcome(proto)
        assert found == wanted if isinstance(found, tuple) else structural_equal(found, wanted)
    assert refused > 20


def weights(mod):
    """The large constants of a program."""
    return [n for n in walk([mod["main"]]) if isinstance(n, Constant) and n.data.size > 1000]


def test_a_file_that_is_written_over_gives_no_other_numbers(tmp_path):
    path, proto = tmp_path / "m.onnx", layers(8)
    onnx.save(proto, path)
    mod = imported(path)
    lib = relay.build(mod, "llvm")
    evaluate = relay.create_executor("debug", mod).evaluate()
    other = imported(path)
    proto.graph.initializer[0].raw_data = (-W[0]).tobytes()
    onnx.save(proto, path)
    later = imported(path)
    uses = {
        "build": lambda: relay.build(mod, "llvm"), "vm": lambda: relay.vm.compile(mod, "llvm"),
        "debug": lambda: evaluate(X), "params": lambda: lib.get_params(),
        "text": lambda: mod.astext(show_meta_data=True), "hash": lambda: structural_hash(mod),
        "equal": lambda: structural_equal(mod, other), "written": lambda: relay.frontend.to_onnx(mod),
        "picture": lambda: show(mod), "interpreter": lambda: Interpreter(mod).evaluate()(X),
        "saved": lambda: relay.save_param_dict({"w": weights(mod)[0].data}),
        "array": lambda: weights(mod)[0].data.numpy(),
    }  # fmt: skip
    for what, use in uses.items():
        with pytest.raises(RelayError, match=r"m\.onnx was written over") as info:
            use()
        assert info.value.code == "runtime.changed-file", what
    compare([np.asarray(lib.run(x=X))], [np.tile(WANTED @ W[0], (1, 8))], 1e-4)  # what was built has its own
    assert not np.allclose(run(later, {"x": X})[0], np.tile(WANTED @ W[0], (1, 8)))


def test_a_file_that_another_takes_the_place_of_stays_what_it_was(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(layers(8), path)
    mod = imported(path)
    onnx.save(layers(9), tmp_path / "new.onnx")
    os.replace(tmp_path / "new.onnx", path)
    compare(run(mod, {"x": X}), [np.tile(WANTED @ W[0], (1, 8))], 1e-4)
    path.unlink()
    compare(run(mod, {"x": X}), [np.tile(WANTED @ W[0], (1, 8))], 1e-4)


CHILD = """
import re, sys
import numpy as np
from relaylab import relay
mod, params = relay.frontend.from_onnx(sys.argv[1])
lib = relay.build(mod, "llvm", params=params)
lib.run(x=np.ones((1, 1024), "float32"))
status = open("/proc/self/status").read()  # what getrusage tells begins with the memory of the parent
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) << 10)
"""


def peak(path: Path, count: int) -> int:
    """Bytes that a process takes at most that imports, builds and runs `count` layers of 4 MiB."""
    w = RNG.standard_normal((1024, 1024), "float32") / 32
    names = ["x", *(f"y{k}" for k in range(count))]
    nodes = [helper.make_node("MatMul", [names[k], f"w{k}"], [f"m{k}"]) for k in range(count)]
    nodes += [helper.make_node("Relu", [f"m{k}"], [names[k + 1]]) for k in range(count)]
    constants = {f"w{k}": w + np.float32(k) for k in range(count)}
    onnx.save(model(nodes, {"x": np.ones((1, 1024), "float32")}, [names[-1]], constants), path)
    return int(subprocess.run([sys.executable, "-c", CHILD, path], capture_output=True, check=True, text=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the peak of a process")
def test_weights_in_a_file_are_in_memory_once(tmp_path):
    few, many = peak(tmp_path / "few.onnx", 2), peak(tmp_path / "many.onnx", 34)
    assert many - few < 32 * (4 << 20) * 1.3
    assert (tmp_path / "few.onnx").stat().st_size > MAPPED
