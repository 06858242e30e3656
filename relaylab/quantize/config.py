"""The options of automatic quantization, for the block that they are entered for."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any, cast

import numpy as np

from relaylab.ir import Call, op_name
from relaylab.op.qnn.scale import ROUNDINGS
from relaylab.support.errors import RelayValueError
from relaylab.transform.engine.options import bound, declared
from relaylab.transform.quantized.quantize_annotate import QAnnotateKind
from relaylab.transform.quantized.quantize_calibrate import WEIGHT_SCALES

_SMALL = ("int8", "int16")
CHOICES: dict[str, tuple[str, ...]] = {
    "calibrate_mode": ("global_scale", "kl_divergence", "percentile"),
    "weight_scale": WEIGHT_SCALES,
    "rounding": ROUNDINGS,
    "partition_conversions": ("disabled", "enabled", "fully_integral"),
    "dtype_input": _SMALL,
    "dtype_weight": _SMALL,
    "dtype_activation": ("int32",),
}


@dataclass(frozen=True)
class QConfig:
    """How `quantize` works; enter it with `with`. Wrong options are RelayTypeError or RelayValueError."""

    nbit_input: Annotated[int, "How many bits the inputs of products have."] = 8
    nbit_weight: Annotated[int, "How many bits weights have."] = 8
    nbit_activation: Annotated[int, "How many bits activations have."] = 32
    dtype_input: Annotated[str, "The data type of inputs of products."] = "int8"
    dtype_weight: Annotated[str, "The data type of weights."] = "int8"
    dtype_activation: Annotated[str, "The data type of activations, in which products are added up."] = "int32"
    calibrate_mode: Annotated[str, "Whence the greatest numbers: global_scale, or a data set."] = "global_scale"
    global_scale: Annotated[float, "The greatest number of every input and activation, if there is no data set."] = 8.0
    weight_scale: Annotated[str, 'The greatest number of a weight: "max", or "power2", the next power of 2.'] = "power2"
    skip_dense_layer: Annotated[bool, "Dense layers stay in floats."] = True
    skip_conv_layers: Annotated[Sequence[int] | None, "Which convolutions stay in floats, counted from 0."] = (0,)
    do_simulation: Annotated[bool, "Simulate quantization in floats, and leave it so."] = False
    round_for_shift: Annotated[bool, "Shifts to the right round to the nearest; else down."] = True
    debug_enabled_ops: Annotated[Sequence[str] | None, "Only these operators are quantized; None: all that can."] = None
    rounding: Annotated[str, 'Where halves of fixed-point products go: "UPWARD" or "TONEAREST" (away from 0).'] = (
        "UPWARD"
    )
    calibrate_chunk_by: Annotated[int, "How many values one run over the data set watches; -1: all."] = -1
    partition_conversions: Annotated[str, "Conversions of inputs and outputs become functions of their own."] = (
        "disabled"
    )

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                text = f"{name} is one of {', '.join(known)}, not {getattr(self, name)!r}"
                raise RelayValueError(text, code="quantize.option")
        for kind in ("input", "weight", "activation"):
            bits, dtype = getattr(self, f"nbit_{kind}"), getattr(self, f"dtype_{kind}")
            most = np.dtype(dtype).itemsize * 8
            if not 2 <= bits <= most:
                text = f"nbit_{kind} is between 2 and {most}, the bits of dtype_{kind} ({dtype}), not {bits}"
                raise RelayValueError(text, code="quantize.option")

    def get_nbit_by_kind(self, kind: int) -> int:
        """How many bits values of a kind have."""
        return getattr(self, f"nbit_{_word(kind)}")

    def get_dtype_by_kind(self, kind: int) -> str:
        """The data type of values of a kind."""
        return getattr(self, f"dtype_{_word(kind)}")

    def guard(self, ref_call: Call) -> bool:
        """Whether `debug_enabled_ops` lets a call be quantized."""
        return self.debug_enabled_ops is None or op_name(ref_call) in self.debug_enabled_ops

    def __enter__(self) -> QConfig:
        _ENTERED.set((*_ENTERED.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        _ENTERED.set(_ENTERED.get()[:-1])


_ENTERED: ContextVar[tuple[QConfig, ...]] = ContextVar("qconfig", default=(QConfig(),))
OPTIONS = declared(QConfig, [QConfig])


def current_qconfig() -> QConfig:
    """The options of the innermost block, or the default ones."""
    return _ENTERED.get()[-1]


def kind2str(kind: int) -> str:
    """The name of a kind of values: "identity", "input", "weight", "activation"."""
    try:
        return QAnnotateKind(kind).name.lower()
    except ValueError:
        known = ", ".join(f"{k.value} {k.name}" for k in QAnnotateKind)
        raise RelayValueError(f"there is no kind {kind}", code="quantize.kind", help=known) from None


def _word(kind: int) -> str:
    name = kind2str(kind)
    if name == "identity":
        raise RelayValueError(f"values of kind {name} have no type of their own", code="quantize.kind")
    return name


def qconfig(**kwargs: object) -> QConfig:
    """Options of `quantize`, for `with`; what is not given has its default: see `QConfig`.

    Raises RelayTypeError for an option that there is not or of another type, RelayValueError for what it cannot be.
    """
    return QConfig(**cast("dict[str, Any]", bound("qconfig", OPTIONS, (), kwargs)))
