"""The meta data section: what programs hold that text has no words for, above all large constants.

A JSON object behind `#[metadata]`: `{"version": 1, "<type key>": [entry, …]}`; `meta[key][i]` in
the text stands for entry `i`. A constant is `{"dtype", "shape", "data"}` with `data` the base64
of its elements, little-endian, in row-major order. Sizes stand in the text; those that it
calls by another name have that in an entry (`written`). Earlier releases wrote entries of all: an expression
is `{"a", "b"}`, numbers, or references to others. A section that TVM wrote is read too.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from relaylab.ir.attrs import Attrs, DictAttrs
from relaylab.ir.base import VirtualDevice
from relaylab.ir.dims import OPERATIONS, Dim, SizeVar, SymbolicDim, apply_operation
from relaylab.ir.expr import Constant
from relaylab.ir.op import OPERATORS
from relaylab.ir.types import dtype_name
from relaylab.support.errors import RelayError
from relaylab.support.source import Span
from relaylab.text.reading.devices import DEVICE, decoded, encoded
from relaylab.text.reading.size_names import SizeNames
from relaylab.text.reading.tvm_metadata import DEEPEST, is_tvm
from relaylab.text.reading.tvm_metadata import entries as tvm_entries
from relaylab.text.scalars import MOST_DIGITS

if TYPE_CHECKING:
    from relaylab.text.reading.reader import TokenReader

VERSION = 1
CONSTANT, SIZE_VAR = "relay.Constant", "tir.SizeVar"
_SIZES = (SIZE_VAR, "tir.Var")


Storable = Constant | SymbolicDim | Attrs | VirtualDevice


def listed(value: object) -> Sequence[object] | None:
    """The values in a list or a tuple; None for anything else."""
    return cast("Sequence[object]", value) if isinstance(value, (tuple, list)) else None


def commented(text: str) -> str:
    """A text as it may stand in a comment."""
    return text.replace("*/", "* /").replace("/*", "/ *")


class MetaWriter:
    """Collects entries while a program is printed; only if they are `stored` do devices stand among them.

    Sizes have none: they are written by their names (`batch`, `2 * seq`).
    """

    def __init__(self, stored: bool = False) -> None:
        self.stored = stored
        self.sizes = SizeNames()
        self.entries: dict[str, list[Storable]] = {}
        self._index: dict[int, str] = {}
        self._devices: dict[VirtualDevice, VirtualDevice] = {}

    def reference(self, key: str, value: Storable) -> str:
        """`meta[key][i]`: the same for the same object."""
        known = self._index.get(id(value))  # `entries` keeps the value, so its id, alive
        if known is None:
            entries = self.entries.setdefault(key, [])
            known = self._index[id(value)] = f"meta[{key}][{len(entries)}]"
            entries.append(value)
        return known

    def device(self, device: VirtualDevice) -> str:
        """A device: what is known of it, or the reference of its entry."""
        return self.reference(DEVICE, self._devices.setdefault(device, device)) if self.stored else repr(device)

    def section(self) -> str:
        """The section as text, one line for each entry; empty if there are no entries."""
        renamed = [{"name": s.name, "written": name} for s, name in self.sizes.known.items() if s.name != name]
        if not self.entries and not renamed:
            return ""
        parts = [f'{{\n  "version": {VERSION}']
        for key, values in self.entries.items():
            lines = ",\n    ".join(json.dumps(_encode(v)) for v in values)
            parts.append(f"  {json.dumps(key)}: [\n    {lines}\n  ]")
        if renamed:
            parts.append(f"  {json.dumps(SIZE_VAR)}: {json.dumps(renamed)}")
        return "#[metadata]\n" + ",\n".join(parts) + "\n}\n"


def _encode(value: Storable) -> dict[str, object]:
    if isinstance(value, Constant):
        array = np.ascontiguousarray(value.data.numpy())
        raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        return {"dtype": array.dtype.name, "shape": value.data.shape, "data": base64.b64encode(raw).decode()}
    if isinstance(value, VirtualDevice):
        return encoded(value)
    assert isinstance(value, Attrs)
    return {"op": _op_name(value), "attrs": {k: _plain(v) for k, v in value.items()}}


def _op_name(attrs: Attrs) -> str:
    """The operator that a record belongs to; empty for others (the op room gives its records a name)."""
    return getattr(attrs, "op_name", "")


def _plain(value: object) -> object:
    """An attribute value as JSON."""
    values = listed(value)
    if values is not None:
        return [_plain(v) for v in values]
    if isinstance(value, DictAttrs):
        return {k: _plain(v) for k, v in value.items()}
    return value


def is_storable(attrs: Attrs) -> bool:
    """Whether the record can be an entry."""
    return bool(_op_name(attrs)) and all(_is_plain(v) for _, v in attrs.items())


def _is_plain(value: object) -> bool:
    values = listed(value)
    if values is not None:
        return all(map(_is_plain, values))
    if isinstance(value, DictAttrs):
        return all(map(_is_plain, value.values()))
    return value is None or isinstance(value, (bool, int, float, str))


def slot_of(reference: str) -> tuple[str, int]:
    """The kind and the number in `meta[key][i]`."""
    key, _, index = reference[len("meta[") : -1].partition("][")
    return key, int(index.lstrip("0")[:MOST_DIGITS] or "0")


class MetaTable:
    """The entries that a text refers to; each is decoded when it is first asked for."""

    def __init__(
        self, stored: Mapping[str, Sequence[object]], given: Mapping[str, Sequence[object]], section: bool = True
    ):
        self._section = section
        self._stored = {key: list(values) for key, values in stored.items()}
        self._ready: dict[tuple[str, int], object] = {}
        for key, values in given.items():
            start = len(self._stored.setdefault(key, []))
            self._ready.update(((key, start + k), value) for k, value in enumerate(values))
            self._stored[key].extend(values)

    @classmethod
    def read(cls, section: str, given: Mapping[str, Sequence[object]], complain: Callable[[str], None]) -> MetaTable:
        """The table of a section's text; `given` objects are appended to each key's entries."""
        if not section.strip():
            return cls({}, given, section=False)
        try:
            stored: object = json.loads(section)
        except (ValueError, RecursionError) as error:
            complain(f"the metadata section is not JSON: {error}")
            return cls({}, given)
        if not isinstance(stored, dict):
            complain("the metadata section is not a JSON object")
            return cls({}, given)
        entries = cast("dict[str, object]", stored)
        if is_tvm(entries):
            try:
                return cls(tvm_entries(entries), given)
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, struct.error) as error:
                complain(f"the metadata section that TVM wrote is damaged: {error}")
                return cls({}, given)
        if entries.get("version") != VERSION:
            complain(f"the metadata section is not of version {VERSION}")
            return cls({}, given)
        lists = {key: listed(values) for key, values in entries.items()}
        return cls({key: values for key, values in lists.items() if values is not None}, given)

    def size_name(self, written: str) -> str:
        """The name of a size that the text calls by another, as its own is no word, or that of two."""
        entries = (cast("dict[str, object]", e) for e in self._stored.get(SIZE_VAR, ()) if isinstance(e, dict))
        return next((str(e.get("name", written)) for e in entries if e.get("written") == written), written)

    def holds(self, key: str) -> bool:
        """Whether there is any data of a kind, so that a missing entry is a mistake."""
        return self._section or key in self._stored

    def lookup(self, p: TokenReader, token: int) -> object:
        """What the `meta[key][i]` at a token stands for; a missing or broken entry is an error there."""
        key, _ = slot = slot_of(p.texts[token])
        if slot not in self._ready:
            if (key in _SIZES or key in OPERATIONS) and not self.holds(key):
                name = "n" if key in _SIZES else key.rpartition(".")[2].lower()
                return self._ready.setdefault(slot, SizeVar(f"{name}{slot[1]}"))
            entries = self._stored.get(key, [])
            if slot[1] >= len(entries):
                help = "print the program with its meta data: `astext()`, not `str()`"
                raise p.stop("parse.unknown-metadata", f"the text has no metadata entry {p.texts[token]}", token, help)
            try:
                self._ready[slot] = self._entry(slot, p.span(token))
            except (LookupError, TypeError, ValueError, ArithmeticError, RelayError) as error:
                message = f"the metadata entry {p.texts[token]} is damaged: {error}"
                raise p.stop("parse.bad-metadata", message, token) from None
        return self._ready[slot]

    def _entry(self, slot: tuple[str, int], span: Span | None, depth: int = 0) -> object:
        """An entry decoded; an expression of sizes with what it is made of."""
        key, stored = slot[0], self._stored[slot[0]][slot[1]]
        operands = cast("dict[str, object]", stored)
        if key not in OPERATIONS or not isinstance(stored, dict) or "a" not in operands:
            return _decode(key, operands, span)
        if depth > DEEPEST:
            raise ValueError("it is made of too many others, or of itself")
        return apply_operation(key, *(self._operand(operands[n], span, depth + 1) for n in "ab"))

    def _operand(self, given: object, span: Span | None, depth: int) -> Dim | int:
        if isinstance(given, int):
            return given
        slot = slot_of(str(given))
        if slot not in self._ready:
            self._ready[slot] = self._entry(slot, span, depth)
        value = self._ready[slot]
        if not isinstance(value, (SymbolicDim, int)):
            raise ValueError(f"{given} is no size")
        return value


def _decode(key: str, stored: object, span: Span | None) -> object:
    if not isinstance(stored, dict):
        raise TypeError("it is not a JSON object")
    entry = cast("dict[str, Any]", stored)
    if "unread" in entry:
        raise ValueError(f"of the sections that TVM writes, constants and sizes are read, not {entry['unread']}")
    if "size" in entry:
        return entry["size"]
    if key == CONSTANT and "array" in entry:
        return Constant(entry["array"], span=span)
    if key == CONSTANT:
        raw = base64.b64decode(entry["data"], validate=True)
        dtype, shape = np.dtype(dtype_name(str(entry["dtype"]))), tuple(entry["shape"])
        if len(raw) != dtype.itemsize * math.prod(shape):
            raise ValueError(f"{len(raw)} bytes for shape {shape} of {dtype}")
        array = np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)
        return Constant(array, span=span)
    if key in _SIZES:
        return SizeVar(str(entry["name"]))
    if key == DEVICE:
        return decoded(entry)
    return OPERATORS.lookup(entry["op"]).definition(**entry["attrs"])
