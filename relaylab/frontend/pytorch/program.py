"""Models of PyTorch as `torch.export` programs of core ATen operators. Pickled modules are never loaded."""

# torch need not be installed; what it offers is unknown then
# pyright: reportMissingImports=false

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from relaylab.frontend.pytorch.expansion import Expansion, Fx, NotByParts
from relaylab.frontend.pytorch.guards import environment, inputs_of
from relaylab.frontend.pytorch.node import DTYPES, size_of, type_of
from relaylab.frontend.pytorch.table import name_of, spellings
from relaylab.ir import AnyDim, TensorType
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError

if TYPE_CHECKING:
    from torch import Tensor
    from torch.export import ExportedProgram
    from torch.jit import ScriptModule

T = TypeVar("T")
KEPT = (
    "linear", "upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec",
    "_upsample_nearest_exact1d.vec", "_upsample_nearest_exact2d.vec", "_upsample_nearest_exact3d.vec",
    "upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec", "upsample_bicubic2d.vec",
    "grid_sampler_2d", "col2im", "adaptive_avg_pool2d",
    *(f"{name}_pad{n}d" for name in ("reflection", "replication") for n in (1, 2, 3)),
    "linalg_inv", "inverse", "linalg_solve", "linalg_cholesky",
    "lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input", "rms_norm",
)  # fmt: skip
"""Operators that Relay says better than their parts."""
GENERATED = '"<eval_with_key>'
"""How a frame of code begins that torch has written itself."""
OPEN = 3
"""How large an open dimension is while torch looks at a model."""


def load_torch() -> ModuleType:
    """The package `torch`; RelayError if it is not installed."""
    try:
        import torch
    except ImportError:
        raise RelayError(
            "PyTorch models need the package torch", code="import.no-torch", help='pip install "relaylab[torch]"'
        ) from None
    return torch


@dataclass(frozen=True)
class Inputs:
    """What is given about a model's inputs: names, types, tensors of these shapes, and which dimensions are open."""

    names: tuple[str, ...] = ()
    types: tuple[TensorType, ...] = ()
    examples: tuple[Any, ...] | None = None
    dynamic: tuple[dict[int, Any], ...] | None = None


def exported(model: object, infos: Sequence[Any] | None, default: str) -> tuple[ExportedProgram, Inputs]:
    """The program of a model and what is given about its inputs."""
    torch = load_torch()
    if isinstance(model, (str, Path)):
        model = load_model(model)
    inputs = _examples(torch, infos, default)
    if isinstance(model, torch.export.ExportedProgram):
        return cast("ExportedProgram", model), inputs
    if not isinstance(model, torch.nn.Module):
        what = type(model).__name__
        raise RelayTypeError(
            f"from_pytorch takes an nn.Module, a program of torch.export, TorchScript or a path, not a {what}",
            code="import.model",
            help="a state_dict holds weights only: load it into its model" if isinstance(model, dict) else "",
        )
    examples, dynamic = inputs.examples, inputs.dynamic
    if examples is None:
        raise RelayValueError(
            "the shapes of the model's inputs are not given",
            code="import.input",
            help="from_pytorch(model, [(name, (shape, dtype)), …]), or tensors of example",
        )
    if isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        program = _asked(lambda: _script(model, examples), "TorchScript cannot be converted by torch")
    else:
        program = _asked(
            lambda: torch.export.export(model, examples, dynamic_shapes=dynamic), "torch.export refuses the model"
        )
    return program, inputs


