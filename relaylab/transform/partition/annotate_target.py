"""AnnotateTarget: marks the operators that external compilers can take, each with its own borders."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, cast

from relaylab import ir
from relaylab.ir.types import type_leaves
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import copied

BEGIN, END = "annotation.compiler_begin", "annotation.compiler_end"
DEFAULT = "default"
"""The compiler that takes what no other one takes: relaylab itself."""


def compiler_of(node: ir.Expr) -> str:
    """The compiler that a border is for."""
    return str(ir.facets(cast(ir.Call, node)).compiler)


def supports(target: str, node: ir.Call) -> bool:
    """Whether a compiler takes a call: its operator's `target.<name>` or its function's `Composite` says so."""
    if isinstance(node.op, ir.Function):
        return str(node.op.attr("Composite", "")).partition(".")[0] == target
    check = cast(ir.Op, node.op).get_attr(f"target.{target}")
    return bool(check(node) if callable(check) else check)


def _crosses(value: ir.Expr) -> bool:
    """Whether a value can cross a border: tensors, tuples of them, and cells."""
    t = type_of(value)
    return t is not None and (type(t) is ir.TensorType or _is_data(t))


@lru_cache(1024)  # a tuple of many fields is asked for once for each
def _is_data(t: ir.Type) -> bool:
    return all(isinstance(part, (ir.TensorType, ir.TupleType, ir.RefType)) for part in type_leaves(t))


def _closed(node: ir.Expr) -> bool:
    """Functions whose inside belongs to whoever takes the call."""
    return isinstance(node, ir.Function) and bool(node.is_primitive or node.attr("Composite") or node.attr("Compiler"))


class _Annotator:
    """Rewrites one function; knows for every node made so far which compiler takes it."""

    def __init__(self, targets: Sequence[str], others: bool):
        self.targets, self.others = targets, others
        self.taken: dict[ir.Expr, str] = {}

    def at(self, new: ir.Expr, old: ir.Expr) -> ir.Expr:
        if isinstance(new, ir.Call) and ir.is_call_to(new, BEGIN, END):
            return self._border(new)
        if not all(map(_crosses, _operands(old))) or not _crosses(old):
            return self._around(new)
        match new:
            case ir.Call(op=op) if isinstance(op, ir.Op) or (isinstance(op, ir.Function) and op.attr("Composite")):
                return self._inside(new, self._target(cast(ir.Call, old)))
            case ir.Tuple() | ir.TupleGetItem() if self.others and _operands(new):
                return self._inside(new)
            case ir.RefCreate() | ir.RefRead() | ir.RefWrite() if (
                self.others and self._common(ir.children(new)) == DEFAULT
            ):
                return self._inside(new)  # no other compiler keeps cells
            case ir.Let() if isinstance(new.value, ir.Function):
                return ir.rebuild(new, (new.var, new.value, self._ended(new.body)))
            case _:
                return self._around(new)

    def _border(self, new: ir.Call) -> ir.Expr:
        """Borders that were drawn before are drawn again, as the operators within them ask."""
        value = new.args[0]
        if ir.is_call_to(new, BEGIN):
            return value
        if isinstance(value, ir.Var):
            return new  # the region is that of the value it was bound to
        self.taken.setdefault(value, compiler_of(new))
        return self._end(value)

    def _target(self, old: ir.Call) -> str:
        """The compiler that takes a call: one that took it before, else the first that can."""
        before = compiler_of(old.args[0]) if old.args and ir.is_call_to(old.args[0], BEGIN) else DEFAULT
        return before if before != DEFAULT else next((t for t in self.targets if supports(t, old)), DEFAULT)

    def _inside(self, new: ir.Expr, target: str = "") -> ir.Expr:
        """A node whose operands enter the region of a compiler, without `target` of the one that took them all."""
        first = len(ir.children(new)) - len(_operands(new))
        target, entered = self._entered(_operands(new), target)
        out = ir.rebuild(new, [*ir.children(new)[:first], *entered])
        self.taken[out] = target
        return out

    def _entered(self, args: Sequence[ir.Expr], target: str = "") -> tuple[str, list[ir.Expr]]:
        target = target or self._common(args)
        # what is made from nothing comes in as a variable does
        left = [arg if isinstance(arg, ir.Call) and not arg.args else self._left(arg) for arg in args]
        return target, [copied(call(BEGIN, value, compiler=target), value) for value in left]

    def _common(self, args: Sequence[ir.Expr]) -> str:
        """The compiler that takes all of `args`."""
        found = {self.taken.get(arg, DEFAULT) for arg in args}
        return found.pop() if len(found) == 1 else DEFAULT

    def _around(self, new: ir.Expr) -> ir.Expr:
        """A node of no compiler: what it uses has left its region."""
        return ir.rebuild(new, [self._ended(c) for c in ir.children(new)])

    def _left(self, value: ir.Expr) -> ir.Expr:
        return self._end(value) if value in self.taken else value

    def _ended(self, value: ir.Expr) -> ir.Expr:
        """A value that has left its region, and is known to come from there."""
        if value not in self.taken or ir.is_call_to(value, END):
            return value
        end = self._end(value)
        self.taken[end] = self.taken[value]
        return end

    def _end(self, value: ir.Expr) -> ir.Expr:
        """A border of its own for each use."""
        return copied(call(END, value, compiler=self.taken[value]), value)


def _operands(node: ir.Expr) -> tuple[ir.Expr, ...]:
    """The sub-expressions that are values: not the operator that is called."""
    return node.args if isinstance(node, ir.Call) else ir.children(node)


@pass_(level=0, requires=("InferType",), example={"targets": ["example"]})
class AnnotateTarget(FunctionPass):
    """Marks what external compilers take: the first of `targets` whose check `target.<name>` holds, else `default`.

    Every operand of an operator, or of a function with the attribute `Composite`, enters a region by
    `annotation.compiler_begin`, every result leaves it by `annotation.compiler_end`. Tuples and projections go to the
    compiler that takes all their operands, unless `include_non_call_ops` is false.
    """

    targets: Annotated[str | Sequence[str], "The names of compilers, the preferred one first."]
    include_non_call_ops: Annotated[bool, "Tuples and projections go with their operands too."] = True

    def run(self, func: ir.Function, mod: ir.IRModule, ctx: PassContext) -> ir.Expr:
        names = [self.targets] if isinstance(self.targets, str) else list(self.targets)
        return ir.rewrite(func, _Annotator(names, self.include_non_call_ops).at, keep=_closed)
