"""tvm.instrument: hooks around passes."""

from relaylab.transform.instrument import PassInstrument, PassTimingInstrument, pass_instrument
from relaylab.support.missing import missing as _missing

__all__ = ["PassInstrument", "PassTimingInstrument", "pass_instrument"]

__getattr__ = _missing(__name__, globals())
