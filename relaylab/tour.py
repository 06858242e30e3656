"""The tour: load a program, run the pipeline and keep every step, draw it, compile it, check it, time it.

`relaylab explore NAME`, the magics and the notebooks are thin wrappers of what is here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from relaylab import relay, viz
from relaylab.analysis import list_op_freqs
from relaylab.interp import Interpreter, random_inputs
from relaylab.ir import IRModule
from relaylab.runtime.device import cpu
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.ndarray import NDArray
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.transform import History, PassContext, Stage, bind_params, default_passes, run_pipeline
from relaylab.zoo.catalog import NETWORKS

TEXT_SUFFIXES = (".relay", ".rly", ".txt")


@dataclass(frozen=True)
class Program:
    """A named module with parameters, and, for networks of the zoo, the way to a small one of the same structure."""

    name: str
    mod: IRModule
    params: Mapping[str, NDArray] = field(default_factory=dict)
    small: Callable[[], tuple[IRModule, dict[str, NDArray]]] | None = None


def load(what: str | Path | IRModule | Program) -> Program:
    """A program from the name of a network, the path of a Relay text, or a module."""
    if isinstance(what, Program):
        return what
    if isinstance(what, IRModule):
        return Program("module", what)
    name = str(what)
    if name in NETWORKS:
        network = NETWORKS[name]
        return Program(name, *network.build(), network.small)
    path = Path(name)
    if path.suffix in TEXT_SUFFIXES or path.is_file():
        return Program(path.stem, read(path))
    help = did_you_mean(name, NETWORKS) or f"networks: {', '.join(NETWORKS)}; or a file that ends in {' '.join(TEXT_SUFFIXES)}"
    raise RelayValueError(f"`{name}` is neither a network nor a file of Relay text", code="explore.unknown", help=help)


def read(path: Path) -> IRModule:
    """The module in a file of Relay text; errors quote it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RelayValueError(f"cannot read {path}: {error}", code="explore.unreadable") from None
    return relay.parse(text, path.name)


@dataclass(frozen=True)
class Row:
    """What one pass did, in numbers: the time it took and the operators that came and went."""

    name: str
    changed: bool
    seconds: float
    delta: dict[str, int]
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return f"{self.name:<28}{self.seconds * 1e3:9.1f} ms  raised: {self.error}"
        changes = "  ".join(f"{n:+d} {name}" for name, n in self.delta.items())
        return f"{self.name:<28}{self.seconds * 1e3:9.1f} ms  {changes or ('changed' if self.changed else '·')}"


def operators(mod: IRModule) -> Counter[str]:
    """How often each operator is called, and how many kernels there are."""
    return Counter(list_op_freqs(mod))


class Exploration:
    """A program and the history of its pipeline."""

    def __init__(self, program: Program, history: History, opt_level: int):
        self.program, self.history, self.opt_level = program, history, opt_level

    @cached_property
    def rows(self) -> list[Row]:
        """One row per pass run."""
        return [self._row(stage) for stage in self.history if not stage.skipped]

    @staticmethod
    def _row(stage: Stage) -> Row:
        delta: dict[str, int] = {}
        if stage.changed:
            before, after = operators(stage.before), operators(stage.result)
            delta = {name: after[name] - before[name] for name in sorted(before | after) if after[name] != before[name]}
        return Row(stage.name, stage.changed, stage.seconds, delta, str(stage.error).split("\n")[0] if stage.error else "")

    @property
    def changes(self) -> list[Stage]:
        """The stages that changed the program."""
        return [stage for stage in self.history if stage.changed]

    @cached_property
    def pictures(self) -> list[viz.Picture]:
        """The program at the start and after each pass that changed it, each drawn to resemble the one before."""
        identities = viz.Identities()
        pictures = [viz.show(self.history.source, title=f"{self.program.name}: as built", identities=identities)]
        for stage in self.changes:
            identities = identities.after(stage)
            picture = viz.show(stage.result, title=f"after {stage.name}", identities=identities, seed=pictures[-1].scene.seed)
            pictures.append(picture)
        return pictures

    def save(self, path: str | Path) -> Path:
        """Write every stage as the pages of one PDF or one self-contained HTML page (by the suffix)."""
        return viz.save(self.pictures, path, doc_title=self.program.name)

    def build(self, **options: Any) -> Any:
        """Compile the program as it was before the pipeline, at the same level."""
        with PassContext(opt_level=self.opt_level):
            return relay.build(self.program.mod, target=options.pop("target", "llvm"), params=dict(self.program.params), **options)

    def check(self, seed: int = 0) -> Check:
        """Compare compiled code with the interpreter on seeded input, on the small form of the program if it has one."""
        mod, params = self.program.small() if self.program.small is not None else (self.program.mod, self.program.params)
        return check(mod, params, self.opt_level, seed)

    def to_dict(self) -> dict[str, Any]:
        """The rows as plain data, for `--json`."""
        rows = [{"pass": r.name, "changed": r.changed, "ms": r.seconds * 1e3, "delta": r.delta, "error": r.error} for r in self.rows]
        return {"program": self.program.name, "opt_level": self.opt_level, "passes": rows}


