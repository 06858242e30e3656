"""FuseOps: operators that can run in one pass over memory become one primitive function.

Following Chen et al., "TVM: An Automated End-to-End Optimizing Compiler for Deep Learning"
(OSDI 2018): elementwise operators join the heavy operator before them, injective ones each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, cast

from relaylab.ir import children as parts_of
from relaylab.ir.attrs import DictAttrs
from relaylab.ir.base import Expr, set_type
from relaylab.ir.expr import Call, Constant, Function, Tuple, TupleGetItem, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op, is_call_to
from relaylab.ir.trail import current_trail, derived, kept_trail
from relaylab.ir.types import FuncType, Type
from relaylab.ir.visit import LEAVES, rebuild, remade
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.purity import acts, changes_state
from relaylab.transform.engine.renewal import as_function, copied
from relaylab.transform.fusion.fuse_graph import is_closed, visible_in
from relaylab.transform.fusion.fuse_groups import FusionGroup, partition

MAX_DEPTH = 256


class _Kernel:
    """The parameters of one kernel, in the order of first use, what they stand for, and its calls of operators."""

    __slots__ = ("params", "calls")

    def __init__(self) -> None:
        self.params: dict[Expr, Var] = {}
        self.calls: list[Call] = []

    def param(self, argument: Expr, old: Expr) -> Var:
        known = self.params.get(argument)
        if known is None:
            known = self.params[argument] = copied(Var(f"p{len(self.params)}", type_of(old)), old)
        return known

    def marks(self) -> DictAttrs:
        """The attributes of the kernel."""
        return _MARKS[bool(self.calls), bool(self.calls) and all(map(_reshapes, self.calls))]


_MARKS = {  # records that all kernels share
    (True, False): DictAttrs({"Primitive": 1}),
    (True, True): DictAttrs({"Primitive": 1, "relay.reshape_only": 1}),
    (False, False): DictAttrs({"Primitive": 0}),
}


class Fuser:
    """Rewrites one function by its groups."""

    def __init__(self, func: Function, mod: IRModule, fuse: bool, max_depth: int, link_params: bool):
        self.func, self.mod, self.link_params = func, mod, link_params
        found = partition(func, max_depth, fuse).items()
        self.groups = {ref: group if group.above is None else group.find() for ref, group in found}
        self.kernels: dict[FusionGroup, _Kernel] = {}
        self.memo: dict[Expr, Expr] = {}
        self.turn: dict[Expr, int] = {}
        self.acting = False

    def run(self) -> Function:
        """The function with each group a call of a primitive function."""
        trail, kept = current_trail(), kept_trail()
        for node in visible_in(self.func):
            if trail is not None:
                trail.site = node
            new = self.memo[node] = self._rewritten(node)
            if kept is not None:
                kept.record(node, new)
            self.turn.setdefault(new, len(self.turn))
            if new.inferred is None:  # fusing changes no types: nothing is left for inference to do
                set_type(new, node.inferred)
        if trail is not None:
            trail.site = None
        return as_function(self.memo[self.func])

    def _rewritten(self, node: Expr) -> Expr:
        if type(node) in LEAVES:
            return node
        if isinstance(node, Function) and is_closed(node):
            return node
        if is_call_to(node, "annotation.stop_fusion"):
            return self.memo[node.args[0]]
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.definition.computes:
            return self._part(node, (node.op,), node.args)
        if isinstance(node, TupleGetItem) and not self._isolated(node):
            return self._part(node, (), (node.tuple_value,))
        if isinstance(node, Tuple) and self.groups[node].root is not node:
            group = self.groups[node]
            kernel = self.kernels.setdefault(group, _Kernel())
            return rebuild(node, [self._argument(f, group, kernel) for f in node.fields])
        self.acting = self.acting or acts(node)
        return rebuild(node, [self.memo[c] for c in parts_of(node)])

    def _isolated(self, node: TupleGetItem) -> bool:
        """A projection from a tuple that is made outside its group, and whose value leaves it."""
        group = self.groups[node]
        return group.root is node and self.groups[node.tuple_value] is not group

    def _part(self, node: Expr, head: Sequence[Expr], args: Sequence[Expr]) -> Expr:
        """A node inside a kernel; the whole call of the kernel if its value is what leaves it."""
        group = self.groups[node]
        kernel = self.kernels.get(group)
        if kernel is None:
            kernel = self.kernels[group] = _Kernel()
        parts = (*head, *[self._argument(a, group, kernel) for a in args])
        inner = node if parts == parts_of(node) else remade(node, parts)
        if isinstance(inner, Call):
            kernel.calls.append(inner)
        return self._call(kernel, node, inner) if group.root is node else inner

    def _argument(self, arg: Expr, group: FusionGroup, kernel: _Kernel) -> Expr:
        new = self.memo[arg]
        if self.groups.get(arg) is group or (self.link_params and isinstance(new, Constant)):
            return new
        return kernel.param(new, arg)

    def _call(self, kernel: _Kernel, node: Expr, body: Expr) -> Expr:
        inputs, marks = kernel.params, kernel.marks()
        if self.acting and changes_state(self.mod):
            # arguments are evaluated in their order: in that in which operands were before
            inputs = dict(sorted(inputs.items(), key=lambda item: self.turn[item[0]]))
        if body is node:  # nothing flows in; the kernel's body must not be the node that it replaces
            body = _copy(node)
        func = Function(tuple(inputs.values()), derived(body, node), type_of(node), attrs=marks)
        types = [p.inferred for p in func.params]
        if node.inferred is not None and None not in types:
            set_type(body, node.inferred)
            set_type(func, FuncType(cast("list[Type]", types), node.inferred))
        return Call(func, tuple(inputs))


def _copy(node: Expr) -> Expr:
    return Call(node.op, node.args, node.attrs, node.type_args, span=node.span) if isinstance(node, Call) else node


def _reshapes(call: Call) -> bool:
    if not isinstance(call.op, Op) or not call.op.definition.reshapes:
        return False
    return isinstance(call.args[0], Var) and all(isinstance(a, (Var, Constant)) for a in call.args)


@pass_(level=0, requires=("InferType",), idempotent=True)
class FuseOps(FunctionPass):
    """Groups operators into primitive functions; level 0 leaves each operator alone, -1 means the context's level."""

    fuse_opt_level: Annotated[int, "0: each operator alone; above: groups; negative: the level of the context."] = -1

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        level = ctx.opt_level if self.fuse_opt_level < 0 else self.fuse_opt_level
        max_depth = ctx.get_config("relay.FuseOps.max_depth", MAX_DEPTH) or MAX_DEPTH
        return Fuser(func, mod, level > 0, max_depth, bool(ctx.get_config("relay.FuseOps.link_params"))).run()
