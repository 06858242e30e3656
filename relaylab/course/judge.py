"""The judge of exercises: runs what an exercise says about an answer, and tells the learner in words.

The Python of a `check` sees `answer`, the names of the learner's notebook below its own, and:
`expect(condition, words)`, `same(a, b)` (the interpreter runs both programs on the same seeded inputs),
`operators(mod)` (a count by name), `kernels(mod)` (how many), `relay`, `transform`, `np`, and the programs
`block`, `attention`, `classifier`, `shipped`, `two_convolutions` with their `weights`.
Of a question about a picture `answer` is a set of names, `asked` the question, `together(asked, passes)` what is fused.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from traceback import extract_tb
from types import EllipsisType
from typing import Any

import numpy as np

from relaylab import relay
from relaylab.course.lesson import Exercise, exercise
from relaylab.course.predicting import question, together
from relaylab.course.programs import attention, block, classifier, shipped, two_convolutions, weights
from relaylab.course.progress import progress
from relaylab.course.translation import HERE, told
from relaylab.ir import Expr, Function, IRModule, op_name, post_order
from relaylab.study import difference, operators
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError, RelayTypeError

CLICK = "still open: choose operators by clicking, or name them"
OPEN = "still open: put your answer in the place of `...`"
JUDGE = "<judge>"
"""What stands for a file where a judge's Python is named."""
MISFITS = (TypeError, AttributeError, ValueError, LookupError)
"""What a judge raises who takes an answer apart that has another form."""
PACKAGES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
MOST = 2000
"""Characters of what is said of an answer, which may be of any length itself."""


class NotYet(Exception):
    """What an answer lacks, in words for the learner."""


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is right, and what to look at if it is not."""

    exercise: Exercise
    right: bool
    words: str

    def __bool__(self) -> bool:
        return self.right

    def __str__(self) -> str:
        if self.right:
            return f"✓ {self.exercise.name}: {self.words}"
        return f"✗ {self.exercise.name}: {self.words}\n  {told('a hint')}: %relay_lesson --hint {self.exercise.name}"

    __repr__ = __str__


def check(name: str, answer: object = ...) -> Verdict:
    """Judge an answer to an exercise, and remember if it was right; without one, say that it is open.

    A widget of the explorer stands for the operator of the node that is selected in it, the picture of a question for
    the names that are chosen in it.
    """
    asked = exercise(name)
    if asked.program:
        return _chosen(asked, getattr(answer, "chosen", answer))
    if hasattr(answer, "selected_node"):
        selected = getattr(answer, "selected_node")  # noqa: B009  (of a widget, which lives in a room above)
        answer = op_name(selected) if isinstance(selected, Expr) else ...
    if answer is ... or isinstance(answer, (tuple, list)) and any(part is ... for part in answer):
        return Verdict(asked, False, told(OPEN))
    return _judged(asked, {**_names(answer), **TOOLS, "answer": answer})


def _chosen(asked: Exercise, names: object) -> Verdict:
    """Judge names of operators, clicked or written."""
    names = names.replace(",", " ").split() if isinstance(names, str) else names
    written = list(names) if isinstance(names, Iterable) else []
    if not written or not all(isinstance(name, str) for name in written):
        return Verdict(asked, False, told(CLICK))
    shown = question(asked.name)
    try:
        answer = shown.chosen(written)
    except RelayError as error:
        return Verdict(asked, False, f"{error.message}; {error.help}")
    return _judged(asked, {**TOOLS, "answer": answer, "asked": shown})


def _judged(asked: Exercise, names: dict[str, object]) -> Verdict:
    try:
        exec(compile(asked.judge, JUDGE, "exec"), names)  # noqa: S102
    except NotYet as lacks:
        return Verdict(asked, False, str(lacks)[:MOST])
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  (of the answer, which may be a function)
        return Verdict(asked, False, _raised(error)[:MOST])
    progress().solve(asked.name)
    return Verdict(asked, True, told("right"))


def _raised(error: BaseException) -> str:
    """What an answer raised and in which of its lines; without one the judge met another form than it asked for."""
    said = "; ".join(filter(None, (error.message, error.help))) if isinstance(error, RelayError) else str(error)
    if "ellipsis" in said:
        return told(OPEN)  # a function or a rule that still gives `...`
    own = [frame for frame in extract_tb(error.__traceback__) if _learners(frame.filename)]
    at = told(" in line {line}, `{text}`", line=own[-1].lineno, text=own[-1].line or "…") if own else ""
    if isinstance(error, KeyboardInterrupt):
        return told("your answer had not come to an end when it was interrupted{at}", at=at)
    if not own and isinstance(error, MISFITS) and (not isinstance(error, RelayError) or type(error) is RelayTypeError):
        return told("this is not of the form that was asked for: {said}", said=said)
    return told("your answer raised {error}{at}: {said}", error=type(error).__name__, at=at, said=said)


def _learners(file: str) -> bool:
    """Whether a file, or a cell, is neither the judge's nor a package's."""
    return file != JUDGE and not file.startswith((str(HERE.parent), *PACKAGES))


def _names(answer: object) -> Mapping[str, Any]:
    """The notebook that a function was written in."""
    return getattr(answer, "__globals__", {})


@checked
def hint(name: str) -> str:
    """The next hint of an exercise; after the last one, the first again."""
    asked = exercise(name)
    if not asked.hints:
        return told("this one has no hint; `%relay_lesson --solution` shows an answer")
    shown = progress().hinted(name)
    at = shown % len(asked.hints)
    return told("hint {at} of {all}: {hint}", at=at + 1, all=len(asked.hints), hint=asked.hints[at])


def solution(name: str) -> str:
    """An answer to an exercise, as code."""
    return exercise(name).code


def expect(condition: object, words: str | EllipsisType) -> None:
    """What an answer has to fulfil, and what the learner reads if it does not; `...` says that it is open."""
    if condition is ... or not condition and words is ...:
        raise NotYet(told(OPEN))
    if not condition:
        raise NotYet(words)


def same(a: IRModule | Expr, b: IRModule | Expr, tolerance: float = 1e-4) -> bool:
    """Whether the interpreter gets the same numbers from both programs."""
    return difference(_module(a), _module(b)) <= tolerance


def _module(program: IRModule | Expr) -> IRModule:
    if not isinstance(program, (IRModule, Expr)):
        words = "a program was asked for (a module or an expression), this is a {type}"
        raise NotYet(told(words, type=type(program).__name__))
    return program if isinstance(program, IRModule) else IRModule.from_expr(program)


def kernels(mod: IRModule) -> int:
    """How many primitive functions a fused program has."""
    functions = (n for f in mod.functions.values() for n in post_order(f) if isinstance(n, Function))
    return sum(bool(f.attrs and f.attrs.get("Primitive")) for f in functions)


TOOLS: dict[str, object] = {
    "expect": expect, "same": same, "operators": operators, "kernels": kernels, "relay": relay,
    "transform": relay.transform, "np": np, "block": block, "attention": attention, "classifier": classifier,
    "shipped": shipped, "two_convolutions": two_convolutions, "weights": weights, "together": together,
}  # fmt: skip
