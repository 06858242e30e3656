"""Passes: what they are, how they run, and the one table of them. `declare` makes them, `decorators` has TVM's ways.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import ClassVar, cast

from relaylab.ir import Expr, Function, IRModule
from relaylab.ir.excerpt import place_of
from relaylab.ir.node import expect
from relaylab.support.checked import checked
from relaylab.support.collection import no_collection
from relaylab.support.errors import RelayTypeError, RelayValueError, kind_of
from relaylab.support.table import Table
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.history import History, Stage, collecting, note, staged
from relaylab.transform.engine.info import PassInfo
from relaylab.transform.engine.options import Option, PassRecord, signature
from relaylab.transform.engine.purity import PurityAnalysis, changes_state, first_effect


@checked
class Pass:
    """A function from modules to modules that never changes its argument.

    Calling a pass directly runs it at any optimization level, without its required passes;
    `Sequential` applies levels and requirements. A declared pass (`pass_`) is a frozen record: its `repr` is its text,
    and passes with equal options are equal. Of any other nobody knows what it does: it is equal only to itself.
    """

    record: PassRecord | None = None
    """How the pass is written; None for what is made of a bare function."""
    effects: ClassVar[bool] = True
    """Whether the pass keeps the order of effects; one that does not refuses the functions that have them."""
    rules: Sequence[object] = ()
    """The rules, callbacks and patterns that it is made of, for those who ask why it did not fire."""

    def __init__(self, info: PassInfo):
        self.info = info

    def __call__(self, mod: IRModule) -> IRModule:
        if not isinstance(mod, IRModule):
            hint = "wrap it: IRModule.from_expr(expr)"
            raise RelayTypeError(
                f"{self.info.name} works on an IRModule, not on {kind_of(mod)}", code="pass.not-a-module", help=hint
            )
        ctx = PassContext.current()
        if not ctx.before_pass(mod, self.info):
            note(Stage(self, mod, mod, skipped="an instrument said no"))
            return mod
        with no_collection(), staged(self, mod) as stage:
            if not self.effects:
                _refuse_effects(self.info, mod)
            after = self.apply(mod, ctx)
            if not isinstance(after, IRModule):
                raise _wrong_result(self.info, after, "an IRModule")
            stage.after = after
        ctx.after_pass(after, self.info)
        return after

    def apply(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module after the pass, without instruments."""
        raise RelayTypeError(
            f"{type(self).__name__} does not say what it does",
            code="pass.abstract",
            help="use ModulePass or FunctionPass",
        )

    def __eq__(self, other: object) -> bool:
        if self is other or self.record is None or not self.record.by_value:
            return self is other
        return type(self) is type(other) and self.record.key == cast(PassRecord, cast(Pass, other).record).key

    def __hash__(self) -> int:
        known = self.record
        return object.__hash__(self) if known is None or not known.by_value else hash((type(self), known.key))

    def __repr__(self) -> str:
        return self.record.text if self.record is not None and self.record.by_value else str(self)

    def __str__(self) -> str:
        """What TVM prints."""
        known = self.record is not None and self.record.by_value
        kinds = (k.__name__ for k in type(self).__mro__ if k in (FunctionPass, ModulePass, Sequential))
        kind = next(kinds, "Pass") if known else type(self).__name__
        return f"Run {kind} pass: {self.info.name} at the optimization level {self.info.opt_level}"


def _refuse_effects(info: PassInfo, mod: IRModule) -> None:
    """RelayValueError if a function that passes may touch has effects."""
    if not changes_state(mod):
        return
    if any(f.inferred is None for f in mod.functions.values()):
        mod = create("InferType")(mod)
    purity = PurityAnalysis(mod)
    for gv, func in mod.functions.items():
        effect = first_effect(func, purity) if is_optimizable(func) else None
        if effect is not None:
            raise RelayValueError(
                f"{info.name} does not keep the order of effects, and @{gv.name_hint} has some",
                code="pass.effects",
                place=place_of(effect, mod.source_map, gv.name_hint, func),
                help="leave the pass out, or leave the function out: give it the attribute SkipOptimization=1",
            )


def _wrong_result(info: PassInfo, value: object, wanted: str) -> RelayTypeError:
    hint = "does it lack a `return`?" if value is None else ""
    return RelayTypeError(
        f"the pass {info.name} returned {kind_of(value)}, not {wanted}", code="pass.wrong-result", help=hint
    )


def taking(function: Callable[..., object], name: str, *wanted: str) -> Callable:
    """`function`, checked to take what a pass of its kind is given."""
    try:
        inspect.signature(function).bind(*wanted)
    except TypeError:
        text = f"the pass {name} takes {inspect.signature(function)}; it is called with ({', '.join(wanted)})"
        raise RelayTypeError(text, code="pass.signature", help=f"write def {name}({', '.join(wanted)}):") from None
    except ValueError:  # built in, without a signature
        pass
    return function


