"""The kernels that a module becomes: its functions after fusion."""

from __future__ import annotations

from relaylab.ir import Function, IRModule, walk
from relaylab.ir.equal import StructuralTable
from relaylab.ir.names import NameSupply
from relaylab.support.checked import checked
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.manager import create


@checked
def extract_fused_functions(mod: IRModule) -> dict[str, Function]:
    """The kernels of a module by their structural hashes: equal kernels are there once.

    A module that has none yet is simplified for inference and fused first, at optimization level 3. Different kernels
    may have one hash, as numbers that nearly agree count as equal; later ones get `_1`, `_2` ...
    """
    if not _kernels(mod):
        with PassContext(opt_level=3):
            mod = create("FuseOps")(create("SimplifyInference")(create("InferType")(mod)))
    names, known = NameSupply(), StructuralTable[str]()
    found: dict[str, Function] = {}
    for f in _kernels(mod):
        found.setdefault(known.at(f, lambda code: names.fresh_name(str(code))), f)
    return found


def _kernels(mod: IRModule) -> list[Function]:
    return [n for n in walk(mod.functions.values()) if isinstance(n, Function) and n.is_primitive]
