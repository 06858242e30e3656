"""Passes: programs in, programs out. One pass is one file; `PASSES` lists them all.

    from relaylab import relay
    mod = relay.transform.FoldConstant()(mod)

The engine declares passes and runs them; `pattern` matches dataflow patterns, `rewriting` applies rules, `pipeline` has
the default passes.
"""

from relaylab.transform.annotate_spans import AnnotateSpans
from relaylab.transform.bind import BindParams, bind, bind_params_by_name
from relaylab.transform.capture_post_dfs_index_in_spans import CapturePostDfsIndexInSpans
from relaylab.transform.change_batch import ChangeBatch
from relaylab.transform.engine.context import CONFIG, PassContext, build_config, register_config
from relaylab.transform.engine.declare import parse_pass, pass_, register_pass
from relaylab.transform.engine.decorators import function_pass, module_pass
from relaylab.transform.engine.history import History, Stage, collecting
from relaylab.transform.engine.infer_type import InferType, InferTypeLocal
from relaylab.transform.engine.info import PassInfo
from relaylab.transform.engine.instrument import (
    PassInstrument,
    PassTimingInstrument,
    PrintAfter,
    PrintBefore,
    pass_instrument,
)
from relaylab.transform.engine.manager import (
    PASSES,
    FunctionPass,
    ModulePass,
    Pass,
    PassEntry,
    Sequential,
    create,
    run_pipeline,
)
from relaylab.transform.engine.options import Option, PassRecord
from relaylab.transform.engine.print_ir import PrintIR
from relaylab.transform.flexible_shape_dispatch import FlexibleShapeDispatch
from relaylab.transform.fusion.defuse_ops import DefuseOps
from relaylab.transform.fusion.fuse_attention import FuseAttention
from relaylab.transform.fusion.fuse_ops import FuseOps
from relaylab.transform.fusion.label_ops import LabelOps
from relaylab.transform.fusion.sink_reshape import SinkReshape
from relaylab.transform.gradients.first_order_gradient import FirstOrderGradient, gradient
from relaylab.transform.gradients.lazy_gradient_init import LazyGradientInit
from relaylab.transform.inline import Inline
from relaylab.transform.layouts.alter_op_layout import AlterOpLayout
from relaylab.transform.layouts.convert_layout import ConvertLayout, LayoutConfig
from relaylab.transform.layouts.registered import register_alter_op_layout, register_convert_op_layout
from relaylab.transform.legalize import Legalize, register_legalize
from relaylab.transform.micro_batch import MicroBatch
from relaylab.transform.normal_forms.dead_code_elimination import DeadCodeElimination
from relaylab.transform.normal_forms.defunctionalization import Defunctionalization
from relaylab.transform.normal_forms.eta_expand import EtaExpand
from relaylab.transform.normal_forms.lambda_lift import LambdaLift
from relaylab.transform.normal_forms.manifest_lifetimes import ManifestLifetimes
from relaylab.transform.normal_forms.partial_evaluate import PartialEvaluate
from relaylab.transform.normal_forms.to_a_normal_form import ToANormalForm, ToANormalFormExpr
from relaylab.transform.normal_forms.to_basic_block_normal_form import ToBasicBlockNormalForm
from relaylab.transform.normal_forms.to_cps import ToCPS, to_cps, un_cps
from relaylab.transform.normal_forms.to_graph_normal_form import ToGraphNormalForm
from relaylab.transform.partition.annotate_target import AnnotateTarget
from relaylab.transform.partition.inline_compiler_functions_bound_to import InlineCompilerFunctionsBoundTo
from relaylab.transform.partition.mark_compiler_functions_as_extern import MarkCompilerFunctionsAsExtern
from relaylab.transform.partition.merge_compiler_regions import MergeCompilerRegions
from relaylab.transform.partition.merge_composite import MergeComposite
from relaylab.transform.partition.outline_compiler_functions_with_existing_global_symbols import (
    OutlineCompilerFunctionsWithExistingGlobalSymbols,
)
from relaylab.transform.partition.partition_graph import PartitionGraph
from relaylab.transform.pipeline import default_passes, optimize
from relaylab.transform.plan_devices import PlanDevices
from relaylab.transform.quantized.byte_products import ByteProducts
from relaylab.transform.quantized.fake_quantization_to_integer import FakeQuantizationToInteger
from relaylab.transform.quantized.integer_products import IntegerProducts
from relaylab.transform.quantized.partition_conversions import PartitionConversions
from relaylab.transform.quantized.qnn import QnnCanonicalizeOps, QnnLegalize
from relaylab.transform.quantized.quantize_annotate import QuantizeAnnotate
from relaylab.transform.quantized.quantize_calibrate import QuantizeCalibrate
from relaylab.transform.quantized.quantize_partition import QuantizePartition
from relaylab.transform.quantized.quantize_realize import QuantizeRealize
from relaylab.transform.recast import recast
from relaylab.transform.remove_unused_functions import RemoveUnusedFunctions
from relaylab.transform.rewriting.rules import Rule, RuleSet, apply_rules, rule
from relaylab.transform.simplify.batching_ops import BatchingOps
from relaylab.transform.simplify.canonicalize_cast import CanonicalizeCast
from relaylab.transform.simplify.canonicalize_ops import CanonicalizeOps
from relaylab.transform.simplify.combine_parallel_batch_matmul import CombineParallelBatchMatmul
from relaylab.transform.simplify.combine_parallel_conv2d import CombineParallelConv2D
from relaylab.transform.simplify.combine_parallel_dense import CombineParallelDense
from relaylab.transform.simplify.div_to_mul import DivToMul
from relaylab.transform.simplify.dynamic_to_static import DynamicToStatic
from relaylab.transform.simplify.eliminate_common_subexpr import EliminateCommonSubexpr
from relaylab.transform.simplify.fast_math import FastMath
from relaylab.transform.simplify.flatten_atrous_conv import FlattenAtrousConv
from relaylab.transform.simplify.fold_constant import FoldConstant, FoldConstantExpr
from relaylab.transform.simplify.fold_explicit_padding import FoldExplicitPadding
from relaylab.transform.simplify.fold_scale_axis import FoldScaleAxis
from relaylab.transform.simplify.fold_scale_axis_backward import BackwardFoldScaleAxis
from relaylab.transform.simplify.fold_scale_axis_forward import ForwardFoldScaleAxis
from relaylab.transform.simplify.simplify_expr import SimplifyExpr
from relaylab.transform.simplify.simplify_fc_transpose import SimplifyFCTranspose
from relaylab.transform.simplify.simplify_inference import SimplifyInference
from relaylab.transform.simplify.split_args import SplitArgs
from relaylab.transform.sparse.conv2d_to_sparse import Conv2dToSparse
from relaylab.transform.sparse.conv2d_to_sparse2 import Conv2dToSparse2
from relaylab.transform.sparse.dense_to_sparse import DenseToSparse
from relaylab.transform.to_mixed_precision import ToMixedPrecision

