"""Programs by name: networks of the zoo, files of Relay text, modules of a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from relaylab import relay
from relaylab.frontend.onnx import from_onnx, input_shapes
from relaylab.frontend.pytorch import from_pytorch
from relaylab.frontend.pytorch.program import input_infos, load_model
from relaylab.ir import IRModule
from relaylab.runtime.ndarray import NDArray
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.zoo.catalog import NETWORKS

TEXT_SUFFIXES = (".relay", ".rly", ".txt")
ONNX_SUFFIX = ".onnx"
TORCH_SUFFIX = ".pt2"


@dataclass(frozen=True)
class Program:
    """A named module with parameters, and, for networks of the zoo, the way to a small one of the same structure."""

    name: str
    mod: IRModule
    params: Mapping[str, NDArray] = field(default_factory=dict)
    small: Callable[[], tuple[IRModule, dict[str, NDArray]]] | None = None


def load(what: str | Path | IRModule | Program) -> Program:
    """A program from the name of a network, the path of a Relay text, of an ONNX or `.pt2` model, or a module."""
    if isinstance(what, Program):
        return what
    if isinstance(what, IRModule):
        return Program("module", what)
    name = str(what)
    if name in NETWORKS:
        network = NETWORKS[name]
        return Program(name, *network.build(), network.small)
    path = Path(name)
    if path.suffix == ONNX_SUFFIX:
        return Program(path.stem, *imported(path))
    if path.suffix == TORCH_SUFFIX:
        program = load_model(path)
        return Program(path.stem, *from_pytorch(program, input_infos(program, unknown=1)))
    if path.suffix in TEXT_SUFFIXES or path.is_file():
        return Program(path.stem, read(path))
    help = did_you_mean(name, NETWORKS) or f"networks: {', '.join(NETWORKS)}; or a file that ends in " + " ".join(
        (*TEXT_SUFFIXES, ONNX_SUFFIX, TORCH_SUFFIX)
    )
    raise RelayValueError(f"`{name}` is neither a network nor a file of Relay text", code="explore.unknown", help=help)


def imported(path: Path) -> tuple[IRModule, dict[str, NDArray]]:
    """The program in an ONNX file; dimensions that its inputs leave open, such as the size of a batch, are 1."""
    return from_onnx(path, shape=input_shapes(path, unknown=1))


def read(path: Path) -> IRModule:
    """The module in a file of Relay text; errors quote it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        foreign = isinstance(error, UnicodeDecodeError)
        why = "it is not text (UTF-8)" if foreign else error.strerror or error
        help = (
            "programs are Relay text or ONNX models; "
            "docs/relay_programs.md tells how models of other formats become programs"
            if foreign
            else ""
        )
        raise RelayValueError(f"cannot read {path}: {why}", code="explore.unreadable", help=help) from None
    return relay.parse(text, path.name, fill=0)
