"""Passes: `ModulePass`, `FunctionPass`, `Sequential`, the decorators that make them, and the one table of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from relaylab.ir import Function, IRModule
from relaylab.ir.node import expect
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError
from relaylab.support.table import Table
from relaylab.transform.context import PassContext
from relaylab.transform.history import History, Stage, collecting, note, staged


@dataclass(frozen=True, slots=True)
class PassInfo:
    """The optimization level, the name and the required passes of a pass."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "required", tuple(self.required or ()))

    def __str__(self) -> str:
        required = f"[{', '.join(self.required)}]"
        about = f"pass name: {self.name}, opt_level: {self.opt_level}, required passes: {required}"
        return f"The meta data of the pass - {about}"

    __repr__ = __str__


class Pass:
    """A function from modules to modules that never changes its argument.

    Calling a pass directly runs it at any optimization level, without its required passes;
    `Sequential` applies levels and requirements.
    """

    def __init__(self, info: PassInfo):
        self.info = info

    def __call__(self, mod: IRModule) -> IRModule:
        if not isinstance(mod, IRModule):
            hint = "wrap it: IRModule.from_expr(expr)"
            raise RelayTypeError(
                f"{self.info.name} works on an IRModule, not on a {type(mod).__name__}",
                code="pass.not-a-module",
                help=hint,
            )
        ctx = PassContext.current()
        if not ctx.before_pass(mod, self.info):
            note(Stage(self.info, mod, mod, skipped="an instrument said no"))
            return mod
        with staged(self.info, mod) as stage:
            after = self.run(mod, ctx)
            if not isinstance(after, IRModule):
                raise _wrong_result(self.info, after, "an IRModule")
            stage.after = after
        ctx.after_pass(after, self.info)
        return after

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module after the pass, without instruments."""
        raise RelayTypeError(
            f"{type(self).__name__} does not say what it does",
            code="pass.abstract",
            help="use ModulePass or FunctionPass",
        )

    def __repr__(self) -> str:
        return f"Run {type(self).__name__} pass: {self.info.name} at the optimization level {self.info.opt_level}"


def _wrong_result(info: PassInfo, value: object, wanted: str) -> RelayTypeError:
    hint = "does it lack a `return`?" if value is None else ""
    return RelayTypeError(
        f"the pass {info.name} returned a {type(value).__name__}, not {wanted}", code="pass.wrong-result", help=hint
    )


def _taking(pass_func: Callable, info: PassInfo, *wanted: str) -> Callable:
    """`pass_func`, checked to take what a pass of its kind is given."""
    try:
        inspect.signature(pass_func).bind(*wanted)
    except TypeError:
        text = f"the pass {info.name} takes {inspect.signature(pass_func)}; it is called with ({', '.join(wanted)})"
        raise RelayTypeError(text, code="pass.signature", help=f"write def {info.name}({', '.join(wanted)}):") from None
    except ValueError:  # built in, without a signature
        pass
    return pass_func


class ModulePass(Pass):
    """A pass on whole modules: `pass_func(mod, ctx) -> mod`."""

    def __init__(self, info: PassInfo, pass_func: Callable[[IRModule, PassContext], IRModule]):
        super().__init__(info)
        self.pass_func = _taking(pass_func, info, "mod", "ctx")

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return self.pass_func(mod, ctx)


def is_optimizable(func: Function) -> bool:
    """Whether function passes may touch a function: not made for an external compiler, not excluded."""
    return not (func.attr("Compiler") or func.attr("Extern", 0) or func.attr("SkipOptimization", 0))


class FunctionPass(Pass):
    """A pass on each function: `pass_func(func, mod, ctx) -> func`; types are inferred afterwards."""

    def __init__(self, info: PassInfo, pass_func: Callable[[Function, IRModule, PassContext], Function]):
        super().__init__(info)
        self.pass_func = _taking(pass_func, info, "func", "mod", "ctx")

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        if "InferType" in self.info.required and any(f._checked_type is None for f in mod.functions.values()):
            mod = create("InferType")(mod)  # a direct call on an untyped module: the pass could not work without
        # like Relay, each function sees the module with the functions before it rewritten
        out = mod.shallow_copy()
        for gv, func in mod.functions.items():
            if is_optimizable(func):
                after = self.pass_func(func, out, ctx)
                if not isinstance(after, Function):
                    raise _wrong_result(self.info, after, "a Function")
                if after is not func:
                    out[gv] = after
        return create("InferType")(mod.with_functions(out.functions) if _same_types(mod, out) else out)


def _same_types(a: IRModule, b: IRModule) -> bool:
    return a.type_definitions == b.type_definitions and a.attrs is b.attrs


class Sequential(Pass):
    """Runs passes one after the other, those that the context enables, each after the passes that it requires."""

    def __init__(
        self,
        passes: Iterable[Pass] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
    ):
        super().__init__(PassInfo(opt_level, name, tuple(required or ())))
        self.passes: tuple[Pass, ...] = tuple(expect(p, Pass, "each pass of a Sequential") for p in passes or ())

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        for p in self.passes:
            mod = run_enabled(p, mod, ctx)
        return mod


def run_enabled(p: Pass, mod: IRModule, ctx: PassContext) -> IRModule:
    """The module after a pass and those it requires; the module itself if the context does not enable the pass."""
    if not ctx.enabled(p.info):
        reason = "disabled" if p.info.name in ctx.disabled_pass else f"needs opt_level {p.info.opt_level}"
        note(Stage(p.info, mod, mod, skipped=reason))
        return mod
    for name in p.info.required:
        mod = create(name)(mod)
    return p(mod)


def run_pipeline(mod: IRModule, passes: Pass | str | Iterable[Pass | str], ctx: PassContext | None = None) -> History:
    """Run passes (objects or names) in order and keep everything.

    An error of a pass does not escape: `history.error` holds it, the last stage the program
    before it and the trail up to it.
    """
    passes = (passes,) if isinstance(passes, (Pass, str)) else tuple(passes)
    flat = [q for p in passes for q in _flattened(create(p) if isinstance(p, str) else p)]
    history = History(mod)
    try:
        with ctx or nullcontext(PassContext.current()) as entered, collecting(history):
            for p in flat:
                mod = run_enabled(p, mod, entered)
    except Exception as error:
        history.error = error
    return history


def _flattened(p: Pass) -> tuple[Pass, ...]:
    return p.passes if isinstance(p, Sequential) and p.info.name == "sequential" else (p,)


# ---- the table


@dataclass(frozen=True, slots=True)
class PassEntry:
    """A registered pass: its name, the factory that makes it, and arguments with which it can be tried.

    `idempotent`: a second run changes nothing. `preserves`: the program computes what it computed before.
    """

    name: str
    factory: Callable[..., Pass]
    example: Mapping[str, Any] = field(default_factory=dict)
    idempotent: bool = False
    preserves: bool = True

    def make(self) -> Pass:
        """The pass with its default (or example) arguments."""
        return self.factory(**self.example)

    @property
    def info(self) -> PassInfo:
        return self.make().info

    @property
    def summary(self) -> str:
        """What the pass does, in one line."""
        return (inspect.getdoc(self.factory) or "").split("\n")[0]

    @property
    def signature(self) -> str:
        return f"{self.name}{inspect.signature(self.factory)}".split(" -> ")[0]


PASSES: Table[PassEntry] = Table("pass")


def register_pass(
    *, idempotent: bool = False, preserves: bool = True, replace: bool = False, **example: Any
) -> Callable[[Callable[..., Pass]], Callable[..., Pass]]:
    """Put a factory of passes into the table under its own name; `example` are arguments with which to try it."""

    def register(factory: Callable[..., Pass]) -> Callable[..., Pass]:
        name = factory.__name__
        PASSES.insert(name, PassEntry(name, factory, example, idempotent, preserves), replace=replace)
        return factory

    return register


def create(name: str, *args: Any, **kwargs: Any) -> Pass:
    """The registered pass of that name."""
    return PASSES.lookup(name).factory(*args, **kwargs)


# ---- decorators


def _decorate(kind: type[ModulePass] | type[FunctionPass], method: str, pass_arg: Any, info: tuple) -> Any:
    opt_level, name, required = info
    if opt_level is None:
        raise RelayValueError(
            "please give the opt_level of the pass", code="pass.no-level", help="@function_pass(opt_level=1)"
        )

    def wrap(target: Any) -> Any:
        if inspect.isclass(target):
            return _pass_class(
                kind, method, target, PassInfo(opt_level, name or target.__name__, tuple(required or ()))
            )
        if not callable(target):
            text = f"a pass is a function or a class, not a {type(target).__name__}"
            raise RelayTypeError(text, code="pass.not-callable")
        return kind(PassInfo(opt_level, name or target.__name__, tuple(required or ())), target)

    return wrap(pass_arg) if pass_arg is not None else wrap


def _pass_class(kind: Any, method: str, cls: type, info: PassInfo) -> type:
    """A pass class whose instances hold an instance of `cls` and forward to it."""
    if not hasattr(cls, method):
        raise RelayTypeError(f"the class {cls.__name__} needs a method `{method}`", code="pass.no-method")

    class Wrapped(kind):
        def __init__(self, *args: Any, **kwargs: Any):
            self._instance = inner = cls(*args, **kwargs)
            super().__init__(info, getattr(inner, method))

        def __getattr__(self, attr: str) -> Any:
            if attr == "_instance":
                raise RelayError(f"{cls.__name__} is not built yet", code="pass.not-built")
            return getattr(self._instance, attr)

    functools.update_wrapper(Wrapped.__init__, cls.__init__)
    Wrapped.__name__, Wrapped.__qualname__ = cls.__name__, cls.__qualname__
    Wrapped.__doc__, Wrapped.__module__ = cls.__doc__, cls.__module__
    return Wrapped


def module_pass(
    pass_func: Any = None, opt_level: int | None = None, name: str | None = None, required: Sequence[str] | None = None
) -> Any:
    """Make a module pass of a function `f(mod, ctx) -> mod` or of a class with `transform_module(self, mod, ctx)`."""
    return _decorate(ModulePass, "transform_module", pass_func, (opt_level, name, required))


def function_pass(
    pass_func: Any = None, opt_level: int | None = None, name: str | None = None, required: Sequence[str] | None = None
) -> Any:
    """Make a function pass of `f(func, mod, ctx) -> func` or a class with `transform_function(func, mod, ctx)`."""
    return _decorate(FunctionPass, "transform_function", pass_func, (opt_level, name, required))
