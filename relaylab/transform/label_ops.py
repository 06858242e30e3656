"""LabelOps: every kernel gets a number that tells equal ones."""

from __future__ import annotations

from relaylab.ir import Expr, Function, rewrite, structural_hash
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass


def _label(new: Expr, old: Expr) -> Expr:
    if not isinstance(new, Function) or not new.is_primitive or new.attr("hash"):
        return new
    return new.with_attr("hash", f"{structural_hash(new) & (1 << 64) - 1:016x}")


@register_pass(idempotent=True)
def LabelOps() -> Pass:
    """Writes the structural hash of each primitive function into its attribute `hash`."""

    def run(func: Function, mod: object, ctx: object) -> Function:
        return rewrite(func, _label)  # type: ignore[return-value]

    return FunctionPass(PassInfo(1, "LabelOps"), run)
