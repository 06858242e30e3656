"""tvm.contrib.utils."""

from relaylab.contrib.utils import *  # noqa: F403
