"""A cluster of simulated machines: calls take drawn seconds of a clock that is not the wall's, workers die and come
back. Each look of the client at what is done takes it `CLIENT` seconds of that clock, so that too little of it shows.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from relaylab.support.cluster import AHEAD

CLIENT = 0.025  # a write to a busy disk takes as long
DETECTION, RESTART = 5.0, 20.0  # seconds until a lost worker is noticed, and until it is there again


class SimulatedCluster:
    """What `relaylab.support.cluster.WorkCluster` is for Dask. `share` of the calls end their worker; the call is run
    again on another one, as Dask does it."""

    def __init__(self, workers: int, seconds: Callable[[random.Random], float], share: float = 0.0, seed: int = 0):
        self.random, self.seconds, self.share = random.Random(seed), seconds, share
        self.workers = workers
        self.idle = workers
        self.open: dict[str, tuple[Callable[..., Any], tuple[object, ...]]] = {}
        self.queue = deque[str]()
        self.events: list[tuple[float, str, str]] = []
        self.now = self.used = 0.0
        self.lost = self.calls = 0

    @property
    def room(self) -> bool:
        return len(self.open) < AHEAD * self.workers

    def submit(self, name: str, call: Callable[..., Any], *arguments: object) -> None:
        assert name not in self.open, "one call is one call"
        self.open[name] = (call, arguments)
        self.queue.append(name)
        self._start()

    def _start(self) -> None:
        while self.idle and self.queue:
            name, took = self.queue.popleft(), self.seconds(self.random)
            self.idle -= 1
            self.calls += 1
            dies = self.random.random() < self.share
            kind = "lost" if dies else "done"
            took = took * self.random.random() if dies else took
            self.used += 0.0 if dies else took
            heapq.heappush(self.events, (self.now + took + (DETECTION if dies else 0.0), kind, name))

    def finished(self) -> list[tuple[str, Any]]:
        self.now += CLIENT
        found: list[tuple[str, Any]] = []
        while self.events and (not found or self.events[0][0] <= self.now):
            when, kind, name = heapq.heappop(self.events)
            self.now = max(self.now, when)
            if kind == "back":
                self.idle += 1
            elif kind == "lost":
                self.lost += 1
                self.queue.appendleft(name)
                heapq.heappush(self.events, (self.now + RESTART, "back", ""))
            else:
                self.idle += 1
                call, arguments = self.open.pop(name)
                found.append((name, call(*arguments)))
            self._start()
        return found

    def cancel(self) -> None:
        self.open.clear()

    @property
    def use(self) -> float:
        """The part of all workers' time in which they did what counted."""
        return self.used / (self.workers * self.now)
