"""A convolution of single pixels (1x1) whose images lie channel by channel: the product of the weight with each image.

Pixels are the columns of the product and lie side by side on both sides, so that nothing is transposed.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView
from relaylab.codegen.kernels.views import permuted
from relaylab.codegen.operations.contraction import Contraction
from relaylab.codegen.templates import ConvSpec, Epilogue, GemmSpec, gemm, supports_gemm
from relaylab.codegen.templates.gemm import gemm_problem
from relaylab.codegen.templates.pack import Packing
from relaylab.codegen.templates.problem import DTYPES, Choices
from relaylab.codegen.templates.product_family import product_cycles
from relaylab.ir import Call
from relaylab.support.errors import RelayError

TRANSPOSED_CYCLES = 0.25  # of an element that is brought from channel by channel to pixel by pixel, or back
ONE_SET_CYCLES = 3.0  # of an element that is stored where the channels of a pixel share a set of the cache
ONE_SET = 4096


@dataclass(frozen=True, slots=True)
class PixelProduct(Contraction):
    """A 1x1 convolution with a constant weight, of images [batch, channels, pixels]. `orders` bring the axes of data
    and result into [batch, *space, channels].
    """

    call: Call
    weight_axes: tuple[int, ...]
    orders: tuple[tuple[int, ...], tuple[int, ...]]
    choices: Choices
    packs = True

    @property
    def data_order(self) -> tuple[int, ...]:
        return _channels_first(self.orders[0])

    @property
    def out_order(self) -> tuple[int, ...]:
        return _channels_first(self.orders[1])

    def accepts(self, data: MemoryView) -> bool:
        return _by_pixels(permuted(data, self.orders[0])) is not None

    def out_view(self, out: MemoryView) -> MemoryView:
        return _even(_rows_of_pixels(permuted(out, self.orders[1])))

    def places(self, side: MemoryView) -> bool:
        return _rows_of_pixels(permuted(side, self.orders[1])) is not None

    def placed(self, data: MemoryView, out: MemoryView) -> GemmSpec:
        """The product with the images where they lie."""
        right = _even(_rows_of_pixels(permuted(data, self.orders[0])))
        result = self.out_view(out)
        left = MemoryView.dense((1, result.shape[1], right.shape[1]), right.dtype)
        return GemmSpec(left, right, result, packed=False, choices=self.choices, left="weight0", right="in0")

    def build(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, target: CpuTarget, epilogue: Epilogue
    ) -> KernelSequence:
        return KernelSequence((gemm(self.placed(data, out), target, epilogue),))

    def pack(self, data: MemoryView, out: MemoryView, target: CpuTarget, weight: np.ndarray) -> Packing:
        plain = weight.transpose(self.weight_axes)
        return Packing.copied(plain.reshape(plain.shape[:2]))

    def chosen(self, choices: Choices) -> Contraction:
        return replace(self, choices=choices)


def pixel_product_of(
    made: PixelProduct, spec: ConvSpec, sides: Sequence[MemoryView], target: CpuTarget, cycles: float
) -> PixelProduct | None:
    """The convolution as a product of pixels where that costs less; `spec` has its operands where they lie, `sides`
    are what its epilogue reads, over the axes of its result. It would take so many `cycles` beside two transposes.
    """
    single = spec.groups == math.prod(spec.kernel) == math.prod(spec.strides) == 1 and not any(spec.padding)
    if not single or spec.weight is not None or spec.data.dtype not in DTYPES:
        return None
    if _by_pixels(spec.data) is None or _by_pixels(spec.out) is None or not all(map(made.places, sides)):
        return None
    product = made.placed(*(permuted(v, _back(order)) for v, order in zip((spec.data, spec.out), made.orders)))
    apart = spec.out.strides[-1] * spec.out.itemsize % ONE_SET
    stored = TRANSPOSED_CYCLES if apart else ONE_SET_CYCLES
    moved = spec.data.size * TRANSPOSED_CYCLES + spec.out.size * stored
    if supports_gemm(product) or product_cycles(gemm_problem(product), target) > cycles + moved:
        return None
    return made


def _channels_first(order: tuple[int, ...]) -> tuple[int, ...]:
    return (order[0], order[-1], *order[1:-1])


def _back(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(order.index(axis) for axis in range(len(order)))


def _even(view: MemoryView | None) -> MemoryView:
    if view is None:  # `accepts` and `places` have said that it is even
        raise RelayError("a product of pixels was given an operand with gaps", code="codegen.operand")
    return view


def _by_pixels(view: MemoryView) -> MemoryView | None:
    """`_rows_of_pixels` of a view whose neighbouring pixels are neighbours in memory."""
    found = _rows_of_pixels(view)
    return found if found is not None and (found.strides[2] == 1 or found.shape[2] == 1) else None


def _rows_of_pixels(view: MemoryView) -> MemoryView | None:
    """[batch, *space, channels] as [batch, channels, pixels]; None if pixels do not lie evenly."""
    space = [(n, step) for n, step in zip(view.shape[1:-1], view.strides[1:-1]) if n > 1]
    if any(outer[1] != inner[0] * inner[1] for outer, inner in zip(space, space[1:])):
        return None
    shape = (view.shape[0], view.shape[-1], math.prod(view.shape[1:-1]))
    strides = (view.strides[0], view.strides[-1], space[-1][1] if space else 1)
    return MemoryView(view.dtype, shape, strides, view.offset)
