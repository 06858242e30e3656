"""Recursive algorithms written as generators and run with an explicit stack.

A generator that needs a sub-result writes `value = yield sub_task(...)`. Depth is bounded by
memory, not by Python's stack, and the code reads like the recursion that it is. Exceptions
travel through the waiting generators as they would through callers.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")
Task = Generator["Task[Any]", Any, T]


def run(task: Task[T]) -> T:
    """The value that `task` returns, with all the tasks that it yields run to their ends."""
    waiting: list[Task[Any]] = []
    value: Any = None
    error: Exception | None = None
    while True:
        try:
            below = task.send(value) if error is None else task.throw(error)
        except StopIteration as stop:
            value, error = stop.value, None
        except Exception as raised:
            if not waiting:
                raise
            value, error = None, raised.with_traceback(None)  # else it grows by every task it travels through
        else:
            waiting.append(task)
            task, value, error = below, None, None
            continue
        if not waiting:
            return value
        task = waiting.pop()
