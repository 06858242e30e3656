"""How modules take in text, files and the standard library (`std/*.rly`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from relaylab.ir.module import IRModule
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.text import hooks
from relaylab.text.reading.parser import read_module

if TYPE_CHECKING:
    from pathlib import Path

STD = os.path.join(os.path.dirname(__file__), "std")


def import_text(
    mod: IRModule, text: str | None = None, source_name: str = "from_string", path: str = "", std: str = ""
) -> IRModule:
    """Take the definitions of a text, of a file or of a file of the standard library into `mod`.

    A file is taken in once. Returns `mod` after type inference; the functions of `mod` itself have their types too.
    """
    if text is not None:
        return _take_in(mod, text, source_name)
    from pathlib import Path

    file = _std_file(Path(STD), std) if std else Path(path)
    key = str(file.resolve())
    if key in mod.imports:
        return hooks.typed(mod)
    typed = _take_in(mod, _read(file), std or path)
    if std:
        mod.functions = typed.functions  # what the library defines has its types, as in Relay
    mod.imports.add(key)
    return typed


def _take_in(mod: IRModule, text: str, source_name: str) -> IRModule:
    """Add what a text defines; if it has errors `mod` stays as it was."""
    new = read_module(text, source_name, mod)
    mod.functions, mod.type_definitions = new.functions, new.type_definitions
    mod.attrs, mod.source_map = new.attrs, new.source_map
    typed = hooks.typed(mod)
    mod.functions = {gv: typed.functions.get(gv, func) for gv, func in mod.functions.items()}
    return typed


def _std_file(library: Path, name: str) -> Path:
    file = library / name
    if file.parent != library or not file.is_file():
        names = sorted(f.name for f in library.glob("*.rly"))
        help = did_you_mean(name, names) or "it has: " + ", ".join(names)
        raise RelayValueError(f"the standard library has no file `{name}`", code="module.no-std-file", help=help)
    return file


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RelayValueError(f"cannot read `{file}`: {reason}", code="module.cannot-read") from None
