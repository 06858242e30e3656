"""Reading ONNX models: protos, bytes and files, their tensors and types. Nothing in a model is executed."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import numpy as np

from relaylab.frontend.onnx.stored import merge_all_but_weights
from relaylab.ir import AnyDim, TensorType
from relaylab.runtime.memory import is_addressable
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError, kind_of
from relaylab.support.memory import map_file

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TensorShapeProto, ValueInfoProto

DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64",
    16: "bfloat16",
}  # fmt: skip
"""TensorProto.DataType by number, as far as Relay has the type."""

FEW_BITS = {21: (4, False), 22: (4, True), 25: (2, False), 26: (2, True)}
"""Bits and sign of the integers that are smaller than a byte, by the number of their type: UINT4, INT4, UINT2, INT2."""

MAPPED = 1 << 20
"""From how many bytes on a file, or a tensor in a file of its own, is not read but mapped."""

_UNREAD = ("doc_string", "metadata_props")
"""Texts that nothing here reads."""

_FIELDS = {
    **dict.fromkeys((1,), "float_data"), **dict.fromkeys((2, 3, 4, 5, 6, 9, 10, 16), "int32_data"), 7: "int64_data",
    11: "double_data", **dict.fromkeys((12, 13), "uint64_data"),
}  # fmt: skip
"""Which field holds the values that are not raw bytes."""


def load_onnx() -> ModuleType:
    """The package `onnx`; RelayError if it is not installed."""
    try:
        import onnx
    except ImportError:
        raise RelayError(
            "ONNX models need the package onnx", code="import.no-onnx", help='pip install "relaylab[onnx]"'
        ) from None
    return onnx


class SourceModel(NamedTuple):
    """A model that was read, the folder in which external data may lie, and weights that the proto lacks: by the names
    of the initializers of its graph, where they lie in the file (or in the bytes that were given).
    """

    proto: ModelProto
    folder: Path | None = None
    weights: Mapping[str, memoryview] = MappingProxyType({})


def read_model(model: object) -> SourceModel:
    """A model from a ModelProto, from its bytes or from a path. What this gave is taken too."""
    if isinstance(model, SourceModel):
        return model
    if _is_model(model):
        proto = cast("ModelProto", model)
        _check_texts(proto, "the model")
        return SourceModel(proto)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _parsed(memoryview(bytes(model)), "the bytes", None)  # others may be written to
    if not isinstance(model, (str, Path)):
        raise RelayTypeError(
            f"from_onnx takes a ModelProto, bytes or a path, not {kind_of(model)}", code="import.model"
        )
    path = Path(model)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = memoryview(_content(file, 0, size) if size >= MAPPED else file.read())
        folder = path.resolve().parent
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RelayValueError(f"cannot read {path}: {why}", code="import.unreadable") from None
    return _parsed(data, str(path), folder)


def _is_model(value: object) -> bool:
    return hasattr(value, "graph") and hasattr(value, "opset_import")


def _parsed(data: memoryview, what: str, folder: Path | None) -> SourceModel:
    """The model in some bytes, if it has a graph and its texts can be read."""
    found = load_onnx().ModelProto()
    try:
        weights = merge_all_but_weights(found, data)
    except Exception:  # what is no message of protobuf: it says why
        found, weights = _parse(bytes(data), what), {}
    if not found.HasField("graph"):
        raise RelayValueError(f"{what}: not an ONNX model: it has no graph", code="import.garbage")
    _check_texts(found, what)
    return SourceModel(found, folder, weights)


def _parse(data: bytes, what: str) -> ModelProto:
    proto = load_onnx().ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception as error:  # google.protobuf.message.DecodeError, whose module moves between releases
        raise RelayValueError(f"{what}: not an ONNX model: {error}", code="import.garbage") from None
    return proto


def _check_texts(proto: ModelProto, what: str) -> None:
    """Refuse names that are not UTF-8: protobuf gives them as bytes."""
    stack: list[Any] = [proto]
    while stack:
        message = stack.pop()
        for entry, value in message.ListFields():
            if entry.type not in (entry.TYPE_STRING, entry.TYPE_MESSAGE) or entry.name in _UNREAD:
                continue
            values = value if not isinstance(value, (str, bytes)) and hasattr(value, "__len__") else [value]
            if entry.type == entry.TYPE_MESSAGE:
                stack += values
            elif bad := [v for v in values if isinstance(v, bytes)]:
                raise RelayValueError(
                    f"{what}: not an ONNX model: the text {bad[0]!r:.60} is not UTF-8", code="import.garbage"
                )


def nodes_below(
    proto: GraphProto | FunctionProto, without: Collection[str] = ()
) -> Iterator[tuple[str, int, NodeProto]]:
    """All nodes of a graph and of the graphs in their attributes: (name of the graph, number, node).

    Graphs in nodes of the operators `without` are left out.
    """
    stack: list[tuple[str, GraphProto | FunctionProto]] = [("the graph", proto)]
    while stack:
        where, graph = stack.pop()
        for number, node in enumerate(graph.node):
            yield where, number, node
            if node.op_type in without:
                continue
            for attribute in node.attribute:
                inner = [attribute.g] if attribute.HasField("g") else []
                stack += [(f"`{attribute.name}` of {node.op_type} {node.name}", g) for g in (*inner, *attribute.graphs)]


def in_order(graph: GraphProto) -> list[tuple[int, NodeProto]]:
    """The nodes with their numbers, each behind those that make what it reads; as they are where they form a cycle.

    ONNX wants files so, but tools append nodes at the end, and engines sort.
    """
    nodes = list(enumerate(graph.node))
    makers = {name: k for k, node in reversed(nodes) for name in node.output if name}
    reads = [{makers.get(name, -1) for n in (node, *_inside(node)) for name in n.input} - {-1, k} for k, node in nodes]
    if all(not before or max(before) < k for k, before in enumerate(reads)):
        return nodes
    readers: dict[int, list[int]] = {}
    for k, before in enumerate(reads):
        for maker in before:
            readers.setdefault(maker, []).append(k)
    ready, order = [k for k, before in enumerate(reads) if not before], list[int]()
    while ready:
        order.append(heappop(ready))
        for k in readers.get(order[-1], ()):
            reads[k].discard(order[-1])
            if not reads[k]:
                heappush(ready, k)
    return [nodes[k] for k in order] if len(order) == len(nodes) else nodes


def _inside(node: NodeProto) -> Iterator[NodeProto]:
    """The nodes of the graphs in a node's attributes."""
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            yield from (inner for _, _, inner in nodes_below(graph))


