"""A pipeline that can be edited: every pass is one item, and only what follows an edit runs again."""

from __future__ import annotations

import ast
import functools
import inspect
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from relaylab.analysis import list_op_freqs
from relaylab.ir import IRModule
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.transform import PASSES, History, InferType, Pass, PassContext, Stage, create, run_pipeline


def operators(mod: IRModule) -> Counter[str]:
    """How often each operator is called, and how many kernels there are."""
    return Counter(list_op_freqs(mod))


@dataclass(frozen=True, eq=False)
class Item:
    """One pass of a pipeline, as it is written, and whether it is on."""

    made: Pass
    text: str
    enabled: bool = True

    @property
    def name(self) -> str:
        """The name under which the pass is known."""
        return self.made.info.name


@dataclass(eq=False)
class Segment:
    """What one item did: the program before and after it, the stages that ran for it, the error that stopped it."""

    before: IRModule
    after: IRModule
    stages: list[Stage] = field(default_factory=list)
    error: BaseException | None = None
    ran: bool = True

    @property
    def changed(self) -> bool:
        """Whether the program after it is another one."""
        return self.after is not self.before

    @property
    def main(self) -> Stage | None:
        """The run of the pass itself, behind the passes that it requires."""
        return self.stages[-1] if self.stages else None

    @property
    def seconds(self) -> float:
        """The time that it took, required passes included."""
        return sum(stage.seconds for stage in self.stages)


class Pipeline:
    """A program and the passes that run over it. `segments` has one entry for each item.

    Nothing is run twice: an item that meets the module that it met before gives the segment that it gave before. With
    `verify` (the default) what a pass leaves is checked: scopes, free variables, types. A broken program ends the pipeline there.
    """

    def __init__(self, source: IRModule, passes: Iterable[Pass | str], opt_level: int = 3, verify: bool = True):
        self.source, self.opt_level, self.verify = source, opt_level, verify
        self.items: list[Item] = [item_of(p) for p in passes]
        self.runs = 0
        self._cache: dict[tuple[IRModule, Pass], Segment] = {}
        self._segments: list[Segment] | None = None
        self._past: list[tuple[Item, ...]] = []
        self._future: list[tuple[Item, ...]] = []

    def branch(self, passes: Iterable[Pass | str] | None = None) -> Pipeline:
        """Another pipeline over the same program, with the same passes or others, edited by itself; what is known is shared.

        A pass given as text that this pipeline has too, written alike, is the same pass: it is not run again.
        """
        other = Pipeline(self.source, (), self.opt_level, self.verify)
        other._cache = self._cache
        if passes is None:
            other.items, other._segments = list(self.items), self._segments
        else:
            own = [item for item in self.items if item.enabled]
            other.items = [_taken(p, own) for p in passes]
        return other

    @property
    def segments(self) -> list[Segment]:
        """The items' segments, run as far as is needed."""
        if self._segments is None:
            self._segments = self._run()
        return self._segments

    def _run(self) -> list[Segment]:
        mod, out = self.source, []
        broken = False
        for item in self.items:
            if broken or not item.enabled:
                out.append(Segment(mod, mod, ran=False))
                continue
            segment = self._segment(mod, item.made)
            broken = segment.error is not None
            out.append(segment)
            mod = segment.after
        return out

    def _segment(self, mod: IRModule, made: Pass) -> Segment:
        known = self._cache.get((mod, made))
        if known is None:
            history = run_pipeline(mod, [made], PassContext(opt_level=self.opt_level))
            error = history.error or (broken(history.mod, made.info.name) if self.verify and history.mod is not mod else None)
            known = self._cache[mod, made] = Segment(mod, history.mod, list(history), error)
            self.runs += 1
        return known

    @property
    def history(self) -> History:
        """All stages as one history."""
        history = History(self.source, [stage for segment in self.segments for stage in segment.stages])
        history.error = next((segment.error for segment in self.segments if segment.error), None)
        return history

    @property
    def modules(self) -> list[IRModule]:
        """The program before the first item and after each."""
        return [self.source, *(segment.after for segment in self.segments)]

    # -- editing -------------------------------------------------------------------------------------

    def toggle(self, index: int) -> None:
        """Switch an item on or off."""
        self._put(index, replace(self.item(index), enabled=not self.items[index].enabled))

    def set(self, index: int, text: str) -> None:
        """Write an item anew: another pass, or other options."""
        self._put(index, replace(item_of(text), enabled=self.item(index).enabled))

    def move(self, index: int, to: int) -> None:
        """Put an item at another place."""
        rest = [item for item in self.items if item is not self.item(index)]
        to = max(0, min(to, len(rest)))
        self._edit([*rest[:to], self.items[index], *rest[to:]])

    def remove(self, index: int) -> None:
        """Take an item away."""
        self.item(index)
        self._edit([*self.items[:index], *self.items[index + 1 :]])

    def insert(self, index: int, what: str | Pass) -> None:
        """Add a pass, as text such as `ConvertLayout({"nn.conv2d": ["NHWC", "default"]})` or as an object."""
        index = max(0, min(index, len(self.items)))
        self._edit([*self.items[:index], item_of(what), *self.items[index:]])

    def become(self, other: Pipeline) -> None:
        """Have the passes of another pipeline; an edit like the others."""
        self._edit(list(other.items))

    def undo(self) -> None:
        """Take back the last edit."""
        self._swap(self._past, self._future, "undo")

    def redo(self) -> None:
        """Do again what was taken back last."""
        self._swap(self._future, self._past, "redo")

    def _swap(self, source: list[tuple[Item, ...]], other: list[tuple[Item, ...]], what: str) -> None:
        if not source:
            raise RelayValueError(f"there is no edit to {what}", code=f"tour.no-{what}")
        other.append(tuple(self.items))
        self.items, self._segments = list(source.pop()), None

    def item(self, index: int) -> Item:
        """The item at an index."""
        if not 0 <= index < len(self.items):
            raise RelayValueError(f"the pipeline has {len(self.items)} passes, not one at {index}", code="tour.no-item")
        return self.items[index]

    def _put(self, index: int, item: Item) -> None:
        self._edit([*self.items[:index], item, *self.items[index + 1 :]])

    def _edit(self, items: list[Item]) -> None:
        self._past.append(tuple(self.items))
        self._future.clear()
        self.items, self._segments = items, None

    # -- as text -------------------------------------------------------------------------------------

    def python(self) -> str:
        """The pipeline as Python that makes it."""
        body = "".join(f"    relay.transform.{item.text},\n" for item in self.items if item.enabled)
        head = f"from relaylab import relay\n\nseq = relay.transform.Sequential([\n{body}])\n"
        return f"{head}with relay.transform.PassContext(opt_level={self.opt_level}):\n    mod = seq(mod)\n"

    def command(self, program: str) -> str:
        """The pipeline as a command."""
        names = ",".join(item.text.removesuffix("()") for item in self.items if item.enabled)
        return f"relaylab passes {program} -O {self.opt_level} -p '{names}'"


