"""The graph that operator fusion looks at: every value with its users, and how each user reads it.

Built in post-order; an edge carries the pattern of the operator that reads. A value that something
other than an operator sees (a branch, a `let`, the result of a function) is `external` and is never
fused through. The immediate post-dominator of a value is the first one through which all its uses
flow (Lengauer and Tarjan, 1979; found here as lowest common ancestors in the tree built so far).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, Tuple, TupleGetItem
from relaylab.ir.op import Op
from relaylab.ir.types import TensorType, TupleType, is_dynamic
from relaylab.ir.visit import children, kinds_in, walk
from relaylab.op.base import OpPattern
from relaylab.transform.engine.infer_type import type_of

ELEMWISE, BROADCAST, INJECTIVE = OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE
COMM_REDUCE, OUT_FUSABLE, TUPLE, OPAQUE = (
    OpPattern.COMM_REDUCE,
    OpPattern.OUT_ELEMWISE_FUSABLE,
    OpPattern.TUPLE,
    OpPattern.OPAQUE,
)

_SIMPLE = ("int32", "int64", "float32", "float64", "bool")


class FusionNode:
    """A value of the program: its pattern, its users with each edge's pattern, its place in the post-dominator tree."""

    __slots__ = (
        "ref",
        "index",
        "pattern",
        "outputs",
        "external",
        "parent",
        "depth",
        "relation",
        "jump",
        "jump_relation",
    )

    def __init__(self, ref: Expr):
        self.ref, self.index = ref, -1
        self.pattern, self.external = OPAQUE, False
        self.outputs: list[tuple[FusionNode, OpPattern]] = []
        self.parent: FusionNode | None = None
        self.depth, self.relation = 1, OPAQUE
        self.jump: FusionNode | None = None
        self.jump_relation = OPAQUE

    def hang(self, parent: FusionNode | None, relation: OpPattern) -> None:
        """Take a place in the tree below `parent`; ancestors are found with jump pointers (Myers, 1983)."""
        self.parent, self.relation = parent, relation
        if parent is None:
            return
        self.depth = parent.depth + 1
        far = parent.jump
        if (
            far is not None
            and parent.depth - far.depth == far.depth - (far.jump.depth if far.jump else 0)
            and far.jump is not None
        ):
            self.jump, self.jump_relation = far.jump, max(relation, parent.jump_relation, far.jump_relation)
        else:
            self.jump, self.jump_relation = parent, relation


def build(func: Function) -> list[FusionNode]:
    """The nodes of a function's graph in post-order, with their post-dominators."""
    nodes = _link(func)
    # backwards: all readers of a value have their places in the tree before the value takes its own
    for node in reversed(nodes):
        if node.external:
            continue
        node.hang(*_common(node.outputs))
    return nodes


def _link(func: Function) -> list[FusionNode]:
    known = {e: FusionNode(e) for e in visible_in(func) if type(e) is not Op}
    patterns: dict[Op, OpPattern | None] = {}  # asked of each operator once
    for index, (expr, node) in enumerate(known.items()):
        node.index, node.pattern = index, _pattern(expr, patterns)
        for part, edge in _reads(expr, node.pattern):
            read = known.get(part)
            if read is None:  # an operator that is passed on
                continue
            if edge is None:
                read.external = True
            else:
                read.outputs.append((node, edge))
    return list(known.values())


def is_closed(func: Function) -> bool:
    """Whether a function is a kernel or made for another compiler: it is not looked into."""
    return func.is_primitive or bool(func.attr("Compiler"))


def visible(expr: Expr) -> tuple[Expr, ...]:
    """The parts of an expression but for what closed functions consist of."""
    return () if type(expr) is Function and is_closed(expr) else children(expr)


def visible_in(func: Function) -> Iterable[Expr]:
    """Every node of a function but for what closed functions in it consist of, sub-expressions first."""
    nests = Function in kinds_in(func) or is_closed(func)
    return walk((func,), visible) if nests else walk((func,))  # whose order is known


