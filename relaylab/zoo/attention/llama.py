"""Blocks of Llama (Touvron et al., 2023): RMS norm, rotary places, shared keys and values, gated feed-forward."""

from __future__ import annotations

from relaylab.ir import Function, IRModule, free_vars, var
from relaylab.op import add, multiply
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.zoo.attention.layers import Heads, causal, heads_of, linear, rms_norm, rotated, silu
from relaylab.zoo.init import create_workload


@checked
def get_net(
    batch_size: int = 1, length: int = 64, layers: int = 1, hidden: int = 2048, heads: int = 32, key_heads: int = 4,
    inner: int = 5632,
) -> Function:  # fmt: skip
    """States (batch, length, hidden) after the blocks, from `data` of the same shape (TinyLlama's sizes)."""
    x = var("data", shape=(batch_size, length, hidden))
    queries, mask = heads_of(batch_size, heads, hidden), causal(length)
    keys, times = Heads(batch_size, key_heads, queries.size), heads_of(batch_size, key_heads, heads).size
    for k in range(layers):
        y = rms_norm(x, f"layer{k}_norm1", hidden)
        split = lambda part, of, y=y, k=k: of.split(
            linear(y, f"layer{k}_{part}", of.count * of.size, bias=False), length
        )
        query = rotated(split("query", queries), queries.size, 0, length)
        key = keys.repeated(rotated(split("key", keys), keys.size, 0, length), times)
        value = keys.repeated(split("value", keys), times)
        mixed = queries.merge(queries.attend(query, key, value, (length, length), mask), length)
        x = add(x, linear(mixed, f"layer{k}_output", hidden, bias=False))
        y = rms_norm(x, f"layer{k}_norm2", hidden)
        gate, up = (linear(y, f"layer{k}_{part}", inner, bias=False) for part in ("gate", "up"))
        x = add(x, linear(multiply(silu(gate), up), f"layer{k}_down", hidden, bias=False))
    return Function(free_vars(x), x)


@checked
def get_workload(**sizes: int) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters; the sizes are those of `get_net`."""
    return create_workload(get_net(**sizes))
