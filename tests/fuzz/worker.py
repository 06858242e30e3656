"""Cases in processes of their own: a process that ends or hangs is a finding, and the search goes on."""

from __future__ import annotations

import itertools
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from fuzz.choices import Choices
from fuzz.search import HERE, Family, Outcome, Report, examine, load, shrink, source

MOST_MEMORY = 1200
"""Megabytes after which a process is replaced."""


def serve(name: str) -> None:
    """Answers requests, one line of JSON each, until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    of = load(name)
    for line in sys.stdin:
        asked = json.loads(line)
        start = asked["choices"] if "choices" in asked else source(asked["seed"], asked["k"])
        if asked.get("make"):
            of.case(draw := Choices(start))
            outcome = Outcome("made", draw.made)
        else:
            outcome = examine(of, start)
        print(json.dumps({**outcome.__dict__, "memory": memory()}), file=answers, flush=True)


def memory() -> int:
    """The megabytes that this process holds. (Linux counts those of the process that started it as its peak.)"""
    held = Path("/proc/self/statm")
    if held.exists():
        return int(held.read_text().split()[1]) * resource.getpagesize() >> 20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


class Worker:
    """One process that runs cases of a family; it is started when it is needed."""

    def __init__(self, of: Family):
        self.of = of
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, **request: object) -> Outcome:
        """The outcome of one request, whatever becomes of the process."""
        if self.process is None:
            command = [sys.executable, "-W", "ignore", str(HERE), "--worker", self.of.name]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        process = self.process
        assert process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            return self._ended()
        line, end = b"", time.monotonic() + self.of.limit
        while not line.endswith(b"\n"):
            if not select.select([process.stdout], [], [], max(end - time.monotonic(), 0))[0]:
                self.close(kill=True)
                return Outcome("found", [], "hangs", f"no answer in {self.of.limit:g} s")
            part = os.read(process.stdout.fileno(), 1 << 16)
            if not part:
                return self._ended()
            line += part
        answer = json.loads(line)
        if answer.pop("memory") > MOST_MEMORY:
            self.close()
        return Outcome(**answer)

    def case(self, seed: int, k: int) -> Outcome:
        """The outcome of a case; if the process ended on it, with the choices that made it."""
        outcome = self.ask(seed=seed, k=k)
        if outcome.kind and not outcome.choices:
            made = self.ask(seed=seed, k=k, make=True)
            return Outcome("found", [] if made.kind else made.choices, outcome.kind, outcome.message)
        return outcome

    def again(self, choices: Sequence[int]) -> Outcome:
        """The outcome of given choices."""
        outcome = self.ask(choices=list(choices))
        kept = outcome.choices or list(choices)
        return Outcome(outcome.key, kept, outcome.kind, outcome.message)

    def _ended(self) -> Outcome:
        assert self.process
        code = self.process.wait()
        self.close()
        what = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Outcome("found", [], f"crash: {what}", f"the process ended: {what}")

    def close(self, kill: bool = False) -> None:
        if self.process is None:
            return
        assert self.process.stdin and self.process.stdout
        if kill:
            self.process.kill()
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.process = None


def search_in_processes(
    of: Family, seed: int, seconds: float, count: int | None, jobs: int = 1, small: float = 20.0
) -> Report:
    """Runs cases 0, 1 … of a seed in `jobs` processes, for a time or up to a number, and makes findings small."""
    report, numbers, lock = Report(of, seed), itertools.count(), threading.Lock()
    workers = [Worker(of) for _ in range(jobs)]
    start = time.monotonic()

    def work(worker: Worker) -> None:
        while time.monotonic() - start < seconds:
            with lock:
                k = next(numbers)
            if count is not None and k >= count:
                return
            outcome = worker.case(seed, k)
            with lock:
                report.add(k, outcome)

    threads = [threading.Thread(target=work, args=(w,)) for w in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report.seconds = time.monotonic() - start
    shrink(report, lambda choices: workers[0].again(choices), small)
    for worker in workers:
        worker.close()
    return report
