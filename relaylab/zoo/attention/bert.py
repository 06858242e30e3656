"""BERT (Devlin et al., 2018): attention in both directions, add and norm, feed-forward, add and norm."""

from __future__ import annotations

from relaylab.ir import Expr, Function, IRModule, free_vars, var
from relaylab.op import add, nn, reshape, strided_slice, tanh
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.zoo.attention.layers import embed, gelu, heads_of, linear, norm, positions
from relaylab.zoo.init import create_workload

EPSILON = 1e-12
PLACES = 512


def encoder(x: Expr, batch: int, length: int, layers: int, hidden: int, heads: int, inner: int) -> Expr:
    """The layers over states (batch, length, hidden)."""
    split = heads_of(batch, heads, hidden)
    for k in range(layers):
        x = norm(add(x, split.self_attention(x, f"layer{k}_attention", length)), f"layer{k}_norm1", EPSILON)
        wide = gelu(linear(x, f"layer{k}_inner", inner))
        x = norm(add(x, linear(wide, f"layer{k}_outer", hidden)), f"layer{k}_norm2", EPSILON)
    return x


@checked
def get_net(
    batch_size: int = 1, length: int = 128, layers: int = 12, hidden: int = 768, heads: int = 12, inner: int = 3072,
    vocabulary: int = 30522, num_classes: int = 2,
) -> Function:  # fmt: skip
    """Classes of a sentence from `data`, its tokens (batch, length) int32; the first token's state is what counts."""
    tokens = var("data", shape=(batch_size, length), dtype="int32")
    x = add(embed(tokens, "word", vocabulary, hidden), positions("position", PLACES, 0, length, hidden))
    x = add(x, var("type_weight", shape=(1, hidden)))
    x = encoder(norm(x, "embedding_norm", EPSILON), batch_size, length, layers, hidden, heads, inner)
    first = strided_slice(x, begin=[0], end=[1], strides=[1], axes=[1])
    pooled = tanh(linear(reshape(first, (batch_size, hidden)), "pooler", hidden))
    out = nn.softmax(linear(pooled, "classifier", num_classes))
    return Function(free_vars(out), out)


@checked
def get_workload(**sizes: int) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters; the sizes are those of `get_net` (BERT-base if not given)."""
    return create_workload(get_net(**sizes))
