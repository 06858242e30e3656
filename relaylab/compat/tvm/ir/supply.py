"""tvm.ir.supply: fresh names."""

from relaylab.ir.names import GlobalVarSupply, NameSupply

__all__ = ["GlobalVarSupply", "NameSupply"]
