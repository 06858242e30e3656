"""What a pass runs under: optimization level, passes that are required or disabled, instruments, configuration."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from relaylab.support.checked import checked
from relaylab.support.errors import (
    RelayAttributeError,
    RelayError,
    RelayIndexError,
    RelayTypeError,
    RelayValueError,
    named,
    shown,
    warn,
)
from relaylab.support.source import python_place
from relaylab.support.table import Table, did_you_mean
from relaylab.transform.engine.info import NAMED

if TYPE_CHECKING:
    from relaylab.ir import IRModule
    from relaylab.transform.engine.info import PassInfo

CONFIG: Table[type] = Table("config option")


def register_config(name: str, kind: type) -> None:
    """Make `name` a configuration key that holds a value of `kind` (bool, int, float, str, dict)."""
    CONFIG.insert(name, kind, replace=True)


for _name, _kind in {
    "relay.FuseOps.max_depth": int,
    "relay.FuseOps.link_params": bool,
    "relay.ToMixedPrecision.keep_orig_output_dtype": bool,
    "relay.codegen.records": str,
    "relay.codegen.schedules": dict,
    "relay.codegen.open": bool,
    "relay.codegen.specializations": int,
    "relay.codegen.verify": bool,
    "relay.codegen.winograd": bool,
    "relay.backend.use_auto_scheduler": bool,
    "relay.backend.use_meta_schedule": bool,
    "relay.backend.use_meta_schedule_dispatch": bool,
    "relay.backend.tir_converter": str,
    "relay.fallback_device_type": int,
    "relay.frontend.fill_span": bool,
    "relay.remove_standalone_reshapes.enable": bool,
    "relay.collage.tvm_max_depth": int,
    "relay.collage.byoc_max_depth": int,
    "testing.immutable_module": bool,
}.items():
    register_config(_name, _kind)

_LOWER = ("tir.", "relay.ext.")
"""How the options of TVM begin that are for its levels below Relay, and for code generators of others."""

_TYPES = {bool: "bool", int: "whole number", float: "number", str: "text", dict: "dict"}
_TYPE_KEYS = {bool: "IntImm", int: "IntImm", float: "FloatImm", str: "runtime.String", dict: "Map"}


def _checked_config(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _checked_value(name, value) for name, value in config.items()}


def _checked_value(name: str, value: object) -> object:
    kind = CONFIG.get(name)
    if kind is None and name.startswith(_LOWER):
        message = f"the config option '{name}' does nothing here: what is below Relay is relaylab's own"
        warn(message)
        return value
    if kind is None:
        hint = did_you_mean(name, CONFIG) or f"candidates are: {', '.join(sorted(CONFIG))}"
        raise RelayAttributeError(f"Invalid config option '{name}'", code="pass.unknown-config", help=hint)
    if kind is bool and value in (0, 1):
        return bool(value)
    if kind is str and isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        text = f"the config option '{name}' cannot be {value!r}"
        raise RelayAttributeError(text, code="pass.bad-config", help=f"it is {named(_TYPES[kind])}")
    return value


def _names(value: Iterable[str] | None, what: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise RelayTypeError(f"{what} must be a list of names of passes", code="pass.not-a-list")
    names = tuple(str(v) for v in value)
    for name in names:
        _warn_of_a_slip(name, what)
    return names


def _warn_of_a_slip(name: str, what: str) -> None:
    """A pass that there is not yet may be named; one that is nearly named is likely meant."""
    if name not in NAMED and (near := did_you_mean(name, NAMED)):
        warn(f"{what}: there is no pass named `{name}`; {near}")


class _Stack(threading.local):
    """The contexts that are entered, innermost last; each thread has its own."""

    def __init__(self) -> None:
        self.entered: list[PassContext] = []
        self.default: PassContext | None = None


_stack = _Stack()


@checked
class PassContext:
    """The circumstances of pass runs; enter it with `with`.

    `opt_level` decides which passes of a `Sequential` run; `required_pass` run at any level,
    `disabled_pass` never; `instruments` watch every pass; `config` holds options by key.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Iterable[object] | None = None,
        config: Mapping[str, Any] | None = None,
    ):
        self.opt_level = int(opt_level)
        self.required_pass = _names(required_pass, "required_pass")
        self.disabled_pass = _names(disabled_pass, "disabled_pass")
        self.instruments = _instruments(instruments)
        self.config = _checked_config(config or {})

    @staticmethod
    def current() -> PassContext:
        """The innermost context that is entered, or the default one (level 2)."""
        if _stack.entered:
            return _stack.entered[-1]
        if _stack.default is None:
            _stack.default = PassContext()
        return _stack.default

    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """Every known configuration key and the type of its value."""
        return {name: {"type": _TYPE_KEYS.get(kind, kind.__name__)} for name, kind in sorted(CONFIG.items())}

    def get_config(self, name: str, default: object = None) -> Any:
        """The value of a configuration key; the key must be a known one."""
        if name not in CONFIG:
            _checked_value(name, default)
        return self.config.get(name, default)

    def enabled(self, info: PassInfo) -> bool:
        """Whether a `Sequential` runs this pass."""
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or self.opt_level >= info.opt_level

    # ---- entering and leaving

    def __enter__(self) -> PassContext:
        self._enter_instruments()
        _stack.entered.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _stack.entered.remove(self)
        self._guarded(lambda: self._each("exit_pass_ctx"))

    def override_instruments(self, instruments: Iterable[object] | None) -> None:
        """Put other instruments in the place of the present ones."""
        self._guarded(lambda: self._each("exit_pass_ctx"))
        self.instruments = _instruments(instruments)
        self._enter_instruments()

    def _enter_instruments(self) -> None:
        entered: list[object] = []

        def enter() -> None:
            for instrument in self.instruments:
                _hook(instrument, "enter_pass_ctx")
                entered.append(instrument)

        self._guarded(enter, lambda: [_hook(i, "exit_pass_ctx") for i in entered])

    def _guarded(self, action: Callable[[], object], undo: Callable[[], object] = lambda: None) -> None:
        """Run `action`; if it raises, undo and forget all instruments."""
        try:
            action()
        except BaseException:
            undo()
            self.instruments = []
            raise

    def _each(self, hook: str, *args: object) -> list[object]:
        return [_hook(instrument, hook, *args) for instrument in self.instruments]

    # ---- around a pass

    def before_pass(self, mod: IRModule, info: PassInfo) -> bool:
        """Ask the instruments whether the pass is to run, and tell them that it will."""
        if info.name not in self.required_pass and False in [
            r is None or bool(r) for r in self._each("should_run", mod, info)
        ]:
            return False
        self._each("run_before_pass", mod, info)
        return True

    def after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Tell the instruments that the pass has run, with its result."""
        self._each("run_after_pass", mod, info)

    def __repr__(self) -> str:
        parts = [f"opt_level={self.opt_level}"]
        parts += [f"{k}={list(v)}" for k in ("required_pass", "disabled_pass") if (v := getattr(self, k))]
        parts += [f"config={self.config}"] if self.config else []
        return f"PassContext({', '.join(parts)})"


HOOKS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


class _ClassName:
    """The name of an instrument's class, for instruments that say no other."""

    def __get__(self, instrument: object, kind: type) -> str:
        return kind.__name__


