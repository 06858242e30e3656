"""tvm.error: exceptions."""

from relaylab.support.errors import DiagnosticError
from relaylab.support.errors import RelayAttributeError as OpAttributeInvalid
from relaylab.support.errors import RelayAttributeError as OpNotImplemented
from relaylab.support.errors import RelayError as InternalError
from relaylab.support.errors import RelayError as TVMError

__all__ = ["DiagnosticError", "InternalError", "OpAttributeInvalid", "OpNotImplemented", "TVMError"]
