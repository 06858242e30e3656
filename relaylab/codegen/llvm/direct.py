"""LLVM's C interface as llvmlite carries it, for threads that compile while another one writes.

llvmlite holds one lock around each call, and ctypes lets go of Python's own for each: some twenty times a module a
thread waited until the one that writes let it in again, longer than the module took. Here Python is let go of for
what takes long, and held for the rest.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from ctypes import CDLL, CFUNCTYPE, POINTER, PYFUNCTYPE, byref, c_char_p, c_int, c_size_t, c_void_p, string_at

_OBJECT = 1  # of what the code generator can write, assembly or object code
_PARSE = CFUNCTYPE(c_void_p, c_void_p, c_char_p, POINTER(c_char_p))  # these let go of Python
_EMIT = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_int, POINTER(c_char_p))
_START, _SIZE = PYFUNCTYPE(c_void_p, c_void_p), PYFUNCTYPE(c_size_t, c_void_p)  # these hold it
_DROP, _DROP_TEXT = PYFUNCTYPE(None, c_void_p), PYFUNCTYPE(None, c_char_p)


class DirectCompiler:
    """Text of LLVM IR to object code by the library whose system handle is `handle`."""

    def __init__(self, handle: int):
        library = CDLL(None, handle=handle)
        self._parse = _PARSE(("LLVMPY_ParseAssembly", library))
        self._emit = _EMIT(("LLVMPY_TargetMachineEmitToMemory", library))
        self._start = _START(("LLVMPY_GetBufferStart", library))
        self._size = _SIZE(("LLVMPY_GetBufferSize", library))
        self._drop_buffer = _DROP(("LLVMPY_DisposeMemoryBuffer", library))
        self._drop_module = _DROP(("LLVMPY_DisposeModule", library))
        self._drop_text = _DROP_TEXT(("LLVMPY_DisposeString", library))

    def emit(self, text: str, context: object, machine: object) -> bytes:
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
                return string_at(self._start(buffer), self._size(buffer))
            finally:
                self._drop_buffer(buffer)
        finally:
            if module:
                self._drop_module(module)
            if fault:
                self._drop_text(fault)
