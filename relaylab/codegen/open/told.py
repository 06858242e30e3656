"""Sizes that a program computes: what takes a shape as a tensor gets it as expressions of sizes, where those tell it.

`arange` from sizes gets its length, `dyn.reshape` to sizes becomes `reshape`, and of a shape of which data decides a
part the others are kept.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from relaylab.codegen.open.values import UNKNOWN, Followed, kept
from relaylab.codegen.specialize import with_body
from relaylab.ir.dims import AnyDim, Dim, SymbolicDim, dim, smaller
from relaylab.ir.expr import Call, Constant, Expr, Tuple, TupleGetItem
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op, facets, op_name
from relaylab.ir.types import TensorType
from relaylab.ir.visit import rewrite, walk
from relaylab.transform.engine.build import call, reshaped, scalar

Shape = tuple[Dim, ...]
FARTHEST = 2**31 - 1
"""As far as an end of a slice goes in Relay's attributes."""
MOST_ROUNDS = 16
"""How often what got its shape may tell the sizes of what comes next."""


def with_told_sizes(mod: IRModule, besides: Callable[[IRModule], IRModule] | None = None) -> IRModule:
    """A typed module whose `main` has known sizes wherever sizes decide them; `besides` is done in each round too."""
    for _ in range(MOST_ROUNDS):
        new = _told_once(mod)
        new = new if besides is None else besides(new)
        if new is mod or (besides is None and not any(op_name(n) in DYNAMIC for n in walk((new["main"].body,)))):
            return new
        mod = new
    return mod


def _told_once(mod: IRModule) -> IRModule:
    main = mod["main"]
    nodes = [*walk((main.body,))]
    followed = Followed(nodes)
    made: dict[Expr, Callable[[Call], Expr]] = {}
    for node in nodes:
        rule = RULES.get(op_name(node) or "")
        if rule is not None and isinstance(node, Call):
            change = kept(lambda n=node, r=rule: r(n, followed))
            if change is not None:
                made[node] = change
    if not made:
        return mod

    def post(new: Expr, old: Expr) -> Expr:
        if old not in made or not isinstance(new, Call):
            return new
        told = made[old](new)
        return Call(told.op, told.args, told.attrs, span=new.span) if isinstance(told, Call) else told

    return with_body(mod, rewrite(main.body, post))


def shape_told(node: Call, followed: Followed) -> Shape | None:
    """The dimensions of a call of which data decides some; `?` where nothing tells them."""
    if op_name(node) == "dyn.strided_slice":
        return _cut_of_table(node, followed)
    operand = _SHAPED.get(op_name(node) or "")
    values = None if operand is None else followed.values(node.args[operand])
    if values is None or values.ndim != 1:
        return None
    codes = not facets(node).get("allowzero", True)  # where 0 copies, what may be 0 tells nothing
    told = [
        v if (isinstance(v, SymbolicDim) and not codes) or (isinstance(v, int) and v > 0) else UNKNOWN for v in values
    ]
    return tuple([dim(v) for v in told])


_SHAPED: Mapping[str, int] = {"dyn.reshape": 1, "dyn.broadcast_to": 1, "dyn.full": 1, "dyn.zeros": 0, "dyn.ones": 0}
"""Which operand says the shape of the result."""


# ---- what is said of a call, given what is followed: how to make another one of it


def _counted(node: Call, followed: Followed) -> Callable[[Call], Expr] | None:
    """The length of a range with step 1 that has none yet."""
    if not isinstance(node.checked_type, TensorType) or not isinstance(node.checked_type.shape[0], AnyDim):
        return None
    if facets(node).get("count") is not None:
        return None
    first, stop, step = followed.numbers(*node.args)
    count = dim(stop - first) if step == 1 else UNKNOWN
    return None if type(count) is AnyDim else lambda new: _with(new, count=(count,))


def _with(new: Call, **changed: object) -> Call:
    record = facets(new)
    return Call(new.op, new.args, type(record)(**{**dict(record.items()), **changed}), span=new.span)


