"""Fused groups: a DAG of operator lowerings over external operands, and the loop program of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relaylab.loop.builder import OutSpec, b
from relaylab.loop.evaluate import Readable
from relaylab.loop.expr import (
    INDEX,
    MOST_SIZE,
    Axis,
    Load,
    Reduce,
    ScalarExpr,
    Tensor,
    axis_over,
    children,
    of_part,
    post_order,
    rebuild,
)
from relaylab.loop.nest import build_nest, plain_nest
from relaylab.loop.nests.joined import joined
from relaylab.loop.nests.windows import window_nests
from relaylab.loop.program import SIZES, LoopNest, LoopProgram, extent_of, sizes_in
from relaylab.loop.region import (
    Assign,
    StoreRegion,
    address,
    dense_strides,
    expand_reductions,
    flatten,
    normalise,
    wide_copy,
)
from relaylab.loop.schedule.tree import unique
from relaylab.loop.simplify import Simplifier
from relaylab.support.errors import RelayTypeError


@dataclass(frozen=True, slots=True)
class BufferLayout:
    """How an operand lies in its flat buffer: strides and offset in elements of the logical shape, and its extent."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @staticmethod
    def dense(shape: Sequence[int], dtype: str) -> BufferLayout:
        """Row-major without gaps."""
        return BufferLayout(dtype, tuple(shape), dense_strides(shape))

    @property
    def span(self) -> int:
        """The number of elements from the base to the last element; axes of negative strides begin at their last."""
        if 0 in self.shape:
            return 0
        if any(isinstance(n, ScalarExpr) for n in (*self.shape, *self.strides, self.offset)):
            return MOST_SIZE * MOST_SIZE
        return 1 + self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides) if s > 0)


class ProgramBuilder:
    """A fused group under construction: `read` external operands, `compute` values from them, `write` results.

    The k-th value that is computed is part k of the program (counted from 1): its expressions carry that number.
    """

    def __init__(self, name: str):
        self.name = name
        self.buffers: list[tuple[str, Tensor]] = []
        self._memory: dict[Tensor, tuple[Tensor, tuple[int, ...], int]] = {}
        self._values: dict[Tensor, tuple[tuple[Axis, ...], ScalarExpr]] = {}
        self._outputs: list[tuple[Tensor, Tensor, BufferLayout]] = []

    def read(self, role: str, layout: BufferLayout, of: Tensor | None = None) -> Tensor:
        """A readable tensor for an external operand, or for a part of one that is read as `of`."""
        flat = self.memory(role, layout.span, layout.dtype) if of is None else self._memory[of][0]
        return self._readable(role, layout, flat)

    def private(self, name: str, layout: BufferLayout) -> Tensor:
        """A readable tensor for memory that is no operand; of one axis where sizes say how long it is."""
        (length, *_) = layout.shape
        size = length if isinstance(length, ScalarExpr) else None
        span = layout.span if size is None else extent_of(size)
        return self._readable(name, layout, Tensor(name, (span,), layout.dtype, size))

    def _readable(self, name: str, layout: BufferLayout, flat: Tensor) -> Tensor:
        tensor = Tensor(name, layout.shape, layout.dtype)
        self._memory[tensor] = flat, layout.strides, layout.offset
        return tensor

    def where(self, tensor: Tensor) -> tuple[Tensor, tuple[int, ...], int]:
        """Where a tensor of memory lies: its flat buffer, its strides and its offset."""
        return self._memory[tensor]

    def compute(self, out: OutSpec, lower: Callable[..., ScalarExpr], inputs: Sequence[Readable]) -> Tensor:
        """The readable result of an operator's `lower(b, out, i, *inputs)`."""
        axes = tuple(axis_over(f"i{d}", n) for d, n in enumerate(out.shape))
        value = lower(b, out, axes, *inputs)
        if value.dtype != out.dtype:
            message = f"the lowering gives {value.dtype}, the operator's type is {out.dtype}"
            raise RelayTypeError(message, code="loop.dtype-mismatch", help="end with b.cast(value, out.dtype)")
        tensor = Tensor(f"v{len(self._values)}", out.shape, out.dtype)
        self._values[tensor] = (axes, value)
        return tensor

    def memory(self, role: str, size: int, dtype: str) -> Tensor:
        """An external operand of so many elements that several values are written to."""
        flat = Tensor(role, (size,), dtype)
        self.buffers.append((role, flat))
        return flat

    def write(self, role: str, value: Tensor, layout: BufferLayout, into: Tensor | None = None) -> None:
        """Store a computed or read tensor to an external operand, one of its own or a part of `memory`."""
        if layout.shape != value.shape or layout.dtype != value.dtype:
            message = f"`{role}` is {layout.dtype}{layout.shape}, its value {value.dtype}{value.shape}"
            raise RelayTypeError(message, code="loop.output-layout")
        into = self.memory(role, layout.span, layout.dtype) if into is None else into
        self._outputs.append((value, into, layout))

    # ---- the program

    def program(self) -> LoopProgram:
        """The loop program of the group."""
        scratch: list[Tensor] = []
        nests, parts = list[LoopNest](), list[tuple[StoreRegion, Simplifier]]()
        for region in self._regions():
            windows = window_nests(region, scratch)
            nests += windows
            parts += [] if windows else normalise(region)
        wide = wide_copy(parts)
        if wide is not None:
            parts = normalise(wide.region)
        nests += [build_nest(part, simplifier, scratch) for part, simplifier in joined(parts)]
        found = self.closed(scratch, nests)
        if wide is None:
            return found
        return replace(found, buffers=tuple((role, wide.buffers.get(flat, flat)) for role, flat in found.buffers))

    def closed(self, scratch: Sequence[Tensor], nests: Sequence[LoopNest]) -> LoopProgram:
        """A loop program over the operands, and the sizes that its loops and private buffers use."""
        sizes = sizes_in(nests, scratch)
        operands = [*self.buffers, *([(SIZES, Tensor(SIZES, (sizes[-1].slot + 1,), INDEX))] if sizes else [])]
        return LoopProgram(self.name, tuple(operands), tuple(scratch), tuple(nests))

    def plain(self) -> LoopProgram:
        """The loop program as it is written down: every loop serial, in the order of the axes; schedules begin here."""
        nests: list[LoopNest] = []
        for region in self._regions():
            simplifier = Simplifier()
            plain = region.map(lambda e, simplify=simplifier: simplify(expand_reductions(e)))
            if all(a.extent for a in plain.axes):
                nests.append(plain_nest(plain, simplifier))
        return unique(self.closed((), nests))

    def _regions(self) -> list[StoreRegion]:
        """One region for all outputs of one shape: they share their loops."""
        by_shape: dict[tuple[int, ...], list[tuple[Tensor, Tensor, BufferLayout]]] = {}
        for value, flat, layout in self._outputs:
            by_shape.setdefault(layout.shape, []).append((value, flat, layout))
        return [self._region(shape, outputs) for shape, outputs in by_shape.items()]

    def _region(self, shape: tuple[int, ...], outputs: list[tuple[Tensor, Tensor, BufferLayout]]) -> StoreRegion:
        axes = tuple(axis_over(f"i{d}", n) for d, n in enumerate(shape))
        stores: list[Assign] = []
        for value, flat, layout in outputs:
            place = address(axes, layout.strides, layout.offset)
            stores.append(Assign(flat, place, self.flat(Load(value, axes))))
        return StoreRegion(axes, tuple(stores))

    def flat(self, root: ScalarExpr) -> ScalarExpr:
        """`root` over flat external operands."""
        return flatten(self.inlined(root), self._memory)

    def inlined(self, root: ScalarExpr) -> ScalarExpr:
        """`root` with every read of a computed value replaced by its expression at that index."""
        return _Inlining(self._values).expand(root)


