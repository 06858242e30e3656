"""`relay.random`: counter-based random numbers."""

from relaylab.op.random.distributions import (
    multinomial,
    normal,
    threefry_generate,
    threefry_key,
    threefry_split,
    uniform,
)

__all__ = ["multinomial", "normal", "threefry_generate", "threefry_key", "threefry_split", "uniform"]
