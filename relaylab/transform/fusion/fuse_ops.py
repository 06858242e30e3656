"""FuseOps: operators that can run in one pass over memory become one primitive function.

Following Chen et al., "TVM: An Automated End-to-End Optimizing Compiler for Deep Learning"
(OSDI 2018): elementwise operators join the heavy operator before them, injective ones each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, cast

from relaylab.ir import children as parts_of
from relaylab.ir.base import Expr, set_type
from relaylab.ir.expr import Call, Constant, Function, Tuple, TupleGetItem, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op, is_call_to
from relaylab.ir.trail import current_trail, derived
from relaylab.ir.types import FuncType, Type
from relaylab.ir.visit import rebuild, walk
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.purity import acts, changes_state
from relaylab.transform.engine.renewal import as_function, copied
from relaylab.transform.fusion.fuse_graph import is_closed, visible
from relaylab.transform.fusion.fuse_groups import FusionGroup, partition

MAX_DEPTH = 256


class _Inputs:
    """The parameters of one kernel, in the order of first use, and what they stand for."""

    def __init__(self) -> None:
        self.params: dict[Expr, Var] = {}

    def param(self, argument: Expr, old: Expr) -> Var:
        if argument not in self.params:
            self.params[argument] = Var(f"p{len(self.params)}", type_of(old))
            copied(self.params[argument], old)
        return self.params[argument]


class Fuser:
    """Rewrites one function by its groups."""

    def __init__(self, func: Function, mod: IRModule, fuse: bool, max_depth: int, link_params: bool):
        self.func, self.mod, self.link_params = func, mod, link_params
        self.groups = {ref: group.find() for ref, group in partition(func, max_depth, fuse).items()}
        self.inputs: dict[FusionGroup, _Inputs] = {}
        self.memo: dict[Expr, Expr] = {}
        self.turn: dict[Expr, int] = {}
        self.acting = False

    def run(self) -> Function:
        """The function with each group a call of a primitive function."""
        trail = current_trail()
        for node in walk((self.func,), visible):
            if trail is not None:
                trail.site = node
            new = self.memo[node] = derived(self._rewritten(node), node)
            self.turn.setdefault(new, len(self.turn))
            if new.inferred is None:  # fusing changes no types: nothing is left for inference to do
                set_type(new, node.inferred)
        if trail is not None:
            trail.site = None
        return as_function(self.memo[self.func])

    def _rewritten(self, node: Expr) -> Expr:
        if isinstance(node, Function) and is_closed(node):
            return node
        if is_call_to(node, "annotation.stop_fusion"):
            return self.memo[node.args[0]]
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.definition.computes:
            return self._part(node, (node.op,), node.args)
        if isinstance(node, TupleGetItem) and not self._isolated(node):
            return self._part(node, (), (node.tuple_value,))
        if isinstance(node, Tuple) and self.groups[node].root is not node:
            return rebuild(node, self._arguments(node.fields, self.groups[node]))
        self.acting = self.acting or acts(node)
        return rebuild(node, [self.memo[c] for c in parts_of(node)])

    def _isolated(self, node: TupleGetItem) -> bool:
        """A projection from a tuple that is made outside its group, and whose value leaves it."""
        group = self.groups[node]
        return group.root is node and self.groups[node.tuple_value] is not group

    def _part(self, node: Expr, head: Sequence[Expr], args: Sequence[Expr]) -> Expr:
        """A node inside a kernel; the whole call of the kernel if its value is what leaves it."""
        group = self.groups[node]
        inner = rebuild(node, (*head, *self._arguments(args, group)))
        return self._kernel(group, node, inner) if group.root is node else inner

    def _arguments(self, args: Sequence[Expr], group: FusionGroup) -> list[Expr]:
        return [self._argument(a, group) for a in args]

    def _argument(self, arg: Expr, group: FusionGroup) -> Expr:
        new = self.memo[arg]
        if self.groups.get(arg) is group or (self.link_params and isinstance(new, Constant)):
            return new
        return self.inputs.setdefault(group, _Inputs()).param(new, arg)

    def _kernel(self, group: FusionGroup, node: Expr, body: Expr) -> Expr:
        inputs = self.inputs.get(group, _Inputs()).params
        if self.acting and changes_state(self.mod):
            # arguments are evaluated in their order: in that in which operands were before
            inputs = dict(sorted(inputs.items(), key=lambda item: self.turn[item[0]]))
        calls = [n for n in walk((body,)) if isinstance(n, Call)]
        attrs = {"Primitive": int(bool(calls))}
        if calls and all(_reshapes(c) for c in calls):
            attrs["relay.reshape_only"] = 1
        if body is node:  # nothing flows in; the kernel's body must not be the node that it replaces
            body = _copy(node)
        func = Function(tuple(inputs.values()), derived(body, node), type_of(node), attrs=attrs)
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
