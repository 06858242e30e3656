"""The meta data section as TVM writes it: a graph of nodes in JSON, tensors as base64 of DLTensor dumps.

`{"root": 1, "nodes": [{"type_key", "attrs" | "keys" and "data"}, …], "b64ndarrays": […], "attrs": {"tvm_version"}}`:
the root is a map from type keys to arrays of entries, and nodes refer to each other, and to tensors, by number.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Mapping
from typing import TypedDict, TypeGuard

import numpy as np

MAGIC = 0xDD5E40F096B4A13F
KINDS = {0: "i", 1: "u", 2: "f"}
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

    Constants are `{"array": values}`, symbolic sizes `{"name": text}`, and others `{"unread": key}`.
    Raises KeyError, IndexError, TypeError, AttributeError, ValueError or `struct.error` if the section is not whole.
    """
    nodes, tensors = section["nodes"], section["b64ndarrays"]
    root = nodes[section["root"]]
    found: dict[str, list[object]] = {}
    for key, at in zip(root["keys"], root["data"], strict=True):
        found[key] = [_entry(nodes[i], tensors) for i in nodes[at]["data"]]
    return found


def _entry(node: TvmNode, tensors: list[str]) -> object:
    match node["type_key"]:
        case "relay.Constant":
            return {"array": tensor(base64.b64decode(tensors[int(node["attrs"]["data"])], validate=True))}
        case "tir.SizeVar" | "tir.Var":
            return {"name": node["attrs"]["name"]}
        case other:
            return {"unread": other}


def tensor(dump: bytes) -> np.ndarray:
    """The array of a DLTensor dump: mark, reserved, device, rank, element type, shape, size, elements."""
    magic, _, _, _, rank, code, bits, lanes = HEAD.unpack_from(dump)
    if magic != MAGIC or code not in KINDS or lanes != 1 or not 0 <= rank <= 64:
        raise ValueError("a tensor is of a kind that does not exist here")
    *shape, size = struct.unpack_from(f"<{rank}qq", dump, HEAD.size)
    dtype = np.dtype(bool) if bits == 1 else np.dtype(f"<{KINDS[code]}{bits // 8}")
    raw = dump[HEAD.size + 8 * rank + 8 :]
    if min(shape, default=0) < 0 or not len(raw) == size == math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{len(raw)} bytes for shape {tuple(shape)} of {dtype}")
    return np.frombuffer(raw, dtype).astype(dtype.newbyteorder("="), copy=False).reshape(shape)


def dump(array: np.ndarray) -> bytes:
    """The DLTensor dump of an array on a CPU; ValueError for data types that it cannot hold."""
    codes = {kind: code for code, kind in KINDS.items()} | {"b": 1}
    if array.dtype.kind not in codes:
        raise ValueError(f"a tensor of {array.dtype} cannot be written")
    bits = 1 if array.dtype == bool else 8 * array.dtype.itemsize
    raw = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    head = HEAD.pack(MAGIC, 0, 1, 0, array.ndim, codes[array.dtype.kind], bits, 1)
    return head + struct.pack(f"<{array.ndim}qq", *array.shape, len(raw)) + raw
