"""relay.param_dict: parameters as bytes."""

from relaylab.runtime.params import load_param_dict, save_param_dict
from relaylab.support.missing import missing as _missing

__all__ = ["load_param_dict", "save_param_dict"]

__getattr__ = _missing(__name__, globals())
