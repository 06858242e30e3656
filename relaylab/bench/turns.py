"""Engines that take turns: each in a process of its own, of which all but one are stopped.

An engine's threads keep looking for work for a while after a run (onnxruntime's for some 50 ms); beside another engine
in one process they take a core from it. A stopped process takes nothing.

Choices: docs/choices.md, Measuring.
"""

from __future__ import annotations

import contextlib
import json
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relaylab.bench.peers import ENGINES
from relaylab.support.errors import RelayError

SAMPLE = 0.01  # a sample repeats a run until it takes about so many seconds


class Player:
    """A process with one engine and one loaded program; stopped but while it answers."""

    def __init__(self, name: str, stored: Path, threads: int):
        program, feed = stored / f"net{ENGINES[name].suffix}", stored / "feed.npz"
        command = [sys.executable, "-m", "relaylab.bench.engine", name, str(program), str(feed), str(threads)]
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.mib: float = self._answer()["mib"]
        self.repeats = max(1, round(SAMPLE / max(self.seconds(1), 1e-7)))

    def seconds(self, repeats: int | None = None) -> float:
        """The seconds of one run, measured over `repeats` (enough of them to be seen where it is not given)."""
        return float(self.ask(str(repeats or self.repeats))["seconds"])

    def outputs(self, path: Path) -> list[np.ndarray]:
        """The results of the last run, sent through a file."""
        self.ask(str(path))
        with np.load(path) as found:
            return [found[name] for name in found.files]

    def ask(self, line: str) -> dict[str, Any]:
        """Go on, answer, stop. RelayError if the engine died."""
        self._signal("SIGCONT")
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):  # it has died: there is no answer
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            self.close()
            raise RelayError(
                f"{self.name} stopped with exit code {self.process.returncode}",
                code="bench.engine",
                help="its own message is above",
            )
        found = json.loads(line)
        if "error" in found:
            self.close()
            raise RelayError(f"{self.name}: {found['error']}", code="bench.engine")
        self._signal("SIGSTOP")
        return found

    def _signal(self, name: str) -> None:
        if hasattr(signal, name):
            self.process.send_signal(getattr(signal, name))

    def close(self) -> None:
        """End the process; one that is stopped is ended as well."""
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()
        self.process.wait()


@contextlib.contextmanager
def players(names: tuple[str, ...], stored: Path, threads: int) -> Iterator[tuple[dict[str, Player], dict[str, str]]]:
    """The engines of these names with the program stored in a directory, ended with the block; and why some of them
    cannot run it. The first one is ours and must.
    """
    with contextlib.ExitStack() as stack:
        found: dict[str, Player] = {}
        missing: dict[str, str] = {}
        for name in names:
            try:
                found[name] = Player(name, stored, threads)
            except RelayError as error:
                if name == names[0]:
                    raise
                missing[name] = error.message
            else:
                stack.callback(found[name].close)
        yield found, missing


def interleaved(engines: Mapping[str, Player], rounds: int) -> dict[str, float]:
    """The median seconds of a run of each engine; the engines take turns, so that a moving clock hits all."""
    samples: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, player in engines.items():
            samples[name].append(player.seconds())
    return {name: statistics.median(found) for name, found in samples.items()}
