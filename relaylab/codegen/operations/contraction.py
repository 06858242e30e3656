"""What a convolution, a matrix product or the like has to say so that a template computes it.

Methods of a `Contraction` speak of the operator's own axes; the views that they hand to the templates are permuted to
[batch, *space, channels].
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView
from relaylab.codegen.kernels.views import Halo
from relaylab.codegen.network.network import tensor_type
from relaylab.codegen.templates import CONVOLUTIONS, PRODUCTS, TRANSPOSED, Epilogue
from relaylab.codegen.templates.pack import Packing
from relaylab.codegen.templates.problem import Choices
from relaylab.ir import Call


class Contraction(Protocol):
    """A convolution or matrix product that a template computes.

    `data_order` and `out_order` are the memory orders of the axes, outermost first, that the template likes.
    """

    @property
    def call(self) -> Call: ...

    @property
    def data_order(self) -> tuple[int, ...]: ...

    @property
    def out_order(self) -> tuple[int, ...]: ...

    @property
    def args(self) -> tuple[int, int]:
        """Which arguments of the call are the data and the weight."""
        ...

    @property
    def packs(self) -> bool:
        """Must the weight be a constant, laid out at build time? Else it may be, and is read where it lies if not."""
        ...

    @property
    def weight_axes(self) -> tuple[int, ...]:
        """The order in which `pack` takes the weight's axes: kernels of packed weights do not tell it."""
        ...

    def halo(self) -> Halo:
        """The zeros that the template reads around each axis of the data."""
        ...

    def accepts(self, data: MemoryView) -> bool:
        """Can the template read data that lies like this?"""
        ...

    def out_view(self, out: MemoryView) -> MemoryView:
        """A view over the result, axes as the template walks them; for the output and for side inputs."""
        ...

    def places(self, side: MemoryView) -> bool:
        """Can the template read a side input that lies like this over the axes of the result?"""
        ...

    @property
    def row_major(self) -> bool:
        """Must the result and full side inputs be row-major, without zeros around them?"""
        ...

    def build(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, target: CpuTarget, epilogue: Epilogue
    ) -> KernelSequence:
        """The kernels for these views; `weight` is None when it is packed."""
        ...

    def pack(self, data: MemoryView, out: MemoryView, target: CpuTarget, weight: np.ndarray) -> Packing:
        """The constant weight as the kernels for these views read it."""
        ...

    def with_input(self) -> Contraction | None:
        """The same for a weight that is an input, of what `packs`; None where there is none."""
        ...

    def chosen(self, choices: Choices) -> Contraction:
        """The same with numbers of its plan that are chosen, and without minimal products."""
        ...


def families_are_own() -> bool:
    """Are all families of kernels the house's own? The code of others may change between two builds."""
    return CONVOLUTIONS.own and TRANSPOSED.own and PRODUCTS.own


def dense_result(call: Call) -> MemoryView:
    """Where a result may lie."""
    type = tensor_type(call)
    return MemoryView.dense(type.concrete_shape, type.dtype)
