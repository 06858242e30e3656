"""What steps begin with: the loops as they are written down, or those that the compiler picked."""

from __future__ import annotations

from relaylab.loop.program import LoopProgram
from relaylab.loop.schedule.step import FROM, primitive
from relaylab.loop.schedule.tree import illegal

STARTS = ("plain", "picked")


@primitive(f"{FROM} LOOPS ...")
def start(program: LoopProgram, words: tuple[str, ...]) -> LoopProgram:
    """The loops that the other steps begin with: `plain` ones, or `picked` ones, which the compiler takes. Products and
    convolutions have numbers that may be chosen beside it: `from picked rows=6 vectors=2 unroll=4 tiles=8 panels=1
    outer=tiles prefetch=0`."""
    if words[0] not in STARTS:
        raise illegal(f"there are no `{words[0]}` loops", f"from {' | '.join(STARTS)}")
    if words[0] == "plain" and len(words) > 1:
        raise illegal(f"plain loops have no choice `{words[1]}`", "from picked")
    return program
