"""Workers seen from outside: a process for one kernel, which may die or hang at any schedule and is then replaced."""

from __future__ import annotations

from relaylab.support.line_process import Answer, LineProcess


class Worker:
    """A process for one kernel. `measure` answers in any case: with `crashed` or `slow` where the process did not."""

    def __init__(self, text: str, target: str, threads: int, limit: float = 10.0):
        first = {"text": text, "target": target, "threads": threads}
        self.process, self.limit = LineProcess("relaylab.tune.worker", first), limit

    def measure(self, schedule: str) -> Answer:
        """What a schedule gives, within the limit of seconds. Raises RelayError `process.start` if none starts."""
        return self.process.ask({"schedule": schedule}, self.limit)

    def close(self) -> None:
        """End the process."""
        self.process.close()
