"""PyTorch models as Relay programs: `from_pytorch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaylab.frontend.graph import module_of
from relaylab.frontend.pytorch.importer import TorchImporter
from relaylab.frontend.pytorch.operators import (
    activation,
    combining,
    complexes,
    contract,
    control,
    conv,
    create,
    decomposed,
    distance,
    found,
    indexing,
    matrices,
    norm,
    ordered,
    pointwise,
    pool,
    quantized,
    recurrent,
    reduction,
    shapes,
    sizes,
    special,
    views,
)
from relaylab.frontend.pytorch.operators.functions import bessel, bits, gamma, orthogonal
from relaylab.frontend.pytorch.operators.vision import detection, resize
from relaylab.frontend.pytorch.program import expanded, exported
from relaylab.frontend.pytorch.table import Convert, operators
from relaylab.ir import IRModule
from relaylab.runtime.ndarray import NDArray
from relaylab.support.errors import RelayTypeError, RelayValueError

__all__ = ["from_pytorch", "operators"]


def from_pytorch(
    script_module: object,
    input_infos: Sequence[Any] | None = None,
    custom_convert_map: Mapping[str, Convert] | None = None,
    default_dtype: str = "float32",
    use_parser_friendly_name: bool = False,
    keep_quantized_weight: bool = False,
) -> tuple[IRModule, dict[str, NDArray]]:
    """A PyTorch model as a Relay module and its parameters by name.

    The model is a program of `torch.export` (its open dimensions have the names of their Dims), an `nn.Module` or
    TorchScript with `input_infos`, or the path of a `.pt2` or TorchScript file. `input_infos` are (name, shape) or
    (name, (shape, dtype)) for each input, or tensors of example; a dimension may be `relay.Any()` or a `relay.SizeVar`.
    Without a data type, `default_dtype` holds. For a program they say names, and sizes that it leaves open.

    `custom_convert_map` has converters by operators' names (`aten::add`, `add.Tensor`): they get the inputs and their
    data types. With `use_parser_friendly_name` parameters are called `conv1_weight`, else `conv1.weight`. Quantized
    models are not imported: `keep_quantized_weight` must be False.

    Inputs that the model writes to, as caches of a fixed size are, come behind its outputs: what they are afterwards.
    Every expression's span names the module and the line of Python that made it. Raises RelayError: unsupported
    operators (all at once), models that torch cannot export, models in training mode, pickled models.
    """
    if keep_quantized_weight:
        raise RelayValueError(
            "quantized PyTorch models are not imported: keep_quantized_weight must be False",
            code="import.option",
            help="quantized models come in through ONNX",
        )
    custom = dict(custom_convert_map or {})
    if not all(isinstance(k, str) and callable(v) for k, v in custom.items()):
        raise RelayTypeError("custom_convert_map has functions by the names of operators", code="import.option")
    program, given = exported(script_module, input_infos, default_dtype)
    program, parts = expanded(program, custom)
    importer = TorchImporter(program, use_parser_friendly_name, custom, parts)
    importer.check_operators()
    inputs = importer.inputs(given.names, given.types)
    return module_of(inputs, importer.outputs(), importer.g.params)
