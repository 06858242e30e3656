"""Depthwise convolution over channels-last tensors: every channel has its own kernel, lanes run along the channels.

The taps' weights of a channel block are in registers while a tile of pixels is computed, if they fit; an input vector
is loaded once per row of the kernel and feeds every output that it belongs to.
Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import KernelSequence, MemoryView, channel_pitch, dense_strides
from relaylab.codegen.kernels.views import Halo
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates.convolution_family import CONVOLUTIONS, ConvolutionFamily, ConvSpec, needed_halo
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.pack import PackedBlock, Packing, WeightPacking
from relaylab.codegen.templates.problem import Split, whole_vectors
from relaylab.codegen.templates.program_parts import Place, ProgramParts, around, epilogue_buffers, operand, split_place
from relaylab.codegen.templates.schedule import FAR_BYTES, STORE_CYCLES, check_products
from relaylab.loop.expr import Axis, Const, Load, ScalarExpr, Tensor, as_index, guard
from relaylab.loop.program import Body, For, LoopNest, LoopProgram, Prefetch, Statement, Store

MOST_OUTPUTS = 7  # pixels of a register tile: more share fewer loads than they cost registers
LEAST_OUTPUTS = 4
ITEMS_WANTED = 16
LONGEST_ROW = 64  # taps of a kernel row, which are unrolled


@dataclass(frozen=True, slots=True)
class PixelTile:
    """Neighbouring pixels of an output row: `pixels` of them at `position`, `lanes` channels from `channel` on."""

    position: tuple[Place, ...]
    pixels: int
    channel: Place
    lanes: int


class DepthwiseLoops:
    """The loops of one convolution. A work item is an output row, or some of its channels."""

    def __init__(self, spec: ConvSpec, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts):
        self.spec, self.epilogue, self.parts = spec, epilogue, parts
        self.width, self.channels = target.lanes(spec.data.dtype), spec.out.shape[-1]
        taps = math.prod(spec.kernel)
        # Weights stay in registers for a whole tile if four sums and what a pixel reads fit beside them.
        spare = target.registers - spec.kernel[-1]
        self.resident = taps + LEAST_OUTPUTS <= spare
        limit = spare - taps if self.resident else MOST_OUTPUTS
        pixels = dict(spec.choices).get("rows", min(limit, MOST_OUTPUTS))
        self.split = Split.at_most(spec.out.shape[-2], pixels)
        if spec.choices:
            check_products(self.split.sizes[0] * (taps if self.resident else spec.kernel[-1]))

    def nest(self) -> LoopNest:
        """The parallel loop over output rows x chunks of channels: tiles of pixels, and channels within them."""
        parts, (*lines, _, channels) = self.parts, self.spec.out.shape
        blocks = -(-channels // self.width)
        # Small images have fewer rows than threads want items: channels are shared out too.
        each = -(-blocks // min(blocks, -(-ITEMS_WANTED // math.prod(lines))))
        chunks = -(-blocks // each)
        item, start = parts.axis("item", math.prod(lines) * chunks), list[Statement]()
        names = [*(f"i{d}" for d in range(len(lines))), "chunk"]
        *line, chunk = (parts.named(name, x, start) for name, x in zip(names, split_place(item, (*lines, chunks))))
        # Channels within a tile: what lies side by side is read in that order, and no line of the cache twice.
        over_channels = lambda at, size: parts.blocked("b", chunk, each, blocks, lambda b: self._block(at, size, b))
        body, first = list[Statement](), 0
        for size, count in self.split.pieces:
            tile = parts.axis("tile", count)
            position = (*line, parts.place([(tile, size)], first))
            body += around(over_channels(position, size), (tile,), "serial")
            first += count * size
        return LoopNest(For(item, "serial", (*start, *body)))

    def _block(self, position: tuple[Place, ...], pixels: int, block: Place) -> Body:
        """A tile of a block of channels, which is a vector; the last one may be narrower."""
        whole, rest = divmod(self.channels, self.width)
        channel = self.parts.place([(block, self.width)])
        tile = lambda lanes: self._tile(PixelTile(position, pixels, channel, lanes))
        if not whole or not rest:
            return tile(self.width if whole else rest)
        return self.parts.choose(block, whole, lambda: tile(self.width), lambda: tile(rest))

    @property
    def dtype(self) -> str:
        """That of the data, the weights and the sums."""
        return self.spec.data.dtype

    def _weights(self, into: Tensor, taps: int, first: Place, channel: Place, lanes: int) -> Statement:
        """The weights of so many taps from the first on, in registers."""
        parts, pitch = self.parts, whole_vectors(self.channels, self.width)
        t, c = parts.axis("t", taps), parts.axis("c", lanes)
        value = Load(parts.buffers["weight0"], (parts.place([(first, pitch), (t, pitch), (channel, 1), (c, 1)]),))
        return self._vectors((t,), c, into, parts.place([(t, lanes), (c, 1)]), value)

    def _vectors(
        self, axes: Sequence[Axis], lane: Axis, buffer: Tensor, address: ScalarExpr, value: ScalarExpr
    ) -> Statement:
        """A store for every vector of a tile, written out."""
        store = Store(buffer, address, self.parts.simplify(value))
        (loop,) = around((For(lane, "vectorized", (store,)),), axes, "unrolled")
        return loop

    def _tile(self, tile: PixelTile) -> Body:
        """The weights, the sums from the bias on, all taps, the epilogue and the stores."""
        parts, lanes, taps = self.parts, tile.lanes, math.prod(self.spec.kernel)
        weights = parts.private("registers", "w", lanes * (taps if self.resident else self.spec.kernel[-1]), self.dtype)
        own = (self._weights(weights, taps, 0, tile.channel, lanes),) if self.resident else ()
        acc = parts.private("registers", "acc", tile.pixels * lanes, self.dtype)
        p, c = parts.axis("p", tile.pixels), parts.axis("c", lanes)
        bias = parts.begin(self.epilogue, parts.place([(tile.channel, 1), (c, 1)]), self.dtype)
        start = self._vectors((p,), c, acc, parts.place([(p, lanes), (c, 1)]), bias)
        return (*own, *self._ahead(tile), start, *self._taps(tile, acc, weights), *self._result(tile, acc))

    def _ahead(self, tile: PixelTile) -> Body:
        """Ask for what the next output row writes and, of data from beyond the caches, reads below this tile."""
        spec, parts, out = self.spec, self.parts, self.spec.out
        if len(spec.kernel) != 2:
            return ()
        written = [*zip(tile.position, out.strides), (tile.channel, out.strides[-1])]
        pixels = 0 if spec.by_pixels else tile.pixels  # of a channel; the others are far away
        starts = (out.offset + out.strides[1] + x * out.strides[-2] for x in range(pixels))
        lines = tuple(Prefetch(parts.buffers["out0"], parts.place(written, start)) for start in starts)
        if spec.data.bytes <= FAR_BYTES:
            return lines
        steps = spec.data.strides
        read = [*self._place_of(tile), (tile.channel, steps[-1])]
        below = self._start() + spec.padding[-1] * steps[-2] + ((spec.kernel[0] - 1) * spec.dilation[0] + 1) * steps[1]
        spots = itertools.product(range(spec.strides[0]), range(tile.pixels * spec.strides[-1]))
        starts = (below + y * steps[1] + x * steps[-2] for y, x in spots)
        return (*lines, *(Prefetch(parts.buffers["in0"], parts.place(read, start)) for start in starts))

    def _place_of(self, tile: PixelTile) -> list[tuple[Place, int]]:
        """Where the first tap of a tile is read, as terms of an address."""
        moves = (1, *self.spec.strides)
        return [(at, s * step) for at, s, step in zip(tile.position, moves, self.spec.data.strides)]

    def _start(self) -> int:
        """Where the first tap of the first pixel is read."""
        data = self.spec.data
        return data.offset - sum(p * step for p, step in zip(self.spec.padding, data.strides[1:]))

    def _taps(self, tile: PixelTile, acc: Tensor, weights: Tensor) -> Body:
        """All rows of the kernel: written out with the weights in registers, or loops that read them row by row."""
        parts, (*leading, taps) = self.parts, self.spec.kernel
        axes = [parts.axis("k", extent) for extent in leading]
        first = parts.number([*axes, 0], self.spec.kernel)
        if self.resident:
            return around(self._products(tile, axes, acc, weights, first), axes, "unrolled")
        own = self._weights(weights, taps, first, tile.channel, tile.lanes)
        return around((own, *self._products(tile, axes, acc, weights, 0)), axes, "serial")

    def _products(self, tile: PixelTile, rows: Sequence[Axis], acc: Tensor, weights: Tensor, first: Place) -> Body:
        """A row of the kernel: the columns of data that it reaches are brought into registers, and feed every pixel."""
        parts, lanes, stride, taps = self.parts, tile.lanes, self.spec.strides[-1], self.spec.kernel[-1]
        span = (tile.pixels - 1) * stride + 1  # columns that a tap reads
        gap = min(self.spec.dilation[-1], span)  # from a tap's columns to those of the next, of what is read
        row = parts.private("registers", "x", (span + (taps - 1) * gap) * lanes, self.dtype)
        p, t, c = (parts.axis(name, n) for name, n in (("p", tile.pixels), ("t", taps), ("c", lanes)))
        cell = parts.place([(p, lanes), (c, 1)])
        x = Load(row, (parts.place([(p, stride * lanes), (t, gap * lanes), (c, 1)]),))
        w = Load(weights, (parts.place([(first, lanes), (t, lanes), (c, 1)]),))
        # Taps outside: one vector of weights is alive. With a stride, pixels share few columns: more of those would be.
        order = (t, p) if stride == 1 else (p, t)
        products = self._vectors(order, c, acc, cell, Load(acc, (cell,)) + x * w)
        if gap == self.spec.dilation[-1]:
            return (self._columns(tile, rows, row, (1, span + (taps - 1) * gap)), products)
        return (self._columns(tile, rows, row, (taps, span)), products)

    def _columns(self, tile: PixelTile, rows: Sequence[Axis], row: Tensor, counts: tuple[int, int]) -> Statement:
        """What a row of the kernel reads of the data, in registers: so many runs, a tap apart, of so many columns."""
        spec, parts, steps = self.spec, self.parts, self.spec.data.strides
        t, q, c = (parts.axis(name, n) for name, n in zip("tqc", (*counts, tile.lanes)))
        terms = self._place_of(tile)
        terms += [(k, d * step) for k, d, step in zip((*rows, t), spec.dilation, steps[1:])]
        terms += [(q, steps[-2]), (tile.channel, steps[-1]), (c, steps[-1])]
        value = Load(parts.buffers["in0"], (parts.place(terms, self._start()),))
        cell = parts.place([(t, counts[1] * tile.lanes), (q, tile.lanes), (c, 1)])
        return self._vectors((t, q), c, row, cell, value)

    def _result(self, tile: PixelTile, acc: Tensor) -> Body:
        """The finished sums through the epilogue to where they belong."""
        parts, out = self.parts, self.spec.out
        p, c = parts.axis("p", tile.pixels), parts.axis("c", tile.lanes)
        channel = parts.place([(tile.channel, 1), (c, 1)])
        spot = [*tile.position[:-1], parts.place([(tile.position[-1], 1), (p, 1)]), channel]
        cell, place = parts.place([(p, tile.lanes), (c, 1)]), parts.place([*zip(spot, out.strides)], out.offset)
        groups = [((n,), as_index(at)) for n, at in zip(out.shape, spot)]
        finished = lambda sums: parts.finished(self.epilogue, Load(sums, (cell,)), groups)
        if tile.pixels == 1 or not self.spec.by_pixels:
            return (self._vectors((p,), c, parts.buffers["out0"], place, finished(acc)),)
        # Pixels lie side by side: they are the lanes, and squares are transposed in registers.
        kept = parts.private("scratch", "tile", acc.shape[0], self.dtype)
        store = Store(parts.buffers["out0"], place, parts.simplify(finished(kept)))
        across = around(around((store,), (c,), "serial"), (p,), "vectorized")
        p, c = parts.axis("p", tile.pixels), parts.axis("c", tile.lanes)
        cell = parts.place([(p, tile.lanes), (c, 1)])
        return (self._vectors((p,), c, kept, cell, Load(acc, (cell,))), *across)


def depthwise_program(spec: ConvSpec, target: CpuTarget, epilogue: Epilogue) -> LoopProgram:
    """The convolution as a loop program."""
    data, out = spec.data, spec.out
    weights = math.prod(spec.kernel) * whole_vectors(out.shape[-1], target.lanes(data.dtype))
    buffers = {
        "in0": operand("in0", data, needed_halo(spec)),
        "weight0": Tensor("weight0", (weights,), data.dtype),
        "out0": operand("out0", out),
        **epilogue_buffers(epilogue, out.shape[-1], data.dtype),
    }
    parts = ProgramParts(buffers)
    nest = DepthwiseLoops(spec, target, epilogue, parts).nest()
    return LoopProgram("depthwise", tuple(buffers.items()), tuple(parts.scratch), (nest,), tuple(parts.registers))


class Depthwise(ConvolutionFamily):
    """Every channel by itself."""

    name = "depthwise"
    title = "depthwise"
    choices = frozenset({"rows"})
    inputs = True

    def declines(self, spec: ConvSpec, target: CpuTarget) -> str:
        if spec.groups != spec.data.shape[-1] or spec.out.shape[-1] != spec.groups or spec.groups == 1:
            return "not one input and one output channel per group"
        if spec.kernel[-1] > LONGEST_ROW:
            return f"a kernel row of {spec.kernel[-1]} taps"
        return super().declines(spec, target)

    def cycles(self, spec: ConvSpec, target: CpuTarget) -> float:
        """A product and less than a load for a vector of every pixel and tap, and its store."""
        vectors = spec.out.size // spec.groups * -(-spec.groups // target.lanes(spec.data.dtype))
        return vectors * (2 * math.prod(spec.kernel) + STORE_CYCLES)

    def reasons(self, spec: ConvSpec, target: CpuTarget) -> list[str]:
        return [
            "every channel has its own filter, there is nothing to contract over",
            "lanes run along the channels, registers hold neighbouring pixels",
        ]

    def halo(self, spec: ConvSpec) -> Halo:
        """What is read, and a gap that keeps pixels out of each other's cache sets."""
        channels = spec.data.shape[-1]
        return (*needed_halo(spec)[:-1], (0, channel_pitch(channels, spec.data.dtype) - channels))

    def kernels(self, spec: ConvSpec, target: CpuTarget, epilogue: Epilogue) -> KernelSequence:
        cost = (2 * spec.out.size * math.prod(spec.kernel), spec.data.bytes + spec.out.bytes)
        program = depthwise_program(spec, target, epilogue)
        return KernelSequence((lower_program(program, target, True, cost).by_content("depthwise"),))

    def pack(self, spec: ConvSpec, target: CpuTarget, weight: np.ndarray) -> Packing:
        """[*kernel][C padded to whole vectors]."""
        channels, taps = weight.shape[0], math.prod(spec.kernel)
        pitch = whole_vectors(channels, target.lanes(spec.data.dtype))

        def write(out: np.ndarray) -> None:
            out.reshape(taps, pitch)[:, :channels] = weight.reshape(channels, taps).T

        return Packing(taps * pitch, weight.dtype, write)

    def packing(self, spec: ConvSpec, target: CpuTarget) -> WeightPacking:
        pitch, dtype = whole_vectors(spec.groups, target.lanes(spec.data.dtype)), spec.data.dtype

        def blocks(weights: MemoryView) -> list[PackedBlock]:  # [C, digits of *kernel, 1]
            channels, *digits, _ = weights.shape
            zero, taps = Const(0, dtype), dense_strides((*digits, pitch))
            element = lambda w, i: guard(i[-1] < channels, Load(w, (i[-1], *i[:-1], as_index(0))), zero)
            return [PackedBlock((*digits, pitch), taps, 0, element)]

        return WeightPacking(math.prod(spec.kernel) * pitch, blocks)


DEPTHWISE = CONVOLUTIONS.declare(Depthwise())
