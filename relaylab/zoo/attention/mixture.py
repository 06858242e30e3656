"""A mixture of experts (Shazeer et al., 2017): each token's state goes through the experts that a gate chooses."""

from __future__ import annotations

from relaylab.ir import Expr, Function, IRModule, const, free_vars, var
from relaylab.op import add, argmax, divide, multiply, nn, one_hot, split, subtract, sum, zeros_like
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.zoo.attention.layers import linear, silu
from relaylab.zoo.init import create_workload


def gates(shares: Expr, experts: int, chosen: int) -> Expr:
    """`shares` (tokens, experts) of the `chosen` largest of each token, made to sum to 1; all others are 0.

    The largest is taken so many times: unlike a sort, that is a formula for each element, which compiled graphs have.
    """
    left, kept = shares, zeros_like(shares)
    for _ in range(chosen):
        hit = one_hot(argmax(left, axis=-1), const(1.0), const(0.0), experts, -1, "float32")
        kept, left = add(kept, multiply(shares, hit)), subtract(left, hit)
    return divide(kept, sum(kept, axis=-1, keepdims=True))


@checked
def get_net(tokens: int = 32, hidden: int = 512, inner: int = 1024, experts: int = 8, chosen: int = 2) -> Function:
    """States (tokens, hidden) from `data` of the same shape, through the `chosen` of the `experts` that fit best.

    All experts are computed and those not chosen count 0: which ones they are is known only at run time, and a graph
    has one shape.
    """
    if not 1 <= chosen <= experts:
        raise RelayValueError(f"{chosen} of {experts} experts cannot be chosen", code="zoo.experts")
    x = var("data", shape=(tokens, hidden))
    shares = gates(nn.softmax(linear(x, "gate", experts, bias=False)), experts, chosen)
    out = None
    for k, share in enumerate(split(shares, experts, axis=1)):
        gate, up = (linear(x, f"expert{k}_{part}", inner, bias=False) for part in ("gate", "up"))
        made = multiply(linear(multiply(silu(gate), up), f"expert{k}_down", hidden, bias=False), share)
        out = made if out is None else add(out, made)
    net = out if out is not None else x
    return Function(free_vars(net), net)


@checked
def get_workload(**sizes: int) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters; the sizes are those of `get_net`."""
    return create_workload(get_net(**sizes))
