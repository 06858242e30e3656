"""Contractions written as formulas: einsum; and stft, the short-time Fourier transform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylab.ir.types import Dim, IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Injective, Opaque, Sample, op, sample
from relaylab.op.create import ones
from relaylab.op.nn_dense import elements, exact, stored
from relaylab.op.shapes import broadcast_dims, derive, product
from relaylab.support.errors import RelayValueError


def terms(equation: str, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """The letters of each operand and of the result; `...` becomes the names `.0`, `.1` ... counted from the right."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    operands = left.split(",")
    if len(operands) != len(ranks):
        raise RelayValueError(f'"{equation}" has {len(operands)} operands, not {len(ranks)}', code="type.relation")
    letters = [_letters(text, rank, equation) for text, rank in zip(operands, ranks)]
    names = [x for term in letters for x in term]
    dots = sorted({x for x in names if x.startswith(".")}, key=lambda x: -int(x[1:]))
    if arrow:
        out = _letters(right, len(right.replace("...", "")) + len(dots), equation)
    else:
        out = dots + sorted(x for x in set(names) if names.count(x) == 1 and not x.startswith("."))
    if not set(out) <= set(names):
        raise RelayValueError(f'the result of "{equation}" names axes that no operand has', code="type.relation")
    return letters, out


def _letters(text: str, rank: int, equation: str) -> list[str]:
    before, dots, after = text.partition("...")
    spare = rank - len(before) - len(after)
    if spare < 0 or (spare and not dots) or not (before + after).replace(".", "?").isalpha() and before + after:
        raise RelayValueError(f'"{text}" in "{equation}" does not fit {rank} dimensions', code="type.relation")
    return [*before, *(f".{k}" for k in reversed(range(spare))), *after]


@op("einsum", inputs=("data",), level=11, attrs_key="Einsum")
class einsum(Injective):
    """Sums of products over the letters that the result does not have, as numpy.einsum."""

    equation: str

    def relation(self, s: Any, data: Type) -> Type | None:
        fields = rules.tensors(s, data)
        if fields is None:
            return None
        dtype = rules.same_dtype(s, *fields)
        try:
            letters, out = terms(self.equation, [len(t.shape) for t in fields])
        except RelayValueError as error:
            return s.fail(error.message)
        extents = self._extents(s, letters, [t.shape for t in fields])
        return TensorType([extents[x] for x in out], dtype)

    def _extents(self, s: Any, letters: list[list[str]], shapes: list[Sequence[Dim]]) -> dict[str, Dim]:
        """The extent of each letter."""
        found: dict[str, Dim] = {}
        for term, shape in zip(letters, shapes):
            for x, n in zip(term, shape):
                both = broadcast_dims(found.get(x, n), n)
                if both is None:
                    s.fail(f'`{x}` in "{self.equation}" is {found[x]} and {n}')
                found[x] = both  # type: ignore[assignment]
        return found

    def reference(self, data: tuple[np.ndarray, ...]) -> np.ndarray:
        dtype = data[0].dtype.name
        return stored(np.asarray(np.einsum(self.equation, *exact(dtype, *data))), dtype)

    def lower(self, b: Any, out: Any, i: tuple, data: tuple) -> Any:
        letters, result = terms(self.equation, [len(x.shape) for x in data])
        extents = self._extents(None, letters, [tuple(map(IntImm, x.shape)) for x in data])
        summed = [x for x in extents if x not in result]

        def value(*k: Any) -> Any:
            at = dict(zip(result, i)) | dict(zip(summed, k))
            factors = [
                x(*(0 if int(n) == 1 else at[a] for a, n in zip(term, x.shape))) for x, term in zip(data, letters)
            ]
            return math.prod(factors[1:], start=factors[0])

        return b.sum([int(extents[x]) for x in summed], value) if summed else value()  # type: ignore[arg-type]

    def macs(self, types: Sequence[Type], out: Type) -> int:
        fields = types[0].fields  # type: ignore[attr-defined]
        letters, result = terms(self.equation, [len(t.shape) for t in fields])
        extents = self._extents(None, letters, [t.shape for t in fields])
        summed = product([n for x, n in extents.items() if x not in result])
        return elements(out) * int(summed) if isinstance(summed, int) else 0

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample([(2, 3), (3, 4)], equation="ij,jk->ik"),
            sample([(2, 3), (3, 4)], equation="ij,jk"),
            sample([(3, 3)], equation="ii->i"),
            sample([(2, 5, 3), (3, 4)], equation="...j,jk->k..."),
            sample([(2, 3), (4, 3), (3,)], equation="ak, bk, k -> ab"),
            sample([TensorType((3,), "int32"), TensorType((3,), "int32")], equation="i,i->"),
        ]


