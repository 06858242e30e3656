"""relay.qnn: the quantized dialect's passes."""

from relaylab.transform import qnn as transform

__all__ = ["transform"]
