"""Convolution as one product of matrices, with the weight laid out in tiles before.

A weight (KH, KW, C, O) is a matrix of KH * KW * C rows and O columns. Its tile (p, q) has `tile_rows` of the columns
and `tile_cols` of the rows, and stands transposed; what lies behind the matrix is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relaylab.ir.types import Dim, IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dtype, Input, Ints, OutElementwiseFusable, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.layout import Layout, parse_layout
from relaylab.op.nn.conv import Conv
from relaylab.op.nn.prepared.view import TensorView
from relaylab.op.products import dims, products
from relaylab.op.shapes import derive, product
from relaylab.op.window import each

COLUMNS_AT_ONCE = 4
"""Kernels for tiles read so many of them at a time, so that the rows of the matrix fill as many."""


def up(n: int, step: int) -> int:
    """`n` rounded up to a multiple."""
    return -(-n // step) * step


@op("nn.contrib_conv2d_gemm_weight_transform", level=10, attrs_key="ConvGemmWeightTransform")
class contrib_conv2d_gemm_weight_transform(OutElementwiseFusable):
    """The weight of a convolution as the tiles of a matrix, (KH * KW * C) x O, each of them transposed; zeros behind
    the matrix.
    """

    weights: Input = arg("the kernels", "(KH, KW, C, O)")
    tile_rows: int = attr(doc="how many output channels a tile has")
    tile_cols: int = attr(doc="how many elements of their kernels a tile has")
    yields = (
        "(ceil(O / tile_rows), K / tile_cols, tile_rows, tile_cols), dtype of weights; "
        "K = KH * KW * C rounded up to a multiple of 4 * tile_cols"
    )
    source = "Chellapilla, Puri, Simard, High performance convolutional neural networks for document processing, 2006"

    def result_type(self, s: TypeSolver, weights: TensorType) -> Type | None:
        rules.rank(s, weights, 4, "weights")
        rows, columns = (rules.positive(s, getattr(self, n), n) for n in ("tile_rows", "tile_cols"))
        blocks = derive(lambda n: up(n, rows) // rows, weights.shape[3])
        depth = derive(lambda n: up(n, COLUMNS_AT_ONCE * columns) // columns, product(weights.shape[:3]))
        return TensorType((blocks, depth, IntImm(rows), IntImm(columns)), weights.dtype)

    def reference(self, weights: np.ndarray) -> np.ndarray:
        matrix = weights.reshape(math.prod(weights.shape[:3]), weights.shape[3])
        wide, high = up(matrix.shape[1], self.tile_rows), up(len(matrix), COLUMNS_AT_ONCE * self.tile_cols)
        whole = np.zeros((high, wide), weights.dtype)
        whole[: len(matrix), : matrix.shape[1]] = matrix
        tiles = whole.reshape(high // self.tile_cols, self.tile_cols, wide // self.tile_rows, self.tile_rows)
        return tiles.transpose(2, 0, 3, 1)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, weights: Readable) -> Element:
        _, width, ins, outs = weights.shape
        o, k = i[0] * self.tile_rows + i[2], i[1] * self.tile_cols + i[3]
        tap = k // ins
        inside = b.all_of(o < outs, k < math.prod(weights.shape[:3]))
        read = lambda: weights(tap // width, tap % width, k % ins, o)
        return b.guard(inside, read, b.const(0, out.dtype))

    @classmethod
    def samples(cls) -> list[Sample]:
        small = TensorType((2, 2, 8, 4), "int8")
        return [
            sample((3, 3, 2, 5), tile_rows=4, tile_cols=3),
            sample(small, tile_rows=2, tile_cols=4, low=-128, high=127),
        ]


@op("nn.contrib_conv2d_gemm_without_weight_transform", level=10, attrs_key="Conv2D")
class contrib_conv2d_gemm_without_weight_transform(Conv):
    """Two-dimensional convolution of a weight that nn.contrib_conv2d_gemm_weight_transform has laid out in tiles;
    zero padding, dilation, no groups.
    """

    weight: Input = arg(
        "the kernels as nn.contrib_conv2d_gemm_weight_transform lays them out",
        "(at least O / tile_rows, at least KH * KW * C / tile_cols, tile_rows, tile_cols)",
        "any but bool",
    )
    strides: Ints = (1, 1)
    padding: Ints = (0, 0)
    dilation: Ints = (1, 1)
    groups: int = attr(1, "into how many groups the channels split: only 1")
    channels: int | None = attr(None, "the number O of output channels; None: as many as the tiles hold")
    kernel_size: Ints | None = attr(None, "the spatial extents of the kernel before the transform; it must be given")
    data_layout: str = "NCHW"
    kernel_layout: str = attr("OIHW", "the axes of the kernels before the transform; without effect")
    out_layout: str = ""
    out_dtype: Dtype = None
    source = contrib_conv2d_gemm_weight_transform.definition.source

    @property
    def layouts(self) -> tuple[Layout, Layout, Layout]:
        data, _, out = super().layouts
        return data, parse_layout("HWIO"), out

    def relation(self, s: TypeSolver, data: Type, weight: Type) -> Type | None:
        if self.kernel_size is None:
            return s.fail(f"{self.op_name} needs `kernel_size`: the weight in tiles does not tell it")
        kernel = each(s, self.kernel_size, 2, "kernel_size", one_for_all=False)
        if self.channels is not None and self.channels < 0:
            s.fail(f"`channels` must be at least 0, not {self.channels}")
        if self.groups != 1:
            s.fail(f"{self.op_name} knows only one group, not {self.groups}", help="nn.conv2d knows more")
        x, w = rules.tensor(s, data), rules.tensor(s, weight, "weight")
        if x is None or w is None:
            return None
        rules.rank(s, w, 4, "weight")
        whole = rules.layout(s, self.data_layout, "NCHW", x).whole(x.shape)
        held = product((w.shape[0], w.shape[2])), product((w.shape[1], w.shape[3]))
        outs: Dim = held[0] if self.channels is None else IntImm(self.channels)
        reads = derive(lambda n: n * math.prod(kernel), whole["C"])
        for needed, there, what in ((outs, held[0], "output channels"), (reads, held[1], "elements of each kernel")):
            if isinstance(needed, int) and isinstance(there, int) and needed > there:
                s.fail(f"{needed} {what} are more than the {there} that the tiles of {type_text(w)} hold")
        extents = {"O": outs, "I": whole["C"], **dict(zip("HW", map(IntImm, kernel)))}
        layout = rules.layout(s, self.kernel_layout, "OIHW", None, "weight")
        return super().relation(s, data, TensorType(rules.laid_out(s, layout, extents), w.dtype))

    def _kernel(self, channels: int, weight: Sequence[int]) -> tuple[int, int, int, int]:
        """The shape (KH, KW, C, O) of the weight before it was laid out."""
        height, width = self.kernel_size or (1, 1)
        return height, width, channels, weight[0] * weight[2] if self.channels is None else self.channels

    def reference(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        shape = self._kernel(self.layouts[0].extents(data.shape)["C"], weight.shape)
        p, q, rows, columns = weight.shape
        matrix = weight.transpose(1, 3, 0, 2).reshape(q * columns, p * rows)
        return super().reference(data, matrix[: math.prod(shape[:3]), : shape[3]].reshape(shape))

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, weight: Readable) -> Element:
        shape = self._kernel(self.layouts[0].extents(data.shape)["C"], weight.shape)
        rows, columns = weight.shape[2:]

        def element(y: Element, x: Element, c: Element, o: Element) -> Element:
            k = (y * shape[1] + x) * shape[2] + c
            return weight(o // rows, k // columns, o % rows, k % columns)

        return super().lower(b, out, i, data, TensorView(shape, weight.dtype, element))

    def macs(self, types: Sequence[Type], out: Type) -> int:
        return products(out, (self.layouts[0].whole(dims(types[0]))["C"], *(self.kernel_size or ())))

    @classmethod
    def samples(cls) -> list[Sample]:
        nhwc = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        int8 = TensorType((1, 5, 5, 8), "int8"), TensorType((2, 4, 2, 4), "int8")
        return [
            sample((1, 5, 6, 2), (2, 8, 4, 3), channels=5, kernel_size=(3, 3), padding=(1, 1), **nhwc),
            sample((2, 3, 7, 6), (1, 4, 2, 4), kernel_size=(1, 3), strides=(2, 1), dilation=(1, 2)),
            sample(*int8, kernel_size=(1, 1), out_dtype="int32", channels=3, low=-128, high=127, **nhwc),
        ]
