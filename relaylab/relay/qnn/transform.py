"""relay.qnn.transform: passes that lower the quantized dialect."""

from relaylab.transform.qnn import QnnCanonicalizeOps as CanonicalizeOps
from relaylab.transform.qnn import QnnLegalize as Legalize
from relaylab.support.missing import missing as _missing

__all__ = ["CanonicalizeOps", "Legalize"]

__getattr__ = _missing(__name__, globals())
