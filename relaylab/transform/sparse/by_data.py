"""Rewriting a function by what its parameters hold: sparse weights, transposed weights."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

import numpy as np

from relaylab.analysis.checks import search_fc_transpose
from relaylab.analysis.sparse_weights import process_conv2d_params, process_dense_params
from relaylab.ir import Function, IRModule
from relaylab.support.checked import checked
from relaylab.support.memory import as_array
from relaylab.transform.bind import bind_params_by_name
from relaylab.transform.engine.infer_type import typed
from relaylab.transform.engine.manager import Pass, create

Params = MutableMapping[str, object]


def _after(func: Function, step: Pass) -> Function:
    return step(create("InferType")(IRModule.from_expr(func)))["main"]


@checked
def bsr_dense(
    func: Function, params: Params, blocksize: Sequence[int], sparsity_threshold: float
) -> tuple[Function, Params]:
    """`func` with sparse weights in its dense layers, where enough of `params` is zero; and `params`, changed."""
    found = process_dense_params(typed(func), params, blocksize, sparsity_threshold)
    return _after(func, create("DenseToSparse", *found)), params


@checked
def bsr_conv2d(
    func: Function,
    params: Params,
    blocksize: Sequence[int],
    sparsity_threshold: float,
    layout: str = "NHWC",
    kernel_size: int = 1,
) -> tuple[Function, Params]:
    """`func` with sparse weights in its convolutions, where enough of `params` is zero; and `params`, changed."""
    found = process_conv2d_params(func, params, blocksize, sparsity_threshold, layout, kernel_size)
    return _after(func, create("Conv2dToSparse", *found, layout, kernel_size)), params


@checked
def bsr_conv2d_of_constants(
    func: Function,
    params: Params,
    blocksize: Sequence[int],
    sparsity_threshold: float,
    layout: str = "NHWC",
    kernel_size: int = 1,
) -> tuple[Function, Params]:
    """`func` with sparse weights in the convolutions whose weights are constants, enough of them zero; `params` are
    bound before, and given back.
    """
    bound = bind_params_by_name(func, params)
    return _after(bound, create("Conv2dToSparse2", layout, kernel_size, blocksize, sparsity_threshold)), params


@checked
def simplify_fc_transpose(func: Function, params: Params) -> tuple[Function, Params]:
    """`func` with the weights that it transposes before dense layers transposed in `params`, under `<name>.T`."""
    names = [name for name in search_fc_transpose(func) if name in params]
    made = _after(func, create("SimplifyFCTranspose", names))
    for name in names:
        params[f"{name}.T"] = np.ascontiguousarray(as_array(params[name]).T)
        if name not in {p.name_hint for p in made.params}:
            del params[name]
    return made, params
