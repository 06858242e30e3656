"""Questions about machine code: the kernel of a node at each level, what LLVM would do to it, the memory plan."""

from __future__ import annotations

from typing import TypedDict

from relaylab.explorer.question import HELD, Failure, Frame, question
from relaylab.explorer.session import Session
from relaylab.ir import Function
from relaylab.loop.schedule import PRIMITIVES
from relaylab.study.flow import control_flow
from relaylab.study.kernels import Lines
from relaylab.study.running import llvm_steps
from relaylab.study.stage_text import TextRow, plain_rows, unified_rows
from relaylab.viz.figures.memory import timeline
from relaylab.viz.write.html import SceneData, scene_data

MOST_LOOPS = 1000
"""Lines around what a schedule changed that are shown."""


class KernelLevels(TypedDict):
    """A kernel at each level. `parts`: title and id of nodes that lines belong to; a line is text and part or -1."""

    name: str
    relay: str
    loops: str
    parts: list[tuple[str, str]]
    llvm: Lines
    asm: Lines
    coverage: str
    why: str


@question(saved=HELD)
def kernel(session: Session, frame: Frame, name: str) -> KernelLevels | Failure:
    """The kernel that a node became part of: Relay, loops, LLVM IR and assembly with linked lines."""
    function = session.story.fused(frame, name)
    listing = session.kernels.listing(function) if function is not None else None
    if listing is None:
        return {"error": _without_code(session, function)}
    ids = session.frames.ids[-1]
    return {
        "name": listing.name,
        "relay": listing.relay,
        "loops": listing.loops,
        "parts": [(title, ids.get(expr, "") if expr is not None else "") for title, expr in listing.parts],
        "llvm": listing.llvm,
        "asm": listing.asm,
        "coverage": listing.coverage,
        "why": listing.why,
    }


def _without_code(session: Session, function: Function | None) -> str:
    if function is not None and session.kernels.executable is not None:
        return (
            "the virtual machine has no kernel of these operators alone: a form for all sizes fuses otherwise, or they "
            "are evaluated; exe.summary() of relay.vm.compile lists its kernels"
        )
    return "no machine code was made for this node: it is in no fused kernel of the last frame"


class LoopsTried(TypedDict):
    """What steps make of the loops of a kernel, line by line; the largest difference of the program's results relative
    to the largest; microseconds with the picked loops and with these, and for which sizes if some are open; the steps
    that there are, and what each does.
    """

    rows: list[TextRow]
    error_size: float
    times: tuple[float, float]
    sizes: str
    known: list[tuple[str, str]]


@question()
def loops(session: Session, frame: Frame, name: str, steps: str) -> LoopsTried | Failure:
    """The loops of the kernel of a node under a schedule, a step a line: what changes, the numbers, the time."""
    function = session.story.fused(frame, name)
    if function not in session.kernels.names:
        return {"error": "no machine code was made for this node"}
    tried = session.kernels.trial(function, steps)
    return {
        "rows": plain_rows(tried.before, tried.loops, MOST_LOOPS),
        "error_size": tried.error,
        "times": tried.microseconds,
        "sizes": session.kernels.sizes,
        "known": [(p.usage, p.says) for p in PRIMITIVES.values()],
    }


class LLVMSteps(TypedDict):
    """Passes as name, milliseconds, whether they changed the kernel, words, and the difference of the text."""

    steps: list[tuple[str, float, bool, str, list[TextRow]]]


@question()
def llvm(session: Session, frame: Frame, name: str) -> LLVMSteps:
    """What LLVM's own passes would do to the kernel of a node, pass by pass: name, ms, words, difference."""
    function = session.story.fused(frame, name)
    found = llvm_steps(session.kernels.compiled, session.kernels.names[function]) if function is not None else []
    return {"steps": [(s.name, s.ms, s.changed, str(s).split(" ms  ")[-1], unified_rows(s.diff())) for s in found]}


class FlowPicture(TypedDict):
    """The control flow of a kernel."""

    scene: SceneData


@question()
def flow(session: Session, frame: Frame, name: str) -> FlowPicture | Failure:
    """The blocks and loops of the kernel of a node, with their instructions."""
    function = session.story.fused(frame, name)
    if function not in session.kernels.names:
        return {"error": "no machine code was made for this node"}
    return {"scene": scene_data(control_flow(session.kernels.compiled, session.kernels.names[function]).scene)}


class MemoryPicture(TypedDict):
    """The timeline of the arena: steps to the right, bytes upward; its bars say who fills them."""

    scene: SceneData


@question()
def memory(session: Session) -> MemoryPicture:
    """The memory plan of the compiled program."""
    scene = scene_data(timeline(session.kernels.plan, view=session.frames.views[-1]))
    scene["figures"][0]["kind"] = "heading"  # the axes stand behind the bars
    return {"scene": scene}
