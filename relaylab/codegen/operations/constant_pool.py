"""The constants of a network in one piece of memory, packed where they stay.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait

import numpy as np

from relaylab.codegen.operations.jobs import PackedConstant
from relaylab.codegen.templates.pack import Packing
from relaylab.runtime.memory import aligned, give_back
from relaylab.runtime.threads import available_processors
from relaylab.support.memory import give_back_files

ALIGNMENT = 64
PREFETCHED = 16 << 10  # kernels prefetch the panel after the last one: keep it mapped
PACKERS = min(4, available_processors())
GIVEN_BACK = 16 << 20  # bytes that are packed before what is free is given back again
SOON = 0.01  # seconds until pages of files are given back while one is packed


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

    def add_all(self, wanted: Iterable[PackedConstant], let_go: Callable[[], object] = lambda: None) -> None:
        """Pack those that are not here yet, in the order given, on all processors: numpy needs no lock for it.

        `let_go` says that plain weights may go once they are packed.
        """
        missing = {packed.key: packed.make() for packed in wanted if packed.key not in self.offsets}
        for key, packing in missing.items():
            self.offsets[key], self.sizes[key] = self.size, packing.nbytes
            self.size += packing.nbytes + ALIGNMENT + -packing.nbytes % ALIGNMENT
        self._make_room()
        waiting = sorted(missing.items(), key=lambda item: item[1].nbytes)
        missing.clear()  # what is packed has no other owner then
        let_go()
        if self.size > GIVEN_BACK:  # what the passes and LLVM have freed
            give_back()
        with ThreadPoolExecutor(PACKERS, thread_name_prefix="relaylab-pack") as threads:
            started: deque[Future[int]] = deque()
            while waiting:  # the largest first, so that no thread is left alone with it
                started.append(threads.submit(self._write, *waiting.pop()))
            written, many = 0, False
            while started:
                while not wait([started[0]], SOON).done:  # large weights in a file are read all this time
                    give_back_files()
                written += started.popleft().result()
                if written > GIVEN_BACK or (many and not started):
                    written, many = 0, True
                    give_back()

    def add(self, packed: PackedConstant) -> int:
        """The offset of a constant."""
        if packed.key not in self.offsets:
            self.add_all([packed])
        return self.offsets[packed.key]

    def _write(self, key: tuple, packing: Packing) -> int:
        start = self.offsets[key]
        with np.errstate(all="ignore"):  # sums of infinite weights are what they are
            packing.write(self.memory[start : start + packing.nbytes].view(packing.dtype))
        return packing.nbytes

    def _make_room(self) -> None:
        if self.size + PREFETCHED > self.memory.nbytes:
            larger = aligned(self.size + PREFETCHED, "the constants")
            larger[: self.memory.nbytes] = self.memory
            self.memory = larger

    def blob(self) -> np.ndarray:
        """All of them as bytes."""
        return self.memory[: self.size + PREFETCHED]
