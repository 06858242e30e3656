"""Two compilers over one program: what did they fuse that we did not, and the other way round.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from relaylab import viz
from relaylab.frontend import to_onnx
from relaylab.frontend.onnx import from_onnx, input_shapes
from relaylab.frontend.onnx.model import read_model
from relaylab.frontend.told_sizes import Told, filled, split_sizes
from relaylab.study.compilers import inductor, onnxruntime, xla
from relaylab.study.compilers.compiled import Compiled, FusedKernel, SourceProgram
from relaylab.study.compilers.sources import families, of_onnx, of_relay, ours, spanned
from relaylab.study.exploration import explore
from relaylab.study.program import ONNX_SUFFIX, Program, load, with_known_sizes
from relaylab.support.errors import RelayValueError
from relaylab.support.words import counted
from relaylab.viz.graph.view import Edge, Group, Node, View

LONG = 4
"""Operators that the title of a kernel names."""
ROWS = (
    "fused by both",
    "fused by {a} only",
    "fused by {b} only",
    "gone in both",
    "gone in {a} only",
    "gone in {b} only",
)


@dataclass(frozen=True)
class CompilerComparison:
    """What two compilers made of one program: `a` is relaylab, `b` the other."""

    program: SourceProgram
    a: Compiled
    b: Compiled

    @cached_property
    def found(self) -> dict[str, Counter[str]]:
        """How often, by the `ROWS`: an operation and its reader in one kernel, or an operation in no kernel at all."""
        rows: dict[str, Counter[str]] = {row: Counter() for row in ROWS}
        for maker, reader in self.program.links:
            both = [side.together(maker.name, reader.name) for side in (self.a, self.b)]
            if any(both):
                rows[_row(both, ROWS[:3])][f"{maker.kind} → {reader.kind}"] += 1
        for operation in self.program.operations:
            gone = [operation.name not in side.homes for side in (self.a, self.b)]
            if any(gone):
                rows[_row(gone, ROWS[3:])][operation.kind] += 1
        return rows

    def kernels(self, side: Compiled) -> Counter[str]:
        """The kernels of several operations by what is in them, the most frequent first."""
        made = [" + ".join(self._kinds(m)) for m in dict.fromkeys(k.members for k in side.kernels) if len(m) > 1]
        return Counter(dict(Counter(made).most_common()))

    def _kinds(self, names: Iterable[str]) -> list[str]:
        return [self.program.by_name[n].kind for n in names]

    def __str__(self) -> str:
        names = {"a": self.a.compiler, "b": self.b.compiler}
        lines = [f"{self.program.title}: {counted(len(self.program.operations), 'operation')}"]
        for side in (self.a, self.b):
            lines += [
                f"\n{side.compiler}: {counted(len(side.kernels), 'kernel')}{''.join(f'; {n}' for n in side.notes)}"
            ]
            lines += [f"  {count:>4} × {words}" for words, count in self.kernels(side).items()]
        for row, counts in self.found.items():
            if counts:
                lines += [f"\n{row.format(**names)}: {sum(counts.values())}"]
                lines += [f"  {count:>4} × {words}" for words, count in counts.most_common()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """The same as plain data, for `--json`."""
        names = {"a": self.a.compiler, "b": self.b.compiler}
        kernels = {side.compiler: [list(k.members) for k in side.kernels] for side in (self.a, self.b)}
        found = {row.format(**names): dict(counts) for row, counts in self.found.items()}
        return {"program": self.program.title, "kernels": kernels, **found}

    def difference(self, style: str = "merged") -> viz.Difference:
        """From our kernels to theirs in the roles of all differences: merged, moved out, added, removed."""
        how = f"from the kernels of {self.a.compiler} to those of {self.b.compiler}"
        return viz.Difference(self.view(self.a), self.view(self.b), how, style=style)

    def view(self, side: Compiled) -> View:
        """The operations that a compiler kept, in boxes of its kernels."""
        at = {name: side.kernels[max(numbers)] for name, numbers in side.homes.items()}
        kept = [o for o in self.program.operations if o.name in at]
        groups: dict[str, Group] = {}
        homes: dict[str, str] = {}
        for kernel in side.kernels:
            inside = [o.name for o in kept if at[o.name] is kernel]
            if len(inside) > 1:
                group = self._group(kernel, inside)
                groups[group.id] = group
                homes.update(dict.fromkeys(inside, group.id))
        nodes = tuple(Node(o.name, "call", o.kind, family=o.family, group=homes.get(o.name, "")) for o in kept)
        title = f"{self.program.title}: {side.compiler}"
        return View(title, nodes, tuple(self._edges(at)), tuple(groups.values())).check()

    def _group(self, kernel: FusedKernel, inside: list[str]) -> Group:
        kinds = self._kinds(inside)
        title = " + ".join(kinds[:LONG]) + (f" + {len(kinds) - LONG} more" if len(kinds) > LONG else "")
        return Group("kernel " + " ".join(inside), "primitive", title, detail=kernel.name)

    def _edges(self, kept: Iterable[str]) -> Iterable[Edge]:
        """What is read from what, through the operations that are gone."""
        present, through = set(kept), dict[str, tuple[str, ...]]()
        for operation in self.program.operations:
            sources = tuple(dict.fromkeys(s for name in operation.sources for s in through[name]))
            there = operation.name in present
            through[operation.name] = (operation.name,) if there else sources
            if there:
                yield from (Edge(s, operation.name, k) for k, s in enumerate(sources))

    def save(self, path: str | Path, **options: object) -> Path:
        """Write the picture in the format of the suffix."""
        return self.difference().save(path, **options)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {**self.difference()._repr_mimebundle_(), "text/plain": str(self)}


def _row(which: list[bool], rows: tuple[str, ...]) -> str:
    return rows[0] if all(which) else rows[1] if which[0] else rows[2]


def compare_compilers(
    what: str | Path | Program, other: str | Path = onnxruntime.NAME, opt_level: int = 3
) -> CompilerComparison:
    """What another compiler fuses in a program that relaylab does not, and the other way round.

    `other` is `onnxruntime`, if it is installed; the file that it wrote of this model (`optimized_model_filepath`, up
    to the level ORT_ENABLE_EXTENDED); the folder of a debug trace of TorchInductor with its provenance; or the text of
    a module that XLA compiled (`jax.jit(f).lower(...).compile().as_text()`), or the folder of its dump. A dump is read,
    and nothing in it is run. A network or a Relay program becomes an ONNX model for ONNX Runtime. RelayError for
    what is no such dump, or one of another program.
    """
    path = Path(other)
    if str(other) != onnxruntime.NAME and path.suffix != ONNX_SUFFIX:
        if not path.exists():
            help = (
                f"give {onnxruntime.NAME}, an optimized {ONNX_SUFFIX} file, a trace of TorchInductor or a text of XLA"
            )
            raise RelayValueError(f"`{other}` is no compiler and no dump", code="compilers.other", help=help)
        found = explore(what, opt_level)
        program, named = of_relay(found.pipeline, found.program.name)
        text = xla.text_of(path)
        theirs = inductor.read(path, program) if text is None else xla.read(text, program)
        return CompilerComparison(program, ours(found.pipeline, program, named), theirs)
    title, model, shape = _model(what)
    graph = read_model(model).proto.graph
    pipeline = explore(Program(title, *from_onnx(model, shape=shape)), opt_level).pipeline
    program = of_onnx(graph, title, families(pipeline))
    dump = onnxruntime.optimized(model) if str(other) == onnxruntime.NAME else path
    theirs = onnxruntime.read(dump, graph, program)
    return CompilerComparison(program, ours(pipeline, program, spanned), theirs)


def _model(what: str | Path | Program) -> tuple[str, bytes, Told]:
    """A program as the bytes of an ONNX model, its name, and the shapes of its inputs."""
    file, told = split_sizes(str(what))
    path = Path(file)
    if path.suffix == ONNX_SUFFIX and path.is_file():
        model = path.read_bytes()
        return path.stem, model, filled(input_shapes(model), told, file)
    program = with_known_sizes(load(what))
    return program.name, to_onnx(program.mod, program.params).SerializeToString(), {}
