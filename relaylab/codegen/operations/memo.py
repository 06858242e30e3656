"""What jobs have made, kept for equal jobs: those of this build, and through the cache those of later builds.

A kernel follows from the function that it computes, from how its operands lie in memory, from the target, and from the
code of the compiler itself. Where all these are as before, nothing has to be generated again. Operators from outside
this package are the exception: their code may change between two builds, so their kernels are made anew.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import astuple, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, KernelSequence, Routine, said
from relaylab.codegen.llvm.cache import ObjectCache, digest
from relaylab.codegen.network.digests import function_digest
from relaylab.codegen.network.open_sizes import OpenSizes
from relaylab.ir import Function
from relaylab.loop.expr import Apply, Const, ScalarExpr, Size, post_order

SOURCES = ("codegen", "loop", "op", "ir", "support")  # the code that kernels follow from
FAST = 1  # zlib's level


class KernelMemo:
    """What has been made, by what it follows from. `options` are settings of the build that decide about kernels."""

    def __init__(self, target: CpuTarget, cache: ObjectCache, options: object = None):
        self.target, self.cache, self.options = target, cache, options
        self.known: dict[tuple, KernelSequence] = {}

    def once(
        self,
        function: Function,
        key: tuple,
        make: Callable[[], KernelSequence],
        stored: bool = True,
        sizes: OpenSizes | None = None,
    ) -> KernelSequence:
        """What `make` gives for this function and a key of plain values, made when it has not been made before.

        A key of an open program holds its `sizes`. Unless it is `stored`, later builds make it anew.
        """
        digest_ = function_digest(function)
        # A function with foreign operators is known by itself: the network keeps it alive, so its id is not given away.
        whole = (digest_ if digest_ is not None else id(function), key)
        if whole not in self.known:
            self.known[whole] = make() if digest_ is None or not stored else self._from_cache(whole, make, sizes)
        return self.known[whole]

    def _from_cache(self, whole: tuple, make: Callable[[], KernelSequence], sizes: OpenSizes | None) -> KernelSequence:
        if not self.cache.keeps:
            return make()
        known_by = repr(_plain(whole) if sizes else whole)
        address = digest("kernels", code_version(), self.target.key, repr(self.options), known_by)
        stored, slots = self.cache.get(address), sizes.by_slot() if sizes else {}
        if stored is not None:
            with suppress(zlib.error, ValueError, LookupError, TypeError):  # no entry of ours
                return _decode(stored, slots)
        made = make()
        if sizes is None or len(slots) == len(sizes.slots):  # later builds would not ask for a size that it asked for
            with suppress(TypeError):  # what is no expression of sizes is made anew
                self.cache.put(address, _encode(made))
        return made


def _plain(key: object) -> object:
    """A key whose expressions of sizes are text."""
    if isinstance(key, ScalarExpr):
        return said(key)
    if isinstance(key, tuple):
        return tuple(map(_plain, key))
    return (type(key).__name__, *(_plain(getattr(key, f.name)) for f in fields(key))) if is_dataclass(key) else key


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
    text = json.dumps({"kernels": kernels, "workspaces": made.workspaces}, default=_json)
    return zlib.compress(text.encode(), FAST)


def _json(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(value)
    return astuple(value) if isinstance(value, Routine) else _rows(value)


def _rows(value: object) -> list[list[object]]:
    """An expression of sizes, a row for each node after those of its arguments. TypeError for any other."""
    places, rows = dict[ScalarExpr, int](), []
    for node in post_order(value) if isinstance(value, ScalarExpr) else (None,):
        match node:
            case Size():
                rows.append(["size", node.slot])
            case Const():
                rows.append(["const", node.value, node.dtype])
            case Apply():
                rows.append(["apply", node.op, [places[a] for a in node.args], node.dtype])
            case _:
                raise TypeError(f"no expression of sizes: {value}")
        places[node] = len(places)
    return rows


def _decode(data: bytes, sizes: Mapping[int, Size] = MappingProxyType({})) -> KernelSequence:
    stored = json.loads(zlib.decompress(data))
    routines = lambda rows: tuple(Routine(name, text, frozenset(declares)) for name, text, declares in rows)
    number = lambda value: _expression(value, sizes) if isinstance(value, list) else value
    # JSON has lists only
    works = lambda parts: tuple((f, b, tuple(number(length) for length in lengths)) for f, b, lengths in parts)
    restored = {
        "operands": tuple, "declares": frozenset, "routines": routines,
        "scratch": number, "open_items": number, "open_work": works,
    }  # fmt: skip
    kernels = tuple(Kernel(**k | {name: make(k[name]) for name, make in restored.items()}) for k in stored["kernels"])
    return KernelSequence(kernels, tuple((role, size) for role, size in stored["workspaces"]))


def _expression(rows: list, sizes: Mapping[int, Size]) -> ScalarExpr:
    """The last of rows as `_rows` writes them, of these sizes by their slots."""
    nodes: list[ScalarExpr] = []
    for kind, *parts in rows:
        if kind == "apply":
            op, places, dtype = parts
            nodes.append(Apply(op, tuple(nodes[k] for k in places), dtype))
        else:
            nodes.append(sizes[parts[0]] if kind == "size" else Const(*parts))
    return nodes[-1]
