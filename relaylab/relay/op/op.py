"""relay.op.op: the table of operators, under the name of the file that TVM has them in."""

from relaylab.ir.op import Op
from relaylab.op import *  # noqa: F403
from relaylab.op import get
from relaylab.op.base import OpPattern
