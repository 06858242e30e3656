"""The sizes of an open program: which expression of its named sizes each slot of the operand "sizes" holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from relaylab.ir.attrs import Attrs
from relaylab.ir.dims import AnyDim, Dim, SizeVar, SymbolicDim
from relaylab.ir.expr import Call, Expr, Function
from relaylab.ir.free import sizes_in
from relaylab.ir.types import TensorType, TupleType
from relaylab.ir.visit import walk
from relaylab.loop.expr import MOST_SIZE, Size
from relaylab.support.errors import RelayTypeError, RelayValueError

if TYPE_CHECKING:
    from relaylab.codegen.network.network import NetworkTensor


class OpenSizes:
    """The slots of a program whose inputs have the sizes `named`; `tensor` is the input of the network with them."""

    def __init__(self, named: frozenset[SizeVar]):
        self.named = named
        self.slots: dict[SymbolicDim, Size] = {}
        self.tensor: NetworkTensor | None = None

    def size(self, d: Dim) -> int:
        """A dimension for the loop level: a number, or the size of its slot, which stands where a number stands.

        Raises RelayTypeError `codegen.unknown-size` for one that the shapes of the inputs do not decide.
        """
        if isinstance(d, int):
            return int(d)
        if not isinstance(d, SymbolicDim) or not sizes_in((d,)).keys() <= self.named:
            raise RelayTypeError(f"the size `{d}` does not follow from the inputs", code="codegen.unknown-size")
        if d not in self.slots:
            self.slots[d] = Size(str(d), len(self.slots))
        return cast(int, self.slots[d])

    def room(self, name: str) -> Size:
        """A size that no shape tells: how much memory there is along an axis. Its value is given under `var_of`."""
        var = SizeVar(name)
        self.slots[var] = Size(name, len(self.slots))
        return self.slots[var]

    def by_slot(self) -> dict[int, Size]:
        """The sizes so far."""
        return {size.slot: size for size in self.slots.values()}

    def var_of(self, size: Size) -> SymbolicDim:
        """The dimension in a slot."""
        return next(d for d, found in self.slots.items() if found is size)

    def shape(self, t: TensorType) -> tuple[int, ...]:
        """The shape of a type."""
        return tuple(map(self.size, t.shape))

    def values(self, known: Mapping[SizeVar, int]) -> list[int]:
        """The number of every slot; RelayValueError `vm.size` for one that is negative or larger than kernels allow."""
        found = [known[d] if type(d) is SizeVar else evaluated(d, known) for d in self.slots]
        if not found or (min(found) >= 0 and max(found) <= MOST_SIZE):
            return found
        for d, number in zip(self.slots, found):
            if not 0 <= number <= MOST_SIZE:
                raise RelayValueError(
                    f"the size `{d}` is {number}", code="vm.size", help=f"a size is a number from 0 to {MOST_SIZE}"
                )
        return found

    def signature(self, function: Function) -> tuple[object, ...]:
        """All dimensions in the types and attributes of a function, in order; nothing if none of them is open."""
        found = [d for node in walk((function,)) for d in _dims(node)]
        if not any(isinstance(d, AnyDim) for d in found):
            return ()
        return tuple(self.size(d) if isinstance(d, SymbolicDim) else str(d) for d in found)


class InputSizes:
    """What the inputs of an open program are, and which sizes arrays for them have."""

    def __init__(self, types: Sequence[TensorType]):
        self.dtypes = [np.dtype(t.dtype) for t in types]
        dims = [(d, k, axis) for k, t in enumerate(types) for axis, d in enumerate(t.shape)]
        self.named = {d: (k, axis) for d, k, axis in reversed(dims) if isinstance(d, SizeVar)}
        """Where each size is read."""
        first: dict[tuple[object, ...], int] = {}
        alike = [first.setdefault(t.shape, k) for k, t in enumerate(types)]  # who has the same shape, by the type
        self.groups = [
            (k, len(shape), [n for n, same in enumerate(alike) if same == k != n]) for shape, k in first.items()
        ]
        self.others = [x for x in dims if alike[x[1]] == x[1] and self.named.get(cast(SizeVar, x[0])) != x[1:]]
        """Dimensions that are numbers, or say a size that is read elsewhere."""

    def known(self, shapes: Sequence[tuple[int, ...]]) -> dict[SizeVar, int]:
        """The number of each size, for shapes of the right ranks."""
        return {d: shapes[k][axis] for d, (k, axis) in self.named.items()}

    def fit(self, arrays: Sequence[np.ndarray]) -> dict[SizeVar, int] | None:
        """The number of each size, if arrays have the data types and shapes of the inputs, with one number for each."""
        if [x.dtype for x in arrays] != self.dtypes:
            return None
        shapes = [x.shape for x in arrays]
        for first, rank, others in self.groups:
            shape = shapes[first]
            if len(shape) != rank:
                return None
            for k in others:
                if shapes[k] != shape:
                    return None
        known = self.known(shapes)
        for d, k, axis in self.others:
            if (evaluated(d, known) if isinstance(d, SymbolicDim) else d) != shapes[k][axis]:
                return None
        return known


def evaluated(d: SymbolicDim, known: Mapping[SizeVar, int]) -> int:
    """The number that an expression of sizes has; one that nothing is known of raises KeyError."""
    total = 0
    for monomial, factor in d.terms.items():
        for a in monomial:
            factor *= known[a] if isinstance(a, SizeVar) else cast(int, a.value(evaluated(a.numerator, known)))
        total += factor
    return total


def _dims(node: Expr) -> Iterator[object]:
    types = node.inferred.fields if isinstance(node.inferred, TupleType) else (node.inferred,)
    yield from (d for part in types if isinstance(part, TensorType) for d in part.shape)
    if isinstance(node, Call) and isinstance(node.attrs, Attrs):
        for _, value in node.attrs.items():
            parts = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
            yield from (d for d in parts if isinstance(d, AnyDim))
