"""Changes of data type: cast, cast_like, reinterpret; and fixed_point_multiply."""

from __future__ import annotations

import numpy as np

from relaylab.ir.types import TensorType, Type
from relaylab.loop.scalar import NARROW, convert, is_float
from relaylab.op.base import Dtype, Elementwise, Input, Operator, OpPattern, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.rules import tensor

_WHOLE = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


def as_dtype(x: np.ndarray, dtype: str) -> np.ndarray:
    """`x` cast as the operator `cast` casts."""
    x = np.asarray(x)
    if x.dtype.kind in "iub" and dtype in _WHOLE:
        return x.astype(dtype)
    with np.errstate(all="ignore"):
        return convert(x, dtype).astype(dtype)


@op("cast", level=3, attrs_key="Cast")
class cast(Elementwise):
    """Each element in another data type: integers wrap, floats that become integers lose their fraction and
    saturate.
    """

    yields = "the shape of data, of `dtype`"
    source = "numpy.ndarray.astype; ISO C, 6.3.1"

    dtype: Dtype = attr(doc="the new data type")

    @property
    def to(self) -> str:
        """The new data type."""
        return self.dtype or "float32"

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = tensor(s, data)
        return found and TensorType(found.shape, self.to)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return as_dtype(data, self.to)

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        return b.cast(x, self.to)

    @classmethod
    def samples(cls) -> list[Sample]:
        pairs = [
            ("float32", "int32"),
            ("float32", "float16"),
            ("float32", "bfloat16"),
            ("bfloat16", "int32"),
            ("int32", "int8"),
            ("int8", "float32"),
            ("float32", "bool"),
        ]
        return [sample(TensorType((3, 4), a), dtype=c, low=-300, high=300) for a, c in [*pairs, ("bool", "float32")]]


@op("cast_like", level=3)
class cast_like(Elementwise):
    """Each element of `data` in the data type of `dtype_like`."""

    yields = "the shape of data, the dtype of dtype_like"
    source = "numpy.ndarray.astype; ISO C, 6.3.1"

    data: Input = arg("the tensor whose elements are converted")
    dtype_like: Input = arg("the tensor whose data type is taken")

    def relation(self, s: TypeSolver, data: Type, dtype_like: Type) -> Type | None:
        found, like = tensor(s, data), tensor(s, dtype_like, "dtype_like")
        return found and like and TensorType(found.shape, like.dtype)

    def reference(self, data: np.ndarray, dtype_like: np.ndarray) -> np.ndarray:
        return as_dtype(data, dtype_like.dtype.name)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, dtype_like: Readable) -> Element:
        return b.cast(data(*i), out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 4), TensorType((2,), "int32"), low=-9, high=9), sample(TensorType((3,), "int32"), (1, 1))]


