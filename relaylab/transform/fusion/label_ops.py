"""LabelOps: every kernel gets a number that tells equal ones."""

from __future__ import annotations

from relaylab.ir.base import Expr, set_type
from relaylab.ir.digest import structural_hash
from relaylab.ir.expr import Function
from relaylab.ir.module import IRModule
from relaylab.ir.trail import derived
from relaylab.ir.visit import keep_order, kinds_in, post_order, rewrite
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass


def _label(new: Expr, old: Expr) -> Expr:
    if isinstance(new, Function) and new.is_primitive and not new.attr("hash"):
        order = post_order(new)
        new = new.with_attr("hash", f"{structural_hash(new) & (1 << 64) - 1:016x}")
        keep_order(new, order[:-1])
    if new.inferred is None:  # a label changes no types: nothing is left for inference to do
        set_type(new, old.inferred)
    return new


def _labelled(func: Function) -> dict[Expr, Expr]:
    """The kernels of a function with their labels; nothing where kernels stand in kernels."""
    kernels = [n for n in post_order(func) if type(n) is Function and n.is_primitive]
    plain = not any(Function in kinds_in(n) for n in kernels)
    return {n: derived(_label(n, n), n) for n in kernels} if plain else {}


@pass_(level=1, idempotent=True)
class LabelOps(FunctionPass):
    """Writes the structural hash of each primitive function into its attribute `hash`."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return rewrite(func, _label, memo=_labelled(func))
