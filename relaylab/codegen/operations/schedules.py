"""Schedules that a build is given: kernels by their names, each with the text of its schedule."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from relaylab.codegen.network.network import Network, Operation
from relaylab.loop.schedule import Schedule
from relaylab.support.errors import RelayTypeError, RelayValueError, kind_of
from relaylab.support.table import did_you_mean
from relaylab.transform import PassContext

SCHEDULES = "relay.codegen.schedules"


_parts: ContextVar[tuple[set[str], dict[str, str]] | None] = ContextVar("parts", default=None)
"""Of networks that are one program: the names that were given and have a kernel, and what kernels there are."""


@contextmanager
def one_program(whole: bool = True) -> Generator[None]:
    """The networks that are built inside are parts of one program: a schedule is that of a kernel of any of them.

    Raises RelayValueError `schedule.unknown-kernel` at the end for a name that none has, if they are the `whole` of it.
    """
    found, names = set[str](), dict[str, str]()
    token = _parts.set((found, names))
    try:
        yield
    finally:
        _parts.reset(token)
    for key in _given() if whole else ():
        if key not in found:
            raise _unknown(key, names)


def chosen_schedules(network: Network) -> dict[Operation, Schedule]:
    """The schedules of `PassContext(config={"relay.codegen.schedules": {kernel: text or Schedule}})`.

    A name is a kernel's, with or without the module's prefix. Raises RelayValueError `schedule.unknown-kernel` for a
    name that no kernel has, RelayTypeError `schedule.arguments` for what is no schedule.
    """
    names = {o.name for o in network.operations if not o.reshape_only}
    short = {n.partition("_fused_")[2]: n for n in names}
    found: dict[Operation, Schedule] = {}
    parts = _parts.get()
    if parts is not None:
        parts[1].update(short)
    for key, value in _given().items():
        name = key if key in names else short.get(str(key).removeprefix("fused_"))
        if name is None and parts is not None:
            continue
        if name is None:
            raise _unknown(key, short)
        if parts is not None:
            parts[0].add(key)
        if not isinstance(value, (str, Schedule)):
            raise RelayTypeError(
                f"the schedule of `{key}` is text or a Schedule, not {kind_of(value)}", code="schedule.arguments"
            )
        schedule = Schedule.parse(value) if isinstance(value, str) else value
        found |= {o: schedule for o in network.operations if o.name == name}
    return found


def _given() -> dict[str, object]:
    return PassContext.current().get_config(SCHEDULES, {})


def _unknown(key: str, short: dict[str, str]) -> RelayValueError:
    """That no kernel has a name; `short` has the names of kernels without the module's prefix, and with it."""
    known = f"the kernels are {', '.join(sorted(short.values()))}" if short else "it has no kernels of known code"
    help = did_you_mean(str(key), [*short.values(), *short]) or known
    return RelayValueError(f"there is no kernel `{key}` to be scheduled", code="schedule.unknown-kernel", help=help)
