"""Seeded random tensor programs with their inputs: what the compiler is tried on.

    from support.networks import random_network

    net = random_network(7)                   # net.mod, net.inputs (by name), net.tolerance
    net = random_network(7, size=40)          # a larger one
    random_network(7, kinds={"heavy"})        # convolutions and products, little else between them

Every operator is evaluated while the program grows, so that each step sees real values: shapes and dtypes are right by
construction, values that grow are scaled down, and functions that jump (comparisons, roundings, argmax, casts to
integers) are only applied to values that are the same to the last bit in whatever order sums are formed.

The steps are in `network_steps`, by kind: heavy, pool, norm, move, pick, reduce, pair, whole, dtype, scan, and sort,
which only the virtual machine runs and which must be asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylab.op.rounding import evaluated
from relaylab import relay
from relaylab.analysis import infer_module
from relaylab.ir import Call, Constant, Expr, Function, IRModule, Let, Tuple, TupleGetItem, Var, facets, post_order
from relaylab.ir.expr import TupleWrapper

EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17)
LARGEST = 20_000
"""Elements of the largest tensor."""
EXACT = frozenset(
    "transpose reshape concatenate split strided_slice nn.pad nn.mirror_pad take gather gather_nd where reverse"
    " repeat tile stack squeeze expand_dims broadcast_to max min maximum minimum nn.relu abs negative copy"
    " nn.max_pool1d nn.max_pool2d nn.max_pool3d sort topk one_hot zeros_like ones_like full_like nn.batch_flatten"
    " nn.space_to_depth nn.depth_to_space nn.global_max_pool2d clip scatter slice_like reshape_like layout_transform"
    " argmax argmin argsort equal less greater not_equal less_equal greater_equal sign floor ceil round trunc"
    " sequence_mask trilu nn.dilate reverse_sequence strided_set nn.space_to_batch_nd nn.batch_to_space_nd isnan"
    " isfinite cumsum_int".split()
)
"""Operators whose result, from equal arguments, is equal to the last bit however it is computed."""


@dataclass(frozen=True, slots=True)
class Network:
    """A typed module, values for the parameters of `main` by name, those to build in, what results may differ by."""

    mod: IRModule
    inputs: dict[str, np.ndarray]
    params: dict[str, np.ndarray]
    tolerance: float


class Maker:
    """Grows a program step by step; `values` knows what every expression is."""

    def __init__(self, rng: Any):
        self.rng = rng  # a numpy generator, or what draws like one
        self.values: dict[Expr, Any] = {}
        self.exact: set[Expr] = set()
        self.pool: list[Expr] = []
        self.inputs: dict[Var, np.ndarray] = {}
        self.params: dict[str, np.ndarray] = {}
        self.lets: list[tuple[Var, Expr]] = []
        self.letting = float(self.rng.choice([0, 0, 0, 0.3, 1]))
        self.constants = float(self.rng.choice([1, 0.8, 0.3]))
        self.channels_last = self.rng.random() < 0.3

    # ---- drawing

    def draw(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def extent(self) -> int:
        return self.draw(EXTENTS)

    def numbers(self, shape: Sequence[int], dtype: str, scale: float = 1.0) -> np.ndarray:
        """Values of a dtype: floats in -scale .. scale, small or all integers."""
        if dtype == "bool":
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype.startswith("float"):
            return np.asarray(self.rng.uniform(-scale, scale, shape)).astype(dtype)
        info = np.iinfo(dtype)
        low, high = (max(info.min, -5), 6) if self.chance(0.7) else (max(info.min, -1000), min(info.max, 1000))
        return np.asarray(self.rng.integers(low, high, shape)).astype(dtype)

    def leaf(self, shape: Sequence[int], dtype: str = "float32", scale: float = 1.0, values: Any = None) -> Expr:
        """A new constant, parameter or input with drawn (or the given) values."""
        data = self.numbers(shape, dtype, scale) if values is None else np.asarray(values)
        if self.chance(self.constants):
            expr: Expr = relay.const(data, data.dtype.name)
        else:
            expr = self.variable(data)
            if self.chance(0.5):
                self.params[expr.name_hint] = data  # type: ignore[attr-defined]
        self.values[expr] = data
        self.exact.add(expr)
        return expr

    def variable(self, data: np.ndarray) -> Var:
        """A new parameter of main."""
        var = relay.var(f"x{len(self.inputs)}", shape=data.shape, dtype=data.dtype.name)
        self.inputs[var] = self.values[var] = data
        self.exact.add(var)
        return var

    # ---- values

    def array(self, expr: Expr) -> np.ndarray:
        """What an expression is, as an array."""
        return self.value(expr)

    def value(self, expr: Expr) -> Any:
        """What an expression is, evaluated where it is new."""
        for node in post_order(expr) if expr not in self.values else ():
            if node not in self.values and not hasattr(node, "definition"):
                self._evaluate(node)
        return self.values[expr]

    def _evaluate(self, node: Expr) -> None:
        match node:
            case Constant():
                parts, found = (), node.data.numpy()
            case Tuple():
                parts, found = node.fields, tuple(self.values[f] for f in node.fields)
            case TupleGetItem():
                parts, found = (node.tuple_value,), self.values[node.tuple_value][node.index]
            case Call():
                parts, found = node.args, evaluated(facets(node), [self.values[a] for a in node.args])
        self.values[node] = found
        plain = not isinstance(node, Call) or node.op.name in EXACT or not self._floating(node)  # type: ignore[attr-defined]
        if plain and self.exact.issuperset(parts):
            self.exact.add(node)

    def _floating(self, call: Call) -> bool:
        found = [self.values[call], *(self.values[a] for a in call.args)]
        flat = [a for v in found for a in (v if isinstance(v, tuple) else (v,))]
        return any(np.asarray(a).dtype.kind == "f" for a in flat)

    def keep(self, expr: Any) -> Expr:
        """Puts a result into the pool, bound by a let in some programs."""
        expr = expr.tuple_value if isinstance(expr, TupleWrapper) else expr
        found = self.value(expr)
        if self.chance(self.letting):
            var = relay.var(f"v{len(self.lets)}")
            self.lets.append((var, expr))
            self.values[var] = found
            if expr in self.exact:
                self.exact.add(var)
            expr = var
        if isinstance(found, tuple):
            for k in range(len(found)):
                self.keep(TupleGetItem(expr, k))
        else:
            self.pool.append(self.tamed(expr))
        return expr

    def tamed(self, expr: Expr) -> Expr:
        """`expr`, scaled down where its values have grown."""
        found = self.array(expr)
        if found.dtype.kind != "f" or found.size == 0 or not np.abs(found).max() > 4:
            return expr
        scaled = relay.multiply(expr, relay.const(float(1 / np.abs(found).max()), found.dtype.name))
        self.value(scaled)
        return scaled

    def pick(self, test: Callable[[np.ndarray], bool] = lambda v: True, exact: bool = False) -> Expr | None:
        """A recent value that passes a test, or None."""
        found = [e for e in self.pool if test(self.array(e)) and (not exact or e in self.exact)]
        return self.draw(found[-5:]) if found else None

    def like(self, shape: Sequence[int], dtype: str) -> Expr:
        """A value of a shape and dtype: one of the pool, if there is one, else new."""
        found = self.pick(lambda v: v.shape == tuple(shape) and v.dtype == dtype)
        return found if found is not None and self.chance(0.8) else self.leaf(shape, dtype)

    # ---- the whole

    def start(self) -> None:
        """One to three inputs; images, sequences, volumes, matrices, anything."""
        e = self.extent
        shapes = [
            (e(), e(), e(), e()),
            (self.draw((1, 1, 2)), e(), e() + 3, e() + 3),
            (e(), e()),
            (1, e(), e()),
            (e(),),
            (),
        ]
        shapes += [
            (1, 3, 9, 10),
            (1, 16, 8, 8),
            (2, 8, 7, 7),
            (1, 8, 8, 16),
            (1, 4, 5, 6, 7),
            (1, 8, 16),
            (4, 16),
            (3, 8, 8),
        ]
        for _ in range(int(self.rng.integers(1, 4))):
            dtype = self.draw(["float32"] * 8 + ["int32", "int8", "float64", "float16", "uint8", "int64", "bool"])
            self.pool.append(self.variable(self.numbers(self.draw(shapes), dtype)))

    def finish(self) -> Network:
        """The module: one to four results, among them inputs, constants, the same twice, tuples in tuples."""
        count = self.draw((1, 1, 2, 3, 4))
        results = [self.pool[-1], *(self.draw(self.pool[-12:]) for _ in range(count - 1))]
        if self.chance(0.1):
            results.append(self.leaf((2, 3)))
        if self.chance(0.1):
            results.append(self.draw(list(self.inputs)))
        body: Expr = Tuple(results) if len(results) > 1 else results[0]
        if len(results) > 2 and self.chance(0.3):
            body = Tuple([Tuple(results[:-1]), results[-1]])
        for var, value in reversed(self.lets):
            body = Let(var, value, body)
        mod = infer_module(IRModule.from_expr(Function(list(self.inputs), body)))
        half = any(np.asarray(v).dtype == "float16" for v in self.values.values() if not isinstance(v, tuple))
        inputs = {v.name_hint: data for v, data in self.inputs.items()}
        return Network(mod, inputs, dict(self.params), 3e-2 if half else 1e-3)


def random_network(seed: int, size: int = 18, kinds: Iterable[str] | None = None) -> Network:
    """The program of a seed: up to `size` steps of these kinds (without `kinds`, of all but sort)."""
    return drawn_network(np.random.default_rng([seed, 5]), size, kinds)


def drawn_network(rng: Any, size: int = 18, kinds: Iterable[str] | None = None) -> Network:
    """The program that a generator, or what draws like one, gives."""
    from support.network_steps import STEPS

    made = Maker(rng)
    steps = [s for kind in (kinds or [k for k in STEPS if k != "sort"]) for s in STEPS[kind]]
    made.start()
    for _ in range(int(made.rng.integers(min(4, size), size + 1))):
        source = made.draw(made.pool[-4:] if made.chance(0.8) else made.pool)
        result = made.draw(steps)(made, source, made.array(source))
        if result is not None:
            made.keep(result)
    return made.finish()
