"""The pass explorer without a screen: questions about a pipeline, answered as plain data.

A widget in a notebook and a saved page ask the same questions; a page has the answers with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from relaylab import viz
from relaylab.analysis.cost import costs
from relaylab.interp import Interpreter, random_inputs
from relaylab.ir import Expr, Function, IRModule
from relaylab.ir.expr import node_text
from relaylab.support.collection import no_collection
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.tour.bisect import TOLERANCE, bisect_history
from relaylab.tour.branches import Branches
from relaylab.tour.checking import leaves, relative_error
from relaylab.tour.compare import small_form
from relaylab.tour.exploration import Exploration, operators
from relaylab.tour.facts import group_facts, node_facts
from relaylab.tour.frames import Frames
from relaylab.tour.heat import heat_of
from relaylab.tour.kernels import Kernels, memory_plan
from relaylab.tour.pipeline import Pipeline, options_of
from relaylab.tour.printed import rows
from relaylab.tour.running import llvm_steps
from relaylab.tour.suggest import suggestions
from relaylab.tour.ways import Ways
from relaylab.tour.why import rules_of, why_not
from relaylab.tour.words import sentences
from relaylab.transform import InferType
from relaylab.viz.blocks import repeats
from relaylab.viz.draw import Look, draw
from relaylab.viz.fold import collapse, of_kind
from relaylab.viz.html import scene_data
from relaylab.viz.scene import Scene

REPEATS = "×"
"""Among folded groups: all blocks that come again at once."""


class Session:
    """A program, its editable pipeline and everything that can be asked about it."""

    def __init__(self, exploration: Exploration, passes: list[Any] | None = None):
        self.program, self.opt_level = exploration.program, exploration.opt_level
        known = exploration.pipeline
        if passes is None or [item.made for item in known.items] == [*passes]:
            self.pipeline = known.branch()
        else:
            self.pipeline = Pipeline(known.source, passes, self.opt_level)
        self.overlays: dict[str, dict[str, float]] = {}
        self.branches, self.ways = Branches(self), Ways(self)
        self.refresh()

    def refresh(self) -> None:
        """Forget what was computed about the frames; after an edit."""
        self.frames = Frames(self.pipeline, self.program.name)
        self._seeds: dict[tuple, Mapping[str, float]] = {}
        self._last: dict[str, dict[str, float]] = {}
        self._blocks: dict[str, viz.Group] = {}
        self.__dict__.pop("kernels", None)

    @cached_property
    def kernels(self) -> Kernels:
        """The last frame, compiled."""
        return Kernels(self.frames.modules[-1])

    def ask(self, what: str, *args: Any) -> dict[str, Any]:
        """The answer to a question; errors of users are answers too."""
        known: dict[str, Callable[..., dict[str, Any]]] = {
            "rows": self.rows, "picture": self.picture, "text": self.text, "node": self.node, "kernel": self.kernel,
            "steps": self.steps, "llvm": self.llvm, "check": self.check, "suggest": self.suggest, "bisect": self.bisect, "copy": self.copy,
            "overlay": self.overlay, "operators": self.operators, "edit": self.edit, "memory": self.memory,
            "heat": self.heat, "why": self.why, "words": self.words, "options": self.options, "counterparts": self.counterparts, "branch": self.branches.change, "compare": self.branches.table, "versus": self.branches.versus,
            "path": self.ways.path, "critical": self.ways.critical, "extract": self.ways.extract,
        }
        try:
            if what not in known:
                raise RelayValueError(f"there is no question `{what}`", code="explorer.question", help=did_you_mean(what, known))
            with no_collection():  # it would take a third of the time of a picture
                return known[what](*args)
        except RelayError as error:
            return {"error": str(error)}

    # -- the rail -------------------------------------------------------------------------------------

    def rows(self) -> dict[str, Any]:
        """The passes with what each did in numbers, the error that stopped them, the frames."""
        figures = [self._figures(mod) for mod in self.frames.modules]
        return {
            "title": self.program.name, "level": self.opt_level, "frames": len(self.frames), "start": figures[0][1],
            "rows": [self._row(k, figures[k], figures[k + 1]) for k in range(len(self.pipeline.items))],
            "edits": self.pipeline.runs,
        }

    def _figures(self, mod: IRModule) -> tuple[dict[str, int], dict[str, float]]:
        known = self.__dict__.setdefault("_known_figures", {})
        if mod not in known:
            found = [c for f in mod.functions.values() if f._checked_type is not None for c in costs(f).values()]
            totals = {"macs": float(sum(c.macs for c in found)), "bytes": float(sum(c.bytes_read + c.bytes_written for c in found))}
            known[mod] = (dict(operators(mod)), totals)
        return known[mod]

    def _row(self, k: int, before: tuple, after: tuple) -> dict[str, Any]:
        item, segment = self.pipeline.items[k], self.pipeline.segments[k]
        names = sorted(set(before[0]) | set(after[0]))
        delta = [[n, after[0].get(n, 0) - before[0].get(n, 0)] for n in names if after[0].get(n, 0) != before[0].get(n, 0)]
        main = segment.main
        return {
            "name": item.name, "text": item.text, "enabled": item.enabled, "ran": segment.ran, "changed": segment.changed,
            "skipped": main.skipped if main else "", "ms": segment.seconds * 1e3, "ops": delta,
            "macs": after[1]["macs"] - before[1]["macs"], "bytes": after[1]["bytes"] - before[1]["bytes"],
            "functions": self._touched(segment.before, segment.after), "steps": len(main.steps) if main else 0, "error": str(segment.error or "").strip(),
            "nested": [_nested(s) for s in [*segment.stages[:-1], *(main.nested if main else [])]],
        }

    @staticmethod
    def _touched(before: IRModule, after: IRModule) -> list[str]:
        """The functions that a pass changed, of a program that has several."""
        old, new = ({gv.name_hint: f for gv, f in mod.functions.items()} for mod in (before, after))
        names = sorted({*old, *new})
        return [n for n in names if old.get(n) is not new.get(n)] if len(names) > 1 else []

    # -- pictures and text -----------------------------------------------------------------------------

    def picture(self, before: int, after: int, style: str = "merged", closed: str = "") -> dict[str, Any]:
        """The picture of a frame, or what differs between two; `closed` names folded groups, one a line, "×" all repeats."""
        old, new = (self.frames.views[k] for k in self._pair(before, after))
        cards = closed.split("\n") if closed else ()
        shared = {"groups": [[g.id, g.title, g.kind, g.parent] for g in self.frames.views[after].groups], "how": ""}
        if old is new:
            return {"scenes": [self._scene(self._folded(new, cards), (closed, "one", after))], "roles": {}} | shared
        difference = viz.Difference(old, new, "compared by provenance")
        key = (closed, style, before, after)
        if style == "both":
            scenes = [self._scene(self._folded(side, cards), (*key, k)) for k, side in enumerate(difference.sides)]
        else:
            scenes = [self._scene(self._folded(difference.merged, cards), key)]
        return {"scenes": scenes, "roles": difference.counts, "edges": difference.changed_edges} | shared

    def _folded(self, view: viz.View, closed: Collection[str]) -> viz.View:
        """A view with groups folded, and where that is wished each run of equal blocks as one card."""
        if REPEATS in closed:
            view = repeats(view)
            found = of_kind(view, "repeat", "block")
            self._blocks.update((name, view.group_by_id[name]) for name in found)
            closed = {*closed, *found}
        return collapse(view, closed)

    def _pair(self, *frames: int) -> tuple[int, ...]:
        for frame in frames:
            if not 0 <= frame < len(self.frames):
                raise RelayValueError(f"there is no frame {frame}; there are 0 to {len(self.frames) - 1}", code="explorer.frame")
        return frames

    def _scene(self, view: viz.View, key: tuple) -> dict[str, Any]:
        """A picture laid out to resemble the last one that was drawn with the same boxes folded; asked again it is the same."""
        last = self._last.setdefault(key[0], {})
        seed = self._seeds.setdefault(key, dict(last))
        scene = draw(view, Look(types="nodes", caption=False), seed or None)
        last.update(scene.seed)
        nodes = [[n.id, n.group, n.operator, n.type, [f"{a.name}={a.value}" for a in n.attrs]] for n in view.nodes]
        return scene_data(scene) | {"nodes": nodes}

    def still(self, before: int, after: int) -> Scene:
        """The merged picture of two frames as a scene, for places that show no widget."""
        old, new = (self.frames.views[k] for k in self._pair(before, after))
        return draw(new if old is new else viz.Difference(old, new).merged, Look())

    def text(self, before: int, after: int) -> dict[str, Any]:
        """The difference of two frames as text, line by line; of a frame with itself all its lines."""
        self._pair(before, after)

        def name(node: Expr | None, old: bool) -> str:
            return self.frames.ids[before if old else after].get(node, "") if node is not None else ""

        return {"rows": rows(self.frames.printed(before), self.frames.printed(after), name)}

    def steps(self, index: int) -> dict[str, Any]:
        """The single rewrites of a pass: rule, source line, what was replaced by what."""
        main = self.pipeline.segments[index].main
        old, new = self.frames.ids[index], self.frames.ids[index + 1]
        out = []
        for step in main.steps if main else []:
            ids = [old.get(step.before, ""), new.get(step.after, "") or new.get(main.became(step.before), "")]  # type: ignore[union-attr,arg-type]
            out.append({"rule": step.rule, "at": step.location, "note": step.note, "us": step.seconds * 1e6, "ids": ids,
                        "before": _short(step.before), "after": _short(step.after)})
        return {"steps": out}

    # -- one node --------------------------------------------------------------------------------------

    def node(self, frame: int, name: str) -> dict[str, Any]:
        """All about a node or group, and its life story."""
        self._pair(frame)
        for k in (frame, *range(frame - 1, -1, -1)):
            view, expr = self.frames.views[k], self.frames.nodes[k].get(name)
            if name in view.node_by_id or name in view.group_by_id:
                found = view.node_by_id.get(name)
                facts = node_facts(found, expr, self.frames.previews) if found else group_facts(view.group_by_id[name])
                return facts | {"frame": k, "story": self.frames.story(k, name), "kernel": self._function(k, name) is not None}
        if name in self._blocks:
            return group_facts(self._blocks[name]) | {"frame": frame, "story": [], "kernel": False}
        raise RelayValueError(f"there is no node `{name}` up to this frame", code="explorer.node")

    def counterparts(self, frame: int, name: str, others: list[int]) -> dict[str, Any]:
        """What stands for a node (or what it was made from) in other frames, by frame; none is an empty list."""
        self._pair(frame, *others)
        start = self.frames.nodes[frame].get(name)
        found = {str(other): self._counterpart(start, frame, other) for other in others} if start is not None else {}
        return {"ids": found or {str(other): [] for other in others}}

    def _counterpart(self, start: Expr, frame: int, other: int) -> list[str]:
        at: tuple[Expr, ...] = (start,)
        for segment in self.pipeline.segments[frame:other]:
            for stage in (s for s in segment.stages if s.changed):
                at = tuple(dict.fromkeys(n for n in map(stage.became, at) if n is not None))
        for segment in reversed(self.pipeline.segments[other:frame]):
            for stage in (s for s in reversed(segment.stages) if s.changed):
                at = tuple(dict.fromkeys(p for n in at for p in stage.parents(n)))
        return list(dict.fromkeys(self.frames.ids[other][n] for n in at if n in self.frames.ids[other]))

    def _function(self, frame: int, name: str) -> Function | None:
        """The fused function of the last frame that a node ended up in."""
        at: Expr | None = self.frames.nodes[frame].get(name)
        for segment in self.pipeline.segments[frame:]:
            for stage in segment.stages:
                at = stage.became(at) if at is not None and stage.changed else at
        view = self.frames.views[-1]
        inside = self.frames.ids[-1].get(at, name if frame == len(self.frames) - 1 else "") if at is not None else name
        group = view.group_by_id.get(view.node_by_id[inside].group) if inside in view.node_by_id else view.group_by_id.get(inside)
        while group is not None and group.kind != "primitive":
            group = view.group_by_id.get(group.parent)
        expr = self.frames.nodes[-1].get(group.id) if group else None
        return expr if isinstance(expr, Function) else None

    def kernel(self, frame: int, name: str) -> dict[str, Any]:
        """The kernel that a node became part of: Relay, loops, LLVM IR and assembly with linked lines."""
        function = self._function(frame, name)
        listing = self.kernels.listing(function) if function is not None else None
        if listing is None:
            return {"error": "no machine code was made for this node: it is in no fused kernel of the last frame"}
        parts = [[title, self.frames.ids[-1].get(expr, "") if expr is not None else ""] for title, expr in listing.parts]
        return {"name": listing.name, "relay": listing.relay, "loops": listing.loops, "parts": parts,
                "llvm": listing.llvm, "asm": listing.asm, "coverage": listing.coverage, "why": listing.why}

    def llvm(self, frame: int, name: str) -> dict[str, Any]:
        """What LLVM's own passes would do to the kernel of a node, pass by pass: name, ms, words, difference."""
        function = self._function(frame, name)
        steps = llvm_steps(self.kernels.library, self.kernels.names[function]) if function is not None else []
        return {"steps": [[s.name, s.ms, s.changed, str(s).split(" ms  ")[-1], s.diff()] for s in steps]}

    def why(self, frame: int, name: str, index: int = -1) -> dict[str, Any]:
        """Why the pass at `index` (default: the one after or at the frame that can say) did nothing to a node."""
        self._pair(frame)
        able = [[k, item.name] for k, item in enumerate(self.pipeline.items) if self._explains(item.made)]
        if not able:
            return {"passes": [], "pass": "", "index": -1, "reasons": []}
        if index < 0:
            index = next((k for k, _ in able if k >= frame - 1), able[-1][0])
        item, node = self.pipeline.items[index], self.frames.nodes[index].get(name)
        if node is None:
            answer: dict[str, Any] = {"error_here": f"this node is not in the program that {item.name} gets"}
        else:
            found = why_not(item.made, self.frames.modules[index], node, most=8).reasons
            answer = {"reasons": [[r.rule, r.why or r.done, r.fires, r.near, r.location, self.frames.ids[index].get(r.at, "")] for r in found]}
        return {"passes": able, "pass": item.name, "index": index} | answer

    def _explains(self, made: Any) -> bool:
        try:
            return made.info.name == "FuseOps" or bool(rules_of(made))
        except RelayError:
            return False

    def options(self, index: int) -> dict[str, Any]:
        """The options of the pass at an index, each with value, default and type as text."""
        item = self.pipeline.item(index)
        return {"name": item.text.split("(")[0], "options": [[o.name, o.value, o.default, o.type] for o in options_of(item.made)]}

    def words(self, frame: int) -> dict[str, Any]:
        """What the pass before a frame did, in sentences."""
        self._pair(frame)
        return {"sentences": sentences(self.frames, frame) if frame else []}

    def heat(self, by: str = "function") -> dict[str, Any]:
        """The heat map of the whole pipeline; the id of a cell is `frame:row`."""
        return {"scene": scene_data(heat_of(self.frames, by).scene)}

    # -- questions that take time -----------------------------------------------------------------------

    @cached_property
    def small(self) -> IRModule:
        """What is interpreted: the small form of a network of the zoo, or the program itself."""
        return small_form(self.program, self.pipeline.source)

    def _checked(self) -> tuple[Pipeline, dict[IRModule, list[np.ndarray]]]:
        """The pipeline over the small form, and the outputs known so far."""
        key = tuple((i.made, i.enabled) for i in self.pipeline.items)
        if self.__dict__.get("_check_key") != key:
            pipeline = self.pipeline if self.program.small is None else Pipeline(self.small, (), self.opt_level)
            if pipeline is not self.pipeline:
                pipeline.items = list(self.pipeline.items)
            self.__dict__["_check_key"], self.__dict__["_check"] = key, (pipeline, {})
        return self.__dict__["_check"]

    def check(self, index: int) -> dict[str, Any]:
        """Whether a pass keeps the numbers: the interpreter on seeded input, against the program before all passes."""
        pipeline, known = self._checked()
        got, expected = (self._outputs(mod, known) for mod in (pipeline.segments[index].after, pipeline.source))
        if [g.shape for g in got] != [e.shape for e in expected]:
            return {"index": index, "error_size": None, "ok": False}
        size = max((relative_error(g, e) for g, e in zip(got, expected)), default=0.0)
        return {"index": index, "error_size": size, "ok": bool(size <= TOLERANCE)}

    def _outputs(self, mod: IRModule, known: dict[IRModule, list[np.ndarray]]) -> list[np.ndarray]:
        if mod not in known:
            typed = InferType()(mod)
            known[mod] = leaves(Interpreter(typed).evaluate()(*random_inputs(typed["main"], 0)))
        return known[mod]

    def suggest(self, frame: int) -> dict[str, Any]:
        """Which passes would change the program at a frame now."""
        self._pair(frame)
        found = suggestions(self.frames.modules[frame])
        return {"suggestions": [{"name": s.name, "summary": s.summary, "ops": sorted(s.delta.items()), "ms": s.seconds * 1e3} for s in found]}

    def bisect(self) -> dict[str, Any]:
        """The pass and the rewrite that first changed the numbers."""
        pipeline, _ = self._checked()
        finding = bisect_history(pipeline.history)
        if finding is None:
            return {"found": False, "text": "every pass keeps the numbers"}
        index = next(i for i, s in enumerate(pipeline.segments) if finding.stage in s.stages)
        return {"found": True, "index": index, "text": str(finding), "reproducer": finding.reproducer(), "scene": scene_data(finding.scene)}

    def copy(self) -> dict[str, Any]:
        """The pipeline as Python and as a command."""
        return {"python": self.pipeline.python(), "command": self.pipeline.command(self.program.name)}

    def edit(self, how: str, index: int, value: Any = None) -> dict[str, Any]:
        """Toggle, set, move, remove or insert a pass, undo or redo an edit; gives the new rows. Only what follows the edit runs."""
        edits: dict[str, Callable[[], None]] = {
            "toggle": lambda: self.pipeline.toggle(index), "set": lambda: self.pipeline.set(index, str(value)),
            "move": lambda: self.pipeline.move(index, int(value)), "remove": lambda: self.pipeline.remove(index),
            "insert": lambda: self.pipeline.insert(index, str(value)), "undo": self.pipeline.undo, "redo": self.pipeline.redo,
        }
        if how not in edits:
            raise RelayValueError(f"there is no edit `{how}`", code="explorer.edit", help=did_you_mean(how, edits))
        edits[how]()
        self.refresh()
        return self.rows()

    # -- overlays ---------------------------------------------------------------------------------------

    def overlay(self, name: str, frame: int) -> dict[str, Any]:
        """A figure for every node and group of a frame: MACs, bytes, measured time, or one of the user's own."""
        view = self.frames.views[self._pair(frame)[0]]
        if name == "time":
            table, unit = self._times(), "µs"
        elif name in self.overlays:
            table, unit = dict(self.overlays[name]), ""
        else:
            wanted = {"MACs": ("MACs",), "bytes": ("bytes read", "bytes written")}.get(name)
            if wanted is None:
                raise RelayValueError(f"there is no overlay `{name}`", code="explorer.overlay",
                                      help=did_you_mean(name, ["MACs", "bytes", "time", *self.overlays]))
            table = {n.id: float(sum(v for key, v in n.cost if key in wanted)) for n in view.nodes}
            unit = {"MACs": "MAC", "bytes": "B"}[name]
        for group in reversed(view.groups):
            inside = [table.get(n.id, 0.0) for n in view.nodes if n.group == group.id]
            inside += [table.get(g.id, 0.0) for g in view.groups if g.parent == group.id]
            table.setdefault(group.id, float(sum(inside)))
        return {"name": name, "unit": unit, "values": {k: v for k, v in table.items() if v}}

    def _times(self) -> dict[str, float]:
        ids = self.frames.ids[-1]
        return {ids[f]: spent for f, spent in self.kernels.times().items() if f in ids}

    def operators(self, frame: int, measured: bool = False) -> dict[str, Any]:
        """The table of operators of a frame, as rows; with measured times it is that of the last frame."""
        at = len(self.frames) - 1 if measured else self._pair(frame)[0]
        table = viz.operator_table(self.frames.views[at], self._times() if measured else None)
        return {"frame": at, "rows": [[r.operator, r.calls, r.macs, r.bytes, r.time] for r in table.rows]}

    def memory(self) -> dict[str, Any]:
        """The memory plan of the compiled program."""
        return memory_plan(self.kernels.library)


def _nested(stage: Any) -> dict[str, Any]:
    return {"name": stage.name, "ms": stage.seconds * 1e3, "changed": stage.changed}


def _short(expr: Expr, most: int = 12) -> str:
    lines = node_text(expr).split("\n")
    return "\n".join([*lines[:most], *(["…"] if len(lines) > most else [])])
