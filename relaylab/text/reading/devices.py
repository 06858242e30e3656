"""Devices in texts: as they are printed, and as entries of the meta data section, relaylab's and TVM's."""

from __future__ import annotations

import re
from collections.abc import Mapping

from relaylab.ir.base import VirtualDevice, named_target
from relaylab.ir.node import set_field

DEVICE = "VirtualDevice"
_NUMBER = r"\b{}=(-?\d{{1,9}})\b"
_KIND = re.compile(r"target=Target\([^()]*?kind=['\"](\w+)['\"]")
_TARGET = re.compile(r"target=Target\(\"([^\"]*)\"")
_SCOPE = re.compile(r"memory_scope=['\"]([^'\"]*)['\"]")


def device_from(text: str) -> VirtualDevice:
    """The device that was printed: `VirtualDevice(device_type=1, virtual_device_id=0, …)`."""
    kind, number = (re.search(_NUMBER.format(n), text) for n in ("device_type", "virtual_device_id"))
    target, scope = _TARGET.search(text) or _KIND.search(text), _SCOPE.search(text)
    return made(
        int(kind[1]) if kind else -1, int(number[1]) if number else -1, target and target[1], scope[1] if scope else ""
    )


def made(kind: int, number: int, target: str | None, scope: str) -> VirtualDevice:
    """A device of its parts."""
    device = VirtualDevice(kind, named_target(target) if target else None, scope)
    set_field(device, "virtual_device_id", number)
    return device


def encoded(device: VirtualDevice) -> dict[str, object]:
    """The entry of a device."""
    return {
        "device_type": device.device_type,
        "virtual_device_id": device.virtual_device_id,
        "target": None if device.target is None else str(device.target),
        "memory_scope": device.memory_scope,
    }


def decoded(entry: Mapping[str, object]) -> VirtualDevice:
    """The device of an entry; KeyError, TypeError or ValueError if it is damaged."""
    numbers = [int(str(entry[name])) for name in ("device_type", "virtual_device_id")]
    target = entry["target"]
    return made(numbers[0], numbers[1], None if target is None else str(target), str(entry["memory_scope"]))