@checked
class ModulePass(Pass):
    """A pass on whole modules: `run(mod, ctx)` gives a module. TVM's way to make one: `ModulePass(info, pass_func)`."""

    takes: ClassVar[tuple[str, ...]] = ("mod", "ctx")

    def __init__(self, info: PassInfo, pass_func: Callable[..., IRModule]):
        super().__init__(info)
        self.pass_func = taking(pass_func, info.name, *self.takes)

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module after the pass."""
        return self.pass_func(mod, ctx)

    def apply(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return self.run(mod, ctx)


def is_optimizable(func: Function) -> bool:
    """Whether function passes may touch a function: not made for an external compiler, not excluded."""
    return not (func.attr("Compiler") or func.attr("Extern", 0) or func.attr("SkipOptimization", 0))


@checked
class FunctionPass(Pass):
    """A pass on each function: `run(func, mod, ctx)` gives a function; types are inferred afterwards.

    TVM's way to make one: `FunctionPass(info, pass_func)`.
    """

    takes: ClassVar[tuple[str, ...]] = ("func", "mod", "ctx")

    def __init__(self, info: PassInfo, pass_func: Callable[..., Function]):
        super().__init__(info)
        self.pass_func = taking(pass_func, info.name, *self.takes)

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        """The function after the pass, which must be a `Function` again."""
        return self.pass_func(func, mod, ctx)

    def apply(self, mod: IRModule, ctx: PassContext) -> IRModule:
        if "InferType" in self.info.required and any(f.inferred is None for f in mod.functions.values()):
            mod = create("InferType")(mod)  # a direct call on an untyped module: the pass could not work without
        # like Relay, each function sees the module with the functions before it rewritten
        out = mod.shallow_copy()
        for gv, func in mod.functions.items():
            if is_optimizable(func):
                after = self.run(func, out, ctx)
                if not isinstance(after, Function):
                    raise _wrong_result(self.info, after, "a Function")
                if after is not func:
                    out[gv] = after
        return create("InferType")(mod.with_functions(out.functions) if _same_types(mod, out) else out)


def _same_types(a: IRModule, b: IRModule) -> bool:
    return a.type_definitions == b.type_definitions and a.attrs is b.attrs


@checked
class Sequential(Pass):
    """Runs passes one after the other, those that the context enables, each after the passes that it requires."""

    passes: tuple[Pass, ...] = ()

    def __init__(
        self,
        passes: Iterable[Pass] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
    ):
        super().__init__(PassInfo(opt_level, name, tuple(required or ())))
        self.passes = tuple(expect(p, Pass, "each pass of a Sequential") for p in passes or ())

    def apply(self, mod: IRModule, ctx: PassContext) -> IRModule:
        for p in self.passes:
            mod = run_enabled(p, mod, ctx)
        return mod


def run_enabled(p: Pass, mod: IRModule, ctx: PassContext) -> IRModule:
    """The module after a pass and those it requires; the module itself if the context does not enable the pass."""
    if not ctx.enabled(p.info):
        reason = "disabled" if p.info.name in ctx.disabled_pass else f"needs opt_level {p.info.opt_level}"
        note(Stage(p, mod, mod, skipped=reason))
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
    """A registered pass: its name, the class or factory that makes it, its options, arguments with which to try it.

    `idempotent`: a second run changes nothing. `preserves`: the program computes what it computed before.
    `effects`: it keeps the order of effects.
    """

    name: str
    factory: Callable[..., Pass]
    options: tuple[Option, ...] = ()
    example: Mapping[str, object] = field(default_factory=dict)
    idempotent: bool = False
    preserves: bool = True
    effects: bool = True

    def make(self) -> Pass:
        """The pass with its default (or example) arguments."""
        return self.factory(**self.example)

    @property
    def info(self) -> PassInfo:
        """Its level, its name in histories, the passes that it requires."""
        found = getattr(self.factory, "info", None)
        return found if isinstance(found, PassInfo) else self.make().info

    @property
    def summary(self) -> str:
        """What the pass does, in one line."""
        return self.doc.split("\n")[0]

    @property
    def doc(self) -> str:
        """What the pass does."""
        return inspect.getdoc(self.factory) or ""

    @property
    def signature(self) -> str:
        """How it is written: `FuseOps(fuse_opt_level: int = -1)`."""
        return signature(self.name, self.options)


PASSES: Table[PassEntry] = Table("pass", "`relaylab passes` lists them; relay.transform has them")


def create(name: str, *args: object, **kwargs: object) -> Pass:
    """The registered pass of that name."""
    return PASSES.lookup(name).factory(*args, **kwargs)
