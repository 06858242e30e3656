"""tvm.nd: arrays and devices."""

from relaylab.runtime.device import Device, cpu, cuda, device, gpu, opencl
from relaylab.runtime.ndarray import NDArray, array, empty, from_dlpack
from relaylab.support.missing import missing as _missing

__all__ = ["Device", "NDArray", "array", "cpu", "cuda", "device", "empty", "from_dlpack", "gpu", "opencl"]

__getattr__ = _missing(__name__, globals())
