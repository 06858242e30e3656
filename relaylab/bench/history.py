"""A history of measurements in a file, a line of JSON each, so that a change of a few percent is seen."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from relaylab.bench.measure import Result
from relaylab.bench.peers import OURS
from relaylab.codegen.isa.target import CpuTarget
from relaylab.support.errors import RelayValueError

NOTICED = 0.03  # changes below are noise
PEER = "onnxruntime"


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
        new = [
            {"day": day, "cpu": cpu, "row": r.row, "threads": r.threads, "target": r.target, "ms": r.ms}
            for r in results
        ]
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in new)
        self.entries += new
        return [words for entry in new if (old := before.get(_key(entry))) and (words := _changed(old, entry))]


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        found = [json.loads(line) for line in lines]
        for entry in found:
            _speed(entry), _key(entry), str(entry["cpu"] + entry["day"])
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
        raise RelayValueError(f"{path} is no history of measurements", code="bench.history") from None
    return found


def _key(entry: dict[str, Any]) -> tuple[str, int, str]:
    return entry["row"], entry["threads"], entry["target"]


def _speed(entry: dict[str, Any]) -> float:
    ms = entry["ms"]
    return ms.get(PEER, 1.0) / ms[OURS]


def _changed(old: dict[str, Any], new: dict[str, Any]) -> str:
    """What a change says, if it is one."""
    if (PEER in old["ms"]) != (PEER in new["ms"]):
        return ""
    change = _speed(new) / _speed(old) - 1
    if abs(change) < NOTICED:
        return ""
    name = f"{new['row']}, {new['threads']} thread{'s' * (new['threads'] > 1)}"
    return f"{name}: {abs(change):.0%} {'faster' if change > 0 else 'slower'} than on {old['day']}"
