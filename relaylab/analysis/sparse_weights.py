"""Which weights of a network are worth storing without their zeros, and how they are stored (block compressed rows)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import NamedTuple

import numpy as np

from relaylab.ir.expr import Call, Expr, Function, Var
from relaylab.ir.op import facets, is_call_to
from relaylab.ir.types import TensorType
from relaylab.ir.visit import children, walk
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.support.memory import as_array

Array = np.ndarray


class SparseAnalysisResult(NamedTuple):
    """The names of weights, and for each the extents of its data (three), its indices and its indptr, in one list."""

    weight_name: list[str]
    weight_shape: list[list[int]]


class BlockRows(NamedTuple):
    """A matrix as blocks that are not all zero: their values, their columns, where each row of blocks begins."""

    data: Array
    indices: Array
    indptr: Array

    @property
    def extents(self) -> list[int]:
        """What `DenseToSparse` and `Conv2dToSparse` take as the shape of a weight."""
        return [*self.data.shape, *self.indices.shape, *self.indptr.shape]


def block_rows(matrix: Array, block: Sequence[int]) -> BlockRows | None:
    """A matrix in blocks of this many rows and columns; None if it does not split into them."""
    height, width = block
    if min(height, width) < 1:
        raise RelayValueError(f"a block of {height} x {width}", code="sparse.block", help="give positive extents")
    if matrix.ndim != 2 or matrix.shape[0] % height or matrix.shape[1] % width:
        return None
    blocks = matrix.reshape(matrix.shape[0] // height, height, matrix.shape[1] // width, width).swapaxes(1, 2)
    rows, columns = np.nonzero(blocks.any(axis=(2, 3)))
    counts = np.bincount(rows, minlength=blocks.shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype("int32")
    return BlockRows(np.ascontiguousarray(blocks[rows, columns]), columns.astype("int32"), indptr)


def sparsity(matrix: Array) -> float:
    """The share of zeros."""
    return 1 - np.count_nonzero(matrix) / max(matrix.size, 1)


def convolution_matrix(weight: Array, layout: str) -> Array:
    """The weight of a convolution as nn.sparse_conv2d reads it: HWIO for images in NHWC, OIHW for NCHW."""
    return weight.reshape(-1, weight.shape[-1]).T if layout == "NHWC" else weight.reshape(len(weight), -1)


def is_sparse_convolution(node: Expr, layout: str, kernel_size: int) -> bool:
    """Whether a call is a convolution that nn.sparse_conv2d can do: stride 1, the size of the image kept."""
    if not is_call_to(node, "nn.conv2d"):
        return False
    a = facets(node)
    kernel = {"NHWC": "HWIO", "NCHW": "OIHW"}.get(layout)
    return (
        (a.data_layout, a.kernel_layout) == (layout, kernel)
        and a.out_layout in ("", layout)
        and (a.groups, *a.strides, *a.dilation) == (1,) * 5
        and set(a.padding) == {kernel_size // 2}
        and tuple(a.kernel_size or ()) == (kernel_size, kernel_size)
        and a.out_dtype in ("", None)
    )


def is_sparse_dense(node: Expr) -> bool:
    """Whether a call is a dense layer that nn.sparse_dense can do: of a matrix, in whose data type the result is."""
    if not is_call_to(node, "nn.dense"):
        return False
    data = node.args[0].inferred
    matrix = not isinstance(data, TensorType) or len(data.shape) == 2
    return matrix and facets(node).out_dtype in ("", None, getattr(data, "dtype", None))


def _weights(expr: Expr, fits: Callable[[Expr], bool]) -> dict[str, None]:
    """The weights of the calls that fit, but for those that anything else reads as well: they would be stored twice."""
    read: dict[Var, list[Expr]] = {}
    for node in walk((expr,)):
        for part in children(node):
            if isinstance(part, Var) and not isinstance(node, Function):
                read.setdefault(part, []).append(node)
    layers = {v: [n for n in nodes if isinstance(n, Call) and fits(n) and n.args[1] is v] for v, nodes in read.items()}
    return {v.name_hint: None for v, found in layers.items() if found and len(found) == len(read[v])}


def _stored(
    names: Iterable[str],
    matrices: Mapping[str, Array],
    params: MutableMapping[str, object],
    block: Sequence[int],
    least: float,
) -> SparseAnalysisResult:
    found = SparseAnalysisResult([], [])
    for name in names:
        matrix = matrices[name]
        rows = block_rows(matrix, block) if sparsity(matrix) >= least else None
        if rows is not None:
            del params[name]
            params.update({f"{name}.{part}": value for part, value in rows._asdict().items()})
            found.weight_name.append(name)
            found.weight_shape.append(rows.extents)
    return found


@checked
def dense_weights(expr: Expr) -> list[str]:
    """The names of variables that `nn.dense` reads as its weight and nothing else reads."""
    return list(_weights(expr, is_sparse_dense))


@checked
def process_dense_params(
    expr: Expr, params: MutableMapping[str, object], block_size: Sequence[int], sparsity_threshold: float
) -> SparseAnalysisResult:
    """The weights of `nn.dense` of which at least `sparsity_threshold` is zero, and which split into blocks.

    In `params` each is replaced by `<name>.data`, `<name>.indices` and `<name>.indptr`.
    """
    names = [n for n in dense_weights(expr) if n in params]
    matrices = {n: as_array(params[n]) for n in names}
    return _stored(names, matrices, params, block_size, sparsity_threshold)


@checked
def process_conv2d_params(
    expr: Expr,
    params: MutableMapping[str, object],
    block_size: Sequence[int],
    sparsity_threshold: float,
    layout: str,
    kernel_size: int,
    reg_task_input: bool = True,
) -> SparseAnalysisResult:
    """As `process_dense_params`, of the convolutions of stride 1 with this layout and kernel that keep the size of the
    image; `reg_task_input` has no effect: nothing is tuned.
    """
    names = _weights(expr, lambda c: is_sparse_convolution(c, layout, kernel_size))
    known = [n for n in names if n in params]
    matrices = {n: convolution_matrix(as_array(params[n]), layout) for n in known}
    return _stored(known, matrices, params, block_size, sparsity_threshold)
