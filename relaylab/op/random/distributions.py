"""Random numbers by counting: every operator takes a generator and gives the advanced one with its numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from relaylab.ir.expr import Call, Constant, Expr, TupleWrapper, as_expr
from relaylab.ir.leaves import const
from relaylab.ir.types import TensorType, TupleType, Type, type_text
from relaylab.loop.expr import Tensor
from relaylab.op import rules
from relaylab.op.base import Dtype, Input, Ints, Opaque, Sample, arg, attr, op, sample, wrap
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import ints, ravel, unravel
from relaylab.op.random.threefry import FIRST, Drawn, draw, split, unit, unit_at
from relaylab.support.errors import RelayTypeError, RelayValueError, kind_of

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure

KEY = TensorType((10,), "uint64")
FLOATS = ("float16", "float32", "float64")


GENERATOR = arg(
    "the generator: key (4 words), path (2), counter (2), place of the next split in the path (2); numbers drawn twice "
    "from the same one are the same",
    "(10,)",
    "uint64",
)


def threefry_key(seed: int) -> Constant:
    """A generator made from a seed (an int below 2^256), its key; a uint64[10] constant whose word 8 is 2^63."""
    if not isinstance(seed, (int, np.integer)):
        raise RelayTypeError(f"a seed must be a whole number, not {kind_of(seed)}", code="op.seed")
    if not 0 <= int(seed) < 1 << 256:
        raise RelayValueError(f"a seed must be 0 or more and below 2^256, not {seed}", code="op.seed")
    key = [(int(seed) >> (64 * k)) & (2**64 - 1) for k in range(4)]
    return const(np.array([*key, 0, 0, 0, 0, FIRST, 0], "uint64"), "uint64")


def _key(seed: int = 42, **words: int) -> np.ndarray:
    """A generator for the tests, with some words set: `w7=5`."""
    key = threefry_key(seed).data.numpy().copy()
    key[[int(w[1:]) for w in words]] = list(words.values())
    return key


def _crowded() -> list[np.ndarray]:
    """Generators without room in the counter, and in the path; at the end of its first word."""
    return [_key(3, w7=2**64 - 2), _key(3, w7=2**64 - 2, w8=0), _key(3, w4=6, w8=1), _key(3, w8=0, w9=2)]


class Drawing(Opaque):
    """A tuple of the advanced generator and random numbers."""

    key: Input = GENERATOR
    source = "Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, 2011"

    @classmethod
    def returns(cls, call: Call) -> TupleWrapper:
        return wrap(call, 2)


@op("random.threefry_generate", attrs_key="ThreefryGenerate")
class threefry_generate(Drawing):
    """The advanced generator and random uint64 words of a shape."""

    out_shape: Ints = attr(doc="the shape of the numbers")
    extra = {"shape": "the shape of the numbers"}
    yields = "a tuple: the next generator, (10,) of uint64; the words, `shape` of uint64"

    def relation(self, s: TypeSolver, key: Type) -> Type | None:
        s.unify(key, KEY)
        return TupleType([KEY, TensorType(self.out_shape, "uint64")])

    def reference(self, key: np.ndarray) -> tuple[np.ndarray, ...]:
        new, found = draw(key, math.prod(self.out_shape))
        return new, found.reshape(self.out_shape)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, key: Readable) -> Element:
        drawn = Drawn(b, key, math.prod(self.out_shape))
        return drawn.next(b.index(i[0])) if out.field == 0 else drawn.at(b.index(ravel(i, out.shape)))

    @classmethod
    def build(cls, key: Expr, shape: object) -> TupleWrapper:
        return wrap(cls.call(key, out_shape=ints(shape)), 2)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample(_key(), out_shape=(3, 5)),
            sample(_key(1 << 70), out_shape=(4,)),
            *(sample(g, out_shape=(6,)) for g in _crowded()),
        ]


@op("random.threefry_split")
class threefry_split(Drawing):
    """Two generators from one, independent of each other and of it."""

    yields = "a tuple of two generators, (10,) of uint64 each"

    def relation(self, s: TypeSolver, key: Type) -> Type | None:
        s.unify(key, KEY)
        return TupleType([KEY, KEY])

    def reference(self, key: np.ndarray) -> tuple[np.ndarray, ...]:
        return split(key)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, key: Readable) -> Element:
        return Drawn(b, key).split(b.index(i[0]), out.field)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample(_key()), *(sample(g) for g in _crowded())]


class Distribution(Drawing):
    """Random floats of a shape, from a generator and two parameters (scalars)."""

    out_shape: Ints = attr(doc="the shape of the numbers")
    out_dtype: Dtype = attr(None, "the data type of the numbers; None: float32")
    extra = {"shape": "the shape of the numbers", "dtype": "their data type: float16, float32 or float64"}
    yields = "a tuple: the next generator, (10,) of uint64; the numbers, `shape` of `dtype`"
    words_each: ClassVar[int] = 1

    def relation(self, s: TypeSolver, key: Type, *limits: Type) -> Type | None:
        s.unify(key, KEY)
        dtype = self.out_dtype or "float32"
        if dtype not in FLOATS:
            s.fail(f"{self.op_name} makes {', '.join(FLOATS)}, not {dtype}")
        for t, name in zip(limits, self.inputs[1:]):
            if (found := rules.tensor(s, t, name)) is not None:
                rules.scalar(s, found, name)
        return TupleType([KEY, TensorType(self.out_shape, dtype)])

    def reference(self, key: np.ndarray, *limits: np.ndarray) -> tuple[np.ndarray, ...]:
        dtype, size = self.out_dtype or "float32", math.prod(self.out_shape)
        new, found = draw(key, size * self.words_each)
        u = list(unit(found, dtype).reshape(self.words_each, *self.out_shape))
        a, c = (x.reshape(()).astype(dtype) for x in limits)
        return new, self.shaped(u, a, c)

    def shaped(self, u: list[np.ndarray], a: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Numbers of the distribution from uniform ones."""
        return u[0] * (c - a) + a

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, key: Readable, *limits: Readable) -> Element:
        size = math.prod(self.out_shape)
        drawn = Drawn(b, key, size * self.words_each)
        if out.field == 0:
            return drawn.next(b.index(i[0]))
        flat = b.index(ravel(i, out.shape))
        u = [unit_at(b, drawn.at(flat + k * size), out.dtype) for k in range(self.words_each)]
        return self.element(b, u, *(b.cast(x(*[0] * len(x.shape)), out.dtype) for x in limits))

    def element(self, b: ElementBuilder, u: list[Any], a: Element, c: Element) -> Element:
        """The same for loop-level expressions."""
        return u[0] * (c - a) + a

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample(_key(), (), (), out_shape=(3, 5), out_dtype="float32"),
            sample(_key(3), TensorType((), "float64"), (), out_shape=(7,), out_dtype="float64"),
        ]