class PassInstrument:
    """The base of instruments. All hooks are optional:

    `enter_pass_ctx()`, `exit_pass_ctx()`, `should_run(mod, info) -> bool`,
    `run_before_pass(mod, info)`, `run_after_pass(mod, info)`.
    """

    name = _ClassName()


def _instruments(given: Iterable[object] | None) -> list[object]:
    """The instruments; `RelayTypeError` for what has none of the hooks, which would watch nothing."""
    instruments = list(() if given is None else given)
    for instrument in instruments:
        hooked = isinstance(instrument, PassInstrument) or any(hasattr(instrument, hook) for hook in HOOKS)
        if isinstance(instrument, type) or not hooked:
            message = f"{shown(instrument)} is no instrument, whose hooks are {', '.join(HOOKS)}"
            help = "give an object of a class that has one of them"
            raise RelayTypeError(message, code="pass.instrument", help=help)
    return instruments


def _hook(instrument: object, name: str, *args: object) -> object:
    """Call a hook that the instrument has; one that it lacks answers None."""
    hook = getattr(instrument, name, None)
    if hook is None:
        return None
    try:
        return hook(*args)
    except RelayError:
        raise
    except Exception as error:
        raise _told(instrument, name, error) from error


_KINDS = {
    ValueError: RelayValueError, TypeError: RelayTypeError, AttributeError: RelayAttributeError,
    IndexError: RelayIndexError,
}  # fmt: skip


def _told(instrument: object, name: str, error: Exception) -> RelayError:
    """What a hook raised as a RelayError, of the same kind where there is one, with the line that raised it."""
    kind = next((made for base, made in _KINDS.items() if isinstance(error, base)), RelayError)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(instrument).__name__}.{name} raised {type(error).__name__}: {error}"
    return kind(text, code="pass.instrument", place=f"  --> {python_place(frame.filename, frame.lineno or 0)}")


def build_config(
    opt_level: int = 2,
    required_pass: Iterable[str] | None = None,
    disabled_pass: Iterable[str] | None = None,
    trace: object = None,
) -> PassContext:
    """A `PassContext` (the older name)."""
    return PassContext(opt_level, required_pass, disabled_pass)
