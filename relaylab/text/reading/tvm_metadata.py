"""The meta data section as TVM writes it: a graph of nodes in JSON, tensors as base64 of DLTensor dumps.

`{"root": 1, "nodes": [{"type_key", "attrs" | "keys" and "data"}, …], "b64ndarrays": […], "attrs": {"tvm_version"}}`:
the root is a map from type keys to arrays of entries, and nodes refer to each other, and to tensors, by number.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Mapping
from typing import TypedDict, TypeGuard, cast

import numpy as np

from relaylab.ir.dims import OPERATIONS, AnyDim, Dim, SizeVar, apply_operation

DEEPEST = 200
"""How many expressions of sizes may stand within each other."""
MAGIC = 0xDD5E40F096B4A13F
KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}
HEAD = struct.Struct("<QQiiiBBH")


class TvmNode(TypedDict):
    """A node of the graph, as far as it is read: attributes, or the entries of a map or an array."""

    type_key: str
    attrs: dict[str, str]
    keys: list[str]
    data: list[int]


class TvmSection(TypedDict):
    """The section. Nothing in it has been checked: what is missing or of another kind raises when it is read."""

    root: int
    nodes: list[TvmNode]
    b64ndarrays: list[str]


def is_tvm(section: Mapping[str, object]) -> TypeGuard[TvmSection]:
    """Whether a JSON object is a section that TVM wrote."""
    return {"root", "nodes", "b64ndarrays"} <= section.keys()


def entries(section: TvmSection) -> dict[str, list[object]]:
    """The entries by type key.

    Constants are `{"array": values}`, sizes and their expressions `{"size": dimension}`, and others `{"unread": key}`.
    Raises KeyError, IndexError, TypeError, AttributeError, ValueError or `struct.error` if the section is not whole.
    """
    nodes, tensors = section["nodes"], section["b64ndarrays"]
    root = nodes[section["root"]]
    found: dict[str, list[object]] = {}
    sizes = Sizes(nodes)
    for key, at in zip(root["keys"], root["data"], strict=True):
        found[key] = [_entry(nodes[i], tensors, sizes) for i in nodes[at]["data"]]
    return found


def _entry(node: TvmNode, tensors: list[str], sizes: Sizes) -> object:
    match node["type_key"]:
        case "relay.Constant":
            return {"array": tensor(base64.b64decode(tensors[int(node["attrs"]["data"])], validate=True))}
        case kind if kind in ("tir.SizeVar", "tir.Var", "tir.Cast", *OPERATIONS):
            return {"size": sizes.at(node)}
        case "VirtualDevice":
            return device_entry(node["attrs"], sizes.nodes)
        case other:
            return {"unread": other}


def device_entry(attrs: Mapping[str, str], nodes: list[TvmNode]) -> dict[str, object]:
    """The entry of a device; of its target the kind is read."""
    text: Callable[[str], str] = lambda at: cast("dict[str, str]", nodes[int(at)]).get("repr_str", "")
    target = nodes[int(attrs.get("target", 0))].get("attrs", {}).get("kind")
    kind = None if target is None else text(target)
    numbers = {"device_type": attrs["device_type_int"], "virtual_device_id": attrs["virtual_device_id"]}
    return {**numbers, "target": kind, "memory_scope": text(attrs.get("memory_scope", "0"))}


class Sizes:
    """The sizes among the nodes: each is made once."""

    def __init__(self, nodes: list[TvmNode]):
        self.nodes = nodes
        self.made: dict[int, Dim | int] = {}

    def at(self, node: TvmNode, depth: int = 0) -> Dim | int:
        """The size that a node is; ValueError for what is none."""
        if id(node) not in self.made:
            self.made[id(node)] = self._of(node, depth)
        return self.made[id(node)]

    def _of(self, node: TvmNode, depth: int) -> Dim | int:
        key, attrs = node["type_key"], node["attrs"]
        if depth > DEEPEST:
            raise ValueError("an expression of sizes is too deep, or contains itself")
        part: Callable[[str], Dim | int] = lambda name: self.at(self.nodes[int(attrs[name])], depth + 1)
        match key:
            case "tir.SizeVar" | "tir.Var":
                return SizeVar(attrs["name"])
            case "IntImm":
                return int(attrs["value"])
            case "tir.Any":
                return AnyDim()
            case "tir.Cast":
                return part("value")
            case _ if key in OPERATIONS:
                return apply_operation(key, part("a"), part("b"))
            case _:
                raise ValueError(f"{key} is not read in a size")


def tensor(dump: bytes) -> np.ndarray:
    """The array of a DLTensor dump: mark, reserved, device, rank, element type, shape, size, elements."""
    magic, _, _, _, rank, code, bits, lanes = HEAD.unpack_from(dump)
    if magic != MAGIC or code not in KINDS or lanes != 1 or not 0 <= rank <= 64:
        raise ValueError("a tensor is of a kind that does not exist here")
    *shape, size = struct.unpack_from(f"<{rank}qq", dump, HEAD.size)
    dtype = np.dtype(bool if bits == 1 else f"{KINDS[code]}{bits}").newbyteorder("<")
    raw = dump[HEAD.size + 8 * rank + 8 :]
    if min(shape, default=0) < 0 or not len(raw) == size == math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{len(raw)} bytes for shape {tuple(shape)} of {dtype}")
    return np.frombuffer(raw, dtype).astype(dtype.newbyteorder("="), copy=False).reshape(shape)


def dump(array: np.ndarray) -> bytes:
    """The DLTensor dump of an array on a CPU; ValueError for data types that it cannot hold."""
    codes = {kind: code for code, kind in KINDS.items()} | {"bool": 1}
    kind = array.dtype.name.rstrip("0123456789")
    if kind not in codes:
        raise ValueError(f"a tensor of {array.dtype} cannot be written")
    bits = 1 if array.dtype == bool else 8 * array.dtype.itemsize
    raw = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    head = HEAD.pack(MAGIC, 0, 1, 0, array.ndim, codes[kind], bits, 1)
    return head + struct.pack(f"<{array.ndim}qq", *array.shape, len(raw)) + raw
