"""relay.op: operators, and the table of them."""

from relaylab.ir.op import Op
from relaylab.op import *  # noqa: F403
from relaylab.op import get
from relaylab.op import annotation, dyn, memory, qnn, vm
from relaylab.op.base import OpPattern
from relaylab.relay import image, nn, random, vision
from relaylab.relay.op import algorithm, contrib, op, reduce, tensor, transform
from relaylab.support.missing import missing as _missing

__all__ = [n for n in dir() if not n.startswith("_") and n not in ("algorithm", "contrib", "op", "reduce", "tensor", "transform")]

__getattr__ = _missing(__name__, globals())
