"""tvm.runtime.container: values that are not tensors."""

from relaylab.runtime.container import *  # noqa: F403