def _sized(name: str, keeps: int, attribute: str) -> Callable[[Call, Followed], Callable[[Call], Expr] | None]:
    """An operator that takes its shape as a tensor as the one whose attribute it is."""

    def rule(node: Call, followed: Followed) -> Callable[[Call], Expr] | None:
        values = followed.known(node.args[keeps])
        if values is None or facets(node).get("coordinate_transformation_mode") == "tf_crop_and_resize":
            return None
        shape = tuple([dim(v) for v in values.reshape(-1)])
        return lambda new: _static(name, new, keeps, {attribute: shape})

    return rule


def _static(name: str, new: Call, keeps: int, attrs: Mapping[str, object]) -> Expr:
    fields = cast(Any, Op.get(name).definition).fields
    given = {k: v for k, v in facets(new).items() if k in fields}
    return call(name, *new.args[:keeps], **{**given, **attrs})


def _reshaped(node: Call, followed: Followed) -> Callable[[Call], Expr] | None:
    """To a shape of which all is known; -1 is what the others leave."""
    values, record = followed.values(node.args[1]), cast(Any, facets(node))
    if values is None:
        return None
    own = cast(TensorType, node.args[0].checked_type).shape
    copies = lambda k, v: not record.allowzero and isinstance(v, int) and v == 0
    shape: list[Any] = [own[k] if copies(k, v) else v for k, v in enumerate(values.reshape(-1))]
    if any(type(v) is AnyDim for v in shape):
        return None  # what data says has to fit, which is asked when it is found
    left = [k for k, v in enumerate(shape) if isinstance(v, int) and v == -1]
    if len(left) == 1:
        shape[left[0]] = _left(own, [v for k, v in enumerate(shape) if k not in left])
    to = tuple(map(dim, shape))
    return None if any(type(d) is AnyDim for d in to) else lambda new: reshaped(new.args[0], to)


