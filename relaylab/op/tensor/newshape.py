"""The codes of reshape's `newshape`: 0 copy, -1 infer, -2 copy the rest, -3 merge two, -4 split."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.ir.dims import AnyDim, Dim, SizeVar, SymbolicDim, dim
from relaylab.op.shapes import derive, extent, product, total
from relaylab.support.errors import RelayValueError


def new_shape(shape: Sequence[Dim], codes: Sequence[int | AnyDim], allowzero: bool = False) -> tuple[Dim, ...]:
    """The shape that `codes` describe for a tensor of `shape`; `RelayValueError` if they do not fit."""
    reading = _Reading(tuple(shape), tuple(codes), allowzero)
    out = reading.result()
    before, after = product(shape), product(out)
    if isinstance(before, int) and isinstance(after, int) and before != after:
        raise _misfit(shape, codes, f"{before} elements do not fill ({', '.join(map(str, out))})")
    return out


def reverse_new_shape(shape: Sequence[Dim], codes: Sequence[int | AnyDim]) -> tuple[Dim, ...]:
    """The same with shape and codes read from the right."""
    groups, k = [], 0
    while k < len(codes):
        size = 3 if codes[k] == -4 else 1
        groups.append((codes[k], *reversed(codes[k + 1 : k + size])))
        k += size
    return new_shape(tuple(shape)[::-1], [c for g in reversed(groups) for c in g])[::-1]


def _misfit(shape: Sequence[Dim], codes: Sequence[int | AnyDim], why: str) -> RelayValueError:
    message = f"({', '.join(map(str, shape))}) cannot be reshaped to ({', '.join(map(str, codes))}): {why}"
    return RelayValueError(message, code="type.relation")


def _divided(whole: Dim, part: SymbolicDim) -> Dim | None:
    """What `part`, a product of sizes, is multiplied with to give `whole`; None if that is no expression of sizes."""
    if len(part.terms) != 1:
        return None
    ((taken, divisor),) = part.terms.items()
    terms = whole.terms if isinstance(whole, SymbolicDim) else {(): whole}
    found: list[Dim] = []
    for monomial, factor in terms.items():
        left = list(monomial)
        for atom in taken:
            if atom not in left:
                return None
            left.remove(atom)
        if not isinstance(factor, int) or factor % divisor:
            return None
        sizes = [a if isinstance(a, SizeVar) else a.numerator // a.divisor for a in left]
        found.append(product([*sizes, factor // divisor]))
    return total(found)


class _Reading:
    """One pass over the codes: `out` grows, `kept` are the positions of dimensions that were copied from the input."""

    def __init__(self, shape: tuple[Dim, ...], codes: tuple[int | AnyDim, ...], allowzero: bool):
        self.shape, self.codes, self.allowzero = shape, codes, allowzero
        self.at, self.hole = 0, -1
        self.out: list[Dim] = []
        self.used: set[int] = set()
        self.kept: set[int] = set()

    def result(self) -> tuple[Dim, ...]:
        codes = iter(self.codes)
        for code in codes:
            if isinstance(code, AnyDim) or code > 0 or (code == 0 and self.allowzero):
                self.out.append(dim(code))
                self.at += 1
            else:
                self._special(code, codes)
        if self.hole >= 0:
            self.out[self.hole] = self._left_over()
        return tuple(self.out)

    def _special(self, code: int, codes) -> None:
        match code:
            case 0:
                self._keep(self._take())
            case -1:
                if self.hole >= 0:
                    raise self._error("-1 may occur once")
                self.hole = len(self.out)
                self.out.append(dim(1))
                self.at += 1
            case -2:
                while self.at < len(self.shape):
                    self._keep(self._take())
            case -3:
                self._keep(product((self._take(), self._take())))
            case -4:
                self._split(self._take(), next(codes, None), next(codes, None))
            case _:
                raise self._error(f"there is no code {code}")

    def _take(self) -> Dim:
        if self.at >= len(self.shape):
            raise self._error("there are not that many dimensions")
        self.used.add(self.at)
        self.at += 1
        return self.shape[self.at - 1]

    def _keep(self, d: Dim) -> None:
        self.kept.add(len(self.out))
        self.out.append(d)

    def _split(self, whole: Dim, first: int | None, second: int | None) -> None:
        if first is None or second is None or (first == -1 and second == -1) or 0 in (first, second):
            raise self._error("-4 needs two factors, one of which may be -1")
        self._keep(derive(lambda n: n // second, whole) if first == -1 else dim(first))
        self._keep(derive(lambda n: n // first, whole) if second == -1 else dim(second))
        if isinstance(whole, int) and extent(product(self.out[-2:])) != whole:
            raise self._error(f"{first} and {second} do not split {whole}")

    def _left_over(self) -> Dim:
        before = [d for k, d in enumerate(self.shape) if k not in self.used]
        others = [d for k, d in enumerate(self.out) if k not in self.kept and k != self.hole]
        for shared in [d for d in others if isinstance(d, SymbolicDim) and d in before]:
            before.remove(shared)
            others.remove(shared)
        rest = product(others)
        if isinstance(rest, int) and rest == 0:
            raise self._error("-1 has no meaning next to a 0")
        found = _divided(product(before), rest) if isinstance(rest, SymbolicDim) else None
        return derive(lambda n, m: n // m, product(before), rest) if found is None else found

    def _error(self, why: str) -> RelayValueError:
        return _misfit(self.shape, self.codes, why)
