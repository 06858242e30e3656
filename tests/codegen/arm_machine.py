"""Runs what was built for AArch64 in an emulator: loads the object code, lays out the memory, calls the entry.

`unicorn` (QEMU's translator as a library) knows NEON and its dot products, but no I8MM: that one instruction is
computed here, from Arm's manual (USDOT, vector). Functions of the C library are this machine's.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import struct
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from relaylab.runtime import abi
from relaylab.runtime.executable import Executable

unicorn = pytest.importorskip("unicorn", reason="the emulator of AArch64, in relaylab[test]")
from unicorn import arm64_const as arm  # noqa: E402  there only with the package

C_LIBRARY = ctypes.CDLL(ctypes.util.find_library("m"))
PAGE, LINE = 1 << 12, 64
STUBS, CODE, STACK, STACK_BYTES = (1 << 28) - PAGE, 1 << 28, 1 << 40, 1 << 16
HOME = STUBS + PAGE - 16
STACKED = ((arm.UC_ARM64_REG_SP, STACK + STACK_BYTES),)
ABS64, REL32, CALLS, PAGE_HIGH, GOT_HIGH = 257, 261, (282, 283), 275, 311
LOW = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4, 312: 3}  # relocations of the low 12 bits: how they are scaled


class ObjectFile:
    """An ELF object of AArch64 for the address `home`; those of functions that it lacks are given by `outside`."""

    def __init__(self, data: bytes, home: int, outside: Callable[[str], int]):
        header = struct.unpack_from("<16sHHIQQQIHHHHHH", data)
        at, count = header[6], header[12]
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + 64 * k) for k in range(count)]
        self.data, self.outside, self.places = data, outside, dict[int, int]()
        self.got: dict[int, int] = {}
        size = 0
        for k, (_, _, flags, _, _, length, _, _, align, _) in enumerate(self.sections):
            if flags & 2:  # is in memory
                size = -(-size // max(1, align)) * max(1, align)
                self.places[k], size = size, size + length
        self.table = -(-size // 16) * 16
        # Whole pages: it then begins at `home`, wherever its memory ends.
        self.image, self.home = bytearray(-(-(self.table + 8 * 64) // PAGE) * PAGE), home
        for k, place in self.places.items():
            section = self.sections[k]
            if section[1] != 8:  # has contents
                self.image[place : place + section[5]] = data[section[4] : section[4] + section[5]]
        self.symbols = self._symbols()
        self.defined = {name: at for name, at in self.symbols if name and at >= home}
        for section in self.sections:
            if section[1] == 4 and section[7] in self.places:
                self._relocate(section)

    def _symbols(self) -> list[tuple[str, int]]:
        table = next(s for s in self.sections if s[1] == 2)
        names, found = self.sections[table[6]][4], []
        for at in range(table[4], table[4] + table[5], 24):
            name, _, _, index, value, _ = struct.unpack_from("<IBBHQQ", self.data, at)
            text = self.data[names + name : self.data.index(b"\0", names + name)].decode()
            place = self.places.get(index)
            found.append((text, self.home + place + value if place is not None else self.outside(text) if text else 0))
        return found

    def _relocate(self, section: tuple[int, ...]) -> None:
        base = self.places[section[7]]
        for at in range(section[4], section[4] + section[5], 24):
            offset, info, addend = struct.unpack_from("<QQq", self.data, at)
            kind, at_, place = info & 0xFFFFFFFF, base + offset, self.home + base + offset
            target = self.symbols[info >> 32][1] + addend
            if kind == ABS64:
                struct.pack_into("<Q", self.image, at_, target)
                continue
            if kind == REL32:
                struct.pack_into("<i", self.image, at_, target - place)
                continue
            if kind in (GOT_HIGH, 312):
                target = self._slot(target)
            (word,) = struct.unpack_from("<I", self.image, at_)
            struct.pack_into("<I", self.image, at_, word | self._field(kind, target, place))

    def _field(self, kind: int, target: int, place: int) -> int:
        if kind in CALLS:
            return (target - place) >> 2 & 0x3FFFFFF
        if kind in (PAGE_HIGH, GOT_HIGH):
            pages = (target >> 12) - (place >> 12)
            return (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        return ((target & 0xFFF) >> LOW[kind]) << 10

    def _slot(self, target: int) -> int:
        """The address of a word that holds an address."""
        place = self.got.setdefault(target, self.table + 8 * len(self.got))
        struct.pack_into("<Q", self.image, place, target)
        return self.home + place


class ArmMachine:
    """An executable in the emulator. Each memory ends, in its last line, before a page that nobody may touch."""

    def __init__(self, executable: Executable):
        self.plan, self.library = executable.plan, dict[str, int]()
        self.uc = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        self.uc.ctl_set_cpu_model(arm.UC_CPU_ARM64_MAX)
        self.uc.reg_write(arm.UC_ARM64_REG_CPACR_EL1, 3 << 20)  # vectors are not trapped
        self.end, self.symbols = CODE, dict[str, int]()
        for data in (executable.entry, *executable.objects):
            loaded = ObjectFile(data, self.end, self._outside)
            self.symbols.update(loaded.defined)
            self._put(self._with_usdot(loaded.image, loaded.home))
        self._at(STUBS, b"\xc0\x03\x5f\xd6" * (PAGE // 4))  # ret
        self.uc.mem_map(STACK, STACK_BYTES)
        self.uc.hook_add(unicorn.UC_HOOK_CODE, self._call, begin=STUBS, end=HOME - 1)
        self.constants = executable.constants

    def run(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs for these inputs."""
        plan = self.plan
        own = [np.zeros(plan.arena_bytes, "uint8"), self.constants, np.zeros(plan.scratch_bytes, "uint8")]
        own += [np.ascontiguousarray(inputs[i.name], i.dtype) for i in plan.inputs]
        own += [np.zeros(o.shape, o.dtype) for o in plan.outputs]
        places = [self._put(data.tobytes()) for data in own]
        steps = []
        for step in plan.steps:
            table = self._put(np.array([places[base] + at for base, at, _ in step.operands], np.uint64).tobytes())
            steps += [self.symbols[step.kernel], table, step.items, 1]
        first = self._put(np.array(steps, np.uint64).tobytes())
        pool = self._put(bytes(abi.POOL_BYTES))
        context = self._put(np.array([first, 0, len(plan.steps), 1, pool], np.uint64).tobytes())
        for register, value in ((arm.UC_ARM64_REG_X0, context), (arm.UC_ARM64_REG_LR, HOME), *STACKED):
            self.uc.reg_write(register, value)
        self.uc.emu_start(self.symbols[abi.ENTRY], HOME)
        stored = [np.frombuffer(bytes(self.uc.mem_read(at, d.nbytes)), "uint8") for at, d in zip(places, own)]
        outputs = [stored[plan.output_base(k)].view(o.dtype).reshape(o.shape) for k, o in enumerate(plan.outputs)]
        for k, value in plan.copies:
            (base, at), size = value.place, np.dtype(value.dtype).itemsize
            strides = [s * size for s in value.strides]
            outputs[k] = np.ndarray(value.shape, value.dtype, stored[base].data, at, strides)
        return outputs

    def _put(self, data: bytes) -> int:
        """Where the bytes are now."""
        whole, lines = (-(-max(1, len(data)) // size) * size for size in (PAGE, LINE))
        at = self.end + whole - lines
        self._at(self.end, bytes(whole - lines) + data)
        self.end += whole + PAGE
        return at

    def _at(self, page: int, data: bytes) -> None:
        self.uc.mem_map(page, max(PAGE, -(-len(data) // PAGE) * PAGE))
        self.uc.mem_write(page, data)

    def _outside(self, name: str) -> int:
        """The address of a function that kernels share, which is there before them, or of the C library."""
        return (
            self.symbols[name]
            if name in self.symbols
            else self.library.setdefault(name, STUBS + 16 * len(self.library))
        )

    def _call(self, uc, at: int, *_: object) -> None:
        """A function of the C library: float32 with an f at the end of its name, float64 without."""
        name = {place: name for name, place in self.library.items()}.get(at)
        if name is None:
            return
        kind, type = ("<f", ctypes.c_float) if name.endswith("f") else ("<d", ctypes.c_double)
        function = ctypes.CFUNCTYPE(type, type, type)((name, C_LIBRARY))  # one that takes one leaves the other
        raw = [uc.reg_read(arm.UC_ARM64_REG_D0 + k).to_bytes(8, "little") for k in range(2)]
        result = function(*(struct.unpack_from(kind, data)[0] for data in raw))
        uc.reg_write(arm.UC_ARM64_REG_D0, int.from_bytes(struct.pack(kind, result).ljust(8, b"\0"), "little"))

    def _with_usdot(self, image: bytearray, home: int) -> bytes:
        """The code with nothing instead of USDOT, which a hook does before it."""
        words = np.frombuffer(image, np.uint32).copy()
        for k in np.flatnonzero(words & 0xFFE0FC00 == 0x4E809C00):
            at, word = home + 4 * int(k), int(words[k])
            self.uc.hook_add(unicorn.UC_HOOK_CODE, lambda uc, *_, word=word: usdot(uc, word), begin=at, end=at)
            words[k] = 0xD503201F
        return words.tobytes()


def usdot(uc, word: int) -> None:
    """USDOT of 16 bytes: four products of an unsigned and a signed byte each, added to four int32."""
    read = lambda k, kind: np.frombuffer(
        uc.reg_read(arm.UC_ARM64_REG_V0 + (k & 31)).to_bytes(16, "little"), kind
    ).astype("int64")
    products = (read(word >> 5, "uint8") * read(word >> 16, "int8")).reshape(4, 4).sum(1)
    total = (read(word, "int32") + products).astype("int32")
    uc.reg_write(arm.UC_ARM64_REG_V0 + (word & 31), int.from_bytes(total.tobytes(), "little"))
