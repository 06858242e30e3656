"""Programs that people run beside float32 of batch 1: larger batches, 16 bits, bytes, products of two inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from relaylab import relay
from relaylab.interp.values import Value
from relaylab.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    fold,
    is_call_to,
    rewrite,
    walk,
)
from relaylab.ir.op import facets
from relaylab.runtime.ndarray import array
from relaylab.transform import BindParams
from relaylab.zoo.catalog import NETWORKS

Workload = tuple[IRModule, dict[str, Any]]
LEAST_VARIANCE = np.float32(0.1)
STEP, ZERO = 0.05, 128  # of quantized activations: any will do for their speed


def lively(workload: Workload, seed: int = 0) -> Workload:
    """A network of convolutions with parameters as after training: numbers are of order one in every layer.

    With those that a network is created with they fade, and the last softmax gives equal shares whatever was computed.
    Weights are drawn as He et al., "Delving deep into rectifiers", 2015, draw them; means and variances are measured.
    """
    mod, params = workload
    if not any(is_call_to(node, "nn.conv2d", "nn.conv2d_transpose") for node in walk((mod["main"].body,))):
        return workload
    rng = np.random.default_rng(seed)
    drawn = {name: _drawn(name, value.numpy(), rng) for name, value in params.items()}
    if any(name.endswith("mean") for name in drawn):
        drawn |= _measured(mod["main"], drawn, rng)
    return mod, {name: array(value) for name, value in drawn.items()}


def _drawn(name: str, like: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if name.endswith("weight"):
        found = rng.normal(0, math.sqrt(2 / math.prod(like.shape[1:])), like.shape)
    else:
        # Shifts above 0, so that few elements are cut off: many normalized layers would magnify rounding otherwise.
        centre = 1.0 if name.endswith(("gamma", "beta", "var")) else 0.0
        found = rng.uniform(centre - 0.5, centre + 0.5, like.shape)
    return found.astype(like.dtype)


def _measured(main: Function, params: Mapping[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The means and variances that normalizations see for a random input, by the names of their parameters."""
    found: dict[str, np.ndarray] = {}

    def value(node: Expr, parts: tuple[Value, ...]) -> Value:
        match node:
            case Var():
                name, t = node.name_hint, cast("TensorType", node.checked_type)
                return params[name] if name in params else rng.uniform(-1, 1, t.concrete_shape).astype(t.dtype)
            case Constant():
                return node.data.numpy()
            case Tuple():
                return parts
            case TupleGetItem():
                return cast("tuple[Value, ...]", parts[0])[node.index]
            case Call():
                args = list(parts[1:])
                if is_call_to(node, "nn.batch_norm"):
                    data = cast(np.ndarray, args[0])
                    axes = tuple(k for k in range(data.ndim) if k != facets(node).axis)
                    measured = data.mean(axes), np.maximum(data.var(axes), LEAST_VARIANCE)
                    found.update(zip((cast("Var", a).name_hint for a in node.args[3:]), measured))
                    args[3:] = measured
                return facets(node).reference(*args)
        return ()  # an operator

    fold(main.body, value)
    return found


def batched(name: str, size: int) -> Callable[[], Workload]:
    """A network of the catalogue on several images, with the parameters that it has for one."""
    return lambda: (NETWORKS[name].build(batch_size=size)[0], lively(NETWORKS[name].build())[1])


def two_inputs(size: int = 1024) -> Workload:
    """A product of two matrices that are both inputs, as those of attention are."""
    a, b = (relay.var(name, shape=(size, size)) for name in "ab")
    return relay.transform.InferType()(IRModule.from_expr(relay.Function([a, b], relay.nn.matmul(a, b)))), {}


def halves(given: Callable[[], Workload]) -> Callable[[], Workload]:
    """A network whose products are of float16, by `ToMixedPrecision`."""

    def workload() -> Workload:
        mod, params = given()
        return relay.transform.FoldConstant()(relay.transform.ToMixedPrecision("float16")(_bound(mod, params))), {}

    return workload


def quantized(given: Callable[[], Workload]) -> Callable[[], Workload]:
    """A network whose convolutions and dense layers read quantized data and weights (QDQ, as onnxruntime writes it)."""

    def workload() -> Workload:
        mod, params = given()
        passes = [relay.transform.SimplifyInference(), relay.transform.FoldConstant(), relay.transform.FoldScaleAxis()]
        plain = relay.transform.Sequential([*passes, relay.transform.FoldConstant()])(_bound(mod, params))
        return relay.transform.InferType()(IRModule.from_expr(rewrite(plain["main"], _in_bytes))), {}

    return workload


def _bound(mod: IRModule, params: Mapping[str, Any]) -> IRModule:
    return relay.transform.InferType()(BindParams(dict(params))(mod))


def _in_bytes(new: Expr, old: Expr) -> Expr:
    """A product with both sides quantized and dequantized."""
    if not is_call_to(new, "nn.conv2d", "nn.dense") or not isinstance(weight := new.args[1], Constant):
        return new
    values = weight.data.numpy()
    scale = max(float(np.abs(values).max()), 1e-12) / 127
    bytes_ = Constant(np.rint(values / scale).astype("int8"))
    step, zero = relay.const(STEP, "float32"), relay.const(ZERO, "int32")
    data = relay.qnn.op.quantize(new.args[0], step, zero, out_dtype="uint8")
    sides = (
        relay.qnn.op.dequantize(data, step, zero),
        relay.qnn.op.dequantize(bytes_, relay.const(scale, "float32"), relay.const(0, "int32")),
    )
    return relay.Call(new.op, sides, new.attrs)
