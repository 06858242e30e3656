"""Names as TVM's code generators write them into C: of functions, variables, constants and modules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum

from relaylab.support.errors import RelayValueError

__all__ = [
    "CallType", "mangle_module_name", "prefix_generated_name", "prefix_name", "sanitize_name", "to_c_constant_style",
    "to_c_function_style", "to_c_variable_style",
]  # fmt: skip


class CallType(IntEnum):
    """How a compiled operator is called: through packed arguments, through C's, or directly."""

    Packed = 0
    CPacked = 1
    Unpacked = 2


def _given(name: str, what: str, prefixed: bool = True) -> str:
    if not name:
        raise RelayValueError(f"{what} name is empty".lstrip().capitalize(), code="compat.c-name")
    if prefixed and not name.startswith("TVM"):
        raise RelayValueError(f"{what} not TVM prefixed", code="compat.c-name", help="prefix_name(name) does it")
    return name


def to_c_function_style(original_name: str) -> str:
    """`TVM_my_function` as `TVMMyFunction`; RelayValueError for a name that is empty or lacks the prefix TVM."""
    words = _given(original_name, "Function")[3:].split("_")
    return "TVM" + "".join(word[:1].upper() + word[1:].lower() for word in words)


def to_c_variable_style(original_name: str) -> str:
    """`TVM_My_Variable` as `tvm_my_variable`; RelayValueError as in `to_c_function_style`."""
    return _given(original_name, "Variable").lower()


def to_c_constant_style(original_name: str) -> str:
    """`TVM_my_constant` as `TVM_MY_CONSTANT`; RelayValueError as in `to_c_function_style`."""
    return _given(original_name, "Constant").upper()


def _joined(names: str | Iterable[str]) -> str:
    parts = [names] if isinstance(names, str) else list(names)
    if not parts:
        raise RelayValueError("Name segments empty", code="compat.c-name")
    return _given("_".join(parts), "", prefixed=False)


def prefix_name(names: str | Iterable[str]) -> str:
    """A name, or the parts of one, behind `TVM_`."""
    return f"TVM_{_joined(names)}"


def prefix_generated_name(names: str | Iterable[str]) -> str:
    """A name, or the parts of one, behind `TVMGen_`."""
    return f"TVMGen_{_joined(names)}"


def sanitize_name(original_name: str) -> str:
    """A name with `_` for each character that C does not allow."""
    return re.sub(r"[^A-Za-z0-9_]", "_", _given(original_name, "", prefixed=False))


def mangle_module_name(mod_name: str | None) -> str:
    """The prefix of the functions of a module: `tvmgen_default` for `default`, `tvmgen` for no name.

    RelayValueError for a name with other letters than ASCII.
    """
    if mod_name and not mod_name.isascii():
        raise RelayValueError(f"{mod_name} contains invalid characters", code="compat.c-name")
    return f"tvmgen_{mod_name}" if mod_name else "tvmgen"
