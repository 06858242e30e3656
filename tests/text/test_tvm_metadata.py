"""Programs as TVM prints them: the meta data section of its own JSON is read, damaged ones are refused with a place."""

from __future__ import annotations

import base64
import json
import struct

import numpy as np
import pytest

from relaylab.ir import Constant, TupleGetItem, structural_equal, walk
from relaylab.relay import save_param_dict
from relaylab.support.errors import RelayError
from relaylab.text import parse

ARRAYS = [np.arange(6, dtype=d).reshape(2, 3) for d in ("float32", "float64", "int8", "int64", "uint8", "float16")]
ARRAYS += [np.array([True, False]), np.zeros((0, 2), "float32"), np.array(3.5, "float32")]


def dump(array: np.ndarray) -> str:
    """A DLTensor dump, cut out of saved parameters: behind the header, the name `x` and the count."""
    return base64.b64encode(bytes(save_param_dict({"x": array}))[24 + 9 + 8 :]).decode()


def section(arrays: list[np.ndarray]) -> dict:
    entries = [
        {
            "type_key": "relay.Constant",
            "attrs": {"_checked_type_": "0", "data": str(i), "span": "0", "virtual_device_": "0"},
        }
        for i in range(len(arrays))
    ]
    numbers = list(range(3, 3 + len(arrays)))
    nodes = [
        {"type_key": ""},
        {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
        {"type_key": "Array", "data": numbers},
        *entries,
    ]
    return {"root": 1, "nodes": nodes, "b64ndarrays": [dump(a) for a in arrays], "attrs": {"tvm_version": "0.10.0"}}


def program(meta: object, uses: int) -> str:
    fields = ", ".join(f"meta[relay.Constant][{i}] /* ty=? */" for i in range(uses))
    return f'#[version = "0.0.5"]\ndef @main() {{\n  ({fields},)\n}}\n\n#[metadata]\n{json.dumps(meta, indent=2)}'


def test_constants_that_tvm_wrote() -> None:
    mod = parse(program(section(ARRAYS), len(ARRAYS)))
    found = [n.data.numpy() for n in walk((mod["main"],)) if isinstance(n, Constant)]
    assert len(found) == len(ARRAYS)
    for read, array in zip(sorted(found, key=str), sorted(ARRAYS, key=str)):
        assert read.dtype == array.dtype and np.array_equal(read, array) and read.shape == array.shape
    assert structural_equal(parse(mod.astext()), mod)
    assert not any(isinstance(n, TupleGetItem) for n in walk((mod["main"],)))


def broken(change: object) -> dict:
    meta = section(ARRAYS[:1])
    change(meta)
    return meta


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(root=7),
        lambda m: m.update(nodes={}),
        lambda m: m["nodes"][1].pop("data"),
        lambda m: m["nodes"][1].update(keys=["relay.Constant", "other"]),
        lambda m: m["nodes"].pop(),
        lambda m: m["nodes"][3]["attrs"].update(data="9"),
        lambda m: m["nodes"][3]["attrs"].update(data=None),
        lambda m: m["nodes"][3].update(type_key="relay.attrs.InitOpAttrs"),
        lambda m: m.update(b64ndarrays=["!"]),
        lambda m: m.update(b64ndarrays=["AAAA"]),
        lambda m: m.update(b64ndarrays=[base64.b64encode(b"\xff" * 60).decode()]),
        lambda m: m.update(b64ndarrays=[dump(ARRAYS[0])[:-8]]),
        lambda m: m.update(
            b64ndarrays=[
                base64.b64encode(struct.pack("<QQiiiBBHqq", 0xDD5E40F096B4A13F, 0, 1, 0, 1, 2, 32, 1, -1, 0)).decode()
            ]
        ),
    ],
)
def test_damaged_sections_are_refused_with_a_place(change: object) -> None:
    with pytest.raises(RelayError, match="parse.bad-metadata|parse.unknown-metadata") as error:
        parse(program(broken(change), 1))
    assert "-->" in str(error.value)
