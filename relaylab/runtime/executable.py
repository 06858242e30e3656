"""`Executable`: everything that is needed to run a compiled network, as plain data, and its file."""

from __future__ import annotations

import json
import os
import types
import typing
import zlib
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from relaylab.runtime import abi
from relaylab.runtime.archive import Reader, write

MAX_STAGES_BYTES = 1 << 28
Place = tuple[int, int]


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
    shape: tuple[int, ...]
    dtype: str
    offset: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of a dense array of this shape."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel call: the symbol, where its operands lie (base, byte offset), its items and most threads.

    `node` and `name` are those of the operation in the graph that it serves.
    """

    kernel: str
    operands: tuple[Place, ...]
    items: int
    shares: int = abi.MAX_THREADS
    node: int = -1
    flops: int = 0
    bytes: int = 0
    name: str = ""

    @property
    def label(self) -> str:
        """What people call it."""
        return self.name or self.kernel


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor in memory: where it starts, how it is strided (in elements), and after which step it holds."""

    place: Place
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    ready: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes of the arena that are taken from step `first` to step `last`, both inclusive.

    `kind`: a `tensor`, the `workspace` of one operation, or a `padded` tensor, whose zeros around it must stay zero: its
    bytes are kept for tensors with the same zeros all the time.
    """

    offset: int
    nbytes: int
    first: int
    last: int
    kind: str = "tensor"


@dataclass(frozen=True, slots=True)
class Plan:
    """The memory and the steps of a network. Bases: arena, constants, scratch, inputs, outputs (`runtime.abi`)."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    steps: tuple[Step, ...]
    arena_bytes: int = 0
    scratch_bytes: int = 0
    copies: tuple[tuple[int, Value], ...] = ()
    values: tuple[tuple[int, int, Value], ...] = ()
    held: tuple[Held, ...] = ()

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
    plan: Plan
    params: tuple[TensorInfo, ...]
    objects: tuple[int, ...]
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
    plan: Plan
    entry: bytes
    objects: tuple[bytes, ...]
    constants: np.ndarray
    params: dict[str, np.ndarray] = field(default_factory=dict)
    graph_json: str = "{}"
    stages: dict[str, dict[str, str]] = field(default_factory=dict)

    def save(self, path: str | os.PathLike[str], stages: dict[str, dict[str, str]] | None = None) -> None:
        """Write it to `path` (any suffix), whole or not at all; ArtifactError when that is impossible.

        `stages` are the texts to keep in the file, those of the record by default.
        """
        infos, blob = _pack_params(self.params)
        sizes = tuple(len(code) for code in self.objects)
        manifest = Manifest(self.name, self.target, self.plan, infos, sizes, self.graph_json)
        write(path, {
            "manifest": json.dumps(asdict(manifest), separators=(",", ":")).encode(),
            "entry": self.entry,
            "objects": b"".join(self.objects),
            "constants": self.constants,
            "params": blob,
            "stages": zlib.compress(json.dumps(self.stages if stages is None else stages).encode(), 6),
        })

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Executable:
        """Read and verify a file that `save` wrote; ArtifactError says what is wrong with another."""
        file = Reader(path)
        manifest = _manifest(file)
        return Executable(
            manifest.name, manifest.target, manifest.plan, file.read("entry").tobytes(),
            _split(file.read("objects"), manifest.objects, file), file.read("constants"),
            _unpack_params(file, manifest.params), manifest.graph, _stages(file),
        )


def _pack_params(params: dict[str, np.ndarray]) -> tuple[tuple[TensorInfo, ...], np.ndarray]:
    infos, at = [], 0
    for name, value in params.items():
        infos.append(TensorInfo(name, value.shape, value.dtype.name, at))
        at += value.nbytes + -value.nbytes % 64
    blob = np.zeros(at, np.uint8)
    for info, value in zip(infos, params.values()):
        blob[info.offset : info.offset + value.nbytes] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return tuple(infos), blob


def _unpack_params(file: Reader, infos: tuple[TensorInfo, ...]) -> dict[str, np.ndarray]:
    blob = file.mapped("params")  # the kernels read packed constants, so that these are seldom needed
    params = {}
    for info in infos:
        raw = blob[info.offset : info.offset + info.nbytes]
        if len(raw) != info.nbytes:
            raise file.damaged(f"the parameter `{info.name}` lies outside the file")
        params[info.name] = raw.view(info.dtype).reshape(info.shape)
    return params


def _split(blob: np.ndarray, sizes: tuple[int, ...], file: Reader) -> tuple[bytes, ...]:
    if sum(sizes) != len(blob) or any(size < 0 for size in sizes):
        raise file.damaged("the sizes of the object files do not add up")
    ends = np.cumsum(sizes, dtype=np.int64) if sizes else []
    return tuple(blob[end - size : end].tobytes() for size, end in zip(sizes, ends))


def _stages(file: Reader) -> dict[str, dict[str, str]]:
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(file.read("stages").tobytes(), MAX_STAGES_BYTES)
        return json.loads(text)
    except (zlib.error, ValueError) as error:
        raise file.damaged(f"the printed stages cannot be read ({error})") from None


def _manifest(file: Reader) -> Manifest:
    try:
        manifest = _restore(Manifest, json.loads(file.read("manifest").tobytes()))
        _check_places(manifest)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise file.damaged(f"its manifest cannot be understood ({error})") from None
    if manifest.abi != abi.VERSION:
        raise file.damaged(f"its entry follows convention {manifest.abi}, this relaylab {abi.VERSION}")
    return manifest


def _check_places(manifest: Manifest) -> None:
    """Every operand must name a base that exists and lie within the arena if it is there."""
    plan = manifest.plan
    bases = abi.FIRST_IO_BASE + len(plan.inputs) + len(plan.outputs)
    for step in plan.steps:
        for base, offset in step.operands:
            if not 0 <= base < bases or offset < 0 or (base == abi.BASE_ARENA and offset > plan.arena_bytes):
                raise ValueError(f"an operand of {step.kernel} lies outside the memory")


def _restore(kind: Any, data: Any) -> Any:
    """A dataclass, tuple or plain value of the annotated type `kind` from JSON data."""
    if is_dataclass(kind):
        hints = _hints(kind)
        if not isinstance(data, dict) or not data.keys() <= hints.keys():
            raise ValueError(f"not the fields of {kind.__name__}")
        return kind(**{name: _restore(hints[name], value) for name, value in data.items()})
    if typing.get_origin(kind) is tuple:
        return _restore_tuple(typing.get_args(kind), data)
    if isinstance(kind, types.UnionType) or not isinstance(data, kind) or isinstance(data, bool):
        raise ValueError(f"{data!r} is not {kind}")
    return data


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _restore_tuple(args: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise ValueError(f"{data!r} is not a list")
    if args[-1] is Ellipsis:
        return tuple(_restore(args[0], item) for item in data)
    if len(args) != len(data):
        raise ValueError(f"{len(data)} entries instead of {len(args)}")
    return tuple(_restore(kind, item) for kind, item in zip(args, data))
