"""GPT-2 (Radford et al., 2019): norm, causal attention, norm, feed-forward; the next token's logits."""

from __future__ import annotations

from typing import cast

import numpy as np

from relaylab.ir import Expr, Function, IRModule, Tuple, Var, const, free_vars, var
from relaylab.ir.dims import SizeVar, dim
from relaylab.op import add, concatenate, nn, shape_of, take
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.zoo.attention.layers import causal, gelu_tanh, heads_of, linear, norm, positions
from relaylab.zoo.init import create_workload

PLACES = 1024


@checked
def get_net(
    batch_size: int = 1, length: int = 64, cache: int | SizeVar = 0, layers: int = 12, hidden: int = 768,
    heads: int = 12, vocabulary: int = 50257,
) -> Function:  # fmt: skip
    """Logits (batch, length, vocabulary) of `data`, tokens (batch, length) int32.

    With `cache` > 0 that many tokens came before. Their keys and values are the inputs `past_key0`, `past_value0` …
    (batch, heads, cache, hidden / heads), and the result is a tuple: logits, then each layer's keys and values, longer
    by `length`; if `cache` is a size with a name, `length` is 1. The table of words is also the last layer.
    """
    tokens = var("data", shape=(batch_size, length), dtype="int32")
    words = var("word_weight", shape=(vocabulary, hidden))
    split, kept = heads_of(batch_size, heads, hidden), list[Expr]()
    shape = (batch_size, heads, cache, split.size)
    past = {name: var(name, shape=shape) for k in range(layers) for name in (f"past_key{k}", f"past_value{k}")}
    if isinstance(cache, int):
        mask, place = causal(length, cache), positions("position", PLACES, cache, length, hidden)
    else:
        mask, place = None, _place_after(past["past_key0"], length, hidden)
    x = add(take(words, tokens, axis=0), place)
    for k in range(layers):
        y = norm(x, f"layer{k}_norm1")
        query, key, value = (
            split.split(linear(y, f"layer{k}_{part}", hidden), length) for part in ("query", "key", "value")
        )
        if not isinstance(cache, int) or cache:
            key = concatenate([past[f"past_key{k}"], key], axis=2)
            value = concatenate([past[f"past_value{k}"], value], axis=2)
            kept += [key, value]
        mixed = split.merge(split.attend(query, key, value, (length, cast(int, dim(cache + length))), mask), length)
        x = add(x, linear(mixed, f"layer{k}_output", hidden))
        wide = gelu_tanh(linear(norm(x, f"layer{k}_norm2"), f"layer{k}_inner", 4 * hidden))
        x = add(x, linear(wide, f"layer{k}_outer", hidden))
    logits = nn.dense(norm(x, "norm"), words, units=vocabulary)
    out = Tuple([logits, *kept]) if kept else logits
    return Function(free_vars(out), out)


def _place_after(past: Expr, length: int, hidden: int) -> Expr:
    """The row of the table of positions for one token after those that came before."""
    if length != 1:
        raise RelayValueError(
            f"after an open number of tokens comes one, not {length}", code="zoo.length", help="take length=1"
        )
    count = take(shape_of(past, "int64"), const(np.array([2], "int64")), axis=0)
    return take(var("position_weight", shape=(PLACES, hidden)), count, axis=0)


def is_past(param: Var) -> bool:
    """Whether a parameter is an input of the cache."""
    return param.name_hint.startswith("past_")


@checked
def get_workload(cache: int | SizeVar = 0, **sizes: int) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters; the sizes are those of `get_net` (GPT-2 small if not given)."""
    return create_workload(get_net(cache=cache, **sizes), is_input=is_past)
