"""Which pass, which rewrite, which node first changed the numbers.

The stages are searched by halves with the interpreter on seeded inputs. Inside the guilty stage every
rewrite claims that two expressions are equal: the first one for which that is not true is named. A pass
without rules is searched node by node along its trail.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from relaylab.interp import Interpreter, random_inputs
from relaylab.ir import Expr, Function, IRModule, TensorType, Tuple, free_vars, post_order
from relaylab.ir.display import node_text
from relaylab.ir.trail import Step
from relaylab.study.checking import comparable, distance, leaves
from relaylab.study.crash import Crash, crash_of
from relaylab.study.definition import definition_of, preamble
from relaylab.study.exploration import explore
from relaylab.study.pipeline import passes_of
from relaylab.study.program import Loadable, Program, load
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError
from relaylab.support.progress import part
from relaylab.support.quoting import python_comment, python_text
from relaylab.transform import History, InferType, Pass, Stage
from relaylab.transform.pattern.match import brief
from relaylab.viz.draw.tensors import tensor_maps
from relaylab.viz.scene.scene import Scene
from relaylab.viz.write import files
from relaylab.viz.write.formats import save_scene
from relaylab.viz.write.html import bundle

TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Finding:
    """Where the numbers first changed: the stage, the rewrite if a rule did it, the node, and by how much.

    `values` are the values of the node (or of the program, if no node is named) before and after.
    """

    stage: Stage
    index: int
    error: float
    evaluations: int
    node: Expr | None = None
    became: Expr | None = None
    step: Step | None = None
    values: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    seed: int = 0

    @cached_property
    def scene(self) -> Scene:
        """Where the numbers first differ: each value as it was, as it is, and |a - b|, as tiny heat maps."""
        maps = []
        for k, (old, new) in enumerate(self.values):
            name = f"value {k}" if len(self.values) > 1 else ""
            maps += [
                (f"{name} before", old),
                (f"{name} after", new),
                *([(f"{name} |a - b|", _apart(old, new))] if old.shape == new.shape else []),
            ]
        where = (
            f"{brief(self.node)} under {self.stage.name}"
            if self.node is not None
            else f"the result under {self.stage.name}"
        )
        named = [(n.strip(), v) for n, v in maps]
        return tensor_maps(named, where, [n for n, _ in named if n.endswith("|a - b|")])

    def __str__(self) -> str:
        head = f"the pass {self.stage.name} changed the numbers: error {self.error:.1e}"
        lines = [f"{head} ({self.evaluations} stages evaluated)"]
        if self.step is not None:
            lines.append(f"  by the rule {self.step.rule}  {self.step.location}")
        if self.node is not None:
            lines += ["  which replaced", _indented(node_text(self.node)), "  by", _indented(node_text(self.became))]
            if self.node.span is not None:
                lines.append(f"  at {self.node.span}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """As plain data, for `--json`."""
        return {"pass": self.stage.name, "error": self.error, "rule": self.step.rule if self.step else None}

    def reproducer(self) -> str:
        """A Python program that shows the difference: the module before and after, run on the same inputs."""
        made = definition_of(self.stage.made)
        run = (
            f"{made.text}(before)"
            if made.is_whole
            else f"relay.parse(AFTER)  {python_comment(f'no text makes the pass {made.text}')}"
        )
        return REPRODUCER.format(
            about=python_comment(f"{self.stage.name} changes what this program computes. Run me."),
            above=preamble([made]) if made.is_whole else "",
            before=python_text(self.stage.before.astext()),
            after=python_text(self.stage.result.astext()),
            run=run,
            seed=self.seed,
        )

    def save(self, path: str | Path) -> Path:
        """Write the reproducer (.py), or the picture of the values in the format of the suffix."""
        if Path(path).suffix.lower() == ".py":
            return files.write(path, self.reproducer())
        return save_scene(self.scene, path, f"{self.stage.name} changed the numbers", str(self))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return bundle(self.scene, str(self))


REPRODUCER = """{about}
import numpy as np

from relaylab import relay
from relaylab.interp import Interpreter, random_inputs
{above}
BEFORE = {before}

AFTER = {after}

