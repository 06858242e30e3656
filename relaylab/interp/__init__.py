"""The reference evaluator: what every other way of running a program is compared with."""

from relaylab.interp.executor import EXECUTORS, FunctionValue, Interpreter, create_executor
from relaylab.interp.inputs import random_inputs, random_value
from relaylab.interp.machine import EvaluationError
from relaylab.interp.values import Closure, ConstructorValue, RefValue, map_arrays

__all__ = [
    "EXECUTORS", "Closure", "ConstructorValue", "EvaluationError", "FunctionValue", "Interpreter", "RefValue",
    "create_executor", "map_arrays", "random_inputs", "random_value",
]  # fmt: skip
