"""Names of kernels as graphs show them: `tvmgen_default_fused_nn_dense_nn_bias_add`."""

from __future__ import annotations

import hashlib
from collections import Counter

from relaylab.codegen.network.digests import function_digest
from relaylab.ir import Call, Function, Op, StructuralTable, post_order

LONGEST = 80


class KernelNames:
    """Gives equal functions one name and different functions different ones (`…`, `…_1`, `…_2`)."""

    def __init__(self, prefix: str):
        self.prefix = prefix
        self._known: StructuralTable[str] = StructuralTable()
        self._exact: dict[str, str] = {}
        self._taken: Counter[str] = Counter()

    def of(self, function: Function) -> str:
        """The name of a Primitive function."""
        digest = function_digest(function)
        if digest is None:
            return self._alike(function)
        if digest not in self._exact:  # of layers that are alike one is compared with the others
            self._exact[digest] = self._alike(function)
        return self._exact[digest]

    def _alike(self, function: Function) -> str:
        return self._known.at(function, lambda _: numbered(f"{self.prefix}_{fused_name(function)}", self._taken, "_"))


def numbered(name: str, taken: Counter[str], mark: str = "") -> str:
    """The name, or where it was taken before the name and a number."""
    count = taken[name]
    taken[name] += 1
    return f"{name}{mark}{count}" if count else name


def fused_name(function: Function) -> str:
    """`fused_` and the operators of a function in the order of their evaluation; long names end in a hash."""
    nodes = post_order(function.body)
    operators = [e.op.name for e in nodes if isinstance(e, Call) and isinstance(e.op, Op)]
    name = "_".join(["fused", *operators]).replace(".", "_")
    if len(name) > LONGEST:
        name = f"{name[:LONGEST]}_{hashlib.sha256(name.encode()).hexdigest()[:16]}_"
    return name