def _scalar(value: Any, dtype: str) -> Any:
    dtype = dtype if dtype in FLOATS else "float32"  # what is none is refused with the other attributes
    return const(value, dtype) if isinstance(value, (int, float)) else as_expr(value)


@op("random.uniform", attrs_key="Uniform")
class uniform(Distribution):
    """The advanced generator and floats spread evenly over low <= x < high: low + (high - low) * u, with u the upper 23
    of the low 32 bits of a word (52 of 64 for float64, 10 of 16 for float16).
    """

    key: Input = GENERATOR
    low: Input = arg("the least number", "()")
    high: Input = arg("the bound that stays out", "()")

    @classmethod
    def build(
        cls, key: Expr, shape: object, dtype: str = "float32", low: object = 0.0, high: object = 1.0
    ) -> TupleWrapper:
        limits = [_scalar(x, dtype) for x in (low, high)]
        return wrap(cls.call(key, *limits, out_shape=ints(shape), out_dtype=dtype), 2)


@op("random.normal", attrs_key="Normal")
class normal(Distribution):
    """The advanced generator and floats of a normal distribution, by the sine of Box and Muller's method; the second
    half of the words drawn gives the angles.
    """

    key: Input = GENERATOR
    mean: Input = arg("the expected value", "()")
    scale: Input = arg("the standard deviation", "()")
    source = "Box and Muller, A note on the generation of random normal deviates, 1958"
    words_each = 2

    def shaped(self, u: list[np.ndarray], a: np.ndarray, c: np.ndarray) -> np.ndarray:
        turn = np.asarray(2.0 * math.pi, u[1].dtype)
        return np.sqrt(-2.0 * np.log(1.0 - u[0])) * np.sin(turn * u[1]) * c + a

    def element(self, b: ElementBuilder, u: list[Any], a: Element, c: Element) -> Element:
        return b.sqrt(b.log(1.0 - u[0]) * -2.0) * b.sin(u[1] * (2.0 * math.pi)) * c + a

    @classmethod
    def build(
        cls, key: Expr, shape: object, dtype: str = "float32", mean: object = 0.0, scale: object = 1.0
    ) -> TupleWrapper:
        limits = [_scalar(x, dtype) for x in (mean, scale)]
        return wrap(cls.call(key, *limits, out_shape=ints(shape), out_dtype=dtype), 2)


