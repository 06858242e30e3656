"""What instruments, contexts and histories are told of a pass."""

from __future__ import annotations

from dataclasses import dataclass

from relaylab.support.checked import checked

NAMED: set[str] = set()
"""The names of all passes that are declared, or were made in this process."""


@checked
@dataclass(frozen=True, slots=True)
class PassInfo:
    """The optimization level, the name and the required passes of a pass."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "required", tuple(self.required or ()))
        NAMED.add(self.name)

    def __str__(self) -> str:
        required = f"[{', '.join(self.required)}]"
        about = f"pass name: {self.name}, opt_level: {self.opt_level}, required passes: {required}"
        return f"The meta data of the pass - {about}"

    __repr__ = __str__