def broken(mod: IRModule, name: str) -> RelayError | None:
    """What is wrong with the program that a pass of that name left: the rule that does not hold, and the node; None if nothing is.

    A program whose functions all have types was checked when it got them.
    """
    if all(f._checked_type is not None for f in mod.functions.values()):
        return None
    try:
        InferType()(mod)
    except RelayError as error:
        return RelayError(f"{name} left a broken program: {error.message}", code=error.code, place=error.place, help=error.help)
    return None


def item_of(what: Pass | str) -> Item:
    """A pass, or the text of one, as an item."""
    return Item(pass_of(what), normal(what)) if isinstance(what, str) else Item(what, text_of(what))


def _taken(what: Pass | str, known: list[Item]) -> Item:
    """The first known item that is written so, which is known no longer; or a new one."""
    found = next((i for i in known if i.text == normal(what)), None) if isinstance(what, str) else None
    if found is None:
        return item_of(what)
    known.remove(found)
    return found


def normal(text: str) -> str:
    """A pass as text, with its parentheses."""
    return text.strip() if "(" in text else f"{text.strip()}()"


def pass_of(text: str) -> Pass:
    """The registered pass that a text names, with options that are literals: `Name(1, key=[2])`."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
        call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        name = _dotted(call.func)
        args = [ast.literal_eval(a) for a in call.args]
        named = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg}
    except (SyntaxError, ValueError):
        raise RelayValueError(
            f"`{text}` is not a pass", code="tour.pass-text",
            help='write Name or Name(option=value); a value is a number, a text in quotes, True, False, None, or a list of values',
        ) from None
    try:
        return create(name, *args, **named)
    except TypeError as error:
        if isinstance(error, RelayError):
            raise
        raise RelayValueError(f"{name}: {error}", code="tour.pass-options", help=PASSES[name].signature) from None


def split(text: str) -> list[str]:
    """`A,B(x=[1, 2]),C` at its outer commas."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [p for p in parts if p]


def _dotted(node: ast.expr) -> str:
    """The last name of `relay.transform.Name`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    raise ValueError("it has no name")


def text_of(made: Pass) -> str:
    """How a pass object is written: its registered name if it has one."""
    name = made.info.name
    entry = PASSES.get(name) or next((e for e in PASSES.values() if e.info.name == name), None)
    if entry is None:
        return f"{name}()"
    return f"{entry.name}({', '.join(f'{k}={v!r}' for k, v in _options(made, entry).items())})"


def _options(made: Pass, entry: Any) -> dict[str, Any]:
    """The options with which a factory was called, where its pass function still knows them; only those that are not defaults."""
    parameters = inspect.signature(entry.factory).parameters
    function = getattr(made, "pass_func", None)
    known = dict(inspect.getclosurevars(function).nonlocals) if inspect.isfunction(function) else {}
    if isinstance(function, functools.partial):
        known = dict(function.keywords)
    chosen = {name: known.get(name, entry.example.get(name, p.default)) for name, p in parameters.items()}
    return {name: v for name, v in chosen.items() if v != parameters[name].default and v is not inspect.Parameter.empty}


@dataclass(frozen=True)
class Option:
    """An option of a pass as it is written: its value, its default (empty if it must be given), its type."""

    name: str
    value: str
    default: str
    type: str


def options_of(made: Pass) -> list[Option]:
    """All options that a registered pass could be given, with what this one was given."""
    entry = next((e for e in PASSES.values() if e.info.name == made.info.name), None)
    if entry is None:
        return []
    chosen = _options(made, entry)
    return [_option(p, chosen) for p in inspect.signature(entry.factory).parameters.values()]


def _option(parameter: inspect.Parameter, chosen: dict[str, Any]) -> Option:
    empty = inspect.Parameter.empty
    default = "" if parameter.default is empty else repr(parameter.default)
    value = repr(chosen[parameter.name]) if parameter.name in chosen else default
    return Option(parameter.name, value, default, "" if parameter.annotation is empty else str(parameter.annotation))
