"""CombineParallelConv2D: convolutions of the same tensor become one with more output channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from relaylab.ir import Call, Expr, Function, IRModule, Tuple, facets
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import shape_of, tensor_of
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.simplify.combine_parallel import Branch, Combiner, combine_parallel

_SAME = ("strides", "padding", "dilation", "data_layout", "kernel_layout", "out_dtype", "out_layout")


class _Conv2D(Combiner):
    """Concatenates weights along output channels; `axis` is the channel axis of the group at hand."""

    op_name = "nn.conv2d"
    axis = 1

    def supports(self, call: Call) -> bool:
        return facets(call).groups == 1

    def compatible(self, a: Call, b: Call) -> bool:
        x, y = facets(a), facets(b)
        if any(getattr(x, name) != getattr(y, name) for name in _SAME):
            return False
        return all(shape_of(a.args[1])[i] == shape_of(b.args[1])[i] for i in self._at(a, "HW"))

    def _at(self, conv: Call, letters: str) -> list[int]:
        """The positions of axes in the weight."""
        return [facets(conv).kernel_layout.index(letter) for letter in letters]

    def _channels(self, conv: Call) -> int:
        return int(shape_of(conv.args[1])[self._at(conv, "O")[0]])

    def _channel_axis(self, conv: Call) -> int:
        attrs = facets(conv)
        return (attrs.out_layout or attrs.data_layout).index("C")

    def combine(self, branches: Sequence[Branch]) -> Expr:
        convs = [b[0] for b in branches]
        self.axis = self._channel_axis(convs[0])
        weight = call("concatenate", Tuple([c.args[1] for c in convs]), axis=self._at(convs[0], "O")[0])
        attrs = facets(convs[0]).replace(channels=sum(map(self._channels, convs)))
        return Call(convs[0].op, (convs[0].args[0], weight), attrs)

    def _axis_of(self, branch_op: Call, arg: Expr, conv_axis: int) -> int:
        """The channel axis of an argument that broadcasts against a result; negative if it has none."""
        return conv_axis - len(shape_of(branch_op)) + len(shape_of(arg))

    def argument_fits(self, a: Call, b: Call, index: int) -> bool:
        s, t = tensor_of(a.args[index]), tensor_of(b.args[index])
        axis = self._axis_of(a, a.args[index], self.axis)
        named = facets(a).get("axis", self.axis) % len(shape_of(a))  # of a bias, say
        if s.dtype != t.dtype or len(s.shape) != len(t.shape) or axis < 0 or named != self.axis:
            return False
        full = s.shape[axis] == shape_of(a)[self.axis] and t.shape[axis] == shape_of(b)[self.axis]
        return full and all(s.shape[i] == t.shape[i] for i in range(len(s.shape)) if i != axis)

    def arguments(self, branches: Sequence[Branch], depth: int, index: int) -> Expr:
        first = branches[0][depth]
        axis = self._axis_of(first, first.args[index], self.axis)
        return call("concatenate", Tuple([b[depth].args[index] for b in branches]), axis=axis)

    def outputs(self, combined: Expr, branches: Sequence[Branch]) -> list[Expr]:
        out, start = [], 0
        for branch in branches:
            size = self._channels(branch[0])
            begin, end = [0] * self.axis + [start], [-1] * self.axis + [size]
            out.append(
                call(
                    "strided_slice",
                    combined,
                    begin=begin,
                    end=end,
                    strides=[1] * len(begin),
                    slice_mode="size",
                    axes=None,
                )
            )
            start += size
        return out


@pass_(level=4, name="CombineParallelConv2d", requires=("InferType",), idempotent=True)
class CombineParallelConv2D(FunctionPass):
    """Combines convolutions that read the same tensor, with what follows them, and cuts the result apart."""

    min_num_branches: Annotated[int, "So many must read one tensor for them to be combined."] = 3

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return combine_parallel(func, _Conv2D(), self.min_num_branches)
