"""Type inference: a solver of constraints over types with unknown parts."""

from relaylab.analysis.infer.module import infer_expr, infer_module, infer_type_local
from relaylab.analysis.infer.untold import untold

__all__ = ["infer_expr", "infer_module", "infer_type_local", "untold"]
