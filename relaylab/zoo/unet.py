"""U-Net (Ronneberger et al., 2015): down by poolings, up by transposed convolutions, joined with the level above."""

from __future__ import annotations

from relaylab.ir import Expr, Function, IRModule, free_vars, var
from relaylab.op import concatenate, nn
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.zoo import layers
from relaylab.zoo.init import create_workload


def _block(x: Expr, name: str, channels: int) -> Expr:
    """Two convolutions, each with batch norm and relu."""
    for k in (1, 2):
        x = layers.conv2d(x, channels=channels, kernel_size=(3, 3), padding=(1, 1), name=f"{name}_conv{k}")
        x = nn.relu(layers.batch_norm_infer(x, epsilon=1e-5, name=f"{name}_bn{k}"))
    return x


@checked
def get_net(
    batch_size: int = 1, size: int = 128, base: int = 64, levels: int = 4, in_channels: int = 3, num_classes: int = 2
) -> Function:
    """Logits (batch, num_classes, size, size) of every pixel of `data` (batch, in_channels, size, size)."""
    if levels < 0 or size % 2**levels:
        raise RelayValueError(f"{size} pixels cannot be halved {levels} times", code="zoo.length")
    x, kept = var("data", shape=(batch_size, in_channels, size, size)), list[Expr]()
    for k in range(levels):
        x = _block(x, f"down{k}", base << k)
        kept.append(x)
        x = nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2))
    x = _block(x, "bottom", base << levels)
    for k in reversed(range(levels)):
        x = layers.conv2d_transpose(
            x, channels=base << k, kernel_size=(2, 2), strides=(2, 2), kernel_layout="IOHW", name=f"up{k}"
        )
        x = _block(concatenate([kept[k], nn.bias_add(x, var(f"up{k}_bias"))], axis=1), f"up{k}", base << k)
    out = layers.conv2d(x, channels=num_classes, kernel_size=(1, 1), name="head")
    out = nn.bias_add(out, var("head_bias"))
    return Function(free_vars(out), out)


@checked
def get_workload(**sizes: int) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters; the sizes are those of `get_net`."""
    return create_workload(get_net(**sizes))