@op("stft", inputs=("data", "window"), level=3, attrs_key="Stft", meta_attrs=True)
class stft(Opaque):
    """The short-time Fourier transform of signals (batch, length): (batch, frequencies, frames, 2), real and
    imaginary.
    """

    n_fft: int = -1
    hop_length: int = -1
    win_length: int = -1
    normalized: bool = False
    onesided: bool = True

    def relation(self, s: Any, data: Type, window: Type) -> Type | None:
        x, w = rules.tensor(s, data), rules.tensor(s, window, "window")
        if x is None or w is None:
            return None
        rules.rank(s, rules.floats(s, x), 2), rules.rank(s, w, 1, "window")
        rules.positive(s, self.n_fft, "n_fft"), rules.positive(s, self.hop_length, "hop_length")
        if isinstance(x.shape[1], int) and x.shape[1] < self.n_fft:
            s.fail(f"{type_text(x)} is shorter than n_fft = {self.n_fft}")
        if not 1 <= self.win_length <= self.n_fft or (isinstance(w.shape[0], int) and w.shape[0] < self.win_length):
            s.fail(f"win_length = {self.win_length} must be from 1 to n_fft = {self.n_fft} and within {type_text(w)}")
        frames = derive(lambda n: (n - self.n_fft) // self.hop_length + 1, x.shape[1])
        return TensorType((x.shape[0], self._frequencies, frames, 2), x.dtype)

    @property
    def _frequencies(self) -> int:
        return self.n_fft // 2 + 1 if self.onesided else self.n_fft

    def reference(self, data: np.ndarray, window: np.ndarray) -> np.ndarray:
        starts = range(0, data.shape[1] - self.n_fft + 1, self.hop_length)
        frames = np.stack([data[:, k : k + self.win_length] * window[: self.win_length] for k in starts], axis=1)
        angle = 2 * np.pi / self.win_length * np.outer(np.arange(self._frequencies), np.arange(self.win_length))
        found = np.einsum("btk,fk->bft", frames, np.exp(-1j * angle))
        scale = 1 / np.sqrt(self.n_fft) if self.normalized else 1.0
        return (np.stack([found.real, found.imag], axis=-1) * scale).astype(data.dtype)

    def lower(self, b: Any, out: Any, i: tuple, data: Any, window: Any) -> Any:
        n, frequency, frame, part = i
        step = b.cast(frequency, "float64") * (2 * math.pi / self.win_length)

        def term(k: Any) -> Any:
            angle = step * b.cast(k, "float64")
            turn = b.select(b.eq(part, 0), b.cos(angle), -b.sin(angle))
            return b.cast(data(n, frame * self.hop_length + k), "float64") * b.cast(window(k), "float64") * turn

        scale = 1 / math.sqrt(self.n_fft) if self.normalized else 1.0
        return b.cast(b.sum(self.win_length, term) * scale, out.dtype)

    @classmethod
    def build(
        cls,
        data: Any,
        n_fft: int,
        hop_length: Any = None,
        win_length: Any = None,
        window: Any = None,
        normalized: bool = False,
        onesided: bool = True,
    ) -> Any:
        hop, width = hop_length or n_fft // 4, win_length or n_fft
        shape = ones((n_fft,), "int32") if window is None else window
        return cls.call(
            data, shape, n_fft=n_fft, hop_length=hop, win_length=width, normalized=normalized, onesided=onesided
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((2, 20), (8,), n_fft=8, hop_length=2, win_length=8),
            sample((1, 16), (6,), n_fft=8, hop_length=4, win_length=6, normalized=True, onesided=False),
        ]
