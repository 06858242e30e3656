"""Random numbers of an open shape: Relay's operators draw as many as their attributes say.

Threefry with two words of 32 bits and 20 rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2,
3, 2011) of the place of each number, as elementwise arithmetic.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.graph import of_count
from relaylab.ir import AnyDim, Constant, Expr

TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""By how many bits the rounds turn a word."""
PARITY = 0x1BD11BDA
ROUNDS = 20


def _word(value: int) -> Constant:
    return Constant(np.array(value & 0xFFFFFFFF, "uint32"))


def threefry(key: tuple[int, int], first: Expr, second: Expr) -> tuple[Expr, Expr]:
    """Two words for each pair of words (uint32)."""
    keys = [*key, PARITY ^ key[0] ^ key[1]]
    a, b = op.add(first, _word(keys[0])), op.add(second, _word(keys[1]))
    for k in range(ROUNDS):
        turn = TURNS[k // 4 % 2][k % 4]
        a = op.add(a, b)
        turned = op.bitwise_or(op.left_shift(b, _word(turn)), op.right_shift(b, _word(32 - turn)))
        b = op.bitwise_xor(turned, a)
        if k % 4 == 3:
            step = k // 4 + 1
            a = op.add(a, _word(keys[step % 3]))
            b = op.add(b, op.add(_word(keys[(step + 1) % 3]), _word(step)))
    return a, b


def _unit(word: Expr) -> Expr:
    """0 <= u < 1 (float32) from the upper 23 bits."""
    return op.multiply(op.cast(op.right_shift(word, _word(9)), "float32"), Constant(np.array(2.0**-23, "float32")))


def drawn(seed: int, like: Expr, shape: tuple[Any, ...], normal: bool) -> Expr:
    """float32 for each element of a tensor of that shape: evenly spread over 0 <= u < 1, or of the standard `normal`
    distribution by Box and Muller's method (1958).
    """
    told = not any(type(d) is AnyDim for d in shape)
    c = lambda value: Constant(np.array(value, "float32"))
    limits = [Constant(np.array(v, "int64")) for v in (0, 1)]
    places = op.arange(limits[0], op.ndarray_size(like, dtype="int64"), limits[1], dtype="int64")
    places = op.cast(of_count(places, math.prod(shape)) if told else places, "uint32")
    one, other = threefry((seed & 0xFFFFFFFF, seed >> 32), places, op.zeros_like(places))
    values = _unit(one)
    if normal:
        radius = op.sqrt(op.multiply(op.log(op.subtract(c(1), values)), c(-2)))
        values = op.multiply(radius, op.sin(op.multiply(_unit(other), c(2 * math.pi))))
    return op.reshape(values, shape, allowzero=True) if told else op.reshape_like(values, like)
