"""AnnotateTarget: marks the operators that external compilers can take, each with its own borders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, cast

from relaylab.ir import Call, Expr, Function, IRModule, Op, Tuple, TupleGetItem, children, facets, rebuild, rewrite
from relaylab.ir.op import is_call_to
from relaylab.ir.types import TensorType, TupleType, Type, type_leaves
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


def _is_data(t: Type | None) -> bool:
    """Whether values of a type can cross a border: tensors, and tuples of them."""
    return t is not None and all(isinstance(part, (TensorType, TupleType)) for part in type_leaves(t))


def _closed(node: Expr) -> bool:
    """Functions whose inside belongs to whoever takes the call."""
    return isinstance(node, Function) and bool(node.is_primitive or node.attr("Composite") or node.attr("Compiler"))


class _Annotator:
    """Rewrites one function; knows for every node made so far which compiler takes it."""

    def __init__(self, targets: Sequence[str], others: bool):
        self.targets, self.others = targets, others
        self.taken: dict[Expr, str] = {}
        self.ends: dict[Expr, Expr] = {}

    def at(self, new: Expr, old: Expr) -> Expr:
        if is_call_to(new, BEGIN, END):
            return self._border(new)
        if not all(_is_data(type_of(c)) for c in _operands(old)) or not _is_data(type_of(old)):
            return self._around(new)
        match new:
            case Call(op=op) if isinstance(op, Op) or (isinstance(op, Function) and op.attr("Composite")):
                return self._call(new, cast(Call, old))
            case Tuple() | TupleGetItem() if self.others and _operands(new):
                return self._inside(new, self._common(_operands(new)))
            case _:
                return self._around(new)

    def _border(self, new: Call) -> Expr:
        """Borders of other compilers stay; those of the default one are drawn again."""
        if compiler_of(new) == DEFAULT:
            return new.args[0]
        if is_call_to(new, END):
            self.taken[new] = compiler_of(new)
            self.ends[new] = new
        return new

    def _call(self, new: Call, old: Call) -> Expr:
        if any(is_call_to(arg, BEGIN) for arg in new.args):
            return new  # drawn before, for another compiler
        return self._inside(new, next((t for t in self.targets if supports(t, old)), DEFAULT))

    def _common(self, args: Iterable[Expr]) -> str:
        """The compiler that takes all of `args`."""
        found = {self.taken.get(arg, DEFAULT) for arg in args}
        return found.pop() if len(found) == 1 else DEFAULT

    def _inside(self, new: Expr, target: str) -> Expr:
        """A node whose operands enter the region of a compiler."""
        first = len(children(new)) - len(_operands(new))
        entered = [copied(call(BEGIN, self._ended(arg), compiler=target), arg) for arg in _operands(new)]
        out = rebuild(new, [*children(new)[:first], *entered])
        self.taken[out] = target
        return out

    def _around(self, new: Expr) -> Expr:
        """A node of no compiler: what it uses has left its region."""
        return rebuild(new, [self._ended(c) for c in children(new)])

    def _ended(self, value: Expr) -> Expr:
        if value not in self.taken:
            return value
        if value not in self.ends:
            self.ends[value] = copied(call(END, value, compiler=self.taken[value]), value)
        return self.ends[value]


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
