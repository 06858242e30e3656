"""The default pipelines: what `relay.build` and the virtual machine do to a program before code is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylab.ir import IRModule
from relaylab.transform.bind import BindParams
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.infer_type import InferType
from relaylab.transform.engine.manager import Pass, Sequential
from relaylab.transform.fusion.fuse_attention import FuseAttention
from relaylab.transform.fusion.fuse_ops import FuseOps
from relaylab.transform.fusion.label_ops import LabelOps
from relaylab.transform.fusion.sink_reshape import SinkReshape
from relaylab.transform.inline import Inline
from relaylab.transform.layouts.alter_op_layout import AlterOpLayout
from relaylab.transform.legalize import Legalize
from relaylab.transform.micro_batch import MicroBatch
from relaylab.transform.normal_forms.dead_code_elimination import DeadCodeElimination
from relaylab.transform.normal_forms.eta_expand import EtaExpand
from relaylab.transform.normal_forms.first_order import first_order
from relaylab.transform.normal_forms.lambda_lift import LambdaLift
from relaylab.transform.normal_forms.to_a_normal_form import ToANormalForm
from relaylab.transform.normal_forms.to_basic_block_normal_form import ToBasicBlockNormalForm
from relaylab.transform.plan_devices import PlanDevices
from relaylab.transform.quantized.byte_products import ByteProducts
from relaylab.transform.quantized.integer_products import IntegerProducts
from relaylab.transform.quantized.qnn import QnnLegalize
from relaylab.transform.remove_unused_functions import RemoveUnusedFunctions
from relaylab.transform.simplify.canonicalize_cast import CanonicalizeCast
from relaylab.transform.simplify.canonicalize_ops import CanonicalizeOps
from relaylab.transform.simplify.combine_parallel_batch_matmul import CombineParallelBatchMatmul
from relaylab.transform.simplify.combine_parallel_conv2d import CombineParallelConv2D
from relaylab.transform.simplify.combine_parallel_dense import CombineParallelDense
from relaylab.transform.simplify.eliminate_common_subexpr import EliminateCommonSubexpr
from relaylab.transform.simplify.fast_math import FastMath
from relaylab.transform.simplify.flatten_atrous_conv import FlattenAtrousConv
from relaylab.transform.simplify.fold_constant import FoldConstant
from relaylab.transform.simplify.fold_scale_axis import FoldScaleAxis
from relaylab.transform.simplify.simplify_expr import SimplifyExpr
from relaylab.transform.simplify.simplify_inference import SimplifyInference
from relaylab.transform.simplify.split_args import SplitArgs


def prefix_passes(vm: bool = False) -> list[Pass]:
    """What both backends begin with: normal form, simplification, constants, layouts."""
    passes: list[Pass] = [
        RemoveUnusedFunctions(["main"]),
        ToBasicBlockNormalForm(),
        IntegerProducts(),
        QnnLegalize(),
        Legalize(),
        SimplifyInference(),
    ]
    if vm:
        passes.append(EtaExpand(expand_constructor=True))
    passes += [
        EliminateCommonSubexpr(),
        CombineParallelConv2D(3),
        CombineParallelDense(3),
        CombineParallelBatchMatmul(3),
    ]
    passes += [
        FoldConstant(),
        ByteProducts(),
        FoldScaleAxis(),
        SimplifyExpr(),
        CanonicalizeCast(),
        CanonicalizeOps(),
        FuseAttention(),
        SinkReshape(),
        FlattenAtrousConv(),
    ]
    if not vm:
        passes.append(InferType())
    return [*passes, AlterOpLayout(), FastMath(), FoldConstant()]


def default_passes(opt_level: int | None = None, vm: bool = False) -> list[Pass]:
    """The passes of `relay.build` (or of the virtual machine) that run at a level (None: that of the current context),
    and those that the context requires.
    """
    ctx = PassContext.current()
    level = ctx.opt_level if opt_level is None else opt_level

    def enabled(passes: list[Pass]) -> list[Pass]:
        return [p for p in passes if p.info.opt_level <= level or p.info.name in ctx.required_pass]

    if vm:
        tail = [PlanDevices(), FuseOps(), ToANormalForm(), InferType(), LambdaLift(), InferType()]
        after = [DeadCodeElimination(), LabelOps(), DeadCodeElimination(), Inline(), InferType()]
        return enabled([*prefix_passes(vm=True), *tail, *after])
    passes = [*prefix_passes(), SplitArgs(-1), PlanDevices(), FuseOps()]
    return enabled(passes) + [InferType(), Inline(), InferType(), LabelOps(), *enabled([MicroBatch()])]


def optimize(mod: IRModule, params: Mapping[str, Any] | None = None, vm: bool = False) -> IRModule:
    """The module that code is made of, for `relay.build` or for the virtual machine: `params` bound first, then the
    default passes of the current context. Raises what a pass raises.
    """
    bound = BindParams(params)(mod) if params else mod
    return Sequential(default_passes(vm=vm))(bound if vm else first_order(bound))
