"""Parts of TVM that are not kept, and that programs import all the same: importing succeeds, use says why not.

What a program only asks for beside its Relay part (the context of a tuning log, the tasks of a tuner) warns and does
nothing. Choices: docs/choices.md, The house.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import NoReturn

from relaylab.support.errors import RelayError

PARTS = frozenset(
    f"tvm.{name}"
    for name in """autotvm auto_scheduler meta_schedule driver micro rpc script te tir topi contrib.cc contrib.clang
    contrib.cblas contrib.cublas contrib.cudnn contrib.emcc contrib.mkl contrib.ndk contrib.nvcc contrib.rocm
    contrib.spirv contrib.tar contrib.tedd contrib.xcode""".split()
)
"""Modules that are there to be imported, with everything below them. `te` and `tir` have a few names of their own."""


def is_part(key: str) -> bool:
    """Whether a module such as `tvm.autotvm.tuner` is one of them."""
    names = key.split(".", 3)
    return ".".join(names[:2]) in PARTS or ".".join(names[:3]) in PARTS


class Unavailable:
    """Something of a part that is not kept: calling it or using it otherwise raises RelayError `name.unavailable`."""

    def __init__(self, name: str):
        self.__name__ = self.__qualname__ = name

    def _refuse(self) -> NoReturn:
        from relaylab.compat.missing import LEVELS, reason

        raise RelayError(f"{self.__name__} is not kept", code="name.unavailable", help=reason(self.__name__) or LEVELS)

    def __call__(self, *args: object, **settings: object) -> NoReturn:
        self._refuse()

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # what Python itself looks for
            raise AttributeError(name)
        return found(f"{self.__name__}.{name}")

    def __getitem__(self, index: object) -> NoReturn:
        self._refuse()

    def __iter__(self) -> Iterator[object]:
        self._refuse()

    def __enter__(self) -> NoReturn:
        self._refuse()

    def __exit__(self, *exc: object) -> None:
        """Never reached: entering raises."""

    def __mro_entries__(self, bases: tuple[type, ...]) -> NoReturn:
        self._refuse()

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<{self.__name__}: not kept>"


class Idle:
    """What stands for a tuner, its options or the context of its log: every use of it does nothing."""

    def __init__(self, name: str):
        self.__name__ = name

    def __call__(self, *args: object, **settings: object) -> Idle:
        return self

    def __getattr__(self, name: str) -> Idle:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __enter__(self) -> Idle:
        return self

    def __exit__(self, *exc: object) -> None:
        """Errors pass."""

    def __repr__(self) -> str:
        return f"<{self.__name__}: does nothing here>"


_NO_TASKS: dict[str, Callable[[], object]] = {
    "tvm.autotvm.task.extract_from_program": list,
    "tvm.autotvm.task.extract_from_multiple_program": list,
    "tvm.autotvm.extract_from_program": list,
    "tvm.auto_scheduler.extract_tasks": lambda: ([], []),
    "tvm.meta_schedule.extract_task_from_relay": list,
    "tvm.meta_schedule.relay_integration.extract_tasks": list,
}
"""What finds the tasks of a tuner: there are none."""
_IDLE = frozenset(
    f"tvm.{name}"
    for name in """autotvm.apply_history_best autotvm.apply_graph_best autotvm.tophub.context autotvm.FallbackContext
    autotvm.ApplyHistoryBest autotvm.ApplyGraphBest autotvm.task.ApplyHistoryBest autotvm.task.FallbackContext
    autotvm.task.dispatcher.ApplyHistoryBest autotvm.measure_option autotvm.LocalBuilder autotvm.LocalRunner
    autotvm.RPCRunner autotvm.GLOBAL_SCOPE autotvm.callback.progress_bar autotvm.callback.log_to_file
    auto_scheduler.ApplyHistoryBest auto_scheduler.ApplyHistoryBestOrSample auto_scheduler.LocalRPCMeasureContext
    auto_scheduler.LocalBuilder auto_scheduler.LocalRunner auto_scheduler.RPCRunner auto_scheduler.RecordToFile
    auto_scheduler.TaskScheduler auto_scheduler.TuningOptions meta_schedule.ApplyHistoryBest""".split()
)
"""What a program may go through without tuning anything."""
_WARNED: set[str] = set()


def found(name: str) -> object:
    """What an attribute of such a part is."""
    if name in _IDLE or name in _NO_TASKS:
        return _without_effect(name)
    return Unavailable(name)


def _without_effect(name: str) -> Callable[..., object]:
    def run(*args: object, **settings: object) -> object:
        if (records := _records(name, args)) is not None:
            return records
        part = ".".join(name.split(".")[:2])
        if part not in _WARNED:
            _WARNED.add(part)
            message = f"{part} does nothing here: kernels are chosen by their shapes when a program is built"
            warnings.warn(message, stacklevel=2)
        return _NO_TASKS[name]() if name in _NO_TASKS else Idle(name)

    run.__name__ = run.__qualname__ = name
    return run


def _records(name: str, args: tuple[object, ...]) -> object:
    """The context of records that `relaylab tune` has made, where a program names them; None for any other log."""
    if not args or not isinstance(args[0], (str, os.PathLike)) or "best" not in name.lower():
        return None
    try:
        with open(args[0], "rb") as file:
            if not file.read(16).startswith(b"SQLite format 3"):
                return None
    except OSError:
        return None
    from relaylab.codegen.operations.records import records_used

    return records_used(args[0])


class UnkeptPart(ModuleType):
    """A module of a part that is not kept."""

    def __init__(self, key: str):
        super().__init__(f"relaylab.{key}", f"{key} is not kept; using what it has says why.")
        self.__path__: list[str] = []
        self._key = key

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return found(f"{self._key}.{name}")
