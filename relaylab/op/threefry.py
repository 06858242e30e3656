"""The Threefry 4x64-20 block function, for numpy arrays and for loop-level expressions.

Salmon, Moraes, Dror and Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).

A generator is a uint64[10] tensor: words 0-3 are the key, word 8 counts the blocks drawn, the others are 0.
Block n is Threefry(key, (n, 0, 0, 0)); a split makes keys of Threefry(key, (n, 0, 0, 1 or 2)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

PARITY = 0x1BD11BDAA9FC1A22
ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
ROUNDS = 20


def block(key: Sequence[Any], counter: Sequence[Any], xor: Callable, rotate: Callable, word: Callable) -> list[Any]:
    """Four random words from four key words and four counter words.

    `xor(a, b)`, `rotate(a, bits)` (left) and `word(int)` are the arithmetic of uint64; `+` wraps.
    """
    keys = [*key, xor(xor(xor(xor(word(PARITY), key[0]), key[1]), key[2]), key[3])]
    x = [c + k for c, k in zip(counter, keys)]
    for r in range(ROUNDS):
        first, second = (1, 3) if r % 2 == 0 else (3, 1)
        for a, b, bits in ((0, first, ROTATIONS[r % 8][0]), (2, second, ROTATIONS[r % 8][1])):
            x[a] = x[a] + x[b]
            x[b] = xor(rotate(x[b], bits), x[a])
        if r % 4 == 3:
            turn = r // 4 + 1
            x = [v + keys[(turn + k) % 5] for k, v in enumerate(x)]
            x[3] = x[3] + word(turn)
    return x


def words(generator: np.ndarray, counts: np.ndarray, purpose: int = 0) -> np.ndarray:
    """The (n, 4) words of blocks `counts` of a generator."""
    with np.errstate(over="ignore"):
        counter = [counts.astype("uint64"), *(np.full(counts.shape, v, "uint64") for v in (0, 0, purpose))]
        key = [np.full(counts.shape, k, "uint64") for k in generator[:4]]
        return np.stack(block(key, counter, np.bitwise_xor, _rotate, np.uint64), axis=-1)


def _rotate(x: np.ndarray, bits: int) -> np.ndarray:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


def draw(generator: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The advanced generator, and `size` random words."""
    blocks = -(-size // 4)
    found = words(generator, generator[8] + np.arange(blocks, dtype="uint64")).reshape(-1)[:size]
    return advanced(generator, blocks), found


def advanced(generator: np.ndarray, blocks: int) -> np.ndarray:
    """The generator after so many blocks were drawn."""
    out = generator.copy()
    out[8] += np.uint64(blocks)
    return out


def word_at(b: Any, generator: Any, flat: Any) -> Any:
    """The random word number `flat` (an index) as a loop-level expression."""
    count = generator(8) + b.cast(flat // 4, "uint64")
    return select(b, block_at(b, generator, count, 0), flat % 4)


def block_at(b: Any, generator: Any, count: Any, purpose: int) -> list[Any]:
    """The four words of a block as loop-level expressions."""
    word = lambda v: b.const(v, "uint64")
    rotate = lambda x, bits: b.bxor(b.shl(x, bits), b.shr(x, 64 - bits))
    return block([generator(k) for k in range(4)], [count, word(0), word(0), word(purpose)], b.bxor, rotate, word)


def select(b: Any, choices: Sequence[Any], k: Any) -> Any:
    """Element `k` of a list of expressions."""
    value = choices[-1]
    for n in reversed(range(len(choices) - 1)):
        value = b.select(b.eq(k, n), choices[n], value)
    return value


def unit(word: np.ndarray, dtype: str) -> np.ndarray:
    """Words as numbers of 0 <= u < 1: the upper 53 bits (24 for float32, 11 for float16)."""
    bits = {"float16": 11, "float32": 24}.get(dtype, 53)
    return (word >> np.uint64(64 - bits)).astype("float64") * 2.0**-bits


def unit_at(b: Any, word: Any, dtype: str) -> Any:
    """The same for a loop-level expression; a float64."""
    bits = {"float16": 11, "float32": 24}.get(dtype, 53)
    return b.cast(b.shr(word, 64 - bits), "float64") * 2.0**-bits
