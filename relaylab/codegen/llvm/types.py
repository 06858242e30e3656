"""The vocabulary of the IR builder: LLVM types as strings, values, symbolic index sums, constants."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from functools import lru_cache

LLVM_TYPES = {
    "float32": "float",
    "float64": "double",
    "bool": "i8",
    **{f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_FLOAT_SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}


def llvm_type(dtype: str) -> str:
    """The LLVM type that stores an element of `dtype`; a bool is stored as i8."""
    return LLVM_TYPES[dtype]


@lru_cache(maxsize=512)
def vector(type: str, count: int) -> str:
    """The vector of `count` lanes, or the scalar itself when `count` is 1."""
    return type if count == 1 else f"<{count} x {type}>"


@lru_cache(maxsize=512)
def element(type: str) -> str:
    """The scalar type of a vector type (a scalar type is its own)."""
    return type[1:-1].split(" x ")[1] if type[0] == "<" else type


@lru_cache(maxsize=512)
def lanes(type: str) -> int:
    """The number of lanes; 1 for a scalar."""
    return int(type[1:-1].split(" x ")[0]) if type[0] == "<" else 1


@lru_cache(maxsize=512)
def is_float(type: str) -> bool:
    """Is it a floating point type, scalar or vector?"""
    return element(type) in _FLOAT_SUFFIX


@lru_cache(maxsize=512)
def suffix(type: str) -> str:
    """The mangling of a type in an intrinsic's name: "v16f32", "i64"."""
    short = _FLOAT_SUFFIX.get(element(type), element(type))
    return short if type[0] != "<" else f"v{lanes(type)}{short}"


class Value:
    """An SSA value or constant: LLVM type, spelling, and when it was made (outer values come first in sums)."""

    __slots__ = ("type", "ref", "order")

    def __init__(self, type: str, ref: str, order: int = -1):
        self.type, self.ref, self.order = type, ref, order

    def __str__(self) -> str:
        return f"{self.type} {self.ref}"


class AffineIndex:
    """An i64 sum of values times constants plus a constant, emitted only where it is used."""

    __slots__ = ("terms", "const")
    type = "i64"

    def __init__(self, terms: dict[Value, int], const: int):
        self.terms, self.const = terms, const


Index = int | Value | AffineIndex


def constant(type: str, number: float | int | bool) -> Value:
    """A constant of a scalar type, or a vector with that constant in every lane."""
    return spelled(type, _spell(element(type), number))


@lru_cache(maxsize=4096)
def spelled(type: str, spelling: str) -> Value:
    """A constant as LLVM writes its scalar, in every lane."""
    scalar = element(type)
    if lanes(type) == 1:
        return Value(type, spelling)
    if spelling in _ZEROS:
        return Value(type, "zeroinitializer")
    return Value(type, f"splat ({scalar} {spelling})")


_ZEROS = ("0", "false", "0x0000000000000000")
_LARGEST = 3.4028235677973362e38  # what still rounds to a finite float


def _spell(type: str, number: float | int | bool) -> str:
    if type == "float":
        near = math.copysign(math.inf, number) if abs(number) > _LARGEST else number
        number = struct.unpack("<f", struct.pack("<f", near))[0]
    if type in ("float", "double"):
        return f"0x{int.from_bytes(struct.pack('>d', number)):016X}"
    if type == "i1":
        return "true" if number else "false"
    return str(int(number))


def literal_vector(type: str, numbers: Iterable[float | int | bool]) -> Value:
    """A constant vector, lane by lane."""
    numbers = tuple(numbers)
    cells = ", ".join(f"{type} {_spell(type, n)}" for n in numbers)
    return Value(vector(type, len(numbers)), f"<{cells}>")


def tail_mask(active: int, width: int) -> Value:
    """The constant mask whose first `active` of `width` lanes are set."""
    return literal_vector("i1", (lane < active for lane in range(width)))


def parts(index: Index) -> tuple[dict[Value, int], int]:
    """An index as its terms and its constant."""
    if isinstance(index, int):
        return {}, index
    return (index.terms, index.const) if isinstance(index, AffineIndex) else ({index: 1}, 0)


def affine(terms: dict[Value, int], const: int) -> Index:
    """The simplest index with these terms and this constant."""
    if not terms:
        return const
    if const == 0 and len(terms) == 1:
        ((term, factor),) = terms.items()
        if factor == 1:
            return term
    return AffineIndex(terms, const)
