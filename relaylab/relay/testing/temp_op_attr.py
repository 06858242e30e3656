"""relay.testing.temp_op_attr: see relaylab.zoo.temp_op_attr."""

from relaylab.zoo.temp_op_attr import *  # noqa: F403
