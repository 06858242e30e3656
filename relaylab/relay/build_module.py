"""relay.build_module: building, and binding parameters."""

from relaylab.codegen.build import build, optimize
from relaylab.codegen.executors import create_executor
from relaylab.transform.bind import bind, bind_params_by_name
from relaylab.transform.context import PassContext, build_config
from relaylab.support.missing import missing as _missing

__all__ = ["PassContext", "bind", "bind_params_by_name", "build", "build_config", "create_executor", "optimize"]

__getattr__ = _missing(__name__, globals())
