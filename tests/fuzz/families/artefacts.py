"""Files that are damaged, or whose digests are right and whose content is not: read, or refused with a RelayError.

What is accepted although its bytes were changed must mean what it meant.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
import zlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from fuzz.choices import Choices
from fuzz.families._mutations import changed_bytes, changed_json
from fuzz.search import Finding, family

from relaylab import relay, study
from relaylab.codegen.llvm.cache import ObjectCache
from relaylab.codegen.llvm.cache_file import NAME
from relaylab.codegen.vm import VirtualMachine
from relaylab.frontend.onnx import from_onnx
from relaylab.runtime import cpu, graph_executor, load_module, load_param_dict, save_param_dict
from relaylab.runtime.archive import ArchiveReader, write
from relaylab.support.errors import RelayError

X = np.linspace(-1, 1, 12, dtype="float32").reshape(2, 6)
PARAMS = {"w": np.arange(24, dtype="float32").reshape(4, 6), "b": np.array(3, "int64"), "größe": np.zeros((0, 2), bool)}


@cache
def folder() -> Path:
    """Where this process has its files; it goes with the process."""
    home = tempfile.TemporaryDirectory(prefix="relaylab-fuzz-")
    _kept.append(home)
    return Path(home.name)


_kept: list[Any] = []


def module() -> Any:
    x, w, b = relay.var("x", shape=(2, 6)), relay.var("w", shape=(4, 6)), relay.var("b", shape=(4,))
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, w, units=None), b))
    return relay.IRModule.from_expr(relay.Function([x, w, b], relay.Tuple([y, relay.nn.softmax(relay.tanh(y)), x])))


@cache
def library() -> tuple[bytes, dict[str, bytes], list[np.ndarray]]:
    """A library: its bytes, its sections, what it computes of X."""
    params = {"w": PARAMS["w"], "b": np.ones(4, "float32")}
    path = folder() / "whole.so"
    lib = relay.build(module(), "llvm", params=params)
    lib.export_library(path)
    reader = ArchiveReader(path)
    return path.read_bytes(), {n: reader.read(n).tobytes() for n in reader.sections}, [*map(np.array, lib.run(x=X))]


@cache
def program() -> tuple[bytes, dict[str, bytes], list[np.ndarray]]:
    """A saved program of the virtual machine: its bytes, its sections, what it computes of X."""
    exe = relay.vm.compile(relay.transform.BindParams({"w": PARAMS["w"], "b": np.ones(4, "float32")})(module()), "llvm")
    path = folder() / "program.rlab"
    exe.mod.export_library(path)
    reader = ArchiveReader(path)
    outputs = [value.numpy() for value in VirtualMachine(exe).invoke("main", X)]
    return path.read_bytes(), {n: reader.read(n).tobytes() for n in reader.sections}, outputs


@cache
def recording() -> tuple[bytes, dict[str, bytes]]:
    """A recorded run: its bytes, its entries."""
    passes = ["SimplifyInference", "FoldConstant", "FuseOps"]
    found = study.explore(study.Program("net", module()), 3, [study.pass_of(p) for p in passes])
    path = study.record(found, folder() / "whole.rlab", {"here": {"before": 0}})
    with zipfile.ZipFile(path) as archive:
        return path.read_bytes(), {n: archive.read(n) for n in archive.namelist()}


@cache
def onnx_models() -> list[bytes]:
    """Models with tensors in all their forms; none without the package."""
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError:
        return []
    node, value = helper.make_node, helper.make_tensor_value_info
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(2, "float32"), "s"), numpy_helper.from_array(np.array([1, 3]), "s_at"), [4, 4]
    )
    listed = helper.make_tensor("l", onnx.TensorProto.FLOAT, [4], [1.0, 2.0, 3.0, 4.0])
    raw = [numpy_helper.from_array(a, n) for n, a in (("w", PARAMS["w"].T), ("shape", np.array([4, 2])))]
    nodes = [
        node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "l"], ["a"]), node("MatMul", ["a", "s"], ["q"]),
        node("Reshape", ["q", "shape"], ["r"]), node("Softmax", ["r"], ["y"], axis=-1),
        node("Constant", [], ["c"], value=listed), node("Split", ["y"], ["z0", "z1"], axis=0, num_outputs=2),
        node("Resize", ["x4", "", "scales"], ["big"], mode="cubic", cubic_coeff_a=-0.5),
        node("ConstantOfShape", ["shape"], ["ones"]), node("Slice", ["y", "from", "to"], ["part"]),
    ]  # fmt: skip
    more = {"scales": np.array([1, 1, 2, 2], "float32"), "from": np.array([0]), "to": np.array([3])}
    graph = helper.make_graph(
        nodes, "main",
        [value("x", 1, [2, 6]), value("x4", 1, [1, 1, 3, 3])],
        [helper.make_empty_tensor_value_info(n) for n in ("z0", "z1", "big", "ones", "part", "c")],
        [*raw, listed, *(numpy_helper.from_array(a, n) for n, a in more.items())], sparse_initializer=[sparse],
    )  # fmt: skip
    return [helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()]


@dataclass(frozen=True)
class Case:
    """A file, or the parts of one, and how it is read."""

    kind: str
    data: bytes = b""
    parts: dict[str, bytes] = field(default_factory=dict)
    deep: bool = False


def dumped(data: Any) -> bytes:
    return json.dumps(data).encode()


def resealed(draw: Choices) -> Case:
    """A library with other content and right digests."""
    parts = dict(library()[1])
    which = draw.choice(("manifest", "manifest", "manifest", "graph", "stages", "bytes"))
    if which == "manifest":
        parts["manifest"] = dumped(changed_json(draw, json.loads(parts["manifest"])))
    elif which == "graph":
        manifest = json.loads(parts["manifest"])
        manifest["graph"] = json.dumps(changed_json(draw, json.loads(manifest["graph"])))
        parts["manifest"] = dumped(manifest)
    elif which == "stages":
        text = zlib.decompress(parts["stages"])
        parts["stages"] = zlib.compress(
            dumped(changed_json(draw, json.loads(text))) if draw.chance(0.5) else changed_bytes(draw, text)
        )
    else:
        name = draw.choice(("manifest", "stages", "params", "constants"))  # the code itself is trusted
        parts[name] = changed_bytes(draw, parts[name])
    return Case("re-sealed library", parts=parts, deep=draw.chance(0.3))


def resealed_program(draw: Choices) -> Case:
    """A saved program with another table of contents, or machine code that is cut, and right digests."""
    parts = dict(program()[1])
    if draw.chance(0.7):
        parts["vm"] = dumped(changed_json(draw, json.loads(parts["vm"])))
    else:
        parts["vm-objects"] = parts["vm-objects"][: draw.randrange(len(parts["vm-objects"]))]
    return Case("re-sealed program", parts=parts)


def repacked(draw: Choices) -> Case:
    """A recorded run with other entries, well packed."""
    parts = dict(recording()[1])
    which = draw.choice(("run.json", "trace.jsonl", "stages/000.relay", "without", "more"))
    if which == "run.json":
        parts[which] = dumped(changed_json(draw, json.loads(parts[which])))
    elif which == "trace.jsonl":
        lines = parts[which].splitlines() or [b"{}"]
        at = draw.randrange(len(lines))
        lines[at] = dumped(changed_json(draw, json.loads(lines[at])))
        parts[which] = b"\n".join(lines)
    elif which == "without":
        del parts[draw.choice(sorted(parts))]
    elif which == "more":
        parts[draw.choice(("stages/9.relay", "stages/000001.relay", "../x", "stages/99999999999.relay"))] = b"x"
    else:
        parts[which] = changed_bytes(draw, parts[which])
    return Case("repacked run", parts=parts, deep=draw.chance(0.3))


def drawn(draw: Choices) -> Case:
    kind = draw.choice(KINDS)
    if kind == "library":
        return Case(kind, changed_bytes(draw, library()[0]))
    if kind == "re-sealed library":
        return resealed(draw)
    if kind == "program":
        return Case(kind, changed_bytes(draw, program()[0]))
    if kind == "re-sealed program":
        return resealed_program(draw)
    if kind == "run":
        return Case(kind, changed_bytes(draw, recording()[0]), deep=draw.chance(0.3))
    if kind == "repacked run":
        return repacked(draw)
    if kind == "graph":
        graph = json.loads(library()[1]["manifest"])["graph"]
        changed = (
            changed_bytes(draw, graph.encode()) if draw.chance(0.5) else dumped(changed_json(draw, json.loads(graph)))
        )
        return Case(kind, changed)
    if kind == "onnx":
        return Case(kind, changed_bytes(draw, draw.choice(onnx_models() or [b"none"])))
    return Case(kind, changed_bytes(draw, bytes(save_param_dict(PARAMS)) if kind == "params" else entry()))


KINDS = (
    "params",
    "params",
    "library",
    "re-sealed library",
    "re-sealed library",
    "run",
    "repacked run",
    "graph",
    "onnx",
    "entry",
    "program",
    "re-sealed program",
)


@cache
def entry() -> bytes:
    """An entry of the cache of kernels."""
    cache_ = ObjectCache(folder() / "cache")
    cache_.put("key", b"object code" * 9)
    return (folder() / "cache" / NAME).read_bytes()


def same_numbers(lib: Any) -> None:
    for got, want in zip(lib.run(x=X), library()[2]):
        if not np.array_equal(got, want):
            raise Finding("a damaged library computes something else", f"{got} instead of {want}")


def read_library(case: Case) -> None:
    path = folder() / "net.so"
    path.write_bytes(case.data)
    lib = load_module(path)
    same_numbers(lib)


def read_resealed(case: Case) -> None:
    path = folder() / "net.so"
    write(path, dict(case.parts))
    lib = load_module(path)
    for value in lib.get_params().values():
        value.numpy().sum()
    str(lib), lib.kernels(), lib.summary()
    if case.deep:
        lib["default"](cpu(0))  # all memory is made and bound; its code is not run
        graph_executor.GraphModule(lib["default"](cpu(0)))


def read_program(case: Case) -> None:
    path = folder() / "read.rlab"
    write(path, dict(case.parts)) if case.parts else path.write_bytes(case.data)
    found = load_module(path)
    for got, want in zip(VirtualMachine(found).invoke("main", X), program()[2]):
        if not np.array_equal(got.numpy(), want):
            raise Finding("a damaged program computes something else", f"{got} instead of {want}")


def read_run(case: Case) -> None:
    path = folder() / "run.rlab"
    if case.parts:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in case.parts.items():
                archive.writestr(name, data)
    else:
        path.write_bytes(case.data)
    found = study.reopen(path)
    dict(found.views)
    if case.deep:
        study.compare_recordings(found, found)
    found.module(0)


def read_graph(case: Case) -> None:
    text = case.data.decode("utf-8", "surrogateescape")
    lib = load_module(folder() / "whole.so") if library() else None
    made = graph_executor.create(text, lib, cpu(0))
    made.run(x=X)


def read_entry(case: Case) -> None:
    path = folder() / "cache" / NAME
    path.write_bytes(case.data)
    path.chmod(0o600)
    found = ObjectCache(path.parent).get("key")
    if found not in (None, b"object code" * 9):
        raise Finding("a damaged entry is taken", f"{found!r}")


def read_params(case: Case) -> None:
    found = load_param_dict(case.data)
    if not load_param_dict(bytes(save_param_dict(found))).keys() == found.keys():
        raise Finding("parameters change by saving", f"{list(found)}")


READERS = {
    "library": read_library, "re-sealed library": read_resealed, "program": read_program,
    "re-sealed program": read_program, "run": read_run, "repacked run": read_run, "graph": read_graph,
    "entry": read_entry, "params": read_params, "onnx": lambda case: from_onnx(case.data),
}  # fmt: skip


@family(
    "artefacts",
    "damaged and forged libraries, saved programs, recorded runs, parameters, graphs, ONNX models, cache entries",
)
class Artefacts:
    def case(self, draw: Choices) -> Case:
        return drawn(draw)

    def run(self, case: Case) -> str:
        try:
            READERS[case.kind](case)
        except RelayError as error:
            if not error.code or error.code == "error" or not error.message:
                raise Finding("an error without a code", repr(error)) from None
            return f"{case.kind}, refused {error.code}"
        return f"{case.kind}, read"