@op("reinterpret", level=3, attrs_key="Cast")
class reinterpret(Operator):
    """The bits of each element read as another data type of the same width (a signaling NaN of 16 bits may become a
    quiet one).
    """

    yields = "the shape of data, of `dtype`"
    source = "numpy.ndarray.view"

    data: Input = arg("the tensor whose bits are read")
    dtype: Dtype = attr(doc="the new data type, as wide as that of data")
    pattern = OpPattern.ELEMWISE
    reads_bits = True

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        if np.dtype(data.dtype).itemsize != np.dtype(self.dtype).itemsize:
            s.fail(f"{data.dtype} cannot be reinterpreted as {self.dtype}: their widths differ")
        return TensorType(data.shape, self.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(data).view(self.dtype or "float32").reshape(data.shape)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        return _from_word(b, _word(b, data(*i)), out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        pairs = [
            ("int32", "float32"),
            ("float32", "int32"),
            ("int8", "uint8"),
            ("float16", "uint16"),
            ("int16", "float16"),
            ("bfloat16", "int16"),
            ("uint16", "bfloat16"),
            ("float64", "int64"),
            ("uint64", "float64"),
            ("bool", "uint8"),
        ]
        return [sample(TensorType((2, 3), a), dtype=c, low=-300, high=300) for a, c in pairs]


def _word(b: ElementBuilder, x: Element) -> Element:
    """The bits of an element, as an unsigned integer at least as wide."""
    if not is_float(x.dtype):
        return b.cast(x, x.dtype if x.dtype in ("bool", "uint8", "uint16", "uint32", "uint64") else f"u{x.dtype}")
    narrow = x.dtype in NARROW
    word = b.bits(b.cast(b.cast(x, "float32"), x.dtype) if narrow else x)  # rounded, as if it had been stored
    if not narrow:
        return word
    if x.dtype == "bfloat16":
        return b.shr(word, 16)
    sign, size = b.band(b.shr(word, 16), 0x8000), b.band(word, 0x7FFFFFFF)
    normal = b.shr(size - (112 << 23), 13)
    special = b.bor(b.band(b.shr(size, 13), 0x3FF), 0x7C00)
    small = b.cast(b.of_bits(size) * 2.0**24, "uint32")
    kept = b.select(size < (113 << 23), small, b.select(size < (0xFF << 23), normal, special))
    return b.bor(sign, kept)


def _from_word(b: ElementBuilder, word: Element, dtype: str) -> Element:
    """The element of a data type that has the bits of an unsigned integer."""
    if not is_float(dtype):
        return b.cast(word, dtype)
    if dtype in ("float32", "float64"):
        return b.of_bits(b.cast(word, "uint" + dtype[5:]))
    wide = b.cast(word, "uint32")
    if dtype == "bfloat16":
        return b.cast(b.of_bits(b.shl(wide, 16)), dtype)
    sign, size = b.shl(b.band(wide, 0x8000), 16), b.shl(b.band(wide, 0x7FFF), 13)
    normal, special = b.of_bits(size + (112 << 23)), b.of_bits(b.bor(size, 0xFF << 23))
    small = b.cast(b.shr(size, 13), "float32") * 2.0**-24
    kept = b.select(size < (1 << 23), small, b.select(size < (0x1F << 23), normal, special))
    return b.cast(b.of_bits(b.bor(b.bits(kept), sign)), dtype)


@op("fixed_point_multiply", level=10, attrs_key="FixedPointMultiply")
class fixed_point_multiply(Elementwise):
    """data * multiplier * 2^(shift - 31) for int32, rounded half up: a product with a Q31 fixed-point number."""

    source = (
        "Jacob et al., Quantization and training of neural networks for efficient integer-arithmetic-only "
        "inference, 2018"
    )

    data: Input = arg("the tensor whose elements are multiplied", dtype="int32")
    multiplier: int = attr(doc="the factor as a Q31 number: that many times 2^-31")
    shift: int = attr(doc="how many places the product is moved left (right if negative)")

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = tensor(s, s.unify(data, s.out))
        if found is not None and found.dtype != "int32":
            s.fail(f"fixed_point_multiply needs int32, not {found.dtype}")
        return found

    @property
    def places(self) -> int:
        """How far the product is moved right; what goes further than 63 is 0 all the same."""
        return min(31 + max(-self.shift, 0), 63)

    def reference(self, data: np.ndarray) -> np.ndarray:
        right = self.places
        product = (data.astype("int64") << max(self.shift, 0)) * self.multiplier
        return ((product + (1 << (right - 1))) >> right).astype("int32")

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        right = self.places
        product = b.shl(b.cast(x, "int64"), max(self.shift, 0)) * self.multiplier
        return b.cast(b.shr(product + (1 << (right - 1)), right), "int32")

    @classmethod
    def samples(cls) -> list[Sample]:
        data = TensorType((3, 5), "int32")
        return [sample(data, multiplier=1 << 30, shift=s, low=-1000, high=1000) for s in (0, 2, -3)]
