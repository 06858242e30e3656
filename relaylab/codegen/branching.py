"""Programs that are graphs but for `if`: a network up to the condition, then one for the branch that it chooses.

The first network gives the condition and what the rest uses of the values that led to it; the rest, with the branch in
place of the `if`, is such a program again. What comes after a choice is compiled when that choice is first made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylab.codegen.network.network import is_plain
from relaylab.ir.expr import Call, Expr, Function, If, Tuple, TupleGetItem, Var
from relaylab.ir.module import IRModule
from relaylab.ir.types import TensorType, is_dynamic
from relaylab.ir.visit import children, rewrite, walk
from relaylab.runtime.executor import GraphExecutor
from relaylab.runtime.ndarray import NDArray
from relaylab.transform import InferType
from relaylab.transform.engine.renewal import as_function
from relaylab.transform.normal_forms.to_graph_normal_form import to_gnf

Build = Callable[[IRModule], GraphExecutor]


def run_network(executor: GraphExecutor, leaves: Sequence[np.ndarray]) -> list[NDArray]:
    """The outputs of a network for arrays of its shapes and data types."""
    with executor.lock:
        for target, value in zip(executor.instance.inputs, leaves):
            np.copyto(target, value)
        executor.run()
        return [executor.get_output(i) for i in range(len(executor.plan.outputs))]


def as_branching(mod: IRModule) -> IRModule | None:
    """A typed module whose `main`, of tensors, is a graph but for `if`, without lets; None if it is something else."""
    main = mod["main"]
    if not all(isinstance(p.inferred, TensorType) for p in main.params):
        return None
    nodes = list(walk((main.body,)))
    if not any(isinstance(n, If) for n in nodes) or any(n.inferred and is_dynamic(n.inferred) for n in nodes):
        return None
    plain = InferType()(mod.with_functions({**mod.functions, mod.get_global_var("main"): as_function(to_gnf(main))}))
    parts = walk((plain["main"].body,), lambda e: e.args if isinstance(e, Call) else children(e))
    return plain if all(isinstance(n, If) or is_plain(n) for n in parts) else None


class Branching:
    """A program as the networks between its choices. `build` compiles a module that is a static graph."""

    def __init__(self, mod: IRModule, build: Build):
        self.lock = threading.RLock()
        self.params: tuple[Var, ...] = mod["main"].params
        self.first = _Stage(mod, build)

    def run(self, leaves: Sequence[np.ndarray]) -> list[NDArray]:
        """The outputs for the arrays of the inputs."""
        with self.lock:
            stage, values = self.first, list(leaves)
            while True:
                found = run_network(stage.executor, values)
                if stage.choice is None:
                    return found
                values += [v.view() for v in found[1:]]
                stage = stage.after(bool(np.all(found[0].view())))


class _Stage:
    """The network up to a choice, or to the end; `cuts` are the values that it hands on."""

    def __init__(self, mod: IRModule, build: Build):
        self.mod, self.build = mod, build
        main = mod["main"]
        self.choice = _first_choice(main.body)
        self.cuts: list[Expr] = [] if self.choice is None else _cuts(main.body, self.choice)
        self.next: dict[bool, _Stage] = {}
        if self.choice is not None:
            mod = _with_main(mod, Function(main.params, Tuple([self.choice.cond, *self.cuts])))
        self.executor = build(mod)

    def after(self, chosen: bool) -> _Stage:
        """What comes if the condition is so."""
        if chosen not in self.next:
            self.next[chosen] = _Stage(self._rest(chosen), self.build)
        return self.next[chosen]

    def _rest(self, chosen: bool) -> IRModule:
        """The program with a branch in place of the choice, and what is known as further inputs."""
        main, choice = self.mod["main"], self.choice
        handed = [Var(f"known{len(main.params) + k}", c.checked_type) for k, c in enumerate(self.cuts)]
        branch = lambda new: new.true_branch if chosen else new.false_branch
        post: Callable[[Any, Expr], Expr] = lambda new, old: branch(new) if old is choice else new
        body = rewrite(main.body, post, memo=dict(zip(self.cuts, handed)))
        return _with_main(self.mod, Function([*main.params, *handed], body))


def _with_main(mod: IRModule, main: Function) -> IRModule:
    return InferType()(mod.with_functions({**mod.functions, mod.get_global_var("main"): main}))


def _first_choice(body: Expr) -> If | None:
    """The first `if` that is certainly evaluated; no other one leads to its condition."""
    outside = walk(
        (body,), lambda e: (e.cond,) if isinstance(e, If) else () if isinstance(e, Function) else children(e)
    )
    return next((n for n in outside if isinstance(n, If)), None)


def _cuts(body: Expr, choice: If) -> list[Expr]:
    """The tensors that lead to a condition and are used elsewhere too."""
    before = {n for n in walk((choice.cond,)) if isinstance(n, (Call, TupleGetItem))}
    found: dict[Expr, None] = {}
    for node in walk((body,)):
        if node not in before:
            parts = (choice.true_branch, choice.false_branch) if node is choice else children(node)
            found |= dict.fromkeys(p for p in parts if p in before and isinstance(p.inferred, TensorType))
    return list(found)
