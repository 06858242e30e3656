"""What the passes on products of quantized numbers ask of a product: where its data comes from, whether bytes do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from relaylab.ir import Call, Expr, TensorType, facets, is_call_to, op_name
from relaylab.ir.visit import rebuild
from relaylab.op.layout import parse_layout
from relaylab.transform.engine.infer_type import type_of

PRODUCTS = ("nn.dense", "nn.conv2d")
MOVES = ("reshape", "transpose", "expand_dims", "squeeze", "layout_transform", "nn.batch_flatten")
BYTES = ("uint8", "int8")
WORD = 4  # products that an instruction adds at a time
LIMIT = 1 << 31  # beyond which sums of products could wrap: they are computed as floats


@dataclass(frozen=True, slots=True)
class MovedTensor:
    """What a tensor is moved from, and by which calls, the last first. `typed` is it in the program as it was."""

    start: Expr
    typed: Expr
    moves: tuple[Call, ...]

    def moved(self, x: Expr) -> Expr:
        """Another tensor moved the same way."""
        for move in reversed(self.moves):
            x = rebuild(move, (move.op, x))
        return x


def moved_from(x: Expr, old: Expr) -> MovedTensor:
    """Where `x`, which was `old`, comes from by operators that only move its elements."""
    moves: list[Call] = []
    # what passes have made has no types yet: the program as it was says them, and has the same form
    while is_call_to(old, *MOVES) and len(old.args) == 1:
        moves.append(cast(Call, x))
        x, old = cast(Call, x).args[0], old.args[0]
    return MovedTensor(x, old, tuple(moves))


def static_type(x: Expr) -> TensorType | None:
    """The type of a tensor whose shape is known."""
    found = type_of(x)
    return found if isinstance(found, TensorType) and not found.is_dynamic else None


def integer_attrs(node: Call) -> dict[str, Any]:
    """The attributes of a product, summed in int32."""
    return {**dict(facets(node).items()), "out_dtype": "int32"}


def units_axis(node: Call) -> int:
    """Along which axis of its weight a product has its units."""
    return 0 if op_name(node) == "nn.dense" else parse_layout(facets(node).kernel_layout).position("O")


def out_axis(node: Call) -> int:
    """Along which axis of the result they lie; -1 for the last."""
    record = facets(node)
    if op_name(node) == "nn.dense":
        return -1
    return parse_layout(record.out_layout or record.data_layout).position("C")


def depth(node: Call) -> int:
    """The neighbouring numbers that are summed: channels of a group, or columns."""
    shape = cast("TensorType", type_of(node.args[1])).concrete_shape
    if op_name(node) == "nn.dense":
        return shape[1]
    return shape[parse_layout(facets(node).kernel_layout).position("I")]


def sums_words(node: Call) -> bool:
    """Is it a product of known shapes whose sums are of whole words, nearly so at least, and fit 32 bits?"""
    known = all(static_type(e) is not None for e in (node, *node.args[:2]))
    if not known or (op_name(node) == "nn.conv2d" and not _sums_channels(node)):
        return False
    shape = cast("TensorType", type_of(node.args[1])).concrete_shape
    products = int(np.prod(shape)) // max(1, shape[units_axis(node)])
    filled = depth(node) % WORD == 0 or (depth(node) >= WORD - 1 and groups(node) == 1)
    return filled and 0 < products * 255 * 255 < LIMIT


def groups(node: Call) -> int:
    """Into how many groups the channels of a product fall."""
    return facets(node).groups if op_name(node) == "nn.conv2d" else 1


def _sums_channels(node: Call) -> bool:
    """Is it a convolution of whole layouts that is not depthwise (where the weight's I is no channel of the data)?"""
    record = facets(node)
    if any(len(layout) != 4 for layout in (record.data_layout, record.kernel_layout)) or record.out_layout:
        return False
    channels = cast("TensorType", type_of(node.args[0])).concrete_shape[parse_layout(record.data_layout).position("C")]
    return channels == record.groups * depth(node)


def offset_of(w: np.ndarray, node: Call) -> int | None:
    """What is taken off a product's weights so that they are signed bytes; None if nothing makes them."""
    low, high = (int(w.min()), int(w.max())) if w.size else (0, 0)
    offset = max(high - 127, 0) or min(low + 128, 0)
    fits = w.size > 0 and all(-128 <= v <= 127 for v in (low - offset, high - offset, -offset))  # no weight is the last
    return offset if fits and (not offset or groups(node) == 1) else None
