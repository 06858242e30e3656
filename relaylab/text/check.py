"""Checks that spans are where they ought to be."""

from __future__ import annotations

from relaylab.ir.adt import Constructor
from relaylab.ir.expr import Expr, GlobalVar
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.visit import walk
from relaylab.support.errors import DiagnosticError
from relaylab.text.writing.printing import text

_MOST = 20


def missing_spans(program: IRModule | Expr) -> list[Expr]:
    """The nodes that do not know where they come from (names of operators, functions and constructors apart)."""
    roots = list(program.functions.values()) if isinstance(program, IRModule) else [program]
    return [n for n in walk(roots) if n.span is None and not isinstance(n, (Op, GlobalVar, Constructor))]


def check_spans(program: IRModule | Expr) -> IRModule | Expr:
    """`program`, if all its nodes have spans; else a `DiagnosticError` that shows those without."""
    missing = missing_spans(program)
    if not missing:
        return program
    found = [DiagnosticError("a node without span", code="text.no-span", place=_shown(n)) for n in missing[:_MOST]]
    message = f"{len(missing)} nodes have no span"
    raise DiagnosticError(message, code="text.no-span", place=found[0].place, diagnostics=tuple(found))


def _shown(node: Expr) -> str:
    lines = text(node).splitlines()
    return "  " + "\n  ".join(lines[-3:])


class SpanCheck:
    """A check that stands among passes: returns the module that it is given, or raises."""

    def __call__(self, mod: IRModule) -> IRModule:
        check_spans(mod)
        return mod
