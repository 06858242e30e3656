"""Devices. Compiled code runs on `cpu(0)`; every other device can be named, and says that it does not exist."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError, RelayValueError, is_a
from relaylab.support.foreign import FOREIGN, READ_AS_CPU
from relaylab.support.table import did_you_mean

# DLPack device codes (dlpack.h, DLDeviceType), by the names that Relay programs use.
KINDS = {
    "cpu": 1,
    "cuda": 2,
    "opencl": 4,
    "vulkan": 7,
    "metal": 8,
    "vpi": 9,
    "rocm": 10,
    "ext_dev": 12,
    "hexagon": 14,
    "webgpu": 15,
}
ALIASES = {"llvm": "cpu", "c": "cpu", "stackvm": "cpu", "gpu": "cuda", "nvptx": "cuda", "cl": "opencl"}
NAMES = {code: name for name, code in KINDS.items()}


@checked
@dataclass(frozen=True, slots=True)
class Device:
    """A place that holds arrays and runs code: a DLPack device code and an index."""

    device_type: int
    device_id: int = 0

    @property
    def exist(self) -> bool:
        """Can arrays and code live there? Only on `cpu(0)`."""
        return self.device_type == KINDS["cpu"] and self.device_id == 0

    @property
    def device_name(self) -> str | None:
        """The name of the processor; None where the device does not exist."""
        return (platform.processor() or platform.machine()) if self.exist else None

    @property
    def multi_processor_count(self) -> int | None:
        """The number of logical processors; None where the device does not exist."""
        return os.cpu_count() if self.exist else None

    def sync(self) -> None:
        """Return when all work on the device is done: at once, since calls on the CPU are synchronous."""

    def __str__(self) -> str:
        return f"{NAMES.get(self.device_type, f'device{self.device_type}')}({self.device_id})"

    __repr__ = __str__


def device(kind: str | int = "cpu", index: int = 0) -> Device:
    """A device by name (`cpu`, `llvm`, `cuda` …, target options after the name are ignored) or DLPack code."""
    if isinstance(kind, int) and not isinstance(kind, bool):
        return Device(kind, _index(index))
    if not isinstance(kind, str):
        raise RelayTypeError(f"a device kind is a name, not {type(kind).__name__}", code="runtime.device")
    name = kind.split()[0] if kind.split() else ""
    name = ALIASES.get(name, name)
    if name not in KINDS:
        help = did_you_mean(name, [*KINDS, *ALIASES])
        raise RelayValueError(f"there is no device kind `{kind}`", code="runtime.device", help=help)
    return Device(KINDS[name], _index(index))


def require_present(dev: Device) -> Device:
    """`dev`, or what it stands for; a RelayValueError when it is no device or not in this machine."""
    if not is_a(dev, Device):
        raise RelayTypeError(
            f"expected a device, got {type(dev).__name__}", code="runtime.device", help="write relaylab.cpu(0)"
        )
    if dev.exist:
        return dev
    if FOREIGN.read(f"the device {dev}"):
        return cpu(0)
    raise RelayValueError(
        f"the device {dev} does not exist here", code="runtime.device", help=f"use cpu(0); {READ_AS_CPU}"
    )


def _index(index: int) -> int:
    if is_a(index, bool) or not is_a(index, int) or index < 0:
        raise RelayValueError(f"a device index counts from 0, got {index!r}", code="runtime.device")
    return index


def cpu(index: int = 0) -> Device:
    """The processor that runs Python."""
    return device("cpu", index)


def cuda(index: int = 0) -> Device:
    """A CUDA device; it does not exist here."""
    return device("cuda", index)


gpu = cuda


def opencl(index: int = 0) -> Device:
    """An OpenCL device; it does not exist here."""
    return device("opencl", index)


cl = opencl


def vulkan(index: int = 0) -> Device:
    """A Vulkan device; it does not exist here."""
    return device("vulkan", index)


def metal(index: int = 0) -> Device:
    """A Metal device; it does not exist here."""
    return device("metal", index)


def vpi(index: int = 0) -> Device:
    """A VPI device; it does not exist here."""
    return device("vpi", index)


def rocm(index: int = 0) -> Device:
    """A ROCm device; it does not exist here."""
    return device("rocm", index)


def ext_dev(index: int = 0) -> Device:
    """An extension device; it does not exist here."""
    return device("ext_dev", index)


def hexagon(index: int = 0) -> Device:
    """A Hexagon device; it does not exist here."""
    return device("hexagon", index)


def webgpu(index: int = 0) -> Device:
    """A WebGPU device; it does not exist here."""
    return device("webgpu", index)
