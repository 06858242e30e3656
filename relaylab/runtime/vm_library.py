"""The library of an executable of the virtual machine: what its kernels are compiled for, their names and their code.

Machine code lies in the file as entries of the compiler's cache, each under what it follows from (the text of the
kernel, the processor, the compiler): where something is another, nothing is found, and it is compiled anew.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypedDict

import numpy as np

from relaylab.runtime.archive import ArchiveReader, write
from relaylab.runtime.module import READERS, Module
from relaylab.support.checked import checked
from relaylab.support.schema import read, read_json

SECTION, CODE, OBJECTS = "vm", "vm-code", "vm-objects"
_ENTRY = struct.Struct("<32sQ")
"""A key and how many bytes come after it."""


class _Kept(TypedDict):
    """What the file says."""

    target: str
    kernels: list[str]


class VMLibrary(Module):
    """The target and the kernels of an executable, its `code` if it is the whole one (`exe.mod`), and the machine code
    that it was made from (`objects`).
    """

    type_key = "VMLibrary"

    def __init__(
        self,
        target: str,
        kernels: Iterable[str],
        code: bytes | None = None,
        objects: Mapping[str, bytes] = MappingProxyType({}),
    ):
        self.target, self.kernels, self.code, self.objects = target, list(kernels), code, dict(objects)

    @checked
    def export_library(self, file_name: str | os.PathLike[str], **options: object) -> None:
        """Write it into a file of any suffix that `load_module` reads; ArtifactError if that is impossible."""
        said = json.dumps({"target": self.target, "kernels": self.kernels}).encode()
        code = {} if self.code is None else {CODE: self.code}
        write(file_name, {SECTION: said, **code, OBJECTS: _packed(self.objects)})

    save = export_library

    @staticmethod
    def read(file: ArchiveReader) -> VMLibrary:
        """The library in a file; ArtifactError if it is damaged."""
        try:
            found = read(_Kept, read_json(file.read(SECTION).tobytes()))
        except ValueError:
            raise file.damaged("its library cannot be understood") from None
        code = file.read(CODE).tobytes() if CODE in file.sections else None
        objects = _unpacked(file.read(OBJECTS), file) if OBJECTS in file.sections else {}
        return VMLibrary(found["target"], found["kernels"], code, objects)


def _packed(objects: Mapping[str, bytes]) -> bytes:
    rows = ((_ENTRY.pack(bytes.fromhex(key), len(code)), code) for key, code in objects.items())
    return b"".join(part for row in rows for part in row)


def _unpacked(data: np.ndarray, file: ArchiveReader) -> dict[str, bytes]:
    objects, at = dict[str, bytes](), 0
    while at < len(data):
        begin = at + _ENTRY.size
        if begin > len(data):
            raise file.damaged("its machine code ends within an entry")
        key, length = _ENTRY.unpack(data[at:begin].tobytes())
        at = begin + length
        if at > len(data) or key.hex() in objects:
            raise file.damaged("an entry of its machine code is out of place")
        objects[key.hex()] = data[begin:at].tobytes()
    return objects


READERS[SECTION] = VMLibrary.read
