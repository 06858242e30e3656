"""Runtime modules: what `relay.build` and `load_module` return, and what `lib["default"](dev)` makes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from relaylab.runtime.archive import ArchiveReader
from relaylab.runtime.benchmark import Evaluator
from relaylab.runtime.device import Device, cpu, require_present
from relaylab.runtime.executable import Executable
from relaylab.runtime.executor import GraphExecutor, unpicklable
from relaylab.runtime.native import Code
from relaylab.runtime.ndarray import NDArray, array
from relaylab.runtime.overview import KernelModule, StageSource, kernel_called, of_parts, overview, source
from relaylab.runtime.threads import num_threads
from relaylab.support.checked import checked, fitting
from relaylab.support.errors import RelayAttributeError, RelayTypeError, RelayValueError, is_a, shown, warn
from relaylab.support.quoting import is_name
from relaylab.support.table import did_you_mean
from relaylab.support.words import counted

STAGES = {
    "relay": "the fused Relay function, and where it was written",
    "loop": "its loops, as they are emitted",
    "why": "what the loops were chosen from",
    "llvm": "LLVM IR",
    "llvm-optimized": "what LLVM's own passes would make of it (they are not run)",
    "flow": "blocks and loops, read back from the LLVM IR",
    "asm": "assembly, each instruction with its Relay node",
}
KEPT_STAGES = ("relay", "loop", "why", "llvm")
Function = Callable[..., Any]


@fitting
class Module:
    """Named functions. `module["name"]` gives one."""

    type_key = "relaylab"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise unpicklable("a compiled module")

    def functions(self) -> Mapping[str, Function]:
        """All functions by name."""
        return {}

    def get_function(self, name: str, query_imports: bool = False) -> Function:
        """A function by name, or a RelayAttributeError that offers the closest names."""
        functions = self.functions()
        if name not in functions:
            raise RelayAttributeError(
                f"the module has no function `{name}`",
                code="runtime.function",
                help=did_you_mean(name, functions) or f"functions: {', '.join(functions)}",
            )
        return functions[name]

    def __getitem__(self, name: str) -> Function:
        return self.get_function(name)

    @property
    def imported_modules(self) -> list[Module | KernelModule]:
        """The modules that this one consists of: for a network its kernels, else none."""
        return []

    def get_source(self, fmt: str = "") -> str:
        """The code of the module; this one has none of its own."""
        return ""

    def time_evaluator(
        self,
        func_name: str,
        dev: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        f_preproc: str = "",
    ) -> Evaluator:
        """A callable that times `func_name` and gives a `BenchmarkResult`."""
        require_present(cpu(0) if dev is None else dev)
        return Evaluator(
            self.get_function(func_name),
            number,
            repeat,
            min_repeat_ms,
            limit_zero_time_iterations,
            cooldown_interval_ms,
            repeats_to_cooldown,
        )


@fitting
class GraphExecutorModule(Module):
    """One runnable instance of a network; `graph_executor.GraphModule` is its comfortable face."""

    type_key = "GraphExecutor"

    def __init__(self, executor: GraphExecutor, factory: GraphExecutorFactoryModule):
        self.executor, self.factory = executor, factory

    def functions(self) -> Mapping[str, Function]:
        run = self.executor
        return {
            "run": run.run,
            "set_input": run.set_input,
            "set_input_zero_copy": run.set_input,
            "get_input": run.get_input,
            "get_output": run.get_output,
            "get_input_info": run.input_info,
            "get_num_outputs": lambda: len(run.plan.outputs),
            "get_num_inputs": lambda: len(run.names),
            "get_input_index": self._input_index,
            "load_params": run.load_params,
            "share_params": self._share_params,
        }

    def _input_index(self, name: str) -> int:
        return self.executor.index.get(name, -1)

    def _share_params(self, other: GraphExecutorModule, data: bytes) -> None:
        self.executor.share_params(other.executor, data)


@fitting
class GraphExecutorFactoryModule(Module):
    """A compiled network: makes instances, saves itself, shows the stages that it was compiled through.

    `ir_mod` and `stage_source` (the compiler's `Stages`) are there only in the process that built it.
    """

    type_key = "GraphExecutorFactory"

    def __init__(
        self,
        executable: Executable,
        *,
        ir_mod: Any = None,
        target: Any = None,
        executor: object = "graph",
        function_metadata: Mapping[str, Any] | None = None,
        stage_source: StageSource | None = None,
    ):
        self.executable = executable
        self.ir_mod, self.executor = ir_mod, executor
        self.target = executable.target.text if target is None else target
        self.function_metadata = dict(function_metadata or {})
        self._stage_source = stage_source
        # no cached_property: its lock, one for all modules, would stay locked in a child that is forked meanwhile
        self._code: Code | None = None
        self._params: dict[str, NDArray] | None = None
        self._shared: GraphExecutor | None = None

    def __repr__(self) -> str:
        plan = self.executable.plan
        cpu = str(self.target).partition(" -mattr")[0]  # its features would take ten lines
        count = len({step.kernel for step in plan.steps})
        what = f"{counted(len(plan.steps), 'step')} of {counted(count, 'kernel')}{of_parts(plan)}"
        return f"<compiled network {self.libmod_name!r}: {what}, for {cpu}>"

    @property
    def code(self) -> Code:
        """The linked code; linked at first use."""
        if self._code is None:
            self._code = Code(self.executable)
        return self._code

    @property
    def libmod_name(self) -> str:
        """The name given to `relay.build(mod_name=)`."""
        return self.executable.name

    @property
    def graph_json_str(self) -> str:
        """The graph as JSON text, laid out for reading."""
        return json.dumps(json.loads(self.executable.graph_json), indent=2)

    graph_json = graph_json_str

    @property
    def params(self) -> dict[str, NDArray]:
        """The parameters built into the network, as the graph names them: copies, in a dictionary of the caller's.

        Changing these changes no result: build again with others, or without `params`, which makes them inputs.
        """
        if self._params is None:
            self._params = {name: array(value) for name, value in self.executable.params.items()}
        return dict(self._params)

    @property
    def lib(self) -> GraphExecutorFactoryModule:
        """The library of kernels: this module, which holds everything."""
        return self

    module = lib

    @property
    def mod_name(self) -> str:
        """The name given to `relay.build(mod_name=)`."""
        return self.libmod_name

    def get_graph_json(self) -> str:
        """The graph as JSON text."""
        return self.graph_json_str

    get_executor_config = get_graph_json

    def get_params(self) -> dict[str, NDArray]:
        """The parameters built into the network, as `params`."""
        return self.params

    def get_lib(self) -> GraphExecutorFactoryModule:
        """The library of kernels: this module, which holds everything."""
        return self

    def get_devices(self) -> list[Device]:
        """The devices it runs on."""
        return [cpu(0)]

    def functions(self) -> Mapping[str, Function]:
        return {
            self.libmod_name: self.instantiate,
            "default": self.instantiate,
            "debug_create": self._debug_create,
            "get_graph_json": self.get_graph_json,
            "get_params": self.get_params,
        }

    def instantiate(self, *devices: Device, num_threads: int | None = None) -> GraphExecutorModule:
        """A new instance on `cpu(0)`, running on `num_threads` threads."""
        for dev in devices or (cpu(0),):
            require_present(dev)
        return GraphExecutorModule(GraphExecutor(self.code, num_threads), self)

    def run(
        self, inputs: Mapping[str, object] | None = None, /, **named: object
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        """Run the network once on the given inputs and return its result.

            lib = relay.build(mod, "llvm", params=params)
            y = lib.run(data=x)             # or lib.run({"data": x}), where a name is no Python word

        Every input of `main` is given by its name, as a numpy array, an NDArray, a number or a nested list of the
        input's shape; values are copied, and converted within their kind (float64 to float32, integers to floats).
        Parameters that were built in are part of the library and need not be given.

        The result is a numpy array of the result's shape and dtype, or a tuple of them where `main` returns several
        (nested tuples are flat here). It belongs to the caller: later runs write elsewhere.

        The first call makes an executor, which the following ones use again, with as many threads as `num_threads()`
        says. Calls from several threads take turns; `lib["default"](dev)` makes further executors.

        RelayValueError for a name that the network does not have (`runtime.input`), an input that is not given
        (`runtime.missing-input`) or given twice, another shape (`runtime.shape-mismatch`), and a built-in parameter
        with another value (`runtime.fixed-parameter`). RelayTypeError for a dtype of another kind
        (`runtime.dtype-mismatch`), and for inputs without names (`runtime.unnamed-input`).
        """
        outputs = self._shared_executor().call(self._named(inputs, named) if inputs is not None else named)
        return outputs[0] if len(outputs) == 1 else outputs

    def _named(self, inputs: Mapping[str, object], named: dict[str, object]) -> dict[str, object]:
        """The inputs of `run` in one mapping."""
        if not is_a(inputs, Mapping):
            names = [info.name for info in self.executable.plan.inputs] or ["x"]
            raise RelayTypeError(
                f"inputs are given by name; this is a value of type {type(inputs).__name__} alone",
                code="runtime.unnamed-input",
                help=f"lib.run({names[0]}=array)" if is_name(names[0]) else f"lib.run({{{names[0]!r}: array}})",
            )
        twice = sorted(inputs.keys() & named.keys())
        if twice:
            raise RelayValueError(
                f"the input `{twice[0]}` is given twice", code="runtime.input", help="give it in the dict or by name"
            )
        return {**inputs, **named}

    def _shared_executor(self) -> GraphExecutor:
        """The executor of `run`; two threads that make it at once have one each for that call, which does no harm."""
        shared, count = self._shared, num_threads()
        if shared is None or shared.instance.threads != count:
            shared = self._shared = GraphExecutor(self.code, count)
        return shared

    def _debug_create(self, name: str, *devices: Device) -> GraphExecutorModule:
        return self.get_function(name)(*devices)

    @checked
    def export_library(
        self,
        file_name: str | os.PathLike[str],
        fcompile: object = None,
        addons: object = None,
        workspace_dir: object = None,
        **kwargs: object,
    ) -> None:
        """Write everything into one file of any suffix that `load_module` reads; no C compiler is involved.

        ArtifactError if the file cannot be written; nothing half-written is left behind.
        """
        self.executable.save(_file_name(file_name), self._kept_stages() if self._stage_source else None)

    save = export_library

    @property
    def imported_modules(self) -> list[Module | KernelModule]:
        """The kernels as a module of their own."""
        return [KernelModule(self.get_source)]

    @checked
    def get_source(self, fmt: str = "") -> str:
        """The code of all kernels: LLVM IR ("" or "ll"), or assembly ("asm" or "s").

        RelayValueError for another format, and for assembly of a loaded module, which keeps the IR alone.
        """
        return source(self.kernels(), self._stage, fmt)

    @checked
    def inspect(self, stage: str = "loop", kernel: str | None = None) -> str:
        """The text of a stage of one kernel, or of all of them; `STAGES` says what there is ("relay", "loop", "why" …).

        A part of a kernel's name is enough where it is one kernel's only.
        """
        if stage not in STAGES:
            raise RelayValueError(
                f"there is no stage `{stage}`",
                code="runtime.stage",
                help=did_you_mean(stage, STAGES) or f"stages: {', '.join(STAGES)}",
            )
        names = self.kernels() if kernel is None else [self.kernel_called(kernel)]
        return "\n\n".join(self._stage(stage, name) for name in names)

    def kernel_called(self, name: str) -> str:
        """The kernel of a name, whole or after `_fused_`, or the only one with it; RelayValueError otherwise."""
        return kernel_called(name, self.kernels())

    def summary(self) -> str:
        """A table of the kernels: operators, result, work of a call, which code does it, and how often it is called."""
        relay = self.relay_text if self.has_stage("relay") else None
        return overview(self.kernels(), self.executable.plan, relay)

    def relay_text(self, kernel: str) -> str:
        """The text of the fused Relay function of a kernel, by its whole name."""
        return self._stage("relay", kernel)

    def linked(self, kernel: str) -> Sequence[Any]:
        """The native functions of a kernel with the Relay node of each instruction (`codegen.linked.Linked`), in order.

        RelayValueError for an unknown name, and for a loaded module, which no longer knows the nodes.
        """
        return self._compiler().linked(self.kernel_called(kernel))

    def compiled_function(self, kernel: str) -> Any:
        """The fused Relay function that a kernel was made from; RelayValueError as in `linked`."""
        return self._compiler().function(self.kernel_called(kernel))

    def _compiler(self) -> StageSource:
        if self._stage_source is None:
            raise _not_kept("the Relay nodes of its instructions")
        return self._stage_source

    def has_stage(self, stage: str) -> bool:
        """Can `inspect` show a stage? Not all of them are kept in files."""
        return self._stage_source is not None or stage in self.executable.stages

    def _kept_stages(self) -> dict[str, dict[str, str]]:
        """The texts that a file keeps."""
        return {stage: {name: self._stage(stage, name) for name in self.kernels()} for stage in KEPT_STAGES}

    def kernels(self) -> list[str]:
        """The names of the fused functions that were compiled, in the order of their first call."""
        return list(dict.fromkeys(step.label for step in self.executable.plan.steps))

    def _stage(self, stage: str, kernel: str) -> str:
        stored = self.executable.stages.get(stage, {})
        if kernel in stored:
            return stored[kernel]
        if self._stage_source is not None:
            return self._stage_source(stage, kernel)
        raise _not_kept(f"the stage `{stage}`")

    def __iter__(self) -> Iterator[object]:
        warn("relay.build returns one module; use it instead of unpacking graph, lib and params", DeprecationWarning)
        return iter((self.get_graph_json(), self.get_lib(), self.get_params()))


def _not_kept(what: str) -> RelayValueError:
    return RelayValueError(
        f"a loaded module does not keep {what}",
        code="runtime.stage",
        help="build the module in this process to look at it",
    )


Loaded = Any
"""A `GraphExecutorFactoryModule`, or what another kind of file holds."""
READERS: dict[str, Callable[[ArchiveReader], Loaded]] = {}
"""Kinds of files beside networks, by the name of the section that they alone have."""


def load_module(path: str | os.PathLike[str], fmt: str = "") -> Loaded:
    """A module from a file that `export_library` wrote; ArtifactError says what is wrong with another file."""
    file = ArchiveReader(_file_name(path))
    for section, reader in READERS.items():
        if section in file.sections:
            return reader(file)
    return GraphExecutorFactoryModule(Executable.load(path))


def _file_name(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """A path as it is, or RelayTypeError."""
    try:
        fits = is_a(path, str, os.PathLike) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise RelayTypeError(
            f"a file name is text without zero bytes and lone surrogates, not {shown(path)}",
            code="runtime.file-name",
            help='give a path, such as "net.so"',
        )
    return path


load_library = load_module
