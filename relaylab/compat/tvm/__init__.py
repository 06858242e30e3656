"""The module tree that `import tvm` finds. Re-exports only."""

from relaylab import relay
from relaylab.compat.tvm import contrib, error, instrument, ir, nd, parser, runtime, target, te, testing, tir, transform
from relaylab.compat.tvm.ir import IRModule
from relaylab.contrib.registry import get_global_func, register_func
from relaylab.runtime.device import Device, cl, cpu, cuda, device, ext_dev, gpu, hexagon, metal, opencl, rocm, vpi, vulkan, webgpu
from relaylab.runtime.ndarray import NDArray
from relaylab.support.errors import RelayError as TVMError
from relaylab.support.missing import missing as _missing

__version__ = "0.10.0"

__getattr__ = _missing(__name__, globals())
