"""The constants of a network in one piece of memory, packed where they stay.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from relaylab.codegen.operations.jobs import PackedConstant
from relaylab.codegen.templates.pack import Packing
from relaylab.runtime.memory import aligned
from relaylab.runtime.threads import available_processors

ALIGNMENT = 64
PREFETCHED = 16 << 10  # kernels prefetch the panel after the last one: keep it mapped
PACKERS = min(4, available_processors())


class ConstantPool:
    """Constants one after another, equal ones once.

    How large each is is known before it is packed: they have their places first and are then written there, so that
    beside the plain and the packed weights nothing takes memory. Fresh pages are zeros, as packers expect.
    """

    def __init__(self) -> None:
        self.offsets: dict[tuple, int] = {}
        self.sizes: dict[tuple, int] = {}
        self.size = 0
        self.memory = aligned(PREFETCHED, "the constants")

    def add_all(self, wanted: Iterable[PackedConstant]) -> None:
        """Pack those that are not here yet, in the order given, on all processors: numpy needs no lock for it."""
        missing = {packed.key: packed.make() for packed in wanted if packed.key not in self.offsets}
        for key, packing in missing.items():
            self.offsets[key], self.sizes[key] = self.size, packing.nbytes
            self.size += packing.nbytes + ALIGNMENT + -packing.nbytes % ALIGNMENT
        self._make_room()
        largest_first = sorted(missing.items(), key=lambda item: -item[1].nbytes)
        with ThreadPoolExecutor(PACKERS, thread_name_prefix="relaylab-pack") as threads:
            for done in [threads.submit(self._write, key, packing) for key, packing in largest_first]:
                done.result()

    def add(self, packed: PackedConstant) -> int:
        """The offset of a constant."""
        if packed.key not in self.offsets:
            self.add_all([packed])
        return self.offsets[packed.key]

    def _write(self, key: tuple, packing: Packing) -> None:
        start = self.offsets[key]
        packing.write(self.memory[start : start + packing.nbytes].view(packing.dtype))

    def _make_room(self) -> None:
        if self.size + PREFETCHED > self.memory.nbytes:
            larger = aligned(self.size + PREFETCHED, "the constants")
            larger[: self.memory.nbytes] = self.memory
            self.memory = larger

    def blob(self) -> np.ndarray:
        """All of them as bytes."""
        return self.memory[: self.size + PREFETCHED]
