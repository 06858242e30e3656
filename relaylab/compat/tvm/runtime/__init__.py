"""tvm.runtime: arrays, devices, loading what was compiled."""

from relaylab.compat.tvm.runtime import container, ndarray, profiling, vm
from relaylab.contrib.registry import convert
from relaylab.contrib.target import enabled
from relaylab.runtime.container import ADT
from relaylab.runtime.device import Device, cpu, cuda, device, gpu
from relaylab.runtime.module import load_module
from relaylab.runtime.ndarray import NDArray, array
from relaylab.runtime.params import load_param_dict, save_param_dict
from relaylab.support.missing import missing as _missing

String = str

__getattr__ = _missing(__name__, globals())
