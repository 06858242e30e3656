"""Counting: operators, layers, data types, multiply-accumulates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from relaylab.analysis.cost import call_macs
from relaylab.ir.expr import Call, Constant, Expr, Function, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import facets, op_name
from relaylab.ir.types import TensorType, Type, type_leaves
from relaylab.ir.visit import children, fold, walk
from relaylab.support.checked import checked


def _roots(program: Expr | IRModule) -> list[Expr]:
    return list(program.functions.values()) if isinstance(program, IRModule) else [program]


def list_op_freqs(mod: IRModule | Expr) -> dict[str, int]:
    """How often each operator is called, in the order of first use; fused functions are looked into."""
    return dict(Counter(op_name(n) for n in walk(_roots(mod)) if op_name(n)))


def list_fake_quantized_op_freqs(mod: IRModule | Expr) -> dict[str, int]:
    """How often each operator is called between `qnn.dequantize` and `qnn.quantize`, that is, on fake-quantized values.

    These are the calls that FakeQuantizationToInteger looks at: those from which a `qnn.quantize`
    is computed, back to the nearest `qnn.dequantize`.
    """
    counts: Counter[str] = Counter()
    for node in walk(_roots(mod)):
        if isinstance(node, Call) and op_name(node) == "qnn.quantize":
            counts.update(_region(node.args[0]))
    return dict(counts)


def _region(root: Expr) -> list[str]:
    """The operators above the nearest dequantizations; none if the region has no dequantization at all."""
    nodes = list(walk((root,), lambda n: () if op_name(n) == "qnn.dequantize" else children(n)))
    names = [op_name(n) for n in nodes if op_name(n)]
    return [n for n in names if n != "qnn.dequantize"] if "qnn.dequantize" in names else []


def count_layers(expr: Expr | IRModule, valid_ops: Sequence[str]) -> int:
    """The largest number of calls of `valid_ops` along one path through the program."""
    names = set(valid_ops)
    return max(
        (fold(r, lambda n, below: (op_name(n) in names) + max(below, default=0)) for r in _roots(expr)), default=0
    )


@checked
class LayerCounter:
    """Counts the calls of `valid_ops` along a path: `visit(expr)`, then `count()`."""

    def __init__(self, valid_ops: Sequence[str]):
        self.valid_ops, self._deepest = list(valid_ops), 0

    def visit(self, expr: Expr) -> None:
        """Look at an expression."""
        self._deepest = max(self._deepest, count_layers(expr, self.valid_ops))

    def count(self) -> int:
        """The largest number of calls along one path of what was visited."""
        return self._deepest


def all_dtypes(expr: Expr) -> set[str]:
    """The data types of all tensors in a typed program."""
    return {part.dtype for t in _types(walk((expr,))) for part in type_leaves(t) if isinstance(part, TensorType)}


def _types(nodes: Iterable[Expr]) -> Iterable[Type]:
    for node in nodes:
        found = node.inferred or (node.type_annotation if isinstance(node, Var) else None)
        if isinstance(node, (Constant, Call, Function, Var)) and found is not None:
            yield found


COUNTED = ("nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.batch_matmul")


def get_total_mac_number(expr: Expr) -> int:
    """The multiply-accumulates of all two-dimensional convolutions and matrix products of a typed program (census
    §1.8).

    As in Relay, a transposed convolution counts as if each element of its result saw the whole
    kernel; `node_cost` gives what it really takes.
    """
    return sum(_relay_macs(n) for n in walk((expr,)) if isinstance(n, Call) and op_name(n) in COUNTED)


def _relay_macs(call: Call) -> int:
    if op_name(call) != "nn.conv2d_transpose":
        return call_macs(call)
    data, weight, out = (_shape(e) for e in (*call.args, call))
    attrs = facets(call)
    channels = data[attrs.data_layout.index("C")]
    kernel = math.prod(weight[attrs.kernel_layout.index(a)] for a in "HW")
    return math.prod(out) * channels * kernel


def _shape(expr: Expr) -> tuple[int, ...]:
    t = expr.checked_type
    return t.concrete_shape if isinstance(t, TensorType) else ()