def expanded(program: ExportedProgram, custom: Collection[str]) -> tuple[ExportedProgram, Expansion | None]:
    """The program, and its graph of operators that have a converter, or are `custom`: by parts, or decomposed whole."""
    torch = load_torch()
    graphs: list[Any] = [m.graph for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
    calls = (n.target for graph in graphs for n in graph.nodes if n.op == "call_function")
    if custom and not {word for target in calls for word in spellings(name_of(target))}.issuperset(custom):
        return _decomposed(torch, program), None  # others may be parts of those that are there
    parts = Expansion(torch, lambda name: any(word in custom for word in spellings(name)), _pieces)
    try:
        parts.graph.output(parts.copy(program.graph_module, {}))
    except NotByParts:
        return _decomposed(torch, program), None
    return program, parts


@cache
def _pieces() -> Mapping[Any, Any]:
    """Of what operators consist, by operators."""
    return _table(load_torch()).materialize()


def _table(torch: ModuleType) -> Fx:
    table = torch.export.default_decompositions()
    for name in KEPT:
        packet, _, overload = name.partition(".")
        table.pop(getattr(getattr(torch.ops.aten, packet), overload or "default"), None)
    return table


def _decomposed(torch: ModuleType, program: ExportedProgram) -> ExportedProgram:
    table = _table(torch)
    traces = _traces(program)
    try:
        result = program.run_decompositions(table)
    except Exception:  # parts may have other strides than the whole, which a view with open sizes does not bear
        table[torch.ops.aten.view.default] = _viewed
        result = _asked(lambda: program.run_decompositions(table), "torch cannot decompose the program")
    for node in result.graph.nodes:
        frames = str(node.meta.get("stack_trace") or "")
        if GENERATED in frames:
            made = frames.rsplit("\n", 1)[-1].strip().partition(" = ")[0]
            node.meta["stack_trace"] = traces.get(made, "")
    return result


def _viewed(x: Tensor, size: Sequence[int]) -> object:
    """A view of elements that lie in order; of others, one of a copy in which they do."""
    return NotImplemented if x.is_contiguous() else x.contiguous().view(size)


def _traces(program: ExportedProgram) -> dict[str, str]:
    """The lines of the model by the nodes of the program's parts: what stands under `torch.no_grad` or autocast is one.

    torch writes the parts into the program when it takes it apart, and names the lines of its own code for them, which
    begin with the names of the nodes.
    """
    found: dict[str, str] = {}
    for name, part in program.graph_module.named_modules():
        if name and hasattr(part, "graph"):
            nodes: Any = part.graph
            found |= {n.name: n.meta["stack_trace"] for n in nodes.nodes if n.meta.get("stack_trace")}
    return found


def _script(model: object, examples: tuple[Any, ...]) -> ExportedProgram:
    """TorchScript by torch's own converter, which leaves dimensions open."""
    from torch._export.converter import TS2EPConverter

    return TS2EPConverter(cast("ScriptModule", model), examples).convert()


def _asked(run: Callable[[], T], what: str) -> T:
    """What torch answers; its errors, of many kinds, as one of ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run()
    except RelayError:
        raise
    except Exception as error:  # torch raises what its parts raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise RelayValueError(
            f"{what}: {lines[0] if lines else type(error).__name__}",
            code="import.export",
            help="torch.export's own page tells what models it takes; ONNX is another way",
        ) from error


def load_model(what: str | Path) -> object:
    """A program of torch.export, or TorchScript, by what the file holds."""
    torch, path = load_torch(), Path(what)
    try:
        with zipfile.ZipFile(path) as file:
            names = file.namelist()
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, OSError) and not isinstance(error, zipfile.BadZipFile):
            raise RelayValueError(f"cannot read {path}: {error.strerror}", code="import.unreadable") from None
        names = []
    if path.suffix == ".pt2" and names:
        return _asked(lambda: torch.export.load(path), f"{path}: torch cannot load it")
    if any(n.split("/")[1:2] == ["code"] for n in names):
        return _asked(lambda: torch.jit.load(path, map_location="cpu"), f"{path}: torch cannot load it")
    raise RelayValueError(
        f"{path} is neither a program of torch.export nor TorchScript",
        code="import.pickle",
        help="pickled models run code when they are loaded and are not read here; where the model's code is: "
        "torch.export.save(torch.export.export(model, inputs), 'model.pt2')",
    )


def _examples(torch: ModuleType, infos: object, default: str) -> Inputs:
    """Inputs as (name, shape), (name, (shape, dtype)) or tensors."""
    if infos is None:
        return Inputs()
    if not isinstance(infos, (list, tuple)):
        raise _bad_infos(infos)
    if infos and all(isinstance(i, torch.Tensor) for i in infos):
        return Inputs((), tuple(type_of(i, "an input") for i in infos), tuple(infos))
    names: list[str] = []
    types: list[TensorType] = []
    for info in infos:
        if not (isinstance(info, (list, tuple)) and len(info) == 2 and isinstance(info[0], str)):
            raise _bad_infos(info)
        name, what = info
        typed = isinstance(what, (list, tuple)) and len(what) == 2 and isinstance(what[1], str)
        shape, dtype = what if typed else (what, default)
        dims = list(shape) if isinstance(shape, (list, tuple)) else [""]
        dtype = {"int": "int32", "float": "float32"}.get(dtype, dtype)
        if dtype not in DTYPES or not all(isinstance(d, AnyDim) or type(d) is int and d >= 0 for d in dims):
            raise _bad_infos(info)
        names.append(name)
        types.append(TensorType(dims, dtype))
    if len(set(names)) < len(names):
        raise RelayValueError(f"an input is named twice: {', '.join(names)}", code="import.input")
    open_ = [{k: torch.export.Dim.DYNAMIC for k, d in enumerate(t.shape) if isinstance(d, AnyDim)} for t in types]
    tensors = [
        torch.zeros([OPEN if isinstance(d, AnyDim) else int(d) for d in t.shape], dtype=getattr(torch, t.dtype))
        for t in types
    ]
    return Inputs(tuple(names), tuple(types), tuple(tensors), tuple(open_) if any(open_) else None)


def _bad_infos(info: object) -> RelayTypeError:
    return RelayTypeError(
        f"an input is (name, shape) or (name, (shape, dtype)), not {info!r}"[:200],
        code="import.input",
        help='from_pytorch(model, [("x", ((1, 3, 224, 224), "float32"))])',
    )


def dim_names(program: ExportedProgram) -> dict[str, str]:
    """The names of `torch.export.Dim`s by those of torch's symbols; a program that was loaded from a file has none."""
    env = environment(program)
    facts = "source_name_to_debug_name", "var_to_sources", "replacements"
    told, sources, replaced = (getattr(env, name, {}) for name in facts)
    found: dict[str, str] = {}
    for symbol, names in sources.items():
        name = next((told[s.name] for s in names if isinstance(s.name, str) and s.name in told), None)
        if isinstance(name, str) and name.isidentifier():  # derived ones are formulas
            found.setdefault(str(replaced.get(symbol, symbol)), name)
    return found


def input_types(program: object) -> dict[str, tuple[tuple[int | str, ...], str]] | None:
    """Shapes and data types of the inputs of a program of torch.export; an open dimension is its name.

    None for other models.
    """
    if not isinstance(program, load_torch().export.ExportedProgram):
        return None
    known = cast("ExportedProgram", program)
    values = inputs_of(known)
    names = [n for n in known.graph_signature.user_inputs if isinstance(n, str) and hasattr(values[n], "shape")]
    called = dim_names(known)
    dims = {
        name: tuple(d if isinstance(d, int) else called.get(str(d), str(d)) for d in map(size_of, values[name].shape))
        for name in names
    }
    return {name: (dims[name], type_of(values[name], f"the input `{name}`").dtype) for name in names}
