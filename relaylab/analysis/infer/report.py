"""The errors of an inference, collected and shown together: each with its types and its place."""

from __future__ import annotations

from collections.abc import Iterable

from relaylab.ir.adt import Constructor, Match
from relaylab.ir.expr import Call, Constant, Expr, Function, GlobalVar, If, Let, RefWrite, Tuple, TupleGetItem, Var, node_text
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.types import Type
from relaylab.ir.visit import walk
from relaylab.support.errors import DiagnosticError, RelayError
from relaylab.support.source import MergedSpan, Span, caret
from relaylab.support.table import did_you_mean


class TypeFault(RelayError):
    """One error of type inference; `node` is the expression it is about, `function` the name of the function it is in."""

    def __init__(self, message: str, *, code: str, place: str = "", help: str = "", node: Expr | None = None, function: str = ""):
        super().__init__(message, code=code, place=place, help=help)
        self.node, self.function = node, function

    @property
    def span(self) -> Span | MergedSpan | None:
        """Where the expression comes from."""
        return self.node.span if self.node is not None else None


class Report:
    """Collects errors; true if there are any. One error is kept per expression and message."""

    def __init__(self, mod: IRModule | None = None):
        self.mod = mod
        self.found: dict[tuple[Expr, str], tuple[str, str, Expr, str]] = {}

    def __bool__(self) -> bool:
        return bool(self.found)

    def error(self, code: str, message: str, site: Expr, help: str = "") -> None:
        """Note an error at `site`."""
        self.found.setdefault((site, message), (code, message, site, help))

    def unknown_global(self, gv: GlobalVar, mod: IRModule | None) -> Type:
        """Note a call of a function that the module does not have."""
        from relaylab.analysis.infer.solver import FAILED

        names = [g.name_hint for g in mod.functions] if mod is not None else []
        self.error("unknown-global", f"there is no function @{gv.name_hint} in the module", gv, did_you_mean(gv.name_hint, names))
        return FAILED

    def faults(self, functions: dict[str, Expr]) -> list[TypeFault]:
        """The errors with their places, in the order of the program."""
        home = _homes(functions, [site for _, _, site, _ in self.found.values()])
        order = {name: k for k, name in enumerate(functions)}
        out = []
        for code, message, site, help in self.found.values():
            name, position = home.get(site, ("", 0))
            place = self._place(site, name, functions.get(name))
            fault = TypeFault(message, code=f"type.{code}", place=place, help=help, node=site, function=name)
            out.append((order.get(name, 0), position, fault))
        return [fault for _, _, fault in sorted(out, key=lambda entry: entry[:2])]

    def raise_if_any(self, functions: dict[str, Expr]) -> None:
        """Raise `DiagnosticError` with everything found."""
        if self.found:
            faults = self.faults(functions)
            first = faults[0]
            raise DiagnosticError(first.message, code=first.code, place=first.place, help=first.help, diagnostics=tuple(faults))

    def _place(self, site: Expr, name: str, func: Expr | None) -> str:
        span = site.span.spans[0] if isinstance(site.span, MergedSpan) else site.span
        text = self.mod.source_map.get(str(span.source_name)) if self.mod is not None and span is not None else None
        if text is not None:
            return caret(str(text), span)
        lines = [f"  --> {span}"] if span is not None else []
        where = f"in @{name}:" if name else "in:"
        return "\n".join([*lines, f"  {where}", *(f"    {line}" for line in excerpt(site, func))])


def _homes(functions: dict[str, Expr], sites: Iterable[Expr]) -> dict[Expr, tuple[str, int]]:
    """For each site the function that it is in and its position there."""
    wanted, home = set(sites), {}
    for name, func in functions.items():
        for k, node in enumerate(walk((func,))):
            if node in wanted:
                home.setdefault(node, (name, k))
    return home


MARK = "<- here"


def excerpt(site: Expr, func: Expr | None, around: int = 2) -> list[str]:
    """A few lines of the text of `func` about `site`, which is marked; one line of its own if the text does not show it."""
    lines = node_text(func, annotate=lambda e: MARK if e is site else "").splitlines() if func is not None else []
    at = next((k for k, line in enumerate(lines) if MARK in line), None)
    if at is None:
        return [summary(site)]
    return [_short(line) for line in lines[max(0, at - around) : at + around + 1]]


def _short(line: str, width: int = 160) -> str:
    if len(line) <= width:
        return line
    at = line.find(MARK)
    start = max(0, at - width // 2) if at >= 0 else 0
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
            return f"{summary(node.op)}({', '.join(map(_brief, node.args))})"
        case Tuple():
            return f"({', '.join(map(_brief, node.fields))})"
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
            return f"fn ({', '.join(map(_brief, node.params))}) {{…}}"
        case _:
            return f"a {type(node).__name__}"


def _brief(node: Expr) -> str:
    if isinstance(node, Call):
        return f"{summary(node.op)}(…)" if not isinstance(node.op, Call) else "…"
    return summary(node) if isinstance(node, (Var, GlobalVar, Op, Constant, Constructor)) else "…"
