"""Targets and devices that are not here: errors in programs for relaylab, this CPU in programs that were for TVM."""

from __future__ import annotations

from relaylab.support.errors import warn


class ForeignDevices:
    """Whether targets and devices that are not here stand for this CPU; off, unless programs for TVM are run.

    `read(what)` says so, and warns once that it happens.
    """

    def __init__(self) -> None:
        self.as_cpu = self._warned = False

    def switch(self, as_cpu: bool) -> None:
        """Turn it on or off; the next use warns again."""
        self.as_cpu, self._warned = as_cpu, False

    def read(self, what: str) -> bool:
        """Whether `what` is read as this CPU."""
        if self.as_cpu and not self._warned:
            self._warned = True
            warn(f"{what} is not here: such targets and devices are read as this CPU")
        return self.as_cpu


FOREIGN = ForeignDevices()
READ_AS_CPU = "`relaylab run-tvm FILE`, or relaylab.install_as_tvm(), reads other targets and devices as this CPU"
