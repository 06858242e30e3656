"""Programs as the bytes that `VMExecutable.save` gives: text, and under what options it is compiled again.

What it was made from comes along in the library, so that nothing is compiled where that fits.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import json
from typing import Any

from relaylab.codegen.llvm.cache import Entries
from relaylab.codegen.operations.records import RECORDS
from relaylab.codegen.operations.schedules import SCHEDULES
from relaylab.ir.module import IRModule
from relaylab.support.checked import fitting
from relaylab.support.errors import RelayValueError
from relaylab.transform import PassContext

_HEADS = {True: "// open program, compiled with ", False: "// program after the passes, compiled with "}


@fitting
class ProgramContext(PassContext):
    """What a program is compiled in, now and later: options, and the entries of the cache that it takes or makes."""

    def __init__(self, options: PassContext, objects: Entries):
        super().__init__(options.opt_level, options.required_pass, options.disabled_pass, None, options.config)
        self.objects = objects

    def __enter__(self) -> ProgramContext:
        super().__enter__()
        self.objects.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.objects.__exit__()
        super().__exit__(*exc)


def options_now() -> ProgramContext:
    """The options of the current context, to be entered again: without its instruments."""
    return ProgramContext(PassContext.current(), Entries.current())


def saved_text(mod: IRModule, context: PassContext, is_open: bool) -> str:
    """The text of a module before the passes (of an open program) or after them, under the options of a context.

    Schedules are written as text; where records lie is left out: it is a place on this machine.
    """
    plain = {k: v for k, v in context.config.items() if isinstance(v, (bool, int, float, str)) and k != RECORDS}
    given: dict[str, Any] = context.config.get(SCHEDULES, {})
    options = {
        "opt_level": context.opt_level,
        "required_pass": context.required_pass,
        "disabled_pass": context.disabled_pass,
        "config": {**plain, **({SCHEDULES: {k: str(v) for k, v in given.items()}} if given else {})},
    }
    return f"{_HEADS[is_open]}{json.dumps(options)}\n{mod.astext()}"


def saved_options(text: str) -> tuple[bool, PassContext] | None:
    """Whether a saved program is one before the passes, and its options; None if it says none (of an older release).

    Raises RelayValueError `vm.code` for damaged ones.
    """
    for is_open, head in _HEADS.items():
        if text.startswith(head):
            try:
                found = json.loads(text[len(head) : text.index("\n")])
                options = found["opt_level"], found["required_pass"], found["disabled_pass"], None, found["config"]
                return is_open, PassContext(*options)
            except (ValueError, KeyError, TypeError):
                raise RelayValueError("the bytes are no saved program", code="vm.code") from None
    return None
