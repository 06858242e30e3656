"""Running random networks compiled, for comparing with the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from support.networks import Network

from relaylab import relay
from relaylab.codegen.executors import create_executor
from relaylab.interp import Interpreter
from relaylab.ir import IRModule
from relaylab.runtime import graph_executor
from relaylab.runtime.device import cpu

TARGETS = {"avx512": "llvm", "avx2": "llvm -mattr=-avx512f", "generic": "llvm -mcpu=x86-64"}


def flat(value: Any) -> list[np.ndarray]:
    """The arrays of nested results, left to right."""
    if isinstance(value, (tuple, list)) or type(value).__name__ == "ADT":
        return [a for part in value for a in flat(part)]
    return [np.asarray(value.numpy() if hasattr(value, "numpy") else value)]


def interpreted(mod: IRModule, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What the interpreter computes."""
    return flat(Interpreter(mod).evaluate()(**inputs))


def compiled(net: Network, target: str, level: int, kind: str = "graph") -> list[np.ndarray]:
    """What compiled code computes: by the graph executor, run twice, or by the executor of another kind."""
    rest = {n: d for n, d in net.inputs.items() if n not in net.params}
    with relay.transform.PassContext(opt_level=level):
        if kind != "graph":
            return flat(create_executor(kind, net.mod, target=target, params=net.params).evaluate()(**rest))
        lib = relay.build(net.mod, target=target, params=net.params)
    module = graph_executor.GraphModule(lib["default"](cpu(0)))
    first = _run(module, rest)
    again = _run(module, rest)
    for a, c in zip(first, again):
        np.testing.assert_array_equal(a, c, err_msg="the second run gives another result")
    return first


def _run(module: Any, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    module.run(**inputs)
    return [module.get_output(k).numpy().copy() for k in range(module.get_num_outputs())]


def difference(got: Sequence[np.ndarray], want: Sequence[np.ndarray], tolerance: float) -> str:
    """How results differ, in words; empty where they agree: integers exactly, floats to `tolerance` of the largest."""
    if len(got) != len(want):
        return f"{len(got)} results instead of {len(want)}"
    for k, (a, c) in enumerate(zip(got, want)):
        if a.shape != c.shape or a.dtype != c.dtype:
            return f"result {k} is {a.dtype}{a.shape}, not {c.dtype}{c.shape}"
        if c.dtype.kind != "f":
            off = a != c
        else:
            a, c = a.astype("float64"), c.astype("float64")
            finite = np.abs(c[np.isfinite(c)])
            size = max(1.0, float(finite.max())) if finite.size else 1.0
            off = ~np.isclose(a, c, rtol=tolerance, atol=tolerance * size, equal_nan=True)
        if off.any():
            return f"result {k} differs in {off.sum()} of {off.size} places: {a[off][:4]} instead of {c[off][:4]}"
    return ""


def disagreement(net: Network, target: str = "llvm", level: int = 3, kind: str = "graph") -> str:
    """How compiled code and the interpreter differ on a network; nothing where they agree."""
    return difference(compiled(net, target, level, kind), interpreted(net.mod, net.inputs), net.tolerance)
