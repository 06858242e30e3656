"""A splittable generator on the Threefry 4x64 function, for numpy arrays and for loop-level expressions.

Salmon, Moraes, Dror and Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011); Claessen and Palka: Splittable
pseudorandom number generators using cryptographic hashing (Haskell 2013), encoding e4.

A generator is TVM's uint64[10] tensor: words 0-3 are the key, 4-5 the path of splits, 6-7 the counter (only the last
is used; it grows by four for each block), 8-9 the one bit of the path that the next split sets. Block n of a draw is
Threefry(key, (path, counter) + n), twenty rounds in which the key is added before each four and not once more at the
end. A draw that has no room in the counter turns right in the path; without room there too, it counts on in word 6 and
leaves a generator with a new key (docs/choices.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylab.loop.expr import ScalarExpr
from relaylab.op.helpers import Element, ElementBuilder, Readable

PARITY = 0x1BD11BDAA9FC1A22
ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
ROUNDS = 20
FIRST = 1 << 63
"""The place of the first split in the path."""
FULL = (1 << 64) - 1
FRACTION = {"float16": (16, 10), "float32": (32, 23), "float64": (64, 52)}
"""Of how many low bits of a word a float is made, and how many of them it keeps."""


def block(key: Sequence[Any], counter: Sequence[Any], xor: Callable, rotate: Callable, word: Callable) -> list[Any]:
    """Four random words from four key words and four counter words.

    `xor(a, b)`, `rotate(a, bits)` (left) and `word(int)` are the arithmetic of uint64; `+` wraps.
    """
    keys = [*key, xor(xor(xor(xor(word(PARITY), key[0]), key[1]), key[2]), key[3])]
    x = list(counter)
    for r in range(ROUNDS):
        if r % 4 == 0:
            x = [v + keys[(r // 4 + k) % 5] for k, v in enumerate(x)]
            x[3] = x[3] + word(r // 4)
        first, second = (1, 3) if r % 2 == 0 else (3, 1)
        for a, b, bits in ((0, first, ROTATIONS[r % 8][0]), (2, second, ROTATIONS[r % 8][1])):
            x[a] = x[a] + x[b]
            x[b] = xor(rotate(x[b], bits), x[a])
    return x


def words(generator: np.ndarray, count: int) -> np.ndarray:
    """The (count, 4) words of the first blocks of a generator."""
    with np.errstate(over="ignore"):
        steps = np.arange(count, dtype="uint64")
        return np.stack(_blocks(list(generator[:4]), [v + steps for v in generator[4:8]]), axis=-1)


def _blocks(key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
    return block([np.full_like(counter[0], k) for k in key], counter, np.bitwise_xor, _rotate, np.uint64)


def _rotate(x: np.ndarray, bits: int) -> np.ndarray:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


def draw(generator: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The advanced generator, and `size` random words."""
    state, place, blocks = generator.copy(), place_of(generator), -(-size // 4)
    if spent := int(generator[7]) >= FULL - size:
        state[4:6] |= generator[8:10]
        state[6:] = 0 if place else generator[6] + np.uint64(1), 0, place >> 65, (place >> 1) & FULL
    found = words(state, blocks).reshape(-1)[:size]
    if spent and not place:
        state[:4], state[4:] = _renewed([*generator[:6], FULL, FULL]), (0, 0, 0, 0, FIRST, 0)
    state[7] += np.uint64(4 * blocks)
    return state, found


def place_of(generator: np.ndarray) -> int:
    """The bit that the next split sets, as a number below 2^128; 0: the path is full."""
    return int(generator[8]) << 64 | int(generator[9])


def _renewed(state: Sequence[Any]) -> list[Any]:
    """A new key made of key, path and counter."""
    with np.errstate(over="ignore"):
        return [v[0] for v in _blocks(state[:4], [np.array([v], "uint64") for v in state[4:8]])]


def split(generator: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The generators to the left and to the right of a split."""
    left, place = generator.copy(), place_of(generator)
    if not place:
        left[:4], left[4:], place = _renewed(list(generator)), 0, FIRST << 64
    left[8:10] = place >> 65, (place >> 1) & FULL
    right = left.copy()
    right[4:6] |= np.array([place >> 64, place & FULL], "uint64")
    return left, right


class Drawn:
    """The draw of `size` words from a generator, as loop-level expressions."""

    def __init__(self, b: ElementBuilder, generator: Readable, size: int = 0):
        self.b, self.generator, self.size = b, generator, size
        self.full = b.all_of(b.eq(generator(8), self.word(0)), b.eq(generator(9), self.word(0)))
        last = self.word(FULL) - b.cast(size, "uint64") if isinstance(size, ScalarExpr) else self.word(FULL - size)
        self.room = generator(7) < last
        self.renews = b.all_of(self.full, generator(7) >= last)

    def word(self, value: int) -> Element:
        return self.b.const(value, "uint64")

    def block(self, key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
        b = self.b
        rotate = lambda x, bits: b.bxor(b.shl(x, bits), b.shr(x, 64 - bits))
        return block(key, counter, b.bxor, rotate, self.word)

    def own(self, first: int, last: int) -> list[Element]:
        return [self.generator(k) for k in range(first, last)]

    def renewed(self, counter: list[Element]) -> list[Any]:
        """A new key made of key, path and counter."""
        return self.block(self.own(0, 4), [*self.own(4, 6), *counter])

    def moved(self, first: Element, second: Element) -> list[Element]:
        """The place of the next split after the one at these words."""
        b = self.b
        return [b.shr(first, 1), b.shr(second, 1) | b.shl(first, 63)]

    def state(self) -> list[Element]:
        """The ten words that the numbers are drawn with."""
        b, old, zero = self.b, self.own(0, 10), self.word(0)
        upper = b.select(self.full, old[6] + self.word(1), zero)
        turned = [old[4] | old[8], old[5] | old[9], upper, zero, *self.moved(*old[8:])]
        return [*old[:4], *(b.select(self.room, k, t) for k, t in zip(old[4:], turned))]

    def next(self, i: Element) -> Element:
        """Word `i` of the advanced generator."""
        b = self.b
        fresh = [*self.renewed([self.word(FULL)] * 2), *(self.word(v) for v in (0, 0, 0, 0, FIRST, 0))]
        new = [b.select(self.renews, f, v) for f, v in zip(fresh, self.state())]
        new[7] = new[7] + b.number((self.size + 3) // 4 * 4, "uint64")
        return select(b, new, i)

    def at(self, flat: Element) -> Element:
        """The random word number `flat` (an index)."""
        state, step = self.state(), self.b.cast(flat // 4, "uint64")
        return select(self.b, self.block(state[:4], [v + step for v in state[4:8]]), flat % 4)

    def split(self, i: Element, side: int) -> Element:
        """Word `i` of the generator to the left (0) or to the right (1) of a split."""
        b, old = self.b, self.own(0, 10)
        path = [v | place if side else v for v, place in zip(old[4:6], old[8:])]
        kept = [*old[:4], *path, *old[6:8], *self.moved(*old[8:])]
        fresh = [*self.renewed(old[6:8]), *(self.word(v) for v in (FIRST * side, 0, 0, 0, FIRST >> 1, 0))]
        return select(b, [b.select(self.full, f, k) for f, k in zip(fresh, kept)], i)


def select(b: ElementBuilder, choices: Sequence[Any], k: Element) -> Element:
    """Element `k` of a list of expressions."""
    value = choices[-1]
    for n in reversed(range(len(choices) - 1)):
        value = b.select(b.eq(k, n), choices[n], value)
    return value


def unit(word: np.ndarray, dtype: str) -> np.ndarray:
    """Words as numbers of 0 <= u < 1: of the low 32 bits the upper 23 (float64: 52 of 64, float16: 10 of 16)."""
    bits, kept = FRACTION[dtype]
    fraction = (word >> np.uint64(bits - kept)) & np.uint64((1 << kept) - 1)
    return (fraction.astype("float64") * 2.0**-kept).astype(dtype)


def unit_at(b: ElementBuilder, word: Element, dtype: str) -> Element:
    """The same for a loop-level expression."""
    bits, kept = FRACTION[dtype]
    fraction = b.shr(word, bits - kept) & b.const((1 << kept) - 1, "uint64")
    return b.cast(b.cast(fraction, "float64") * 2.0**-kept, dtype)
