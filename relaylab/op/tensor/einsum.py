"""Contractions written as formulas: einsum; and stft, the short-time Fourier transform."""

from __future__ import annotations

import itertools
import math
import re
import string
from collections.abc import Callable, Sequence

import numpy as np

from relaylab.ir.expr import Constant, Expr, Tuple
from relaylab.ir.types import AnyDim, Dim, TensorType, TupleType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Input, Opaque, OpPattern, Sample, arg, attr, call_operator, op, sample
from relaylab.op.fourier import MOST_TURNS, TwoStepTransform, turned
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import length
from relaylab.op.products import elements, exact, stored
from relaylab.op.shapes import broadcast_dims, derive, product
from relaylab.op.tensor.create import ones
from relaylab.op.tensor.join import OfSeveral
from relaylab.support.errors import RelayValueError

LEAST_SIDE = 4  # of matrices whose product is worth bringing their letters into order


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
    if not set(out) <= set(names) or len(set(out)) < len(out):
        raise RelayValueError(
            f'the result of "{equation}" names axes twice, or such that no operand has', code="type.relation"
        )
    return letters, out


def _letters(text: str, rank: int, equation: str) -> list[str]:
    before, dots, after = text.partition("...")
    spare = rank - len(before) - len(after)
    if spare < 0 or (spare and not dots) or not re.fullmatch("[A-Za-z]*", before + after):
        raise RelayValueError(f'"{text}" in "{equation}" does not fit {rank} dimensions', code="type.relation")
    return [*before, *(f".{k}" for k in reversed(range(spare))), *after]


def extents_of(equation: str, letters: list[list[str]], shapes: Sequence[Sequence[Dim]]) -> dict[str, Dim]:
    """The extent of each letter; `RelayValueError` if two do not broadcast."""
    found: dict[str, Dim] = {}
    for term, shape in zip(letters, shapes):
        for x, n in zip(term, shape):
            both = broadcast_dims(found.get(x, n), n)
            if both is None or (term.count(x) > 1 and found.get(x, n) != n):
                raise RelayValueError(f'`{x}` in "{equation}" is {found[x]} and {n}', code="type.relation")
            found[x] = both
    return found


def _ordered(x: Expr, term: Sequence[str], parts: Sequence[Sequence[str]], count: Callable[..., Dim]) -> Expr:
    """An operand with its letters in the order of the parts, each of which is one axis."""
    order = [term.index(name) for part in parts for name in part]
    x = x if order == sorted(order) else call_operator("transpose", x, axes=order)
    return call_operator("reshape", x, newshape=[count(part) for part in parts])


