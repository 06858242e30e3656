"""Programs that were built in Python have no types yet: they are drawn with those that inference finds."""

from __future__ import annotations

from typing import TypeVar, cast

from relaylab.ir import Expr, Function, IRModule
from relaylab.support.errors import RelayError
from relaylab.transform.engine.infer_type import InferType, typed

P = TypeVar("P", bound=IRModule | Expr)

UNTYPED = "types are not known: InferType says why"
"""What is written beside a program whose types cannot be inferred."""


def with_types(program: P) -> tuple[P, bool]:
    """The program with types, and whether it has them: as it was, where it has them already or they cannot be found."""
    if _known(program):
        return program, True
    try:
        found = InferType()(program) if isinstance(program, IRModule) else typed(cast(Expr, program))
        return cast(P, found), True
    except RelayError:  # a picture of a wrong program helps to mend it
        return program, False


def _known(program: IRModule | Expr) -> bool:
    if isinstance(program, IRModule):
        return all(f.body.inferred is not None for f in program.functions.values() if isinstance(f, Function))
    body = program.body if isinstance(program, Function) else program
    return body.inferred is not None
