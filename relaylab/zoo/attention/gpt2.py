"""GPT-2 (Radford et al., 2019): norm, causal attention, norm, feed-forward; the next token's logits."""

from __future__ import annotations

from relaylab.ir import Expr, Function, IRModule, Tuple, Var, free_vars, var
from relaylab.op import add, concatenate, nn, take
from relaylab.runtime.ndarray import NDArray
from relaylab.zoo.attention.layers import causal, gelu_tanh, heads_of, linear, norm, positions
from relaylab.zoo.init import create_workload

PLACES = 1024


def get_net(
    batch_size: int = 1, length: int = 64, cache: int = 0, layers: int = 12, hidden: int = 768, heads: int = 12,
    vocabulary: int = 50257,
) -> Function:  # fmt: skip
    """Logits (batch, length, vocabulary) of `data`, tokens (batch, length) int32.

    With `cache` > 0 that many tokens came before. Their keys and values are the inputs `past_key0`, `past_value0` …
    (batch, heads, cache, hidden / heads), and the result is a tuple: logits, then each layer's keys and values, longer
    by `length`. The table of words is also the last layer.
    """
    tokens = var("data", shape=(batch_size, length), dtype="int32")
    words = var("word_weight", shape=(vocabulary, hidden))
    split, mask, kept = heads_of(batch_size, heads, hidden), causal(length, cache), list[Expr]()
    x = add(take(words, tokens, axis=0), positions("position", PLACES, cache, length, hidden))
    for k in range(layers):
        y = norm(x, f"layer{k}_norm1")
        query, key, value = (
            split.split(linear(y, f"layer{k}_{part}", hidden), length) for part in ("query", "key", "value")
        )
        if cache:
            shape = (batch_size, heads, cache, split.size)
            key = concatenate([var(f"past_key{k}", shape=shape), key], axis=2)
            value = concatenate([var(f"past_value{k}", shape=shape), value], axis=2)
            kept += [key, value]
        mixed = split.merge(split.attend(query, key, value, (length, cache + length), mask), length)
        x = add(x, linear(mixed, f"layer{k}_output", hidden))
        wide = gelu_tanh(linear(norm(x, f"layer{k}_norm2"), f"layer{k}_inner", 4 * hidden))
        x = add(x, linear(wide, f"layer{k}_outer", hidden))
    logits = nn.dense(norm(x, "norm"), words, units=vocabulary)
    out = Tuple([logits, *kept]) if cache else logits
    return Function(free_vars(out), out)


def is_past(param: Var) -> bool:
    """Whether a parameter is an input of the cache."""
    return param.name_hint.startswith("past_")


def get_workload(**sizes: int) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters; the sizes are those of `get_net` (GPT-2 small if not given)."""
    return create_workload(get_net(**sizes), is_input=is_past)
