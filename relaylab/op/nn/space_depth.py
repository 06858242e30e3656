"""Moving between space, depth and batch: depth_to_space, space_to_depth, space_to_batch_nd, batch_to_space_nd,
fifo_buffer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylab.ir.types import Dim, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Injective, Input, Ints, Opaque, Pairs, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import ints, length, place, ravel, unravel
from relaylab.op.layout import Layout, parse_layout, transform
from relaylab.op.shapes import derive
from relaylab.op.window import each


class SubPixel(Injective):
    """Blocks of block_size x block_size pixels that become channels, or the other way."""

    block_size: int = attr(1, "the height and width of a block of pixels")
    layout: str = attr("NCHW", "the axes of data and result")
    mode: str = attr("DCR", "the order within channels: block then channel (DCR), or channel then block (CRD)")
    data: Input = arg("the batch of images, laid out as `layout`", "(N, C, H, W)")
    parameters = "data block_size layout mode"

    def whole(self, s: TypeSolver, data: TensorType) -> tuple[Layout, dict[str, Dim]]:
        """The layout, and the extents N C H W."""
        layout = rules.layout(s, self.layout, "NCHW", data)
        rules.positive(s, self.block_size, "block_size")
        if self.mode not in ("DCR", "CRD"):
            s.fail(f'mode must be DCR or CRD, not "{self.mode}"')
        return layout, layout.whole(data.shape)

    def _divided(self, s: TypeSolver, n: Dim, by: int, what: str) -> Dim:
        if isinstance(n, int) and n % by:
            s.fail(f"{n} {what} do not split into blocks of {by}")
        return derive(lambda n: n // by, n)


@op("nn.depth_to_space", level=5, attrs_key="SubPixel", required="block_size")
class depth_to_space(SubPixel):
    """Channels become blocks of pixels. DCR: channel (y, x, c); CRD: channel (c, y, x)."""

    yields = "(N, C / block_size^2, H * block_size, W * block_size) laid out as `layout`, dtype of data"
    source = "Shi et al., Real-time single image and video super-resolution, 2016; ONNX DepthToSpace"

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        layout, at = self.whole(s, data)
        k = self.block_size
        grown = {a: derive(lambda n: n * k, at[a]) for a in "HW"}
        channels = self._divided(s, at["C"], k * k, "channels")
        return TensorType(rules.laid_out(s, layout, {"N": at["N"], "C": channels, **grown}), data.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        layout, k = parse_layout(self.layout), self.block_size
        n, c, h, w = (x := transform(data, layout, parse_layout("NCHW"))).shape
        if self.mode == "DCR":
            x = x.reshape(n, k, k, c // (k * k), h, w).transpose(0, 3, 4, 1, 5, 2)
        else:
            x = x.reshape(n, c // (k * k), k, k, h, w).transpose(0, 1, 4, 2, 5, 3)
        return transform(x.reshape(n, c // (k * k), h * k, w * k), parse_layout("NCHW"), layout)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        layout, k = parse_layout(self.layout), self.block_size
        at, channels = layout.at(i), layout.extents(out.shape)["C"]
        block = at["H"] % k * k + at["W"] % k
        c = block * channels + at["C"] if self.mode == "DCR" else at["C"] * (k * k) + block
        return data(*layout.index({"N": at["N"], "C": c, "H": at["H"] // k, "W": at["W"] // k}))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 8, 3, 4), block_size=2),
            sample((1, 18, 2, 2), block_size=3, mode="CRD"),
            sample((1, 3, 4, 8), block_size=2, layout="NHWC"),
        ]


@op("nn.space_to_depth", level=5, attrs_key="SubPixel", required="block_size")
class space_to_depth(SubPixel):
    """Blocks of pixels become channels. DCR: channel (y, x, c); CRD, of programs in text: channel (c, y, x)."""

    parameters = "data block_size layout"
    yields = "(N, C * block_size^2, H / block_size, W / block_size) laid out as `layout`, dtype of data"
    source = "tf.nn.space_to_depth; ONNX SpaceToDepth"

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        layout, at = self.whole(s, data)
        k = self.block_size
        cut = {a: self._divided(s, at[a], k, "pixels") for a in "HW"}
        channels = derive(lambda n: n * k * k, at["C"])
        return TensorType(rules.laid_out(s, layout, {"N": at["N"], "C": channels, **cut}), data.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        layout, k = parse_layout(self.layout), self.block_size
        n, c, h, w = (x := transform(data, layout, parse_layout("NCHW"))).shape
        x = x.reshape(n, c, h // k, k, w // k, k)
        x = x.transpose(0, 3, 5, 1, 2, 4) if self.mode == "DCR" else x.transpose(0, 1, 3, 5, 2, 4)
        return transform(x.reshape(n, c * k * k, h // k, w // k), parse_layout("NCHW"), layout)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        layout, k = parse_layout(self.layout), self.block_size
        at, channels = layout.at(i), layout.extents(data.shape)["C"]
        block, c = at["C"] // channels, at["C"] % channels
        if self.mode == "CRD":
            block, c = at["C"] % (k * k), at["C"] // (k * k)
        y, x = at["H"] * k + block // k, at["W"] * k + block % k
        return data(*layout.index({"N": at["N"], "C": c, "H": y, "W": x}))

    @classmethod
    def samples(cls) -> list[Sample]:
        crd = sample((1, 3, 4, 2), block_size=2, mode="CRD")
        return [sample((2, 2, 4, 6), block_size=2), sample((1, 3, 6, 2), block_size=3, layout="NHWC"), crd]


def checked_blocks(
    s: TypeSolver, data: TensorType, blocks: Sequence[int], widths: Sequence[Sequence[int]], name: str
) -> int:
    """The number of spatial axes that are cut into blocks, each with (before, after) in `widths`."""
    count = len(blocks)
    each(s, blocks, count, "block_shape")
    if len(data.shape) <= count or len(widths) != count or any(k < 0 for pair in widths for k in pair):
        s.fail(f"`{name}` {widths} are not {count} pairs from 0 on for the axes of {type_text(data)} behind the batch")
    return count


@op("nn.space_to_batch_nd", level=5, attrs_key="SpaceToBatchND")
class space_to_batch_nd(Injective):
    """Blocks of the (padded) spatial axes 1, 2, ... become batches: (blocks * batch, ...)."""

    data: Input = arg("what is cut into blocks", "(N, *extents, ...)")
    block_shape: Ints = attr((1, 1), "the extents of a block, one per spatial axis")
    paddings: Pairs = attr(doc="(before, after) of each spatial axis: how many elements are added before it is cut")
    pad_value: float = attr(0.0, "what the added elements hold, in the dtype of data")
    parameters = "data block_shape paddings pad_value"
    yields = "(N * prod(block_shape), ..., (extent + before + after) / block, ...), dtype of data"
    source = "tf.space_to_batch"

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        count = checked_blocks(s, data, self.block_shape, self.paddings, "paddings")
        rules.held(s, self.pad_value, data.dtype, "pad_value")
        shape = [derive(lambda n: n * math.prod(self.block_shape), data.shape[0])]
        for n, block, pad in zip(data.shape[1:], self.block_shape, self.paddings):
            if isinstance(n, int) and (n + sum(pad)) % block:
                s.fail(f"{n} elements padded by {pad} do not split into blocks of {block}")
            shape.append(derive(lambda n, block, low, high: (n + low + high) // block, n, block, *pad))
        return TensorType((*shape, *data.shape[count + 1 :]), data.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        count = len(self.block_shape)
        x = np.pad(data, [(0, 0), *self.paddings, *[(0, 0)] * (data.ndim - count - 1)], constant_values=self.pad_value)
        split = [m for n, k in zip(x.shape[1:], self.block_shape) for m in (n // k, k)]
        x = x.reshape(x.shape[0], *split, *x.shape[count + 1 :])
        blocks, outer = range(2, 2 * count + 1, 2), range(1, 2 * count, 2)
        x = x.transpose(*blocks, 0, *outer, *range(2 * count + 1, x.ndim))
        return x.reshape(math.prod(x.shape[: count + 1]), *x.shape[count + 1 :])

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        count, batch = len(self.block_shape), length(data.shape[0])
        inner = unravel(b, i[0] // batch, self.block_shape)
        at = [k * m + j - p[0] for k, m, j, p in zip(i[1:], self.block_shape, inner, self.paddings)]
        inside = b.all_of(*(b.inside(k, length(n)) for k, n, p in zip(at, data.shape[1:], self.paddings) if any(p)))
        read = lambda: data(i[0] % batch, *at, *i[count + 1 :])
        return b.guard(inside, read, b.const(self.pad_value, out.dtype))

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        return {**attrs, "paddings": ints(attrs["paddings"])}

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 4, 6, 3), block_shape=(2, 3), paddings=((0, 0), (0, 0))),
            sample((1, 3, 5, 2), block_shape=(2, 2), paddings=((1, 0), (2, 1)), pad_value=1.5),
        ]


@op("nn.batch_to_space_nd", level=5, attrs_key="BatchToSpaceND")
class batch_to_space_nd(Injective):
    """Batches become blocks of the spatial axes 1, 2, ..., which are then cropped: the inverse of space_to_batch_nd."""

    data: Input = arg("the blocks", "(N, *extents, ...), N a multiple of prod(block_shape)")
    block_shape: Ints = attr((1, 1), "the extents of a block, one per spatial axis")
    crops: Pairs = attr(doc="(before, after) of each spatial axis: how many elements are cut from the result")
    parameters = "data block_shape crops"
    yields = "(N / prod(block_shape), ..., extent * block - before - after, ...), dtype of data"
    source = "tf.batch_to_space"

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        count, blocks = checked_blocks(s, data, self.block_shape, self.crops, "crops"), math.prod(self.block_shape)
        if isinstance(data.shape[0], int) and data.shape[0] % blocks:
            s.fail(f"a batch of {data.shape[0]} does not split into {blocks} blocks")
        shape = [derive(lambda n: n // blocks, data.shape[0])]
        for n, block, crop in zip(data.shape[1:], self.block_shape, self.crops):
            if isinstance(n, int) and n * block < sum(crop):
                s.fail(f"`crops` {self.crops} cut more from {type_text(data)} than there is")
            shape.append(derive(lambda n, block, low, high: n * block - low - high, n, block, *crop))
        return TensorType((*shape, *data.shape[count + 1 :]), data.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        count, blocks = len(self.block_shape), math.prod(self.block_shape)
        x = data.reshape(*self.block_shape, data.shape[0] // blocks, *data.shape[1:])
        order = [count, *(a for d in range(count) for a in (count + 1 + d, d)), *range(2 * count + 1, x.ndim)]
        grown = (n * k for n, k in zip(data.shape[1:], self.block_shape))
        x = x.transpose(order).reshape(data.shape[0] // blocks, *grown, *data.shape[count + 1 :])
        return x[(slice(None), *(slice(low, n - high) for n, (low, high) in zip(x.shape[1:], self.crops)))]

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        count = len(self.block_shape)
        full = [k + crop[0] for k, crop in zip(i[1:], self.crops)]
        block = ravel([k % m for k, m in zip(full, self.block_shape)], self.block_shape)
        batch = block * length(out.shape[0]) + i[0]
        return data(batch, *(k // m for k, m in zip(full, self.block_shape)), *i[count + 1 :])

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        return {**attrs, "crops": ints(attrs["crops"])}

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((12, 2, 3, 2), block_shape=(2, 3), crops=((0, 0), (0, 0))),
            sample((4, 3, 4), block_shape=(2, 2), crops=((1, 0), (2, 1))),
        ]


@op("nn.fifo_buffer", level=3, attrs_key="FIFOBuffer")
class fifo_buffer(Opaque):
    """The buffer moved along `axis` by as much as `data` has, with data at its end."""

    data: Input = arg("what enters the buffer", "that of buffer but along `axis`, where it is at most as long")
    buffer: Input = arg("the earlier contents, oldest first", dtype="that of data")
    axis: int = attr(0, "the axis along which the buffer moves; negative ones count from the end")
    yields = "the shape of buffer, and its dtype"
    source = "TVM 0.10, relay.nn.fifo_buffer"

    def result_type(self, s: TypeSolver, data: TensorType, buffer: TensorType) -> Type | None:
        rules.same_dtype(s, data, buffer), rules.rank(s, data, len(buffer.shape))
        axis = rules.axis(s, self.axis, len(buffer.shape), "axis of nn.fifo_buffer")
        for d, (n, m) in enumerate(zip(data.shape, buffer.shape)):
            if d != axis:
                rules.equal_dims(s, n, m, f"axis {d} of data and buffer")
            elif isinstance(n, int) and isinstance(m, int) and n > m:
                s.fail(f"{n} elements of data do not fit into a buffer of {m}")
        return buffer

    def reference(self, data: np.ndarray, buffer: np.ndarray) -> np.ndarray:
        both = np.concatenate([buffer, data], self.axis)
        return np.take(both, range(data.shape[self.axis], both.shape[self.axis]), self.axis)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, buffer: Readable) -> Element:
        axis = self.axis % len(i)
        new, kept = data.shape[axis], buffer.shape[axis] - data.shape[axis]
        old = b.guard(i[axis] < kept, lambda: buffer(*place(i, axis, i[axis] + new)), b.const(0, out.dtype))
        return b.guard(i[axis] >= kept, lambda: data(*place(i, axis, i[axis] - kept)), old)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), (5, 3)), sample((2, 1, 3), (2, 4, 3), axis=1)]
