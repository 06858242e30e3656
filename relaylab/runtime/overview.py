"""The kernels of a compiled network as text: a table of what each computes, how often, with which code; their code."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from relaylab.runtime.executable import ExecutionPlan, KernelCall
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.support.words import counted

_OPERATOR = re.compile(r"([A-Za-z_][\w.]*)\(")
_RESULT = re.compile(r"-> (.*) \{$", re.MULTILINE)
_TENSOR = re.compile(r"Tensor\[\((.*?),?\), (\w+)\]")
_HASH = re.compile(r"_[0-9a-f]{12}$")
WIDEST = 72
MOST_NAMES = 12


def overview(names: Sequence[str], plan: ExecutionPlan, relay: Callable[[str], str] | None) -> str:
    """One line per fused function, in the order of the first call; `relay` gives its text."""
    steps, parts = plan.steps, plan.parts
    calls = {name: [step for step in steps if step.label == name] for name in names}
    rows = [_row(name, calls[name], parts, relay(name) if relay else "") for name in names]
    lines = [("kernel", "calls", "operators", "result", "MFLOP", "MB", "items", "code"), *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    text = [
        "  ".join(
            c.rjust(w) if k in (1, 4, 5, 6) else c.ljust(w) for k, (c, w) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    ]
    flops = sum(s.flops for s in steps)
    work = f"{flops / 1e9:.3f} GFLOP" if flops >= 1e7 else f"{_millions(flops)} MFLOP"
    times = sum(_times(of_one) for of_one in calls.values()) * parts
    total = f"{counted(len(names), 'kernel')}, {counted(times, 'call')}, {work}{of_parts(plan)}"
    return "\n".join([text[0], "-" * max(map(len, text)), *text[1:], "", total])


def of_parts(plan: ExecutionPlan) -> str:
    """What to add where a batch is run in parts."""
    return f", in {plan.parts} parts of a batch" if plan.parts > 1 else ""


def _times(steps: Sequence[KernelCall]) -> int:
    """How often a function is called; a call may take several kernels."""
    return len({step.node for step in steps}) or 1


def _row(name: str, steps: Sequence[KernelCall], parts: int, text: str) -> tuple[str, ...]:
    """A function and the work of one call of it, by all kernels that it takes."""
    kinds = list(dict.fromkeys(_HASH.sub("", step.kernel) for step in steps))
    times = _times(steps) * parts
    amounts = (_millions(sum(s.flops for s in steps) / times), _millions(sum(s.bytes for s in steps) / times))
    return (
        name,
        str(times),
        _operators(text),
        _result(text),
        *amounts,
        str(max(s.items for s in steps)),
        " ".join(kinds),
    )


def _millions(amount: float) -> str:
    """Two decimals, or as many as show two digits of what is less."""
    return f"{amount / 1e6:.{2 if amount >= 1e5 or not amount else 8 - len(f'{amount:.0f}')}f}"


def _operators(text: str) -> str:
    found = " ".join(_OPERATOR.findall(text))
    return found if len(found) <= WIDEST else found[: WIDEST - 1] + "…"


def _result(text: str) -> str:
    """The type of the result, as short as it can be said."""
    found = _RESULT.search(text)
    short = _TENSOR.sub(lambda m: f"{_extents(m[1])} {m[2]}", found[1] if found else "")
    return short if len(short) <= WIDEST else short[: WIDEST - 1] + "…"


def kernel_called(name: str, names: Sequence[str]) -> str:
    """The kernel of a name, whole or after `_fused_`, or the only one with it; RelayValueError otherwise."""
    found = [n for n in names if name in (n, n.partition("_fused_")[2])] or [n for n in names if name in n]
    if len(found) == 1:
        return found[0]
    few = ", ".join((found or names)[:MOST_NAMES]) + (" …" if len(found or names) > MOST_NAMES else "")
    which = (
        f"{len(found)} kernels have `{name}` in their names"
        if name
        else f"the module has {len(found)} kernels, name one"
    )
    what = which if found else f"there is no kernel `{name}`"
    raise RelayValueError(
        what, code="runtime.kernel", help=(not found and did_you_mean(name, names)) or f"kernels: {few}"
    )


def _extents(dims: str) -> str:
    """`2x3`; expressions of sizes are longer and stand apart."""
    apart = " " in dims.replace(", ", "")
    return (dims if apart else dims.replace(", ", "x")) or "scalar"


class StageSource(Protocol):
    """What the compiler knows of a network that it built in this process (`codegen`'s `Stages`)."""

    def function(self, name: str) -> Any:
        """The fused Relay function of one kernel."""
        ...

    def __call__(self, stage: str, name: str) -> str:
        """The text of a stage of one kernel."""
        ...

    def linked(self, name: str) -> Sequence[Any]:
        """The native functions of a kernel with the Relay nodes of their instructions."""
        ...


FORMATS = {"": "llvm", "ll": "llvm", "asm": "asm", "s": "asm"}
"""The formats of `get_source`, and the stages of a kernel that they are."""


def source(names: Sequence[str], stage_text: Callable[[str, str], str], fmt: str) -> str:
    """The code of all kernels, each below a comment with its name; RelayValueError for an unknown format."""
    if fmt not in FORMATS:
        help = did_you_mean(fmt, FORMATS) or 'formats: "ll" and "asm"'
        raise RelayValueError(f"there is no source in the format `{fmt}`", code="runtime.source", help=help)
    stage = FORMATS[fmt]
    mark = ";" if stage == "llvm" else "#"
    return "\n\n".join(f"{mark} kernel {name}\n{stage_text(stage, name)}" for name in names)


class KernelModule:
    """The kernels of a network as the module that it imports."""

    type_key = "llvm"
    imported_modules: Sequence[object] = ()

    def __init__(self, get_source: Callable[[str], str]):
        self._get_source = get_source

    def get_source(self, fmt: str = "") -> str:
        """The code of all kernels: LLVM IR ("" or "ll"), or assembly ("asm" or "s")."""
        return self._get_source(fmt)
