"""relay.testing.dcgan: see relaylab.zoo.dcgan."""

from relaylab.zoo.dcgan import *  # noqa: F403
