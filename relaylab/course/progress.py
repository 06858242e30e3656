"""What a learner has solved, kept in one small file.

It is `course.json` in `$XDG_DATA_HOME/relaylab` (`~/.local/share/relaylab`); `RELAYLAB_COURSE_DIR` moves it, and an
empty value keeps nothing.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Progress:
    """Solved exercises, and how many hints of each were shown; a file that cannot be written is not."""

    path: Path | None
    solved: list[str] = field(default_factory=list)
    hints: dict[str, int] = field(default_factory=dict)

    def solve(self, name: str) -> None:
        """Remember that an exercise is solved."""
        if name not in self.solved:
            self.solved.append(name)
            self._write()

    def hinted(self, name: str) -> int:
        """How many hints of it were shown before; one more is now."""
        before = self.hints.get(name, 0)
        self.hints[name] = before + 1
        self._write()
        return before

    def _write(self) -> None:
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps({"solved": self.solved, "hints": self.hints}), encoding="utf-8")
        except OSError:
            self.path = None  # a home that cannot be written to: this session remembers


_OPEN: dict[Path | None, Progress] = {}


def progress() -> Progress:
    """The learner's progress; read when it is first asked for."""
    path = _path()
    if path not in _OPEN:
        _OPEN[path] = Progress(path, **_read(path))
    return _OPEN[path]


def _path() -> Path | None:
    chosen = os.environ.get("RELAYLAB_COURSE_DIR")
    if chosen is not None:
        return Path(chosen) / "course.json" if chosen else None
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "relaylab" / "course.json"


def _read(path: Path | None) -> dict[str, Any]:
    """What the file says; one that is broken says nothing."""
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path else {}
        return {
            "solved": [str(n) for n in found["solved"]],
            "hints": {str(k): int(v) for k, v in found["hints"].items()},
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