def explore(what: str | Path | IRModule | Program, opt_level: int = 3, passes: Iterable[Any] | None = None) -> Exploration:
    """Run the default pipeline (or `passes`) over a program with its parameters bound, keeping every step."""
    program = load(what)
    mod = bind_params(program.mod, program.params) if program.params else program.mod
    chosen = default_passes(opt_level) if passes is None else passes
    return Exploration(program, run_pipeline(mod, chosen, PassContext(opt_level=opt_level)), opt_level)


@dataclass(frozen=True)
class Check:
    """How compiled code and interpreter compare: the largest error relative to the largest value, and the first numbers."""

    error: float
    tolerance: float
    shapes: list[tuple[int, ...]]
    head: list[float]

    @property
    def agrees(self) -> bool:
        return self.error <= self.tolerance

    def __str__(self) -> str:
        verdict = "agrees with" if self.agrees else "DIFFERS FROM"
        return f"compiled code {verdict} the interpreter: largest error {self.error:.1e} of the largest value (allowed {self.tolerance:.0e})"


def check(mod: IRModule, params: Mapping[str, Any] | None = None, opt_level: int = 3, seed: int = 0, tolerance: float = 1e-4) -> Check:
    """Run a program compiled and interpreted on the same seeded inputs and compare."""
    params = {k: np.asarray(v.numpy() if hasattr(v, "numpy") else v) for k, v in (params or {}).items()}
    mod = relay.transform.InferType()(mod)
    inputs = random_inputs(mod["main"], seed)
    values = [params.get(p.name_hint, value) for p, value in zip(mod["main"].params, inputs)]
    expected = _flat(Interpreter(mod).evaluate()(*values))
    with PassContext(opt_level=opt_level):
        got = _flat(relay.create_executor("vm" if needs_vm(mod) else "graph", mod).evaluate()(*values))
    error = max((_relative(g, e) for g, e in zip(got, expected, strict=True)), default=0.0)
    return Check(error, tolerance, [e.shape for e in expected], [float(v) for v in expected[0].ravel()[:4]] if expected else [])


def needs_vm(mod: IRModule) -> bool:
    """Whether the program has control flow, recursion or data types, which the graph executor has not."""
    from relaylab.codegen.network import is_static_graph

    return not is_static_graph(mod)


def _flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, (tuple, list)):
        return [leaf for v in value for leaf in _flat(v)]
    if hasattr(value, "fields"):
        return [leaf for v in value.fields for leaf in _flat(v)]
    return [np.asarray(value.numpy() if hasattr(value, "numpy") else value)]


def _relative(got: np.ndarray, expected: np.ndarray) -> float:
    if got.shape != expected.shape:
        raise RelayError(f"shapes {got.shape} and {expected.shape}", code="explore.shapes")
    if not expected.size:
        return 0.0
    wide_got, wide = got.astype("float64"), expected.astype("float64")
    same = (wide_got == wide) | (np.isnan(wide_got) & np.isnan(wide))
    difference = np.abs(np.where(same, 0.0, wide_got - wide))
    return float(np.max(difference) / max(float(np.max(np.abs(np.where(np.isfinite(wide), wide, 0)))), 1e-30))


def runner(lib: Any, mod: IRModule, params: Mapping[str, Any], seed: int = 0) -> GraphModule:
    """A graph module with seeded inputs set."""
    module = GraphModule(lib["default"](cpu(0)))
    typed = relay.transform.InferType()(mod)["main"]
    for param, value in zip(typed.params, random_inputs(typed, seed)):
        if param.name_hint not in params:
            module.set_input(param.name_hint, value)
    return module


def timed(what: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and the seconds that it took."""
    start = time.perf_counter()
    return what(), time.perf_counter() - start
