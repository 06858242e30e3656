"""relay.op.tensor: elementwise operators, under the name of the file that TVM has them in."""

from relaylab.op import *  # noqa: F403
