"""Random numbers by counting: every operator takes a generator and gives the advanced one with its numbers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from relaylab.ir.expr import Constant, as_expr, const
from relaylab.ir.types import TensorType, TupleType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dtype, Ints, Opaque, Sample, op, sample, wrap
from relaylab.op.indexing import ints, ravel
from relaylab.op.threefry import advanced, block_at, draw, select, unit, unit_at, word_at, words
from relaylab.support.errors import RelayValueError

KEY = TensorType((10,), "uint64")
FLOATS = ("float16", "float32", "float64")


def threefry_key(seed: int) -> Constant:
    """A generator made from a seed (an int below 2^256); a uint64[10] constant."""
    if not 0 <= int(seed) < 1 << 256:
        raise RelayValueError(f"a seed must be 0 or more and below 2^256, not {seed}", code="op.seed")
    key = np.zeros(10, "uint64")
    for k in range(4):
        key[k] = (int(seed) >> (64 * k)) & (2**64 - 1)
    return const(key, "uint64")


def _key(seed: int = 42) -> np.ndarray:
    return threefry_key(seed).data.numpy()


class Drawing(Opaque):
    """A tuple of the advanced generator and random numbers."""

    @classmethod
    def returns(cls, call: Any) -> Any:
        return wrap(call, 2)

    def next_key(self, b: Any, i: tuple, key: Any, size: int) -> Any:
        """The element of the generator after `size` words were drawn."""
        return key(*i) + b.cast(b.eq(i[0], 8), "uint64") * b.const(-(-size // 4), "uint64")


@op("random.threefry_generate", inputs=("key",), attrs_key="ThreefryGenerate")
class threefry_generate(Drawing):
    """The advanced generator and random uint64 words of a shape."""

    out_shape: Ints

    def relation(self, s: Any, key: Type) -> Type | None:
        s.unify(key, KEY)
        return TupleType([KEY, TensorType(self.out_shape, "uint64")])

    def reference(self, key: np.ndarray) -> tuple[np.ndarray, ...]:
        new, found = draw(key, math.prod(self.out_shape))
        return new, found.reshape(self.out_shape)

    def lower(self, b: Any, out: Any, i: tuple, key: Any) -> Any:
        if out.field == 0:
            return self.next_key(b, i, key, math.prod(self.out_shape))
        return word_at(b, key, b.index(ravel(i, out.shape)))

    @classmethod
    def build(cls, key: Any, shape: Any) -> Any:
        return wrap(cls.call(key, out_shape=ints(shape)), 2)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample(_key(), out_shape=(3, 5)), sample(_key(1 << 70), out_shape=(4,))]


@op("random.threefry_split", inputs=("key",))
class threefry_split(Drawing):
    """Two generators from one, independent of each other and of it."""

    def relation(self, s: Any, key: Type) -> Type | None:
        s.unify(key, KEY)
        return TupleType([KEY, KEY])

    def reference(self, key: np.ndarray) -> tuple[np.ndarray, ...]:
        out = np.zeros((2, 10), "uint64")
        for side in range(2):
            out[side, :4] = words(key, key[8:9], 1 + side)[0]
        return tuple(out)

    def lower(self, b: Any, out: Any, i: tuple, key: Any) -> Any:
        found = block_at(b, key, key(8), 1 + out.field)
        return b.select(i[0] < 4, select(b, found, i[0]), b.const(0, "uint64"))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample(_key()), sample(advanced(_key(7), 3))]


class Distribution(Drawing):
    """Random floats of a shape, from a generator and two parameters (scalars)."""

    out_shape: ClassVar[Any]
    out_dtype: ClassVar[Any]
    words_each: ClassVar[int] = 1

    def relation(self, s: Any, key: Type, *limits: Type) -> Type | None:
        s.unify(key, KEY)
        dtype = self.out_dtype or "float32"
        if dtype not in FLOATS:
            s.fail(f"{self.op_name} makes floats, not {dtype}")
        for t, name in zip(limits, self.inputs[1:]):
            if (found := rules.tensor(s, t, name)) is not None:
                rules.scalar(s, found, name)
        return TupleType([KEY, TensorType(self.out_shape, dtype)])

    def reference(self, key: np.ndarray, *limits: np.ndarray) -> tuple[np.ndarray, ...]:
        dtype, size = self.out_dtype or "float32", math.prod(self.out_shape)
        new, found = draw(key, size * self.words_each)
        u = [unit(w, dtype) for w in found.reshape(size, self.words_each).T]
        a, c = (float(x.reshape(())) for x in limits)
        return new, self.shaped(u, a, c).reshape(self.out_shape).astype(dtype)

    def shaped(self, u: list[np.ndarray], a: float, c: float) -> np.ndarray:
        """Numbers of the distribution from uniform ones."""
        return u[0] * (c - a) + a

    def lower(self, b: Any, out: Any, i: tuple, key: Any, *limits: Any) -> Any:
        n = self.words_each
        if out.field == 0:
            return self.next_key(b, i, key, n * math.prod(self.out_shape))
        flat = b.index(ravel(i, out.shape))
        u = [unit_at(b, word_at(b, key, flat * n + k), out.dtype) for k in range(n)]
        a, c = (b.cast(x(*[0] * len(x.shape)), "float64") for x in limits)
        return b.cast(self.element(b, u, a, c), out.dtype)

    def element(self, b: Any, u: list[Any], a: Any, c: Any) -> Any:
        """The same for loop-level expressions."""
        return u[0] * (c - a) + a

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample(_key(), (), (), out_shape=(3, 5), out_dtype="float32"),
            sample(_key(3), TensorType((), "float64"), (), out_shape=(7,), out_dtype="float64"),
        ]


def _scalar(value: Any, dtype: str) -> Any:
    return const(value, dtype) if isinstance(value, (int, float)) else as_expr(value)


@op("random.uniform", inputs=("key", "low", "high"), attrs_key="Uniform")
class uniform(Distribution):
    """The advanced generator and floats spread evenly over low <= x < high."""

    out_shape: Ints
    out_dtype: Dtype = None

    @classmethod
    def build(cls, key: Any, shape: Any, dtype: Any = "float32", low: Any = 0.0, high: Any = 1.0) -> Any:
        limits = [_scalar(x, dtype) for x in (low, high)]
        return wrap(cls.call(key, *limits, out_shape=ints(shape), out_dtype=dtype), 2)


@op("random.normal", inputs=("key", "mean", "scale"), attrs_key="Normal")
class normal(Distribution):
    """The advanced generator and floats of a normal distribution, by the method of Box and Muller (1958)."""

    out_shape: Ints
    out_dtype: Dtype = None
    words_each = 2

    def shaped(self, u: list[np.ndarray], a: float, c: float) -> np.ndarray:
        return np.sqrt(-2.0 * np.log(1.0 - u[0])) * np.cos(2.0 * math.pi * u[1]) * c + a

    def element(self, b: Any, u: list[Any], a: Any, c: Any) -> Any:
        return b.sqrt(b.log(1.0 - u[0]) * -2.0) * b.cos(u[1] * (2.0 * math.pi)) * c + a

    @classmethod
    def build(cls, key: Any, shape: Any, dtype: Any = "float32", mean: Any = 0.0, scale: Any = 1.0) -> Any:
        limits = [_scalar(x, dtype) for x in (mean, scale)]
        return wrap(cls.call(key, *limits, out_shape=ints(shape), out_dtype=dtype), 2)


@op("random.multinomial", inputs=("key", "probs"), attrs_key="Multinomial")
class multinomial(Drawing):
    """The advanced generator and `num_samples` int32 indices per row of `probs`, drawn in proportion to its entries."""

    num_samples: int = 1

    def relation(self, s: Any, key: Type, probs: Type) -> Type | None:
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
        sums = np.cumsum(probs.astype("float64"), axis=-1)
        limit = unit(found, "float64").reshape(shape) * sums[..., -1:]
        below = (sums[..., None, :-1] <= limit[..., None]).sum(axis=-1)
        return new, below.astype("int32")

    def lower(self, b: Any, out: Any, i: tuple, key: Any, probs: Any) -> Any:
        extent = int(probs.shape[-1])
        if out.field == 0:
            rows = math.prod(int(n) for n in probs.shape[:-1])
            return self.next_key(b, i, key, rows * self.num_samples)
        at = lambda k: b.cast(probs(*i[:-1], k), "float64")
        limit = unit_at(b, word_at(b, key, b.index(ravel(i, out.shape))), "float64") * b.sum(extent, at)
        zero = b.const(0.0, "float64")
        upto = lambda k: b.sum(extent, lambda n: b.guard(n <= k, lambda: at(n), zero))
        return b.sum(extent - 1, lambda k: b.cast(upto(k) <= limit, "int32"))

    @classmethod
    def samples(cls) -> list[Sample]:
        positive = {"low": 0.1, "high": 1.0}
        return [sample(_key(), (2, 4), num_samples=3, **positive), sample(_key(5), (6,), **positive)]
