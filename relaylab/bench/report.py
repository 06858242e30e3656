"""The results for people and programs: a table, and JSON."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version

from relaylab.bench.measure import Result
from relaylab.bench.peers import OURS, PEERS

LEFT = 1


def table(results: Sequence[Result]) -> str:
    """A line per row and number of threads, `<` where a ratio misses its goal; below, who could not run what."""
    peers = [name for name in PEERS if any(name in r.ms for r in results)]
    head = [
        "row",
        "threads",
        "ms",
        *(f"{n} ms" for n in peers),
        *(f"x {n}" for n in peers),
        "goal",
        "GFLOP/s",
        "peak %",
        "cold s",
        "warm s",
        "MiB",
        "ort MiB",
        "error",
    ]
    lines = [head, *(_line(r, peers) for r in results)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    rows = [
        "  ".join(c.ljust(w) if k < LEFT else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths)))
        for line in lines
    ]
    missing = [f"{r.row}, {r.threads} thread(s): not run by {why}" for r in results for why in r.missing.values()]
    return "\n".join([rows[0], "-" * len(rows[0]), *rows[1:], *missing])


def _line(r: Result, peers: Sequence[str]) -> list[str]:
    ratios = r.ratios
    marks = {n: "<" if n == "onnxruntime" and r.goal and ratios.get(n, 9) < r.goal else "" for n in peers}
    return [
        r.row,
        str(r.threads),
        _ms(r.ms.get(OURS)),
        *(_ms(r.ms.get(n)) for n in peers),
        *(f"{marks[n]}{ratios[n]:.2f}" if n in ratios else "-" for n in peers),
        f"{r.goal:.2f}" if r.goal else "-",
        f"{r.gflops:.1f}" if r.gflops else "-",
        f"{100 * r.share:.0f}" if r.gflops else "-",
        f"{r.cold:.2f}",
        f"{r.warm:.2f}",
        _mib(r, OURS),
        _mib(r, "onnxruntime"),
        f"{r.error:.0e}",
    ]


def _ms(ms: float | None) -> str:
    return "-" if ms is None else f"{ms:.4f}" if ms < 1 else f"{ms:.2f}"


def _mib(r: Result, name: str) -> str:
    return f"{r.mib[name]:.0f}" if name in r.mib else "-"


def to_json(results: Sequence[Result]) -> str:
    """Everything that was measured, the machine and the versions of the engines."""
    versions = {name: found for name in ("numpy", "llvmlite", *PEERS) if (found := _version(name))}
    machine = {"processor": platform.machine(), "system": platform.system(), "python": platform.python_version()}
    error = lambda r: r.error if math.isfinite(r.error) else str(r.error)  # JSON has no such numbers
    rows = [asdict(r) | {"ratios": r.ratios, "error": error(r)} for r in results]
    return json.dumps({"machine": machine, "versions": versions, "results": rows}, indent=1) + "\n"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
