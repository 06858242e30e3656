"""Messages to the explorer, as a page might send them: each is answered, with plain data or an error in our words."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from fuzz.choices import Choices
from fuzz.families._mutations import ODD
from fuzz.search import Finding, family

from relaylab import relay, study
from relaylab.explorer.question import QUESTIONS
from relaylab.explorer.session import Session

SLOW = ("suggest", "bisect")
WORDS = (
    "", "current", "a", "part", "class", "FoldConstant", "FuseOps(fuse_opt_level=1)", "Fold", "op:nn.dense", "/(/",
    "main", "main/nn.dense", "main/tanh", "MACs", "bytes", "'; import os", "\0", "é" * 300, "(" * 500, "name:[", "1x",
)  # fmt: skip


@cache
def exploration() -> study.Exploration:
    x, w = relay.var("x", shape=(2, 6)), relay.var("w", shape=(4, 6))
    body = relay.tanh(relay.nn.dense(x, w, units=None) + relay.const(1.0) * relay.const(2.0))
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.Tuple([body, relay.exp(body)])))
    passes = [study.pass_of(p) for p in ("FoldConstant", "CanonicalizeOps", "FuseOps")]
    return study.explore(study.Program("net", mod), 3, passes)


def fitting(draw: Choices, kind: object) -> Any:
    """A value of a type, as JSON brings it, most of the time one that means something."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return draw.choice((0, 1, 2, 3, 0, 1, 2, 2, -1, 99))
    if origin is Literal:
        return draw.choice(inner)
    if origin is list:
        return [fitting(draw, inner[0]) for _ in range(draw.randrange(4))]
    if origin is not None and (origin is Union or type(None) in inner or inner):
        return fitting(draw, draw.choice(inner)) if origin is not dict else {}
    if kind is bool:
        return draw.chance(0.5)
    if kind is int:
        return draw.choice((0, 1, 2, 5, -1, 10**6))
    if kind is float:
        return draw.choice((0.0, 1.5, -1.0))
    return draw.choice(ids() if draw.chance(0.5) else WORDS) if kind is str else None


@cache
def ids() -> tuple[str, ...]:
    """The ids of nodes and groups of all frames."""
    session = Session(exploration(), None)
    return tuple(sorted({p.id for view in session.frames.views for p in (*view.nodes, *view.groups)}))


def message(draw: Choices) -> Any:
    if draw.chance(0.1):
        return draw.choice(ODD)
    names = sorted(n for n in QUESTIONS if n not in SLOW)
    name = draw.choice(names)
    args: Any = []
    for parameter in QUESTIONS[name].parameters:
        if parameter.default is not parameter.empty and draw.chance(0.4):
            break
        hint = QUESTIONS[name].hints[parameter.name]
        of_branch = name in ("compare", "versus") and hint is str
        args.append(draw.choice(("current", "current", "a")) if of_branch else fitting(draw, hint))
        if draw.chance(0.08):
            args[-1] = draw.choice(ODD)
    if name == "compare":
        args = args[:2]  # without measuring
    if draw.chance(0.05):
        args.append(draw.choice(ODD))
    if draw.chance(0.05):
        args = draw.choice(ODD)
    made = {"id": draw.choice(("1", 7, None)), "what": name, "args": args}
    if draw.chance(0.05):
        made[draw.choice(("what", "args", "id"))] = draw.choice(ODD)
    if draw.chance(0.03):
        del made[draw.choice(("what", "args", "id"))]
    return made


@family("messages", "messages of all sorts to the explorer: answered with plain data, or an error in our words")
class Messages:
    def case(self, draw: Choices) -> list[Any]:
        return [message(draw) for _ in range(draw.randint(1, 6))]

    def run(self, messages: list[Any]) -> str:
        session, errors = Session(exploration(), None), 0
        for content in messages:
            reply = session.reply(content)
            error = reply["answer"].get("error")
            if error is not None and re.match(r"[A-Z]\w*: ", str(error)):
                raise Finding(f"an error in other words: {str(error)[:40]}", f"{content!r}: {error}")
            errors += error is not None
            try:
                json.dumps(reply, ensure_ascii=False, allow_nan=False).encode()  # as kernels send it
            except (TypeError, ValueError) as wrong:
                raise Finding("an answer that is no plain data", f"{content!r}: {wrong}") from None
        return f"{errors} of {len(messages)} refused"
