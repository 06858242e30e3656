"""CombineParallelDense: dense layers of the same tensor become one batched or one wider matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from relaylab.ir import Call, Expr, Function, IRModule, Tuple, TupleGetItem, facets
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import rank_of, shape_of, tensor_of
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.simplify.combine_parallel import Branch, Combiner, combine_parallel


class _Dense(Combiner):
    """What both forms share: which layers fit."""

    op_name = "nn.dense"

    def supports(self, call: Call) -> bool:
        return rank_of(call.args[0]) == 2

    def compatible(self, a: Call, b: Call) -> bool:
        s, t = tensor_of(a.args[1]), tensor_of(b.args[1])
        return s.dtype == t.dtype and facets(a).out_dtype == facets(b).out_dtype and self.weights_fit(s.shape, t.shape)

    def weights_fit(self, a: Sequence, b: Sequence) -> bool:
        """Whether weights of these shapes can be combined."""
        return tuple(a) == tuple(b)

    def follows(self, call: Call) -> bool:
        # an operator that names an axis would mean another one after combining
        return super().follows(call) and "axis" not in facets(call).fields


class _Batched(_Dense):
    """Stacks weights of equal shape and multiplies them in one batch."""

    def combine(self, branches: Sequence[Branch]) -> Expr:
        stacked = [call("stack", Tuple([b[0].args[i] for b in branches]), axis=0) for i in range(2)]
        return call(
            "nn.batch_matmul", *stacked, out_dtype=facets(branches[0][0]).out_dtype, transpose_a=False, transpose_b=True
        )

    def argument_fits(self, a: Call, b: Call, index: int) -> bool:
        return tensor_of(a.args[index]) == tensor_of(b.args[index])

    def arguments(self, branches: Sequence[Branch], depth: int, index: int) -> Expr:
        args = [b[depth].args[index] for b in branches]
        if (missing := 2 - rank_of(args[0])) > 0:
            args = [call("expand_dims", a, axis=0, num_newaxis=missing) for a in args]
        return call("stack", Tuple(args), axis=0)

    def outputs(self, combined: Expr, branches: Sequence[Branch]) -> list[Expr]:
        parts = call("split", combined, indices_or_sections=len(branches), axis=0)
        return [call("squeeze", TupleGetItem(parts, i), axis=[0]) for i in range(len(branches))]


def concatenated(args: Sequence[Expr], widths: Sequence[int], axis: int | None = None) -> Expr:
    """Arguments that broadcast against results of these widths, repeated to full width, side by side; `axis` is how
    their last axis is called.
    """
    last = max(rank_of(args[0]) - 1, 0)
    full = [_widened(a, w, last) for a, w in zip(args, widths)]
    return call("concatenate", Tuple(full), axis=last if axis is None else axis)


def _widened(arg: Expr, width: int, axis: int) -> Expr:
    shape = shape_of(arg)
    if shape and int(shape[-1]) == width:
        return arg
    return call("repeat", arg if shape else call("expand_dims", arg, axis=-1), repeats=width, axis=axis)


def sliced(combined: Expr, rank: int, widths: Sequence[int]) -> list[Expr]:
    """The parts of a result along its last axis."""
    out, start = [], 0
    for width in widths:
        begin, end = [0] * (rank - 1) + [start], [-1] * (rank - 1) + [width]
        out.append(
            call("strided_slice", combined, begin=begin, end=end, strides=[1] * rank, slice_mode="size", axes=None)
        )
        start += width
    return out


def last_axis_fits(a: Call, b: Call, index: int) -> bool:
    """Whether two arguments agree but for the last axis, which is full or broadcast."""
    s, t = tensor_of(a.args[index]), tensor_of(b.args[index])
    if s.dtype != t.dtype or len(s.shape) != len(t.shape) or not s.shape or s.shape[:-1] != t.shape[:-1]:
        return False
    return all(x.shape[-1] in (1, shape_of(c)[-1]) for x, c in ((s, a), (t, b)))


class _Wide(_Dense):
    """Concatenates weights, which may have different numbers of units."""

    def weights_fit(self, a: Sequence, b: Sequence) -> bool:
        return a[1] == b[1]

    def _units(self, branches: Sequence[Branch]) -> list[int]:
        return [int(shape_of(b[0].args[1])[0]) for b in branches]

    def combine(self, branches: Sequence[Branch]) -> Expr:
        first = branches[0][0]
        weight = call("concatenate", Tuple([b[0].args[1] for b in branches]), axis=0)
        return Call(first.op, (first.args[0], weight), facets(first).replace(units=sum(self._units(branches))))

    def argument_fits(self, a: Call, b: Call, index: int) -> bool:
        s, t = tensor_of(a.args[index]), tensor_of(b.args[index])
        return (s == t and not s.shape) or last_axis_fits(a, b, index)

    def arguments(self, branches: Sequence[Branch], depth: int, index: int) -> Expr:
        return concatenated([b[depth].args[index] for b in branches], self._units(branches))

    def outputs(self, combined: Expr, branches: Sequence[Branch]) -> list[Expr]:
        return sliced(combined, 2, self._units(branches))


@pass_(level=4, requires=("InferType",), idempotent=True)
class CombineParallelDense(FunctionPass):
    """Combines dense layers that read the same tensor: into a batch, or (`to_batch=False`) into one wider layer."""

    min_num_branches: Annotated[int, "So many must read one tensor for them to be combined."] = 3
    to_batch: Annotated[bool, "Combine them into a batch; else into one wider layer."] = True

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return combine_parallel(func, _Batched() if self.to_batch else _Wide(), self.min_num_branches)
