"""`Executable`: everything that is needed to run a compiled network, as plain data, and its file.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Annotated, TypedDict

import numpy as np

from relaylab.runtime import abi
from relaylab.runtime.archive import ArchiveReader, write
from relaylab.runtime.memory import MAX_RANK, is_addressable
from relaylab.runtime.ndarray import DTYPES
from relaylab.support.schema import AtMost, OneOf, Printable, Within, read, read_json

MAX_STAGES_BYTES = 1 << 28
MOST = (1 << 63) - 1
# What numbers and texts in a file may be; the records below are the schema of its manifest.
Count = Annotated[int, Within(0, MOST)]
Stride = Annotated[int, Within(-MOST, MOST)]
Node = Annotated[int, Within(-1, 1 << 31)]
Shares = Annotated[int, Within(1, 1 << 31)]
DType = Annotated[str, OneOf(DTYPES)]
Shape = Annotated[tuple[Count, ...], AtMost(MAX_RANK)]
Strides = Annotated[tuple[Stride, ...], AtMost(MAX_RANK)]
Symbol = Annotated[str, AtMost(1 << 12), Printable()]
Place = tuple[Count, Count]
Extent = tuple[Count, Count, Count]


@dataclass(frozen=True, slots=True)
class TargetInfo:
    """The machine that the object code is for: LLVM triple, the CPU features it uses, how the user wrote it."""

    triple: str
    features: tuple[str, ...]
    text: str = "llvm"


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input, output or parameter: name, shape, dtype. `offset` is its place in the stored parameters."""

    name: str
    shape: Shape
    dtype: DType
    offset: Count = 0

    @property
    def nbytes(self) -> int:
        """Bytes of a dense array of this shape."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One kernel call: the symbol, where its operands lie (base, byte offset, bytes), its items and most threads.

    `node` and `name` are those of the operation in the graph that it serves.
    """

    kernel: Symbol
    operands: tuple[Extent, ...]
    items: Count
    shares: Shares = abi.MAX_THREADS
    node: Node = -1
    flops: Count = 0
    bytes: Count = 0
    name: str = ""

    @property
    def label(self) -> str:
        """What people call it."""
        return self.name or self.kernel


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in memory: where it starts, how it is strided (in elements), and after which step it holds."""

    place: Place
    shape: Shape
    strides: Strides
    dtype: DType
    ready: Count = 0


@dataclass(frozen=True, slots=True)
class ArenaBlock:
    """Bytes of the arena that are taken from step `first` to step `last`, both inclusive.

    `kind`: a `tensor`, the `workspace` of one operation, or a `padded` tensor, whose zeros around it must stay zero:
    its bytes are kept for tensors with the same zeros all the time.
    """

    offset: Count
    nbytes: Count
    first: Node
    last: Node
    kind: str = "tensor"


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """The memory and the steps of a network. Bases: arena, constants, scratch, inputs, outputs (`runtime.abi`).

    The steps run once for each of `parts` of a batch, which lie one behind the other in the inputs and outputs; steps
    and stored tensors tell of the first.
    """

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    steps: tuple[KernelCall, ...]
    arena_bytes: Count = 0
    scratch_bytes: Count = 0
    copies: tuple[tuple[Count, StoredTensor], ...] = ()
    values: tuple[tuple[Count, Count, StoredTensor], ...] = ()
    held: tuple[ArenaBlock, ...] = ()
    parts: Annotated[int, Within(1, 1 << 31)] = 1

    def part_bytes(self, base: int) -> int:
        """How far the next part of a batch is from one in the memory of a base."""
        tensors = (*self.inputs, *self.outputs)
        return tensors[base - abi.FIRST_IO_BASE].nbytes // self.parts if base >= abi.FIRST_IO_BASE else 0

    def input_base(self, index: int) -> int:
        """The base number of an input."""
        return abi.FIRST_IO_BASE + index

    def output_base(self, index: int) -> int:
        """The base number of an output."""
        return abi.FIRST_IO_BASE + len(self.inputs) + index


@dataclass(frozen=True, slots=True)
class Manifest:
    """The part of an executable that is not bytes; JSON in the file."""

    name: str
    target: TargetInfo
    plan: ExecutionPlan
    params: tuple[TensorInfo, ...]
    objects: tuple[Count, ...]
    graph: str
    abi: int = abi.VERSION
    producer: str = "relaylab"


@dataclass(frozen=True, slots=True)
class Executable:
    """A compiled network: plan, object code, packed constants, original parameters, printed stages.

    `objects` are relocatable object files; `entry` is the one with `relaylab_run`. `stages` maps a stage
    (those of `module.KEPT_STAGES`) to the text of each kernel.
    """

    name: str
    target: TargetInfo
    plan: ExecutionPlan
    entry: bytes
    objects: tuple[bytes, ...]
    constants: np.ndarray
    params: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    graph_json: str = "{}"
    stages: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def save(self, path: str | os.PathLike[str], stages: dict[str, dict[str, str]] | None = None) -> None:
        """Write it to `path` (any suffix), whole or not at all; ArtifactError when that is impossible.

        `stages` are the texts to keep in the file, those of the record by default.
        """
        infos, blob = _pack_params(self.params)
        sizes = tuple(len(code) for code in self.objects)
        manifest = Manifest(self.name, self.target, self.plan, infos, sizes, self.graph_json)
        write(
            path,
            {
                "manifest": json.dumps(asdict(manifest), separators=(",", ":")).encode(),
                "entry": self.entry,
                "objects": b"".join(self.objects),
                "constants": self.constants,
                "params": blob,
                "stages": zlib.compress(json.dumps(self.stages if stages is None else stages).encode(), 6),
            },
        )

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Executable:
        """Read and verify a file that `save` wrote; ArtifactError says what is wrong with another."""
        file = ArchiveReader(path)
        manifest = _manifest(file)
        return Executable(
            manifest.name,
            manifest.target,
            manifest.plan,
            file.read("entry").tobytes(),
            _split(file.read("objects"), manifest.objects),
            file.read("constants"),
            StoredParams(file, manifest.params),
            manifest.graph,
            _stages(file),
        )


def _pack_params(params: Mapping[str, np.ndarray]) -> tuple[tuple[TensorInfo, ...], np.ndarray]:
    infos: list[TensorInfo] = []
    at = 0
    for name, value in params.items():
        infos.append(TensorInfo(name, value.shape, value.dtype.name, at))
        at += value.nbytes + -value.nbytes % 64
    blob = np.zeros(at, np.uint8)
    for info, value in zip(infos, params.values()):
        blob[info.offset : info.offset + value.nbytes] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return tuple(infos), blob


class StoredParams(Mapping[str, np.ndarray]):
    """The parameters in a file, which are read when they are needed: kernels read packed constants.

    ArtifactError at the first use if the file was cut or written over since it was loaded.
    """

    def __init__(self, file: ArchiveReader, infos: tuple[TensorInfo, ...]):
        file.check("params")
        self._file, self._infos = file, {info.name: info for info in infos}
        self._blob: np.ndarray | None = None

    def __getitem__(self, name: str) -> np.ndarray:
        info = self._infos[name]
        if self._blob is None:
            self._blob = self._file.read("params")
        return self._blob[info.offset : info.offset + info.nbytes].view(info.dtype).reshape(info.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)


def _split(blob: np.ndarray, sizes: tuple[int, ...]) -> tuple[bytes, ...]:
    ends = accumulate(sizes)
    return tuple(blob[end - size : end].tobytes() for size, end in zip(sizes, ends))


def _stages(file: ArchiveReader) -> dict[str, dict[str, str]]:
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(file.read("stages").tobytes(), MAX_STAGES_BYTES)
        return read(dict[str, dict[str, str]], read_json(text))
    except (zlib.error, ValueError) as error:
        raise file.damaged(f"the printed stages cannot be read: {error}") from None


def _manifest(file: ArchiveReader) -> Manifest:
    try:
        manifest = read(Manifest, read_json(file.read("manifest").tobytes()))
        nodes = len(read(_Graph, read_json(manifest.graph)).get("nodes", ()))
        sizes = {name: file.section(name).length for name in ("objects", "constants", "params")}
        _check(manifest, nodes, **sizes)
    except ValueError as error:
        raise file.damaged(f"its manifest cannot be understood: {error}") from None
    if manifest.abi != abi.VERSION:
        raise file.damaged(f"its entry follows convention {manifest.abi}, this relaylab {abi.VERSION}")
    return manifest


class _Node(TypedDict):
    """What is read of a node of the graph."""

    name: str


class _Graph(TypedDict, total=False):
    """What is read of the graph."""

    nodes: list[_Node]


def _check(manifest: Manifest, nodes: int, objects: int, constants: int, params: int) -> None:
    """What the parts of a manifest say of each other; the sizes are those of the sections. ValueError in words."""
    plan = manifest.plan
    named = [t.name for t in (*plan.inputs, *manifest.params)]
    stored = [v for _, v in plan.copies] + [v for _, _, v in plan.values]
    held = (*plan.inputs, *plan.outputs)
    sizes = (plan.arena_bytes, constants, plan.scratch_bytes, *(t.nbytes for t in held))
    outputs = [(t.shape, t.dtype) for t in plan.outputs]
    rules = {
        "the sizes of the object files do not add up": sum(manifest.objects) == objects,
        "a name of an input or parameter occurs twice": len(set(named)) == len(named),
        "a tensor is larger than memory": all(is_addressable(t.shape, t.dtype) for t in (*held, *manifest.params)),
        "a parameter lies outside the file": all(t.offset + t.nbytes <= params for t in manifest.params),
        "an operand lies outside the memory": all(
            base < len(sizes) and at + size <= sizes[base] // (plan.parts if base >= abi.FIRST_IO_BASE else 1)
            for step in plan.steps
            for base, at, size in step.operands
        ),
        "a batch is not made of parts": all(plan.parts == 1 or t.shape and not t.shape[0] % plan.parts for t in held),
        "a part of a batch cannot be copied": plan.parts == 1 or not plan.copies,
        "a tensor lies outside the memory": all(_lies_in(value, sizes) for value in stored),
        "a tensor is ready after the last step": all(value.ready <= len(plan.steps) for value in stored),
        "a copy is unlike its output": all(
            k < len(outputs) and outputs[k] == (value.shape, value.dtype) for k, value in plan.copies
        ),
        "a value is of no node of the graph": all(node < nodes for node, _, _ in plan.values),
    }
    for what, holds in rules.items():
        if not holds:
            raise ValueError(what)


def _lies_in(value: StoredTensor, sizes: Sequence[int]) -> bool:
    """Whether all elements of a tensor lie in the memory of its base."""
    base, at = value.place
    if base >= len(sizes) or len(value.strides) != len(value.shape) or not is_addressable(value.shape, value.dtype):
        return False
    itemsize = np.dtype(value.dtype).itemsize
    steps = [(extent - 1) * stride * itemsize for extent, stride in zip(value.shape, value.strides)]
    if 0 in value.shape:
        return at <= sizes[base] and all(abs(stride) <= sizes[base] for stride in value.strides)
    return at + sum(s for s in steps if s < 0) >= 0 and at + sum(s for s in steps if s > 0) + itemsize <= sizes[base]
