"""ScopeBuilder: programs with lets and branches, one statement after the other; while loops as recursive closures."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import cast

from relaylab.ir.expr import Call, Expr, Function, If, Let, Tuple, Var, as_expr
from relaylab.ir.node import expect_all
from relaylab.ir.types import FuncType, Type
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError, RelayValueError


class _Block:
    """The statements of one scope: lets, then possibly a branch, then the result."""

    def __init__(self) -> None:
        self.bindings: list[tuple[Var, Expr]] = []
        self.result: Expr | None = None
        self.branch: tuple[Expr, Expr] | None = (
            None  # the condition and the true branch, until the else scope has closed
        )

    def close(self) -> Expr:
        if self.branch is not None:
            raise RelayValueError("an if_scope must be followed by an else_scope", code="builder.no-else")
        if self.result is None:
            raise RelayValueError("the scope has no result", code="builder.no-result", help="call .ret(value)")
        body = self.result
        for var, value in reversed(self.bindings):
            body = Let(var, value, body)
        return body


@checked
class WithScope:
    """A scope as a context: `with` gives `enter_value`, and calls `exit_cb` at the end."""

    def __init__(self, enter_value: object, exit_cb: Callable[[], None]):
        self._enter_value, self._exit_cb = enter_value, exit_cb

    def __enter__(self) -> object:
        return self._enter_value

    def __exit__(self, *exc: object) -> None:
        self._exit_cb()


@checked
class ScopeBuilder:
    """Builds nested lets and ifs in the order in which they are written.

    >>> sb = ScopeBuilder()
    >>> with sb.if_scope(cond):
    ...     sb.ret(one)
    >>> with sb.else_scope():
    ...     sb.ret(two)
    >>> sb.get()
    """

    def __init__(self) -> None:
        self._blocks = [_Block()]

    def let(self, var: Var | str | tuple[str, Type], value: object) -> Var:
        """Bind `value`; `var` is a variable, a name, or a name with a type. Returns the variable."""
        if isinstance(var, str):
            var = Var(var)
        elif isinstance(var, tuple):
            var = Var(*var)
        self._blocks[-1].bindings.append((var, as_expr(value)))
        return var

    @contextmanager
    def if_scope(self, cond: Expr) -> Generator[None, None, None]:
        """The true branch; an `else_scope` must follow."""
        self._blocks.append(_Block())
        yield
        branch = self._blocks.pop().close()
        self._blocks[-1].branch = (cond, branch)

    @contextmanager
    def else_scope(self) -> Generator[None, None, None]:
        """The false branch of the `if_scope` before it; the whole `if` becomes the scope's result."""
        pending = self._blocks[-1].branch
        if pending is None:
            raise RelayError("an else_scope must follow an if_scope", code="builder.no-if")
        self._blocks.append(_Block())
        yield
        false_branch = self._blocks.pop().close()
        self._blocks[-1].branch = None
        self.ret(If(*pending, false_branch))

    def ret(self, value: object) -> None:
        """The result of the scope; once."""
        block = self._blocks[-1]
        if block.result is not None:
            raise RelayValueError("ret value has already been set in this scope.", code="builder.two-results")
        block.result = as_expr(value)

    def get(self) -> Expr:
        """The program built so far."""
        if len(self._blocks) != 1:
            raise RelayError("a scope is still open", code="builder.open-scope")
        return self._blocks[0].close()

    def type_of(self, expr: Expr) -> Type | None:
        """The type of an expression, as far as annotations tell."""
        if isinstance(expr, Var) and expr.type_annotation is not None:
            return expr.type_annotation
        if isinstance(expr, Function) and expr.inferred is None:
            types = [p.type_annotation for p in expr.params]
            return FuncType(cast("list[Type]", types), cast(Type, expr.ret_type), expr.type_params)
        return expr.checked_type


def while_loop(cond: Callable[..., Expr], loop_vars: Iterable[Var], loop_bodies: Callable[..., Iterable[Expr]]) -> Expr:
    """A closure that repeats `loop_bodies(*vars)` while `cond(*vars)` and returns the tuple of variables.

    The result is a function value: call it with the initial values.
    """
    sb, loop, fresh = ScopeBuilder(), Var("while_loop"), list(loop_vars)
    with sb.if_scope(cond(*fresh)):
        sb.ret(Call(loop, expect_all(loop_bodies(*fresh), Expr, "what a loop's body gives")))
    with sb.else_scope():
        sb.ret(Tuple(fresh))
    outer = ScopeBuilder()
    outer.let(loop, Function(fresh, sb.get()))
    outer.ret(loop)
    return outer.get()
