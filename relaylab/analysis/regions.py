"""Annotated regions: the parts of a program between `annotation.compiler_begin` and `annotation.compiler_end`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from relaylab.ir.expr import Call, Expr
from relaylab.ir.op import Op, is_call_to
from relaylab.ir.visit import children, walk
from relaylab.support.checked import checked


@dataclass(slots=True, eq=False)
class AnnotatedRegion:
    """One connected part: its number, the compiler it is for, its nodes, the calls that open and close it.

    The numbers are TVM's, and not consecutive: every call that opens a region counts, and what joins several has the
    number of its first argument's.
    """

    id: int
    target: str
    nodes: dict[Expr, None] = field(default_factory=dict)
    ins: list[Expr] = field(default_factory=list)
    outs: list[Expr] = field(default_factory=list)

    @property
    def args(self) -> list[Expr]:
        """The calls that open it."""
        return self.ins

    @property
    def rets(self) -> list[Expr]:
        """The calls that close it."""
        return self.outs


@checked
class AnnotatedRegionSet:
    """The regions of an expression: two nodes are in one region if no annotation lies between them."""

    def __init__(
        self,
        expr: Expr,
        region_begin_op: Op | str = "annotation.compiler_begin",
        region_end_op: Op | str = "annotation.compiler_end",
    ):
        self.begin, self.end = _name(region_begin_op), _name(region_end_op)
        self.leader: dict[Expr, Expr] = {}
        self.number: dict[Expr, int] = {}
        self.counted = 0
        order = list(walk((expr,)))
        for node in order:
            self._link(node)
        self.regions = self._collect(order)
        self.of = {n: r for r in self.regions for n in r.nodes}

    def _find(self, node: Expr) -> Expr:
        root = node
        while (up := self.leader.setdefault(root, root)) is not root:
            root = up
        while self.leader[node] is not root:
            self.leader[node], node = root, self.leader[node]
        return root

    def _link(self, node: Expr) -> None:
        """A call that closes a region joins what it closes; one that opens a region joins its users, not what it
        reads.
        """
        if is_call_to(node, self.begin):
            self._count(node)
            return
        parts = [self._find(p) for p in children(node) if children(p) and not is_call_to(p, self.end)]
        numbers = [self.number[root] for root in parts if root in self.number]
        for root in parts:
            self.leader[self._find(root)] = self._find(node)
        if numbers:
            self.number[self._find(node)] = numbers[0]

    def _count(self, root: Expr) -> int:
        self.number[root] = self.counted
        self.counted += 1
        return self.number[root]

    def _collect(self, order: list[Expr]) -> list[AnnotatedRegion]:
        marked = {self._find(n) for n in order if is_call_to(n, self.begin, self.end)}
        regions: dict[Expr, AnnotatedRegion] = {}
        for node in order:
            root = self._find(node)
            if root not in marked or not children(node):
                continue
            if root not in regions:  # one that nothing opens, as it reads nothing, counts last
                number = self.number.get(root)
                regions[root] = AnnotatedRegion(self._count(root) if number is None else number, "")
            region = regions[root]
            region.nodes[node] = None
            if isinstance(node, Call) and node.attrs is not None and is_call_to(node, self.begin, self.end):
                region.target = str(node.attrs["compiler"])
                (region.ins if is_call_to(node, self.begin) else region.outs).append(node)
        return list(regions.values())

    def get_region(self, expr: Expr) -> AnnotatedRegion | None:
        """The region that a node is in, or None."""
        return self.of.get(expr)

    def __iter__(self) -> Iterator[AnnotatedRegion]:
        return iter(self.regions)

    def __len__(self) -> int:
        return len(self.regions)


def _name(op: Op | str) -> str:
    return op.name if isinstance(op, Op) else op
