"""A pipeline that can be edited: every pass is one item, and only what follows an edit runs again.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import cast

from relaylab.analysis import list_op_freqs
from relaylab.ir import IRModule
from relaylab.study.definition import definition_of, preamble
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError, kind_of
from relaylab.support.quoting import python_comment, shell_words
from relaylab.support.table import did_you_mean
from relaylab.transform import History, InferType, Pass, PassContext, Stage, default_passes, run_pipeline
from relaylab.transform import parse_pass as pass_of
from relaylab.transform.engine.options import literal

DEFAULT = "default"
_PUNCTUATION = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[()\[\]{},]""", re.DOTALL)
"""What splits a text: strings are passed over whole."""


@checked
def operators(mod: IRModule) -> Counter[str]:
    """How often each operator is called, and how many kernels there are."""
    return Counter(list_op_freqs(mod))


@dataclass(frozen=True, eq=False)
class Item:
    """One pass of a pipeline, and whether it is on."""

    made: Pass
    enabled: bool = True

    @property
    def name(self) -> str:
        """The name under which histories know the pass."""
        return self.made.info.name

    @property
    def text(self) -> str:
        """The pass as it is written."""
        return text_of(self.made)


@dataclass(eq=False)
class Segment:
    """What one item did: the program before and after it, the stages that ran for it, the error that stopped it."""

    before: IRModule
    after: IRModule
    stages: list[Stage] = field(default_factory=list)
    error: BaseException | None = None
    ran: bool = True
    typed: int = 0
    """How many of the stages, the last ones, only give types to what the pass left without."""

    @property
    def changed(self) -> bool:
        """Whether the program after it is another one."""
        return self.after is not self.before

    @property
    def main(self) -> Stage | None:
        """The run of the pass itself, behind the passes that it requires."""
        return self.stages[-1 - self.typed] if self.stages else None

    @property
    def seconds(self) -> float:
        """The time that it took, required passes included."""
        return sum(stage.seconds for stage in self.stages)


