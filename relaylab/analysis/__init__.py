"""Facts about programs: type inference and the analyses of Relay. Nothing here changes a program."""

from relaylab.analysis.calibration import get_calibration_data
from relaylab.analysis.callgraph import CallGraph
from relaylab.analysis.cases import pattern_text, unmatched_cases
from relaylab.analysis.checks import check_basic_block_normal_form, check_constant, search_fc_transpose
from relaylab.analysis.components import strong_components
from relaylab.analysis.cost import Cost, call_macs, costs, dtype_bytes, node_cost, type_bytes
from relaylab.analysis.counts import (
    all_dtypes,
    count_layers,
    get_total_mac_number,
    list_fake_quantized_op_freqs,
    list_op_freqs,
)
from relaylab.analysis.dominators import post_dominates, post_dominators
from relaylab.analysis.extract import extract_intermdeiate_expr, extract_intermediate_expr
from relaylab.analysis.features import Feature, detect_feature
from relaylab.analysis.infer import infer_expr, infer_module, infer_type_local
from relaylab.analysis.kind import check_kind, constructor_type
from relaylab.analysis.liveness import LiveInterval, Liveness, liveness
from relaylab.analysis.regions import AnnotatedRegion, AnnotatedRegionSet
from relaylab.ir.free import all_type_vars, all_vars, bound_type_vars, bound_vars, free_type_vars, free_vars
from relaylab.ir.scope import lifted, scope_faults, scopes, well_formed
from relaylab.ir.visit import post_order_visit, users

__all__ = [
    "AnnotatedRegion", "AnnotatedRegionSet", "CallGraph", "Cost", "Feature", "LiveInterval", "Liveness", "all_dtypes",
    "all_type_vars", "all_vars", "bound_type_vars", "bound_vars", "call_macs", "check_basic_block_normal_form",
    "check_constant", "check_kind", "constructor_type", "costs", "count_layers", "detect_feature", "dtype_bytes",
    "extract_intermdeiate_expr", "extract_intermediate_expr", "free_type_vars", "free_vars",
    "get_calibration_data", "get_total_mac_number", "infer_expr", "infer_module", "infer_type_local", "lifted",
    "liveness", "list_fake_quantized_op_freqs", "list_op_freqs", "node_cost", "pattern_text", "post_dominates",
    "post_dominators", "post_order_visit", "scope_faults", "scopes", "search_fc_transpose", "strong_components",
    "type_bytes", "unmatched_cases", "users", "well_formed",
]  # fmt: skip
