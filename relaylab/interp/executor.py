"""Running programs with the evaluator: `Interpreter`, and the executor that `create_executor("debug")` gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from relaylab.interp.machine import Machine
from relaylab.interp.values import Closure, Value, map_arrays, rebuilt, to_value
from relaylab.ir.adt import Constructor
from relaylab.ir.expr import Constant, Expr, Function, GlobalVar, Var
from relaylab.ir.module import IRModule
from relaylab.ir.names import parameter_names
from relaylab.ir.op import Op
from relaylab.ir.types import Type, TypeVar, type_leaves
from relaylab.ir.visit import substitute
from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError
from relaylab.support.memory import as_array
from relaylab.support.table import Table, did_you_mean


@checked
class Interpreter:
    """Evaluates expressions over a module, slowly and obviously right: the oracle for everything else.

    `wrap` is applied to each array of a result (to give the arrays of a runtime), `pack` makes its tuples; `params`
    are
    values for parameters of `main` that a call leaves out, by name.
    """

    def __init__(
        self,
        mod: IRModule | None = None,
        params: Mapping[str, Any] | None = None,
        wrap: Callable[[Any], Any] | None = None,
        pack: Callable[[Value, tuple[Value, ...]], Value] = rebuilt,
    ):
        self.mod = mod if mod is not None else IRModule()
        self.params = dict(params or {})
        self.wrap, self.pack = wrap, pack

    def machine(self) -> Machine:
        """What evaluates: a machine over the module, a new one for each call."""
        return Machine(self.mod)

    def evaluate(self, expr: Expr | None = None, binds: Mapping[Var, object] | None = None) -> Value:
        """What `expr` is: a Python callable for a function (for `main` without `expr`), else its value.

        `binds` puts expressions (or arrays) in the place of free variables. Raises `EvaluationError` where that fails.
        """
        if expr is None:
            expr = self.mod.get_global_var("main")
        if binds:
            expr = bound(expr, binds)
        func = self.mod[expr] if isinstance(expr, GlobalVar) else expr
        if not isinstance(func, Function):
            return self.given(self.machine().run(expr))
        return self._callable(expr, func)

    def _callable(self, expr: Expr, func: Function) -> Callable[..., Any]:
        def run(*args: Value, **kwargs: Value) -> Value:
            values = self.arguments(func, args, kwargs)
            machine = self.machine()
            return self.given(machine.call(machine.run(expr), values))

        run.__name__ = expr.name_hint if isinstance(expr, GlobalVar) else "function"
        run.__doc__ = f"Evaluates a function of {', '.join(p.name_hint for p in func.params) or 'no parameters'}."
        return run

    def arguments(
        self, func: Function, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Value, ...]:
        """The values of the parameters of `func` for these arguments, in order."""
        names = parameter_names(func.params)
        check_names(names, args, kwargs)
        named = {**self.params, **kwargs}
        missing = [n for n in names[len(args) :] if n not in named]
        if missing:
            raise RelayTypeError(f"no value is given for {', '.join(missing)}", code="interp.missing-argument")
        given = (*args, *(named[n] for n in names[len(args) :]))
        binds = dict.fromkeys(func.type_params)
        params = zip(func.params, given)
        return tuple(
            to_value(self.taken(arg), _concrete(p, binds), f"the argument `{p.name_hint}`") for p, arg in params
        )

    def taken(self, arg: Value) -> Value:
        return arg.closure if isinstance(arg, FunctionValue) else arg

    def given(self, value: Value) -> Value:
        if isinstance(value, (Closure, Op, Constructor)):
            return FunctionValue(self, value)
        return map_arrays(value, self.wrap, self.pack) if self.wrap is not None else value


def bound(expr: Expr, binds: Mapping[Var, object]) -> Expr:
    """`expr` with expressions, or arrays and numbers, in the place of variables."""
    made = {v: value if isinstance(value, Expr) else Constant(as_array(value)) for v, value in binds.items()}
    return substitute(expr, made)


class FunctionValue:
    """A function that evaluation returned; calling it evaluates it."""

    def __init__(self, interpreter: Interpreter, closure: Value):
        self.interpreter, self.closure = interpreter, closure

    def __call__(self, *args: Value) -> Value:
        own = self.interpreter
        values = tuple(to_value(own.taken(a), None, f"argument {k}") for k, a in enumerate(args))
        return own.given(own.machine().call(self.closure, values))

    def __repr__(self) -> str:
        return repr(self.closure)


def check_count(names: Sequence[str], args: Sequence[object]) -> None:
    """Refuse (`RelayTypeError`) more arguments than there are parameters."""
    if len(args) > len(names):
        raise RelayTypeError(
            f"the function takes {len(names)} arguments, {len(args)} are given",
            code="interp.too-many-arguments",
            help=f"its parameters: {', '.join(names) or 'none'}",
        )


def check_names(names: Sequence[str], args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Refuse (`RelayTypeError`) arguments that no parameter takes, or that one is given twice."""
    check_count(names, args)
    for name in kwargs:
        if name not in names:
            help = did_you_mean(name, names) or f"it has: {', '.join(names)}"
            raise RelayTypeError(f"the function has no parameter `{name}`", code="interp.unknown-argument", help=help)
        if name in names[: len(args)]:
            raise RelayTypeError(f"`{name}` is given twice", code="interp.duplicate-argument")


def _concrete(param: Var, type_params: Mapping[TypeVar, None]) -> Type | None:
    """The type of a parameter, None where it depends on type parameters."""
    t = param.inferred or param.type_annotation
    return None if t is not None and any(part in type_params for part in type_leaves(t)) else t


EXECUTORS: Table[Callable[..., Any]] = Table("executor")
"""How `create_executor` makes executors, by kind; the rooms that have them insert theirs."""


def create_executor(
    kind: str = "debug",
    mod: IRModule | None = None,
    device: object = None,
    target: object = "llvm",
    params: Mapping[str, Any] | None = None,
) -> Any:
    """An executor of a `kind` ("debug" is the evaluator); `.evaluate()` gives a callable for `main`."""
    return EXECUTORS.lookup(kind)(mod, device, target, params)


def _debug(mod: IRModule | None, device: object, target: object, params: Mapping[str, Any] | None) -> Interpreter:
    return Interpreter(mod, params)


EXECUTORS.insert("debug", _debug)
