"""ONNX models as Relay programs: `from_onnx`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from relaylab.frontend.graph import Graph, module_of
from relaylab.frontend.onnx.classical import ensembles, features, linear
from relaylab.frontend.onnx.importer import OnnxImporter
from relaylab.frontend.onnx.model import inlined, load_onnx, read_model, type_of
from relaylab.frontend.onnx.operators import (
    activation,
    arithmetic,
    attention,
    blocks,
    contract,
    control,
    conv,
    create,
    detection,
    fused,
    indexing,
    loss,
    norm,
    pool,
    quantized,
    recurrent,
    reduction,
    resize,
    sequences,
    shapes,
    signals,
    slices,
)
from relaylab.frontend.onnx.table import operators
from relaylab.ir import Expr, Function, IRModule, Tuple, free_vars
from relaylab.runtime.ndarray import array
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.transform.engine.infer_type import InferType
from relaylab.transform.simplify.dynamic_to_static import DynamicToStatic

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["from_onnx", "input_shapes", "operators"]

OPTIONS = ("use_nt_batch_matmul",)


def from_onnx(
    model: object,
    shape: Mapping[str, Any] | None = None,
    dtype: str | Mapping[str, str] | None = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Mapping[str, Any] | None = None,
    values: Mapping[str, Any] | None = None,
) -> tuple[IRModule, dict[str, Any]]:
    """An ONNX model as a Relay module and its parameters. The model is a ModelProto, its bytes, or a path.

    `shape` gives the shapes of inputs by name (dimensions that the model leaves open stay so, with the model's names:
    one name is one size), a mapping `dtype` their data types; `values` gives inputs their values: sizes, axes, pads,
    flags, which are then no inputs of the program; `opset` replaces the model's own version. With `freeze_params`
    initializers are constants of the program, else they are parameters of `main` and are returned by name.
    `convert_config` knows "use_nt_batch_matmul": products of matrices in their form with a transposed right side.

    Every expression has the name of its ONNX node as its `span`. Nothing is executed but the constant parts.
    Raises RelayError: unsupported operators (all at once), models that are broken, shapes that do not fit.
    """
    load_onnx()
    given, folder, weights = read_model(model)
    proto = inlined(given)
    versions = _versions(proto, opset)
    importer = OnnxImporter(Graph(_options(convert_config)), versions, folder, freeze_params, weights)
    importer.functions = {(f.domain, f.name): f for f in proto.functions}
    importer.check_operators(proto.graph)
    known = importer.initializers(proto.graph) | importer.given(proto.graph, values or {})
    inputs = importer.inputs(proto.graph, _shapes(shape), dtype if isinstance(dtype, Mapping) else {}, known)
    scope = {**known, **{v.name_hint: v for v in inputs}}
    outputs = importer.main(proto.graph, scope)
    return module_of(inputs, outputs, importer.g.params)


def input_shapes(model: object) -> dict[str, tuple[int | str, ...]]:
    """The shapes of a model's inputs by name, without its initializers; an open dimension is its name."""
    graph = read_model(model).proto.graph
    known = {t.name for t in graph.initializer}
    sizes = OnnxImporter(Graph({}), {})
    types = {i.name: sizes.named(i, type_of(i)) for i in graph.input if i.name not in known}
    return {name: tuple(d if isinstance(d, int) else str(d) for d in t.shape) for name, t in types.items()}


def _versions(proto: ModelProto, opset: int | None) -> dict[str, int]:
    versions = {("" if o.domain == "ai.onnx" else o.domain): int(o.version) for o in proto.opset_import}
    if opset is not None and not isinstance(opset, int):
        raise RelayTypeError(f"opset is a number, not {opset!r}", code="import.opset")
    if opset is not None:
        versions[""] = opset
    if "" not in versions and not versions:
        raise RelayValueError(
            "the model does not say which opset it is written in", code="import.opset", help="from_onnx(model, opset=…)"
        )
    return versions


def _shapes(shape: object) -> dict[str, Any]:
    if shape is not None and not (
        isinstance(shape, Mapping) and all(isinstance(d, (tuple, list)) for d in shape.values())
    ):
        raise RelayTypeError(f"shape is a mapping from names of inputs to tuples, not {shape!r}", code="import.shape")
    return {name: tuple(dims) for name, dims in (shape or {}).items()}


def _options(given: Mapping[str, Any] | None) -> dict[str, Any]:
    unknown = [k for k in given or {} if k not in OPTIONS]
    if unknown:
        raise RelayValueError(
            f"convert_config has no key {unknown[0]!r}", code="import.option", help=f"known: {', '.join(OPTIONS)}"
        )
    return {"use_nt_batch_matmul": True, **(given or {})}
