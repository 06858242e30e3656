"""The visible words of the explorer, read from its scripts and from the Python that feeds it.

A text has `{}` where the program puts something. What is no word for people (names of classes, styles, keys) is left
out by where it stands; a single word counts where something visible is made of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2] / "relaylab"
SCRIPTS = ROOT / "lab" / "static"
SPEAKING = (
    "explorer",
    "lab/saved_page.py",
    "viz/diffs/roles.py",
    "viz/graph/figure.py",
    "viz/graph/annotate.py",
    "study/why.py",
    "transform/pattern/told.py",
    "transform/pattern/match.py",
    "transform/rewriting/explain.py",
    "study/compare.py",
    "support/formats.py",
)
"""Where texts of Python are made that the explorer shows."""
SILENT = ("explorer/question.py", "explorer/heat.py", "explorer/wording.py")
"""Python of these folders that says nothing but errors of callers."""
MUTE = re.compile(
    r"""(className|querySelector(All)?|closest|matches|classList\.\w+|\bclass|name|toggle|from|import|setProperty|split
    |join|startsWith|endsWith|includes|replaceAll|width|height|left|bottom|viewBox|transform|"d"|error\.code)
    \(?[:=]?\s*\(?$""",
    re.VERBOSE,
)
VISIBLE = re.compile(
    r"(textContent|title|placeholder|ariaLabel|\"aria-label\"|words|hint)\s*[:=]\s*([^;{}]*\?\s*|[^;{}]*:\s*)?$"
    r"|\b(button|link|dim|heading|subheading|section|say|choice|select|summary|column|named|nameField)\([^;{}()]*$"
)
TAGS = ("span", "div", "tbody", "thead", "pre", "code")
KEYS = ("ArrowLeft", "Enter", "Escape", "Tab", "Esc", "True", "False", "Home", "End")
WORDS = re.compile(r"[A-Za-z]{2,}")
PLACE = re.compile(r"\{[^{}]*\}")


class Said(NamedTuple):
    """A text, and where it is: a file and a line. One that must be in the table is `shown`."""

    text: str
    place: str
    shown: bool


def plain(key: str) -> str:
    """A text without the names of its places."""
    return PLACE.sub("{}", key)


def all_said() -> list[Said]:
    """All texts of scripts and Python."""
    scripts = [s for path in sorted(SCRIPTS.rglob("*.js")) for s in of_script(path)]
    python = [
        p for name in SPEAKING for p in ([ROOT / name] if name.endswith(".py") else sorted((ROOT / name).rglob("*.py")))
    ]
    return scripts + [s for path in python if path.relative_to(ROOT).as_posix() not in SILENT for s in of_python(path)]


# -- scripts ----------------------------------------------------------------------------------------


class Literal(NamedTuple):
    """A text of a script: its value with `{}` for what is put in, where it begins and ends."""

    text: str
    start: int
    end: int


REGEX_MAY_FOLLOW = re.compile(r"(^|[=(,:\[!&|?{};+*>]|return|=>)\s*$")


def literals(code: str, start: int = 0, until: str = "") -> tuple[list[Literal], int]:
    """The strings and templates of a script from a place on, to the brace that closes it."""
    found: list[Literal] = []
    at, depth = start, 0
    while at < len(code):
        char = code[at]
        if until and char == "}" and depth == 0:
            return found, at
        depth += (char == "{") - (char == "}")
        if code.startswith("//", at):
            at = code.find("\n", at) if "\n" in code[at:] else len(code)
        elif code.startswith("/*", at):
            at = code.index("*/", at) + 2
        elif char in "\"'":
            match = re.compile(r'"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^'\\])*'").match(code, at)
            assert match, code[at : at + 40]
            found.append(Literal(_unescaped(match.group()[1:-1]), at, match.end()))
            at = match.end()
        elif char == "`":
            inner, at = _template(code, at)
            found += inner
        elif char == "/" and REGEX_MAY_FOLLOW.search(code[max(0, at - 20) : at]):
            match = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n])+/\w*").match(code, at)
            at = match.end() if match else at + 1
        else:
            at += 1
    return found, at


def _template(code: str, start: int) -> tuple[list[Literal], int]:
    """A template with the texts inside it."""
    at, text, inner = start + 1, "", []
    while code[at] != "`":
        if code.startswith("${", at):
            more, at = literals(code, at + 2, "}")
            inner += more
            text += "{}"
            at += 1
        elif code[at] == "\\":
            text += _unescaped(code[at : at + 2])
            at += 2
        else:
            text += code[at]
            at += 1
    return [*inner, Literal(text, start, at + 1)], at + 1


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\`", "`").replace('\\"', '"').replace("\\\\", "\\")


def of_script(path: Path) -> Iterator[Said]:
    """The texts of a script."""
    code = path.read_text(encoding="utf-8")
    for literal in literals(code)[0]:
        before = code[max(0, literal.start - 200) : literal.start]
        place = f"{path.relative_to(ROOT.parent)}:{code.count(chr(10), 0, literal.start) + 1}"
        counted = re.search(r"\bcount\([^()]*(\([^()]*\))?[^()]*$", before)
        if counted and WORDS.search(literal.text):
            noun = literal.text
            yield Said(f"1 {noun}", place, True)
            yield Said(f"{{}} {noun}{'es' if noun.endswith('s') else 's'}", place, True)
        else:
            yield Said(literal.text, place, _shown(literal.text, before))


def _shown(text: str, before: str) -> bool:
    line = before.rsplit("\n", 1)[-1]
    words = WORDS.findall(PLACE.sub("", text))
    if not words or MUTE.search(line) or line.lstrip().startswith(("import", "export *")) or text in TAGS:
        return False
    if re.search(r"(^|[\s.])rl-|\w-\{|\[data|;(?! )|[=#<>]\S|\w\(|://", text.replace("e.g. ", "")):
        return False
    several = " " in text.strip() and (len(words) > 1 or "{}" in text)
    return several or bool(re.fullmatch("[A-Z][a-z]+", text) and text not in KEYS) or bool(VISIBLE.search(before))


# -- Python -----------------------------------------------------------------------------------------


def of_python(path: Path) -> Iterator[Said]:
    """The texts of a module: those of several words are shown, but errors only in the explorer's own room."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = ROOT / "explorer" in path.parents
    names = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg in ("code", "prefix")}
    docs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    skipped = {id(m) for n in ast.walk(tree) if _mute(n, own) for m in ast.walk(n)}
    inside = {id(v) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for v in n.values}
    for node in ast.walk(tree):
        if id(node) in names | docs | inside:
            continue
        text = _text(node)
        if text is not None and WORDS.search(PLACE.sub("", text)):
            shown = id(node) not in skipped and len(WORDS.findall(PLACE.sub("", text))) > 0 and " " in text.strip()
            yield Said(text, f"{path.relative_to(ROOT.parent)}:{node.lineno}", shown)


def _mute(node: ast.AST, own: bool) -> bool:
    """Types are no texts; neither are the errors of other rooms."""
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        return name == "TypedDict" or (not own and name.endswith("Error"))
    return isinstance(node, ast.AnnAssign) and node.value is None


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else "{}" for v in node.values)
    return None
