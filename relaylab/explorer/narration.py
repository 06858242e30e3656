"""What a pass did, in sentences: from the trail and the roles of the diff, always the same for the same run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from relaylab.explorer.frames import Frames
from relaylab.explorer.story import became, makers
from relaylab.ir import Constant, Expr, IRModule, TupleGetItem
from relaylab.ir.op import op_name
from relaylab.study.exploration import Exploration
from relaylab.support.errors import RelayValueError
from relaylab.support.order import post_order
from relaylab.support.words import counted
from relaylab.viz.graph.view import Node

MOST = 5
"""Kinds of change of one sort that are told; the rest are counted."""


def in_words(exploration: Exploration, which: str | int) -> list[str]:
    """What a pass did: the one at an index, or the first of that name that changed something."""
    pipeline = exploration.pipeline
    if isinstance(which, str):
        which = pipeline.acting(which)
    if not 0 <= which < len(pipeline.items):
        raise RelayValueError(
            f"the pipeline has {len(pipeline.items)} passes, not one at {which}", code="study.no-item"
        )
    return sentences(Frames(pipeline, exploration.program.name, exploration.program.mod), which + 1)


def sentences(frames: Frames, frame: int) -> list[str]:
    """What the pass before a frame did."""
    segment, item = frames.pipeline.segments[frame - 1], frames.pipeline.items[frame - 1]
    if not segment.ran or segment.error is not None:
        said = str(segment.error) or type(segment.error).__name__
        return [
            f"{item.name} stopped: {said}".split("\n")[0] if segment.error is not None else f"{item.name} did not run."
        ]
    if segment.main is not None and segment.main.skipped:
        return [f"{item.name} was skipped: {segment.main.skipped}."]
    if not segment.changed:
        return [f"{item.name} changed nothing."]
    before, after = frames.roles(frame)
    told = [
        *_functions(segment.before, segment.after),
        *_gone(frames, frame, before.values()),
        *_came(frames, frame, after.values()),
        *_other(after.values()),
        *_fused(frames, frame),
    ]
    rules = Counter(step.rule for step in segment.main.steps) if segment.main else Counter()
    fired = [f"Rules that fired: {_listed(rules)}."] if rules else []
    return [*(told or [f"{item.name} changed no operator, only how the program is written down."]), *fired]


def _functions(before: IRModule, after: IRModule) -> Iterable[str]:
    """Functions that came or went."""
    old, new = ({gv.name_hint for gv in mod.functions} for mod in (before, after))
    for what, names in (("removed", sorted(old - new)), ("added", sorted(new - old))):
        if names:
            shown = ", ".join(f"@{n}" for n in names[:MOST])
            more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
            yield f"{'Function' if len(names) == 1 else 'Functions'} {what}: {shown}{more}."


def _gone(frames: Frames, frame: int, nodes: Iterable[Node]) -> Iterable[str]:
    """Operators that are no more: computed ahead of time, or without a successor."""
    gone = [n for n in nodes if n.role == "removed" and n.operator]
    fate = {n.id: became(frames.pipeline.segments[frame - 1], frames.nodes[frame - 1].get(n.id)) for n in gone}
    computed = [n.id for n in gone if isinstance(fate[n.id], Constant)]
    incoming = frames.views[frame - 1].incoming
    behind = set(post_order(computed, lambda name: [e.source for e in incoming.get(name, ())]))
    constants = Counter(n.operator for n in gone if isinstance(fate[n.id], Constant))
    fed = Counter(n.operator for n in gone if n.id in behind) - constants
    others = Counter(n.operator for n in gone if n.id not in behind)
    if constants:
        known = _listed(constants)
        yield (
            f"Computed ahead of time, into constants: {known}, and what only fed them: {_listed(fed)}."
            if fed
            else f"Computed ahead of time, into constants: {known}."
        )
    if others:
        yield f"No longer there: {_listed(others)}."


def _came(frames: Frames, frame: int, nodes: Iterable[Node]) -> Iterable[str]:
    """New operators, by what they were made from."""
    made: dict[str, Counter[str]] = {}
    for node in nodes:
        if node.role == "added" and node.operator:
            origin = ", ".join(_makers(frames, frame, frames.nodes[frame].get(node.id)))
            made.setdefault(origin, Counter())[node.operator] += 1
    for origin, found in _most(made):
        yield f"New, from {origin}: {_listed(found)}." if origin else f"New: {_listed(found)}."


def _makers(frames: Frames, frame: int, node: Expr | None) -> list[str]:
    """The operators that a new node was made from."""
    at = makers(frames.pipeline.segments[frame - 1], [node] if node is not None else [])
    whole = (n.tuple_value if isinstance(n, TupleGetItem) else n for n in at)
    return sorted({name for n in whole if (name := op_name(n))})


def _other(nodes: Iterable[Node]) -> Iterable[str]:
    """Operators that are other ones now, that took in others, or that stand elsewhere."""
    changed: dict[str, Counter[str]] = {}
    for node in nodes:
        if node.role in ("changed", "merged", "moved") and node.operator:
            changed.setdefault(_how(node), Counter())[node.operator] += 1
    for what, found in _most(changed):
        yield f"{what[0].upper()}{what[1:]}: {_listed(found)}."


def _how(node: Node) -> str:
    """In which way a node changed; that its type is another one is said without saying which."""
    values = {f"{o.name or o.position} was ": o.name or str(o.position) for o in node.operands if o.kind == "constant"}
    notes: list[str] = []
    for part in filter(None, node.note.split("; ")):
        name = next((name for start, name in values.items() if part.startswith(start)), "")
        notes.append("another type" if part.startswith("type was") else f"other values of {name}" if name else part)
    return ", ".join([node.role, *notes])


def _fused(frames: Frames, frame: int) -> Iterable[str]:
    """Kernels that were made."""
    old, new = ({g.id for g in frames.views[k].groups if g.kind == "primitive"} for k in (frame - 1, frame))
    inside = [n for n in frames.views[frame].nodes if n.group in new - old and n.operator]
    if inside:
        yield f"{counted(len(inside), 'operator')} went into {counted(len(new - old), 'kernel')}."


def _most(found: Mapping[str, Counter[str]]) -> list[tuple[str, Counter[str]]]:
    """The entries with the most nodes, and the sum of the rest."""
    ordered = sorted(found.items(), key=lambda pair: -sum(pair[1].values()))
    rest = sum((c for _, c in ordered[MOST:]), Counter())
    return [*ordered[:MOST], *([("in other ways", rest)] if rest else [])]


def _listed(found: Counter[str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in found.most_common())
