"""Convolutions of images whose size is known when they run: register tiles over the pixels of each line.

A work item is a panel of weights and a stretch of one line of the result. Channels lie side by side; there are no zeros
around the data, and lines may be as far apart as sizes say.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, MemoryView
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates.dots import DOTS
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.open_rows import MOST_ROWS, PLANNED_ROWS, OpenTileLoops, RowsLeft
from relaylab.codegen.templates.pack import Packing, tap_matrix
from relaylab.codegen.templates.problem import UNIT, OutputAxis, Problem, Tap, merge_taps
from relaylab.codegen.templates.program_parts import ProgramParts, split_place
from relaylab.codegen.templates.schedule import packed_size
from relaylab.codegen.templates.tile_loops import TILES
from relaylab.loop.expr import INDEX, MOST_SIZE, Tensor, apply, as_index, axis_over
from relaylab.loop.program import SIZES, For, LoopNest, LoopProgram, Statement, sizes_in

UNIT_BATCH = OutputAxis(1, 0, 0)
NAMES = (("p", "n", "part"), ("p", "n", "h", "part"), ("p", "n", "d", "h", "part"))
TILES_OF_ITEM = 16
"""The register tiles along a line that one work item has at most."""


@dataclass(frozen=True, slots=True)
class OpenPixels:
    """A convolution without padding: data and result as [batch, *space, channels], weights constant."""

    data: MemoryView
    out: MemoryView
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def columns(self) -> int:
        """The channels of the result."""
        return self.out.shape[-1]

    def _taps(self, lines: Sequence[int]) -> tuple[Tap, ...]:
        """The reduction axes, with the steps between lines and images: columns and channels go together."""
        *outer, last = zip(self.kernel, self.dilation, (*lines, self.data.strides[-2]))
        inner = merge_taps([Tap(last[0], last[1] * last[2]), Tap(self.data.shape[-1], 1)])
        return (*(Tap(k, step * d) for k, d, step in outer if k > 1), *inner)

    def planned(self) -> Problem:
        """The convolution of one line of planned length: what is packed, and the tiles, follow from it."""
        row = OutputAxis(PLANNED_ROWS, self.data.strides[-2] * self.strides[-1], self.columns, 0, (PLANNED_ROWS,))
        lines = [row.x * PLANNED_ROWS for _ in self.kernel[1:]]
        return Problem(self.data.dtype, self.data.dtype, UNIT_BATCH, (UNIT, row), self._taps(lines), self.columns)

    def known(self) -> Problem:
        """The convolution with the steps that sizes say."""
        data, out = self.data, self.out
        steps = (1, *self.strides)
        rows = [
            OutputAxis(MOST_SIZE, x * by, o, 0, (n,))
            for n, x, by, o in zip(out.shape[:-1], data.strides[:-1], steps, out.strides[:-1])
        ]
        return Problem(
            data.dtype,
            out.dtype,
            UNIT_BATCH,
            tuple(rows),
            self._taps(data.strides[1:-2]),
            self.columns,
            channels=self.columns,
            x_start=data.offset,
            out_start=out.offset,
            out_column=out.strides[-1],
        )


class OpenPixelLoops(OpenTileLoops):
    """The loops of one convolution."""

    def __init__(self, spec: OpenPixels, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts):
        super().__init__(spec.planned(), spec.known(), target, epilogue, parts)
        self.spec = spec

    def nest(self) -> LoopNest:
        """The parallel loop over panels x lines of the result x stretches of a line."""
        parts, (*outer, width) = self.parts, self.spec.out.shape[:-1]
        stretch = self.most * TILES_OF_ITEM
        stretches = (as_index(width) + (stretch - 1)) // stretch
        item = axis_over(parts.name("item"), parts.simplify(as_index(math.prod(outer) * self.panels) * stretches))
        start: list[Statement] = []
        spot = split_place(item, (self.panels, *outer, stretches))
        panel, *lines, part = (parts.named(name, x, start) for name, x in zip(NAMES[len(spot) - 3], spot))
        first = parts.named("first", as_index(part) * stretch, start)
        count = parts.named("count", apply("min", as_index(width) - first, as_index(stretch)), start)
        rows = RowsLeft(as_index(count), stretch, tuple(lines), first, by_size=False)
        return LoopNest(For(item, "serial", (*start, *self.over_rows(rows, panel))))


def supports_open_pixels(spec: OpenPixels, target: CpuTarget) -> bool:
    """Whether tiles of registers serve the convolution."""
    problem = spec.planned()
    return problem.depth > 0 and problem.columns > 0 and bool(DOTS.declines(problem, target))


def open_pixels(spec: OpenPixels, target: CpuTarget, epilogue: Epilogue) -> Kernel:
    """The kernel, with the operands input, weights, output, side inputs, sizes."""
    anywhere = lambda role, dtype: Tensor(role, (MOST_ROWS,), dtype)
    stored = spec.data.dtype if epilogue.value is None else epilogue.value.dtype
    dtypes = {role: view.dtype for _, role, view in epilogue.reads}
    buffers = {"in0": anywhere("in0", spec.data.dtype), "out0": anywhere("out0", stored)}
    buffers["weight0"] = Tensor("weight0", (packed_size(spec.planned(), target),), spec.data.dtype)
    buffers |= {role: anywhere(role, dtypes.get(role, spec.data.dtype)) for role in epilogue.operands}
    parts = ProgramParts({**buffers, "x": buffers["in0"], "w": buffers["weight0"], "out": buffers["out0"]})
    nest = OpenPixelLoops(spec, target, epilogue, parts).nest()
    buffers[SIZES] = Tensor(SIZES, (sizes_in([nest])[-1].slot + 1,), INDEX)
    program = LoopProgram("conv", tuple(buffers.items()), tuple(parts.scratch), (nest,), tuple(parts.registers))
    return lower_program(program, target, True).by_content("conv")


def pack_open_pixels(spec: OpenPixels, target: CpuTarget, weight: np.ndarray) -> Packing:
    """The weights [O, I, *kernel] as the kernel reads them."""
    return TILES.pack(spec.planned(), target, tap_matrix(weight[None]))
