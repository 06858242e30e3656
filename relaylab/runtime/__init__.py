"""Runtime: arrays, compiled modules and how they are saved, loaded and run. Never imports the compiler."""

from relaylab.runtime import graph_executor
from relaylab.runtime.archive import ArtifactError
from relaylab.runtime.benchmark import BenchmarkResult
from relaylab.runtime.container import ADT, ConstructorValue, RefValue, String, getitem_helper, tuple_object
from relaylab.runtime.device import (
    Device,
    cpu,
    cuda,
    device,
    ext_dev,
    gpu,
    hexagon,
    metal,
    opencl,
    rocm,
    vpi,
    vulkan,
    webgpu,
)
from relaylab.runtime.executable import Executable
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.module import GraphExecutorFactoryModule, GraphExecutorModule, Module, load_library, load_module
from relaylab.runtime.ndarray import NDArray, array, empty, from_dlpack
from relaylab.runtime.params import load_param_dict, save_param_dict
from relaylab.runtime.threads import num_threads, set_num_threads
from relaylab.runtime.vm_library import VMLibrary

__all__ = [
    "ADT", "ArtifactError", "BenchmarkResult", "ConstructorValue", "Device", "Executable", "GraphExecutorFactoryModule",
    "GraphExecutorModule", "GraphModule", "Module", "NDArray", "RefValue", "String", "VMLibrary", "array", "cpu",
    "cuda", "device", "empty", "ext_dev", "from_dlpack", "getitem_helper", "gpu", "graph_executor", "hexagon",
    "load_library", "load_module", "load_param_dict", "metal", "num_threads", "opencl", "rocm", "save_param_dict",
    "set_num_threads", "tuple_object", "vpi", "vulkan", "webgpu",
]  # fmt: skip
__dir__ = lambda: sorted(__all__)  # what is meant for others: without the modules behind it
