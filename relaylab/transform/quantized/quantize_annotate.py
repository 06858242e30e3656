"""QuantizeAnnotate: where a quantized program would round, the float program simulates it.

Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference, CVPR 2018.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from enum import IntEnum
from typing import Annotated, Any, TypeAlias

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, FunctionWithFields
from relaylab.ir.free import free_vars
from relaylab.ir.leaves import var
from relaylab.ir.module import IRModule
from relaylab.ir.op import facets, is_call_to, op_name
from relaylab.ir.trail import derived
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import copied
from relaylab.transform.quantized.forward import Pending, PendingFields, Value, again, forwarded, is_entry, realized

SIMULATED = "relay.op.annotation.simulated_quantize"


class QAnnotateKind(IntEnum):
    """What a value is to a quantized program."""

    IDENTITY = 0
    INPUT = 1
    WEIGHT = 2
    ACTIVATION = 3


class QAnnotateExpr(Pending):
    """An expression whose values a quantized program has as integers: `INPUT`s are small, `ACTIVATION`s wide."""

    def __init__(self, expr: Expr, kind: QAnnotateKind):
        self.expr, self.kind = expr, kind

    def make(self) -> Expr:
        return self.expr


class QuantizeContext:
    """What one run of the pass remembers: the convolutions met, whether it has stopped, what is simulated already."""

    def __init__(self, skip_conv_layers: Sequence[int] = (0,), skip_dense_layer: bool = True):
        self.skip_conv_layers, self.skip_dense_layer = skip_conv_layers, skip_dense_layer
        self.reset()

    def reset(self) -> None:
        """Forget what was met."""
        self.conv2d_counter, self.stopped = 0, False
        self.qnode_map: dict[object, Call] = {}

    def stop_quantize(self) -> None:
        """Leave all that follows in floats."""
        self.stopped = True

    def check_to_skip(self, ref_call: Call) -> bool:
        """Whether a call stays in floats; counts convolutions."""
        if self.stopped:
            return True
        if op_name(ref_call) != "nn.conv2d":
            return False
        self.conv2d_counter += 1
        return self.conv2d_counter - 1 in self.skip_conv_layers

    def __enter__(self) -> QuantizeContext:
        self.reset()
        return self

    def __exit__(self, *exc: object) -> None:
        self.reset()


CONTEXT: ContextVar[QuantizeContext | None] = ContextVar("quantize_context", default=None)


def quantize_context() -> QuantizeContext:
    """What the annotation that runs remembers, or a new memory."""
    return CONTEXT.get() or QuantizeContext()


def attach_simulated_quantize(data: Expr, kind: int, sign: bool = True, rounding: str = "round") -> Call:
    """A simulated quantization of `data`, whose scale and limits are new variables; the one that it has already."""
    attrs: dict[str, Any] = {"kind": int(kind), "sign": sign, "rounding": rounding}
    if isinstance(data, Call) and is_call_to(data, SIMULATED) and all(facets(data)[k] == v for k, v in attrs.items()):
        return data
    made = quantize_context().qnode_map
    key = (data, *attrs.values())
    if key not in made:
        limits = [copied(var(name), data) for name in ("dom_scale", "clip_min", "clip_max")]
        made[key] = copied(call(SIMULATED, data, *limits, **attrs), data)
    return made[key]


AnnotateRule: TypeAlias = "Callable[[Call, list[Value], QuantizeContext], Value | None]"
ANNOTATE: dict[str, AnnotateRule] = {}
IDENTITIES = ("reshape", "clip", "nn.relu", "strided_slice", "nn.batch_flatten", "transpose", "annotation.stop_fusion")


def annotate_rule(*names: str) -> Callable[[AnnotateRule], AnnotateRule]:
    """Register a rule for operators."""

    def register(rule: AnnotateRule) -> AnnotateRule:
        ANNOTATE.update(dict.fromkeys(names, rule))
        return rule

    return register


def kind_of(value: Value) -> QAnnotateKind | None:
    """What a value is to the quantized program; None: it is not part of it."""
    return value.kind if isinstance(value, QAnnotateExpr) else None


def _small(value: Value) -> Expr:
    """A value as the input of a product: in few bits."""
    expr = realized(value)
    return expr if kind_of(value) == QAnnotateKind.INPUT else attach_simulated_quantize(expr, QAnnotateKind.INPUT)


def _weight(value: Value) -> Expr:
    return attach_simulated_quantize(realized(value), QAnnotateKind.WEIGHT)


@annotate_rule("nn.conv2d", "nn.contrib_conv2d_NCHWc", "nn.conv1d", "nn.dense")
def _product(node: Call, args: list[Value], ctx: QuantizeContext) -> Value | None:
    if (op_name(node) == "nn.dense" and ctx.skip_dense_layer) or ctx.check_to_skip(node):
        return None
    if not isinstance(args[1], Constant):
        return None  # its range is not known before the program runs
    return QAnnotateExpr(again(node, [_small(args[0]), _weight(args[1])]), QAnnotateKind.ACTIVATION)


@annotate_rule("nn.batch_matmul")
def _matrices(node: Call, args: list[Value], ctx: QuantizeContext) -> Value | None:
    if ctx.check_to_skip(node):
        return None
    both = [_weight(a) if isinstance(a, Constant) else _small(a) for a in args]
    return QAnnotateExpr(again(node, both), QAnnotateKind.ACTIVATION)


@annotate_rule("multiply")
def _scaled(node: Call, args: list[Value], ctx: QuantizeContext) -> Value | None:
    if ctx.check_to_skip(node):
        return None
    for one, other in (0, 1), (1, 0):
        if kind_of(args[one]) is not None and isinstance(args[other], Constant):
            new: list[Value] = list(args)
            new[one], new[other] = _small(args[one]), _weight(args[other])
            return QAnnotateExpr(again(node, new), QAnnotateKind.ACTIVATION)
    return None


@annotate_rule("add")
def _sum(node: Call, args: list[Value], ctx: QuantizeContext) -> Value | None:
    lhs, rhs = args
    left, right = map(kind_of, args)
    if ctx.check_to_skip(node) or left is right is None:
        return None
    if left is None:
        lhs = _small(lhs)
    elif right is None:
        rhs = _weight(rhs) if isinstance(rhs, Constant) else _small(rhs)
    elif left == right == QAnnotateKind.ACTIVATION:
        rhs = _small(rhs)
    return QAnnotateExpr(again(node, [lhs, rhs]), QAnnotateKind.ACTIVATION)  # two small ones may be too large together


@annotate_rule(*IDENTITIES)
def _identity(node: Call, args: list[Value], ctx: QuantizeContext) -> Value | None:
    kind = None if ctx.check_to_skip(node) else kind_of(args[0])
    return None if kind is None else QAnnotateExpr(again(node, args), kind)


@annotate_rule("annotation.cast_hint", "nn.max_pool2d", "nn.max_pool1d", "nn.avg_pool2d")
def _kept(node: Call, args: list[Value], ctx: QuantizeContext) -> Value | None:
    hint = is_call_to(node, "annotation.cast_hint")
    if ctx.check_to_skip(node) or kind_of(args[0]) is None:
        return realized(args[0]) if hint else None
    return QAnnotateExpr(again(node, [_small(args[0])]), QAnnotateKind.INPUT)


@annotate_rule("nn.global_avg_pool2d")
def _last(node: Call, args: list[Value], ctx: QuantizeContext) -> Value | None:
    if not ctx.check_to_skip(node) and kind_of(args[0]) is not None:
        ctx.stop_quantize()
    return None


@annotate_rule("concatenate")
def _joined(node: Call, args: list[Value], ctx: QuantizeContext) -> Value | None:
    if ctx.check_to_skip(node) or not isinstance(args[0], PendingFields):
        return None
    wide = lambda e: attach_simulated_quantize(e, QAnnotateKind.ACTIVATION)
    parts = [wide(v) if isinstance(v, Expr) else v for v in args[0].values]
    return QAnnotateExpr(again(node, [PendingFields(args[0].node, parts)]), QAnnotateKind.ACTIVATION)


@pass_(level=1, preserves=False)
class QuantizeAnnotate(FunctionPass):
    """Simulates the quantization of inputs, weights and activations around the operators that integers can compute.

    Each `relay.op.annotation.simulated_quantize` reads three new parameters of the function, its scale and limits,
    which QuantizeCalibrate makes known. What follows the first nn.global_avg_pool2d of integers stays in floats.
    """

    skip_conv_layers: Annotated[Sequence[int], "Which convolutions stay in floats, counted from 0."] = (0,)
    skip_dense_layer: Annotated[bool, "Dense layers stay in floats."] = True
    debug_enabled_ops: Annotated[Sequence[str] | None, "Only these operators are quantized; None: all that can."] = None

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        if not is_entry(func, mod):
            return func

        state, enabled = QuantizeContext(self.skip_conv_layers, self.skip_dense_layer), self.debug_enabled_ops

        def at(node: Call, args: list[Value]) -> Value | None:
            name = op_name(node)
            rule = ANNOTATE.get(name) if enabled is None or name in enabled else None
            return rule(node, args, state) if rule else None

        token = CONTEXT.set(state)
        try:
            new = forwarded(func, at)
        finally:
            CONTEXT.reset(token)
        added = free_vars(new)
        return derived(FunctionWithFields(new, params=[*new.params, *added]), new) if added else new
