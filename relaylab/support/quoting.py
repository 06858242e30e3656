"""Strings of a program inside code, comments and commands that people copy: quoted here, and nowhere else."""

from __future__ import annotations

import keyword
import shlex


def python_text(text: str) -> str:
    """`text` as a Python literal: its lines as they are between triple quotes where that means the same, else escaped.

    Characters that no editor shows are always escaped, so that what is read is what runs.
    """
    lines = text.split("\n")
    readable = "'''" not in text and not text.endswith(("'", "\\")) and all(map(str.isprintable, lines))
    if readable and len(lines) > 1:
        return f"r'''{text}'''"
    if len(lines) == 1 or len(text) == 1:
        return repr(text)
    written = (repr(line) for line in text.splitlines(keepends=True))
    return "(\n" + "".join(f"    {line}\n" for line in written) + ")"


def python_comment(text: str) -> str:
    """`text` as a comment of Python: one line, whatever it holds."""
    return f"# {text if text.isprintable() else repr(text)[1:-1]}"


def python_name(text: str, otherwise: str = "value") -> str:
    """`text` if Python takes it for a name, else another name."""
    return text if is_name(text) else otherwise


def is_name(text: str) -> bool:
    """Whether Python takes a text for a name; keywords are none."""
    return text.isidentifier() and not keyword.iskeyword(text)


def shell_words(*words: str) -> str:
    """Words of a command as a shell reads them back, whatever they hold."""
    return shlex.join(words)
