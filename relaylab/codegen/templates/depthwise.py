"""Depthwise convolution over channels-last tensors: every channel has its own kernel, lanes run along the channels.

The taps' weights of a channel block stay in registers when they fit; an input vector is loaded once per row of
output pixels and feeds every output that it belongs to. With a channel multiplier, the outputs of one input channel
lie apart and the multiplier is walked outside.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel
from relaylab.codegen.llvm.text import Index, IRFunction, Value, constant, llvm_type, vector
from relaylab.codegen.templates.conv import ConvSpec, supports_conv
from relaylab.codegen.templates.nest import start_text
from relaylab.codegen.templates.output_site import Epilogue, OutputSite, load_lanes, split_index, store_lanes
from relaylab.codegen.templates.problem import Split
from relaylab.support.errors import RelayValueError

MOST_OUTPUTS = 7  # pixels of a register tile: more share fewer loads than they cost registers
ITEMS_WANTED = 16
LONGEST_ROW = 64  # taps of a kernel row, which are unrolled


def supports_depthwise(spec: ConvSpec) -> str:
    """Why this template does not do the convolution; empty when it does."""
    if spec.groups != spec.data.shape[-1] or spec.out.shape[-1] != spec.groups or spec.groups == 1:
        return "not one input and one output channel per group"
    if spec.kernel[-1] > LONGEST_ROW:
        return f"a kernel row of {spec.kernel[-1]} taps"
    return supports_conv(spec)


class _Depthwise:
    """Emits the kernel. A work item is a block of output rows; channel blocks and pixel tiles are inside."""

    def __init__(self, f: IRFunction, spec: ConvSpec, target: CpuTarget, epilogue: Epilogue):
        self.f, self.spec, self.epilogue = f, spec, epilogue
        self.type, self.size = llvm_type(spec.data.dtype), spec.data.itemsize
        self.width, self.target = target.lanes(spec.data.dtype), target
        self.x, self.w, self.out = f.pointers[:3]
        self.side = dict(zip(epilogue.operands, f.pointers[3:]))
        taps = math.prod(spec.kernel)
        spare = target.registers - 3
        # 3x3 and 5x5 kernels keep their weights in registers for a whole row of pixels; at least four are left for
        # sums.
        self.resident = taps <= spare - 4
        limit = spare - taps if self.resident else min(8, spare - 2)
        self.split = Split.at_most(spec.out.shape[-2], max(1, min(limit, MOST_OUTPUTS)))
        self.rows = math.prod(spec.out.shape[:-2])
        # Small images have fewer rows than threads want items: channels are shared out too.
        self.chunks = max(1, min(-(-ITEMS_WANTED // self.rows), self.channels // self.width))

    @property
    def channels(self) -> int:
        """Channels, the extent of the lanes' axis."""
        return self.spec.out.shape[-1]

    @property
    def items(self) -> int:
        """Work items: output rows x chunks of channels."""
        return self.rows * self.chunks

    def run(self) -> None:
        """Emit the loop over work items."""
        self.f.loop(self.f.begin, self.f.end, self._item)

    def _item(self, item: Index) -> None:
        """A chunk of channels of one output row."""
        f, (full, rest) = self.f, divmod(self.channels, self.width)
        *spot, chunk = split_index(f, item, (*self.spec.out.shape[:-2], self.chunks))
        each = -(-full // self.chunks)
        low = f.mul(chunk, each)
        high = f.minimum(f.add(low, each), full) if each * self.chunks != full else f.add(low, each)
        f.loop(low, high, lambda c: self._channels(spot, f.mul(c, self.width), self.width))
        if rest:
            last = f.compare("eq", chunk, self.chunks - 1) if self.chunks > 1 else True
            f.branch(last, lambda: self._channels(spot, full * self.width, rest))

    def _channels(self, spot: Sequence[Index], channel: Index, active: int) -> None:
        """One output row of one channel block."""
        weights = self._weights(channel, 0, math.prod(self.spec.kernel)) if self.resident else None
        big = self.split.larger
        if big:
            self.f.loop(
                0,
                big,
                lambda t: self._tile(spot, channel, active, self.split.start(self.f, t), self.split.size + 1, weights),
            )
        self.f.loop(
            big,
            self.split.count,
            lambda t: self._tile(
                spot, channel, active, self.f.add(self.f.mul(t, self.split.size), big), self.split.size, weights
            ),
        )

    def _weights(self, channel: Index, first: Index, count: int) -> list[Value]:
        """The vectors of `count` taps from `first` on."""
        pitch = padded_channels(self.channels, self.width) * self.size
        base = self.f.offset(self.w, self.f.add(self.f.mul(channel, self.size), self.f.mul(first, pitch)))
        return [
            self.f.load(vector(self.type, self.width), self.f.offset(base, tap * pitch), self.size)
            for tap in range(count)
        ]

    def _reduce(
        self, acc: Sequence[Value], x: Value, channel: Index, active: int, weights: Sequence[Value] | None
    ) -> Sequence[Value]:
        """All kernel rows: unrolled with the weights in registers, or a loop that reads them row by row."""
        row_taps, leading = self.spec.kernel[-1], self.spec.kernel[:-1]
        steps = [d * step * self.size for d, step in zip(self.spec.dilation, self.spec.data.strides[1:])]

        def source(index: Index) -> Value:
            return self.f.offset(x, self.f.dot(split_index(self.f, index, leading), steps))

        def row(index: Index, *carried: Value) -> list[Value]:
            here = source(index)
            own = self._weights(channel, self.f.mul(index, row_taps), row_taps)
            return self._kernel_row(list(carried), here, own, active)

        if not weights:
            return self.f.loop(0, math.prod(leading), row, acc)
        for index in range(math.prod(leading)):
            acc = self._kernel_row(list(acc), source(index), weights[index * row_taps :], active)
        return acc

    def _tile(
        self,
        spot: Sequence[Index],
        channel: Index,
        active: int,
        first: Index,
        outputs: int,
        weights: Sequence[Value] | None,
    ) -> None:
        """`outputs` neighbouring pixels: every input vector is loaded once per kernel row and used by all of them."""
        f, spec = self.f, self.spec
        places = [*spot, first]
        moved = [f.mul(o, s) for o, s in zip(places[1:], spec.strides)]
        base = f.add(
            f.dot([places[0], *moved, channel], spec.data.strides, spec.data.offset),
            -sum(p * x for p, x in zip(spec.padding, spec.data.strides[1:-1])),
        )
        x = f.offset(self.x, f.mul(base, self.size))
        acc = [self._start(channel, active)] * outputs
        acc = self._reduce(acc, x, channel, active, weights)
        for o, result in enumerate(acc):
            self._store([*spot, f.add(first, o)], channel, result, active)

    def _kernel_row(self, acc: list[Value], x: Value, weights: Sequence[Value], active: int) -> list[Value]:
        spec, step = self.spec, self.spec.data.strides[-2] * self.size
        stride, dilation = spec.strides[-1], spec.dilation[-1]
        users: dict[int, list[tuple[int, int]]] = {}
        for o, tap in itertools.product(range(len(acc)), range(spec.kernel[-1])):
            users.setdefault(o * stride + tap * dilation, []).append((o, tap))
        for column in sorted(users):
            value = load_lanes(
                self.f,
                self.type,
                self.f.offset(x, column * step),
                self.width,
                active,
                spec.data.strides[-1] * self.size,
                self.size,
            )
            for o, tap in users[column]:
                acc[o] = self.f.fma(value, weights[tap], acc[o])
        return acc

    def _start(self, channel: Index, active: int) -> Value:
        if self.epilogue.bias is None:
            return constant(vector(self.type, self.width), 0)
        self.f.at(self.epilogue.bias_part)
        pointer = self.f.offset(self.side[self.epilogue.bias], self.f.mul(channel, self.size))
        value = load_lanes(self.f, self.type, pointer, self.width, active, self.size, self.size)
        self.f.at(0)
        return value

    def _store(self, spot: Sequence[Index], channel: Index, x: Value, active: int) -> None:
        f, out = self.f, self.spec.out
        groups = [((n,), at) for n, at in zip(out.shape, [*spot, channel])]
        result = self.epilogue.apply(f, x, OutputSite(f, tuple(groups), self.width, active, self.side), self.target)
        where = f.dot([*spot, channel], out.strides, out.offset)
        pointer = f.offset(self.out, f.mul(where, out.itemsize))
        store_lanes(f, result, pointer, active, out.strides[-1] * out.itemsize, out.itemsize)
        f.at(0)

    def loops(self) -> str:
        """The same loops as text."""
        taps, rows = (" x ".join(map(str, extents)) for extents in (self.spec.kernel, self.spec.out.shape[:-2]))
        return "\n".join(
            [
                f"depthwise: parallel over {self.items} items",
                f"  for row in {rows} output rows, {self.chunks} chunks each:",
                f"    for c in {self.channels} channels by {self.width} lanes:",
                f"      w[0..{math.prod(self.spec.kernel) - 1}] {'in registers' if self.resident else 'from memory'}",
                f"      for tile in {self.split.count} tiles of <= {self.split.sizes[0]} pixels:",
                f"        acc[p, c] = {start_text(self.epilogue)}",
                f"        for t in {taps}: acc[p, c] += data[pixel p at tap t, c] * w[t, c]",
                f"        out[row, p, c] = {self.epilogue.shown('acc[p, c]')}",
                "",
            ]
        )


def padded_channels(channels: int, width: int) -> int:
    """Channels of a packed tap: whole vectors."""
    return -(-channels // width) * width


def depthwise(spec: ConvSpec, target: CpuTarget, epilogue: Epilogue | None = None) -> Kernel:
    """The kernel of a depthwise convolution. Raises RelayValueError for what `supports_depthwise` declines."""
    reason = supports_depthwise(spec)
    if reason:
        raise RelayValueError(f"no depthwise kernel for {reason}", code="codegen.depthwise")
    epilogue = epilogue or Epilogue()
    operands = (*spec.roles, *epilogue.operands)
    f = IRFunction.kernel("depthwise", operands)
    emitter = _Depthwise(f, spec, target, epilogue)
    emitter.run()
    text, declares = f.finish()
    flops = 2 * spec.out.size * math.prod(spec.kernel)
    return Kernel(
        "depthwise",
        text,
        declares,
        operands,
        emitter.items,
        0,
        flops,
        spec.data.bytes + spec.out.bytes,
        emitter.loops(),
    ).by_content("depthwise")


def pack_depthwise(spec: ConvSpec, target: CpuTarget, weight: np.ndarray) -> np.ndarray:
    """Weights [C, 1, *kernel] as [*kernel][C padded to whole vectors], flat."""
    channels = weight.shape[0]
    pitch = padded_channels(channels, target.lanes(spec.data.dtype))
    packed = np.zeros((math.prod(spec.kernel), pitch), weight.dtype)
    packed[:, :channels] = weight.reshape(channels, -1).T
    return packed.reshape(-1)
