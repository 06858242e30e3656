"""Showing the place of an expression in an error: its line in the source text, or a few lines of its function."""

from __future__ import annotations

from collections.abc import Mapping

from relaylab.ir.adt import Constructor, Match
from relaylab.ir.display import node_text
from relaylab.ir.expr import Call, Constant, Expr, Function, GlobalVar, If, Let, RefWrite, Tuple, TupleGetItem, Var
from relaylab.ir.op import Op
from relaylab.support.errors import kind_of
from relaylab.support.source import MergedSpan, caret

MARK = "  <- here"


def place_of(node: Expr, sources: Mapping[str, object], name: str = "", root: Expr | None = None) -> str:
    """Where `node` is, ready to print: a caret in its source if that is among `sources`, else a part of its function
    `root`.
    """
    span = node.span.spans[0] if isinstance(node.span, MergedSpan) else node.span
    text = sources.get(str(span.source_name)) if span is not None else None
    if text is not None and span is not None:
        return caret(str(text), span)
    head = [f"  --> {span}"] if span is not None else []
    return "\n".join([*head, f"  in @{name}:" if name else "  in:", *(f"    {line}" for line in excerpt(node, root))])


def excerpt(node: Expr, root: Expr | None, around: int = 2) -> list[str]:
    """A few lines of the text of `root` about `node`, which is marked; one line of its own if the text does not show
    it.
    """
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
    match node:
        case Var():
            return f"%{node.name_hint}"
        case GlobalVar():
            return f"@{node.name_hint}"
        case Constructor():
            return node.name_hint
        case Op():
            return node.name
        case Constant():
            return f"a constant {node.type}"
        case Call():
            return f"{_brief(node.op)}({_all(node.args)})"
        case Tuple():
            return f"({_all(node.fields)})"
        case TupleGetItem():
            return f"{_brief(node.tuple_value)}.{node.index}"
        case Let():
            return f"let %{node.var.name_hint} = {_brief(node.value)}; …"
        case If():
            return f"if ({_brief(node.cond)}) {{…}} else {{…}}"
        case Match():
            return f"match ({_brief(node.data)}) {{…}}"
        case RefWrite():
            return f"ref_write({_brief(node.ref)}, {_brief(node.value)})"
        case Function():
            return f"fn ({_all(node.params)}) {{…}}"
        case _:
            return kind_of(node)


def _brief(node: Expr) -> str:
    if isinstance(node, Call) and not isinstance(node.op, Call):
        return f"{summary(node.op)}(…)"
    return summary(node) if isinstance(node, (Var, GlobalVar, Op, Constant, Constructor)) else "…"


def _all(nodes: tuple[Expr, ...]) -> str:
    return ", ".join(map(_brief, nodes))