@op("einsum", level=11, attrs_key="Einsum")
class einsum(OfSeveral):
    """Sums of products over the letters that the result does not have, as numpy.einsum."""

    yields = (
        "the extents of the letters of the result (without ->: those that occur once, sorted), of the dtype of data"
    )
    source = "numpy.einsum"
    pattern = OpPattern.OUT_ELEMWISE_FUSABLE  # what reads it would compute its sums again for each of its own elements

    data: Input = arg("the operands, as a tuple or list", "one dimension per letter of its term", "one for all")
    equation: str = attr(doc="terms of letters with commas between them, perhaps -> and the result's; ... for any axes")

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        fields = rules.tensors(s, data)
        if fields is None:
            return None
        dtype = rules.same_dtype(s, *fields)
        try:
            letters, out = terms(self.equation, [len(t.shape) for t in fields])
            extents = extents_of(self.equation, letters, [t.shape for t in fields])
        except RelayValueError as error:
            s.fail(error.message)
        return TensorType([extents[x] for x in out], dtype)

    def reference(self, data: tuple[np.ndarray, ...]) -> np.ndarray:
        dtype = data[0].dtype.name
        return stored(np.asarray(np.einsum(self.equation, *exact(dtype, *data))), dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: tuple[Readable, ...]) -> Element:
        letters, result = terms(self.equation, [len(x.shape) for x in data])
        extents: dict[str, int] = {}
        for term, x in zip(letters, data):
            extents |= {a: length(n) for a, n in zip(term, x.shape) if extents.get(a, 1) == 1}
        summed = [x for x in extents if x not in result]

        def value(*k: Element) -> Element:
            at = dict(zip(result, i)) | dict(zip(summed, k))
            factors = [x(*(0 if n == 1 else at[a] for a, n in zip(term, x.shape))) for x, term in zip(data, letters)]
            return math.prod(factors[1:], start=factors[0])

        return b.sum([extents[x] for x in summed], value) if summed else value()

    def legal(self, inputs: Sequence[Expr], types: Sequence[Type]) -> Expr | None:
        """Products of matrices of two operands: batches are the letters that both and the result have, sums those that
        the result lacks.
        """
        pair, out = inputs[0], types[-1]
        if (
            not isinstance(pair, Tuple)
            or len(pair.fields) < 2
            or getattr(out, "dtype", "") not in ("float32", "float64")
        ):
            return None
        fields = [t for t in getattr(types[0], "fields", ()) if isinstance(t, TensorType)]
        if len(fields) < 2 or any(type(d) is AnyDim for t in fields for d in t.shape):
            return None
        if len(fields) > 2:
            return self._pairs(pair.fields, fields)
        (left, right), result = terms(self.equation, [len(t.shape) for t in fields])
        sizes = [dict(zip(term, t.shape)) for term, t in zip((left, right), fields)]
        both = set(left) & set(right)
        if len({*left}) < len(left) or len({*right}) < len(right) or any(sizes[0][x] != sizes[1][x] for x in both):
            return None
        batch, rows, columns = ([x for x in result if x in kind] for kind in (both, {*left} - both, {*right} - both))
        summed = [x for x in right if x in both and x not in result]
        if len(batch) + len(rows) + len(columns) < len(result) or {*left, *right} > {*result, *summed}:
            return None
        extents = sizes[0] | sizes[1]
        count = lambda names: product([extents[x] for x in names])
        few = [n for n in map(count, (rows, columns, summed)) if isinstance(n, int) and n < LEAST_SIDE]
        if few or count(batch) == 0 or any(type(count(part)) is AnyDim for part in (batch, rows, columns, summed)):
            return None
        turned = right[-1] in summed
        a = _ordered(pair.fields[0], left, (batch, rows, summed), count)
        b = _ordered(pair.fields[1], right, (batch, columns, summed) if turned else (batch, summed, columns), count)
        found = call_operator("nn.batch_matmul", a, b, transpose_a=False, transpose_b=turned)
        found = call_operator("reshape", found, newshape=[extents[x] for x in (*batch, *rows, *columns)])
        order = [(*batch, *rows, *columns).index(x) for x in result]
        return found if order == sorted(order) else call_operator("transpose", found, axes=order)

    def _pairs(self, operands: Sequence[Expr], fields: Sequence[TensorType]) -> Expr | None:
        """Two operands at a time, those first whose products are fewest; None where that saves less than half."""
        letters, result = terms(self.equation, [len(t.shape) for t in fields])
        names = list(dict.fromkeys(x for term in letters for x in term))
        extents: dict[str, int] = {}
        for term, t in zip(letters, fields):
            for x, n in zip(term, t.shape):
                if not isinstance(n, int) or extents.setdefault(x, n) != n or len({*term}) < len(term):
                    return None
        if len(names) > len(string.ascii_letters):
            return None
        count = lambda term: math.prod(extents[x] for x in term)
        short = dict(zip(names, string.ascii_letters))
        written = lambda term: "".join(short[x] for x in term)
        left, products = list(zip(operands, map(tuple, letters))), 0
        while len(left) > 1:
            sets = [{*term} for _, term in left]
            sizes = {p: count(sets[p[0]] | sets[p[1]]) for p in itertools.combinations(range(len(left)), 2)}
            pair = min(sizes, key=sizes.__getitem__)
            (x, first), (y, second) = (left[k] for k in pair)
            rest, both = [o for k, o in enumerate(left) if k not in pair], dict.fromkeys(first + second)
            kept = tuple(n for n in both if n in result or any(n in term for _, term in rest)) if rest else (*result,)
            products += count(both)
            equation = f"{written(first)},{written(second)}->{written(kept)}"
            types = [TensorType([extents[n] for n in term], fields[0].dtype) for term in (first, second, kept)]
            inner = einsum.definition(equation=equation).legal([Tuple([x, y])], [TupleType(types[:2]), types[2]])
            left = [*rest, (inner or call_operator("einsum", Tuple([x, y]), equation=equation), kept)]
        return left[0][0] if 2 * products <= count(names) else None

    def macs(self, types: Sequence[Type], out: Type) -> int:
        fields = [t for t in types[0].fields if isinstance(t, TensorType)] if isinstance(types[0], TupleType) else []
        letters, result = terms(self.equation, [len(t.shape) for t in fields])
        extents = extents_of(self.equation, letters, [t.shape for t in fields])
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


