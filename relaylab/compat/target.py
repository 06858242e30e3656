"""Target as programs write it: `Target("llvm -mcpu=haswell")`, usable as a context."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from relaylab.codegen.build import parse_target
from relaylab.codegen.isa.target import FOREIGN_KINDS
from relaylab.codegen.isa.target import CpuTarget as NativeTarget
from relaylab.runtime.device import Device
from relaylab.support.checked import checked

_current: ContextVar[tuple[Target, ...]] = ContextVar("relaylab_targets", default=())


@dataclass(frozen=True)
class TargetKind:
    """What kind of device code is made for: `llvm`, or one that is read as this CPU."""

    name: str = "llvm"


@checked
class Target:
    """What to compile for, from text, a dictionary or another target; only `llvm` for CPUs is known."""

    def __init__(
        self,
        target: Target | str | Mapping[str, object] = "llvm",
        host: Target | str | Mapping[str, object] | None = None,
    ):
        self.native: NativeTarget = target.native if isinstance(target, Target) else parse_target(target)
        self.text = (
            target if isinstance(target, str) else str(target) if isinstance(target, Target) else str(self.native)
        )
        self.host = host if isinstance(host, Target) or host is None else Target(host)
        self.kind = TargetKind(self.text.partition(" ")[0] if self.text.partition(" ")[0] in FOREIGN_KINDS else "llvm")

    @property
    def mcpu(self) -> str:
        """The name of the CPU that the code is tuned for."""
        return self.native.cpu

    @property
    def mattr(self) -> list[str]:
        """The CPU's features, each with its sign."""
        return [f for f in self.native.features.split(",") if f]

    @property
    def keys(self) -> list[str]:
        return ["cpu"] if self.kind.name == "llvm" else [self.kind.name, "gpu"]

    @property
    def libs(self) -> list[str]:
        return []

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The options that were given."""
        return {"mcpu": self.mcpu, "mattr": self.mattr}

    @staticmethod
    def check_and_update_host_consist(
        target: Target | str | Mapping[str, object],
        host: Target | str | Mapping[str, object] | None = None,
        target_is_dict_key: bool = True,
    ) -> tuple[Target, Target | None]:
        """A target with its host, and the host, as programs of TVM 0.8 and 0.9 ask for them."""
        made = target if isinstance(target, Target) else Target(target, host)
        return made, made.host

    def __enter__(self) -> Target:
        _current.set((*_current.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        _current.set(_current.get()[:-1])

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost `with` block; without one None, or the host."""
        targets = _current.get()
        return targets[-1] if targets else None if allow_none else Target("llvm")

    @staticmethod
    def canon_target_and_host(
        target: Target | str | Mapping[str, object] | None, target_host: Target | str | None = None
    ) -> tuple[Target | None, Target | None]:
        """A target and its host as Targets; None stays None."""
        host = None if target_host is None else Target(target_host)
        made = None if target is None else Target(target, host) if host is not None else Target(target)
        return made, host if made is None or made.host is None else made.host

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self.native == other.native

    def __hash__(self) -> int:
        return hash(self.native)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f'Target("{self.text}")'


@checked
def enabled(target: str) -> bool:
    """Whether code can be made for a target."""
    return target.split()[0] in ("cpu", "llvm") if target.split() else False


@checked
class VirtualDevice:
    """Where a value lives: a kind of device, its number, what code for it is made for, a kind of memory.

    What is not given is left open: device type 0, number -1, no target, no memory.
    """

    def __init__(self, device: Device | int | None = None, target: Target | str | None = None, memory_scope: str = ""):
        self.device_type = device.device_type if isinstance(device, Device) else int(device or 0)
        self.virtual_device_id = device.device_id if isinstance(device, Device) else -1
        self.target = Target(target) if isinstance(target, str) else target
        self.memory_scope = memory_scope

    @property
    def device_type_int(self) -> int:
        """The kind of device as DLPack numbers it; 0 if it is left open."""
        return self.device_type

    def _key(self) -> tuple[object, ...]:
        return self.device_type, self.virtual_device_id, self.target, self.memory_scope

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VirtualDevice) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        known = {
            "device_type": self.device_type or None,
            "target": self.target,
            "memory_scope": self.memory_scope or None,
        }
        if self.virtual_device_id >= 0:
            known["virtual_device_id"] = self.virtual_device_id
        parts = [f"{name}={value!r}" for name, value in known.items() if value is not None]
        return f"VirtualDevice({', '.join(parts) or '?'})"


__all__ = ["Target", "TargetKind", "VirtualDevice", "enabled"]
