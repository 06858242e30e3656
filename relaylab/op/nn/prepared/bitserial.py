"""Bit-serial operators: products of whole numbers of few bits, and packing the bits of such numbers into words.

A word has one bit of as many neighbours along an axis as it has bits itself, that of the first one highest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from relaylab.ir.types import Dim, IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dtype, Injective, Input, Ints, OutElementwiseFusable, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.nn.conv import Conv, conv2d
from relaylab.op.nn.prepared.view import TensorView
from relaylab.op.products import dims, products, stored
from relaylab.op.shapes import derive, product
from relaylab.op.window import each, spread, spread_padding

WORDS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
Numbers = TypeVar("Numbers", np.ndarray, Element)
SOURCE = "Umuroglu and Jahre, Streamlined deployment for quantized neural networks, 2017"
_conv2d = conv2d.definition


def check_bits(s: TypeSolver, bits: int, name: str) -> int:
    """`bits`, which must be 1 to 8."""
    if not 1 <= bits <= 8:
        s.fail(f"`{name}` must be 1 to 8, not {bits}")
    return bits


def words(s: TypeSolver, count: Dim, dtype: str | None, name: str) -> Dim:
    """How many words the bits of `count` numbers fill; fails unless they do."""
    width = WORDS.get(dtype or "uint32")
    if width is None:
        return s.fail(f"`{name}` must be one of {', '.join(WORDS)}, not {dtype}")
    if isinstance(count, int) and count % width:
        s.fail(
            f"{count} numbers do not fill words of {dtype or 'uint32'}",
            help=f"fill up with zeros to a multiple of {width}, or give a narrower `{name}`",
        )
    return derive(lambda n: n // width, count)


def pack(x: np.ndarray, bits: int, axis: int, to: int, dtype: str) -> np.ndarray:
    """Bit planes of whole numbers: words along `axis`, the planes along a new axis `to`."""
    planes = np.stack([x.astype("int64") >> k & 1 for k in range(bits)])
    width, axis = WORDS[dtype], axis + 1
    shape = (*planes.shape[:axis], planes.shape[axis] // width, width, *planes.shape[axis + 1 :])
    found = np.zeros((*shape[: axis + 1], *shape[axis + 2 :]), dtype)
    for k in range(width):
        found = found << np.array(1, dtype) | planes.reshape(shape).take(k, axis + 1).astype(dtype)
    return np.moveaxis(found, 0, to)


def unpack(x: np.ndarray, axis: int) -> np.ndarray:
    """The numbers whose bit planes lie along the last axis, and whose bits are in words along `axis`."""
    width = 8 * x.dtype.itemsize
    bits = [x >> np.array(width - 1 - k, x.dtype) & np.array(1, x.dtype) for k in range(width)]
    planes = np.stack(bits, axis + 1).astype("int64")
    planes = planes.reshape(*x.shape[:axis], x.shape[axis] * width, *x.shape[axis + 1 :])
    return (planes << np.arange(x.shape[-1])).sum(-1)


def unpacked(b: ElementBuilder, x: Readable, axis: int) -> TensorView:
    """The same at the loop level."""
    width, shape = WORDS[x.dtype], [*x.shape[:-1]]
    shape[axis] *= width

    def element(*index: Element) -> Element:
        place = [k // width if d == axis else k for d, k in enumerate(index)]
        shift = b.cast(width - 1 - index[axis] % width, x.dtype)
        total = b.const(0, "int64")
        for plane in range(int(x.shape[-1])):
            bit = b.shr(x(*place, plane), shift) & 1
            total = total + b.shl(b.cast(bit, "int64"), plane)
        return total

    return TensorView(tuple(shape), "int64", element)


@op("nn.bitpack", level=2, attrs_key="BitPack")
class bitpack(Injective):
    """Splits whole numbers into their lowest bits and packs each of these bits into words: one word has a bit of
    neighbours along `pack_axis`, that of the first one highest.
    """

    data: Input = arg("the numbers, as many along `pack_axis` as fill words", "any", "integers")
    bits: int = attr(1, "how many bits each number has, 1 to 8; higher ones are not looked at")
    pack_axis: int = attr(1, "the axis of data along which bits become words")
    bit_axis: int = attr(-1, "the axis of the result that counts the bits, lowest first; -1 puts it behind the others")
    pack_type: Dtype = attr(None, "the data type of words: uint8, uint16, uint32 or uint64; None: uint32")
    name: str = attr("BitPack", "a name, without effect")
    defaults = {"bit_axis": 2, "pack_type": "uint32"}
    yields = "the shape of data with `pack_axis` divided by the bits of a word and a new axis of `bits`; `pack_type`"
    source = SOURCE

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        rules.integers(s, data, "data"), check_bits(s, self.bits, "bits")
        axis = rules.axis(s, self.pack_axis, len(data.shape), "pack_axis")
        to = rules.axis(s, self.bit_axis, len(data.shape) + 1, "bit_axis")
        shape = list(data.shape)
        shape[axis] = words(s, shape[axis], self.pack_type, "pack_type")
        return TensorType([*shape[:to], IntImm(self.bits), *shape[to:]], self.pack_type or "uint32")

    def reference(self, data: np.ndarray) -> np.ndarray:
        axis, to = self.pack_axis % data.ndim, self.bit_axis % (data.ndim + 1)
        return pack(data, self.bits, axis, to, self.pack_type or "uint32")

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        rank, width = len(data.shape), WORDS[out.dtype]
        axis, to = self.pack_axis % rank, self.bit_axis % (rank + 1)
        rest = [*i[:to], *i[to + 1 :]]

        def term(k: Element) -> Element:
            number = data(*(n * width + k if d == axis else n for d, n in enumerate(rest)))
            bit = b.shr(b.cast(number, "int64"), i[to]) & 1
            return b.shl(b.cast(bit, out.dtype), b.cast(width - 1 - k, out.dtype))

        return b.sum(width, term)

    @classmethod
    def samples(cls) -> list[Sample]:
        number = lambda *shape, dtype="int32": TensorType(shape, dtype)
        return [
            sample(number(2, 32, 3), low=0, high=1, pack_type="uint32"),
            sample(number(1, 16, 2, 2, dtype="uint8"), bits=3, bit_axis=4, pack_type="uint8", low=0, high=7),
            sample(number(3, 64, dtype="int8"), bits=8, bit_axis=1, pack_type="uint64", low=-128, high=127),
            sample(number(32, 2, dtype="int16"), bits=2, pack_axis=0, bit_axis=0, pack_type="uint16", low=-9, high=9),
        ]


class BitSerial(OutElementwiseFusable):
    """What products of numbers of few bits share."""

    weight_bits: int = attr(1, "how many bits each number of the weight has, 1 to 8")
    pack_dtype: Dtype = attr(None, "the data type of words, uint8 to uint64, that inner extents fill; None: uint32")
    out_dtype: Dtype = attr(None, "the data type of sums and result; None or empty: that of data")
    unipolar: bool = attr(
        True, "whether each bit of the weight stands for 1 or -1, so that w means 2 * w + 1 - 2**weight_bits; else w"
    )
    source = SOURCE

    def dtype(self, s: TypeSolver, data: TensorType, weight: TensorType) -> str:
        """The data type of the result; all three must be integers."""
        rules.integers(s, data, "data"), rules.integers(s, weight, "weight")
        out = self.out_dtype or data.dtype
        rules.integers(s, TensorType((), out), "out_dtype")
        return out

    def plain(self, s: TypeSolver, weight: TensorType, rank: int, axis: int) -> tuple[Dim, ...]:
        """The shape of the weight before its bits were packed along `axis`; its bits are checked."""
        check_bits(s, self.weight_bits, "weight_bits")
        if len(weight.shape) == rank:
            words(s, weight.shape[axis], self.pack_dtype, "pack_dtype")
            return weight.shape
        wanted: list[Dim | int | None] = [*[None] * rank, self.weight_bits]
        rules.shaped(s, weight, wanted, "weight")
        dtype = self.pack_dtype or "uint32"
        if weight.dtype != dtype or dtype not in WORDS:
            s.fail(f"the words of `weight` are {weight.dtype}, but `pack_dtype` is {dtype}")
        shape = list(weight.shape[:-1])
        shape[axis] = product((shape[axis], WORDS[dtype]))
        return tuple(shape)

    def signed(self, value: Numbers) -> Numbers:
        """What a number of the weight stands for."""
        return value * 2 - (2**self.weight_bits - 1) if self.unipolar else value

    def weights(self, weight: np.ndarray, rank: int, axis: int) -> np.ndarray:
        """The weight as it is multiplied, without packing."""
        found = unpack(weight, axis) if weight.ndim > rank else weight.astype("int64")
        return self.signed(found & 2**self.weight_bits - 1)

    def weights_view(self, b: ElementBuilder, weight: Readable, rank: int, axis: int) -> TensorView:
        """The same at the loop level."""
        found = unpacked(b, weight, axis) if len(weight.shape) > rank else weight
        return masked(b, found, self.weight_bits, self.signed)


def masked(b: ElementBuilder, x: Readable, bits: int, then: Callable[[Element], Element] = lambda v: v) -> TensorView:
    """The lowest bits of the numbers of a tensor."""
    element = lambda *index: then(b.cast(x(*index), "int64") & 2**bits - 1)
    return TensorView(x.shape, "int64", element)


@op("nn.bitserial_dense", level=1, attrs_key="BinaryDense")
class bitserial_dense(BitSerial):
    """Fully connected layer of whole numbers of few bits: the lowest bits of data, without sign, times the weight,
    whose bits may be packed.
    """

    defaults = {"units": None, "pack_dtype": "uint32", "out_dtype": "int16"}

    data: Input = arg("what the layer is applied to", "(..., k), where k numbers fill words", "integers")
    weight: Input = arg(
        "one row per unit, or what nn.bitpack makes of it with pack_axis 1 and bit_axis 2",
        "(units, k), or (units, words, weight_bits)",
        "integers, or `pack_dtype`",
    )
    units: int | None = attr(doc="the number of units; None: that of the weight")
    data_bits: int = attr(1, "how many bits each number of data has, 1 to 8; higher ones are not looked at")
    weight_bits: int = 1
    pack_dtype: Dtype = None
    out_dtype: Dtype = None
    unipolar: bool = True
    yields = "(..., units), of `out_dtype`, in which sums wrap"

    def result_type(self, s: TypeSolver, data: TensorType, weight: TensorType) -> Type | None:
        check_bits(s, self.data_bits, "data_bits")
        if not data.shape:
            s.fail("`data` must have at least one dimension")
        units, k = self.plain(s, weight, 2, 1)
        rules.equal_dims(s, data.shape[-1], k, f"the inner dimensions of {type_text(data)} and {type_text(weight)}")
        if self.units is not None:
            rules.equal_dims(s, units, IntImm(self.units), "the units of the weight and `units`")
            units = IntImm(self.units)
        return TensorType((*data.shape[:-1], units), self.dtype(s, data, weight))

    def reference(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        x = data.astype("int64") & 2**self.data_bits - 1
        return stored(x @ self.weights(weight, 2, 1).T, self.out_dtype or data.dtype.name)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, weight: Readable) -> Element:
        x, w = masked(b, data, self.data_bits), self.weights_view(b, weight, 2, 1)
        return b.sum(x.shape[-1], lambda k: b.cast(x(*i[:-1], k), out.dtype) * b.cast(w(i[-1], k), out.dtype))

    def macs(self, types: Sequence[Type], out: Type) -> int:
        return products(out, dims(types[0])[-1:])

    @classmethod
    def samples(cls) -> list[Sample]:
        number = lambda *shape, dtype="int16": TensorType(shape, dtype)
        packed = number(3, 2, 2, dtype="uint8")
        return [
            sample(number(2, 32), number(5, 32), units=5, out_dtype="int16", low=0, high=1),
            sample(
                number(2, 8, dtype="uint8"), number(3, 8), units=None, pack_dtype="uint8", out_dtype="int32",
                data_bits=3, weight_bits=2, unipolar=False, low=0, high=9,
            ),
            sample(
                number(1, 2, 16), packed, units=3, pack_dtype="uint8", weight_bits=2, data_bits=8, low=-200, high=255
            ),
        ]  # fmt: skip


@op("nn.bitserial_conv2d", level=2, attrs_key="BinaryConv2D")
class bitserial_conv2d(BitSerial):
    """Two-dimensional convolution of whole numbers of few bits: the lowest bits of data, without sign, times the
    weight, whose bits may be packed. What lies behind the borders is 0.
    """

    defaults = {"pack_dtype": "uint32", "out_dtype": "int16"}

    data: Input = arg("the images, laid out as `data_layout`, where C numbers fill words", "(N, C, H, W)", "integers")
    weight: Input = arg(
        "the kernels, laid out as `kernel_layout`, or what nn.bitpack makes of them with the axis of C as pack_axis "
        "and bit_axis 4",
        "(O, C, KH, KW), or (O, words, KH, KW, weight_bits)",
        "integers, or `pack_dtype`",
    )
    strides: Ints = attr((1, 1), "steps of the window along both axes")
    padding: Ints = attr((0, 0), "zeros around both axes: one number, one per axis, or befores then afters")
    channels: int | None = attr(None, "the number O of output channels; None: that of the weight")
    kernel_size: Ints = attr((3, 3), "the kernel's spatial extents")
    activation_bits: int = attr(1, "how many bits each number of data has, 1 to 8; higher ones are not looked at")
    weight_bits: int = 1
    data_layout: str = attr("NCHW", "the axes of data and result, such as NHWC")
    kernel_layout: str = attr("OIHW", "the axes of the kernels, such as HWIO")
    pack_dtype: Dtype = None
    out_dtype: Dtype = None
    unipolar: bool = True
    parameters = (
        "data weight strides padding channels kernel_size activation_bits weight_bits data_layout kernel_layout "
        "pack_dtype out_dtype unipolar"
    )
    errors = {"op.padding": "`padding` has neither 1, 2 nor 4 values"}
    yields = (
        "(N, O, height, width) laid out as `data_layout`, of `out_dtype`, in which sums wrap; "
        "extent = (extent + before + after - kernel) // stride + 1"
    )

    @classmethod
    def prepare(cls, attrs: dict[str, Any]) -> dict[str, Any]:
        sizes = {k: spread(attrs[k], 2) for k in ("strides", "kernel_size") if k in attrs}
        return {**attrs, **sizes, "padding": spread_padding(attrs.get("padding", 0), 2)}

    def conv(self, out_dtype: str | None) -> Conv:
        """The convolution that it is, of the numbers that the bits stand for."""
        names = ("strides", "padding", "channels", "kernel_size", "data_layout", "kernel_layout")
        return _conv2d(**{n: self[n] for n in names}, out_dtype=out_dtype)

    def result_type(self, s: TypeSolver, data: TensorType, weight: TensorType) -> Type | None:
        check_bits(s, self.activation_bits, "activation_bits"), each(s, self.kernel_size, 2, "kernel_size")
        for text, letters, name in ((self.data_layout, "NCHW", "data"), (self.kernel_layout, "OIHW", "weight")):
            if not rules.layout(s, text, letters, None, name).is_plain():
                s.fail(f"the layout {text} of `{name}` must not split an axis")
        shape = self.plain(s, weight, 4, self.kernel_layout.index("I"))
        self.dtype(s, data, weight)
        return self.conv(self.out_dtype).relation(s, data, TensorType(shape, weight.dtype))

    def reference(self, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        x = data.astype("int64") & 2**self.activation_bits - 1
        out = self.conv("int64").reference(x, self.weights(weight, 4, self.kernel_layout.index("I")))
        return stored(out, self.out_dtype or data.dtype.name)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, weight: Readable) -> Element:
        w = self.weights_view(b, weight, 4, self.kernel_layout.index("I"))
        return self.conv(out.dtype).lower(b, out, i, masked(b, data, self.activation_bits), w)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        return products(out, (dims(types[0])[self.data_layout.index("C")], *self.kernel_size))

    @classmethod
    def samples(cls) -> list[Sample]:
        number = lambda *shape, dtype="int16": TensorType(shape, dtype)
        nhwc = {"data_layout": "NHWC", "kernel_layout": "HWIO", "pack_dtype": "uint8"}
        return [
            sample(number(1, 32, 4, 5), number(2, 32, 3, 3), out_dtype="int16", padding=(1, 1), low=0, high=1),
            sample(
                number(1, 5, 4, 8, dtype="uint8"), number(2, 2, 8, 3), out_dtype="int32", kernel_size=(2, 2),
                activation_bits=3, weight_bits=2, unipolar=False, strides=(2, 1), low=0, high=9, **nhwc,
            ),
            sample(
                number(1, 4, 4, 16), number(3, 3, 2, 2, 2, dtype="uint8"), activation_bits=2, weight_bits=2,
                padding=(0, 1, 2, 1), low=-4, high=255, **nhwc,
            ),
        ]  # fmt: skip
