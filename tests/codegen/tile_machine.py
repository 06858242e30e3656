"""Instructions on tiles of bytes (AMX), done for a processor that has none: it stops at each, and Python does it.

Everything else of a kernel runs natively. Bytes of instructions are read as the manual encodes them, so that what LLVM
wrote is checked too.
Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: LDTILECFG, TILELOADD, TILESTORED,
TILEZERO, TILERELEASE, TDPBUSD; "VEX encoding".
"""

from __future__ import annotations

import contextlib
import ctypes
import platform
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

if sys.platform != "linux" or platform.machine() != "x86_64":
    pytest.skip("signals of Linux on x86-64", allow_module_level=True)

HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
SA_SIGINFO = 4
REGISTERS = 40  # where those of a stopped thread lie in its `ucontext_t`
NUMBERS = (13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7)  # rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 ...
NEXT = 16  # rip
TILE_ROWS, ROW_BYTES = 16, 64


class _Action(ctypes.Structure):
    _fields_ = [
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    ]


class Tiles:
    """The tiles of one thread."""

    def __init__(self) -> None:
        self.rows = [0] * 8
        self.bytes = [0] * 8
        self.data = np.zeros((8, TILE_ROWS, ROW_BYTES), "uint8")
        self.ready = False

    def set_up(self, address: int) -> None:
        state = ctypes.string_at(address, 64)
        assert state[0] == 1 and not any(state[1:16]) and not any(state[32:48]) and not any(state[56:])
        self.bytes = [int.from_bytes(state[16 + 2 * k : 18 + 2 * k], "little") for k in range(8)]
        self.rows = list(state[48:56])
        for rows, row in zip(self.rows, self.bytes):
            assert rows <= TILE_ROWS and row <= ROW_BYTES and (rows == 0) == (row == 0), "a general protection fault"
        self.data[:] = 0
        self.ready = True

    def multiply(self, to: int, a: int, b: int) -> None:
        m, n, k = self.rows[to], self.bytes[to] // 4, self.bytes[a] // 4
        assert len({to, a, b}) == 3 and (self.rows[a], self.rows[b], self.bytes[b]) == (m, k, 4 * n)
        left = self.data[a, :m, : 4 * k].reshape(m, k, 4).astype("int32")
        right = self.data[b, :k, : 4 * n].view("int8").reshape(k, n, 4).astype("int32")
        total = self.data[to, :m, : 4 * n].view("int32") + np.einsum("mkf,knf->mn", left, right)
        self.data[to] = 0
        self.data[to, :m, : 4 * n] = np.ascontiguousarray(total).view("uint8")


class TileMachine:
    """Does the instructions, and counts them by name."""

    def __init__(self) -> None:
        self.threads: dict[int, Tiles] = {}
        self.done = Counter[str]()
        self.errors: list[BaseException] = []

    def stopped(self, number: int, info: int, context: int) -> None:
        """A thread stopped: do the instruction there and let the thread go on after it."""
        registers = ctypes.cast(context + REGISTERS, ctypes.POINTER(ctypes.c_uint64))
        try:
            registers[NEXT] += self.instruction(registers)
        except BaseException as error:  # nothing may leave a signal handler: the thread goes on, the test fails
            self.errors.append(error)
            registers[NEXT] += _length(ctypes.string_at(registers[NEXT], 16))

    def instruction(self, registers: ctypes._Pointer[ctypes.c_uint64]) -> int:
        """Do the instruction that comes next; its bytes."""
        code = ctypes.string_at(registers[NEXT], 16)
        assert code[0] == 0xC4 and code[1] & 0x1F == 2, f"no instruction on tiles: {code.hex()}"
        r, x, b = ((~code[1] >> k) & 1 for k in (7, 6, 5))
        second, prefix, opcode, modrm = (~code[2] >> 3) & 15, code[2] & 3, code[3], code[4]
        mode, reg, rm = modrm >> 6, (modrm >> 3 & 7) | r << 3, (modrm & 7) | b << 3
        tiles = self.threads.setdefault(threading.get_ident(), Tiles())
        value = lambda number: registers[NUMBERS[number]]
        if mode == 3:
            if (opcode, prefix, modrm) == (0x49, 0, 0xC0):
                self.done["tilerelease"] += 1
                tiles.ready = False
            elif (opcode, prefix) == (0x5E, 1):
                assert tiles.ready
                self.done["tdpbusd"] += 1
                tiles.multiply(reg, rm, second)
            else:
                raise AssertionError(f"not known here: {code.hex()}")
            return 5
        base, index, scale = rm, None, 0
        if rm & 7 == 4:
            scale, index, base = code[5] >> 6, (code[5] >> 3 & 7) | x << 3, (code[5] & 7) | b << 3
            index = None if index == 4 else index
        at = 5 + (rm & 7 == 4)
        assert not (mode == 0 and base & 7 == 5), "an address without a base"
        size = (0, 1, 4)[mode]
        address = value(base) + int.from_bytes(code[at : at + size], "little", signed=True)
        if (opcode, prefix, reg & 7) == (0x49, 0, 0):
            self.done["ldtilecfg"] += 1
            tiles.set_up(address + (value(index) << scale if index is not None else 0))
        elif opcode == 0x4B and prefix in (2, 3):
            assert tiles.ready and rm & 7 == 4
            step = 0 if index is None else ctypes.c_int64(value(index)).value << scale
            self._move(tiles, reg, address, step, prefix == 2)
        else:
            raise AssertionError(f"not known here: {code.hex()}")
        return at + size

    def _move(self, tiles: Tiles, number: int, address: int, step: int, out: bool) -> None:
        rows, row = tiles.rows[number], tiles.bytes[number]
        assert rows, "a tile that is not set up"
        self.done["tilestored" if out else "tileloadd"] += 1
        if not out:
            tiles.data[number] = 0
        for k in range(rows):
            memory = np.ctypeslib.as_array((ctypes.c_ubyte * row).from_address(address + k * step))
            if out:
                memory[:] = tiles.data[number, k, :row]
            else:
                tiles.data[number, k, :row] = memory


def _length(code: bytes) -> int:
    mode, sib = code[4] >> 6, code[4] & 7 == 4
    return 5 if mode == 3 else 5 + sib + (0, 1, 4)[mode]


@contextlib.contextmanager
def tile_machine() -> Iterator[TileMachine]:
    """While this lasts, instructions on tiles are done here; raises what went wrong in one."""
    machine, c, before = TileMachine(), ctypes.CDLL(None, use_errno=True), _Action()
    handler = HANDLER(machine.stopped)
    action = _Action(ctypes.cast(handler, ctypes.c_void_p), flags=SA_SIGINFO)
    c.sigaction.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    assert c.sigaction(signal.SIGILL, ctypes.byref(action), ctypes.byref(before)) == 0
    try:
        yield machine
    finally:
        c.sigaction(signal.SIGILL, ctypes.byref(before), None)
    if machine.errors:
        raise machine.errors[0]
