"""The networks by name: what `relaylab explore NAME` builds, in full size and small enough to check by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from relaylab.ir import IRModule
from relaylab.runtime.ndarray import NDArray
from relaylab.support.table import Table
from relaylab.zoo import (
    dcgan,
    densenet,
    dqn,
    inception_v3,
    lstm,
    mlp,
    mobilenet,
    nat,
    resnet,
    resnet_3d,
    squeezenet,
    synthetic,
    unet,
    vgg,
)
from relaylab.zoo.attention import bert, diffusion, gpt2, llama, mixture, vit

Workload = tuple[IRModule, dict[str, NDArray]]


@dataclass(frozen=True, slots=True)
class NamedNetwork:
    """A named network: `build()` gives the module and its parameters, `small()` the same structure on a small input."""

    name: str
    about: str
    workload: Callable[..., Workload]
    options: dict[str, Any]
    shrink: dict[str, Any]

    def build(self, **changes: object) -> Workload:
        """The full-size module and its parameters; `changes` override the options of `get_workload`."""
        return self.workload(**{**self.options, **changes})

    def small(self) -> Workload:
        """The module with a small input, and its parameters."""
        return self.workload(**{**self.options, **self.shrink})


NETWORKS: Table[NamedNetwork] = Table("network")


def _add(
    name: str, about: str, workload: Callable[..., Workload], shrink: dict[str, Any] | None = None, **options: object
) -> None:
    NETWORKS.insert(name, NamedNetwork(name, about, workload, options, shrink or {}))


_SMALL_IMAGE = {"image_shape": (3, 64, 64), "num_classes": 10}

_add("mlp", "three dense layers on 28x28 images", mlp.get_workload, batch_size=1)
for _n in (18, 34, 50, 101, 152):
    _add(f"resnet{_n}", f"ResNet v2 with {_n} layers, 224x224 images", resnet.get_workload, _SMALL_IMAGE, num_layers=_n)
for _n in (8, 20):
    _add(
        f"resnet{_n}",
        f"ResNet v2 with {_n} layers, 28x28 images",
        resnet.get_workload,
        num_layers=_n,
        image_shape=(3, 28, 28),
        num_classes=10,
    )
_add(
    "resnet_3d",
    "ResNet v2 with 18 layers over videos",
    resnet_3d.get_workload,
    {"image_shape": (3, 4, 32, 32), "num_classes": 10},
)
_add(
    "mobilenet",
    "depthwise separable convolutions, 224x224 images",
    mobilenet.get_workload,
    _SMALL_IMAGE,
    num_classes=10,
)
_add("squeezenet", "SqueezeNet 1.0", squeezenet.get_workload, _SMALL_IMAGE, version="1.0")
_add("squeezenet1.1", "SqueezeNet 1.1", squeezenet.get_workload, _SMALL_IMAGE, version="1.1")
for _n in (11, 13, 16, 19):
    _small = {"image_shape": (3, 32, 32), "num_classes": 10}
    _add(f"vgg{_n}", f"VGG with {_n} layers", vgg.get_workload, _small, batch_size=1, num_layers=_n)
    _add(
        f"vgg{_n}_bn",
        f"VGG with {_n} layers and batch norm",
        vgg.get_workload,
        _small,
        batch_size=1,
        num_layers=_n,
        batch_norm=True,
    )
for _n in (121, 161, 169, 201):
    _add(
        f"densenet{_n}",
        f"DenseNet with {_n} layers",
        densenet.get_workload,
        {"classes": 10},
        densenet_size=_n,
        batch_size=1,
    )
_add("inception_v3", "Inception v3, 299x299 images", inception_v3.get_workload, {"num_classes": 10})
_add("dcgan", "generator of 64x64 images", dcgan.get_workload, {"ngf": 8, "random_len": 20}, batch_size=1)
_add("dqn", "deep Q-network", dqn.get_workload, batch_size=1)
_add(
    "lstm",
    "ten steps of an LSTM, unrolled",
    lstm.get_workload,
    {"iterations": 3, "num_hidden": 16},
    iterations=10,
    num_hidden=128,
)
_add("synthetic", "a little of everything", synthetic.get_workload)
_add("nat", "Peano numbers: an algebraic data type", nat.get_workload)

_TINY = {"layers": 2, "hidden": 24, "heads": 3}
_add("bert", "two layers of BERT-base", bert.get_workload, {**_TINY, "length": 9, "vocabulary": 50}, layers=2)
_add("gpt2", "two layers of GPT-2", gpt2.get_workload, {**_TINY, "length": 7, "vocabulary": 50}, layers=2)
_add(
    "gpt2_cached",
    "two layers of GPT-2, one token after 63",
    gpt2.get_workload,
    {**_TINY, "cache": 6, "vocabulary": 50},
    layers=2,
    length=1,
    cache=63,
)
_add(
    "llama",
    "a block of TinyLlama",
    llama.get_workload,
    {"length": 7, "hidden": 48, "heads": 6, "key_heads": 2, "inner": 40},
)
_add("vit", "two layers of ViT-B/16, 224x224 images", vit.get_workload, {**_TINY, "size": 16, "patch": 4}, layers=2)
_add("mixture", "a mixture of eight experts", mixture.get_workload, {"tokens": 5, "hidden": 16, "inner": 24})
_add("unet", "U-Net, 128x128 images", unet.get_workload, {"size": 16, "base": 4, "levels": 2})
_add(
    "diffusion",
    "a block of latent diffusion's U-Net",
    diffusion.get_workload,
    {"channels": 16, "size": 4, "heads": 2, "text_length": 5, "text_width": 12, "groups": 4},
)