Expansion = dict[ScalarExpr, ScalarExpr]


class _Inlining:
    """Replaces reads of computed values. A value has one expansion, and one copy, per index at which it is read."""

    def __init__(self, values: dict[Tensor, tuple[tuple[Axis, ...], ScalarExpr]]):
        self.values = values
        self.order = {tensor: k + 1 for k, tensor in enumerate(values)}
        self.simplifier = Simplifier()
        self.expansions: dict[tuple[Tensor, *tuple[ScalarExpr, ...]], Expansion] = {}
        self.parts: dict[int, int] = {}  # by the id of an expansion, all of which `expansions` keeps alive

    def expand(self, root: ScalarExpr) -> ScalarExpr:
        """The expression without reads of computed values; works off a stack of (expansion, node)."""
        top: Expansion = {}
        self.parts = {id(top): 0}
        stack = [(top, root)]
        while stack:
            expansion, node = stack[-1]
            missing = [] if node in expansion else self._missing(expansion, node)
            if missing:
                stack.extend(missing)
            else:
                stack.pop()
        return top[root]

    def _missing(self, expansion: Expansion, node: ScalarExpr) -> list[tuple[Expansion, ScalarExpr]]:
        """What must be expanded before `node`; nothing once the node itself is."""
        below = [(expansion, c) for c in children(node) if c not in expansion]
        if below:
            return below
        new = rebuild(node, tuple(expansion[c] for c in children(node)))
        if isinstance(new, Load) and new.tensor in self.values:
            inner, body = self._expansion(new)
            if body not in inner:
                return [(inner, body)]
            new = inner[body]
        elif isinstance(node, Reduce) and isinstance(new, Reduce):
            axes = tuple(expansion.get(a, a) for a in node.axes)
            new = Reduce(new.kind, axes, new.value, node.part)  # type: ignore[arg-type]
        expansion[node] = of_part(new, self.parts[id(expansion)])
        return []

    def _expansion(self, load: Load) -> tuple[Expansion, ScalarExpr]:
        """The expansion in which a value is expanded for this index, and the value's expression."""
        axes, body = self.values[load.tensor]
        at = tuple(self.simplifier(i) for i in load.indices)
        key = (load.tensor, *at)
        if key not in self.expansions:
            own = {a: replace(a) for n in post_order(body) if isinstance(n, Reduce) for a in n.axes}
            self.expansions[key] = {**own, **dict(zip(axes, at))}
            self.parts[id(self.expansions[key])] = self.order[load.tensor]
        return self.expansions[key], body
