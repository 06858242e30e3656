"""Which products read rows of zeros that padding made, as attention in windows does.

Strassen's products mix rows: what is zero would be a rounding error of another row, and a norm that divides it later
makes a direction of it. These are computed directly.
"""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.codegen.network.network import Network, NetworkTensor, Operation, flatten
from relaylab.ir import Call, Expr, Op, Tuple, walk
from relaylab.ir.op import is_call_to
from relaylab.ir.visit import operands_of
from relaylab.op.base import OpPattern

PRODUCTS = ("nn.dense", "nn.matmul", "nn.batch_matmul")


def padded_products(network: Network) -> set[Operation]:
    """The operations with products of tensors in which nothing but moves lies between a padding and them."""
    padded: set[NetworkTensor] = set()
    found: set[Operation] = set()
    for operation in network.operations:
        given = [p for p, v in zip(operation.function.params, operation.inputs) if _roots(v) & padded]
        body = operation.function.body
        if given and any(is_call_to(e, *PRODUCTS) for e in walk((body,), operands_of)):
            found.add(operation)
        if any(e in given or is_call_to(e, "nn.pad") for e in walk((body,), _moved)):
            padded |= _roots(operation.outputs)
    return found


def _roots(value: NetworkTensor | tuple) -> set[NetworkTensor]:
    return {t.root for t in flatten(value)}


def _moved(expr: Expr) -> Sequence[Expr]:
    """What an expression only moves."""
    moves = isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.pattern == OpPattern.INJECTIVE
    return operands_of(expr) if moves or isinstance(expr, Tuple) else ()
