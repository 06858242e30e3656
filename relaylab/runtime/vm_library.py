"""The library of an executable of the virtual machine: what its kernels are compiled for, and their names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TypedDict

from relaylab.runtime.archive import ArchiveReader, write
from relaylab.runtime.module import READERS, Module
from relaylab.support.checked import checked
from relaylab.support.schema import read, read_json

SECTION, CODE = "vm", "vm-code"


class _Kept(TypedDict):
    """What the file says."""

    target: str
    kernels: list[str]


class VMLibrary(Module):
    """The target and the kernels of an executable, and its `code` if it is the whole one (`exe.mod`); machine code is
    made when the program is loaded.
    """

    type_key = "VMLibrary"

    def __init__(self, target: str, kernels: Iterable[str], code: bytes | None = None):
        self.target, self.kernels, self.code = target, list(kernels), code

    @checked
    def export_library(self, file_name: str | os.PathLike[str], **options: object) -> None:
        """Write it into a file of any suffix that `load_module` reads; ArtifactError if that is impossible."""
        said = json.dumps({"target": self.target, "kernels": self.kernels}).encode()
        write(file_name, {SECTION: said, **({} if self.code is None else {CODE: self.code})})

    save = export_library

    @staticmethod
    def read(file: ArchiveReader) -> VMLibrary:
        """The library in a file; ArtifactError if it is damaged."""
        try:
            found = read(_Kept, read_json(file.read(SECTION).tobytes()))
        except ValueError:
            raise file.damaged("its library cannot be understood") from None
        code = file.read(CODE).tobytes() if CODE in file.sections else None
        return VMLibrary(found["target"], found["kernels"], code)


READERS[SECTION] = VMLibrary.read
