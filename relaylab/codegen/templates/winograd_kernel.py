"""The loops and the kernels of convolutions by minimal filtering: see `winograd` for their two shapes.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, KernelSequence, MemoryView
from relaylab.codegen.kernels.views import Halo
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates.convolution_family import CONVOLUTIONS, ConvolutionFamily, ConvSpec
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.minimal import WEIGHT_TRANSFORM, Filtering, Transform, input_points, outputs
from relaylab.codegen.templates.pack import Packing, WeightPacking
from relaylab.codegen.templates.program_parts import Place, ProgramParts, around, epilogue_buffers, operand, split_place
from relaylab.codegen.templates.schedule import estimate, packed_size, plan_reasons, schedule_contraction
from relaylab.codegen.templates.tile_loops import TileLoops
from relaylab.codegen.templates.winograd import (
    TapRow,
    WinogradShape,
    ill_shaped,
    pack_winograd,
    plain_tap,
    point_problem,
    tiled_halo,
    winograd_blocks,
    winograd_shape,
)
from relaylab.loop.expr import Axis, Load, Local, ScalarExpr, Tensor, as_index, of_part
from relaylab.loop.program import Body, Define, For, LoopNest, LoopProgram, Statement, Store

TRANSFORM_CYCLES = {
    (2, 2): (40.0, 40.0), (2, 3): (70.0, 65.0), (3, 2): (70.0, 80.0),
    (4, 3): (280.0, 230.0), (3, 4): (280.0, 190.0), (2, 5): (280.0, 150.0),
}  # fmt: skip
"""Of F(m, r) per tile and vector of channels: into it, and back."""
ADDED_TAPS = 1.15
KEPT_POINTS = 6 << 20  # bytes of workspaces that a cache beyond the second level keeps while they are written and read
Step = Callable[[Place, Place, Place], Body]
"""The statements for a tile of a phase of the results, whose points are at a slot of the workspace."""


class WinogradLoops:
    """Writes the steps of F(m, r). "work0" and "work1" are the workspaces of input points and products."""

    def __init__(
        self, spec: ConvSpec, shape: WinogradShape, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts
    ):
        self.spec, self.shape, self.target, self.epilogue, self.parts = spec, shape, target, epilogue, parts
        self.m, self.edge = shape.filter.m, shape.filter.edge
        self.width = target.lanes("float32")

    def over_tiles(self, step: Step) -> LoopNest:
        """One step, parallel over all tiles of all phases."""
        item, body = self.parts.axis("tile", self.shape.parts * self.shape.tiles), list[Statement]()
        phase, tile = split_place(item, (self.shape.parts, self.shape.tiles))
        phase, tile = (self.parts.named(name, at, body) for name, at in (("phase", phase), ("t", tile)))
        return LoopNest(For(item, "serial", (*body, *step(tile, tile, phase))))

    def blocked(self) -> LoopNest:
        """All three steps, parallel over blocks of tiles."""
        shape, parts = self.shape, self.parts
        block = parts.axis("block", shape.blocks.count)
        start: list[Statement] = []
        first = parts.named("first", parts.start(shape.blocks, block), start)
        stop = parts.stop(shape.blocks, block)

        def tiles(step: Step) -> For:
            t = parts.axis("t", shape.block)
            return For(t, "serial", step(parts.place([(first, 1), (t, 1)]), t, 0), stop=stop)

        into = tiles(self.points)
        return LoopNest(For(block, "serial", (*start, into, self.products().loop, tiles(self.results))))

    def products(self) -> LoopNest:
        """The products at all points."""
        problem = point_problem(self.shape)
        schedule = schedule_contraction(problem, self.target)
        return TileLoops(problem, schedule, self.width, Epilogue(), self.parts).nest()

    def _place(self, tile: Place, phase: Place, into: list[Statement]) -> list[Place]:
        """(image, row of tiles, column of tiles, phases along both axes) of a tile."""
        shape, phases = self.shape, (self.shape.phases,) * 2
        extents = (shape.batch, shape.high, shape.wide)
        if shape.shared:
            *apart, n, y, x = split_place(tile, (*phases, *extents))
        else:
            (n, y, x), apart = split_place(tile, extents), split_place(phase, phases)
        return [self.parts.named(name, at, into) for name, at in zip("nyxfg", (n, y, x, *apart))]

    def _over_channels(self, channels: int, body: Callable[[Place, int], Body]) -> Body:
        """body(first channel, so many) over all channels, a vector at a time."""
        full, rest = divmod(channels, self.width)
        block = self.parts.axis("v", full)
        whole = around(body(block * self.width, self.width), (block,), "serial") if full else ()
        return (*whole, *(body(full * self.width, rest) if rest else ()))

    def _one_way(
        self, name: str, transform: Transform, size: int, lanes: int,
        read: Callable[[int, Axis, Place], ScalarExpr], write: Callable[[int, Axis, Place, ScalarExpr], Store],
    ) -> For:  # fmt: skip
        """One transform for all columns, or rows, of a square: read(k, line, channel) to write(k, line, channel, x)."""
        parts = self.parts
        line, c = parts.axis(name, size), parts.axis("c", lanes)
        body: list[Statement] = []

        def keep(name: str, value: ScalarExpr) -> Local:
            local = Local(parts.name(name), value.dtype)
            body.append(Define(local, parts.simplify(value)))
            return local

        found = [keep("d", read(k, line, c)) for k in range(self.edge)]
        results = transform(self.shape.filter, found, keep)
        body += (write(k, line, c, x) for k, x in enumerate(results))
        return For(line, "unrolled", around(tuple(body), (c,), "vectorized"))

    # ---- inputs to points

    def points(self, tile: Place, slot: Place, phase: Place) -> Body:
        """One tile's inputs to its points: channels of all phases of the input, row by row."""
        parts, data, shape, folded = self.parts, self.spec.data, self.shape, self.shape.folded
        ic, body = data.shape[3], list[Statement]()
        *place, f, g = self._place(tile, phase, body)
        shift = data.offset - sum(p * s for p, s in zip(shape.before, data.strides[1:]))
        jump = self.m * shape.step
        corner = [(at, by * s) for at, by, s in zip(place, (1, jump, jump), data.strides)]
        later = lambda at, lead: at if shape.shared else parts.simplify((as_index(at) + lead) // shape.phases)
        corner += [(later(at, lead), s) for at, lead, s in zip((f, g), shape.lead, data.strides[1:])]
        # The phases of one row are then one run of channels: fewer, longer loops.
        merged = folded > 1 and data.strides[2:] == (ic, 1)  # the phases of a row are neighbours
        across, channels = (1, folded * ic) if merged else (folded, ic)
        p, q = parts.axis("p", folded), parts.axis("q", across)
        source = [*corner, (p, data.strides[1]), (q, data.strides[2])]
        target = [self._points_of(phase, shape.in_channels), (slot, shape.in_channels), (p, folded * ic), (q, ic)]
        inner = self._over_channels(channels, lambda c, lanes: self._points(source, shift, target, c, lanes))
        return (*body, *around(inner, (p, q), "serial"))

    def _points(
        self,
        source: Sequence[tuple[Place, int]],
        shift: int,
        target: Sequence[tuple[Place, int]],
        first: Place,
        lanes: int,
    ) -> Body:
        """The points of a vector of channels of one phase."""
        parts, data, step, edge = self.parts, self.spec.data, self.shape.step, self.edge
        square = parts.private("registers", "square", edge * edge * lanes, "float32")
        pitch, into = self.shape.pitch(self.shape.in_channels), parts.buffers["work0"]

        def read(a: int, b: Axis, c: Place) -> Load:
            channel = as_index(first) + c
            terms = [*source, (b, step * data.strides[2]), (channel, data.strides[3])]
            return Load(parts.buffers["in0"], (parts.place(terms, shift + a * step * data.strides[1]),))

        def write(b: int, a: Axis, c: Place, x: ScalarExpr) -> Store:
            return Store(into, parts.place([*target, (first, 1), (c, 1), (a, edge * pitch)], b * pitch), x)

        return self._both_ways(input_points, square, lanes, read, write)

    def _both_ways(
        self, transform: Transform, square: Tensor, lanes: int,
        read: Callable[[int, Axis, Place], ScalarExpr], write: Callable[[int, Axis, Place, ScalarExpr], Store],
    ) -> Body:  # fmt: skip
        """Columns to a square in registers, then its rows to what is written."""
        parts, edge = self.parts, self.edge
        keep = lambda k, b, c, x: Store(square, parts.place([(b, lanes), (c, 1)], k * edge * lanes), parts.simplify(x))
        kept = lambda k, a, c: Load(square, (parts.place([(a, edge * lanes), (c, 1)], k * lanes),))
        columns = self._one_way("column", transform, edge, lanes, read, keep)
        rows = square.shape[0] // (edge * lanes)
        done = lambda k, a, c, x: write(k, a, c, parts.simplify(x))
        return (columns, self._one_way("row", transform, rows, lanes, kept, done))

    def _points_of(self, phase: Place, channels: int) -> tuple[Place, int]:
        """Where a workspace has the points of a phase of the results."""
        return phase, self.shape.filter.points * self.shape.pitch(channels)

    # ---- products to results

    def results(self, tile: Place, slot: Place, phase: Place) -> Body:
        """One tile's products to its outputs, through the epilogue."""
        body: list[Statement] = []
        place = self._place(tile, phase, body)
        begin = [self._points_of(phase, self.shape.out_channels), (slot, self.shape.out_channels)]
        buffer = self.parts.private("scratch", "outputs", self.m * self.m * self.width, "float32")
        inner = self._over_channels(
            self.shape.out_channels, lambda c, lanes: self._results(place, begin, buffer, c, lanes)
        )
        return (*body, *inner)

    def _results(
        self, place: Sequence[Place], begin: Sequence[tuple[Place, int]], buffer: Tensor, first: Place, lanes: int
    ) -> Body:
        parts, m, edge = self.parts, self.m, self.edge
        square = parts.private("registers", "square", edge * m * lanes, "float32")
        pitch, source = self.shape.pitch(self.shape.out_channels), parts.buffers["work1"]
        bias, part = self.epilogue.bias, self.epilogue.bias_part

        def read(a: int, b: Axis, c: Place) -> Load:
            terms = [*begin, (first, 1), (c, 1), (b, pitch)]
            return Load(source, (parts.place(terms, a * edge * pitch),))

        def write(b: int, a: Axis, c: Place, x: ScalarExpr) -> Store:
            if bias is not None:
                x = of_part(x + Load(parts.buffers[bias], (parts.place([(first, 1), (c, 1)]),), part), part)
            return Store(buffer, parts.place([(a, m * lanes), (c, 1)], b * lanes), parts.simplify(x))

        return (*self._both_ways(outputs, square, lanes, read, write), self._stores(place, buffer, first, lanes))

    def _stores(self, place: Sequence[Place], buffer: Tensor, first: Place, lanes: int) -> For:
        """Send the outputs that lie inside the image through the epilogue."""
        # A loop, not m * m copies of the epilogue: less code, and at the edges of an image it turns less often.
        parts, m, out, phases = self.parts, self.m, self.spec.out, self.shape.phases
        n, y, x, f, g = place
        a, jump = parts.axis("a", m), m * phases
        high, wide = (  # phases may be of different sizes
            parts.simplify((size + phases - 1 - as_index(phase)) // phases - as_index(at) * m) if size % jump else None
            for size, at, phase in zip(out.shape[1:3], (y, x), (f, g))
        )

        def store(b: Axis, c: Axis) -> Store:
            rows, columns = (
                parts.place([(at, jump), (k, phases), (phase, 1)]) for at, k, phase in ((y, a, f), (x, b, g))
            )
            index = (as_index(n), rows, columns, parts.place([(first, 1), (c, 1)]))
            value = Load(buffer, (parts.place([(a, m * lanes), (b, lanes), (c, 1)]),))
            result = parts.finished(self.epilogue, value, [((n,), at) for n, at in zip(out.shape, index)])
            return Store(parts.buffers["out0"], parts.place([*zip(index, out.strides)], out.offset), result)

        def across(pixels: int) -> Body:
            b, c = parts.axis("b", pixels), parts.axis("c", lanes)
            return around(around((store(b, c),), (c,), "serial"), (b,), "vectorized")

        if self.spec.by_pixels:  # they are the lanes
            row = parts.choose(x, out.shape[2] // m, lambda: across(m), lambda: across(out.shape[2] % m))
        else:
            b, c = parts.axis("b", m), parts.axis("c", lanes)
            row = (For(b, "serial", around((store(b, c),), (c,), "vectorized"), stop=wide),)
        return For(a, "serial", row, stop=high)


def _program(
    name: str, spec: ConvSpec, shape: WinogradShape, target: CpuTarget, epilogue: Epilogue, roles: Sequence[str]
) -> tuple[WinogradLoops, Callable[[LoopNest], LoopProgram]]:
    """What writes the steps over operands with these roles, and what makes a program of them."""
    sizes = {**shape.workspaces, "weight0": packed_size(point_problem(shape), target)}
    found = {role: Tensor(role, (size,), "float32") for role, size in sizes.items()}
    found["in0"] = operand("in0", spec.data, tiled_halo(spec, shape))
    found["out0"] = operand("out0", spec.out)
    sides = epilogue_buffers(epilogue, shape.out_channels, "float32")
    own = {role: found[role] for role in roles} | (sides if "out0" in roles else {})
    parts = ProgramParts({**found, **sides, "x": found["work0"], "w": found["weight0"], "out": found["work1"]})
    parts.scratch += [found[role] for role in shape.workspaces if shape.blocked]
    make = lambda nest: LoopProgram(name, tuple(own.items()), tuple(parts.scratch), (nest,), tuple(parts.registers))
    return WinogradLoops(spec, shape, target, epilogue, parts), make


def winograd_programs(
    spec: ConvSpec, shape: WinogradShape, target: CpuTarget, epilogue: Epilogue
) -> tuple[LoopProgram, ...]:
    """The loops of the kernels: the blocked one, or both transforms with the products at all points between them."""
    if shape.blocked:
        loops, make = _program("winograd", spec, shape, target, epilogue, ("in0", "weight0", "out0"))
        return (make(loops.blocked()),)
    return (*_first_programs(spec, shape, target), _last_program(spec, shape, target, epilogue))


def _first_programs(spec: ConvSpec, shape: WinogradShape, target: CpuTarget) -> tuple[LoopProgram, LoopProgram]:
    into, first = _program("winograd_in", spec, shape, target, Epilogue(), ("in0", "work0"))
    products, second = _program("winograd_mul", spec, shape, target, Epilogue(), ("work0", "weight0", "work1"))
    return first(into.over_tiles(into.points)), second(products.products())


def _last_program(spec: ConvSpec, shape: WinogradShape, target: CpuTarget, epilogue: Epilogue) -> LoopProgram:
    back, make = _program("winograd_out", spec, shape, target, epilogue, ("work1", "out0"))
    return make(back.over_tiles(back.results))


def _lowered(program: LoopProgram, spec: ConvSpec, shape: WinogradShape, target: CpuTarget) -> Kernel:
    traffic = spec.data.bytes + spec.out.bytes + shape.weights * 4
    # The operations of the convolution as it is defined, to compare with direct kernels.
    flops = 2 * spec.out.size * math.prod(spec.kernel) * spec.data.shape[-1] // shape.parts
    work = {"winograd_in": (0, spec.data.bytes), "winograd_out": (0, spec.out.bytes)}
    return lower_program(program, target, True, work.get(program.name, (flops, traffic))).by_content(program.name)


@lru_cache(maxsize=16)
def _first_kernels(spec: ConvSpec, shape: WinogradShape, target: CpuTarget) -> tuple[Kernel, ...]:
    """The first two of three kernels, which layers with other epilogues share."""
    return tuple(_lowered(program, spec, shape, target) for program in _first_programs(spec, shape, target))


class MinimalFiltering(ConvolutionFamily):
    """F(m, r) for one m and r."""

    title = "minimal filtering"
    minimal = True
    inputs = True
    advantage = 0.95  # it rounds more and its kernels are larger

    def __init__(self, filter: Filtering):
        self.filter, self.name = filter, f"winograd{filter}"

    def shape(self, spec: ConvSpec) -> WinogradShape:
        """The tiles."""
        return winograd_shape(spec, self.filter)

    def reads(self, spec: ConvSpec) -> Halo:
        return tiled_halo(spec, self.shape(spec))

    def declines(self, spec: ConvSpec, target: CpuTarget) -> str:
        return ill_shaped(spec, self.filter) or super().declines(spec, target)

    def cycles(self, spec: ConvSpec, target: CpuTarget) -> float:
        """The products at all points, and the transforms there and back."""
        shape, width = self.shape(spec), target.lanes("float32")
        into, back = TRANSFORM_CYCLES[self.filter]
        vectors = -(-shape.in_channels // width) * into + -(-shape.out_channels // width) * back
        products = estimate(point_problem(shape), target, shape.weights * 4)
        # A blocked kernel walks the weights once per block of tiles, the other form once for all.
        products *= shape.blocks.count if shape.blocked else 1
        # Points that no cache keeps are fetched to be written, written and read.
        far = 0 if shape.blocked else max(0, 4 * sum(shape.workspaces.values()) - KEPT_POINTS)
        moved = 3 * far / target.facts.cold_bytes
        cycles = products + shape.parts * shape.tiles * vectors + moved + self.packing_cycles(spec, target)
        # With taps of zero weights grow up to seven times: building and memory pay for it, so it must be worth that.
        return cycles * (ADDED_TAPS if spec.kernel[0] % spec.strides[0] else 1.0)

    def reasons(self, spec: ConvSpec, target: CpuTarget) -> list[str]:
        shape = self.shape(spec)
        why = "the transformed weights are large" if shape.parts == 1 else "each phase of the stride has its weights"
        form = (
            "the points of a block fit the second-level cache: one kernel, "
            f"{shape.blocks.count} blocks of <= {shape.block} tiles"
            if shape.blocked
            else f"{why}: three kernels, each over all tiles"
        )
        return [form, *plan_reasons(point_problem(shape), target)]

    def kernels(self, spec: ConvSpec, target: CpuTarget, epilogue: Epilogue) -> KernelSequence:
        """One kernel, or three that share the workspaces "work0" and "work1"."""
        shape = self.shape(spec)
        if shape.blocked:
            programs = winograd_programs(spec, shape, target, epilogue)
            return KernelSequence(tuple(_lowered(program, spec, shape, target) for program in programs))
        anywhere = replace(spec, out=MemoryView.dense(spec.out.shape, spec.out.dtype))  # of it they know the shape
        last = _lowered(_last_program(spec, shape, target, epilogue), spec, shape, target)
        sizes = tuple((role, size * 4) for role, size in shape.workspaces.items())
        return KernelSequence((*_first_kernels(anywhere, shape, target), last), sizes)

    def pack(self, spec: ConvSpec, target: CpuTarget, weight: np.ndarray) -> Packing:
        return pack_winograd(self.shape(spec), target, [weight])

    def packing(self, spec: ConvSpec, target: CpuTarget) -> WeightPacking:
        shape = self.shape(spec)
        blocks = lambda weights: winograd_blocks(shape, target, self.taps(spec))
        return WeightPacking(packed_size(point_problem(shape), target), blocks, mixes=True)

    def taps(self, spec: ConvSpec) -> list[TapRow]:
        """Which weights the phases of the results have, those of weights that are an input."""
        return [plain_tap(spec, self.shape(spec))]


MINIMAL = {f: CONVOLUTIONS.declare(MinimalFiltering(f)) for f in WEIGHT_TRANSFORM}
