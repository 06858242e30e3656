"""Instruments: what watches passes. Subclass `PassInstrument`, or decorate any class with `pass_instrument`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar, overload

from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError
from relaylab.transform.engine.context import PassInstrument

if TYPE_CHECKING:
    from relaylab.ir import IRModule
    from relaylab.transform.engine.info import PassInfo

C = TypeVar("C", bound=type)


@overload
def pass_instrument(cls: C) -> C: ...
@overload
def pass_instrument(cls: None = None) -> Callable[[C], C]: ...
def pass_instrument(cls: type | None = None) -> object:
    """Make any class with some of the hooks an instrument."""

    def wrap(cls: type) -> type:
        try:
            return type(cls.__name__, (cls, PassInstrument), {"__doc__": cls.__doc__, "__module__": cls.__module__})
        except TypeError as error:
            raise RelayTypeError(
                f"{cls.__name__} cannot be an instrument: {error}",
                code="pass.instrument",
                help="write a class of hooks",
            ) from None

    return wrap if cls is None else wrap(cls)


class PrintBeforeAll(PassInstrument):
    """Prints the program before each pass."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        print(f"Before Running Pass: {info}\n{mod}")


class PrintAfterAll(PassInstrument):
    """Prints the program after each pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        print(f"After Running Pass: {info}\n{mod}")


class PassPrintingInstrument(PassInstrument):
    """Prints the program before the passes that the first list names, and after those of the second."""

    def __init__(self, print_before_pass_names: Iterable[str], print_after_pass_names: Iterable[str]):
        self.before, self.after = set(print_before_pass_names), set(print_after_pass_names)

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name in self.before:
            print(f"Print IR before {info.name}:\n{mod}\n")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name in self.after:
            print(f"Print IR after {info.name}:\n{mod}\n")


class DumpIR(PassInstrument):
    """Writes the program after each pass into a file of a folder: `000_InferType.relay`, `001_…`.

    With `refresh` the files that are there already are removed before.
    """

    def __init__(self, dump_dir: str | Path, refresh: bool = False):
        self.folder, self.count = Path(dump_dir), 0
        self.folder.mkdir(parents=True, exist_ok=True)
        for file in self.folder.glob("*.relay") if refresh else ():
            file.unlink()

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        name = "".join("_" if c in '<>:"/\\|?*' else c for c in info.name)
        (self.folder / f"{self.count:03d}_{name}.relay").write_text(mod.astext())
        self.count += 1


class _Timed:
    """One pass run: when it began, how long it took, what ran inside it."""

    __slots__ = ("name", "start", "seconds", "inside")

    def __init__(self, name: str):
        self.name, self.start, self.seconds = name, time.perf_counter(), 0.0
        self.inside: list[_Timed] = []


class PassTimingInstrument(PassInstrument):
    """Measures every pass run; `render()` the profile before the context is left."""

    def __init__(self) -> None:
        self.exit_pass_ctx()

    def enter_pass_ctx(self) -> None:
        self.exit_pass_ctx()

    def exit_pass_ctx(self) -> None:
        self._open = [_Timed("")]

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        timed = _Timed(info.name)
        self._open[-1].inside.append(timed)
        self._open.append(timed)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        timed = self._open.pop()
        timed.seconds = time.perf_counter() - timed.start

    def render(self) -> str:
        """One line per pass run, indented by nesting: `Name: 12us [3us] (40.00%; 75.00%)`.

        Times are in microseconds; in brackets the pass without those inside it; then the share
        of the whole and of the pass around it.
        """
        root = self._open[0]
        total = sum(t.seconds for t in root.inside)
        lines: list[str] = []
        stack = [(t, 0, total) for t in reversed(root.inside)]
        while stack:
            timed, depth, around = stack.pop()
            lines.append("\t" * depth + _line(timed, total, around))
            stack.extend((t, depth + 1, timed.seconds) for t in reversed(timed.inside))
        return "".join(line + "\n" for line in lines)


def _line(timed: _Timed, total: float, around: float) -> str:
    own = timed.seconds - sum(t.seconds for t in timed.inside)
    share = [100 * timed.seconds / whole if whole else 100.0 for whole in (total, around)]
    return f"{timed.name}: {timed.seconds * 1e6:.0f}us [{own * 1e6:.0f}us] ({share[0]:.2f}%; {share[1]:.2f}%)"


@checked
class _Print(PassInstrument):
    def __init__(
        self, names: Iterable[str] | str | None = None, show_meta_data: bool = False, file: IO[str] | None = None
    ):
        self.names = None if names is None else {names} if isinstance(names, str) else set(names)
        self.show_meta_data, self.file = show_meta_data, file

    def _print(self, when: str, mod: IRModule, info: PassInfo) -> None:
        if self.names is None or info.name in self.names:
            print(f"// ---- {when} {info.name}\n{mod.astext(self.show_meta_data)}", file=self.file or sys.stdout)


class PrintBefore(_Print):
    """Prints the module before every pass, or before those named."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._print("before", mod, info)


class PrintAfter(_Print):
    """Prints the module after every pass, or after those named."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._print("after", mod, info)
