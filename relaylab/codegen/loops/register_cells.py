"""Private buffers in registers: what each element holds now, as SSA values.

A cell is a run of neighbouring elements in one value, at an address that is known while code is written. Loops carry
the cells that they change; a cell is read with the lanes in which it was written, or put together from others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from relaylab.codegen.llvm.text import IRFunction, Value, constant, lanes, vector
from relaylab.codegen.loops import scalars
from relaylab.loop.expr import Tensor
from relaylab.loop.scalar import compute_dtype
from relaylab.support.errors import RelayValueError

Cell = tuple[int, int]
"""The first element of a cell, and how many there are."""


@dataclass(slots=True)
class RegisterCells:
    """The cells of every buffer that lives in registers."""

    f: IRFunction
    tensors: frozenset[Tensor]
    held: dict[Tensor, dict[Cell, Value]] = field(default_factory=dict)

    def read(self, tensor: Tensor, start: int, count: int, width: int) -> Value:
        """`count` elements in the first of `width` lanes."""
        cells = self.held.get(tensor, {})
        whole = cells.get((start, count))
        if whole is not None and lanes(whole.type) == width:
            return whole
        scalar = scalars.register_type(compute_dtype(tensor.dtype))
        if width == 1:
            return self._element(tensor, start)
        for (first, many), x in cells.items():  # lanes beyond those that count do not matter
            if first <= start and start + count <= first + many and start - first + width <= lanes(x.type):
                return (
                    x if lanes(x.type) == width else self.f.shuffle(x, x, range(start - first, start - first + width))
                )
        x = constant(vector(scalar, width), 0)
        for lane in range(count):
            x = self.f.insert(x, self._element(tensor, start + lane), lane)
        return x

    def _element(self, tensor: Tensor, at: int) -> Value:
        for (start, count), x in self.held.get(tensor, {}).items():
            if start <= at < start + count:
                return self.f.extract(x, at - start)
        raise RelayValueError(
            f"`{tensor.name}[{at}]` is read where it is not known to have been written",
            code="codegen.registers",
            help=f"write it before the loop or `if` around its first use, or let `{tensor.name}` live in memory",
        )

    def write(self, tensor: Tensor, start: int, count: int, x: Value) -> None:
        """From now on these elements are the first lanes of `x`."""
        cells = self.held.setdefault(tensor, {})
        if (start, count) in cells:
            cells[start, count] = x
            return
        for first, many in [c for c in cells if c[0] < start + count and start < c[0] + c[1]]:
            old = cells.pop((first, many))
            for at in range(first, first + many):
                if not start <= at < start + count:
                    cells[at, 1] = self.f.extract(old, at - first)
        cells[start, count] = x

    def changed(self, written: frozenset[Tensor]) -> list[tuple[Tensor, Cell, int]]:
        """The cells that there are now and that may change where these buffers are written, each with its lanes."""
        return [
            (t, cell, lanes(x.type))
            for t in sorted(written & self.tensors, key=lambda t: t.name)
            for cell, x in self.held.get(t, {}).items()
        ]

    def take(self, cells: Iterable[tuple[Tensor, Cell, int]]) -> list[Value]:
        """The values of cells."""
        return [self.read(t, *cell, width) for t, cell, width in cells]

    def put(self, cells: Iterable[tuple[Tensor, Cell, int]], new: Sequence[Value], written: frozenset[Tensor]) -> None:
        """The buffers that are written hold these cells and no others."""
        self.held.update((tensor, {}) for tensor in written & self.tensors)
        for (tensor, cell, _), x in zip(cells, new):
            self.held[tensor][cell] = x
