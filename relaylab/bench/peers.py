"""The engines that are compared: each turns a stored program into a callable that runs it once.

An engine imports only what it needs when it is used, so that a process which holds one engine is that engine's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylab.bench.open_decoder import PAST

if TYPE_CHECKING:
    from relaylab.codegen.vm import VirtualMachine

Feed = Mapping[str, np.ndarray]
OURS, OPEN = "relaylab", "relaylab-open"
TARGET = ".target"  # the file that says what a program with open sizes is compiled for
GROWTH = 64
"""By how many tokens a cache grows before it begins anew."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A loaded program: `run()` computes it once on its inputs, `outputs()` are the results of the last run."""

    run: Callable[[], Any]
    outputs: Callable[[], list[np.ndarray]]


@dataclass(frozen=True, slots=True)
class InferenceEngine:
    """A way to run stored programs.

    `prepare` imports the engine; `load(path, feed, threads)` gives a `Ready`; `suffix` says which form it reads:
    `.so` (our library) or `.onnx`.
    """

    package: str
    prepare: Callable[[], object]
    load: Callable[[str, Feed, int], Ready]
    suffix: str = ".onnx"


def _import_ours() -> object:
    from relaylab.runtime import graph_executor
    from relaylab.runtime.native import linker

    linker()
    return graph_executor


def _ours(path: str, feed: Feed, threads: int) -> Ready:
    from relaylab.runtime import cpu, load_module
    from relaylab.runtime.graph_executor import GraphModule
    from relaylab.runtime.threads import set_num_threads

    set_num_threads(threads)
    module = GraphModule(load_module(path)["default"](cpu(0)))
    for name, value in feed.items():
        module.set_input(name, value)
    count = module.get_num_outputs()
    return Ready(module.run, lambda: [module.get_output(k).numpy() for k in range(count)])


def _import_onnxruntime() -> object:
    onnxruntime = import_module("onnxruntime")

    return onnxruntime


def _onnxruntime(path: str, feed: Feed, threads: int) -> Ready:
    """An onnxruntime session of all graph optimisations, on float32."""
    ort = import_module("onnxruntime")

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    if any(isinstance(d, str) for i in session.get_inputs() for d in i.shape):
        return _growing(lambda given: session.run(None, dict(given)), feed)
    return _remembering(lambda: session.run(None, dict(feed)))


def _import_open() -> object:
    import onnx

    from relaylab import relay
    from relaylab.frontend import from_onnx
    from relaylab.runtime.native import linker

    linker()
    return onnx.load, from_onnx, relay.vm.compile


def built_open(path: Path, target: str) -> VirtualMachine:
    """An ONNX model with open sizes in the virtual machine, at level 3."""
    import onnx

    from relaylab import relay
    from relaylab.frontend import from_onnx

    mod, params = from_onnx(onnx.load(path))
    with relay.transform.PassContext(opt_level=3):
        return relay.vm.VirtualMachine(relay.vm.compile(mod, target, params=params))


def _ours_open(path: str, feed: Feed, threads: int) -> Ready:
    """A program with open sizes in the virtual machine, for the target that is written beside it."""
    from relaylab.runtime.ndarray import NDArray
    from relaylab.runtime.threads import set_num_threads

    set_num_threads(threads)
    target = Path(path).with_suffix(TARGET).read_text(encoding="utf-8")
    machine = built_open(Path(path), target)

    def step(given: Feed) -> list[Any]:
        found = machine.invoke("main", *given.values())
        return [found] if isinstance(found, NDArray) else list(found)

    return _growing(step, feed)


def _growing(step: Callable[[Feed], Sequence[np.ndarray]], feed: Feed) -> Ready:
    """Steps of which each takes the caches that the one before gave; from the beginning again after `GROWTH`."""
    names = [name for name in feed if name.startswith(PAST)]
    if not names:
        return _remembering(lambda: step(feed))
    state, turns = dict(feed), [0]

    def run() -> None:
        turns[0] = (turns[0] + 1) % GROWTH
        state.update(zip(names, step(state)[1:] if turns[0] else [feed[name] for name in names]))

    return Ready(run, lambda: [np.asarray(value) for value in step(feed)])


def _import_openvino() -> object:
    openvino = import_module("openvino")

    return openvino


def _openvino(path: str, feed: Feed, threads: int) -> Ready:
    """An OpenVINO request with the float32 hint (its default on some processors is bfloat16)."""
    ov = import_module("openvino")

    config = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = ov.Core().compile_model(path, "CPU", config)
    request = compiled.create_infer_request()
    for name, value in feed.items():
        request.set_tensor(name, ov.Tensor(value))
    return Ready(
        request.infer, lambda: [np.array(request.get_output_tensor(k).data) for k in range(len(compiled.outputs))]
    )


def _import_torch() -> object:
    torch = import_module("torch")

    return torch


def _torch(path: str, feed: Feed, threads: int) -> Ready:
    """PyTorch's inductor on float32: frozen weights, its own search for matrix products; it needs a C++ compiler."""
    torch = import_module("torch")
    config: Any = import_module("torch._inductor.config")

    from relaylab.bench.torch_model import to_torch

    torch.set_num_threads(threads)
    config.freezing = True
    translated, names = to_torch(path)
    model = torch.compile(translated, mode="max-autotune", fullgraph=True)
    inputs = [torch.from_numpy(feed[name]) for name in names]

    def run() -> list[np.ndarray]:
        with torch.no_grad():
            return [value.numpy() for value in model(*inputs)]

    return _remembering(run)


def _remembering(run: Callable[[], Sequence[Any]]) -> Ready:
    last: list[Sequence[Any]] = [[]]

    def once() -> None:
        last[0] = run()

    return Ready(once, lambda: [np.asarray(value) for value in last[0]])


ENGINES: dict[str, InferenceEngine] = {
    OURS: InferenceEngine("relaylab", _import_ours, _ours, ".so"),
    OPEN: InferenceEngine("relaylab", _import_open, _ours_open),
    "onnxruntime": InferenceEngine("onnxruntime", _import_onnxruntime, _onnxruntime),
    "openvino": InferenceEngine("openvino", _import_openvino, _openvino),
    "torch": InferenceEngine("torch", _import_torch, _torch),
}
PEERS = tuple(name for name in ENGINES if name not in (OURS, OPEN))


def installed() -> tuple[str, ...]:
    """The peers that can be imported here."""
    return tuple(name for name in PEERS if find_spec(ENGINES[name].package) is not None)