@op("random.multinomial", attrs_key="Multinomial")
class multinomial(Drawing):
    """The advanced generator and `num_samples` int32 indices per row of `probs`, drawn in proportion to its entries."""

    key: Input = GENERATOR
    probs: Input = arg("how likely each index is, up to a factor per row", "(*rows, N)", "floats")
    num_samples: int = attr(1, "how many indices each row draws")
    yields = "a tuple: the next generator, (10,) of uint64; the indices, (*rows, num_samples) of int32"

    def relation(self, s: TypeSolver, key: Type, probs: Type) -> Type | None:
        s.unify(key, KEY)
        found = rules.tensor(s, probs, "probs")
        if found is None:
            return None
        if not found.shape or found.dtype not in FLOATS:
            s.fail(f"`probs` must be floats with at least one dimension, not {type_text(found)}")
        if found.shape[-1] == 0:
            s.fail(f"{self.op_name} has nothing to choose from in {type_text(found)}")
        return TupleType(
            [KEY, TensorType((*found.shape[:-1], rules.positive(s, self.num_samples, "num_samples")), "int32")]
        )

    def reference(self, key: np.ndarray, probs: np.ndarray) -> tuple[np.ndarray, ...]:
        shape = (*probs.shape[:-1], self.num_samples)
        new, found = draw(key, math.prod(shape))
        sums = np.cumsum(np.maximum(probs.astype("float32"), 0), axis=-1, dtype="float32")
        with np.errstate(invalid="ignore"):
            shares = np.maximum(probs.astype("float32"), 0) / sums[..., -1:]
        upto, limits = np.cumsum(shares, axis=-1, dtype="float32"), unit(found, "float32").reshape(shape)
        return new, np.argmax(upto[..., None] > limits[..., None, :], axis=-2).astype("int32")

    def procedure(self, p: Procedure, new: Tensor, chosen: Tensor, key: Tensor, probs: Tensor) -> None:
        """Per row the running sums of the shares; a number that is drawn chooses the first above it, or index 0."""
        b, (*lead, extent) = p.b, probs.shape
        rows, many = math.prod(lead), self.num_samples
        drawn = Drawn(b, key, rows * many)
        p.each(new, lambda i: drawn.next(b.index(i)))
        with p.parallel(rows) as row:
            at, upto = unravel(b, row, lead), p.scratch(extent, "float32")
            weight = lambda k: b.max(b.cast(probs(*at, k), "float32"), 0.0)
            total, sum_ = (p.let(b.const(0.0, "float32")) for _ in range(2))
            with p.loop(extent) as k:
                p.add(total, weight(k))
            with p.loop(extent) as k:
                p.add(sum_, weight(k) / total)
                p.store(upto, k, sum_)
            with p.loop(many) as place:
                limit, first = p.let(unit_at(b, drawn.at(row * many + place), "float32")), p.let(extent)
                with p.loop(extent, kind="vectorized") as k:
                    p.add(first, b.select(upto(k) > limit, k, extent), "min")
                p.store(chosen, (*at, place), b.cast(b.select(first < extent, first, 0), "int32"))

    @classmethod
    def samples(cls) -> list[Sample]:
        positive = {"low": 0.1, "high": 1.0}
        return [
            sample(_key(), (2, 4), num_samples=3, **positive),
            sample(_key(5), (6,), **positive),
            sample(_key(), (9,), num_samples=5),
        ]
