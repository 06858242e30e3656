"""FakeQuantizationToInteger: what is dequantized only to be quantized again is computed on integers."""

from __future__ import annotations

from typing import Any

from relaylab.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    Op,
    Tuple,
    TupleGetItem,
    children,
    facets,
    rebuild,
    walk,
)
from relaylab.ir.op import is_call_to, op_name
from relaylab.ir.trail import derived, made_from
from relaylab.support.errors import RelayValueError
from relaylab.transform.build import call
from relaylab.transform.copying import copied
from relaylab.transform.fake_quantization_rules import (
    RULES,
    Quantity,
    Unquantized,
    field_of,
    is_one,
    refuse,
    rescaled,
)
from relaylab.transform.infer_type import dtype_of, typed
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass

QUANTIZE, DEQUANTIZE = "qnn.quantize", "qnn.dequantize"


def _goal(node: Call) -> Quantity:
    """What a qnn.quantize asks for."""
    if not is_one(node.args[1]):
        raise refuse(node, "a scale for each channel of the result")
    return Quantity(node, node.args[1], node.args[2], dtype_of(node), facets(node).axis)


def _source(node: Call) -> Quantity:
    """What a qnn.dequantize reads."""
    value, scale, zero = node.args
    return Quantity(value, scale, zero, dtype_of(value), facets(node).axis)


def _region(root: Expr) -> list[Expr]:
    """The nodes between dequantizations and `root`."""
    below = lambda n: () if is_call_to(n, DEQUANTIZE) else children(n)
    return [n for n in walk((root,), below) if not isinstance(n, Op)]


def _quantity(node: Expr, known: dict[Expr, Any], goal: Quantity | None) -> Any:
    """The quantity (for tuples a list, for constants the constant) that a node of a region stands for."""
    match node:
        case Call() if is_call_to(node, DEQUANTIZE):
            return _source(node)
        case Constant():
            return node
        case Tuple():
            return [known[f] for f in node.fields]
        case TupleGetItem():
            return field_of(node, known[node.tuple_value])
        case Call() if op_name(node) in RULES:
            found = RULES[op_name(node)](node, [known[a] for a in node.args], goal)
            return Quantity(copied(found.value, node), found.scale, found.zero, found.dtype, found.axis, found.clamped)
    raise refuse(node, "there is no rule for it")


def _on_integers(node: Call) -> Expr:
    """The integers that a qnn.quantize gives, computed from integers."""
    goal, known = _goal(node), {}
    nodes = _region(node.args[0])
    if not any(is_call_to(n, DEQUANTIZE) for n in nodes):
        raise refuse(node, "nothing is dequantized before it")
    for part in nodes:
        known[part] = _quantity(part, known, goal)
    found = known[node.args[0]]
    if not isinstance(found, Quantity):
        raise refuse(node, "its argument is no tensor of integers")
    return copied(rescaled(found, goal), node)


def _products(func: Function) -> dict[Expr, Quantity]:
    """The last values of chains of products of quantized numbers, whatever is done with them."""
    known: dict[Expr, Any] = {}
    products: set[Expr] = set()
    used: set[Expr] = set()
    for node in walk((func.body,)):
        try:
            known[node] = _quantity(node, known, None)
        except (Unquantized, KeyError):
            used.update(children(node))
            continue
        parts = [c for c in children(node) if c in products]
        if parts or op_name(node) in ("nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.batch_matmul"):
            products.add(node)
    used.add(func.body)
    return {n: known[n] for n in products if n in used and isinstance(known[n], Quantity)}


def _real(found: Quantity, node: Expr) -> Expr:
    return copied(call(DEQUANTIZE, found.value, found.scale, found.zero, axis=found.axis), node)


def to_integer(func: Function, hard_fail: bool = False) -> Function:
    """A typed function with its regions between qnn.dequantize and qnn.quantize computed on integers."""

    found: dict[Expr, Expr] = {}
    for node in walk((func,)):
        if is_call_to(node, QUANTIZE):
            try:
                found[node] = _on_integers(node)  # type: ignore[arg-type]
            except Unquantized as reason:
                if hard_fail:
                    text = f"a region before qnn.quantize cannot be computed on integers: {reason}"
                    raise RelayValueError(text, code="quantize.no-integer-form") from None
    return _replaced(func, found)


def _replaced(func: Function, found: dict[Expr, Expr]) -> Function:
    """`func` with other expressions for some of its nodes, also inside these expressions."""
    if not found:
        return func
    memo: dict[Expr, Expr] = {}
    below = lambda n: (found[n],) if n in found else children(n)
    for node in walk((func,), below):
        with made_from(node):
            new = memo[found[node]] if node in found else rebuild(node, [memo[c] for c in children(node)])
            memo[node] = derived(new, node)
    return memo[func]  # type: ignore[return-value]


@register_pass(preserves=False)
def FakeQuantizationToInteger(hard_fail: bool = False, use_qat: bool = False) -> Pass:
    """Computes on integers what lies between qnn.dequantize and qnn.quantize, where every operator there has a rule.

    With `hard_fail` a region without such a form is an error, else it stays. With `use_qat` products of dequantized
    numbers that are not quantized again are computed on integers too. Results may differ by one quantization step.
    """

    def run(func: Function, mod: IRModule, ctx: object) -> Function:
        out = to_integer(func, hard_fail)
        if not use_qat:
            return out
        out = typed(out, mod)  # type: ignore[assignment]
        return _replaced(out, {n: _real(q, n) for n, q in _products(out).items()})

    return FunctionPass(PassInfo(0, "FakeQuantizationToInteger", ("InferType",)), run)
