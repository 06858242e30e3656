"""What the code of an error means: every code is read from where it is raised, the frequent ones have a lesson."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import relaylab
from relaylab.study.lessons import LESSONS, Lesson
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean

HOME = Path(relaylab.__file__).parent
_CODE = re.compile(r"[a-z][a-z0-9]*(?:\.[a-z][a-z0-9-]*)+")
_NOTED = {"report": 3, "stop": 3, "_complain": 4, "complain": 4, "BadNumber": 2}
"""Functions that take a code, a message and more; where they take the help."""


@dataclass(frozen=True)
class Explanation:
    """A code with what its errors say, each with its help, and the lesson about it if there is one."""

    code: str
    says: tuple[tuple[str, str], ...]
    lesson: Lesson | None

    def __str__(self) -> str:
        lines = [self.code, ""]
        if self.lesson is not None:
            lines += [self.lesson.meaning, "", "For example:", "", *_indented(self.lesson.example), ""]
            lines += ["Mended:", "", *_indented(self.lesson.mended), ""]
        lines.append("What it says ({…} is known then):")
        for message, help in self.says:
            lines += [f"  {message}", *([f"    help: {help}"] if help not in ("", "…") else [])]
        return "\n".join(lines)


@checked
def explain(code: str) -> Explanation:
    """What an error code such as `parse.unexpected-token` means; RelayValueError for one that does not exist.

    The code may stand in the words of an error: `error[parse.unexpected-token]: …`.
    """
    found = re.search(r"error\[([^\]]+)\]", code)
    name = found[1] if found else code.strip()
    known = _said(path for path in _sources() if _may_say(path, name))
    if name not in known and name not in LESSONS:
        known = errors()
        near = did_you_mean(name, known) or f"codes begin with {', '.join(sorted({c.split('.')[0] for c in known}))}"
        raise RelayValueError(f"there is no error code `{name}`", code="study.unknown-code", help=near)
    return Explanation(name, tuple(known.get(name, {}).items()), LESSONS.get(name))


@cache
def errors() -> dict[str, dict[str, str]]:
    """Every code, with what its errors say and their help; braces stand for what is known when they are raised."""
    return _said(_sources())


def _sources() -> list[Path]:
    return sorted(HOME.rglob("*.py"))


def _may_say(path: Path, code: str) -> bool:
    """Whether a file may raise an error of this code: those that may are few, and reading all of them takes seconds."""
    text, last = path.read_text(encoding="utf-8"), code.rpartition(".")[2]
    tables = last in ("unknown", "duplicate") and "Table" in text
    return f'"{code}"' in text or tables or (code.startswith("type.") and f'"{last}"' in text)


def _said(paths: Iterable[Path]) -> dict[str, dict[str, str]]:
    known: dict[str, dict[str, str]] = defaultdict(dict)
    for path in paths:
        for call in (n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Call)):
            for code, message, help in _raised(call):
                known[code].setdefault(message, help)
    return dict(known)


def _raised(call: ast.Call) -> Iterator[tuple[str, str, str]]:
    """The code, message and help in a call that raises or notes an error."""
    words = {k.arg: k.value for k in call.keywords}
    code, name = words.get("code"), getattr(call.func, "attr", getattr(call.func, "id", ""))
    if isinstance(code, ast.Constant) and isinstance(code.value, str) and call.args:
        yield code.value, template(call.args[0]), template(words["help"]) if "help" in words else ""
        return
    first = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if not isinstance(first, str):
        return
    if name in _NOTED and len(call.args) > 1 and _CODE.fullmatch(first):
        at = _NOTED[name]
        help = words.get("help", call.args[at] if len(call.args) > at else None)
        yield first, template(call.args[1]), "" if help is None else template(help)
    elif name == "error" and len(call.args) > 1 and re.fullmatch(r"[a-z-]+", first):  # of type inference
        yield f"type.{first}", template(call.args[1]), template(words["help"]) if "help" in words else ""
    elif name == "Table":
        yield f"{first.replace(' ', '-')}.unknown", f"there is no {first} named `{{…}}`", "did you mean `{…}`?"
        yield f"{first.replace(' ', '-')}.duplicate", f"the {first} `{{…}}` exists already", ""


def template(node: ast.expr) -> str:
    """A message as far as it is written: values in it are braces, anything else is an ellipsis."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(p.value) if isinstance(p, ast.Constant) else "{…}" for p in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return template(left) + template(right)
        case _:
            return "…"


def _indented(code: str) -> list[str]:
    return [f"    {line}" for line in code.splitlines()]
