"""What type relations share: reading argument types, with errors that say what was expected.

Every function takes the solver `s` first and either answers or calls `s.fail`.

Choices: docs/choices.md, Numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite, trunc

from relaylab.ir.types import Dim, IncompleteType, IntImm, TensorType, TupleType, Type, dim, type_text
from relaylab.loop.scalar import highest, lowest
from relaylab.op.helpers import TypeSolver
from relaylab.op.layout import Layout, parse_layout
from relaylab.op.shapes import broadcast_dims, broadcast_shapes, normalize_axes, normalize_axis, same_dim
from relaylab.support.errors import RelayValueError


def tensor(s: TypeSolver, t: Type, name: str = "data") -> TensorType | None:
    """`t` as a tensor type, or None while it is not known; any other type fails."""
    if isinstance(t, IncompleteType):
        return None
    if not isinstance(t, TensorType):
        s.fail(f"`{name}` must be a tensor, not {t}")
    return t


def tensors(s: TypeSolver, t: Type, name: str = "data") -> list[TensorType] | None:
    """The fields of a tuple of tensors, or None while one is not known."""
    if isinstance(t, IncompleteType):
        return None
    if not isinstance(t, TupleType):
        s.fail(f"`{name}` must be a tuple of tensors, not {t}", help="give the tensors as a list or a relay.Tuple")
    if not t.fields:
        s.fail(f"`{name}` must have at least one tensor")
    return all_known(tensor(s, f, f"{name}[{k}]") for k, f in enumerate(t.fields))


def all_known(types: Iterable[TensorType | None]) -> list[TensorType] | None:
    """The types, or None if one is not known yet."""
    given = list(types)
    found = [t for t in given if t is not None]
    return found if len(found) == len(given) else None


def rank(s: TypeSolver, t: TensorType, want: int, name: str = "data") -> TensorType:
    """`t`, which must have `want` dimensions."""
    if len(t.shape) != want:
        s.fail(f"`{name}` must have {want} dimensions, but {type_text(t)} has {len(t.shape)}")
    return t


def shaped(s: TypeSolver, t: TensorType, wanted: Sequence[Dim | int | None], name: str = "data") -> TensorType:
    """`t`, whose dimensions must be the wanted ones (None: any)."""
    for found, want in zip(rank(s, t, len(wanted), name).shape, wanted):
        if want is not None and not same_dim(found, dim(want)):
            text = ", ".join("?" if n is None else str(n) for n in wanted)
            s.fail(f"`{name}` must have the shape ({text}), not {type_text(t)}: {found} and {want} differ")
    return t


def axis(s: TypeSolver, value: int, dims: int, what: str = "axis") -> int:
    """The axis counted from the front; it must exist among `dims` of them."""
    found = normalize_axis(value, dims)
    if found is None:
        s.fail(f"{what} {value} is out of range for {dims} dimensions", help=f"it can be {-dims} .. {dims - 1}")
    return found


def axes(s: TypeSolver, values: Sequence[int] | None, t: TensorType, exclude: bool = False) -> tuple[int, ...]:
    """The axes of `t` counted from the front, sorted; None means all, `exclude` all others."""
    found = normalize_axes(values, len(t.shape), exclude)
    if found is None:
        s.fail(
            f"axis {values} is out of range for {type_text(t)}", help=f"it can be {-len(t.shape)} .. {len(t.shape) - 1}"
        )
    return found


def same_dtype(s: TypeSolver, *types: TensorType) -> str:
    """The one data type of all tensors."""
    for t in types[1:]:
        if t.dtype != types[0].dtype:
            s.fail(
                f"data types {types[0].dtype} and {t.dtype} do not match",
                help=f'cast one: x.astype("{types[0].dtype}")',
            )
    return types[0].dtype


def integers(s: TypeSolver, t: TensorType, name: str) -> TensorType:
    """`t`, which must hold integers."""
    if "int" not in t.dtype:
        s.fail(f"`{name}` must hold integers, not {t.dtype}", help='cast them: x.astype("int32")')
    return t


def floats(s: TypeSolver, t: TensorType, name: str = "data") -> TensorType:
    """`t`, which must hold floats."""
    if "float" not in t.dtype:
        s.fail(f"`{name}` must hold floats, not {t.dtype}", help='cast them: x.astype("float32")')
    return t


def numbers(s: TypeSolver, t: TensorType, name: str = "data") -> TensorType:
    """`t`, which must hold numbers: integers or floats, but not bools."""
    if t.dtype == "bool":
        s.fail(
            f"`{name}` must hold numbers, not bools",
            help='cast them: x.astype("int32"), or use logical_and and the like',
        )
    return t


def summed(s: TypeSolver, dtype: str, *factors: TensorType) -> str:
    """The data type of a sum of products, which must be able to hold them."""
    if dtype == "bool":
        s.fail("products cannot be summed in bool", help='sum them in "int32" (`out_dtype`), or cast the factors')
    for t in factors:
        if "float" in t.dtype and "float" not in dtype:
            s.fail(
                f"products of {t.dtype} cannot be summed in {dtype}: their fractions would be lost",
                help=f"sum them in {t.dtype} (`out_dtype`) and cast the result, "
                f'or cast the factors: x.astype("{dtype}")',
            )
    return dtype


def held(s: TypeSolver, value: float, dtype: str, name: str) -> float:
    """`value`, which an integer type must be able to hold without its fraction."""
    if "int" in dtype and not (isfinite(value) and lowest(dtype) <= trunc(value) <= highest(dtype)):
        s.fail(f"`{name}` {value} is not a value of {dtype}", help=f"it can be {lowest(dtype)} .. {highest(dtype)}")
    return value


def scalar(s: TypeSolver, t: TensorType, name: str) -> TensorType:
    """`t`, which must have one element: rank 0, or every dimension 1."""
    if any(isinstance(d, int) and d != 1 for d in t.shape):
        s.fail(f"`{name}` must be a scalar, not {type_text(t)}")
    return t


def something(s: TypeSolver, shape: Sequence[Dim], at: TensorType, what: str) -> None:
    """Fails where the indices `at` choose along an axis without elements; an open number of them may be none."""
    if 0 in shape and all(isinstance(d, int) and d for d in at.shape):
        s.fail(f"{what} has no elements that {type_text(at)} could choose from")


def equal_dims(s: TypeSolver, a: Dim, b: Dim, what: str) -> Dim:
    """One dimension from two that must be equal; the known one if the other is not."""
    if not same_dim(a, b):
        s.fail(f"{what}: {a} and {b} differ")
    return a if isinstance(a, int) else b


def broadcast(s: TypeSolver, a: TensorType, b: TensorType) -> tuple[Dim, ...]:
    """The shape that two tensors broadcast to."""
    shape = broadcast_shapes(a.shape, b.shape)
    if shape is None:
        s.fail(f"the shapes of {type_text(a)} and {type_text(b)} cannot be broadcast together")
    return shape


def broadcasts_to(s: TypeSolver, a: TensorType, shape: Sequence[Dim]) -> None:
    """Fails unless `a` broadcasts to `shape` without changing it."""
    tail = shape[len(shape) - len(a.shape) :] if len(a.shape) <= len(shape) else None
    if tail is None or any(
        broadcast_dims(x, y) is None or (x == 1) < (y == 1) and isinstance(x, int) for x, y in zip(a.shape, tail)
    ):
        s.fail(f"{type_text(a)} does not broadcast to ({', '.join(map(str, shape))})")


def layout(s: TypeSolver, text: str, letters: str, t: TensorType | None = None, name: str = "data") -> Layout:
    """The layout that `text` writes, which must have these letters (in any order) and as many axes as `t`."""
    try:
        found = parse_layout(text)
    except RelayValueError as error:
        s.fail(error.message, help=error.help)
    if set(found.letters) != set(letters):
        s.fail(f"the layout {text} of `{name}` must have the axes {' '.join(letters)}")
    if t is not None and len(t.shape) != found.ndim:
        s.fail(f"`{name}` has the layout {text}, but {type_text(t)} has {len(t.shape)} dimensions")
    for a, n in zip(found.axes, t.shape if t is not None else ()):
        if t is not None and a.factor and not same_dim(n, IntImm(a.factor)):
            s.fail(f"`{name}` has the layout {text}, but the blocks of {a.letter} in {type_text(t)} have {n} elements")
    return found


def laid_out(s: TypeSolver, to: Layout, whole: dict[str, Dim]) -> tuple[Dim, ...]:
    """The shape of a tensor in a layout; fails where blocks do not divide an extent."""
    try:
        return to.shape(whole)
    except RelayValueError as error:
        return s.fail(error.message)


def positive(s: TypeSolver, value: int, name: str) -> int:
    """`value`, which must be at least 1."""
    if value < 1:
        s.fail(f"`{name}` must be at least 1, not {value}")
    return value
