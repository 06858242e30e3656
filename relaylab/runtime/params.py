"""Parameters to bytes and back: the binary format of `relay.save_param_dict` (names, then DLTensor dumps)."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from relaylab.runtime.memory import MAX_RANK, is_addressable
from relaylab.runtime.ndarray import DTYPES, NDArray, array, as_numpy
from relaylab.support.dtypes import BFLOAT16
from relaylab.support.errors import RelayError, RelayTypeError, is_a, shown
from relaylab.support.memory import check_files, files_under

LIST_MAGIC = 0xF7E58D4F05049CB7
TENSOR_MAGIC = 0xDD5E40F096B4A13F
CODES = {"i": 0, "u": 1, "f": 2, "b": 1, BFLOAT16.kind: 4}
KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}
MAX_NAME = 1 << 16


class ParameterError(RelayError, ValueError):
    """Bytes that are not saved parameters."""


def save_param_dict(params: Mapping[str, object]) -> bytearray:
    """The parameters as bytes; values are NDArrays, numpy arrays or nested lists."""
    if not is_a(params, Mapping):
        raise RelayTypeError(f"parameters are a dict, not {type(params).__name__}", code="runtime.params")
    out = bytearray(struct.pack("<QQQ", LIST_MAGIC, 0, len(params)))
    for name in params:
        text = _encoded(name)
        out += struct.pack("<Q", len(text)) + text
    out += struct.pack("<Q", len(params))
    for value in params.values():
        _save_tensor(out, as_numpy(value))
    return out


def _encoded(name: object) -> bytes:
    """The name of a parameter as it is written; RelayTypeError if it could not be read back."""
    if is_a(name, str):
        try:
            if len(text := str(name).encode()) <= MAX_NAME:
                return text
        except UnicodeEncodeError:  # half of a surrogate pair
            pass
    raise RelayTypeError(
        f"the name of a parameter is a text of at most {MAX_NAME} bytes, not {shown(name)}",
        code="runtime.params",
        help="name each by a str",
    )


def load_param_dict(data: bytes | bytearray | memoryview) -> dict[str, NDArray]:
    """The parameters in saved bytes; ParameterError names what is wrong with damaged ones."""
    if not is_a(data, bytes, bytearray, memoryview):
        raise RelayTypeError(
            f"saved parameters are bytes, not {type(data).__name__}",
            code="runtime.params",
            help='open the file with open(path, "rb").read()',
        )
    reader = _ByteReader(memoryview(data).cast("B"))
    if reader.number("<Q", "the header") != LIST_MAGIC:
        raise _damaged("these bytes are not saved parameters", 0)
    reader.number("<Q", "the header")
    names = [reader.name() for _ in range(reader.count("names", 8))]
    count = reader.count("arrays", 40)
    if count != len(names):
        raise _damaged(f"{len(names)} names but {count} arrays", reader.at)
    if len(set(names)) != len(names):
        raise _damaged("a name occurs twice", reader.at)
    params = {name: _load_tensor(reader, name) for name in names}
    if reader.at != len(reader.data):
        raise _damaged(f"{len(reader.data) - reader.at} bytes follow the last array", reader.at)
    return params


def save_params_to_file(params: Mapping[str, object], path: str) -> None:
    """`save_param_dict` into a file."""
    with open(path, "wb") as file:
        file.write(save_param_dict(params))


def _save_tensor(out: bytearray, values: np.ndarray) -> None:
    check_files(files_under([values]))
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).reshape(values.shape)
    bits = (
        1 if values.dtype.kind == "b" else values.dtype.itemsize * 8
    )  # TVM's convention: bool is an unsigned of one bit
    out += struct.pack("<QQiiiBBH", TENSOR_MAGIC, 0, 1, 0, values.ndim, CODES[values.dtype.kind], bits, 1)
    out += struct.pack(f"<{values.ndim}qq", *values.shape, values.nbytes)
    out += values.tobytes()


def _load_tensor(reader: _ByteReader, name: str) -> NDArray:
    what = f"array `{name}`"
    if reader.number("<Q", what) != TENSOR_MAGIC:
        raise _damaged(f"{what} does not start with the mark of an array", reader.at - 8)
    reader.number("<Q", what)
    reader.take(8, what)
    rank = reader.number("<i", what)
    if not 0 <= rank <= MAX_RANK:
        raise _damaged(f"{what} claims {rank} dimensions", reader.at - 4)
    dtype = _dtype(reader, what)
    shape = tuple(reader.number("<q", what) for _ in range(rank))
    nbytes = reader.number("<q", what)
    possible = all(extent >= 0 for extent in shape) and is_addressable(shape, dtype)
    if not possible or nbytes != math.prod(shape) * dtype.itemsize:
        raise _damaged(f"{what} of shape {shape} and dtype {dtype.name} claims {nbytes} bytes", reader.at - 8)
    values = np.frombuffer(reader.take(nbytes, what), dtype).reshape(shape)
    return array(values.astype(bool) if dtype.name == "bool" else values)


def _dtype(reader: _ByteReader, what: str) -> np.dtype:
    code, bits, lanes = struct.unpack("<BBH", reader.take(4, what))
    kind = "bool" if (code, bits) == (1, 1) else f"{KINDS.get(code, '?')}{bits}"
    if kind not in DTYPES or lanes != 1:
        raise _damaged(
            f"{what} has an element type that does not exist here (code {code}, {bits} bits, {lanes} lanes)",
            reader.at - 4,
        )
    return np.dtype(kind).newbyteorder("<") if kind != "bool" else np.dtype(bool)


@dataclass(slots=True)
class _ByteReader:
    """A place in the bytes; never reads past their end."""

    data: memoryview
    at: int = 0

    def take(self, size: int, what: str) -> memoryview:
        if size > len(self.data) - self.at:
            raise _damaged(f"the bytes end within {what}", len(self.data))
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, layout: str, what: str) -> int:
        return struct.unpack(layout, self.take(struct.calcsize(layout), what))[0]

    def count(self, what: str, least: int) -> int:
        """A number of things that take at least `least` bytes each: bounded by what is left."""
        count = self.number("<Q", f"the number of {what}")
        if count * least > len(self.data) - self.at:
            raise _damaged(f"{count} {what} cannot fit into the {len(self.data) - self.at} bytes left", self.at - 8)
        return count

    def name(self) -> str:
        size = self.number("<Q", "a name")
        if size > MAX_NAME:
            raise _damaged(f"a name claims {size} bytes", self.at - 8)
        try:
            return bytes(self.take(size, "a name")).decode()
        except UnicodeDecodeError:
            raise _damaged("a name is not UTF-8", self.at - size) from None


def _damaged(message: str, at: int) -> ParameterError:
    return ParameterError(
        message,
        code="runtime.bad-params",
        place=f"  --> byte {at}",
        help="the file is damaged, cut short or of another kind: save it again with relay.save_param_dict",
    )
