"""MicroBatch: a network runs a large batch a few examples at a time, so that what its layers exchange stays in caches.

The name is that of Huang et al., "GPipe: efficient training of giant neural networks using pipeline parallelism", 2019.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from relaylab.analysis.cost import type_bytes
from relaylab.analysis.examples import Examples, examples_of
from relaylab.ir.expr import Call, Constant, Expr, Function, FunctionWithFields, Tuple, TupleGetItem, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import is_call_to
from relaylab.ir.trail import derived
from relaylab.ir.types import TensorType, Type, renew_type
from relaylab.ir.visit import operands_of, walk
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.transform.engine.build import reshaped
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import InferType
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import copied, rewrite_function

ATTRIBUTE = "MicroBatch"
CACHE = 16 << 20
"""What a kernel reads and writes of a batch is in the last cache for the next one if it takes so many bytes."""
PARTS = 256
"""A batch is run in so many parts at most: each has an entry for every step in the tables that a run walks."""
WORTH = 1.25
"""So many times less traffic with memory makes up for more calls."""


@pass_(level=2, idempotent=True)
class MicroBatch(FunctionPass):
    """Notes in the attribute `MicroBatch` of a network of kernels how many examples it is to compute at a time.

    Only where each is computed on its own, and where that takes less traffic with memory.
    """

    size: Annotated[int | None, "So many examples at a time, if they divide the batch. None: the pass chooses."] = None

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise RelayValueError(f"a batch of {self.size} examples", code="batch.size", help="give 1 or more")

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        """The function, with the attribute where it is of use."""
        found = None if func.is_primitive or func.attr(ATTRIBUTE) else examples_of(func)
        if found is None or not _is_written_once(func):
            return func
        size = _best(func, found) if self.size is None else self.size
        if size >= found.size or not _divides(size, found.size) or _few_examples(func, size, found) is None:
            return func
        return derived(func.with_attr(ATTRIBUTE, size), func)


def micro_batches(func: Function) -> tuple[Function, int]:
    """The function of one micro-batch, and how many there are: itself and 1 where the pass has marked nothing.

    RelayValueError for a mark that does not fit the function.
    """
    size = func.attr(ATTRIBUTE)
    if size is None:
        return func, 1
    found = examples_of(func) if isinstance(size, int) and 0 < size and _is_written_once(func) else None
    if found is not None and _divides(size, found.size) and (few := _few_examples(func, size, found)) is not None:
        return few, found.size // size
    raise RelayValueError(
        f"the function cannot be computed {size} examples at a time",
        code="batch.no-examples",
        help=f"leave the attribute `{ATTRIBUTE}` to the pass of this name",
    )


def _divides(size: int, batch: int) -> bool:
    return batch % size == 0 and batch // size <= PARTS


def _few_examples(func: Function, size: int, found: Examples) -> Function | None:
    """The typed function for `size` examples; None if it is written for another number."""
    changed = IRModule.from_expr(_rewritten(func, size, found))
    try:
        typed = InferType()(changed)["main"]
    except RelayError:  # an operator has the batch among its attributes
        return None
    pairs = zip(walk((func.body,), operands_of), walk((typed.body,), operands_of))
    fits = all(new.checked_type == _few(old, size, found) for old, new in pairs)
    return typed if fits else None


def _few(expr: Expr, size: int, found: Examples) -> Type:
    """The type of an expression in the function for `size` examples."""
    t = expr.checked_type
    return _shorter(t, size) if expr in found.batched else t


def _shorter(t: Type, size: int) -> Type:
    return renew_type(t, lambda p: TensorType((size, *p.shape[1:]), p.dtype) if isinstance(p, TensorType) else None)


def _rewritten(func: Function, size: int, found: Examples) -> Function:
    """The function with variables for `size` examples, its types to be found."""

    def changed(new: Expr, old: Expr) -> Expr:
        if isinstance(new, Function) and new is not old:
            return FunctionWithFields(new, ret_type=None)
        if is_call_to(new, "reshape") and old in found.batched and isinstance(t := old.checked_type, TensorType):
            return reshaped(new.args[0], (size, *t.shape[1:]))
        return new

    kernels = [n.op for n in walk((func.body,), operands_of) if isinstance(n, Call) and isinstance(n.op, Function)]
    params = [p for function in (func, *kernels) for p in function.params if p in found.batched]
    memo: dict[Expr, Expr] = {p: copied(Var(p.name_hint, _few(p, size, found), span=p.span), p) for p in params}
    return rewrite_function(func, changed, memo=memo)


def _is_written_once(func: Function) -> bool:
    """Whether kernels compute all results, each its own: no input, constant, or result that is given twice."""
    results = [_source(leaf) for leaf in _results(func.body)]
    return all(isinstance(call, Call) for call, _ in results) and len(set(results)) == len(results)


def _results(body: Expr) -> Iterator[Expr]:
    stack = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, Tuple):
            stack.extend(node.fields)
        else:
            yield node


def _source(expr: Expr) -> tuple[Expr, int]:
    """What writes the memory of a value, and which of its results that is: reshapes write nothing."""
    field = -1
    while True:
        match expr:
            case Call(op=Function() as kernel) if expr.args and kernel.attr("relay.reshape_only", 0):
                expr = expr.args[0]
            case TupleGetItem():
                expr, field = expr.tuple_value, expr.index
            case _:
                return expr, field


def _best(func: Function, found: Examples) -> int:
    """How many examples at a time take the least traffic with memory; all of them if that takes not much more."""
    calls = [n for n in walk((func.body,), operands_of) if isinstance(n, Call)]
    weights = {a for c in calls for a in c.args if isinstance(a, Constant)}
    constants = sum(type_bytes(w.checked_type) or 0 for w in weights)
    each = [sum(type_bytes(v.checked_type) or 0 for v in {c, *c.args} & found.batched) // found.size for c in calls]

    def traffic(size: int) -> float:
        """Bytes an example: the weights again for every part, and what does not stay in the cache."""
        return constants / size + sum(n for n in each if n * size > CACHE)

    sizes = (found.size // parts for parts in range(1, PARTS + 1) if found.size % parts == 0)
    best = min(sizes, key=traffic)
    return best if traffic(best) * WORTH < traffic(found.size) else found.size
