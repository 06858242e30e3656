"""Graphs of operators in plain numpy, in the interpreter, and compiled in every way that there is.

Two sorts. *Networks* are the random tensor programs of `support.networks`, evaluated by `support.plain` once with all
floats in a wider type and once in the types that they have. How far the two are apart says how much the program
amplifies rounding; a result may be LOOSE times as far from the exact one (sums in other orders, fused multiply-adds,
Winograd's and Strassen's algorithms), measured against the largest element. Where the program's own types overflow and
the wider one does not, nothing is known. *Special values* are short programs on nan, infinities, -0, extremes and
denormals: exact operators must give equal numbers; after a rounded one, RELATIVE, or near zero TINY of the smallest
normal number at level 4, whose rational functions lose digits of denormals. Signs of zero are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from fuzz.choices import Choices
from fuzz.families._special import special_program
from fuzz.families._tests import program_test
from fuzz.search import Finding, family
from support import plain
from support.compiled import compiled, flat, interpreted
from support.network_steps import STEPS
from support.networks import Network, drawn_network

from relaylab.ir import Call, op_name, post_order
from relaylab.runtime import set_num_threads

TARGETS = ("llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64")
LOOSE = 16
RELATIVE = {"float16": 2e-3, "float32": 1e-6, "float64": 4e-15}
TINY = 1e-4


@dataclass(frozen=True)
class Case:
    """A program and one way to run it."""

    net: Network
    special: bool
    kind: str
    target: str
    level: int
    threads: int

    def __str__(self) -> str:
        return f"{self.kind}, {self.target}, level {self.level}, {self.threads} threads"


def rounding(net: Network) -> float:
    """The distance of 1 to the next number, in the coarsest float type of a program."""
    types = (getattr(n, "inferred", None) for n in post_order(net.mod["main"].body))
    floats = {t.dtype for t in types if getattr(t, "dtype", "").startswith("float")}
    return max((float(np.finfo(f).eps) for f in floats), default=0.0)


@dataclass(frozen=True)
class Truth:
    """What results should be, their types, and element by element how far off they may be."""

    want: list[np.ndarray]
    types: list[np.dtype]
    bars: list[np.ndarray]

    def unlike(self, got: list[np.ndarray]) -> str:
        """How results differ, in words."""
        if len(got) != len(self.want):
            return f"{len(got)} results instead of {len(self.want)}"
        for k, (a, c, dtype, bar) in enumerate(zip(got, self.want, self.types, self.bars)):
            if a.shape != c.shape or a.dtype != dtype:
                return f"result {k} is {a.dtype}{a.shape}, not {dtype}{c.shape}"
            same = a == c
            if c.dtype.kind == "f":
                x, y = a.astype("float64"), c.astype("float64")
                same = (
                    (x == y) | (np.isnan(x) & np.isnan(y)) | (np.isfinite(y) & (np.abs(x - y) <= bar)) | np.isinf(bar)
                )
            off = ~same
            if off.any():
                return f"result {k}, {a.dtype}{a.shape}, differs in {off.sum()} places: {a[off][:4]}, not {c[off][:4]}"
        return ""


def truth(net: Network, special: bool = False, times: float = LOOSE, level: int = 0) -> Truth:
    """What a network's results should be, compiled at a level."""
    main = net.mod["main"]
    values = {p: net.inputs[p.name_hint] for p in main.params}
    plainly = flat(plain.evaluate(main.body, values))
    types = [a.dtype for a in plainly]
    if special:
        return Truth(plainly, types, [bar_of_special(a, level) for a in plainly])
    eps = rounding(net)
    finest = min((t.itemsize for t in types if t.kind == "f"), default=8)
    wide = flat(plain.evaluate(main.body, values, wide="longdouble" if finest == 8 else "float64"))
    return Truth(wide, types, [bar_of_rounding(a, b, eps, times) for a, b in zip(wide, plainly)])


def bar_of_rounding(wide: np.ndarray, plainly: np.ndarray, eps: float, times: float) -> np.ndarray:
    """How far numbers may be off: `times` what rounding changed and a few units of the largest, since numpy adds in
    pairs; anything where only the wide ones are finite.
    """
    if wide.dtype.kind != "f":
        return np.zeros(wide.shape)
    finite = np.isfinite(wide) & np.isfinite(plainly)
    size = float(np.abs(wide[finite]).max(initial=0))
    apart = float(np.abs(wide[finite] - plainly[finite]).max(initial=0))
    return np.where(np.isfinite(wide) & ~finite, np.inf, times * (apart + 4 * eps * size))


def bar_of_special(a: np.ndarray, level: int) -> np.ndarray:
    """How far numbers may be off that an operator has rounded once: RELATIVE, or two of the smallest steps."""
    if a.dtype.kind != "f":
        return np.zeros(a.shape)
    of = np.finfo(a.dtype)
    least = max(2 * float(of.smallest_subnormal), TINY * float(of.smallest_normal) if level >= 4 else 0.0)
    with np.errstate(all="ignore"):
        return np.abs(a.astype("float64")) * RELATIVE[a.dtype.name] + least


@family("operators", "graphs of operators, also on special values: all executors, levels and targets against numpy")
class Operators:
    def case(self, draw: Choices) -> Case:
        special = draw.chance(0.4)
        kind, level = draw.choice(("graph", "graph", "graph", "vm")), draw.choice((0, 2, 3, 4))
        target, threads = draw.choice(TARGETS), draw.choice((1, 2))
        steps = STEPS if kind == "vm" else None
        net = special_program(draw) if special else drawn_network(draw.generator(), 10, steps)
        return Case(net, special, kind, target, level, threads)

    def run(self, case: Case) -> str:
        net = case.net
        with np.errstate(all="ignore"):
            right = truth(net, case.special, level=case.level)
            self.check(case, "the interpreter", right.unlike(interpreted(net.mod, net.inputs)))
            set_num_threads(case.threads)
            try:
                self.check(case, str(case), right.unlike(compiled(net, case.target, case.level, case.kind)))
            finally:
                set_num_threads(None)
        return f"{'special values' if case.special else 'network'}, {case.kind}"

    def test(self, case: Case) -> str:
        net = case.net
        return program_test(
            "operators",
            net.mod,
            net.inputs,
            [
                "from fuzz.families.operators import truth",
                "from support.compiled import compiled, interpreted",
                "from support.networks import Network",
            ],
            [
                f"net = Network(mod, INPUTS, {{n: INPUTS[n] for n in {sorted(net.params)}}}, 0.0)",
                f"right = truth(net, special={case.special}, level={case.level})",
                "assert not right.unlike(interpreted(mod, INPUTS))",
                f"assert not right.unlike(compiled(net, {case.target!r}, {case.level}, {case.kind!r}))",
            ],
        )

    def check(self, case: Case, way: str, wrong: str) -> None:
        if wrong:
            calls = [n for n in post_order(case.net.mod["main"].body) if isinstance(n, Call)]
            last = op_name(calls[-1]) if calls else "nothing"
            what = "the interpreter" if way == "the interpreter" else "compiled code"
            inputs = "\n".join(f"{n} = {v.dtype} {v.tolist()}"[:400] for n, v in case.net.inputs.items())
            raise Finding(f"{what} is wrong, {last}", f"{way}: {wrong}\n{case.net.mod.astext()}\n{inputs}")
