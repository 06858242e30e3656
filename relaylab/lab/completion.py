"""Completion after the magics: modules of the notebook, networks, passes, operators."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from relaylab.ir import OPERATORS, Expr, IRModule
from relaylab.lab.options import actions
from relaylab.transform import PASSES, Pass, Rule
from relaylab.viz.selection.query import FIELDS
from relaylab.zoo.catalog import NETWORKS

_LINE = re.compile(r"^\s*%%?(relay\w*)\s+(.*)$")


def candidates(line: str, namespace: Mapping[str, object], magics: Mapping[str, object] | None = None) -> list[str]:
    """What may stand at the end of the line of a magic; empty if the line is none."""
    match = _LINE.match(line)
    if match is None:
        return []
    name, rest = match.groups()
    if re.search(r"(?:^|\s)-[\w-]*$", rest):
        return _options((magics or {}).get(name))
    if re.search(r"(?:^|\s)(?:-p|--passes)[ =]\S*$", rest):
        return sorted(PASSES)
    if re.search(r"(?:^|\s)(?:--select|--focus)[ =]\S*$", rest):
        return [*(f"{name}:" for name in FIELDS), *(f"op:{name}" for name in sorted(OPERATORS))]
    if re.search(r"(?:^|\s)(?:-o|--out)[ =]\S*$", rest):
        return []
    if name == "relay_why" and len(re.findall(r"\S+", rest)) + rest.endswith(" ") == 2:
        return [
            *(n for n, v in namespace.items() if isinstance(v, (Pass, Rule)) and not n.startswith("_")),
            *sorted(PASSES),
        ]
    programs = [
        name for name, value in namespace.items() if isinstance(value, (IRModule, Expr)) and not name.startswith("_")
    ]
    return [*programs, *NETWORKS]


def _options(magic: object) -> list[str]:
    """The long options of a magic."""
    parser = getattr(magic, "parser", None)
    known = actions(parser) if isinstance(parser, argparse.ArgumentParser) else ()
    return [o for action in known for o in action.option_strings if o.startswith("--")]


def add_completions(ip: InteractiveShell) -> None:
    """Let the completer of a shell know the magics' arguments."""
    completer = getattr(ip, "Completer", None)
    if completer is None or any(getattr(m, "relaylab", False) for m in completer.custom_matchers):
        return
    from IPython.core.completer import SimpleCompletion, context_matcher

    @context_matcher()
    def relay_matcher(context: Any) -> dict[str, Any]:
        words = candidates(
            context.line_with_cursor if hasattr(context, "line_with_cursor") else context.full_text,
            ip.user_ns,
            {**ip.magics_manager.magics["cell"], **ip.magics_manager.magics["line"]},
        )
        token = re.split(r"[\s,=]", context.text_until_cursor)[-1]
        found = [SimpleCompletion(text=w, type="relay") for w in words if w.startswith(token)]
        return {"completions": found, "matched_fragment": token, "suppress": bool(found)}

    relay_matcher.relaylab = True
    completer.custom_matchers.append(relay_matcher)


def remove_completions(ip: InteractiveShell) -> None:
    """Undo `add_completions`."""
    completer = getattr(ip, "Completer", None)
    if completer is not None:
        completer.custom_matchers[:] = [m for m in completer.custom_matchers if not getattr(m, "relaylab", False)]
