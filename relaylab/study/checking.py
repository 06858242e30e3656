"""Three semantics, one answer: compiled code against the interpreter on seeded inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError
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


@checked
def check(
    mod: IRModule, params: Mapping[str, Any] | None = None, opt_level: int = 3, seed: int = 0, tolerance: float = 1e-4
) -> Check:
    """Run a program compiled and interpreted on the same seeded inputs and compare."""
    params = {k: np.asarray(v.numpy() if hasattr(v, "numpy") else v) for k, v in (params or {}).items()}
    mod = relay.transform.InferType()(mod)
    inputs = random_inputs(mod["main"], seed)
    values = [params.get(p.name_hint, value) for p, value in zip(mod["main"].params, inputs)]
    judged = _with_logits(mod)
    expected = comparable(Interpreter(judged).evaluate()(*values))
    with PassContext(opt_level=opt_level):
        got = comparable(relay.create_executor("vm" if needs_vm(mod) else "graph", judged).evaluate()(*values))
    told = expected if judged is mod else expected[:1]
    return Check(
        distance(got, expected),
        tolerance,
        [e.shape for e in told],
        [float(v) for v in told[0].ravel()[:4]] if told else [],
    )


def _with_logits(mod: IRModule) -> IRModule:
    """A program that ends in a softmax or sigmoid gives what went into it too: of logits that are small, or far apart,
    the result tells nothing."""
    body = mod["main"].body
    if not is_call_to(body, *SATURATING):
        return mod
    return with_body(mod, Tuple([body, body.args[0]]))


@checked
def difference(before: IRModule, after: IRModule, seed: int = 0) -> float:
    """How far apart two programs are when the interpreter runs both on the same seeded inputs: 0 is not at all,
    infinity that they give other shapes. Raises RelayError `explore.function` for results that cannot be compared,
    `explore.other-inputs` for programs that take another number of inputs."""
    first, second = (relay.transform.InferType()(mod) for mod in (before, after))
    taken, wanted = (len(mod["main"].params) for mod in (first, second))
    if taken != wanted:
        raise RelayError(
            f"these programs cannot be given the same inputs: one takes {taken}, the other {wanted}",
            code="explore.other-inputs",
            help="bind the same parameters in both: relay.transform.BindParams(params)(mod)",
        )
    inputs = random_inputs(first["main"], seed)
    expected, got = (comparable(Interpreter(mod).evaluate()(*inputs)) for mod in (first, second))
    return distance(got, expected)


def needs_vm(mod: IRModule) -> bool:
    """Whether the program has control flow, recursion or data types, which the graph executor has not."""
    return not is_static_graph(mod)


def leaves(value: object, tags: bool = False) -> list[np.ndarray]:
    """The arrays in a result, in their order; with `tags` also the bits that say which constructor made a value."""
    found: list[np.ndarray] = []
    stack = [value]
    while stack:  # a list may be long
        item = stack.pop()
        fields = item if isinstance(item, (tuple, list)) else getattr(item, "fields", None)
        if tags and (tag := getattr(item, "tag", 0)):
            found.append(np.array([tag >> k & 1 for k in range(32)]))
        if fields is None:
            found.append(np.asarray(item.numpy() if isinstance(item, NDArray) else item))
        else:
            stack.extend(reversed(fields))
    return found


def comparable(value: object) -> list[np.ndarray]:
    """What of a result is compared; raises RelayError `explore.function` where it holds functions or cells."""
    found = leaves(value, tags=True)
    for leaf in found:
        if leaf.dtype.hasobject:
            raise RelayError(
                f"a result that holds {leaf} cannot be compared",
                code="explore.function",
                help="let @main give arrays, tuples or data types: call the function, read the cell",
            )
    return found


def distance(got: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """The largest `relative_error` of results; infinity where their number or their shapes differ."""
    if [g.shape for g in got] != [e.shape for e in expected]:
        return float("inf")
    return max(map(relative_error, got, expected), default=0.0)
