"""TorchInductor's kernels, read from the folder of a debug trace. Reading is reading JSON: nothing of it is run.

The trace (`torch._inductor.config.trace` with `enabled = True`, `provenance_tracking_level = 1` and a `debug_dir`) has
a file that says which operations of the user's program were taken apart into which, and which of these are in which
kernel. Names are those of Python variables; operations are aligned with a program's by their operators, in order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from relaylab.study.compilers.alignment import alike, matched
from relaylab.study.compilers.compiled import Compiled, FusedKernel, SourceProgram
from relaylab.support.errors import RelayValueError

NAME = "TorchInductor"
FILE = "inductor_provenance_tracking_node_mappings.json"
PARTS = ("bias_add", "add", "expand_dims", "reshape", "transpose")
"""What Relay and ONNX write beside an operator, and PyTorch has in it: a bias."""


@dataclass(frozen=True)
class TracedOperation:
    """An operation of a trace: the common name of its operator, and what it was taken apart into."""

    word: str
    made: frozenset[str]


def read(path: Path, program: SourceProgram) -> Compiled:
    """The kernels of a trace's folder, or of its file of origins, aligned with the operations of a program."""
    file = next(iter(sorted(path.rglob(FILE))), path) if path.is_dir() else path
    kinds = {alike(o.kind) for o in program.operations}
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        kernels = {str(name): frozenset(map(str, made)) for name, made in data["cppCodeToPost"].items()}
        traced = [o for name, made in data["preToPost"].items() for o in _traced(name, made, kinds)]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RelayValueError(
            f"`{path}` is no trace of TorchInductor: {type(error).__name__}",
            code="compilers.dump",
            help=f"it is the folder of a trace with provenance, with {FILE} in it; a text of XLA begins with HloModule",
        ) from None
    places = matched([o.word for o in traced], [alike(o.kind) for o in program.operations])
    pairs = {a: program.operations[b].name for a, b in places}
    found = tuple(
        FusedKernel(
            name.partition(":")[0], _members({pairs[k] for k in pairs if traced[k].made & made}, pairs, program)
        )
        for name, made in kernels.items()
    )
    lost = len(traced) - len(pairs)
    notes = ("aligned by operators, in order", *([f"{lost} of its operations have no counterpart"] if lost else []))
    return Compiled(NAME, tuple(k for k in found if k.members), notes)


def _traced(name: str, made: Sequence[str], kinds: Collection[str]) -> list[TracedOperation]:
    """An operation that the program has too; else, one by one, what it was taken apart into."""
    if _word(name) in kinds:
        return [TracedOperation(_word(name), frozenset(made))]
    return [TracedOperation(_word(part), frozenset((part,))) for part in made]


def _word(name: str) -> str:
    return alike(re.sub(r"_\d+$", "", name))


def _members(found: set[str], pairs: Mapping[int, str], program: SourceProgram) -> tuple[str, ...]:
    """The operations of a kernel, with those that PyTorch has in them."""
    taken = set(pairs.values())
    for operation in program.operations:
        part = operation.name not in taken and alike(operation.kind) in PARTS
        if part and operation.sources and set(operation.sources) <= found:
            found.add(operation.name)
    return tuple(o.name for o in program.operations if o.name in found)