class Pipeline:
    """A program and the passes that run over it. `segments` has one entry for each item.

    Nothing is run twice: an item that meets the module that it met before gives the segment that it gave before. With
    `verify` (the default) what a pass leaves is checked: scopes, free variables, types.
    A broken program ends the pipeline there.
    """

    def __init__(self, source: IRModule, passes: Iterable[Pass | str], opt_level: int = 3, verify: bool = True):
        self.source, self.opt_level, self.verify = source, opt_level, verify
        self.items: list[Item] = [item_of(p) for p in passes]
        self.runs = 0
        self.doing: Callable[[str], None] = lambda what: None
        """Told which pass is run next."""
        self._cache: dict[tuple[IRModule, Pass, int], Segment] = {}
        self._segments: list[Segment] | None = None
        self._past: list[tuple[IRModule, tuple[Item, ...]]] = []
        self._future: list[tuple[IRModule, tuple[Item, ...]]] = []

    def branch(self, passes: Iterable[Pass | str] | None = None) -> Pipeline:
        """Another pipeline over the same program, with the same passes or others, edited by itself.

        What is known is shared: a pass that is equal to one of this pipeline is not run again on the same program.
        """
        other = Pipeline(self.source, () if passes is None else passes, self.opt_level, self.verify)
        other._cache = self._cache
        if passes is None:
            other.items, other._segments = list(self.items), self._segments
        return other

    @property
    def segments(self) -> list[Segment]:
        """The items' segments, run as far as is needed."""
        if self._segments is None:
            self._segments = self._run()
        return self._segments

    def acting(self, name: str) -> int:
        """The index of the first pass of that name that changed something, or else of the first; RelayValueError."""
        found = [k for k, item in enumerate(self.items) if item.name == name]
        if not found:
            names = list(dict.fromkeys(item.name for item in self.items))
            help = did_you_mean(name, names) or f"it has {', '.join(names)}"
            raise RelayValueError(f"the pipeline has no pass `{name}`", code="study.no-pass", help=help)
        return next((k for k in found if self.segments[k].changed), found[0])

    def _run(self) -> list[Segment]:
        mod, out = self.source, []
        broken = False
        met: Counter[tuple[IRModule, Pass]] = Counter()
        for item in self.items:
            if broken or not item.enabled:
                out.append(Segment(mod, mod, ran=False))
                continue
            met[mod, item.made] += 1
            if (mod, item.made, met[mod, item.made]) not in self._cache:
                self.doing(f"{item.name}, pass {len(out) + 1} of {len(self.items)}")
            segment = self._segment(mod, item.made, met[mod, item.made])
            broken = segment.error is not None
            out.append(segment)
            mod = segment.after
        return out

    def _segment(self, mod: IRModule, made: Pass, nth: int) -> Segment:
        """What a pass does to a program; the `nth` equal item on it has a run and a time of its own."""
        known = self._cache.get((mod, made, nth))
        if known is None:
            history = run_pipeline(mod, [made], PassContext(opt_level=self.opt_level))
            known = Segment(mod, history.mod, list(history), history.error)
            if self.verify and known.changed and known.error is None:
                _check(known, made.info.name)
            self._cache[mod, made, nth] = known
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

    def begin_with(self, source: IRModule) -> None:
        """Have the passes run over another program; an edit like the others."""
        self._edit(list(self.items))
        self.source = source

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Take back the edits that were made in the block if it is interrupted; passes that ended are known."""
        before = self.source, self.items, self._segments, [*self._past], [*self._future]
        try:
            yield
        except KeyboardInterrupt:
            self.source, self.items, self._segments, self._past, self._future = before
            raise

    def undo(self) -> None:
        """Take back the last edit."""
        self._swap(self._past, self._future, "undo")

    def redo(self) -> None:
        """Do again what was taken back last."""
        self._swap(self._future, self._past, "redo")

    def _swap(
        self, stack: list[tuple[IRModule, tuple[Item, ...]]], other: list[tuple[IRModule, tuple[Item, ...]]], what: str
    ) -> None:
        if not stack:
            raise RelayValueError(f"there is no edit to {what}", code=f"study.no-{what}")
        other.append((self.source, tuple(self.items)))
        self.source, items = stack.pop()
        self.items, self._segments = list(items), None

    def item(self, index: int) -> Item:
        """The item at an index."""
        if not 0 <= index < len(self.items):
            raise RelayValueError(
                f"the pipeline has {len(self.items)} passes, not one at {index}", code="study.no-item"
            )
        return self.items[index]

    def _put(self, index: int, item: Item) -> None:
        self._edit([*self.items[:index], item, *self.items[index + 1 :]])

    def _edit(self, items: list[Item]) -> None:
        self._past.append((self.source, tuple(self.items)))
        self._future.clear()
        self.items, self._segments = items, None

    # -- as text -------------------------------------------------------------------------------------

    def python(self) -> str:
        """The pipeline as Python that makes it, with the code of passes that were written in a cell."""
        made = [definition_of(item.made) for item in self.items if item.enabled]
        body = "".join(f"    {d.text},\n" for d in made)
        head = f"from relaylab import relay\n{preamble(made)}\nseq = relay.transform.Sequential([\n{body}])\n"
        return f"{head}with relay.transform.PassContext(opt_level={self.opt_level}):\n    mod = seq(mod)\n"

    def command(self, program: str) -> str:
        """The pipeline as a command; a comment names the passes that only the Python of the session has."""
        passes = [item for item in self.items if item.enabled]
        names = ",".join(item.text.removesuffix("()") for item in passes)
        own = [item.name for item in passes if not definition_of(item.made).is_ours]
        unknown = ", ".join(shell_words(name) for name in dict.fromkeys(own))
        note = f"  {python_comment(f'the command does not know {unknown}: copy as Python')}" if own else ""
        return f"{shell_words('relaylab', 'passes', program, '-O', str(self.opt_level), '-p', names)}{note}"


def _check(done: Segment, name: str) -> None:
    """Give the program that a pass of that name left the types that it lacks, which also checks it."""
    if all(f.inferred is not None for f in done.after.functions.values()):
        return
    typing = run_pipeline(done.after, [InferType()])
    if typing.error is None:
        done.after, done.typed = typing.mod, len(typing.stages)
        done.stages += typing.stages
        return
    done.error = error = typing.error
    if isinstance(error, RelayError):
        words = f"{name} left a broken program: {error.message}"
        done.error = RelayError(words, code=error.code, place=error.place, help=error.help)


def item_of(what: Pass | str) -> Item:
    """A pass, or the text of one, as an item."""
    return Item(pass_of(what) if isinstance(what, str) else what)


@checked
def split(text: str) -> list[str]:
    """`A,B(x=[1, "a,b"]),C` at its outer commas."""
    parts, depth, start = [], 0, 0
    for found in _PUNCTUATION.finditer(text):
        depth += (found[0] in "([{") - (found[0] in ")]}")
        if found[0] == "," and depth == 0:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    parts.append(text[start:].strip())
    return [p for p in parts if p]


def passes_of(what: str | Iterable[Pass | str] | None, opt_level: int) -> list[Pass | str]:
    """The passes of a pipeline: a list, a text `A,B(x=1)`, or None for the default ones. Among others `default` is all
    of those, `default-A-B` those without some.
    """
    if what is None or isinstance(what, str):
        given: list[Pass | str] = [*split(what or DEFAULT)]
    else:
        given = list(what) if hasattr(what, "__iter__") else [cast(Pass, what)]
    wrong = next((p for p in given if not isinstance(p, str | Pass)), None)
    if wrong is not None:
        raise RelayTypeError(
            f"a pipeline is made of passes and their names, not of {kind_of(wrong)}",
            code="study.not-a-pass",
            help='write "FuseOps", relay.transform.FuseOps(2), or a list of them',
        )
    found: list[Pass | str] = []
    for p in given:
        found += _default_without(p.split("-")[1:], opt_level) if isinstance(p, str) and is_default(p) else [p]
    return found


def is_default(part: str) -> bool:
    """Whether a part of a pipeline's text stands for the default passes: `default`, `default-FuseOps`."""
    return part.split("-")[0] == DEFAULT


def _default_without(without: Sequence[str], opt_level: int) -> list[Pass]:
    usual = default_passes(opt_level)
    names = [p.info.name for p in usual]
    for name in without:
        if name not in names:
            help = did_you_mean(name, names) or f"it has {', '.join(names)}"
            raise RelayValueError(f"the default pipeline has no pass `{name}`", code="compare.no-pass", help=help)
    return [p for p in usual if p.info.name not in without]


def text_of(made: Pass) -> str:
    """How a pass is written: its record, or the name of a pass that has none."""
    return made.record.text if made.record is not None else made.info.name


@dataclass(frozen=True)
class Chosen:
    """An option of a pass as it is written: its value, its default (empty if it must be given), its type."""

    name: str
    value: str
    default: str
    type: str
    doc: str = ""


def options_of(made: Pass) -> list[Chosen]:
    """All options that a pass could be given, with what this one was given."""
    record = made.record
    if record is None:
        return []
    return [
        Chosen(o.name, literal(record.values[o.name]), o.default_text, o.type, o.doc)
        for o in record.options
        if o.name in record.values
    ]
