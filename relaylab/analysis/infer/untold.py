"""What a typed program knows and its text would not say: type arguments that follow from nothing else."""

from __future__ import annotations

from relaylab.analysis.infer.report import ErrorReport
from relaylab.analysis.infer.typed import SHARED, Rebuilder
from relaylab.analysis.infer.typer import Typer
from relaylab.ir.expr import Call, Expr, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.trail import unrecorded
from relaylab.ir.visit import children, remake, rewrite


def untold(root: Expr, mod: IRModule | None = None) -> set[Expr]:
    """The calls below `root` whose type arguments have to be written: inference would not find them again."""
    told: set[Expr] = set()
    with unrecorded():
        while found := _unresolved(root, mod, told):
            told |= found
    return told


def _unresolved(root: Expr, mod: IRModule | None, told: set[Expr]) -> set[Expr]:
    """The calls whose types are not found if only the type arguments of `told` are written."""
    bare: dict[Expr, Expr] = {}

    def untyped(new: Expr, old: Expr) -> Expr:
        if isinstance(old, (*SHARED, Var)):
            return new
        if isinstance(new, Call) and not isinstance(new.op, Op) and new.type_args and old not in told:
            new = Call(new.op, new.args, new.attrs)
            bare[new] = old
            return new
        return remake(new, children(new))

    plain, report = rewrite(root, untyped), ErrorReport(mod)
    known = {} if mod is None else {gv.name_hint: f.inferred or f.annotated_type() for gv, f in mod.functions.items()}
    typer = Typer(mod, report, {name: t for name, t in known.items() if t is not None})
    typer.run(plain)
    rebuilder = Rebuilder(typer)
    rebuilder.rebuild(plain)
    if not report:
        rebuilder.report_open(plain)
    return {bare[site] for code, _, site, _ in report.found.values() if code == "unresolved" and site in bare}
