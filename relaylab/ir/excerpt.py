"""Showing the place of an expression in an error: its line in the source text, or a few lines of its function."""

from __future__ import annotations

from collections.abc import Mapping

from relaylab.ir.adt import Constructor, Match
from relaylab.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    node_text,
)
from relaylab.ir.op import Op
from relaylab.support.source import MergedSpan, caret

MARK = "  <- here"


def place_of(node: Expr, sources: Mapping[str, object], name: str = "", root: Expr | None = None) -> str:
    """Where `node` is, ready to print: a caret in its source if that is among `sources`, else a part of its function `root`."""
    span = node.span.spans[0] if isinstance(node.span, MergedSpan) else node.span
    text = sources.get(str(span.source_name)) if span is not None else None
    if text is not None and span is not None:
        return caret(str(text), span)
    head = [f"  --> {span}"] if span is not None else []
    return "\n".join([*head, f"  in @{name}:" if name else "  in:", *(f"    {line}" for line in excerpt(node, root))])


def excerpt(node: Expr, root: Expr | None, around: int = 2) -> list[str]:
    """A few lines of the text of `root` about `node`, which is marked; one line of its own if the text does not show it."""
    lines = node_text(root, annotate=lambda e: MARK if e is node else "").splitlines() if root is not None else []
    at = next((k for k, line in enumerate(lines) if MARK in line), None)
    if at is None:
        return [summary(node)]
    return [_window(line) for line in lines[max(0, at - around) : at + around + 1]]


def _window(line: str, width: int = 160) -> str:
    if len(line) <= width:
        return line
    start = max(0, line.find(MARK) - width // 2)
    return ("…" if start else "") + line[start : start + width] + ("…" if start + width < len(line) else "")


def summary(node: Expr) -> str:
    """An expression in one line, its parts only named."""
    return _SUMMARY.get(type(node), lambda e: f"a {type(e).__name__}")(node)


def _brief(node: Expr) -> str:
    if isinstance(node, Call) and not isinstance(node.op, Call):
        return f"{summary(node.op)}(…)"
    return summary(node) if isinstance(node, (Var, GlobalVar, Op, Constant, Constructor)) else "…"


def _all(nodes: tuple[Expr, ...]) -> str:
    return ", ".join(map(_brief, nodes))


_SUMMARY = {
    Var: lambda e: f"%{e.name_hint}",
    GlobalVar: lambda e: f"@{e.name_hint}",
    Constructor: lambda e: e.name_hint,
    Op: lambda e: e.name,
    Constant: lambda e: f"a constant {e.type}",
    Call: lambda e: f"{_brief(e.op)}({_all(e.args)})",
    Tuple: lambda e: f"({_all(e.fields)})",
    TupleGetItem: lambda e: f"{_brief(e.tuple_value)}.{e.index}",
    Let: lambda e: f"let %{e.var.name_hint} = {_brief(e.value)}; …",
    If: lambda e: f"if ({_brief(e.cond)}) {{…}} else {{…}}",
    Match: lambda e: f"match ({_brief(e.data)}) {{…}}",
    RefWrite: lambda e: f"ref_write({_brief(e.ref)}, {_brief(e.value)})",
    Function: lambda e: f"fn ({_all(e.params)}) {{…}}",
}