before = relay.parse(BEFORE)
after = {run}
inputs = random_inputs(before["main"], {seed})
expected = Interpreter(before).evaluate()(*inputs)
got = Interpreter(relay.transform.InferType()(after)).evaluate()(*inputs)
print("before:", expected)
print("after: ", got)
"""


@checked
def bisect(
    program: Loadable,
    opt_level: int = 3,
    passes: str | Iterable[Pass | str] | None = None,
    seed: int = 0,
    tolerance: float = TOLERANCE,
) -> Finding | Crash | None:
    """The first pass that changes what a program computes, its rewrite and node; None if every pass keeps it.

    If the passes keep it until one raises, or leaves a broken program, that is the finding.
    """
    chosen, program = passes_of(passes, opt_level), load(program)
    small = program if program.small is None else Program(program.name, *program.small())
    found = bisect_history(explore(small, opt_level, chosen).history, seed, tolerance)
    if found is None and small is not program:  # the small form may lack what a pass cannot take
        found = crash_of(explore(program, opt_level, chosen).history)
    return found


@checked
def bisect_history(history: History, seed: int = 0, tolerance: float = TOLERANCE) -> Finding | Crash | None:
    """`bisect` over a pipeline that has been run."""
    crash = crash_of(history)
    stages = [s for s in history if s.changed and (crash is None or s is not crash.stage)]
    inputs = random_inputs(_typed(history.source)["main"], seed)
    expected = _outputs(history.source, inputs)
    errors: dict[int, float] = {}

    def wrong(k: int) -> bool:
        part("stage", len(errors) + 1, 1 + len(stages).bit_length())
        errors[k] = distance(_outputs(stages[k].result, inputs), expected)
        return errors[k] > tolerance

    if not stages or not wrong(len(stages) - 1):
        return crash
    low, high = 0, len(stages) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if wrong(middle) else (middle + 1, high)
    stage = stages[low]
    node, became, step, values = _inside(stage, seed, tolerance)
    values = values or list(zip(expected, _outputs(stage.result, inputs)))
    return Finding(stage, list(history).index(stage), errors[low], len(errors), node, became, step, tuple(values), seed)


Values = list[tuple[np.ndarray, np.ndarray]]


def _inside(stage: Stage, seed: int, tolerance: float) -> tuple[Expr | None, Expr | None, Step | None, Values]:
    for k, step in enumerate(stage.steps, 1):
        part("rewrite", k, len(stage.steps))
        if found := _differs(step.before, step.after, stage.before, seed, tolerance):
            return step.before, step.after, step, found
    for func in stage.before.functions.values():
        nodes = post_order(func.body)
        for k, node in enumerate(nodes, 1):
            part("node", k, len(nodes))
            new = stage.became(node)
            if new is not None and new is not node and (found := _differs(node, new, stage.before, seed, tolerance)):
                return node, new, None, found
    return None, None, None, []


def _differs(before: Expr, after: Expr, mod: IRModule, seed: int, tolerance: float) -> Values:
    """The values of two expressions over the same free variables on seeded inputs, if they differ."""
    variables = free_vars(Tuple([before, after]))
    if any(v.type_annotation is None for v in variables) or isinstance(before, Function) or isinstance(after, Function):
        return []
    try:
        pair = mod.shallow_copy()
        pair["relaylab_bisect"] = Function(variables, Tuple([before, after]))
        typed = _typed(pair)["relaylab_bisect"]
        if not all(isinstance(t, TensorType) for t in typed.ret_type.fields):
            return []
        old, new = Interpreter(_typed(pair)).evaluate(typed)(*random_inputs(typed, seed))
    except RelayError:
        return []
    pairs = leaves(old), leaves(new)
    return list(zip(*pairs)) if distance(pairs[1], pairs[0]) > tolerance else []


def _apart(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.abs(old.astype("float64") - new.astype("float64"))


def _typed(mod: IRModule) -> IRModule:
    return InferType()(mod)


def _outputs(mod: IRModule, inputs: list[Any]) -> list[np.ndarray]:
    return comparable(Interpreter(_typed(mod)).evaluate()(*inputs))


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.strip().splitlines())
