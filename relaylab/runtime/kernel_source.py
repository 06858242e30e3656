"""The code of compiled networks, as `get_source` gives it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean

FORMATS = {"": "llvm", "ll": "llvm", "asm": "asm", "s": "asm"}
"""The formats of `get_source`, and the stages of a kernel that they are."""


def source(names: Sequence[str], stage_text: Callable[[str, str], str], fmt: str) -> str:
    """The code of all kernels, each below a comment with its name; RelayValueError for an unknown format."""
    if fmt not in FORMATS:
        help = did_you_mean(fmt, FORMATS) or 'formats: "ll" and "asm"'
        raise RelayValueError(f"there is no source in the format `{fmt}`", code="runtime.source", help=help)
    stage = FORMATS[fmt]
    mark = ";" if stage == "llvm" else "#"
    return "\n\n".join(f"{mark} kernel {name}\n{stage_text(stage, name)}" for name in names)


class KernelModule:
    """The kernels of a network as the module that it imports."""

    type_key = "llvm"
    imported_modules: Sequence[object] = ()

    def __init__(self, get_source: Callable[[str], str]):
        self._get_source = get_source

    def get_source(self, fmt: str = "") -> str:
        """The code of all kernels: LLVM IR ("" or "ll"), or assembly ("asm" or "s")."""
        return self._get_source(fmt)
