"""LLVM's C interface as llvmlite carries it, for threads that compile while another one writes.

llvmlite holds one lock around each call, and ctypes lets go of Python's own for each: some twenty times a module a
thread waited until the one that writes let it in again, longer than the module took. Here Python is let go of for
what takes long, and held for the rest.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from typing import Any

_OBJECT = 1  # of what the code generator can write, assembly or object code


class Compiler:
    """Text of LLVM IR to object code by the library whose system handle is `handle`."""

    def __init__(self, handle: int):
        apart, held = ctypes.CDLL(None, handle=handle), ctypes.PyDLL(None, handle=handle)
        self._parse = _function(apart.LLVMPY_ParseAssembly, c_void_p, c_void_p, c_char_p, POINTER(c_char_p))
        self._emit = _function(
            apart.LLVMPY_TargetMachineEmitToMemory, c_void_p, c_void_p, c_void_p, c_int, POINTER(c_char_p)
        )
        self._start = _function(held.LLVMPY_GetBufferStart, c_void_p, c_void_p)
        self._size = _function(held.LLVMPY_GetBufferSize, c_size_t, c_void_p)
        self._drop_buffer = _function(held.LLVMPY_DisposeMemoryBuffer, None, c_void_p)
        self._drop_module = _function(held.LLVMPY_DisposeModule, None, c_void_p)
        self._drop_text = _function(held.LLVMPY_DisposeString, None, c_char_p)

    def emit(self, text: str, context: Any, machine: Any) -> bytes:
        """Object code of a module for a machine, both llvmlite's and this thread's. Raises RuntimeError with what LLVM
        says of a text that it does not accept.
        """
        fault = c_char_p()
        module = self._parse(context, text.encode(), byref(fault))
        try:
            buffer = self._emit(machine, module, _OBJECT, byref(fault)) if module else None
            if not buffer:
                raise RuntimeError((fault.value or b"no code").decode("utf-8", "replace"))
            try:
                return ctypes.string_at(self._start(buffer), self._size(buffer))
            finally:
                self._drop_buffer(buffer)
        finally:
            if module:
                self._drop_module(module)
            if fault:
                self._drop_text(fault)


def _function(found: Any, result: Any, *arguments: Any) -> Any:
    found.restype, found.argtypes = result, arguments
    return found