def _pattern(expr: Expr, patterns: dict[Op, OpPattern | None]) -> OpPattern:
    """How a value is treated; `patterns` keeps what is the same for all calls of an operator."""
    match expr:
        case Constant():
            return ELEMWISE if expr.type.shape == () and expr.type.dtype in _SIMPLE else OPAQUE
        case Call(op=Op() as op):
            if op not in patterns:
                patterns[op] = None if getattr(op.definition, "data_dependent", False) else OpPattern(op.pattern)
            return _by_data(expr, op) if (known := patterns[op]) is None else known
        case Tuple():
            return TUPLE
        case TupleGetItem():
            return INJECTIVE if _of_tensors(expr) else OPAQUE
        case _:
            return OPAQUE


def _by_data(call: Call, op: Op) -> OpPattern:
    """How a call is treated whose shape data may decide: then nothing is fused with it."""
    found = type_of(call)
    return OPAQUE if found is not None and is_dynamic(found) else OpPattern(op.pattern)


def _of_tensors(expr: TupleGetItem) -> bool:
    found = type_of(expr.tuple_value)
    return isinstance(found, TupleType) and all(isinstance(f, TensorType) for f in found.fields)


def _reads(expr: Expr, pattern: OpPattern) -> list[tuple[Expr, OpPattern | None]]:
    """What an expression reads, and as what; None: it is not an operator's argument."""
    match expr:
        case Call(op=Op()):
            return [(a, _edge(expr, a) if pattern is BROADCAST else pattern) for a in expr.args]
        case Tuple():
            return [(f, INJECTIVE if isinstance(type_of(f), TensorType) else None) for f in expr.fields]
        case TupleGetItem() if pattern is INJECTIVE:
            return [(expr.tuple_value, INJECTIVE)]
        case Call():
            return [(expr.op, None), *((a, OPAQUE) for a in expr.args)]
        case Function() if is_closed(expr):
            return []
        case _:
            return [(part, None) for part in children(expr)]


def _edge(call: Call, arg: Expr) -> OpPattern:
    """Broadcasting that leaves the shape as it is is elementwise."""
    result, source = type_of(call), type_of(arg)
    same = isinstance(result, TensorType) and isinstance(source, TensorType) and result.shape == source.shape
    return ELEMWISE if same else BROADCAST


def _common(outputs: list[tuple[FusionNode, OpPattern]]) -> tuple[FusionNode | None, OpPattern]:
    """The first node through which all outputs flow, and the largest pattern on the way."""
    relation = ELEMWISE
    parent: FusionNode | None = None
    for i, (node, edge) in enumerate(outputs):
        if i == 0:
            parent = node
        elif parent is not None:
            parent, way = _ancestor(parent, node)
            relation = max(relation, way)
        relation = max(relation, edge)
    return parent, relation


def _climb(node: FusionNode, depth: int) -> tuple[FusionNode, OpPattern]:
    relation = ELEMWISE
    while node.depth > depth:
        if node.jump is not None and node.jump.depth >= depth:
            node, relation = node.jump, max(relation, node.jump_relation)
        else:
            node, relation = cast(FusionNode, node.parent), max(relation, node.relation)
    return node, relation


def _ancestor(a: FusionNode, b: FusionNode) -> tuple[FusionNode | None, OpPattern]:
    """The lowest common ancestor of two nodes, and the largest pattern on the ways to it."""
    depth = min(a.depth, b.depth)
    (x, r), (y, s) = _climb(a, depth), _climb(b, depth)
    relation = max(r, s)
    while x is not y:
        # jumps that end apart end below the common ancestor: both can be taken
        if x.jump is not y.jump and x.jump is not None and y.jump is not None and x.jump.depth == y.jump.depth:
            relation = max(relation, x.jump_relation, y.jump_relation)
            x, y = x.jump, y.jump
        elif x.parent is None or y.parent is None:
            return None, OPAQUE
        else:
            relation = max(relation, x.relation, y.relation)
            x, y = x.parent, y.parent
    return x, relation
