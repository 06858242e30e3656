"""The simplifier: interns expressions, puts index arithmetic in normal form, decides what bounds decide.

Interned expressions are equal exactly when they are the same object, which is what makes the
loop builder's common subexpressions and comparisons cheap. Index arithmetic (int64) becomes a sum of
atoms (`Linear`); division and remainder by constants split off what they divide; bounds of the axes
decide comparisons, selections, guards, minima and maxima.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import numpy as np

from relaylab.loop.affine import (
    INTERVAL_RULES,
    UNBOUNDED,
    Linear,
    Rect,
    add_intervals,
    block_sizes,
    clip_interval,
    join_intervals,
    scale_interval,
    split_block,
    split_multiples,
    verdicts,
)
from relaylab.loop.expr import (
    INDEX,
    MOST_SIZE,
    Apply,
    Axis,
    Cast,
    Const,
    Guard,
    Load,
    Local,
    Reduce,
    ScalarExpr,
    Size,
    apply,
    cast,
    children,
    of_part,
    post_order,
    rebuild,
)
from relaylab.loop.scalar import NARROW, is_float, is_integer
from relaylab.loop.sizes import divided, product_of

Key = tuple[str | int, ...]
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


class Simplifier:
    """Simplifies expressions under the ranges of axes and registers (inclusive; an axis not named has its extent)."""

    def __init__(self, ranges: dict[Axis, Rect] | None = None):
        self.ranges: dict[ScalarExpr, Rect] = dict((ranges or {}).items())
        self._interned: dict[Key, ScalarExpr] = {}
        self._linear, self._atoms = dict[ScalarExpr, Linear](), dict[ScalarExpr, Linear]()
        self._bounds, self._numbers = dict[ScalarExpr, Rect](), dict[int, ScalarExpr]()
        self._done: dict[ScalarExpr, ScalarExpr] = {}

    def __call__(self, root: ScalarExpr, replace: Mapping[ScalarExpr, ScalarExpr] | None = None) -> ScalarExpr:
        """`root` simplified and interned; nodes in `replace` (interned) are exchanged first."""
        done = dict(replace) if replace else self._done  # what was simplified without exchanges holds for all calls
        found = done.get(root)
        if found is not None:
            return found
        for node in post_order(root, known=done):
            new = done[node] = self._node(node, tuple([done[c] for c in children(node)]))
            if not replace:
                done[new] = new
        return done[root]

    def sum(self, terms: Iterable[tuple[ScalarExpr | int, int]], start: int = 0) -> ScalarExpr:
        """`start` and the sum of indices times numbers: what their sum would be simplified to, without writing it."""
        total: dict[ScalarExpr, int] = {}
        for index, step in terms:
            if isinstance(index, int):
                start += index * step
                continue
            known = self._done.get(index)
            value = self.linear(self(index) if known is None else known)
            start += value.const * step
            for atom, factor in value.terms.items():
                total[atom] = total.get(atom, 0) + factor * step
        return self.index(Linear({atom: factor for atom, factor in total.items() if factor}, start))

    # ---- interning

    def intern(self, node: ScalarExpr) -> ScalarExpr:
        """The one object that stands for all expressions equal to `node` (whose children are interned)."""
        return self._interned.setdefault(_key(node), node)  # keys hold ids; the table keeps what they name alive

    def linear(self, node: ScalarExpr) -> Linear:
        """An interned index expression as a sum."""
        found = self._linear.get(node) or self._atoms.get(node)
        if found is None:
            found = Linear({}, int(node.value)) if isinstance(node, Const) else Linear({node: 1})
            self._atoms[node] = found
        return found

    def index(self, value: Linear) -> ScalarExpr:
        """The interned expression of a sum, remainders merged with their quotients."""
        value = self._merge_remainders(value)
        atom = value.atom
        if atom is not None:
            return atom
        node: ScalarExpr | None = None
        for atom, factor in value.terms.items():
            term = atom if factor == 1 else self._interned_apply("mul", atom, self._number(factor))
            node = term if node is None else self._interned_apply("add", node, term)
        if node is None:
            return self._number(value.const)
        node = node if value.const == 0 else self._interned_apply("add", node, self._number(value.const))
        self._linear[node] = value
        return node

    def _number(self, value: int) -> ScalarExpr:
        if value not in self._numbers:
            self._numbers[value] = self.intern(Const(value, INDEX))
        return self._numbers[value]

    def _interned_apply(self, op: str, a: ScalarExpr, b: ScalarExpr) -> ScalarExpr:
        """A function of two interned indices, as it is."""
        found = self._interned.get((op, id(a), id(b)))
        return found if found is not None else self.intern(Apply(op, (a, b), INDEX))

    def _merge_remainders(self, value: Linear) -> Linear:
        """(x // d) * (d * c) + (x % d) * c is x * c."""
        for atom, factor in value.terms.items():
            parts = _divided(atom, "floormod")
            if parts is not None:
                inner, divisor = self.linear(parts[0]), parts[1]
                quotient = self.linear(self._floordiv(inner, divisor))
                scaled = quotient * (divisor * factor)
                if all(value.terms.get(a) == f for a, f in scaled.terms.items()) and scaled.terms:
                    rest = Linear({a: f for a, f in value.terms.items() if a is not atom}, value.const)
                    return self._merge_remainders(rest - scaled + inner * factor)
        return value

    # ---- nodes

    def _node(self, node: ScalarExpr, new: tuple[ScalarExpr, ...]) -> ScalarExpr:
        match node:
            case Apply(op, _, dtype):
                if dtype == INDEX and op in self._INDEX_RULES:
                    return self._INDEX_RULES[op](self, node, *new)
                if op in _COMPARISONS and new[0].dtype == INDEX:
                    return self._comparison(node, *new)
                if op == "pow" and isinstance(new[1], Const) and new[1].value in (2, 3, 4):
                    return self._small_power(node, new[0], int(new[1].value))
                if op in ("land", "lor", "lnot", "select"):
                    return self.intern(of_part(_logic(op, new), node.part))
            case Axis():
                low, high = self._bounds_of(node)
                return self.intern(Const(low, INDEX) if low == high else node)
            case Cast(_, dtype):
                return self._cast(dtype, new[0])
            case Guard() if new[1] is new[2]:
                return new[1]
            case Reduce(kind, axes) if any(a.extent == 0 for a in axes):
                return self.intern(Reduce(kind, axes, new[0], node.part))
            case Reduce("max" | "min", axes) if isinstance(new[0], Const) and all(a.size is None for a in axes):
                return new[0]
            case _:
                pass
        return self.intern(rebuild(node, new))

    def _small_power(self, node: Apply, x: ScalarExpr, exponent: int) -> ScalarExpr:
        """Products; a call of the C library takes thirty times as long."""
        square = self.intern(of_part(apply("mul", x, x), node.part))
        if exponent == 2:
            return square
        return self.intern(of_part(apply("mul", square, square if exponent == 4 else x), node.part))

    def _cast(self, dtype: str, value: ScalarExpr) -> ScalarExpr:
        """A cast; an index that went through a narrower integer and fits it is itself, and a float is limited to what
        an integer holds by the cast to it alone."""
        if isinstance(value, Cast) and dtype == INDEX and value.value.dtype == INDEX and is_integer(value.dtype):
            info, (low, high) = np.iinfo(value.dtype), self.bounds(value.value)
            if info.min <= low and high <= info.max:
                return value.value
        while is_integer(dtype) and is_float(value.dtype) and isinstance(value, Apply) and value.op in ("max", "min"):
            (x, edge), info = sorted(value.args, key=lambda a: isinstance(a, Const)), np.iinfo(dtype)
            if not isinstance(edge, Const):
                break
            if not (edge.value <= info.min if value.op == "max" else edge.value >= info.max):  # NaN is neither
                break
            value = x
        return self.intern(cast(value, dtype))

    def _sum(self, node: Apply, a: ScalarExpr, b: ScalarExpr) -> ScalarExpr:
        return self.index(self.linear(a) + self.linear(b))

    def _difference(self, node: Apply, a: ScalarExpr, b: ScalarExpr) -> ScalarExpr:
        return self.index(self.linear(a) - self.linear(b))

    def _negation(self, node: Apply, a: ScalarExpr) -> ScalarExpr:
        return self.index(self.linear(a) * -1)

    def _product(self, node: Apply, a: ScalarExpr, b: ScalarExpr) -> ScalarExpr:
        if isinstance(a, Const):
            a, b = b, a
        if isinstance(b, Const):
            return self.index(self.linear(a) * int(b.value))
        product = product_of(self.linear(a), self.linear(b))
        return self.intern(rebuild(node, (a, b))) if product is None else self.rebuilt(product)

    def rebuilt(self, value: Linear) -> ScalarExpr:
        """The interned expression of a sum whose atoms are new."""
        total, own = Linear({}, value.const), dict[ScalarExpr, ScalarExpr]()
        for atom, factor in value.terms.items():
            for n in post_order(atom, known=own):
                new = tuple(own[c] for c in children(n))
                own[n] = self.intern(Apply(n.op, new, n.dtype) if isinstance(n, Apply) and new != n.args else n)
            total += Linear({own[atom]: factor})
        return self.index(total)

    def _division(self, node: Apply, a: ScalarExpr, b: ScalarExpr) -> ScalarExpr:
        """A quotient or remainder; where nothing is negative, what truncates does as what floors."""
        floors = node.op in ("floordiv", "floormod") or self.bounds(a)[0] >= 0
        if isinstance(b, Const) and b.value > 0 and floors and self.bounds(a) != UNBOUNDED:
            divide = self._floormod if node.op.endswith("mod") else self._floordiv
            return divide(self.linear(a), int(b.value))
        return self._by_size(node, a, b) if floors else self.intern(rebuild(node, (a, b)))

    def _by_size(self, node: Apply, a: ScalarExpr, b: ScalarExpr) -> ScalarExpr:
        """The quotient or the remainder of a division by a product of sizes and a number."""
        terms, const = self.linear(b).terms, self.linear(b).const
        if const or len(terms) != 1 or min(terms.values()) < 1 or self.bounds(a) == UNBOUNDED:
            return self.intern(rebuild(node, (a, b)))
        ((sizes, factor),) = terms.items()
        for block in (1, *block_sizes(self.linear(a), factor)):
            # x // (n * sizes) is x // block // sizes // (n / block)
            first = divided(self.linear(self._floordiv(self.linear(a), block)), sizes)
            if first is None:
                continue
            quotient, left = self.linear(self.rebuilt(first[0])), factor // block
            if not node.op.endswith("mod"):
                return self._floordiv(quotient, left)
            high = product_of(self.linear(self._floormod(quotient, left)), Linear({sizes: 1}))
            if high is not None:
                return self.rebuilt((high + first[1]) * block + self.linear(self._floormod(self.linear(a), block)))
        return self.intern(rebuild(node, (a, b)))

    def _as_remainders(self, value: Linear) -> Linear:
        """x - (x // d) * d is x % d, whose bounds are known."""
        for atom, factor in value.terms.items():
            inner, divisor = _divided(atom, "floordiv") or (atom, 0)
            if factor < 0 and divisor and factor % divisor == 0:
                scale = -(factor // divisor)
                given = self.linear(inner) * scale
                if not given.const and all(value.terms.get(a) == f for a, f in given.terms.items()):
                    rest = value - given + Linear({atom: -factor})
                    return self._as_remainders(rest + self.linear(self._floormod(self.linear(inner), divisor)) * scale)
        return value

    def _floordiv(self, value: Linear, divisor: int) -> ScalarExpr:
        whole, rest = split_multiples(self._as_remainders(value), divisor)
        low, high = self.linear_bounds(rest)
        if low // divisor == high // divisor:
            return self.index(whole + Linear({}, low // divisor))
        size, rest, _ = self._block(rest, divisor)
        divisor //= size
        inner = _divided(rest.atom, "floordiv")
        if inner is not None:
            quotient = self._floordiv(self.linear(inner[0]), inner[1] * divisor)
        else:
            quotient = self._atom("floordiv", rest, divisor)
        return self.index(whole + self.linear(quotient))

    def _floormod(self, value: Linear, divisor: int) -> ScalarExpr:
        _, rest = split_multiples(value, divisor)
        low, high = self.linear_bounds(rest)
        if low // divisor == high // divisor:
            return self.index(rest - Linear({}, low // divisor * divisor))
        size, rest, left_over = self._block(rest, divisor)
        divisor //= size
        inner = _divided(rest.atom, "floormod")
        if inner is not None and inner[1] % divisor == 0:
            remainder = self._floormod(self.linear(inner[0]), divisor)
        else:
            remainder = self._atom("floormod", rest, divisor)
        return self.index(self.linear(remainder) * size + left_over)

    def _block(self, value: Linear, divisor: int) -> tuple[int, Linear, Linear]:
        """`value` as high * size + low with 0 <= low < size, where size divides the divisor; largest size."""
        for size in block_sizes(value, divisor):
            high, low = split_block(value, size)
            least, most = self.linear_bounds(low)
            if least // size == most // size:
                start = least // size
                return size, high + Linear({}, start), low - Linear({}, start * size)
        return 1, value, Linear({})

    def _atom(self, op: str, value: Linear, divisor: int) -> ScalarExpr:
        if divisor == 1:
            return self.index(value) if op == "floordiv" else self.intern(Const(0, INDEX))
        return self._interned_apply(op, self.index(value), self._number(divisor))

    def _extreme(self, node: Apply, a: ScalarExpr, b: ScalarExpr) -> ScalarExpr:
        (a_low, a_high), (b_low, b_high) = self.bounds(a), self.bounds(b)
        if a_high <= b_low:
            return a if node.op == "min" else b
        if b_high <= a_low:
            return b if node.op == "min" else a
        return self.intern(rebuild(node, (a, b)))

    def _comparison(self, node: Apply, a: ScalarExpr, b: ScalarExpr) -> ScalarExpr:
        difference = self.linear(a) - self.linear(b)
        low, high = self.linear_bounds(difference)
        for decided, answer in verdicts(node.op, low, high):
            if decided:
                return self.intern(Const(answer, "bool"))
        return self.intern(rebuild(node, (a, b)))

    _INDEX_RULES: dict[str, Callable[..., ScalarExpr]] = {
        "add": _sum, "sub": _difference, "mul": _product, "neg": _negation,
        **dict.fromkeys(("floordiv", "truncdiv", "div", "floormod", "truncmod"), _division),
        "max": _extreme, "min": _extreme,
    }  # fmt: skip

    # ---- bounds

    def bounds(self, node: ScalarExpr) -> Rect:
        """Inclusive bounds of an interned integer expression; `UNBOUNDED` if nothing is known."""
        if node not in self._bounds:
            for n in post_order(node, known=self._bounds):
                self._bounds[n] = self._bounds_of(n)
        return self._bounds[node]

    def linear_bounds(self, value: Linear) -> Rect:
        """Rect of a sum."""
        total = (value.const, value.const)
        for atom, factor in value.terms.items():
            bounds = self.bounds(atom)
            if bounds == UNBOUNDED:
                return UNBOUNDED
            total = add_intervals(total, scale_interval(bounds, factor))
        return total

    def _bounds_of(self, node: ScalarExpr) -> Rect:
        match node:
            case Axis():
                return self.ranges.get(node, (0, max(node.extent - 1, 0)))
            case Size():
                return 0, MOST_SIZE
            case Const(value, dtype) if is_integer(dtype):
                return clip_interval((int(value), int(value)))
            case Cast(value, dtype) if is_integer(dtype):
                return self._cast_bounds(value, dtype)
            case Reduce(kind, axes) if kind.startswith("arg"):
                return 0, max(int(np.prod([a.extent for a in axes])) - 1, 0)
            case Apply(op, args, dtype) if is_integer(dtype):
                return self._apply_bounds(node, op, [self._bounds[a] for a in args])
            case _:
                return self.ranges.get(node, _dtype_bounds(node.dtype) if is_integer(node.dtype) else UNBOUNDED)

    def _cast_bounds(self, value: ScalarExpr, dtype: str) -> Rect:
        if value.dtype == "bool":
            return 0, 1
        inside, target = self._bounds[value], _dtype_bounds(dtype)
        fits = is_integer(value.dtype) and target[0] <= inside[0] and inside[1] <= target[1]
        return inside if fits else target

    def _apply_bounds(self, node: Apply, op: str, sides: list[Rect]) -> Rect:
        if node in self._linear:
            return self.linear_bounds(self._linear[node])
        whole = _dtype_bounds(node.dtype)
        if op == "select":
            found = join_intervals(sides[1], sides[2])
        elif op in INTERVAL_RULES:
            found = INTERVAL_RULES[op](*sides)
        else:
            return whole
        return found if whole[0] <= found[0] and found[1] <= whole[1] else whole


def _divided(node: ScalarExpr | None, op: str) -> tuple[ScalarExpr, int] | None:
    """The dividend and the divisor of a quotient or remainder (`op`) by a constant from 1 on; None for other nodes."""
    if isinstance(node, Apply) and node.op == op:
        dividend, divisor = node.args
        return (dividend, int(divisor.value)) if isinstance(divisor, Const) and divisor.value > 0 else None
    return None


@lru_cache
def _dtype_bounds(dtype: str) -> Rect:
    info = np.iinfo(dtype)
    return clip_interval((int(info.min), int(info.max)))


def _logic(op: str, args: tuple[ScalarExpr, ...]) -> ScalarExpr:
    """A logical function or selection, with its constant arguments decided."""
    known = [a.value if isinstance(a, Const) else None for a in args]
    if op == "select":
        if args[1] is args[2]:
            return args[1]
        whole = _rounded_to_even(*args)
        if whole is not None:
            return apply("roundeven", whole)
        return apply("select", *args) if known[0] is None else args[1 if known[0] else 2]
    if op in ("land", "lor"):
        neutral = op == "land"
        for k in (0, 1):
            if known[k] is not None:
                return args[1 - k] if known[k] == neutral else args[k]
        return args[0] if args[0] is args[1] else apply(op, *args)
    return apply(op, *args)


def _rounded_to_even(tie: ScalarExpr, even: ScalarExpr, plain: ScalarExpr) -> ScalarExpr | None:
    """x where a selection is x rounded with halves to even, as quantizers write it (`composite.round_even`)."""
    x = _argument("round", plain)
    if x is None or x.dtype in NARROW:
        return None
    distance = _argument("abs", _argument("eq", tie, 0.5))
    half = _argument("round", _argument("mul", even, 2.0))
    if not isinstance(distance, Apply) or distance.op != "sub" or distance.args[0] is not x:
        return None
    return x if _argument("trunc", distance.args[1]) is x and _argument("mul", half, 0.5) is x else None


def _argument(op: str, node: ScalarExpr | None, constant: float | None = None) -> ScalarExpr | None:
    """The first argument of a function, of which the second is a constant; None of another function."""
    if not isinstance(node, Apply) or node.op != op:
        return None
    last = node.args[-1]
    return node.args[0] if constant is None or (isinstance(last, Const) and last.value == constant) else None


def _key(node: ScalarExpr) -> Key:
    match node:
        case Apply(op, args):
            return (op, *map(id, args))
        case Axis() | Local() | Size():
            return ("leaf", id(node))
        case Const(value, dtype):
            return ("const", repr(value), dtype)
        case Load(tensor, indices):
            return ("load", id(tensor), *map(id, indices))
        case Reduce(kind, axes, value):
            return ("reduce", kind, *map(id, axes), id(value))
        case _:
            return (type(node).__name__, node.dtype, *map(id, children(node)))
