"""Schedules that a build is given: kernels by their names, each with the text of its schedule."""

from __future__ import annotations

from relaylab.codegen.network.network import Network, Operation
from relaylab.loop.schedule import Schedule
from relaylab.support.errors import RelayTypeError, RelayValueError, kind_of
from relaylab.support.table import did_you_mean
from relaylab.transform import PassContext

SCHEDULES = "relay.codegen.schedules"


def chosen_schedules(network: Network) -> dict[Operation, Schedule]:
    """The schedules of `PassContext(config={"relay.codegen.schedules": {kernel: text or Schedule}})`.

    A name is a kernel's, with or without the module's prefix. Raises RelayValueError `schedule.unknown-kernel` for a
    name that no kernel has, RelayTypeError `schedule.arguments` for what is no schedule.
    """
    names = {o.name for o in network.operations if not o.reshape_only}
    short = {n.partition("_fused_")[2]: n for n in names}
    found: dict[Operation, Schedule] = {}
    for key, value in PassContext.current().get_config(SCHEDULES, {}).items():
        name = key if key in names else short.get(str(key).removeprefix("fused_"))
        if name is None:
            raise RelayValueError(
                f"there is no kernel `{key}` to be scheduled",
                code="schedule.unknown-kernel",
                help=did_you_mean(str(key), [*names, *short]) or f"the kernels are {', '.join(sorted(names))}",
            )
        if not isinstance(value, (str, Schedule)):
            raise RelayTypeError(
                f"the schedule of `{key}` is text or a Schedule, not {kind_of(value)}", code="schedule.arguments"
            )
        schedule = Schedule.parse(value) if isinstance(value, str) else value
        found |= {o: schedule for o in network.operations if o.name == name}
    return found
