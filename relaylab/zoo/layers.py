"""Layers that name their parameters; parameters that are not given become untyped variables."""

from __future__ import annotations

from typing import Any

from relaylab.ir import Expr, Var, var
from relaylab.op import nn
from relaylab.support.errors import RelayTypeError, RelayValueError


def _named(kwargs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of a layer, and the attributes of its operator."""
    try:
        return kwargs.pop("name"), kwargs
    except KeyError:
        raise RelayTypeError(
            "the layer needs a name for its parameters", code="zoo.no-name", help='pass name="conv1"'
        ) from None


def _parameter(given: Expr | None, name: str) -> Expr:
    return given if given is not None else var(name)


def batch_norm_infer(
    data: Expr,
    gamma: Var | None = None,
    beta: Var | None = None,
    moving_mean: Var | None = None,
    moving_var: Var | None = None,
    **kwargs: object,
) -> Expr:
    """Batch normalization with running statistics: the normalized tensor only, of the shape of `data`.

    `gamma`, `beta`, `moving_mean` and `moving_var` that are not given are variables called `<name>_gamma` …
    """
    name, options = _named(kwargs)
    given = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
    options |= {k: _parameter(v, f"{name}_{k}") for k, v in given.items()}
    return nn.batch_norm(data, **options)[0]


def conv2d(data: Expr, weight: Expr | None = None, **kwargs: object) -> Expr:
    """2-D convolution with the weight `<name>_weight`, of inferred type; `name=` and what `nn.conv2d` takes."""
    name, options = _named(kwargs)
    return nn.conv2d(data, _parameter(weight, f"{name}_weight"), **options)


def conv3d(data: Expr, weight: Expr | None = None, **kwargs: object) -> Expr:
    """3-D convolution with the weight `<name>_weight`, of inferred type; `name=` and what `nn.conv3d` takes."""
    name, options = _named(kwargs)
    return nn.conv3d(data, _parameter(weight, f"{name}_weight"), **options)


def conv2d_transpose(data: Expr, weight: Expr | None = None, **kwargs: object) -> Expr:
    """2-D transposed convolution with the weight `<name>_weight`, of inferred type; `name=` and all of the operator."""
    name, options = _named(kwargs)
    return nn.conv2d_transpose(data, _parameter(weight, f"{name}_weight"), **options)


def dense_add_bias(
    data: Expr, weight: Expr | None = None, bias: Expr | None = None, units: int | None = None, **kwargs: object
) -> Expr:
    """Dense layer, (N, K) to (N, units), with the weight `<name>_weight` and the bias `<name>_bias`."""
    name, options = _named(kwargs)
    weight, bias = _parameter(weight, f"{name}_weight"), _parameter(bias, f"{name}_bias")
    return nn.bias_add(nn.dense(data, weight, units, **options), bias, axis=-1)


_KERNELS = {
    "NCHW": ("OIHW", "OIHW"),
    "NHWC": ("HWIO", "HWOI"),
    "NCDHW": ("OIDHW", "OIDHW"),
    "NDHWC": ("DHWIO", "DHWOI"),
}


def conv_kernel_layout(data_layout: str, is_depthwise: bool = False) -> str:
    """The layout of weights that goes with a layout of data."""
    if data_layout not in _KERNELS:
        raise RelayValueError(
            f"no kernel layout is known for {data_layout}", code="zoo.layout", help="known: " + ", ".join(_KERNELS)
        )
    return _KERNELS[data_layout][is_depthwise]
