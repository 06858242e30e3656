"""Random sequences of passes with random options over random programs of both kinds, tensors and the whole language.

After each pass scopes and types are right; after the last one the types are those that inference finds for the text,
the text parses to an equal module, and the interpreter computes what plain Python or numpy do for the program before.
Tolerances are those of the families `operators` (times 4: passes reorder sums that the bar has measured once) and
`control`; after FastMath, whose formulas are approximations, 2e-2.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from fuzz.choices import Choices
from fuzz.families._functional import functional_program
from fuzz.families._tests import program_test
from fuzz.families.control import inputs_of
from fuzz.families.operators import LOOSE, truth
from fuzz.search import Finding, family
from support.compiled import difference, flat, interpreted
from support.networks import Network, drawn_network
from support.sequences import EXACT, ROUNDING, Step, apply
from support.walker import Walker

from relaylab import relay
from relaylab.interp import Interpreter, random_inputs
from relaylab.ir import IRModule, structural_equal
from relaylab.support.errors import RelayError
from relaylab.text import parse
from relaylab.transform import PASSES

sys.setrecursionlimit(20_000)  # the walker walks
LAYOUTS = {"nn.conv2d": ["NHWC", "default"]}, {"nn.conv2d": ["NHWC", "HWIO"], "nn.max_pool2d": ["NHWC"]}
OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "AnnotateTarget": ({"targets": ["example"], "include_non_call_ops": False},),
    "CombineParallelBatchMatmul": ({"min_num_branches": 2},),
    "CombineParallelConv2D": ({"min_num_branches": 2},),
    "CombineParallelDense": ({"min_num_branches": 2}, {"min_num_branches": 2, "to_batch": False}),
    "ConvertLayout": tuple({"desired_layouts": wanted} for wanted in LAYOUTS),
    "DeadCodeElimination": ({"inline_once": True},),
    "EtaExpand": ({"expand_constructor": True}, {"expand_constructor": True, "expand_global_var": True}),
    "FoldConstant": ({"fold_qnn": True},),
    "FuseOps": tuple({"fuse_opt_level": n} for n in range(5)),
    "PartitionGraph": ({"bind_constants": False},),
    "SplitArgs": ({"max_function_args": 2},),
}
"""Options of passes besides those with which the table says to try them."""
NO_CELLS = {n for n in EXACT if not PASSES[n].effects} | {"LazyGradientInit"}
"""Passes that refuse functions with cells, and with the marks where values end (`memory.kill`)."""


@dataclass(frozen=True)
class Case:
    """Passes and the program for them: a network, or a module and the seed of its inputs."""

    steps: list[Step]
    net: Network | None
    mod: IRModule
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.steps}\n{self.mod.astext()}"


@family("passes", "sequences of passes with options over both kinds of programs: results, types and text hold")
class Passes:
    def case(self, draw: Choices) -> Case:
        names = [*EXACT, "FastMath"]
        steps: list[Step] = []
        for _ in range(1 + draw.randrange(5)):
            name = draw.choice(names)
            steps.append((name, draw.choice(({}, *OPTIONS.get(name, ())))))
        pure = bool(NO_CELLS & {n for n, _ in steps})
        steps = [(n, options) for n, options in steps if not (pure and n == "ManifestLifetimes")]
        if draw.chance(0.5):
            effects = frozenset({"ref"} if pure else ())
            return Case(steps, None, functional_program(draw, 8, effects), draw.randrange(100))
        net = drawn_network(draw.generator(), 8)
        return Case(steps, net, net.mod)

    def run(self, case: Case) -> str:
        said = f"{case}\n"
        try:
            after = apply(case.mod, case.steps)
        except AssertionError as wrong:
            raise Finding("scopes or types are wrong", f"{wrong}\n{said}") from None
        except RelayError as error:
            raise Finding(f"refused, {error.code}", f"{error}\n{said}") from None
        again = relay.transform.InferType()(parse(after.astext(show_meta_data=True)))
        if not structural_equal(again, after, map_free_vars=True):
            raise Finding("the text is of another module", f"{said}after:\n{after.astext()}")
        wrong = self.wrong(case, after)
        if wrong:
            raise Finding("other results", f"{wrong}\n{said}after:\n{after.astext()}")
        return "network" if case.net else "control flow"

    def test(self, case: Case) -> str:
        tensors = case.net is not None
        judge = "flat(evaluate(mod['main'].body, dict(zip(mod['main'].params, INPUTS.values()))))"
        return program_test(
            "passes",
            case.mod,
            case.net.inputs if case.net else inputs_of(case.mod, case.seed),
            [
                "from support.compiled import difference, flat, interpreted",
                "from support.plain import evaluate" if tensors else "from support.walker import Walker",
                "from support.sequences import apply",
            ],
            [
                f"after = apply(mod, {case.steps!r})",
                f"want = {judge if tensors else 'flat(Walker(mod).run(*INPUTS.values()))'}",
                "assert not difference(interpreted(after, INPUTS), want, 1e-3)",
            ],
        )

    def wrong(self, case: Case, after: IRModule) -> str:
        """How the results after the passes differ from those of the program before."""
        rounded = max((ROUNDING.get(name, 0.0) for name, _ in case.steps), default=0.0)
        with np.errstate(all="ignore"):
            if case.net is None:
                inputs = random_inputs(case.mod["main"], case.seed)
                want = flat(Walker(case.mod).run(*[np.asarray(x) for x in inputs]))
                return difference(flat(Interpreter(after).evaluate()(*inputs)), want, max(2e-5, rounded))
            got = interpreted(after, case.net.inputs)
            if not rounded:
                return truth(case.net, times=4 * LOOSE).unlike(got)
            return difference(got, interpreted(case.mod, case.net.inputs), rounded)
