"""Target as programs write it: `Target("llvm -mcpu=haswell")`, usable as a context."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from relaylab.codegen.build import parse_target
from relaylab.codegen.isa.target import CpuTarget as NativeTarget
from relaylab.support.checked import checked

_current: ContextVar[tuple[Target, ...]] = ContextVar("relaylab_targets", default=())


@dataclass(frozen=True)
class TargetKind:
    """What kind of device code is made for: always `llvm`."""

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
        self.kind = TargetKind()

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
        return ["cpu"]

    @property
    def libs(self) -> list[str]:
        return []

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The options that were given."""
        return {"mcpu": self.mcpu, "mattr": self.mattr}

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


__all__ = ["Target", "TargetKind", "enabled"]
