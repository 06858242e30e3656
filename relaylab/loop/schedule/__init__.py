"""Schedules: steps that rewrite loop programs without changing what they compute, as values with a text."""

from relaylab.loop.schedule import caches, marks, memory, order, start
from relaylab.loop.schedule.schedule import Schedule
from relaylab.loop.schedule.step import FROM, PRIMITIVES, Primitive, ScheduleStep, placed, primitive, step, table

__all__ = [
    "FROM",
    "PRIMITIVES",
    "Primitive",
    "Schedule",
    "ScheduleStep",
    "caches",
    "marks",
    "memory",
    "order",
    "placed",
    "primitive",
    "start",
    "step",
    "table",
]
