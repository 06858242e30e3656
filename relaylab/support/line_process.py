"""A Python process that answers lines of JSON with lines of JSON: seen from outside, where it may die or hang at any
line, and from inside."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from relaylab.support.errors import RelayError

Answer = dict[str, Any]


class LineProcess:
    """A module run as a process of its own, started when it is first asked and again after it died or hung.

    `first` is what it is told when it starts; it answers that with the status `ready`, within `start` seconds.
    """

    def __init__(self, module: str, first: Answer, start: float = 60.0):
        self.module, self.first, self.start = module, first, start
        self.process: subprocess.Popen[str] | None = None
        self.lines: queue.Queue[str] = queue.Queue()

    def ask(self, question: Answer, limit: float) -> Answer:
        """The answer, or one with the status `crashed` or `slow` after `limit` seconds; the process is ended then.

        Raises RelayError `process.start` if none can be started.
        """
        if self.process is None:
            self._start()
        answer = self._answer(question, limit)
        if answer["status"] in ("crashed", "slow"):
            self.close()
        return answer

    def close(self) -> None:
        """End the process."""
        if self.process is not None and self.process.stdin is not None:
            self.process.kill()
            with suppress(OSError):  # of what it did not read
                self.process.stdin.close()
            self.process.wait()
            self.process = None

    def _start(self) -> None:
        command = [sys.executable, "-m", self.module]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.lines = queue.Queue()
        threading.Thread(target=_forward, args=(self.process, self.lines), daemon=True).start()
        if (answer := self._answer(self.first, self.start))["status"] != "ready":
            self.close()
            said = f"a process for {self.module} cannot be started: {answer.get('why', answer['status'])}"
            raise RelayError(said, code="process.start")

    def _answer(self, question: Answer, limit: float) -> Answer:
        assert self.process is not None and self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.lines.get(timeout=limit)
        except queue.Empty:
            return {"status": "slow", "why": f"no answer within {limit:g} s"}
        except OSError:
            line = ""
        return json.loads(line) if line else {"status": "crashed", "why": "the process ended"}


def _forward(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    """Lines as they come; an empty one at the end. Nobody else reads, or closes what is read."""
    assert process.stdout is not None
    with process.stdout as answers:
        for line in answers:
            lines.put(line)
    lines.put("")


def serve(answer: Callable[[Answer], Answer]) -> None:
    """Inside of such a process: answer line by line until the input ends. What others print is no answer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
