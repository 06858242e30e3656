"""Tuning: the schedules of a program's kernels are listed, ranked by a cost model, measured, and kept in records."""

from relaylab.tune.search import Tuner, TuningStep
from relaylab.tune.task import KernelTask, tasks_of

__all__ = ["KernelTask", "Tuner", "TuningStep", "tasks_of"]
