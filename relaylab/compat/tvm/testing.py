"""tvm.testing: helpers of test-suites."""

from relaylab.contrib.testing import *  # noqa: F403
from relaylab.support.missing import missing as _missing

__getattr__ = _missing(__name__, globals())
