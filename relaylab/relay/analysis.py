"""relay.analysis: facts about programs."""

from relaylab.analysis import *  # noqa: F403