__all__ = [
    "AlterOpLayout", "AnnotateSpans", "AnnotateTarget", "BackwardFoldScaleAxis", "BatchingOps", "BindParams",
    "ByteProducts", "CONFIG", "CanonicalizeCast", "CanonicalizeOps", "CapturePostDfsIndexInSpans", "ChangeBatch",
    "CombineParallelBatchMatmul", "CombineParallelConv2D", "CombineParallelDense", "Conv2dToSparse", "Conv2dToSparse2",
    "ConvertLayout", "DeadCodeElimination", "Defunctionalization", "DefuseOps", "DenseToSparse", "DivToMul",
    "DynamicToStatic", "EliminateCommonSubexpr", "EtaExpand", "FakeQuantizationToInteger", "FastMath",
    "FirstOrderGradient", "FlattenAtrousConv", "FlexibleShapeDispatch", "FoldConstant", "FoldConstantExpr",
    "FoldExplicitPadding", "FoldScaleAxis", "ForwardFoldScaleAxis", "FunctionPass", "FuseAttention", "FuseOps",
    "History", "InferType", "InferTypeLocal", "Inline", "InlineCompilerFunctionsBoundTo", "IntegerProducts", "LabelOps",
    "LambdaLift", "LayoutConfig", "LazyGradientInit", "Legalize", "ManifestLifetimes", "MarkCompilerFunctionsAsExtern",
    "MergeCompilerRegions", "MergeComposite", "MicroBatch", "ModulePass", "Option",
    "OutlineCompilerFunctionsWithExistingGlobalSymbols", "PASSES", "PartialEvaluate", "PartitionConversions",
    "PartitionGraph", "Pass", "PassContext", "PassEntry", "PassInfo", "PassInstrument", "PassRecord",
    "PassTimingInstrument", "PlanDevices", "PrintAfter", "PrintBefore", "PrintIR", "QnnCanonicalizeOps", "QnnLegalize",
    "QuantizeAnnotate", "QuantizeCalibrate", "QuantizePartition", "QuantizeRealize", "RemoveUnusedFunctions", "Rule",
    "RuleSet", "Sequential", "SimplifyExpr", "SimplifyFCTranspose", "SimplifyInference", "SinkReshape", "SplitArgs",
    "Stage", "ToANormalForm", "ToANormalFormExpr", "ToBasicBlockNormalForm", "ToCPS", "ToGraphNormalForm",
    "ToMixedPrecision", "apply_rules", "bind", "bind_params_by_name", "build_config", "collecting", "create",
    "default_passes", "function_pass", "gradient", "module_pass", "optimize", "parse_pass", "pass_",
    "pass_instrument", "recast", "register_alter_op_layout", "register_config", "register_convert_op_layout",
    "register_legalize", "register_pass", "rule", "run_pipeline", "to_cps", "un_cps",
]  # fmt: skip
__dir__ = lambda: sorted(__all__)  # what is meant for others: without the modules behind it
