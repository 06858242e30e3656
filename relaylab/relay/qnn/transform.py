"""relay.qnn.transform: passes that lower the quantized dialect."""

from relaylab.transform.qnn import QnnCanonicalizeOps as CanonicalizeOps
from relaylab.transform.qnn import QnnLegalize as Legalize

__all__ = ["CanonicalizeOps", "Legalize"]
