"""Convolution by minimal filtering: transform tiles, multiply point by point, transform back.

F(2, 3) and F(4, 3) do 3x3 kernels of stride one. With stride s every s-th pixel meets every s-th tap: the s x s phases
of an image are channels of an image s times smaller, and a kernel of s r taps is one of r taps. So F(3, 2) does
4x4 kernels of stride two and 8x8 of stride four, and the other two 6x6 of stride two.

Two shapes of the same work. `blocked`: one kernel whose work item takes a block of tiles through all three steps in
per-thread scratch; for weights that stay in cache. Otherwise three kernels, each parallel over the whole tensor,
with the points in two workspaces: for weights so large that they should be streamed only once.

Error: transforms amplify rounding. On the weights of trained networks the largest error is below 8e-7 of the largest
output for F(2, 3) and F(3, 2), which has its points, and below 1e-5 for F(4, 3); it grows with the square root of the
depth. Infinities in the input become NaN, as sums of opposite signs are formed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel
from relaylab.codegen.kernels.views import Halo
from relaylab.codegen.llvm.text import Index, IRFunction, Value
from relaylab.codegen.templates.assemble import contraction
from relaylab.codegen.templates.conv import ConvSpec, missing_halo, needed_halo
from relaylab.codegen.templates.minimal import TAPS, input_points, outputs, transform_square, transform_weights
from relaylab.codegen.templates.nest import OperandPointers, TileNest, loops_text, start_text
from relaylab.codegen.templates.output_site import Epilogue, OutputSite, load_lanes, split_index, store_lanes
from relaylab.codegen.templates.pack import pack_panels
from relaylab.codegen.templates.problem import UNIT, OutputAxis, Problem, Split, Tap
from relaylab.codegen.templates.schedule import schedule_contraction
from relaylab.support.errors import RelayValueError

CACHED_POINTS = 640 << 10  # bytes of transformed weights that stay in a second-level cache
BLOCK_BYTES = 288 << 10  # bytes of points of one block of tiles
LINE = 64


@dataclass(frozen=True, slots=True)
class WinogradShape:
    """The numbers of one F(m, r) convolution. `in_channels` count the phases of a stride; pitches are elements between
    two points of a workspace.
    """

    m: int
    batch: int
    high: int
    wide: int
    in_channels: int
    out_channels: int
    blocks: Split
    blocked: bool

    @property
    def block(self) -> int:
        """Tiles that the workspace holds."""
        return self.blocks.sizes[0]

    @property
    def points(self) -> int:
        """Products per tile and channel pair."""
        return points_of(self.m)

    @property
    def tiles(self) -> int:
        """Output tiles."""
        return self.batch * self.high * self.wide

    def pitch(self, channels: int) -> int:
        """Elements from one point to the next: an odd number of lines keeps points out of each other's cache sets."""
        lines = -(-self.block * channels // 16)
        return (lines + 1 | 1) * 16


def points_of(m: int) -> int:
    """The points of a tile of F(m, r)."""
    return (m + TAPS[m] - 1) ** 2


@lru_cache(maxsize=1024)
def winograd_shape(spec: ConvSpec, m: int) -> WinogradShape:
    """The tiling of a convolution by F(m, r)."""
    high, wide = (-(-n // m) for n in spec.out.shape[1:3])
    tiles, points = spec.out.shape[0] * high * wide, points_of(m)
    ic, oc = spec.data.shape[-1] * spec.strides[0] ** 2, spec.out.shape[-1]
    # Weights that stay in the second-level cache may be read once per block; larger ones are streamed once in all.
    blocked = points * ic * oc * spec.data.itemsize <= CACHED_POINTS
    # 14 tiles are the rows of the largest register tile. Blocks come in fours where there are enough tiles, so that
    # two or four threads get equal shares.
    limit = max(14, BLOCK_BYTES // (points * (ic + oc) * spec.data.itemsize)) if blocked else tiles
    count = Split.at_most(tiles, limit).count
    blocks = Split(tiles, min(tiles, -(-count // 4) * 4 if tiles >= 32 else count) if blocked else 1)
    return WinogradShape(m, spec.out.shape[0], high, wide, ic, oc, blocks, blocked)


def needed_winograd_halo(spec: ConvSpec, m: int) -> Halo:
    """The zero elements (before, after) that F(m, r) reads around each axis: whole tiles, more than `needed_halo`."""
    bare = needed_halo(spec)
    extra = [(-(-n // m) * m - n) * step for n, step in zip(spec.out.shape[1:3], spec.strides)]
    return (bare[0], *((a, b + e) for (a, b), e in zip(bare[1:3], extra)), bare[3])


def supports_winograd(spec: ConvSpec, m: int) -> str:
    """Why F(m, r) does not do the convolution; empty when it does."""
    if m not in TAPS or len(spec.kernel) != 2 or spec.dilation != (1, 1) or spec.groups != 1:
        return "anything but one group of two axes without dilation"
    step = spec.strides[0]
    if spec.strides != (step, step) or spec.kernel != (step * TAPS[m],) * 2:
        return f"a kernel {spec.kernel} with strides {spec.strides} that is not {TAPS[m]} taps a phase"
    if spec.data.dtype != "float32":
        return f"dtype {spec.data.dtype}"
    if 0 in (*spec.out.shape, spec.data.shape[-1]):
        return "an empty extent"
    return missing_halo(spec.data, needed_winograd_halo(spec, m))


def point_problem(shape: WinogradShape) -> Problem:
    """The products at all points as one batch of matrix products."""
    ic, oc = shape.in_channels, shape.out_channels
    member = OutputAxis(shape.points, shape.pitch(ic), shape.pitch(oc))
    return Problem("float32", "float32", member, (UNIT, OutputAxis(shape.block, ic, oc)), (Tap(ic, 1),), oc)


def winograd_workspace(spec: ConvSpec, m: int) -> tuple[int, int]:
    """Bytes of the workspaces "work0" and "work1" that the three-kernel form shares; zeros for the blocked form."""
    shape = winograd_shape(spec, m)
    if shape.blocked:
        return 0, 0
    return shape.points * shape.pitch(shape.in_channels) * 4, shape.points * shape.pitch(shape.out_channels) * 4


class _Winograd:
    """Emits the steps. `u` and `v` are the workspaces of input points and products."""

    def __init__(
        self, f: IRFunction, spec: ConvSpec, m: int, target: CpuTarget, epilogue: Epilogue, roles: dict[str, Value]
    ):
        self.f, self.spec, self.m, self.target, self.epilogue = f, spec, m, target, epilogue
        self.shape, self.roles = winograd_shape(spec, m), roles
        self.width = target.lanes("float32")
        self.edge = m + TAPS[m] - 1

    def per_channels(self, channels: int, body) -> None:
        """body(first channel, active lanes) over all channels."""
        full, rest = divmod(channels, self.width)
        self.f.loop(0, full, lambda c: body(self.f.mul(c, self.width), self.width))
        if rest:
            body(full * self.width, rest)

    def place(self, tile: Index) -> tuple[Index, Index, Index]:
        """(image, first output row, first output column) of a tile."""
        n, y, x = split_index(self.f, tile, (self.shape.batch, self.shape.high, self.shape.wide))
        return n, self.f.mul(y, self.m), self.f.mul(x, self.m)

    def transform_input(self, tile: Index, slot: Index) -> None:
        """One tile's inputs to its points, at `slot` of the workspace: channels of all phases, row by row."""
        f, data, step = self.f, self.spec.data, self.spec.strides[0]
        n, y, x = self.place(tile)
        start = (n, *(f.sub(f.mul(at, step), pad) for at, pad in zip((y, x), self.spec.padding)))
        corner = f.dot(start, data.strides, data.offset)
        here = f.mul(slot, self.shape.in_channels)
        ic = data.shape[3]
        # The phases of one row are then one run of channels: fewer, longer loops.
        merged = step > 1 and data.strides[2:] == (ic, 1)  # the phases of a row are neighbours
        across, channels = (1, step * ic) if merged else (step, ic)

        def phase(p: Index, q: Index) -> None:
            source = f.add(corner, f.add(f.mul(p, data.strides[1]), f.mul(q, data.strides[2])))
            target = f.add(here, f.add(f.mul(p, step * ic), f.mul(q, ic)))
            self.per_channels(channels, lambda c, active: self._points(source, target, c, active))

        f.loop(0, step, lambda p: f.loop(0, across, lambda q: phase(p, q)))

    def _points(self, source: Index, target: Index, c: Index, active: int) -> None:
        """The points of a vector of channels of one phase."""
        f, data, step, edge = self.f, self.spec.data, self.spec.strides[0], self.edge
        rows, columns = data.strides[1] * step, data.strides[2] * step
        corner = f.offset(self.roles["in0"], f.mul(f.add(source, f.mul(c, data.strides[3])), 4))
        load = lambda steps: load_lanes(
            f, "float", f.offset(corner, 4 * steps), self.width, active, 4 * data.strides[3], 4
        )
        square = [[load(a * rows + b * columns) for b in range(edge)] for a in range(edge)]
        to, pitch = f.offset(self.roles["work0"], f.mul(f.add(target, c), 4)), self.shape.pitch(self.shape.in_channels)
        for p, value in enumerate(sum(transform_square(f, self.m, input_points, square), [])):
            store_lanes(f, value, f.offset(to, p * pitch * 4), active, 4, 4)

    def multiply(self) -> TileNest:
        """The nest of the products at all points."""
        problem = point_problem(self.shape)
        pointers = OperandPointers(self.roles["work0"], self.roles["weight0"], self.roles["work1"], {})
        return TileNest(self.f, problem, schedule_contraction(problem, self.target), self.target, pointers, Epilogue())

    def transform_output(self, tile: Index, slot: Index) -> None:
        """One tile's products to its outputs, through the epilogue."""
        f, pitch, edge = self.f, self.shape.pitch(self.shape.out_channels), self.edge
        n, y, x = self.place(tile)

        def channels(c: Index, active: int) -> None:
            source = f.offset(self.roles["work1"], f.mul(f.add(f.mul(slot, self.shape.out_channels), c), 4))
            square = [
                [
                    load_lanes(f, "float", f.offset(source, (a * edge + b) * pitch * 4), self.width, active, 4, 4)
                    for b in range(edge)
                ]
                for a in range(edge)
            ]
            results = transform_square(f, self.m, outputs, square)
            self.store_square(results, n, y, x, c, active)

        self.per_channels(self.shape.out_channels, channels)

    def store_square(
        self, results: Sequence[Sequence[Value]], n: Index, y: Index, x: Index, c: Index, active: int
    ) -> None:
        """Send the outputs that lie inside the image through the epilogue: a loop over the square on the stack."""
        f, m, step = self.f, self.m, self.width * 4
        height, width = self.spec.out.shape[1:3]
        start, block = self.bias(c, active), f.reserve(m * m * step)
        f.at(self.epilogue.bias_part if start else 0)
        for slot, value in enumerate(sum(map(list, results), [])):
            total = value if start is None else f.binary("fadd", value, start)
            f.store(total, f.offset(block, slot * step), step)
        f.at(0)
        rows = m if height % m == 0 else f.minimum(m, f.sub(height, y))
        columns = m if width % m == 0 else f.minimum(m, f.sub(width, x))

        # A loop, not m * m copies of the epilogue: less code, and at the edges of an image it turns less often.
        def one(a: Index, b: Index) -> None:
            value = f.load(results[0][0].type, f.offset(block, f.mul(f.add(f.mul(a, m), b), step)), step)
            self.store(value, (n, f.add(y, a), f.add(x, b), c), active)

        f.loop(0, rows, lambda a: f.loop(0, columns, lambda b: one(a, b), nonempty=True), nonempty=True)

    def bias(self, c: Index, active: int) -> Value | None:
        """The vector that outputs start from."""
        if self.epilogue.bias is None:
            return None
        self.f.at(self.epilogue.bias_part)
        pointer = self.f.offset(self.roles[self.epilogue.bias], self.f.mul(c, 4))
        value = load_lanes(self.f, "float", pointer, self.width, active, 4, 4)
        self.f.at(0)
        return value

    def store(self, value: Value, index: Sequence[Index], active: int) -> None:
        """One output vector through the epilogue."""
        f, out = self.f, self.spec.out
        site = OutputSite(f, tuple(((n,), at) for n, at in zip(out.shape, index)), self.width, active, self.roles)
        result = self.epilogue.apply(f, value, site, self.target)
        pointer = f.offset(self.roles["out0"], f.mul(f.dot(index, out.strides, out.offset), out.itemsize))
        store_lanes(f, result, pointer, active, out.strides[-1] * out.itemsize, out.itemsize)
        f.at(0)


def winograd(spec: ConvSpec, m: int, target: CpuTarget, epilogue: Epilogue | None = None) -> tuple[Kernel, ...]:
    """The kernels of a convolution by F(m, r), to run one after another: one (blocked) or three.

    Raises RelayValueError for what `supports_winograd` declines.
    """
    reason = supports_winograd(spec, m)
    if reason:
        raise RelayValueError(f"no minimal filtering kernel for {reason}", code="codegen.winograd")
    epilogue = epilogue or Epilogue()
    if winograd_shape(spec, m).blocked:
        return (_blocked(spec, m, target, epilogue),)
    return _phases(spec, m, target, epilogue)


def pack_winograd(spec: ConvSpec, m: int, target: CpuTarget, weight: np.ndarray) -> np.ndarray:
    """Weights [OC, IC, *kernel] transformed and laid out as the kernels of this spec read them, flat."""
    shape, step, r = winograd_shape(spec, m), spec.strides[0], TAPS[m]
    schedule = schedule_contraction(point_problem(shape), target)
    phases = weight.reshape(
        *weight.shape[:2], r, step, r, step
    )  # [OC, IC, row tap, row phase, column tap, column phase]
    taps = phases.transpose(2, 4, 3, 5, 1, 0).reshape(r * r, shape.in_channels, shape.out_channels)
    width = target.lanes("float32")
    packed = pack_panels(taps, schedule.vectors * width, width).reshape(r * r, -1)
    return transform_weights(m, packed).reshape(-1)


def _begin(name: str, operands: tuple[str, ...]) -> tuple[IRFunction, dict[str, Value]]:
    f = IRFunction.kernel(name, operands)
    return f, dict(zip(operands, f.pointers))


def _blocked(spec: ConvSpec, m: int, target: CpuTarget, epilogue: Epilogue) -> Kernel:
    operands = ("in0", "weight0", "out0", *epilogue.operands, "scratch")
    f, roles = _begin("winograd", operands)
    shape = winograd_shape(spec, m)
    sizes = [-(-shape.points * shape.pitch(c) * 4 // LINE) * LINE for c in (shape.in_channels, shape.out_channels)]
    own = f.offset(roles["scratch"], f.mul(f.thread, sum(sizes)))
    roles |= {"work0": own, "work1": f.offset(own, sizes[0])}
    emitter = _Winograd(f, spec, m, target, epilogue, roles)
    nest = emitter.multiply()

    def block(item: Index) -> None:
        first = shape.blocks.start(f, item)
        count = f.sub(shape.blocks.start(f, f.add(item, 1)), first)
        f.loop(0, count, lambda t: emitter.transform_input(f.add(first, t), t), nonempty=True)
        nest.run(0, nest.items)
        f.loop(0, count, lambda t: emitter.transform_output(f.add(first, t), t), nonempty=True)

    f.loop(f.begin, f.end, block)
    text, declares = f.finish()
    return Kernel(
        "winograd",
        text,
        declares,
        operands,
        shape.blocks.count,
        sum(sizes),
        _flops(spec),
        _traffic(spec, shape),
        _loops(shape, nest, epilogue),
    ).by_content("winograd")


def _phases(spec: ConvSpec, m: int, target: CpuTarget, epilogue: Epilogue) -> tuple[Kernel, ...]:
    shape = winograd_shape(spec, m)
    f, roles = _begin("winograd_in", ("in0", "work0"))
    emitter = _Winograd(f, spec, m, target, epilogue, roles)
    f.loop(f.begin, f.end, lambda tile: emitter.transform_input(tile, tile))
    first = Kernel(
        "winograd_in",
        *f.finish(),
        ("in0", "work0"),
        shape.tiles,
        bytes=spec.data.bytes,
        loops=f"winograd_in: parallel over {shape.tiles} tiles\n  u[point, tile, c] = B^T data B\n",
    )
    work = ("work0", "weight0", "work1")
    second = contraction("winograd_mul", point_problem(shape), target, Epilogue(), work, _traffic(spec, shape))
    second = replace(second, flops=_flops(spec))
    operands = ("work1", "out0", *epilogue.operands)
    f, roles = _begin("winograd_out", operands)
    emitter = _Winograd(f, spec, m, target, epilogue, roles)
    f.loop(f.begin, f.end, lambda tile: emitter.transform_output(tile, tile))
    third = Kernel(
        "winograd_out",
        *f.finish(),
        operands,
        shape.tiles,
        bytes=spec.out.bytes,
        loops=f"winograd_out: parallel over {shape.tiles} tiles\n"
        f"  acc = A^T v[point, tile, c] A{_plus_bias(epilogue)}\n  out = {epilogue.shown('acc')}\n",
    )
    return (first.by_content(first.name), second, third.by_content(third.name))


def _flops(spec: ConvSpec) -> int:
    """The operations of the convolution as it is defined, to compare with direct kernels."""
    return 2 * spec.out.size * math.prod(spec.kernel) * spec.data.shape[-1]


def _traffic(spec: ConvSpec, shape: WinogradShape) -> int:
    return spec.data.bytes + spec.out.bytes + shape.points * shape.in_channels * shape.out_channels * 4


def _loops(shape: WinogradShape, nest: TileNest, epilogue: Epilogue) -> str:
    inner = (
        loops_text("products", nest, Epilogue()).replace("parallel over", "loop over").replace("\n", "\n  ").rstrip()
    )
    return (
        f"winograd F({shape.m}, {TAPS[shape.m]}): parallel over {shape.blocks.count} blocks of <= {shape.block} tiles\n"
        f"  for tile in block: u[point, tile, c] = B^T data B\n"
        f"  {inner}\n"
        f"  for tile in block: acc = A^T v[point, tile, c] A{_plus_bias(epilogue)}; out = {epilogue.shown('acc')}\n"
    )


def _plus_bias(epilogue: Epilogue) -> str:
    return "" if epilogue.bias is None else f" + {start_text(epilogue)}"