def inlined(proto: ModelProto) -> ModelProto:
    """The model with the functions that it brings along put where they are called."""
    if not proto.functions:
        return proto
    calls = {(f.domain, f.name): {(n.domain, n.op_type) for _, _, n in nodes_below(f)} for f in proto.functions}
    settled: set[tuple[str, str]] = set()
    while len(settled) < len(calls):
        ready = {name for name, used in calls.items() if name not in settled and used.isdisjoint(set(calls) - settled)}
        if not ready:
            names = ", ".join(sorted(name for _, name in set(calls) - settled))
            raise RelayValueError(f"functions of the model call each other: {names}", code="import.recursion")
        settled |= ready
    from onnx import inliner

    try:
        return inliner.inline_local_functions(proto)
    except Exception as error:  # whatever onnx's own checks raise
        raise RelayValueError(
            f"the functions of the model cannot be inlined: {error}", code="import.functions"
        ) from None


def dtype_of(number: int, what: str) -> str:
    """The data type with that number in ONNX."""
    if number not in DTYPES:
        names = {v: k for k, v in load_onnx().TensorProto.DataType.items()}
        raise RelayValueError(
            f"{what} has the data type {names.get(number, number)}, which Relay has not",
            code="import.dtype",
            help="encode texts as numbers before, and convert the rest" if names.get(number) == "STRING" else "",
        )
    return DTYPES[number]


def type_of(info: ValueInfoProto, shape: Iterable[int | AnyDim] | None = None, dtype: str | None = None) -> TensorType:
    """The type of a ValueInfoProto; unknown dimensions are `Any`, `shape` and `dtype` override what it says."""
    what = f"the input `{info.name}`"
    kind = info.type.optional_type.elem_type if info.type.HasField("optional_type") else info.type
    if info.HasField("type") and not kind.HasField("tensor_type"):
        raise RelayValueError(
            f"{what} is not a tensor", code="import.input", help="sequences and maps are not imported as inputs"
        )
    tensor = kind.tensor_type  # what may be left out is there
    found = dtype or (dtype_of(tensor.elem_type, what) if tensor.elem_type else "float32")
    if shape is not None:
        return TensorType(tuple(shape), found)
    if not tensor.HasField("shape"):
        raise RelayValueError(
            f"{what} has no shape", code="import.input", help=f"give one: shape={{{info.name!r}: (…)}}"
        )
    return TensorType([_dim(d, what) for d in tensor.shape.dim], found)


def _dim(dim: TensorShapeProto.Dimension, what: str) -> int | AnyDim:
    """Some exporters write -1 for what is open."""
    if not dim.HasField("dim_value") or dim.dim_value == -1:
        return AnyDim()
    if dim.dim_value < 0:
        raise RelayValueError(
            f"{what} has the dimension {dim.dim_value}", code="import.input", help="give its shape: shape={name: (…)}"
        )
    return int(dim.dim_value)


