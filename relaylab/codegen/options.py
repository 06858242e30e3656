"""`Executor` and `Runtime`: the choices that `relay.build` accepts, with their options checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError, RelayValueError, is_a, shown
from relaylab.support.table import did_you_mean

KINDS: dict[type, str] = {bool: "IntImm", int: "IntImm", str: "runtime.String"}
"""What TVM calls the types of options."""


@checked
class Choice:
    """A name out of a list, and options that belong to it. Equal if both are equal."""

    known: ClassVar[dict[str, dict[str, type]]] = {}
    defaults: ClassVar[dict[str, dict[str, Any]]] = {}

    def __init__(self, name: str, options: Mapping[str, Any] | None = None):
        if name not in self.known:
            raise RelayValueError(
                f'{type(self).__name__} "{name}" is not defined',
                code="build.option",
                help=did_you_mean(str(name), self.known) or f"known: {', '.join(self.known)}",
            )
        self.name = name
        self.attrs = {**self.defaults.get(name, {}), **self._checked(options or {})}

    def _checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        kinds = self.known[self.name]
        for key, value in options.items():
            if key not in kinds:
                raise RelayValueError(
                    f'Attribute "{key}" is not available on this {type(self).__name__}',
                    code="build.option",
                    help=did_you_mean(key, kinds) or f"options: {', '.join(kinds) or 'none'}",
                )
            if not isinstance(value, kinds[key]) and not (kinds[key] is bool and is_a(value, int) and value in (0, 1)):
                found = KINDS.get(type(value), type(value).__name__)
                raise RelayTypeError(
                    f'Attribute "{key}" should have type "{KINDS[kinds[key]]}" but instead found "{found}"',
                    code="build.option",
                    help=f"it is a {kinds[key].__name__}, not {shown(value)}",
                )
        return {key: kinds[key](value) for key, value in options.items()}

    def __contains__(self, name: str) -> bool:
        return name in self.attrs

    def __getitem__(self, name: str) -> Any:
        return self.attrs[name]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Choice)
            and type(self) is type(other)
            and (self.name, self.attrs) == (other.name, other.attrs)
        )

    def __hash__(self) -> int:
        return hash((type(self), self.name, tuple(sorted(self.attrs.items()))))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.attrs!r})"

    @classmethod
    def list_registered(cls) -> list[str]:
        """The names."""
        return list(cls.known)

    @classmethod
    def list_registered_options(cls, name: str) -> dict[str, str]:
        """The options of a name, with their types."""
        return {key: KINDS[kind] for key, kind in cls(name).known[name].items()}


class Executor(Choice):
    """How a compiled network is run: "graph", or "aot", which is the same native entry here."""

    known = {
        "graph": {"link-params": bool},
        "aot": {
            "link-params": bool,
            "unpacked-api": bool,
            "interface-api": str,
            "workspace-byte-alignment": int,
            "constant-byte-alignment": int,
        },
    }
    defaults = {"graph": {"link-params": False}, "aot": {"link-params": True}}


class Runtime(Choice):
    """The runtime that compiled code is for."""

    known = {"cpp": {"system-lib": bool}, "crt": {"system-lib": bool}}
