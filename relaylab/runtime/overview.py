"""The kernels of a compiled network as a table: what each computes, how often, how much, with which code."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from relaylab.runtime.executable import KernelCall

_OPERATOR = re.compile(r"([A-Za-z_][\w.]*)\(")
_RESULT = re.compile(r"-> (.*) \{$", re.MULTILINE)
_TENSOR = re.compile(r"Tensor\[\(([^()]*)\), (\w+)\]")
_HASH = re.compile(r"_[0-9a-f]{12}$")
WIDEST = 72


def overview(names: Sequence[str], steps: Sequence[KernelCall], relay: Callable[[str], str] | None) -> str:
    """One line per fused function, in the order of the first call; `relay` gives its text."""
    calls = {name: [step for step in steps if step.label == name] for name in names}
    rows = [_row(name, calls[name], relay(name) if relay else "") for name in names]
    lines = [("kernel", "calls", "operators", "result", "MFLOP", "MB", "items", "code"), *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    text = [
        "  ".join(
            c.rjust(w) if k in (1, 4, 5, 6) else c.ljust(w) for k, (c, w) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    ]
    total = f"{len(names)} kernels, {len(steps)} calls, {sum(s.flops for s in steps) / 1e9:.3f} GFLOP"
    return "\n".join([text[0], "-" * max(map(len, text)), *text[1:], "", total])


def _row(name: str, steps: Sequence[KernelCall], text: str) -> tuple[str, ...]:
    """A function and the work of one call of it, by all kernels that it takes."""
    kinds = list(dict.fromkeys(_HASH.sub("", step.kernel) for step in steps))
    times = len({step.node for step in steps}) or 1
    amounts = (f"{sum(s.flops for s in steps) / times / 1e6:.2f}", f"{sum(s.bytes for s in steps) / times / 1e6:.2f}")
    return (
        name,
        str(times),
        _operators(text),
        _result(text),
        *amounts,
        str(max(s.items for s in steps)),
        " ".join(kinds),
    )


def _operators(text: str) -> str:
    found = " ".join(_OPERATOR.findall(text))
    return found if len(found) <= WIDEST else found[: WIDEST - 1] + "…"


def _result(text: str) -> str:
    """The type of the result, as short as it can be said."""
    found = _RESULT.search(text)
    short = _TENSOR.sub(
        lambda m: f"{m[1].rstrip(',').replace(', ', 'x') or 'scalar'} {m[2]}", found[1] if found else ""
    )
    return short if len(short) <= WIDEST else short[: WIDEST - 1] + "…"
