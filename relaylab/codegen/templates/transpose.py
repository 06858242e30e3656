"""Bringing a weight panel into scratch at run time, when it is an activation whose columns are not contiguous.

The panel becomes [K][columns], as the register tile reads it. Where the source runs along K, squares of vectors are
transposed in registers; any other layout is copied element by element.
"""

from __future__ import annotations

from dataclasses import dataclass

from relaylab.codegen.kernels.kernel import item_bytes
from relaylab.codegen.llvm.text import Index, IRFunction, Value, llvm_type
from relaylab.codegen.loops.register_transpose import load_columns
from relaylab.codegen.templates.output_site import load_lanes


@dataclass(frozen=True, slots=True)
class PanelSource:
    """Element (k, n) of the panel lies at k * `k` + n * `n` elements; `depth` is the extent of k."""

    dtype: str
    width: int
    depth: int
    k: int
    n: int


def gather_panel(f: IRFunction, source: PanelSource, x: Value, scratch: Value, columns: int, pitch: int) -> None:
    """Copy `columns` columns from `x` into `scratch` as rows of `pitch` elements, zero beyond the last column."""
    size, width = item_bytes(source.dtype), source.width
    for first in range(0, pitch, width):
        here = f.offset(x, first * source.n * size)
        there = f.offset(scratch, first * size)
        _gather_columns(f, source, here, there, min(width, columns - first), pitch * size)


def _gather_columns(f: IRFunction, source: PanelSource, x: Value, to: Value, columns: int, pitch: int) -> None:
    """One vector of columns over the whole depth."""
    if source.k != 1 or source.width == 1:
        f.loop(0, source.depth, lambda k: _copy_row(f, source, x, to, columns, pitch, k))
        return
    whole, rest = divmod(source.depth, source.width)
    f.loop(0, whole, lambda block: _square(f, source, x, to, columns, pitch, f.mul(block, source.width), source.width))
    if rest:
        _square(f, source, x, to, columns, pitch, whole * source.width, rest)


def _square(
    f: IRFunction, source: PanelSource, x: Value, to: Value, columns: int, pitch: int, k: Index, depth: int
) -> None:
    type, size, width = llvm_type(source.dtype), item_bytes(source.dtype), source.width
    start, target = f.offset(x, f.mul(k, size)), f.offset(to, f.mul(k, pitch))
    for lane, row in enumerate(load_columns(f, start, type, size, width, columns, source.n, depth)):
        f.store(row, f.offset(target, lane * pitch), size)


def _copy_row(f: IRFunction, source: PanelSource, x: Value, to: Value, columns: int, pitch: int, k: Index) -> None:
    type, size = llvm_type(source.dtype), item_bytes(source.dtype)
    start = f.offset(x, f.mul(k, source.k * size))
    row = load_lanes(f, type, start, source.width, columns, source.n * size, size)
    f.store(row, f.offset(to, f.mul(k, pitch)), size)
