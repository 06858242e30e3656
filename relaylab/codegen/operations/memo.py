"""What jobs have made, kept for equal jobs: those of this build, and through the cache those of later builds.

A kernel follows from the function that it computes, from how its operands lie in memory, from the target, and from the
code of the compiler itself. Where all these are as before, nothing has to be generated again. Operators from outside
this package are the exception: their code may change between two builds, so their kernels are made anew.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple, fields
from functools import lru_cache
from pathlib import Path

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, KernelSequence, Routine
from relaylab.codegen.llvm.cache import ObjectCache, digest
from relaylab.codegen.network.digests import function_digest
from relaylab.ir import Function

SOURCES = ("codegen", "loop", "op", "ir", "support")  # the code that kernels follow from
FAST = 1  # zlib's level


class KernelMemo:
    """What has been made, by what it follows from. `options` are settings of the build that decide about kernels."""

    def __init__(self, target: CpuTarget, cache: ObjectCache, options: object = None):
        self.target, self.cache, self.options = target, cache, options
        self.known: dict[tuple, KernelSequence] = {}

    def once(
        self, function: Function, key: tuple, make: Callable[[], KernelSequence], stored: bool = True
    ) -> KernelSequence:
        """What `make` gives for this function and a key of plain values, made when it has not been made before.

        A key that holds sizes of an open program is known in this build only: not `stored`.
        """
        digest_ = function_digest(function)
        # A function with foreign operators is known by itself: the network keeps it alive, so its id is not given away.
        whole = (digest_ if digest_ is not None else id(function), key)
        if whole not in self.known:
            self.known[whole] = make() if digest_ is None or not stored else self._from_cache(whole, make)
        return self.known[whole]

    def _from_cache(self, whole: tuple, make: Callable[[], KernelSequence]) -> KernelSequence:
        if not self.cache.keeps:
            return make()
        address = digest("kernels", code_version(), self.target.key, repr(self.options), repr(whole))
        stored = self.cache.get(address)
        if stored is not None:
            with suppress(zlib.error, ValueError, LookupError, TypeError):  # no entry of ours
                return _decode(stored)
        made = make()
        self.cache.put(address, _encode(made))
        return made


@lru_cache(maxsize=1)
def code_version() -> str:
    """A digest of the compiler's own code."""
    total, root = hashlib.sha256(), Path(__file__).parents[2]
    for room in SOURCES:
        for path in sorted((root / room).rglob("*.py")):
            total.update(path.read_bytes())
    return total.hexdigest()


def _encode(made: KernelSequence) -> bytes:
    kept = [f.name for f in fields(Kernel) if f.name != "program"]
    kernels = [{k: getattr(kernel, k) for k in kept} for kernel in made.kernels]
    plain = lambda x: sorted(x) if isinstance(x, frozenset) else astuple(x)
    said = json.dumps({"kernels": kernels, "workspaces": made.workspaces}, default=plain)
    return zlib.compress(said.encode(), FAST)


def _decode(data: bytes) -> KernelSequence:
    stored = json.loads(zlib.decompress(data))
    routines = lambda rows: tuple(Routine(name, text, frozenset(declares)) for name, text, declares in rows)
    restored = {"operands": tuple, "declares": frozenset, "routines": routines}  # JSON has lists only
    kernels = tuple(Kernel(**k | {name: make(k[name]) for name, make in restored.items()}) for k in stored["kernels"])
    return KernelSequence(kernels, tuple((role, size) for role, size in stored["workspaces"]))
