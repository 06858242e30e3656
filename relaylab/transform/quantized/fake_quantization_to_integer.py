"""FakeQuantizationToInteger: what is dequantized only to be quantized again is computed on integers.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from typing import Annotated

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, Tuple, TupleGetItem
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op, facets, is_call_to, op_name
from relaylab.ir.trail import derived, made_from
from relaylab.ir.visit import children, rebuild, walk
from relaylab.support.errors import RelayValueError
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import dtype_of, typed
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import as_function, copied
from relaylab.transform.quantized.affine import registered
from relaylab.transform.quantized.fake_quantization_rules import (
    PRODUCTS,
    RULES,
    Known,
    QuantizedValue,
    Unquantized,
    field_of,
    refuse,
    rescaled,
)

QUANTIZE, DEQUANTIZE = "qnn.quantize", "qnn.dequantize"


def _goal(node: Call) -> QuantizedValue:
    """What a qnn.quantize asks for."""
    return QuantizedValue(node, node.args[1], node.args[2], dtype_of(node), facets(node).axis)


def _source(node: Call) -> QuantizedValue:
    """What a qnn.dequantize reads."""
    value, scale, zero = node.args
    return QuantizedValue(value, scale, zero, dtype_of(value), facets(node).axis)


def _region(root: Expr) -> list[Expr]:
    """The nodes between dequantizations and `root`."""
    below = lambda n: () if is_call_to(n, DEQUANTIZE) else children(n)
    return [n for n in walk((root,), below) if not isinstance(n, Op)]


def _stays_real(nodes: list[Expr]) -> bool:
    """Whether a region computes with real numbers that come from elsewhere, so that integers are not asked of it."""
    graph = (Constant, Tuple, TupleGetItem)
    return not any(is_call_to(n, DEQUANTIZE) for n in nodes) or not all(
        isinstance(n, graph) or (isinstance(n, Call) and isinstance(n.op, Op)) for n in nodes
    )


def _quantity(node: Expr, known: dict[Expr, Known], goal: QuantizedValue | None, qat: bool = False) -> Known:
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
        case Call(op=Op()):
            args = [known[a] for a in node.args]
            found = registered(node, args, goal, qat)
            if found is None and op_name(node) not in RULES:
                raise refuse(node, "there is no rule for it")
            found = found or RULES[op_name(node)](node, args, goal)
            return QuantizedValue(
                copied(found.value, node), found.scale, found.zero, found.dtype, found.axis, found.clamped
            )
    raise refuse(node, "there is no rule for it")


def _on_integers(node: Call, nodes: list[Expr]) -> Expr:
    """The integers that a qnn.quantize gives, computed from integers by the region before it."""
    goal, known = _goal(node), {}
    for part in nodes:
        known[part] = _quantity(part, known, goal)
    found = known[node.args[0]]
    if not isinstance(found, QuantizedValue):
        raise refuse(node, "its argument is no tensor of integers")
    return copied(rescaled(found, goal), node)


def _products(func: Function) -> dict[Expr, QuantizedValue]:
    """The last values of chains of products of quantized numbers, whatever is done with them."""
    known: dict[Expr, Known] = {}
    products: set[Expr] = set()
    used: set[Expr] = set()
    for node in walk((func.body,)):
        try:
            known[node] = _quantity(node, known, None, True)
        except (Unquantized, KeyError):
            used.update(children(node))
            continue
        parts = [c for c in children(node) if c in products]
        if parts or op_name(node) in PRODUCTS:
            products.add(node)
    used.add(func.body)
    return {n: q for n in products if n in used and isinstance(q := known[n], QuantizedValue)}


def _real(found: QuantizedValue, node: Expr) -> Expr:
    return copied(call(DEQUANTIZE, found.value, found.scale, found.zero, axis=found.axis), node)


def to_integer(func: Function, hard_fail: bool = False) -> Function:
    """A typed function with its regions between qnn.dequantize and qnn.quantize computed on integers."""

    found: dict[Expr, Expr] = {}
    for node in walk((func,)):
        if is_call_to(node, QUANTIZE) and not _stays_real(region := _region(node.args[0])):
            try:
                found[node] = _on_integers(node, region)
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
    return as_function(memo[func])


@pass_(level=0, requires=("InferType",), preserves=False)
class FakeQuantizationToInteger(FunctionPass):
    """Computes on integers what lies between qnn.dequantize and qnn.quantize, where every operator there has a rule.

    With `hard_fail` a region without such a form is an error, else it stays; what is computed from numbers that were
    real before, as the inputs of a model, stays in any case. With `use_qat` products of dequantized
    numbers that are not quantized again are computed on integers too. Results may differ by one quantization step.
    """

    hard_fail: Annotated[bool, "A region without an integer form is an error; else it stays."] = False
    use_qat: Annotated[bool, "Also compute products that are not quantized again on integers."] = False

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        out = to_integer(func, self.hard_fail)
        if not self.use_qat:
            return out
        out = typed(out, mod)
        return _replaced(out, {n: _real(q, n) for n, q in _products(out).items()})
