"""Vision transformer (Dosovitskiy et al., 2020): patches of an image as tokens, and one token for the class."""

from __future__ import annotations

from relaylab.ir import Function, IRModule, free_vars, var
from relaylab.op import add, broadcast_to, concatenate, nn, reshape, strided_slice, transpose
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.zoo.attention.layers import gelu, heads_of, linear, norm, positions
from relaylab.zoo.init import create_workload

EPSILON = 1e-6


@checked
def get_net(
    batch_size: int = 1, size: int = 224, patch: int = 16, layers: int = 12, hidden: int = 768, heads: int = 12,
    num_classes: int = 1000,
) -> Function:  # fmt: skip
    """Logits of the classes from `data`, images (batch, 3, size, size) (ViT-B/16 if nothing is given)."""
    if patch < 1 or size % patch:
        raise RelayValueError(f"{size} pixels do not split into patches of {patch}", code="zoo.length")
    count = (size // patch) ** 2
    image = var("data", shape=(batch_size, 3, size, size))
    cut = nn.conv2d(image, var("patch_weight"), strides=patch, channels=hidden, kernel_size=(patch, patch))
    cut = reshape(nn.bias_add(cut, var("patch_bias")), (batch_size, hidden, count))
    first = broadcast_to(var("class_weight", shape=(1, 1, hidden)), (batch_size, 1, hidden))
    x = concatenate([first, transpose(cut, (0, 2, 1))], axis=1)
    x = add(x, positions("position", count + 1, 0, count + 1, hidden))
    split = heads_of(batch_size, heads, hidden)
    for k in range(layers):
        y = norm(x, f"layer{k}_norm1", EPSILON)
        x = add(x, split.self_attention(y, f"layer{k}_attention", count + 1))
        wide = gelu(linear(norm(x, f"layer{k}_norm2", EPSILON), f"layer{k}_inner", 4 * hidden))
        x = add(x, linear(wide, f"layer{k}_outer", hidden))
    seen = strided_slice(norm(x, "norm", EPSILON), begin=[0], end=[1], strides=[1], axes=[1])
    out = linear(reshape(seen, (batch_size, hidden)), "head", num_classes)
    return Function(free_vars(out), out)


@checked
def get_workload(**sizes: int) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters; the sizes are those of `get_net`."""
    return create_workload(get_net(**sizes))
