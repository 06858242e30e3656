"""tvm.runtime.ndarray: arrays."""

from relaylab.runtime.device import Device, cpu, device
from relaylab.runtime.ndarray import *  # noqa: F403
