"""Convolutions of images of which only a run tells the size, without padding, as contractions.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView
from relaylab.codegen.kernels.views import permuted
from relaylab.codegen.network.network import Operation, tensor_type
from relaylab.codegen.operations.contraction import Contraction
from relaylab.codegen.operations.convolution import ChannelsLastContraction, ConvolutionAttrs, ConvolutionAxes
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.open_rows import OpenPixels, open_pixels, pack_open_pixels, supports_open_pixels
from relaylab.codegen.templates.pack import Packing
from relaylab.codegen.templates.problem import DTYPES, Choices
from relaylab.ir import Call, Op, is_dynamic
from relaylab.loop.expr import ScalarExpr
from relaylab.op.window import spread, spread_padding
from relaylab.support.errors import RelayError


@dataclass(frozen=True, slots=True)
class OpenConvolution(ChannelsLastContraction):
    """A convolution of open images and constant weights; `spec` has dense operands."""

    spec: OpenPixels
    packs: bool = True

    def accepts(self, data: MemoryView) -> bool:
        *_, column, channel = permuted(data, self.data_order).strides
        return not isinstance(column, ScalarExpr) and not isinstance(channel, ScalarExpr) and channel == 1

    def build(
        self, data: MemoryView, weight: MemoryView | None, out: MemoryView, target: CpuTarget, epilogue: Epilogue
    ) -> KernelSequence:
        return KernelSequence((open_pixels(self.placed(data, out), target, epilogue),))

    def pack(self, data: MemoryView, out: MemoryView, target: CpuTarget, weight: np.ndarray) -> Packing:
        return pack_open_pixels(self.placed(data, out), target, weight.transpose(self.weight_axes))

    def placed(self, data: MemoryView, out: MemoryView) -> OpenPixels:
        """The spec with the operands where they lie."""
        spec = self.spec
        data, out = permuted(data, self.data_order), permuted(out, self.out_order)
        return replace(spec, data=data, out=out)

    def chosen(self, choices: Choices) -> Contraction:
        raise RelayError("a convolution of open images has no choices", code="schedule.illegal")


def open_convolution_of(call: Call, operation: Operation, target: CpuTarget) -> Contraction | None:
    """The convolution that a call is, if its images are open; None for any other call, and where zeros are around
    images that every channel of the result reads.
    """
    if not isinstance(call.op, Op) or call.op.name not in ("nn.conv1d", "nn.conv2d", "nn.conv3d"):
        return None
    attrs = cast("ConvolutionAttrs", call.attrs)
    data, weight, out = (tensor_type(e) for e in (*call.args[:2], call))
    axes, out_axes = ConvolutionAxes(attrs.data_layout), ConvolutionAxes(attrs.out_layout or attrs.data_layout)
    plain = axes.plain() and out_axes.plain() and sorted(attrs.kernel_layout) == sorted(f"OI{axes.space}")
    alike = len({data.dtype, weight.dtype, out.dtype}) == 1 and data.dtype in DTYPES
    if operation.sizes is None or not plain or not alike or is_dynamic(weight):
        return None
    n = len(axes.space)
    padding = spread_padding(tuple(attrs.padding), n)
    weight_axes = tuple(attrs.kernel_layout.index(c) for c in f"OI{axes.space}")
    shape = tuple(weight.concrete_shape[axis] for axis in weight_axes)
    seen, given = (
        MemoryView.dense(tuple(operation.shape(t)[a] for a in order.template), t.dtype)
        for t, order in ((data, axes), (out, out_axes))
    )
    if isinstance(seen.shape[-1], ScalarExpr):
        return None
    steps = spread(attrs.strides, n), spread(attrs.dilation, n)
    spec = OpenPixels(seen, given, shape[2:], *steps, attrs.groups, tuple(padding[:n]), any(padding))
    if spec.around and not spec.depthwise:
        return None
    return OpenConvolution(call, axes, out_axes, weight_axes, spec) if supports_open_pixels(spec, target) else None
