"""tvm.error: exceptions."""

from relaylab.support.errors import DiagnosticError
from relaylab.support.errors import RelayAttributeError as OpAttributeInvalid
from relaylab.support.errors import RelayAttributeError as OpNotImplemented
from relaylab.support.errors import RelayError as InternalError
from relaylab.support.errors import RelayError as TVMError
from relaylab.support.missing import missing as _missing

__all__ = ["DiagnosticError", "InternalError", "OpAttributeInvalid", "OpNotImplemented", "TVMError"]

__getattr__ = _missing(__name__, globals())
