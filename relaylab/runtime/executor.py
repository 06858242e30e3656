"""`GraphExecutor`: a compiled network with named inputs and outputs; what `GraphModule` and modules call.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

import numpy as np

from relaylab.runtime.native import Code, Instance
from relaylab.runtime.ndarray import NDArray, array, converted
from relaylab.runtime.params import load_param_dict
from relaylab.runtime.threads import checked, num_threads
from relaylab.support.errors import RelayError, RelayIndexError, RelayTypeError, RelayValueError, is_a
from relaylab.support.table import did_you_mean


def unpicklable(what: str) -> RelayTypeError:
    """The error for pickling or deep-copying compiled code."""
    return RelayTypeError(
        f"{what} cannot be pickled or deep-copied: it is machine code and memory of this process",
        code="runtime.no-pickle",
        help="lib.export_library(path) there, relaylab.runtime.load_module(path) here",
    )


_alive: weakref.WeakSet[GraphExecutor] = weakref.WeakSet()


def _unlock_all() -> None:
    """In a child process: the threads that held locks do not exist there."""
    for executor in list(_alive):
        executor.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_all)


class Lease:
    """What arrays over an output's memory hang on: as long as one of them lives, slices of it too, no run writes there.

    numpy lets a view of a view hang on the first array that is no view; it goes no further than to an object like this.
    """

    __slots__ = ("__array_interface__", "__weakref__", "memory")

    def __init__(self, memory: np.ndarray):
        self.memory = memory
        self.__array_interface__ = memory.__array_interface__


class GraphExecutor:
    """Runs one instance of a network. Calls from several threads take turns. It lives in its process: no pickle.

    Inputs are the network's data inputs, then the parameters that were built into it.
    """

    def __init__(self, code: Code, threads: int | None = None):
        self.executable = code.executable
        self.plan = code.executable.plan
        count = num_threads() if threads is None else checked(threads)
        self.instance = Instance(code, count)
        self.lock = threading.RLock()  # reentrant: `call` holds it over `set_input`, `run` and `get_output`
        self.names = [info.name for info in self.plan.inputs] + list(self.executable.params)
        self.index = {name: i for i, name in enumerate(self.names)}
        self._inputs = [NDArray(data) for data in self.instance.inputs]
        self._handed_out: list[weakref.ref[Lease] | None] = [None] * len(self.plan.outputs)
        self._other: list[tuple[weakref.ref[Lease], np.ndarray] | None] = [None] * len(self.plan.outputs)
        _alive.add(self)

    # Inputs

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise unpicklable("a runnable network")

    def input_index(self, key: int | str | None) -> int:
        """The number of an input by name or number; RelayValueError offers the closest names."""
        if isinstance(key, str):
            if key in self.index:
                return self.index[key]
            help = did_you_mean(key, self.index) or f"inputs: {_few(i.name for i in self.plan.inputs) or 'none'}"
            raise RelayValueError(
                f"Could not find `{key}` in the inputs of the network", code="runtime.input", help=help
            )
        if key is None or is_a(key, bool) or not is_a(key, int, np.integer) or not 0 <= key < len(self.names):
            raise RelayValueError(
                f"Could not find input {key!r}: the network has {len(self.names)} inputs, counted from 0",
                code="runtime.input",
                help=f"names: {_few(self.names)}",
            )
        return int(key)

    def set_input(self, key: int | str | None, value: object) -> None:
        """Copy `value` into an input. A parameter that was built in can only be set to what it is."""
        index = self.input_index(key)
        if index >= len(self._inputs):
            return self._check_param(self.names[index], value)
        target = self.instance.inputs[index]
        values = value.read() if type(value) is NDArray else value
        if type(values) is not np.ndarray or values.shape != target.shape or values.dtype != target.dtype:
            values = converted(value, target.shape, target.dtype, f"the input `{self.names[index]}`")
        with self.lock:
            np.copyto(target, values, casting="unsafe")

    def _check_param(self, name: str, value: object) -> None:
        have = self.executable.params[name]
        values = converted(value, have.shape, have.dtype, f"the parameter `{name}`")
        if not np.array_equal(have, values.astype(have.dtype, copy=False), equal_nan="float" in have.dtype.name):
            raise RelayValueError(
                f"the parameter `{name}` was built into the code with another value",
                code="runtime.fixed-parameter",
                help="build again with relay.build(mod, params=...), or build without params and set them as inputs",
            )

    def get_input(self, key: int | str) -> NDArray:
        """An input as the network will read it (assigning to it sets it), or a copy of a built-in parameter."""
        index = self.input_index(key)
        if index < len(self._inputs):
            return self._inputs[index]
        return array(self.executable.params[self.names[index]])

    def input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes of the inputs that must be given, by name."""
        infos = self.plan.inputs
        return {i.name: i.shape for i in infos}, {i.name: i.dtype for i in infos}

    def load_params(self, data: bytes | bytearray | Mapping[str, object]) -> None:
        """Set parameters from saved bytes; names that the network does not have are skipped."""
        params = data if isinstance(data, Mapping) else load_param_dict(data)
        for name, value in params.items():
            if name in self.index:
                self.set_input(name, value)

    def share_params(self, other: GraphExecutor, data: bytes | bytearray) -> None:
        """Take the parameters named in `data` from another executor: its inputs of the same type become this one's."""
        for name in load_param_dict(data):
            if name not in self.index:
                continue
            index, source = self.index[name], other.get_input(name)
            own = self.instance.inputs[index] if index < len(self._inputs) else None
            if own is None or own.dtype.name != source.dtype or other.index[name] >= len(other.instance.inputs):
                self.set_input(name, source)
            else:
                self._share(index, source)

    def _share(self, index: int, source: NDArray) -> None:
        target = self.instance.inputs[index]
        converted(source, target.shape, target.dtype, f"the input `{self.names[index]}`")
        with self.lock:
            self._inputs[index] = source
            self.instance.inputs[index] = source.view()
            self.instance.bind(self.plan.input_base(index), source.view())

    # Running

    def run(self) -> None:
        """Run the network once. Outputs that were handed out before and are still in use keep their values."""
        with self.lock:
            self._spare_outputs()
            self.instance.run()

    def call(self, inputs: Mapping[str, object]) -> tuple[np.ndarray, ...]:
        """Set the inputs, all that the network needs, run once and give the outputs, in one turn."""
        for name in inputs:
            self.input_index(name)
        missing = [info for info in self.plan.inputs if info.name not in inputs]
        if missing:
            raise RelayValueError(
                f"no value is given for the input `{missing[0].name}`",
                code="runtime.missing-input",
                help=f"give {_few(f'{info.name}: {info.shape} {info.dtype}' for info in missing)}",
            )
        with self.lock:
            for name, value in inputs.items():
                self.set_input(name, value)
            self.run()
            return tuple(self.get_output(index).view() for index in range(len(self.plan.outputs)))

    def _spare_outputs(self) -> None:
        for index, handed in enumerate(self._handed_out):
            if handed is not None:
                if handed() is not None:
                    self._swap(index, handed)
                self._handed_out[index] = None

    def _swap(self, index: int, handed: weakref.ref[Lease]) -> None:
        """Write elsewhere: into the memory of the run before, if nobody looks at that any more.

        Whoever keeps each result until the next one is there needs two memories in turn; fresh pages cost more than a
        small network.
        """
        other, before = self._other[index], self.instance.outputs[index]
        free = other is not None and other[0]() is None
        self.instance.replace_output(index, other[1] if other is not None and free else None)  # may find no memory
        self._other[index] = handed, before

    def get_output(self, index: int) -> NDArray:
        """An output of the last run, zeros before the first. It keeps its values: a later run writes elsewhere."""
        self._check_output(index)
        with self.lock:
            handed = self._handed_out[index]
            lease = handed() if handed is not None else None
            if lease is None:
                lease = Lease(self.instance.outputs[index])
                self._handed_out[index] = weakref.ref(lease)  # weak: only the arrays keep a lease alive
            return NDArray(np.asarray(lease).view(lease.memory.dtype))  # the interface has no bfloat16

    def _check_output(self, index: int) -> None:
        count = len(self.plan.outputs)
        if is_a(index, bool) or not is_a(index, int, np.integer) or not 0 <= index < count:
            raise RelayIndexError(
                f"there is no output {index!r}: the network has {count}, counted from 0", code="runtime.output"
            )

    def debug_output(self, node: int, field: int = 0) -> NDArray:
        """What a node of the graph gives: runs the network up to there and copies the value."""
        for number, part, value in self.plan.values:
            if (number, part) == (node, field):
                with self.lock:
                    self._spare_outputs()
                    return array(self.instance.run_until(value))
        raise RelayError(
            f"the value of node {node} is not kept",
            code="runtime.node",
            help="ask for a node of the graph that computes something",
        )

    def timed_steps(self, clock: Callable[[], int]) -> list[int]:
        """Run once, step by step: the time of each step in the clock's unit."""
        with self.lock:
            self._spare_outputs()
            return self.instance.timed_steps(clock)

    def timed_call(self, clock: Callable[[], int]) -> int:
        """The time of running no step at all: what each time of `timed_steps` has too much."""
        with self.lock:
            start = clock()
            self.instance.run_range(0, 0)
            return clock() - start


def _few(names: Iterable[str], most: int = 8) -> str:
    """Names for a message: networks whose parameters are inputs have hundreds."""
    listed = list(names)
    return ", ".join(listed[:most]) + (" …" if len(listed) > most else "")
