"""A history of measurements in a file, a line of JSON each, so that a change of a few percent is seen."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypedDict, cast

from relaylab.bench.measure import Result
from relaylab.codegen.isa.target import CpuTarget
from relaylab.support.errors import RelayValueError
from relaylab.support.schema import read, read_json
from relaylab.support.words import counted

NOTICED = 0.03  # changes below are noise


class _Duration:
    """What the time of a run is."""

    def __call__(self, value: float) -> bool:
        return 0 < value < math.inf

    def __str__(self) -> str:
        return "above 0 and finite"


Milliseconds = Annotated[float, _Duration()]


class _OurTime(TypedDict):
    relaylab: Milliseconds


class Times(_OurTime, total=False):
    """Milliseconds of a run by engine; what other engines took is not looked at."""

    onnxruntime: Milliseconds


class Measurement(TypedDict):
    """A line of the file."""

    day: str
    cpu: str
    row: str
    threads: int
    target: str
    ms: Times


class BenchHistory:
    """The measurements in a file, which is made if it is not there. RelayValueError `bench.history` if it is none."""

    def __init__(self, path: str):
        self.path = Path(path)
        self.entries = _read(self.path)

    def add(self, results: Sequence[Result]) -> list[str]:
        """Keep results; in words what changed since the last ones of this CPU.

        Compared are ratios to onnxruntime where it was measured, since they depend less on what else a machine does, or
        else times.
        """
        cpu, day = CpuTarget.host().key, datetime.date.today().isoformat()
        before = {_key(entry): entry for entry in self.entries if entry["cpu"] == cpu}
        new: list[Measurement] = [
            {"day": day, "cpu": cpu, "row": r.row, "threads": r.threads, "target": r.target, "ms": cast(Times, r.ms)}
            for r in results
        ]
        whole = not self.path.exists() or self.path.read_bytes()[-1:] in (b"", b"\n")
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(["" if whole else "\n", *(json.dumps(entry) + "\n" for entry in new)]))
        self.entries += new
        return [words for entry in new if (old := before.get(_key(entry))) and (words := _changed(old, entry))]


def _read(path: Path) -> list[Measurement]:
    found: list[Measurement] = []
    try:
        for line in path.read_text(encoding="utf-8").split("\n") if path.exists() else ():
            if line.strip():
                found.append(read(Measurement, read_json(line)))
    except (OSError, ValueError) as error:
        said = f"{path} is no history of measurements: after {counted(len(found), 'measurement')}, {error}"
        raise RelayValueError(said, code="bench.history", help="name another file") from None
    return found


def _key(entry: Measurement) -> tuple[str, int, str]:
    return entry["row"], entry["threads"], entry["target"]


def _speed(entry: Measurement) -> float:
    ms = entry["ms"]
    return ms.get("onnxruntime", 1.0) / ms["relaylab"]


def _changed(old: Measurement, new: Measurement) -> str:
    """What a change says, if it is one."""
    if ("onnxruntime" in old["ms"]) != ("onnxruntime" in new["ms"]):
        return ""
    change = _speed(new) / _speed(old) - 1
    if abs(change) < NOTICED:
        return ""
    name = f"{new['row']}, {new['threads']} thread{'s' * (new['threads'] > 1)}"
    return f"{name}: {abs(change):.0%} {'faster' if change > 0 else 'slower'} than on {old['day']}"
