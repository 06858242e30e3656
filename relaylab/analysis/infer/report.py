"""The errors of an inference, collected and shown together: each with its types and its place."""

from __future__ import annotations

from collections.abc import Iterable

from relaylab.ir.excerpt import place_of
from relaylab.ir.expr import Expr
from relaylab.ir.module import IRModule
from relaylab.ir.visit import walk
from relaylab.support.errors import DiagnosticError, RelayError, rendered
from relaylab.support.source import AnySpan, Span

QUOTED = 10
"""So many errors quote the lines about them; the others name the expression only."""


class TypeFault(RelayError):
    """One error of type inference; `node` is the expression it is about, `function` the name of the function it is
    in.
    """

    def __init__(
        self, message: str, *, code: str, place: str = "", help: str = "", node: Expr | None = None, function: str = ""
    ):
        super().__init__(message, code=code, place=place, help=help)
        self.node, self.function = node, function

    @property
    def span(self) -> AnySpan | None:
        """Where the expression comes from."""
        return self.node.span if self.node is not None else None


class ErrorReport:
    """Collects errors; true if there are any. One error is kept per expression and message."""

    def __init__(self, mod: IRModule | None = None):
        self.mod = mod
        self.found: dict[tuple[Expr, str], tuple[str, str, Expr, str]] = {}

    def __bool__(self) -> bool:
        return bool(self.found)

    def error(self, code: str, message: str, site: Expr, help: str = "") -> None:
        """Note an error at `site`."""
        self.found.setdefault((site, message), (code, message, site, help))

    def faults(self, functions: dict[str, Expr]) -> list[TypeFault]:
        """The errors with their places, in the order of the program."""
        home = _homes(functions, [site for _, _, site, _ in self.found.values()])
        order = {name: k for k, name in enumerate(functions)}
        out = []
        for k, (code, message, site, help) in enumerate(self.found.values()):
            name, position = home.get(site, ("", 0))
            shown = functions.get(name) if k < QUOTED else None
            place = place_of(site, self.mod.source_map if self.mod is not None else {}, name, shown)
            fault = TypeFault(message, code=f"type.{code}", place=place, help=help, node=site, function=name)
            line = (site.span.line, site.span.column) if isinstance(site.span, Span) else (0, 0)
            out.append((order.get(name, 0), line, position, fault))
        return [fault for *_, fault in sorted(out, key=lambda entry: entry[:3])]

    def raise_if_any(self, functions: dict[str, Expr]) -> None:
        """Raise `DiagnosticError` with everything found."""
        if self.found:
            faults = self.faults(functions)
            first = faults[0]
            error = DiagnosticError(
                first.message, code=first.code, place=first.place, help=first.help, diagnostics=tuple(faults)
            )
            rendered(error)
            raise error


def _homes(functions: dict[str, Expr], sites: Iterable[Expr]) -> dict[Expr, tuple[str, int]]:
    """For each site the function that it is in and its position there."""
    wanted, home = set(sites), {}
    for name, func in functions.items():
        for k, node in enumerate(walk((func,))):
            if node in wanted:
                home.setdefault(node, (name, k))
    return home
