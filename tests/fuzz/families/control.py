"""Programs of the whole language: if, recursion, closures, cells, tuples, data types, type parameters; in plain Python,
the interpreter, the virtual machine, and the graph executor where it takes them.

Floats may differ by 2e-5 of the larger of 1 and the number: values stay near 1 (every second operator is a tanh), the
longest chain is some hundred operators, and conditions are made of integers.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from fuzz.choices import Choices
from fuzz.families._functional import functional_program
from fuzz.families._tests import program_test
from fuzz.search import Finding, family
from support.compiled import TARGETS, difference, flat
from support.walker import Walker

from relaylab import relay
from relaylab.interp import create_executor, random_inputs
from relaylab.ir import IRModule
from relaylab.support.errors import RelayError

TOLERANCE = 2e-5
sys.setrecursionlimit(20_000)  # the walker walks


def inputs_of(mod: IRModule, seed: int) -> dict[str, np.ndarray]:
    """Values for the parameters of main, by name."""
    main = mod["main"]
    return {p.name_hint: np.asarray(x) for p, x in zip(main.params, random_inputs(main, seed))}


@dataclass(frozen=True)
class Case:
    """A program, its inputs' seed, an executor and its level."""

    mod: IRModule
    seed: int
    kind: str
    target: str
    level: int


@family("control", "control flow, functions, cells and data types against plain Python: interpreter, VM, graph")
class Control:
    def case(self, draw: Choices) -> Case:
        kind = draw.choice(("debug", "debug", "debug", "debug", "vm", "graph"))
        level, target = draw.choice((0, 2, 3, 4)), draw.choice(sorted(TARGETS.values()))
        seed = draw.randrange(100)
        return Case(functional_program(draw), seed, kind, target, level)

    def run(self, case: Case) -> str:
        inputs = random_inputs(case.mod["main"], case.seed)
        want = flat(Walker(case.mod).run(*[np.asarray(x) for x in inputs]))
        self.check(case, "debug", want, inputs)
        if case.kind == "debug":
            return "ran debug"
        try:
            self.check(case, case.kind, want, inputs)
        except RelayError as error:
            if case.kind == "vm":
                raise Finding(f"the VM refuses, {error.code}", f"{error}\n{case.mod.astext()}") from None
            raise
        return f"ran {case.kind}"

    def test(self, case: Case) -> str:
        return program_test(
            "control",
            case.mod,
            inputs_of(case.mod, case.seed),
            ["from support.compiled import difference, flat", "from support.walker import Walker"],
            [
                "want = flat(Walker(mod).run(*INPUTS.values()))",
                f"with relay.transform.PassContext(opt_level={case.level}):",
                f"    for kind in ('debug', {case.kind!r}):",
                f"        run = relay.create_executor(kind, mod, target={case.target!r}).evaluate()",
                f"        assert not difference(flat(run(*INPUTS.values())), want, {TOLERANCE})",
            ],
        )

    def check(self, case: Case, kind: str, want: list[np.ndarray], inputs: Any) -> None:
        with relay.transform.PassContext(opt_level=case.level), np.errstate(all="ignore"):
            run = create_executor(kind, case.mod, target=case.target).evaluate()
            wrong = difference(flat(run(*inputs)), want, TOLERANCE)
        if wrong:
            way = f"{kind}, {case.target}, level {case.level}, inputs {case.seed}"
            raise Finding(f"{kind} is wrong", f"{way}: {wrong}\n{case.mod.astext()}")
