"""How times grow with the size of a program: `python tests/bench/growth.py [--count N] [--only WORDS] [--limit S]`.

Three programs (a chain of operators, as many lets, as many additions of constants) of N, 2N and 4N operators are
parsed, typed, run through each pass, printed, interpreted, compiled, drawn and explored. A row is a step: its seconds
of processor time, and the exponent of the last doubling (1: linear, 2: quadratic). A step that takes longer than the
limit is not tried on the next size.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from relaylab import relay, study, viz
from relaylab.ir.expr import Call, Constant, Function, Let, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.types import TensorType
from relaylab.transform import PASSES, PassContext

T = TensorType((4,), "float32")
TURNS = "tanh", "nn.relu"


def chain(count: int) -> IRModule:
    """tanh and relu in turn."""
    x = body = Var("x", T)
    for i in range(count):
        body = Call(Op.get(TURNS[i % 2]), [body])
    return IRModule.from_expr(Function([x], body, T))


def lets(count: int) -> IRModule:
    """Lets, each used by the next."""
    names = [Var("x", T), *(Var("y", T) for _ in range(count))]
    body = names[-1]
    for before, after in zip(reversed(names[:-1]), reversed(names[1:])):
        body = Let(after, Call(Op.get("tanh"), [before]), body)
    return IRModule.from_expr(Function(names[:1], body, T))


def adds(count: int) -> IRModule:
    """Additions of constants."""
    x = body = Var("x", T)
    for i in range(count):
        body = Call(Op.get("add"), [body, Constant(np.float32(i % 7 + 1))])
    return IRModule.from_expr(Function([x], body, T))


Step = Callable[[IRModule], object]


def run_pass(name: str) -> Step:
    """The step that runs one pass."""

    def step(mod: IRModule) -> object:
        with PassContext(opt_level=4):
            return PASSES[name].make()(mod)

    return step


def drawn(mod: IRModule) -> None:
    """Write the picture of a program."""
    with tempfile.TemporaryDirectory() as folder:
        viz.save(viz.view(mod), Path(folder) / "program.svg")


def steps() -> Iterator[tuple[str, Step, bool]]:
    """Every step: its name, what it does with a module, and whether that is typed before."""
    texts: dict[IRModule, str] = {}

    def printed(mod: IRModule) -> None:
        texts[mod] = mod.astext(show_meta_data=True)

    yield "type", relay.transform.InferType(), False
    yield "print", printed, True
    yield "parse", lambda mod: relay.fromtext(texts[mod]), True
    for name in sorted(n for n in PASSES if n not in ("PrintIR", "InferType")):
        yield name, run_pass(name), True
    yield "interpret", lambda mod: relay.create_executor("debug", mod).evaluate()(np.ones(4, "float32")), True
    yield "build", lambda mod: relay.build(mod, target="llvm"), True
    yield "draw", drawn, True
    yield "explore", study.explore, True


def measured(step: Step, mods: list[IRModule], limit: float) -> list[float]:
    """The seconds of processor time of a step on each module, up to the first beyond the limit."""
    found: list[float] = []
    for mod in mods:
        start = time.process_time()
        step(mod)
        found.append(time.process_time() - start)
        if found[-1] > limit:
            break
    return found


def line(shape: str, name: str, found: list[float]) -> str:
    """A row of the table; an exponent of what takes less than 20 ms would be noise."""
    exponent = math.log2(found[-1] / found[-2]) if len(found) > 1 and found[-2] > 0.02 else math.nan
    times = "".join(f"{t:10.3f}" for t in found)
    return f"{shape:6} {name:52}{times:30}  {'' if math.isnan(exponent) else f'{exponent:.2f}'}"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=500, help="the number of operators of the smallest program")
    p.add_argument("--only", default="", help="the steps to measure, with commas between (default: all)")
    p.add_argument("--limit", type=float, default=20.0, help="seconds after which no larger program is tried")
    args = p.parse_args()
    wanted = set(filter(None, args.only.split(",")))
    print(
        f"{'':6} {'seconds, and the exponent of the last doubling':52}"
        + "".join(f"{args.count * k:10}" for k in (1, 2, 4))
    )
    for shape in (chain, lets, adds):
        plain = [shape(args.count * k) for k in (1, 2, 4)]
        typed = [relay.transform.InferType()(mod) for mod in plain]
        for name, step, after in steps():
            needed = name == "print" and "parse" in wanted
            if not wanted or name in wanted or needed:
                print(line(shape.__name__, name, measured(step, typed if after else plain, args.limit)), flush=True)


if __name__ == "__main__":
    main()
