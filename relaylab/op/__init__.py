from relaylab.op.binary import *  # noqa
from relaylab.op.compare import *  # noqa
from relaylab.op.elementwise import *  # noqa
from relaylab.op.unary import *  # noqa
from relaylab.op.reduce import *  # noqa
