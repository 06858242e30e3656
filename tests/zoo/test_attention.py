"""Networks of attention and the U-Net against models written with torch from the papers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relaylab import relay
from relaylab.support.errors import RelayError
from relaylab.zoo import unet
from relaylab.zoo.attention import bert, diffusion, gpt2, llama, mixture, vit

torch = pytest.importorskip("torch", reason="the judge of these networks")
F = torch.nn.functional
Parameters = dict[str, Any]


def linear(p: Parameters, name: str, x: Any) -> Any:
    return F.linear(x, p[f"{name}_weight"], p.get(f"{name}_bias"))


def norm(p: Parameters, name: str, x: Any, eps: float = 1e-5) -> Any:
    return F.layer_norm(x, x.shape[-1:], p[f"{name}_gamma"], p[f"{name}_beta"], eps)


def heads(x: Any, count: int) -> Any:
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def attention(p: Parameters, name: str, x: Any, count: int, **options: Any) -> Any:
    q, k, v = (heads(linear(p, f"{name}_{part}", x), count) for part in ("query", "key", "value"))
    mixed = F.scaled_dot_product_attention(q, k, v, **options)
    return linear(p, f"{name}_output", mixed.transpose(1, 2).flatten(2))


def of_bert(p: Parameters, data: Any, layers: int, heads: int) -> Any:
    x = p["word_weight"][data] + p["position_weight"][: data.shape[1]] + p["type_weight"]
    x = norm(p, "embedding_norm", x, 1e-12)
    for k in range(layers):
        x = norm(p, f"layer{k}_norm1", x + attention(p, f"layer{k}_attention", x, heads), 1e-12)
        wide = F.gelu(linear(p, f"layer{k}_inner", x))
        x = norm(p, f"layer{k}_norm2", x + linear(p, f"layer{k}_outer", wide), 1e-12)
    return F.softmax(linear(p, "classifier", torch.tanh(linear(p, "pooler", x[:, 0]))), -1)


def of_gpt2(p: Parameters, data: Any, layers: int, count: int) -> Any:
    x = p["word_weight"][data] + p["position_weight"][: data.shape[1]]
    for k in range(layers):
        y = norm(p, f"layer{k}_norm1", x)
        q, key, v = (heads(linear(p, f"layer{k}_{part}", y), count) for part in ("query", "key", "value"))
        mixed = F.scaled_dot_product_attention(q, key, v, is_causal=True)
        x = x + linear(p, f"layer{k}_output", mixed.transpose(1, 2).flatten(2))
        wide = F.gelu(linear(p, f"layer{k}_inner", norm(p, f"layer{k}_norm2", x)), approximate="tanh")
        x = x + linear(p, f"layer{k}_outer", wide)
    return norm(p, "norm", x) @ p["word_weight"].T


def turned(x: Any) -> Any:
    """Rotary places by complex numbers."""
    length, size = x.shape[-2:]
    angles = torch.outer(torch.arange(length), 10000.0 ** (-torch.arange(0, size, 2) / size))
    pairs = torch.complex(x[..., : size // 2], x[..., size // 2 :]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([pairs.real, pairs.imag], -1)


def of_llama(p: Parameters, x: Any, layers: int, count: int, shared: int) -> Any:
    for k in range(layers):
        y = F.rms_norm(x, x.shape[-1:], p[f"layer{k}_norm1_gamma"], 1e-5)
        q, key, v = (
            heads(linear(p, f"layer{k}_{part}", y), n)
            for part, n in (("query", count), ("key", shared), ("value", shared))
        )
        mixed = F.scaled_dot_product_attention(turned(q), turned(key), v, is_causal=True, enable_gqa=True)
        x = x + linear(p, f"layer{k}_output", mixed.transpose(1, 2).flatten(2))
        y = F.rms_norm(x, x.shape[-1:], p[f"layer{k}_norm2_gamma"], 1e-5)
        gated = F.silu(linear(p, f"layer{k}_gate", y)) * linear(p, f"layer{k}_up", y)
        x = x + linear(p, f"layer{k}_down", gated)
    return x


def of_vit(p: Parameters, data: Any, layers: int, heads: int, patch: int) -> Any:
    x = F.conv2d(data, p["patch_weight"], p["patch_bias"], stride=patch).flatten(2).transpose(1, 2)
    x = torch.cat([p["class_weight"].expand(len(x), 1, -1), x], 1) + p["position_weight"]
    for k in range(layers):
        x = x + attention(p, f"layer{k}_attention", norm(p, f"layer{k}_norm1", x, 1e-6), heads)
        x = x + linear(p, f"layer{k}_outer", F.gelu(linear(p, f"layer{k}_inner", norm(p, f"layer{k}_norm2", x, 1e-6))))
    return linear(p, "head", norm(p, "norm", x, 1e-6)[:, 0])


def of_mixture(p: Parameters, data: Any, chosen: int) -> Any:
    shares, experts = F.softmax(linear(p, "gate", data), -1).topk(chosen)
    out = torch.zeros_like(data)
    for token, x in enumerate(data):
        for share, k in zip(shares[token] / shares[token].sum(), experts[token]):
            gated = F.silu(linear(p, f"expert{k}_gate", x)) * linear(p, f"expert{k}_up", x)
            out[token] += share * linear(p, f"expert{k}_down", gated)
    return out


def of_unet(p: Parameters, x: Any, levels: int) -> Any:
    def block(x: Any, name: str) -> Any:
        for k in (1, 2):
            x = F.conv2d(x, p[f"{name}_conv{k}_weight"], padding=1)
            bn = [p[f"{name}_bn{k}_{part}"] for part in ("moving_mean", "moving_var", "gamma", "beta")]
            x = F.relu(F.batch_norm(x, *bn, eps=1e-5))
        return x

    kept = []
    for k in range(levels):
        x = block(x, f"down{k}")
        kept.append(x)
        x = F.max_pool2d(x, 2)
    x = block(x, "bottom")
    for k in reversed(range(levels)):
        x = F.conv_transpose2d(x, p[f"up{k}_weight"], p[f"up{k}_bias"], stride=2)
        x = block(torch.cat([kept[k], x], 1), f"up{k}")
    return F.conv2d(x, p["head_weight"], p["head_bias"])


def of_diffusion(p: Parameters, data: Any, time: Any, text: Any, count: int, groups: int) -> Any:
    def grouped(name: str, x: Any) -> Any:
        return F.group_norm(x, groups, p[f"{name}_gamma"], p[f"{name}_beta"])

    def conv(name: str, x: Any) -> Any:
        weight = p[f"{name}_weight"]
        return F.conv2d(x, weight, p[f"{name}_bias"], padding=weight.shape[-1] // 2)

    half = data.shape[1] // 2
    angles = time[:, None] * torch.exp(-math.log(10000) * torch.arange(half) / half)
    moment = linear(p, "time2", F.silu(linear(p, "time1", torch.cat([angles.cos(), angles.sin()], 1))))
    x = conv("conv1", F.silu(grouped("norm1", data))) + linear(p, "moment", F.silu(moment))[:, :, None, None]
    x = data + conv("conv2", F.silu(grouped("norm2", x)))
    y = conv("inward", grouped("norm3", x)).flatten(2).transpose(1, 2)
    y = y + attention(p, "self", norm(p, "norm4", y), count)
    q = heads(linear(p, "cross_query", norm(p, "norm5", y)), count)
    k, v = (heads(linear(p, f"cross_{part}", text), count) for part in ("key", "value"))
    mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    y = y + linear(p, "cross_output", mixed)
    y = y + linear(p, "outer", F.gelu(linear(p, "inner", norm(p, "norm6", y))))
    return x + conv("outward", y.transpose(1, 2).unflatten(2, data.shape[2:]))


CASES: dict[str, tuple[Any, dict[str, int], Callable[..., Any]]] = {
    "bert": (
        bert, {"length": 9, "layers": 2, "hidden": 24, "heads": 3, "inner": 40, "vocabulary": 50, "batch_size": 2},
        lambda p, data: of_bert(p, data, 2, 3),
    ),
    "gpt2": (
        gpt2, {"length": 7, "layers": 2, "hidden": 24, "heads": 3, "vocabulary": 50, "batch_size": 2},
        lambda p, data: of_gpt2(p, data, 2, 3),
    ),
    "llama": (
        llama, {"length": 7, "layers": 2, "hidden": 48, "heads": 6, "key_heads": 2, "inner": 40, "batch_size": 2},
        lambda p, data: of_llama(p, data, 2, 6, 2),
    ),
    "vit": (
        vit, {"size": 16, "patch": 4, "layers": 2, "hidden": 24, "heads": 3, "num_classes": 5, "batch_size": 2},
        lambda p, data: of_vit(p, data, 2, 3, 4),
    ),
    "mixture": (
        mixture, {"tokens": 11, "hidden": 16, "inner": 24, "experts": 5, "chosen": 2},
        lambda p, data: of_mixture(p, data, 2),
    ),
    "unet": (
        unet, {"size": 16, "base": 4, "levels": 2, "batch_size": 2, "num_classes": 3},
        lambda p, data: of_unet(p, data, 2),
    ),
    "diffusion": (
        diffusion,
        {"channels": 16, "size": 4, "heads": 2, "text_length": 5, "text_width": 12, "groups": 4, "batch_size": 2},
        lambda p, data, time, text: of_diffusion(p, data, time, text, 2, 4),
    ),
}  # fmt: skip


def drawn(mod: relay.IRModule, params: dict[str, Any], vocabulary: int) -> dict[str, np.ndarray]:
    """Inputs; parameters that start as zeros and ones are moved, or they would hide what is left out."""
    rng = np.random.default_rng(3)
    inputs = {}
    for param in mod["main"].params:
        name, shape = param.name_hint, param.checked_type.concrete_shape
        if name in params:
            params[name] = params[name].numpy() + rng.uniform(0, 0.1, shape).astype("float32")
        elif param.checked_type.dtype == "int32":
            inputs[name] = rng.integers(0, vocabulary, shape).astype("int32")
        else:
            inputs[name] = rng.normal(size=shape).astype("float32")
    return inputs


def run(mod: relay.IRModule, params: dict[str, Any], inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    library = relay.build(mod, target="llvm", params=params)
    found = library.run(**inputs)
    return list(found) if isinstance(found, (tuple, list)) else [found]


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_torch(name: str) -> None:
    network, sizes, judge = CASES[name]
    mod, params = network.get_workload(**sizes)
    inputs = drawn(mod, params, sizes.get("vocabulary", 0))
    tensors = {k: torch.tensor(v) for k, v in params.items()}
    with torch.no_grad():
        want = judge(tensors, **{k: torch.tensor(v) for k, v in inputs.items()}).numpy()
    np.testing.assert_allclose(run(mod, params, inputs)[0], want, rtol=1e-3, atol=1e-4)


def test_the_cache_gives_what_the_whole_sequence_gives() -> None:
    sizes = {"layers": 2, "hidden": 24, "heads": 3, "vocabulary": 50}
    whole, params = gpt2.get_workload(length=8, **sizes)
    step, same = gpt2.get_workload(length=1, cache=7, **sizes)
    first, _ = gpt2.get_workload(length=3, cache=4, **sizes)
    assert set(params) == set(same), "the cache is an input, not a parameter"
    tokens = drawn(whole, params, 50)["data"]
    logits = run(whole, params, {"data": tokens})[0]

    def keys(upto: int) -> dict[str, np.ndarray]:
        """Keys and values of the first tokens, as torch computes them."""
        p, found = {k: torch.tensor(v) for k, v in params.items()}, {}
        x = p["word_weight"][torch.tensor(tokens[:, :upto])] + p["position_weight"][:upto]
        for k in range(2):
            y = norm(p, f"layer{k}_norm1", x)
            q, key, v = (heads(linear(p, f"layer{k}_{part}", y), 3) for part in ("query", "key", "value"))
            found |= {f"past_key{k}": key.numpy(), f"past_value{k}": v.numpy()}
            mixed = F.scaled_dot_product_attention(q, key, v, is_causal=True)
            x = x + linear(p, f"layer{k}_output", mixed.transpose(1, 2).flatten(2))
            wide = F.gelu(linear(p, f"layer{k}_inner", norm(p, f"layer{k}_norm2", x)), approximate="tanh")
            x = x + linear(p, f"layer{k}_outer", wide)
        return found

    last = run(step, params, {"data": tokens[:, 7:], **keys(7)})
    np.testing.assert_allclose(last[0], logits[:, 7:], rtol=1e-3, atol=1e-4)
    middle = run(first, params, {"data": tokens[:, 4:7], **keys(4)})
    np.testing.assert_allclose(middle[0], logits[:, 4:7], rtol=1e-3, atol=1e-4)
    for made, wanted in zip(middle[1:], keys(7).values(), strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: bert.get_net(hidden=10, heads=3), "do not split into 3 heads"),
        (lambda: bert.get_net(hidden=0), "0 elements do not split"),
        (lambda: llama.get_net(hidden=15, heads=5, key_heads=5), "heads of 3 elements"),
        (lambda: vit.get_net(patch=0), "patches of 0"),
        (lambda: unet.get_net(levels=-1), "halved -1 times"),
        (lambda: bert.get_net(length=600), "there are 512 positions"),
        (lambda: gpt2.get_net(length=1, cache=1024), "there are 1024 positions"),
        (lambda: vit.get_net(size=30), "do not split into patches of 16"),
        (lambda: mixture.get_net(experts=2, chosen=3), "3 of 2 experts"),
        (lambda: unet.get_net(size=20, levels=3), "cannot be halved 3 times"),
    ],
)
def test_sizes_that_do_not_fit(make: Callable[[], object], word: str) -> None:
    with pytest.raises(RelayError, match=word):
        make()
