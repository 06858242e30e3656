"""The default pipelines: what `relay.build` and the virtual machine do to a program before code is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylab.ir import IRModule
from relaylab.transform.alter_op_layout import AlterOpLayout
from relaylab.transform.bind import BindParams
from relaylab.transform.canonicalize_cast import CanonicalizeCast
from relaylab.transform.canonicalize_ops import CanonicalizeOps
from relaylab.transform.combine_parallel_batch_matmul import CombineParallelBatchMatmul
from relaylab.transform.combine_parallel_conv2d import CombineParallelConv2D
from relaylab.transform.combine_parallel_dense import CombineParallelDense
from relaylab.transform.context import PassContext
from relaylab.transform.dead_code_elimination import DeadCodeElimination
from relaylab.transform.eliminate_common_subexpr import EliminateCommonSubexpr
from relaylab.transform.eta_expand import EtaExpand
from relaylab.transform.fast_math import FastMath
from relaylab.transform.flatten_atrous_conv import FlattenAtrousConv
from relaylab.transform.fold_constant import FoldConstant
from relaylab.transform.fold_scale_axis import FoldScaleAxis
from relaylab.transform.fuse_ops import FuseOps
from relaylab.transform.history import History
from relaylab.transform.infer_type import InferType
from relaylab.transform.inline import Inline
from relaylab.transform.label_ops import LabelOps
from relaylab.transform.lambda_lift import LambdaLift
from relaylab.transform.legalize import Legalize
from relaylab.transform.manager import Pass, run_pipeline
from relaylab.transform.plan_devices import PlanDevices
from relaylab.transform.qnn import QnnLegalize
from relaylab.transform.remove_unused_functions import RemoveUnusedFunctions
from relaylab.transform.simplify_expr import SimplifyExpr
from relaylab.transform.simplify_inference import SimplifyInference
from relaylab.transform.split_args import SplitArgs
from relaylab.transform.to_a_normal_form import ToANormalForm
from relaylab.transform.to_basic_block_normal_form import ToBasicBlockNormalForm


def prefix_passes(vm: bool = False) -> list[Pass]:
    """What both backends begin with: normal form, simplification, constants, layouts."""
    passes: list[Pass] = [
        RemoveUnusedFunctions(["main"]),
        ToBasicBlockNormalForm(),
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
        FoldScaleAxis(),
        SimplifyExpr(),
        CanonicalizeCast(),
        CanonicalizeOps(),
        FlattenAtrousConv(),
    ]
    if not vm:
        passes.append(InferType())
    return [*passes, AlterOpLayout(), FastMath(), FoldConstant()]


def _enabled(passes: list[Pass], opt_level: int) -> list[Pass]:
    return [p for p in passes if p.info.opt_level <= opt_level]


def default_passes(opt_level: int | None = None, vm: bool = False) -> list[Pass]:
    """The passes of `relay.build` (or of the virtual machine) that run at a level (None: the current context's)."""
    level = PassContext.current().opt_level if opt_level is None else opt_level
    if vm:
        tail = [PlanDevices(), FuseOps(), ToANormalForm(), InferType(), LambdaLift(), InferType()]
        return _enabled(
            [
                *prefix_passes(vm=True),
                *tail,
                DeadCodeElimination(),
                LabelOps(),
                DeadCodeElimination(),
                Inline(),
                InferType(),
            ],
            level,
        )
    passes = [*prefix_passes(), SplitArgs(-1), PlanDevices(), FuseOps()]
    return _enabled(passes, level) + [InferType(), Inline(), InferType(), LabelOps()]


def optimize(
    mod: IRModule, params: Mapping[str, Any] | None = None, vm: bool = False, ctx: PassContext | None = None
) -> History:
    """The default pipeline run on a module, parameters bound first, everything kept. Raises what a pass raised."""
    level = (ctx or PassContext.current()).opt_level
    passes = default_passes(level, vm)
    history = run_pipeline(mod, [BindParams(params), *passes] if params else passes, ctx)
    if history.error is not None:
        raise history.error
    return history
