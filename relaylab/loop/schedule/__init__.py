"""Schedules: steps that rewrite loop programs without changing what they compute, as values with a text."""

from relaylab.loop.schedule import caches, marks, memory, order
from relaylab.loop.schedule.step import PRIMITIVES, Primitive, Schedule, ScheduleStep, primitive, step, table

__all__ = [
    "PRIMITIVES",
    "Primitive",
    "Schedule",
    "ScheduleStep",
    "caches",
    "marks",
    "memory",
    "order",
    "primitive",
    "step",
    "table",
]
