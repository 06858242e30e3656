"""Three semantics, one answer: compiled code against the interpreter on seeded inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylab import relay
from relaylab.codegen.network.network import is_static_graph
from relaylab.codegen.specialize import with_body
from relaylab.interp import Interpreter, random_inputs
from relaylab.interp.agreement import relative_error
from relaylab.ir import IRModule, Tuple, is_call_to
from relaylab.runtime.ndarray import NDArray
from relaylab.transform import PassContext

SATURATING = ("nn.softmax", "nn.fast_softmax", "sigmoid", "tanh")


@dataclass(frozen=True)
class Check:
    """How compiled code and interpreter compare: largest error relative to the largest value, and the first numbers."""

    error: float
    tolerance: float
    shapes: list[tuple[int, ...]]
    head: list[float]

    @property
    def agrees(self) -> bool:
        return self.error <= self.tolerance

    def __str__(self) -> str:
        verdict = "agrees with" if self.agrees else "DIFFERS FROM"
        error = f"{self.error:.1e} of the largest value (allowed {self.tolerance:.0e})"
        return f"compiled code {verdict} the interpreter: largest error {error}"


def check(
    mod: IRModule, params: Mapping[str, Any] | None = None, opt_level: int = 3, seed: int = 0, tolerance: float = 1e-4
) -> Check:
    """Run a program compiled and interpreted on the same seeded inputs and compare."""
    params = {k: np.asarray(v.numpy() if hasattr(v, "numpy") else v) for k, v in (params or {}).items()}
    mod = relay.transform.InferType()(mod)
    inputs = random_inputs(mod["main"], seed)
    values = [params.get(p.name_hint, value) for p, value in zip(mod["main"].params, inputs)]
    judged = _with_logits(mod)
    expected = leaves(Interpreter(judged).evaluate()(*values))
    with PassContext(opt_level=opt_level):
        got = leaves(relay.create_executor("vm" if needs_vm(mod) else "graph", judged).evaluate()(*values))
    error = max((relative_error(g, e) for g, e in zip(got, expected, strict=True)), default=0.0)
    told = expected if judged is mod else expected[:1]
    return Check(error, tolerance, [e.shape for e in told], [float(v) for v in told[0].ravel()[:4]] if told else [])


def _with_logits(mod: IRModule) -> IRModule:
    """A program that ends in a softmax or sigmoid gives what went into it too: of logits that are small, or far apart,
    the result tells nothing."""
    body = mod["main"].body
    if not is_call_to(body, *SATURATING):
        return mod
    return with_body(mod, Tuple([body, body.args[0]]))


def difference(before: IRModule, after: IRModule, seed: int = 0) -> float:
    """How far apart two programs are when the interpreter runs both on the same seeded inputs: 0 is not at all."""
    first, second = (relay.transform.InferType()(mod) for mod in (before, after))
    inputs = random_inputs(first["main"], seed)
    expected, got = (leaves(Interpreter(mod).evaluate()(*inputs)) for mod in (first, second))
    return max((relative_error(g, e) for g, e in zip(got, expected, strict=True)), default=0.0)


def needs_vm(mod: IRModule) -> bool:
    """Whether the program has control flow, recursion or data types, which the graph executor has not."""
    return not is_static_graph(mod)


def leaves(value: object) -> list[np.ndarray]:
    fields = value if isinstance(value, (tuple, list)) else getattr(value, "fields", None)
    if fields is not None:
        return [leaf for v in fields for leaf in leaves(v)]
    return [np.asarray(value.numpy() if isinstance(value, NDArray) else value)]
