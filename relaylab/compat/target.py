"""Target as programs write it: `Target("llvm -mcpu=haswell")`, usable as a context."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from relaylab.codegen.build import parse_target, target_text
from relaylab.codegen.isa.cpus import X86
from relaylab.codegen.isa.target import FOREIGN_KINDS
from relaylab.codegen.isa.target import CpuTarget as NativeTarget
from relaylab.ir.base import VirtualDevice, named_device, named_target
from relaylab.op.qnn.products import multiplies_bytes
from relaylab.runtime.device import device
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.transform import PassContext

Targets: TypeAlias = "Target | str | Mapping[Any, object] | Sequence[Target | str]"
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
        if isinstance(target, Mapping):
            self.text = target_text(target) if "kind" in target else str(self.native)
        else:
            self.text = str(target)
        kind, *words = shlex.split(self.text)
        self.kind = TargetKind(kind if kind in FOREIGN_KINDS else "llvm")
        options = dict(map(_option, words))
        given = options.pop("keys", ())
        if isinstance(target, (Target, Mapping)):
            given = target.keys if isinstance(target, Target) else cast("Sequence[str]", target.get("keys", given))
        usual = _KEYS.get(self.kind.name, (self.kind.name, "gpu"))
        self.keys: list[str] = list(given or dict.fromkeys([*filter(None, [options.get("device")]), *usual]))
        self.attrs: Mapping[str, Any] = options
        self.host = host if isinstance(host, Target) or host is None else Target(host)

    @property
    def mcpu(self) -> str:
        """The name of the CPU that the code is tuned for."""
        return self.native.cpu

    @property
    def mattr(self) -> list[str]:
        """The CPU's features, each with its sign."""
        return [f for f in self.native.features.split(",") if f]

    @property
    def model(self) -> str:
        """The model of the device that was named, or `unknown`."""
        return str(self.attrs.get("model", "unknown"))

    @property
    def device_name(self) -> str:
        """The kind of device that was named, such as `arm_cpu`; else empty."""
        return self.attrs.get("device", "")

    @property
    def libs(self) -> list[str]:
        """Libraries that were asked for; none is used."""
        return self.attrs.get("libs", [])

    def export(self) -> dict[str, Any]:
        """The target as a dictionary, of which `Target` makes an equal one."""
        host = {} if self.host is None else {"host": self.host.export()}
        return {"kind": self.kind.name, "keys": self.keys, **self.attrs, **host}

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
        """The target of the innermost `with` block; without one None, or RelayValueError if that is not allowed."""
        if targets := _current.get():
            return targets[-1]
        if not allow_none:
            raise RelayValueError("no target is set", code="target.none", help='with tvm.target.Target("llvm"): …')
        return None

    @staticmethod
    def canon_target_and_host(
        target: Target | str | Mapping[str, object] | None, target_host: Target | str | None = None
    ) -> tuple[Target | None, Target | None]:
        """A target and its host as Targets; None stays None."""
        host = None if target_host is None else Target(target_host)
        made = None if target is None else Target(target, host) if host is not None else Target(target)
        return made, host if made is None or made.host is None else made.host

    @staticmethod
    def canon_multi_target_and_host(
        target: Targets, target_host: Target | str | None = None
    ) -> tuple[list[Target], Target | None]:
        """One target or several (a list, or a map from devices) as Targets, and their host."""
        if isinstance(target, Mapping) and not all(isinstance(name, str) for name in target):
            target = [cast("Target | str", one) for one in target.values()]
        several = list(target) if isinstance(target, (list, tuple)) else [cast("Target | str", target)]
        made = [Target.canon_target_and_host(one, target_host)[0] or Target() for one in several or ["llvm"]]
        return made, made[0].host if target_host is None else Target(target_host)

    def with_host(self, host: Target | str) -> Target:
        """The same target with a host."""
        return Target(self, host)

    @staticmethod
    def list_kinds() -> list[str]:
        """The kinds of targets that are compiled for, and those that are read as this CPU."""
        return sorted({"llvm", *FOREIGN_KINDS})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self.native == other.native

    def __hash__(self) -> int:
        return hash(self.native)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f'Target("{self.text}")'


_KEYS = {"llvm": ("cpu",), "c": ("cpu",), "stackvm": ("cpu",), "hybrid": ("hybrid", "cpu"), "nvptx": ("cuda", "gpu"),
         "hexagon": ("hexagon",), "ext_dev": ()}  # fmt: skip
"""What targets of a kind are called besides, where that is not the kind and `gpu`."""


def _option(word: str) -> tuple[str, Any]:
    """The name and the value of an option: lists and whole numbers as such, 1 for a flag."""
    name, _, value = word.lstrip("-").partition("=")
    if name in ("keys", "libs", "mattr"):
        return name, value.split(",")
    return name, int(value or 1) if (value or "1").isdecimal() else value


def _multiplies_bytes() -> bool | None:
    """By the CPU that the target in scope names: those of x86 from SSE4.2 on do, others do not."""
    target = Target.current()
    if target is None or target.kind.name != "llvm" or "aarch64" in target.text or "arm_cpu" in target.text:
        return None
    named = re.search(r"-mcpu[= ](\S+)", target.text)
    cpu = named[1] if named else X86.baseline
    return "sse4.2" in (target.native.needs if cpu in ("native", "host") else X86.features(cpu))


multiplies_bytes.register(_multiplies_bytes)


@checked
def enabled(target: str) -> bool:
    """Whether code can be made for a target."""
    return target.split()[0] in ("cpu", "llvm") if target.split() else False


@checked
class CompilationConfig:
    """What a program is compiled for: the host, the targets, and the device that values live on by default."""

    def __init__(self, targets: list[Target], host: Target, code: int = 0):
        devices = [device(target.kind.name) for target in targets]
        first = next((n for n, d in enumerate(devices) if d.device_type == code), 0)
        self.host_target, self.primitive_targets = host, targets
        self.host_virtual_device = VirtualDevice(device("cpu"), host)
        self.default_primitive_virtual_device = VirtualDevice(devices[first], targets[first])
        self.optional_homogeneous_target = targets[0] if len(targets) == 1 else None


def make_compilation_config(
    ctx: PassContext, target: Targets, target_host: Target | str | None = None
) -> CompilationConfig:
    """What `PlanDevices` asks for: a target or several, and their host.

    Of several the option `relay.fallback_device_type` says on which values live by default; without it the first.
    """
    made, host = Target.canon_multi_target_and_host(target, target_host)
    return CompilationConfig(made, host or Target("llvm"), ctx.config.get("relay.fallback_device_type", 0))


named_target.register(Target)
named_device.register(device)

__all__ = ["CompilationConfig", "Target", "TargetKind", "VirtualDevice", "enabled", "make_compilation_config"]
