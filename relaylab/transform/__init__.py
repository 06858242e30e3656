"""Passes: programs in, programs out. One pass is one file; `PASSES` lists them all.

    from relaylab import relay
    mod = relay.transform.FoldConstant()(mod)

The machinery: `manager` (kinds of passes, the table), `context`, `instrument`, `history`
(provenance), `pattern` (dataflow patterns), `rules` (rewrite rules), `pipeline` (the defaults).
"""

from relaylab.transform.alter_op_layout import AlterOpLayout
from relaylab.transform.annotate_target import AnnotateTarget
from relaylab.transform.batching_ops import BatchingOps
from relaylab.transform.bind import BindParams, bind, bind_params_by_name
from relaylab.transform.canonicalize_cast import CanonicalizeCast
from relaylab.transform.canonicalize_ops import CanonicalizeOps
from relaylab.transform.change_batch import ChangeBatch
from relaylab.transform.combine_parallel_batch_matmul import CombineParallelBatchMatmul
from relaylab.transform.combine_parallel_conv2d import CombineParallelConv2D
from relaylab.transform.combine_parallel_dense import CombineParallelDense
from relaylab.transform.context import CONFIG, PassContext, build_config, register_config
from relaylab.transform.convert_layout import ConvertLayout, LayoutConfig
from relaylab.transform.dead_code_elimination import DeadCodeElimination
from relaylab.transform.defuse_ops import DefuseOps
from relaylab.transform.dynamic_to_static import DynamicToStatic
from relaylab.transform.eliminate_common_subexpr import EliminateCommonSubexpr
from relaylab.transform.eta_expand import EtaExpand
from relaylab.transform.fake_quantization_to_integer import FakeQuantizationToInteger
from relaylab.transform.fast_math import FastMath
from relaylab.transform.first_order_gradient import FirstOrderGradient, gradient
from relaylab.transform.flatten_atrous_conv import FlattenAtrousConv
from relaylab.transform.fold_constant import FoldConstant, FoldConstantExpr
from relaylab.transform.fold_explicit_padding import FoldExplicitPadding
from relaylab.transform.fold_scale_axis import FoldScaleAxis
from relaylab.transform.fold_scale_axis_backward import BackwardFoldScaleAxis
from relaylab.transform.fold_scale_axis_forward import ForwardFoldScaleAxis
from relaylab.transform.fuse_ops import FuseOps
from relaylab.transform.history import History, Stage, collecting
from relaylab.transform.infer_type import InferType, InferTypeLocal
from relaylab.transform.inline import Inline
from relaylab.transform.inline_compiler_functions_bound_to import InlineCompilerFunctionsBoundTo
from relaylab.transform.instrument import PassInstrument, PassTimingInstrument, PrintAfter, PrintBefore, pass_instrument
from relaylab.transform.label_ops import LabelOps
from relaylab.transform.lambda_lift import LambdaLift
from relaylab.transform.legalize import Legalize, register_legalize
from relaylab.transform.manager import (
    PASSES,
    FunctionPass,
    ModulePass,
    Pass,
    PassEntry,
    PassInfo,
    Sequential,
    create,
    function_pass,
    module_pass,
    register_pass,
    run_pipeline,
)
from relaylab.transform.manifest_lifetimes import ManifestLifetimes
from relaylab.transform.merge_compiler_regions import MergeCompilerRegions
from relaylab.transform.merge_composite import MergeComposite
from relaylab.transform.outline_compiler_functions_with_existing_global_symbols import (
    OutlineCompilerFunctionsWithExistingGlobalSymbols,
)
from relaylab.transform.partial_evaluate import PartialEvaluate
from relaylab.transform.partition_graph import PartitionGraph
from relaylab.transform.pipeline import default_passes, optimize
from relaylab.transform.plan_devices import PlanDevices
from relaylab.transform.print_ir import PrintIR
from relaylab.transform.qnn import QnnCanonicalizeOps, QnnLegalize
from relaylab.transform.remove_unused_functions import RemoveUnusedFunctions
from relaylab.transform.rules import Rule, RuleSet, apply_rules, rule
from relaylab.transform.simplify_expr import SimplifyExpr
from relaylab.transform.simplify_fc_transpose import SimplifyFCTranspose
from relaylab.transform.simplify_inference import SimplifyInference
from relaylab.transform.split_args import SplitArgs
from relaylab.transform.to_a_normal_form import ToANormalForm, ToANormalFormExpr
from relaylab.transform.to_basic_block_normal_form import ToBasicBlockNormalForm
from relaylab.transform.to_graph_normal_form import ToGraphNormalForm
from relaylab.transform.to_mixed_precision import ToMixedPrecision

__all__ = [name for name in dir() if not name.startswith("_")]
