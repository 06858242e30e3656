"""Tuning: the schedules of a program's kernels are listed, ranked by a cost model, measured, and kept in records."""

from relaylab.tune.model import CostModel, Features
from relaylab.tune.search import Tuner, TuningStep
from relaylab.tune.task import KernelTask, tasks_of

__all__ = ["CostModel", "Features", "KernelTask", "Tuner", "TuningStep", "tasks_of"]
