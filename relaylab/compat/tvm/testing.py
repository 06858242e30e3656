"""tvm.testing: helpers of test-suites."""

from relaylab.contrib.testing import *  # noqa: F403
