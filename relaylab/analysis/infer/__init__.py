"""Type inference: a solver of constraints over types with unknown parts."""

from relaylab.analysis.infer.module import infer_expr, infer_module, infer_type_local

__all__ = ["infer_expr", "infer_module", "infer_type_local"]
