"""A pass that stops a pipeline: what it raised and where, and a program that shows it."""

from __future__ import annotations

import json
import traceback
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import relaylab
from relaylab.study.definition import PassDefinition, definition_of, preamble
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError
from relaylab.support.quoting import python_comment, python_text
from relaylab.support.source import python_place
from relaylab.transform import History, Stage
from relaylab.viz.write import files

HOME = f"{Path(relaylab.__file__).parent}/"


@dataclass(frozen=True)
class TraceLine:
    """One call of a traceback: its place in short, the function, the line of code, whether the code is relaylab's."""

    place: str
    function: str
    code: str
    ours: bool

    def __str__(self) -> str:
        return f"{self.place} in {self.function}" + (f"\n    {self.code}" if self.code else "")


@dataclass(frozen=True, eq=False)
class Crash:
    """The pass that stopped a pipeline: it raised an error, or it left a program that breaks a rule of the language."""

    stage: Stage
    index: int
    error: BaseException

    @property
    def raised(self) -> bool:
        """Whether the pass raised; else it left a broken program."""
        return self.stage.error is not None

    @property
    def kind(self) -> str:
        """The class of the error."""
        return type(self.error).__name__

    @property
    def message(self) -> str:
        """What the error says, with its class where it does not say a code."""
        return message_of(self.error)

    @cached_property
    def trace(self) -> list[TraceLine]:
        """The calls that led to the error, the outermost first; none for a program that was found to be broken."""
        if not self.raised:
            return []
        return [
            TraceLine(python_place(f.filename, f.lineno or 0), f.name, f.line or "", f.filename.startswith(HOME))
            for f in traceback.extract_tb(self.error.__traceback__)
        ]

    @property
    def site(self) -> TraceLine | None:
        """The innermost call of code that is not relaylab's, or else of any."""
        return next((t for t in reversed(self.trace) if not t.ours), self.trace[-1] if self.trace else None)

    def __repr__(self) -> str:
        return f"<{self.kind} in the pass {self.stage.name}>"

    def __str__(self) -> str:
        did = "raised" if self.raised else "left a broken program:"
        lines = [f"the pass {self.stage.name} {did} {self.message}"]
        if self.site is not None:
            lines += [f"  at {self.site}"]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """As plain data, for `--json`."""
        site = self.site.place if self.site else None
        return {"pass": self.stage.name, "raised": self.kind, "message": self.message, "at": site}

    def reproducer(self) -> str:
        """A Python program that runs the pass on the program that it cannot take."""
        made = definition_of(self.stage.made)
        about = (
            f"{self.stage.name} {'raises' if self.raised else 'breaks a rule of the language:'} {self.kind}. Run me."
        )
        return REPRODUCER.format(
            about=python_comment(about),
            above=preamble([made]),
            before=python_text(self.stage.before.astext()),
            run=_run(made),
            then="" if self.raised else "after = relay.transform.InferType()(after)\n",
        )

    def save(self, path: str | Path) -> Path:
        """Write the reproducer (.py), or what is known as text (.txt) or data (.json)."""
        written = {
            ".py": self.reproducer,
            ".txt": lambda: "\n".join([*map(str, self.trace), str(self), ""]),
            ".json": lambda: json.dumps(self.to_dict(), indent=1),
        }
        return files.write(path, written.get(Path(path).suffix.lower(), self.reproducer)())


def _run(made: PassDefinition) -> str:
    unknown = "" if made.is_whole else f"  {python_comment(f'no text makes the pass {made.text}')}"
    return f"{made.text}(before){unknown}"


REPRODUCER = """{about}
from relaylab import relay
{above}
BEFORE = {before}

before = relay.parse(BEFORE)
after = {run}
{then}print(after)
"""


def message_of(error: BaseException) -> str:
    """What an error says, with its class where it does not say a code."""
    text, kind = str(error).strip(), type(error).__name__
    return text if isinstance(error, RelayError) else f"{kind}: {text}" if text else kind


@checked
def crash_of(history: History) -> Crash | None:
    """The pass that stopped a pipeline that has been run; None if every pass came to its end."""
    if history.error is None or not history.stages:
        return None
    at = next((k for k, s in enumerate(history) if s.error is history.error), len(history.stages) - 1)
    return Crash(history[at], at, history.error)
