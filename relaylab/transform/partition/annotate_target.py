"""AnnotateTarget: marks the operators that external compilers can take, each with its own borders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, cast

from relaylab.ir import (
    Call,
    Expr,
    Function,
    IRModule,
    Let,
    Op,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    children,
    facets,
    rebuild,
    rewrite,
)
from relaylab.ir.op import is_call_to
from relaylab.ir.types import RefType, TensorType, TupleType, type_leaves
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import copied

BEGIN, END = "annotation.compiler_begin", "annotation.compiler_end"
DEFAULT = "default"
"""The compiler that takes what no other one takes: relaylab itself."""


def compiler_of(node: Expr) -> str:
    """The compiler that a border is for."""
    return str(facets(cast(Call, node)).compiler)


def supports(target: str, node: Call) -> bool:
    """Whether a compiler takes a call: its operator's `target.<name>` or its function's `Composite` says so."""
    if isinstance(node.op, Function):
        return str(node.op.attr("Composite", "")).partition(".")[0] == target
    check = cast(Op, node.op).get_attr(f"target.{target}")
    return bool(check(node) if callable(check) else check)


def _crosses(value: Expr) -> bool:
    """Whether a value can cross a border: tensors, tuples of them, and cells."""
    t = type_of(value)
    return t is not None and all(isinstance(part, (TensorType, TupleType, RefType)) for part in type_leaves(t))


def _closed(node: Expr) -> bool:
    """Functions whose inside belongs to whoever takes the call."""
    return isinstance(node, Function) and bool(node.is_primitive or node.attr("Composite") or node.attr("Compiler"))


class _Annotator:
    """Rewrites one function; knows for every node made so far which compiler takes it."""

    def __init__(self, targets: Sequence[str], others: bool):
        self.targets, self.others = targets, others
        self.taken: dict[Expr, str] = {}

    def at(self, new: Expr, old: Expr) -> Expr:
        if isinstance(new, Call) and is_call_to(new, BEGIN, END):
            return self._border(new)
        if not all(map(_crosses, _operands(old))) or not _crosses(old):
            return self._around(new)
        match new:
            case Call(op=op) if isinstance(op, Op) or (isinstance(op, Function) and op.attr("Composite")):
                return self._inside(new, self._target(cast(Call, old)))
            case Tuple() | TupleGetItem() if self.others and _operands(new):
                return self._inside(new)
            case RefCreate() | RefRead() | RefWrite() if self.others and self._common(children(new)) == DEFAULT:
                return self._inside(new)  # no other compiler keeps cells
            case Let() if isinstance(new.value, Function):
                return rebuild(new, (new.var, new.value, self._ended(new.body)))
            case _:
                return self._around(new)

    def _border(self, new: Call) -> Expr:
        """Borders that were drawn before are drawn again, as the operators within them ask."""
        value = new.args[0]
        if is_call_to(new, BEGIN):
            return value
        if isinstance(value, Var):
            return new  # the region is that of the value it was bound to
        self.taken.setdefault(value, compiler_of(new))
        return self._end(value)

    def _target(self, old: Call) -> str:
        """The compiler that takes a call: one that took it before, else the first that can."""
        before = compiler_of(old.args[0]) if old.args and is_call_to(old.args[0], BEGIN) else DEFAULT
        return before if before != DEFAULT else next((t for t in self.targets if supports(t, old)), DEFAULT)

    def _inside(self, new: Expr, target: str = "") -> Expr:
        """A node whose operands enter the region of a compiler, without `target` of the one that took them all."""
        first = len(children(new)) - len(_operands(new))
        target, entered = self._entered(_operands(new), target)
        out = rebuild(new, [*children(new)[:first], *entered])
        self.taken[out] = target
        return out

    def _entered(self, args: Sequence[Expr], target: str = "") -> tuple[str, list[Expr]]:
        target = target or self._common(args)
        # what is made from nothing comes in as a variable does
        left = [arg if isinstance(arg, Call) and not arg.args else self._left(arg) for arg in args]
        return target, [copied(call(BEGIN, value, compiler=target), value) for value in left]

    def _common(self, args: Sequence[Expr]) -> str:
        """The compiler that takes all of `args`."""
        found = {self.taken.get(arg, DEFAULT) for arg in args}
        return found.pop() if len(found) == 1 else DEFAULT

    def _around(self, new: Expr) -> Expr:
        """A node of no compiler: what it uses has left its region."""
        return rebuild(new, [self._ended(c) for c in children(new)])

    def _left(self, value: Expr) -> Expr:
        return self._end(value) if value in self.taken else value

    def _ended(self, value: Expr) -> Expr:
        """A value that has left its region, and is known to come from there."""
        if value not in self.taken or is_call_to(value, END):
            return value
        end = self._end(value)
        self.taken[end] = self.taken[value]
        return end

    def _end(self, value: Expr) -> Expr:
        """A border of its own for each use."""
        return copied(call(END, value, compiler=self.taken[value]), value)


def _operands(node: Expr) -> tuple[Expr, ...]:
    """The sub-expressions that are values: not the operator that is called."""
    return node.args if isinstance(node, Call) else children(node)


@pass_(level=0, requires=("InferType",), example={"targets": ["example"]})
class AnnotateTarget(FunctionPass):
    """Marks what external compilers take: the first of `targets` whose check `target.<name>` holds, else `default`.

    Every operand of an operator, or of a function with the attribute `Composite`, enters a region by
    `annotation.compiler_begin`, every result leaves it by `annotation.compiler_end`. Tuples and projections go to the
    compiler that takes all their operands, unless `include_non_call_ops` is false.
    """

    targets: Annotated[str | Sequence[str], "The names of compilers, the preferred one first."]
    include_non_call_ops: Annotated[bool, "Tuples and projections go with their operands too."] = True

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        names = [self.targets] if isinstance(self.targets, str) else list(self.targets)
        return rewrite(func, _Annotator(names, self.include_non_call_ops).at, keep=_closed)
