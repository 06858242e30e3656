"""What the networks of attention are made of. States are (batch, length, hidden); parameters are untyped variables."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from relaylab.ir import Expr, const, var
from relaylab.op import (
    add,
    concatenate,
    erf,
    mean,
    multiply,
    negative,
    nn,
    power,
    repeat,
    reshape,
    rsqrt,
    sigmoid,
    strided_slice,
    take,
    tanh,
    transpose,
)
from relaylab.support.errors import RelayValueError

HIDDEN_BY_MASK = -1e9
"""What is added to the score of a place that may not be looked at."""


def linear(x: Expr, name: str, units: int, bias: bool = True) -> Expr:
    """x W^T, plus a bias: the parameters `<name>_weight` (units, inputs) and `<name>_bias`."""
    made = nn.dense(x, var(f"{name}_weight"), units=units)
    return nn.bias_add(made, var(f"{name}_bias"), axis=-1) if bias else made


def norm(x: Expr, name: str, epsilon: float = 1e-5) -> Expr:
    """Layer normalization over the last axis: `<name>_gamma`, `<name>_beta`."""
    return nn.layer_norm(x, var(f"{name}_gamma"), var(f"{name}_beta"), epsilon=epsilon)


def rms_norm(x: Expr, name: str, hidden: int, epsilon: float = 1e-5) -> Expr:
    """x / sqrt(mean(x^2) + epsilon) * `<name>_gamma` (Zhang and Sennrich, 2019)."""
    scale = rsqrt(add(mean(multiply(x, x), axis=-1, keepdims=True), const(epsilon)))
    return multiply(multiply(x, scale), var(f"{name}_gamma", shape=(hidden,)))


def gelu(x: Expr) -> Expr:
    """x times the probability that a normal number is below it (Hendrycks and Gimpel, 2016)."""
    return multiply(multiply(x, const(0.5)), add(const(1.0), erf(multiply(x, const(math.sqrt(0.5))))))


def gelu_tanh(x: Expr) -> Expr:
    """The same by a hyperbolic tangent, as GPT-2 has it."""
    inner = add(x, multiply(const(0.044715), power(x, const(3.0))))
    return multiply(multiply(x, const(0.5)), add(const(1.0), tanh(multiply(const(math.sqrt(2 / math.pi)), inner))))


def silu(x: Expr) -> Expr:
    """x sigmoid(x)."""
    return multiply(x, sigmoid(x))


def embed(tokens: Expr, name: str, count: int, hidden: int) -> Expr:
    """Rows of the table `<name>_weight` (count, hidden)."""
    return take(var(f"{name}_weight", shape=(count, hidden)), tokens, axis=0)


def positions(name: str, count: int, start: int, length: int, hidden: int) -> Expr:
    """`length` rows of the table of positions, from `start` on."""
    if start + length > count:
        raise RelayValueError(
            f"there are {count} positions, not {start + length}", code="zoo.length", help="take a shorter sequence"
        )
    table = var(f"{name}_weight", shape=(count, hidden))
    return strided_slice(table, begin=[start, 0], end=[start + length, hidden])


def causal(length: int, seen: int = 0) -> Expr:
    """What is added to scores so that place k sees the `seen` earlier ones and those up to its own."""
    return const(np.triu(np.full((length, seen + length), HIDDEN_BY_MASK, "float32"), seen + 1))


@dataclass(frozen=True)
class Heads:
    """How the last axis of states falls into `count` heads of `size` elements each."""

    batch: int
    count: int
    size: int

    def split(self, x: Expr, length: int) -> Expr:
        """(batch, length, count * size) as (batch, count, length, size)."""
        return transpose(reshape(x, (self.batch, length, self.count, self.size)), (0, 2, 1, 3))

    def merge(self, x: Expr, length: int) -> Expr:
        """The way back."""
        return reshape(transpose(x, (0, 2, 1, 3)), (self.batch, length, self.count * self.size))

    def repeated(self, x: Expr, times: int) -> Expr:
        """Every head `times` times in a row: queries share keys and values (Ainslie et al., 2023)."""
        return x if times == 1 else repeat(x, repeats=times, axis=1)

    def attend(self, query: Expr, key: Expr, value: Expr, lengths: tuple[int, int], mask: Expr | None = None) -> Expr:
        """softmax(query key^T / sqrt(size) + mask) value, head by head (Vaswani et al., 2017).

        `lengths` are those of query and key; the result is (batch, count, lengths[0], size).
        """
        rows, columns = lengths
        flat = lambda x, n: reshape(x, (self.batch * self.count, n, self.size))
        scores = nn.batch_matmul(flat(query, rows), flat(key, columns))
        scores = multiply(scores, const(1 / math.sqrt(self.size)))
        weights = nn.softmax(scores if mask is None else add(scores, mask))
        mixed = nn.batch_matmul(weights, flat(value, columns), transpose_b=False)
        return reshape(mixed, (self.batch, self.count, rows, self.size))

    def self_attention(self, x: Expr, name: str, length: int, mask: Expr | None = None) -> Expr:
        """Attention of states to themselves, with the linear layers `<name>_query`, `_key`, `_value`, `_output`."""
        hidden = self.count * self.size
        query, key, value = (
            self.split(linear(x, f"{name}_{part}", hidden), length) for part in ("query", "key", "value")
        )
        mixed = self.merge(self.attend(query, key, value, (length, length), mask), length)
        return linear(mixed, f"{name}_output", hidden)


def heads_of(batch: int, heads: int, hidden: int) -> Heads:
    """The heads of states; RelayValueError if they do not split."""
    if not 1 <= heads <= hidden or hidden % heads:
        raise RelayValueError(
            f"{hidden} elements do not split into {heads} heads", code="zoo.heads", help="take a divisor"
        )
    return Heads(batch, heads, hidden // heads)


def rotated(x: Expr, size: int, start: int, length: int, base: float = 10000.0) -> Expr:
    """Pairs (k, k + size / 2) of each head turned by an angle that grows with the place (Su et al., 2021)."""
    if size % 2:
        raise RelayValueError(f"heads of {size} elements are no pairs", code="zoo.heads", help="take an even size")
    angles = np.outer(np.arange(start, start + length), base ** (-np.arange(0, size, 2) / size))
    both = np.concatenate([angles, angles], axis=1)
    first = strided_slice(x, begin=[0], end=[size // 2], strides=[1], axes=[3])
    second = strided_slice(x, begin=[size // 2], end=[size], strides=[1], axes=[3])
    turned = concatenate([negative(second), first], axis=3)
    cosines, sines = (const(f(both).astype("float32")) for f in (np.cos, np.sin))
    return add(multiply(x, cosines), multiply(turned, sines))