def _left(whole: Iterable[Any], others: Iterable[Any]) -> Dim:
    """What is left of a product without some factors."""
    rest, by = list(whole), cast(Any, 1)
    for factor in others:
        if factor in rest:
            rest.remove(factor)
        else:
            by = by * factor
    many: Any = math.prod(rest)
    if by == 0 or type(many) is AnyDim or (isinstance(many, int) and isinstance(by, int) and many % by):
        return UNKNOWN
    return dim(many // by)


def _cut(node: Call, followed: Followed) -> Callable[[Call], Expr] | None:
    """Elements side by side from a number on, as many as sizes say."""
    record: Any = facets(node)
    begins, ends, steps = (followed.known(a) for a in node.args[1:])
    if begins is None or ends is None or steps is None or record.slice_mode != "end":
        return None
    shape = cast(TensorType, node.args[0].checked_type).shape
    axes = range(len(begins)) if record.axes is None else [a % len(shape) for a in record.axes]
    counts = [_extent(shape[a], *limits) for a, *limits in zip(axes, begins, ends, steps)]
    if any(type(n) is AnyDim for n in counts):
        return None
    if not all(isinstance(b, int) for b in begins):
        return None if len(begins) > 1 else lambda new: _picked(new, axes[0], counts[0])
    first = tuple(map(int, begins))
    attrs = dict(begin=first, end=(FARTHEST,) * len(first), strides=(1,) * len(first), axes=tuple(axes))
    return lambda new: call("strided_slice", new.args[0], **attrs, count=tuple(counts))


def _cut_of_table(node: Call, followed: Followed) -> Shape | None:
    """What is cut out of a constant that is as long as what is read of it; runs for which it is not are refused."""
    record, table = cast(Any, facets(node)), node.args[0]
    begins, ends, steps = (followed.known(a) for a in node.args[1:])
    if not isinstance(table, Constant) or begins is None or ends is None or steps is None or record.slice_mode != "end":
        return None
    shape: list[Dim] = [*cast(TensorType, table.checked_type).shape]
    axes = range(len(begins)) if record.axes is None else [a % len(shape) for a in record.axes]
    for axis, first, last, step in zip(axes, begins, ends, steps):
        if step != 1 or not isinstance(last, SymbolicDim) or (isinstance(first, int) and first < 0):
            return None
        shape[axis] = dim(last - first)
    return tuple(shape)


def _picked(new: Call, axis: int, count: Dim) -> Expr:
    """As many elements from a size on."""
    whole = lambda x: call("cast", call("reshape", x, newshape=()), dtype="int64")
    begin, end = whole(new.args[1]), whole(new.args[2])
    places = call("arange", begin, end, scalar(1, "int64"), dtype="int64", count=(count,))
    return call("take", new.args[0], places, axis=axis)


def _extent(*limits: object) -> Dim:
    """How many elements of an extent there are from a first one to before a last one, where sizes tell it."""
    extent, first, last, step = cast("tuple[Any, ...]", limits)
    if step != 1 or type(extent) is AnyDim:
        return UNKNOWN
    begin: Any = first if first >= 0 else extent + first
    end: Any = last if last >= 0 else extent + last
    end = smaller(end, extent)
    return dim(end - begin) if 0 <= begin <= end else UNKNOWN


def _first_ones(node: Call, followed: Followed) -> Callable[[Call], Expr] | None:
    """As many of the elements in order as a size says: the first of all of them."""
    record: Any = facets(node)
    (many,) = followed.numbers(node.args[1])
    shape = cast(TensorType, node.args[0].checked_type).shape
    axis = record.axis % len(shape)
    if type(shape[axis]) is AnyDim or not 0 <= many <= shape[axis]:
        return None

    def made(new: Call) -> Expr:
        ordered = _static("topk", new, 1, {"k": 0})
        cut = dict(begin=(0,), end=(FARTHEST,), strides=(1,), axes=(axis,), count=(dim(many),))
        if record.ret_type != "both":
            return call("strided_slice", ordered, **cut)
        return Tuple([call("strided_slice", TupleGetItem(ordered, k), **cut) for k in range(2)])

    return made


def _padded(node: Call, followed: Followed) -> Callable[[Call], Expr] | None:
    """Constants beside a tensor, as many as sizes say."""
    widths, record = followed.known(node.args[1]), cast(Any, facets(node))
    if widths is None or record.pad_mode != "constant" or any(not w >= 0 for w in widths.flat):
        return None
    if all(isinstance(w, int) for w in widths.flat):
        pairs = tuple([tuple(map(int, pair)) for pair in widths])
        return lambda new: call("nn.pad", new.args[0], new.args[2], pad_width=pairs)
    shape = list(cast(TensorType, node.args[0].checked_type).shape)
    if any(type(d) is AnyDim for d in shape):
        return None
    dtype = cast(TensorType, node.checked_type).dtype

    def made(new: Call) -> Expr:
        whole, fill = new.args[0], call("cast", call("reshape", new.args[2], newshape=()), dtype=dtype)
        own = list(shape)
        for axis, pair in enumerate(widths):
            beside = [
                call("full", fill, shape=(*own[:axis], dim(w), *own[axis + 1 :])) if w != 0 else None for w in pair
            ]
            parts = [part for part in (beside[0], whole, beside[1]) if part is not None]
            whole = call("concatenate", Tuple(parts), axis=axis) if len(parts) > 1 else whole
            own[axis] = dim(own[axis] + pair[0] + pair[1])
        return whole

    return made


RULES: Mapping[str, Callable[[Call, Followed], Callable[[Call], Expr] | None]] = {
    "arange": _counted,
    "dyn.reshape": _reshaped,
    "dyn.broadcast_to": _sized("broadcast_to", 1, "shape"),
    "dyn.full": _sized("full", 1, "shape"),
    "dyn.zeros": _sized("zeros", 0, "shape"),
    "dyn.ones": _sized("ones", 0, "shape"),
    "dyn.tile": _sized("tile", 1, "reps"),
    "dyn.image.resize2d": _sized("image.resize2d", 1, "size"),
    "dyn.nn.pad": _padded,
    "dyn.strided_slice": _cut,
    "dyn.topk": _first_ones,
}
DYNAMIC = frozenset(RULES) - {"arange"}
