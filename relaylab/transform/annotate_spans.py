"""AnnotateSpans: every node gets its place in the text of the program, as if that had been read from a file."""

from __future__ import annotations

from relaylab.ir import Constructor, GlobalVar, IRModule, Op, walk
from relaylab.ir.trail import derived, unrecorded
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass, create

SOURCE = "GeneratedSource"


@pass_(level=0, idempotent=True)
class AnnotateSpans(ModulePass):
    """Prints the program and reads it again: spans are places in that text, of the source `GeneratedSource`."""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        with unrecorded():
            read = IRModule.from_text(mod.astext(True), SOURCE)
        by_name = {gv.name_hint: func for gv, func in read.functions.items()}
        pairs = [
            pair
            for gv, func in mod.functions.items()
            for pair in zip(walk((func,)), walk((by_name[gv.name_hint],)))
            if not isinstance(pair[0], (Op, GlobalVar, Constructor))
        ]
        if all(old.span == new.span for old, new in pairs):
            return mod
        for old, new in pairs:
            derived(new, old)
        read.imports |= mod.imports
        return create("InferType")(read)
