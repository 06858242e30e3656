"""What a convolution, a matrix product or the like has to say so that a template computes it.

Methods of a `Contraction` speak of the operator's own axes; the views that they hand to the templates are permuted to
[batch, *space, channels].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView
from relaylab.codegen.kernels.views import Halo, permuted
from relaylab.codegen.network.network import tensor_type
from relaylab.codegen.templates import CONVOLUTIONS, PRODUCTS, TRANSPOSED, Epilogue
from relaylab.codegen.templates.pack import Packing
from relaylab.codegen.templates.problem import Choices
from relaylab.ir import Call, Expr


class Contraction:
    """A convolution or matrix product that a template computes.

    `packs` says that the weight must be a constant, laid out at build time; else it may be, and is read where it lies
    if not. `weight_axes` is the order in which `pack` takes its axes: kernels of packed weights do not tell it.
    """

    __slots__ = ()
    call: Call
    packs: bool
    weight_axes: tuple[int, ...]

    @property
    def args(self) -> tuple[int, int]:
        """Which arguments of the call are the data and the weight."""
        return 0, 1

    @property
    def data_order(self) -> tuple[int, ...]:
        """The memory order of the data's axes, outermost first, that the template likes."""
        return tuple(range(len(tensor_type(self.call.args[0]).shape)))

    @property
    def out_order(self) -> tuple[int, ...]:
        """The memory order that it likes of the result."""
        return tuple(range(len(tensor_type(self.call).shape)))

    @property
    def row_major(self) -> bool:
        """Must the result and full side inputs be row-major, without zeros around them?"""
        return False

    def halo(self) -> Halo:
        """The zeros that the template reads around each axis of the data."""
        return ()

    def accepts(self, data: MemoryView) -> bool:
        """Can the template read data that lies like this?"""
        raise NotImplementedError

    def out_view(self, out: MemoryView) -> MemoryView:
        """A view over the result, axes as the template walks them; for the output and for side inputs."""
        return permuted(out, self.out_order)

    def places(self, side: MemoryView) -> bool:
        """Can the template read a side input that lies like this over the axes of the result?"""
        return True

    def build(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, target: CpuTarget, epilogue: Epilogue
    ) -> KernelSequence:
        """The kernels for these views; `weight` is None when it is packed."""
        raise NotImplementedError

    def pack(self, data: MemoryView, out: MemoryView, target: CpuTarget, weight: np.ndarray) -> Packing:
        """The constant weight as the kernels for these views read it."""
        raise NotImplementedError

    def lying(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, sides: Sequence[MemoryView]
    ) -> Contraction:
        """What computes the same where the operands lie like this; `sides` are over the axes of the result, `weight` is
        None of a constant.
        """
        return self

    def with_input(self) -> Contraction | None:
        """The same for a weight that is an input, of what `packs`; None where there is none."""
        return None

    def chosen(self, choices: Choices) -> Contraction:
        """The same with numbers of its plan that are chosen, and without minimal products."""
        raise NotImplementedError


def families_are_own() -> bool:
    """Are all families of kernels the house's own? The code of others may change between two builds."""
    return CONVOLUTIONS.own and TRANSPOSED.own and PRODUCTS.own


def dense_view(expr: Expr) -> MemoryView:
    """A tensor where it has no gaps."""
    type = tensor_type(expr)
    return MemoryView.dense(type.concrete_shape, type.dtype)
