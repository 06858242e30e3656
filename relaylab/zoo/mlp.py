"""A multilayer perceptron for 28x28 images: three dense layers."""

from __future__ import annotations

from relaylab.ir import Expr, Function, IRModule, free_vars, var
from relaylab.op import nn
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.zoo.init import Size, Sizes, create_workload


def _layer(data: Expr, name: str, units: int) -> Expr:
    return nn.bias_add(nn.dense(data, var(f"{name}_weight"), units=units), var(f"{name}_bias"), axis=-1)


@checked
def get_net(
    batch_size: Size, num_classes: int = 10, image_shape: Sizes = (1, 28, 28), dtype: str = "float32"
) -> Function:
    """The network as a function of its input and parameters."""
    data = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    fc1 = _layer(nn.batch_flatten(data), "fc1", 128)
    fc2 = _layer(nn.relu(fc1), "fc2", 64)
    mlp = nn.softmax(_layer(nn.relu(fc2), "fc3", num_classes))
    return Function(free_vars(mlp), mlp)


@checked
def get_workload(
    batch_size: Size, num_classes: int = 10, image_shape: Sizes = (1, 28, 28), dtype: str = "float32"
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
