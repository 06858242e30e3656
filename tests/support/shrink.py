"""A failing network made small: fewer results, and inputs in the place of what need not be computed.

small = shrunk(net, lambda n: disagreement(n, "llvm", 3))
print(small.mod)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from support.networks import Network

from relaylab import relay
from relaylab.analysis import infer_module
from relaylab.interp import Interpreter
from relaylab.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    post_order,
    substitute,
)
from relaylab.ir.free import free_vars
from relaylab.transform.normal_forms.to_graph_normal_form import to_gnf

Fails = Callable[[Network], str]


def shrunk(net: Network, fails: Fails) -> Network:
    """A smaller network on which `fails` still says something; the network itself where there is none."""
    best = net
    for candidate in (_with_body(net, to_gnf(net.mod["main"]).body), _bare(net)):
        best = candidate if _fails(fails, candidate) else best
    while True:
        smaller = next((c for c in _candidates(best) if _fails(fails, c)), None)
        if smaller is None:
            return best
        best = smaller


def _fails(fails: Fails, net: Network) -> bool:
    try:
        return bool(fails(net))
    except Exception:
        return True


def _bare(net: Network) -> Network:
    """Parameters as inputs."""
    return Network(net.mod, net.inputs, {}, net.tolerance)


def _with_body(net: Network, body: Expr, more: dict[Var, np.ndarray] | None = None) -> Network:
    """The network of another body, over the same inputs and some new ones."""
    named = {**net.inputs, **{v.name_hint: d for v, d in (more or {}).items()}}
    params = free_vars(body)
    inputs = {p.name_hint: named[p.name_hint] for p in params}
    mod = infer_module(IRModule.from_expr(Function(params, body)))
    return Network(mod, inputs, {n: d for n, d in net.params.items() if n in inputs}, net.tolerance)


def _candidates(net: Network):
    """Smaller networks: a part as the only result, a part as an input."""
    body = net.mod["main"].body
    parts = [n for n in post_order(body) if isinstance(n, (Call, TupleGetItem, Tuple)) and n is not body]
    closed = [p for p in parts if all(v.name_hint in net.inputs for v in free_vars(p))]
    for part in closed:
        yield _with_body(net, part)
    for part in reversed(closed):
        if not isinstance(part, Tuple) and isinstance(part.inferred, TensorType):
            yield _cut(net, body, part)
    if isinstance(body, Tuple):
        for k in range(len(body.fields)):
            yield _with_body(net, Tuple([f for j, f in enumerate(body.fields) if j != k]))
    for part in [n for n in post_order(body) if isinstance(n, Constant) and n.data.numpy().ndim]:
        yield _cut(net, body, part)


def _cut(net: Network, body: Expr, part: Expr) -> Network:
    """The network with an input in the place of a part."""
    used = free_vars(part)
    func = infer_module(IRModule.from_expr(Function(used, part)))
    value = Interpreter(func).evaluate()(*(net.inputs[v.name_hint] for v in used))
    var = relay.var(f"y{len(net.inputs)}_{abs(hash(part)) % 9973}", part.inferred)
    return _with_body(net, substitute(body, {part: var}), {var: np.asarray(value)})