@op("stft", level=3, attrs_key="Stft", meta_attrs=True)
class stft(Opaque):
    """The short-time Fourier transform of signals (batch, length): (batch, frequencies, frames, 2), real and
    imaginary.
    """

    yields = "(batch, n_fft // 2 + 1 or n_fft, (length - n_fft) // hop_length + 1, 2), of the dtype of data"
    source = "torch.stft, center=False"

    data: Input = arg("the signals", "(batch, length)", "floats")
    window: Input = arg("the weights of a frame, at least `win_length` of them; None: ones", "(n,)")
    n_fft: int = attr(-1, "the length of a transform")
    hop_length: int = attr(-1, "the distance of the frames; None: n_fft // 4")
    win_length: int = attr(-1, "the length of a frame; None: n_fft")
    normalized: bool = attr(False, "whether the result is divided by the square root of n_fft")
    onesided: bool = attr(True, "whether only the frequencies 0 .. n_fft / 2 are given; the others are conjugates")

    def result_type(self, s: TypeSolver, data: TensorType, window: TensorType) -> Type | None:
        rules.rank(s, rules.floats(s, data), 2), rules.rank(s, window, 1, "window")
        rules.positive(s, self.n_fft, "n_fft"), rules.positive(s, self.hop_length, "hop_length")
        if isinstance(data.shape[1], int) and data.shape[1] < self.n_fft:
            s.fail(f"{type_text(data)} is shorter than n_fft = {self.n_fft}")
        given = window.shape[0]
        if not 1 <= self.win_length <= self.n_fft or (isinstance(given, int) and given < self.win_length):
            s.fail(
                f"win_length = {self.win_length} must be from 1 to n_fft = {self.n_fft} and within {type_text(window)}"
            )
        frames = derive(lambda n: (n - self.n_fft) // self.hop_length + 1, data.shape[1])
        return TensorType((data.shape[0], self._frequencies, frames, 2), data.dtype)

    def legal(self, inputs: Sequence[Expr], types: Sequence[TensorType]) -> Expr | None:
        """Frames times a matrix of cosines and sines, or two small ones after each other; None for one too large."""
        data, given, out = types
        width, rows = self.win_length, 2 * self._frequencies
        if data.dtype not in ("float32", "float64") or data.is_dynamic or given.is_dynamic:
            return None
        batch, _, frames, _ = out.concrete_shape
        two = self._two_steps
        if two is None and width * rows > MOST_TURNS:
            return None
        hop, read = self.hop_length, (frames - 1) * self.hop_length + width  # there may be more than what is read
        cut = call_operator("strided_slice", inputs[0], begin=(0, 0), end=(batch, read), strides=(1, 1))
        cut = call_operator("sliding_window", cut, axis=1, window_shape=(width,), strides=(hop,))
        window, table = self._window(inputs[1], data.dtype), self._turns
        if isinstance(window, Constant) and two is None:
            table = lambda: self._turns() * window.data.numpy()
        else:
            cut = call_operator("multiply", cut, window)
        flat = call_operator("reshape", cut, newshape=(batch * frames, width))
        if two is not None:
            flat = call_operator("transpose", flat, axes=(1, 0))
            flat = call_operator("reshape", flat, newshape=(1, width, batch * frames))
            found = two.transformed(flat, self._frequencies, self._scale, data.dtype)
            found = call_operator("reshape", found, newshape=(self._frequencies, batch, frames, 2))
            return call_operator("transpose", found, axes=(1, 0, 2, 3))
        found = call_operator("nn.dense", flat, Constant(table().reshape(rows, width).astype(data.dtype)))
        found = call_operator("reshape", found, newshape=(batch, frames, self._frequencies, 2))
        return call_operator("transpose", found, axes=(0, 2, 1, 3))

    def _window(self, given: Expr, dtype: str) -> Expr:
        """The weights of a frame's elements."""
        if isinstance(given, Constant):
            return Constant(given.data.numpy()[: self.win_length].astype(dtype))
        window = call_operator("cast", given, dtype=dtype)
        return call_operator("strided_slice", window, begin=(0,), end=(self.win_length,), strides=(1,))

    @property
    def _two_steps(self) -> TwoStepTransform | None:
        """The transform in two steps; None where there is none, or one has fewer products."""
        n = self.win_length
        return TwoStepTransform.instead_of(2 * n * self._frequencies, n) if n == self.n_fft else None

    def _turns(self) -> np.ndarray:
        """What an element of a frame is multiplied with: (frequencies, 2, width) of float64."""
        steps = np.outer(np.arange(self._frequencies), np.arange(self.win_length))
        return np.stack(turned(steps, self.win_length), axis=1) * self._scale

    @property
    def _scale(self) -> float:
        return 1 / math.sqrt(self.n_fft) if self.normalized else 1.0

    @property
    def _frequencies(self) -> int:
        return self.n_fft // 2 + 1 if self.onesided else self.n_fft

    def reference(self, data: np.ndarray, window: np.ndarray) -> np.ndarray:
        starts = range(0, data.shape[1] - self.n_fft + 1, self.hop_length)
        frames = np.stack([data[:, k : k + self.win_length] * window[: self.win_length] for k in starts], axis=1)
        angle = 2 * np.pi / self.win_length * np.outer(np.arange(self._frequencies), np.arange(self.win_length))
        found = np.einsum("btk,fk->bft", frames, np.exp(-1j * angle))
        return (np.stack([found.real, found.imag], axis=-1) * self._scale).astype(data.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, window: Readable) -> Element:
        n, frequency, frame, part = i
        step = b.cast(frequency, "float64") * (2 * math.pi / self.win_length)

        def term(k: Element) -> Element:
            angle = step * b.cast(k, "float64")
            turn = b.select(b.eq(part, 0), b.cos(angle), -b.sin(angle))
            return b.cast(data(n, frame * self.hop_length + k), "float64") * b.cast(window(k), "float64") * turn

        return b.cast(b.sum(self.win_length, term) * self._scale, out.dtype)

    @classmethod
    def build(
        cls,
        data: Expr,
        n_fft: int,
        hop_length: object = None,
        win_length: object = None,
        window: object = None,
        normalized: bool = False,
        onesided: bool = True,
    ) -> Expr:
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
            sample((2, 230), (110,), n_fft=104, hop_length=50, win_length=104, normalized=True),
        ]
