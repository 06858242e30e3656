"""Every operator with one or two extents open: one compiled form for lengths from 0 on gives what the interpreter does.

An extent of a sample's arguments becomes a named size wherever it occurs. Operators that have no kernel for that say so
and are not run; what is run is held against the interpreter, which may refuse a length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from codegen.operator_programs import TOLERANCE, leaves, tensors, unlike
from fuzz.choices import Choices
from fuzz.search import Finding, family

from relaylab import relay
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.open.form import OpenForm
from relaylab.ir import OPERATORS, IRModule, TensorType, TupleType, Var
from relaylab.ir.dims import SizeVar
from relaylab.op.base import Sample, call_operator
from relaylab.support.errors import RelayError
from relaylab.transform import InferType, PassContext

NAMES = [n for n in sorted(OPERATORS) if OPERATORS[n].definition.samples()]
PROMISED = ("nn.sparse_", "nn.internal.sparse_", "nn.grouped_matmul", "invert_permutation", "searchsorted")
"""Operators whose arrays of numbers depend on each other, as those of a matrix' rows do: none are drawn."""
LENGTHS = (1, 0, 2, 3, 7, 8, 9, 17, 33)


@dataclass(frozen=True)
class Case:
    """An operator's sample, the extents that are open, and lengths for them."""

    name: str
    sample: Sample
    opened: tuple[int, ...]
    lengths: tuple[tuple[int, ...], ...]
    seed: int


@family("lengths", "operators over open extents: one compiled form for all lengths, and the interpreter")
class Lengths:
    """Cases of operators; arguments that a sample has as arrays are drawn up to their largest number."""

    def case(self, draw: Choices) -> Case:
        name = draw.choice(NAMES)
        sample = draw.choice(OPERATORS[name].definition.samples())
        known = sorted({n for _, a in tensors(sample.args) for n in typed(a).concrete_shape})
        count = min(len(known), 1 + draw.randrange(2))
        opened = tuple(draw.sample(known, count)) if known else ()
        some = LENGTHS[:7] if "3d" in name else LENGTHS  # the interpreter takes the taps of a kernel one by one
        lengths = tuple(tuple(draw.choice(some) for _ in opened) for _ in range(4))
        return Case(name, sample, opened, lengths, draw.randrange(100))

    def run(self, case: Case) -> str:
        drawn = [a for _, a in tensors(case.sample.args)]
        promised = case.name.startswith(PROMISED) and not all(isinstance(a, TensorType) for a in drawn)
        if not case.opened or promised:
            return "nothing to open"
        names = {n: SizeVar(f"n{n}") for n in case.opened}
        params = [parameter(a, k, names) for k, a in enumerate(case.sample.args)]
        call = call_operator(case.name, *params, **case.sample.attrs)
        try:
            mod = InferType()(IRModule.from_expr(relay.Function(params, call)))
            with PassContext(opt_level=3):
                form = OpenForm(mod, CpuTarget.host(), [typed(a).concrete_shape for a in drawn])
        except RelayError:
            return "no open form"
        debug = relay.create_executor("debug", mod=mod).evaluate()
        ran = [self.compared(case, form, debug, drawn, dict(zip(case.opened, n))) for n in case.lengths]
        return "compared" if any(ran) else "refused"

    def compared(self, case: Case, form: OpenForm, debug: object, drawn: list, lengths: dict[int, int]) -> bool:
        rng = np.random.default_rng(case.seed)
        arrays = [array(rng, a, lengths, case.sample.low, case.sample.high) for a in drawn]
        given = regrouped(case.sample.args, iter(arrays))
        try:
            with np.errstate(all="ignore"):
                want = leaves(debug(*given))
        except RelayError:
            return False
        said = f"{case.name}({case.sample.args}, {case.sample.attrs}) with {lengths}, values {case.seed}"
        try:
            got = form.run(arrays)
        except RelayError as error:
            if error.code == "vm.size":
                return False
            raise
        if got is None:
            raise Finding(f"{case.name} refuses its own shapes", said)
        wrong = unlike("the open form", [x.numpy() for x in got], want, TOLERANCE)
        if wrong:
            raise Finding(f"{case.name} is wrong for open lengths", f"{said}\n{wrong}")
        return True


def typed(a: object) -> TensorType:
    """The type of an argument of a sample: a type, or an array of it."""
    return a if isinstance(a, TensorType) else TensorType(np.shape(a), np.asarray(a).dtype.name)


def parameter(a: object, k: int, names: dict[int, SizeVar]) -> Var:
    """A parameter for an argument, with sizes in place of extents."""
    return Var(f"x{k}", opened(a, names))


def opened(a: object, names: dict[int, SizeVar]) -> TensorType | TupleType:
    if isinstance(a, (tuple, list)):
        return TupleType([opened(part, names) for part in a])
    t = typed(a)
    return TensorType([names.get(int(n), n) for n in t.shape], t.dtype)


def array(rng: np.random.Generator, a: object, lengths: dict[int, int], low: float, high: float) -> np.ndarray:
    t = typed(a)
    shape = [lengths.get(n, n) for n in t.concrete_shape]
    if not isinstance(a, TensorType):
        given = np.asarray(a)
        if given.dtype.kind not in "iu" or given.size == 0 or given.max() > 1 << 30:
            return np.resize(given, shape) if given.size else np.zeros(shape, given.dtype)
        return rng.integers(min(int(given.min()), 0), int(given.max()) + 1, shape).astype(given.dtype)
    if t.dtype == "bool":
        return rng.integers(0, 2, shape).astype("bool")
    if t.dtype.startswith(("int", "uint")):
        return rng.integers(max(int(low), 0), max(int(high), 1) + 1, shape).astype(t.dtype)
    return rng.uniform(0.1, 2.0, shape).astype(t.dtype)


def regrouped(args: object, arrays: object) -> list:
    return [tuple(regrouped(a, arrays)) if isinstance(a, (tuple, list)) else next(arrays) for a in args]