def array_of(
    tensor: TensorProto, what: str, folder: Path | None = None, content: memoryview | None = None
) -> np.ndarray:
    """The values of a TensorProto, `content` being its raw data if it has it elsewhere; `RelayValueError` if its parts
    do not fit each other.
    """
    dims = [int(d) for d in tensor.dims]
    if any(d < 0 for d in dims) or not is_addressable(tuple(dims), "float64"):
        raise RelayValueError(f"{what} has the shape {dims}", code="import.tensor")
    dtype = np.dtype(dtype_of(tensor.data_type, what)).newbyteorder("<")
    if tensor.data_location == 1:
        values = np.frombuffer(_external(tensor, what, folder, math.prod(dims) * dtype.itemsize), dtype)
    elif content is not None or tensor.HasField("raw_data"):
        data = tensor.raw_data if content is None else content  # once: each time it is another copy
        if len(data) != math.prod(dims) * dtype.itemsize:
            raise RelayValueError(f"{what} has {len(data)} bytes for the shape {dims}", code="import.tensor")
        values = np.frombuffer(data, dtype)
    else:
        values = _listed(tensor, dtype)
    if values.size != math.prod(dims):
        raise RelayValueError(f"{what} has {values.size} values for the shape {dims}", code="import.tensor")
    return values.astype(dtype.newbyteorder("="), copy=False).reshape(dims)  # of raw bytes a view, which is read-only


def few_bits(
    tensor: TensorProto, what: str, folder: Path | None = None, content: memoryview | None = None
) -> np.ndarray:
    """The integers of 2 or 4 bits of a TensorProto, as int8."""
    dims, (bits, signed) = [int(d) for d in tensor.dims], FEW_BITS[tensor.data_type]
    if any(d < 0 for d in dims) or not is_addressable(tuple(dims), "int8"):
        raise RelayValueError(f"{what} has the shape {dims}", code="import.tensor")
    count = math.prod(dims)
    size = -(-count * bits // 8)
    if tensor.data_location == 1:
        data = np.frombuffer(_external(tensor, what, folder, size), "uint8")
    elif content is not None or tensor.HasField("raw_data"):
        data = np.frombuffer(tensor.raw_data if content is None else content, "uint8")
    else:
        data = np.array(tensor.int32_data, "int64").astype("uint8")
    if data.size != size:
        raise RelayValueError(f"{what} has {data.size} bytes for the shape {dims}", code="import.tensor")
    values = unpacked(data, bits)[:count].reshape(dims).astype("int8")
    return (values ^ (1 << bits - 1)) - (1 << bits - 1) if signed else values


def unpacked(data: np.ndarray, bits: int) -> np.ndarray:
    """Bytes as numbers of a few bits along the last axis, the lowest bits first: uint8."""
    each = np.unpackbits(data, axis=-1, bitorder="little")
    whole = each[..., : each.shape[-1] // bits * bits].reshape(*data.shape[:-1], -1, bits)
    return (whole << np.arange(bits, dtype="uint8")).sum(-1, dtype="uint8")


def _listed(tensor: TensorProto, dtype: np.dtype) -> np.ndarray:
    """Values that are written one by one; floats of 16 bits as those of an integer."""
    values = np.array(getattr(tensor, _FIELDS[tensor.data_type]))
    bits = "float" in dtype.name and dtype.itemsize == 2
    return values.astype("uint16").view(dtype) if bits else values.astype(dtype)


def _content(file: BinaryIO, offset: int, length: int) -> bytes | memoryview:
    """A part of a file: many bytes are its own pages, which take memory when they are looked at, and may go again."""
    if length >= MAPPED:
        try:
            return map_file(file, offset, length)
        except (OSError, ValueError):
            pass  # a file system without it
    file.seek(offset)
    return file.read(length)


def _external(tensor: TensorProto, what: str, folder: Path | None, size: int) -> bytes | memoryview:
    """Bytes from a file beside the model, never from elsewhere."""
    given = {e.key: e.value for e in tensor.external_data}
    if folder is None:
        raise RelayValueError(
            f"{what} lies in another file",
            code="import.external",
            help="give the path of the model instead of its contents",
        )
    try:
        path = (folder / given["location"]).resolve()
        offset, length = int(given.get("offset", 0)), int(given.get("length", size))
    except (KeyError, ValueError, OSError, RuntimeError) as error:  # links in a circle among them
        raise RelayValueError(f"{what} does not say where its data is: {error}", code="import.external") from None
    if folder not in path.parents or offset < 0 or length != size:
        raise RelayValueError(
            f"{what} is to be read from {given['location']!r}, at {offset}, {length} bytes",
            code="import.external",
            help="only files in the model's own folder are read, and as many bytes as the tensor has",
        )
    try:
        if path.is_fifo():  # it would be waited for
            raise RelayValueError(f"{what}: {path} is no file", code="import.external")
        with path.open("rb") as file:
            if offset + length > os.fstat(file.fileno()).st_size:  # before memory is taken for it
                raise RelayValueError(f"{what}: {path} has no {length} bytes at {offset}", code="import.external")
            return _content(file, offset, length)
    except OSError as error:
        raise RelayValueError(f"{what}: cannot read {path}: {error.strerror}", code="import.external") from None
