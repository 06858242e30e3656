"""relay.testing.inception_v3: see relaylab.zoo.inception_v3."""

from relaylab.zoo.inception_v3 import *  # noqa: F403
