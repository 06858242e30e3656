"""tvm.instrument: hooks around passes."""

from relaylab.transform.instrument import PassInstrument, PassTimingInstrument, pass_instrument

__all__ = ["PassInstrument", "PassTimingInstrument", "pass_instrument"]
