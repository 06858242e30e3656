"""TVM's decorators: passes made of functions, and of classes with `transform_module` or `transform_function`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError, kind_of
from relaylab.transform.engine.info import PassInfo
from relaylab.transform.engine.manager import FunctionPass, ModulePass
from relaylab.transform.engine.options import PassRecord, arguments, of_signature


def _decorator(
    kind: type[ModulePass] | type[FunctionPass],
    method: str,
    opt_level: int | None,
    name: str | None,
    required: Sequence[str] | None,
) -> Callable[[Callable[..., object]], object]:
    if opt_level is None:
        raise RelayValueError(
            "please give the opt_level of the pass", code="pass.no-level", help="@function_pass(opt_level=1)"
        )

    def wrap(target: Callable[..., Any]) -> object:
        if not callable(target):
            text = f"a pass is a function or a class, not {kind_of(target)}"
            raise RelayTypeError(text, code="pass.not-callable")
        info = PassInfo(opt_level, name or getattr(target, "__name__", type(target).__name__), tuple(required or ()))
        return _pass_class(kind, method, target, info) if inspect.isclass(target) else kind(info, target)

    return wrap


def _pass_class(kind: type, method: str, cls: type, info: PassInfo) -> type:
    """A pass class whose instances hold an instance of `cls` and forward to it."""
    if not hasattr(cls, method):
        raise RelayTypeError(f"the class {cls.__name__} needs a method `{method}`", code="pass.no-method")
    signature = inspect.signature(cls)

    class Wrapped(cast(Any, kind)):
        def __init__(self, *args: object, **kwargs: object):
            self._instance = inner = cls(*args, **kwargs)
            super().__init__(info, getattr(inner, method))
            self.record = PassRecord(cls.__name__, of_signature(cls), arguments(signature, args, kwargs), cls)

        @property
        def rules(self) -> Sequence[object]:
            return getattr(self._instance, "rules", ())

        def __getattr__(self, attr: str) -> object:
            if attr == "_instance":
                raise RelayError(f"{cls.__name__} is not built yet", code="pass.not-built")
            return getattr(self._instance, attr)

    functools.update_wrapper(Wrapped.__init__, cls.__init__)
    Wrapped.__name__, Wrapped.__qualname__ = cls.__name__, cls.__qualname__
    Wrapped.__doc__, Wrapped.__module__ = cls.__doc__, cls.__module__
    return Wrapped


def module_pass(
    pass_func: Callable[..., object] | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
) -> Any:
    """Make a module pass of a function `f(mod, ctx) -> mod` or of a class with `transform_module(self, mod, ctx)`."""
    decorate = _decorator(ModulePass, "transform_module", opt_level, name, required)
    return decorate if pass_func is None else decorate(pass_func)


def function_pass(
    pass_func: Callable[..., object] | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
) -> Any:
    """Make a function pass of `f(func, mod, ctx) -> func` or a class with `transform_function(func, mod, ctx)`."""
    decorate = _decorator(FunctionPass, "transform_function", opt_level, name, required)
    return decorate if pass_func is None else decorate(pass_func)
