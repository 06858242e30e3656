"""Errors of programs as TVM's diagnostics: what was found, and a renderer of one's own that is shown it.

Every `DiagnosticError` (of the parser, of type inference) is handed to the renderer before it is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from relaylab.ir import IRModule
from relaylab.support.checked import checked
from relaylab.support.errors import DiagnosticError, rendered
from relaylab.support.source import AnySpan

__all__ = [
    "Diagnostic", "DiagnosticContext", "DiagnosticLevel", "DiagnosticRenderer", "get_renderer", "override_renderer",
]  # fmt: skip


class DiagnosticLevel(IntEnum):
    """How grave a finding is."""

    BUG = 10
    ERROR = 20
    WARNING = 30
    NOTE = 40
    HELP = 50


@checked
class Diagnostic:
    """One finding: how grave it is, where, and what."""

    def __init__(self, level: DiagnosticLevel | int, span: AnySpan | None, message: str):
        self.level, self.span, self.message = DiagnosticLevel(level), span, message

    def __repr__(self) -> str:
        return f"{self.level.name.lower()}: {self.message}"


@checked
class DiagnosticRenderer:
    """Shows findings: `render(context)` calls the function that it was made of."""

    def __init__(self, render_func: Callable[[DiagnosticContext], object]):
        self.render_func = render_func

    def render(self, ctx: DiagnosticContext) -> None:
        """Show the findings of a context."""
        self.render_func(ctx)


@checked
class DiagnosticContext:
    """Collects findings about a module; `render` shows them, and raises `DiagnosticError` if one is an error."""

    def __init__(self, module: IRModule, renderer: DiagnosticRenderer):
        self.module, self.renderer = module, renderer
        self.diagnostics: list[Diagnostic] = []

    def emit(self, diagnostic: Diagnostic) -> None:
        """Add a finding."""
        self.diagnostics.append(diagnostic)

    def render(self) -> None:
        """Show the findings; `DiagnosticError` if one of them is an error or worse."""
        self.renderer.render(self)
        wrong = [d for d in self.diagnostics if d.level <= DiagnosticLevel.ERROR]
        if wrong:
            raise DiagnosticError(wrong[0].message, code="diagnostics.error")


_renderers: list[DiagnosticRenderer] = []


def get_renderer() -> DiagnosticRenderer:
    """The renderer of one's own, or the usual one, which prints each finding."""
    return _renderers[-1] if _renderers else DiagnosticRenderer(lambda ctx: print(*ctx.diagnostics, sep="\n"))


def override_renderer(render_func: Callable[[DiagnosticContext], object] | None) -> None:
    """`render_func(context)` is shown every error from now on; None ends that."""
    _renderers[:] = [DiagnosticRenderer(render_func)] if render_func is not None else []
    rendered.register(_show if render_func is not None else _nothing)


def _nothing(error: DiagnosticError) -> None:
    return None


def _show(error: DiagnosticError) -> None:
    ctx = DiagnosticContext(IRModule(), get_renderer())
    for found in error.diagnostics or (error,):
        message = getattr(found, "message", str(found))
        ctx.emit(Diagnostic(DiagnosticLevel.ERROR, getattr(found, "span", None), message))
    ctx.renderer.render(ctx)
