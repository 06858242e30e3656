"""relay.dataflow_pattern: matching and rewriting parts of graphs."""

from relaylab.transform.pattern import *  # noqa: F403
