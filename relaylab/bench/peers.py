"""The engines that are compared: each turns a row into a callable that runs it once."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from relaylab import relay
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.threads import set_num_threads
from relaylab.tour.running import seeded

Feed = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Ready:
    """A loaded program: `run()` computes it once on its inputs, `outputs()` are the results of the last run."""

    run: Callable[[], Any]
    outputs: Callable[[], list[np.ndarray]]


def ours(lib: Any, feed: Feed, threads: int) -> Ready:
    """A compiled library with its inputs set."""
    set_num_threads(threads)
    module: GraphModule = seeded(lib, feed)
    count = module.get_num_outputs()
    return Ready(module.run, lambda: [module.get_output(k).numpy() for k in range(count)])


def onnxruntime(model: bytes, feed: Feed, threads: int) -> Ready:
    """An onnxruntime session of all graph optimisations, on float32."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return _remembering(lambda: session.run(None, dict(feed)))


def openvino(model: bytes, feed: Feed, threads: int) -> Ready:
    """An OpenVINO request with the float32 hint (its default on some processors is bfloat16)."""
    import openvino as ov

    config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    compiled = ov.Core().compile_model(ov.Core().read_model(model), "CPU", config)
    request = compiled.create_infer_request()
    for name, value in feed.items():
        request.set_tensor(name, ov.Tensor(value))
    return Ready(request.infer, lambda: [np.array(request.get_output_tensor(k).data) for k in range(len(compiled.outputs))])


def _remembering(run: Callable[[], list[np.ndarray]]) -> Ready:
    last: list[list[np.ndarray]] = [[]]

    def once() -> None:
        last[0] = run()
    return Ready(once, lambda: last[0])


PEERS: dict[str, Callable[[bytes, Feed, int], Ready]] = {"onnxruntime": onnxruntime, "openvino": openvino}


def installed() -> dict[str, Callable[[bytes, Feed, int], Ready]]:
    """The peers that can be imported here."""
    return {name: load for name, load in PEERS.items() if find_spec(name) is not None}


def inputs_of(model: Any) -> dict[str, np.ndarray]:
    """Seeded values for the inputs of an ONNX model, by name."""
    rng = np.random.default_rng(0)
    shapes = {i.name: tuple(d.dim_value for d in i.type.tensor_type.shape.dim) for i in model.graph.input}
    return {name: rng.uniform(-1, 1, shape).astype("float32") for name, shape in shapes.items()}


def built(mod: Any, params: Mapping[str, Any]) -> tuple[Any, float]:
    """The library of a program at level 3, and the seconds that building took."""
    start = time.perf_counter()
    with relay.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=params)
    return lib, time.perf_counter() - start


@contextlib.contextmanager
def cache_directory(path: str) -> Iterator[None]:
    """Keep object code in `path` while the block runs; an empty one turns the cache off."""
    before = os.environ.get("RELAYLAB_CACHE_DIR")
    os.environ["RELAYLAB_CACHE_DIR"] = path
    try:
        yield
    finally:
        if before is None:
            del os.environ["RELAYLAB_CACHE_DIR"]
        else:
            os.environ["RELAYLAB_CACHE_DIR"] = before
