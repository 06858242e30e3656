"""The rows of the benchmark: a program each, and how many times faster than onnxruntime it is meant to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylab import relay
from relaylab.bench import encoder, images, open_decoder, sequences
from relaylab.bench.onnx_graph import Model
from relaylab.bench.variants import batched, halves, lively, quantized, two_inputs
from relaylab.frontend import from_onnx
from relaylab.ir import IRModule
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.zoo.catalog import NETWORKS

Workload = tuple[IRModule, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """One program. `goals` are the ratios aimed at with one and with two threads; None where there is no aim.

    `model` makes the ONNX model that all engines read; without it the workload is exported. What is not a static graph
    is `open`: our virtual machine runs it. `past` is the length of the caches that a decoder begins with.
    """

    name: str
    workload: Callable[[], Workload]
    goals: tuple[float, float | None]
    model: Model | None = None
    open: bool = False
    past: int = 0


def _matmul(size: int = 1024) -> Workload:
    a = relay.var("a", shape=(size, size))
    b = relay.var("weight", shape=(size, size))
    mod = relay.transform.InferType()(IRModule.from_expr(relay.Function([a, b], relay.nn.matmul(a, b))))
    return mod, {"weight": np.random.default_rng(0).uniform(-1, 1, (size, size)).astype("float32")}


def _toy() -> Workload:
    x = relay.var("x", shape=(1, 64))
    body = relay.sigmoid(relay.nn.relu(x * relay.const(2.0) + relay.const(1.0)) - x)
    return relay.transform.InferType()(IRModule.from_expr(relay.Function([x], body))), {}


def _zoo(name: str, one: float, two: float | None = None) -> BenchmarkRow:
    return BenchmarkRow(name, lambda: lively(NETWORKS[name].build()), (one, one if two is None else two))


def _onnx(name: str, model: Model, goal: float, open: bool = False, past: int = 0) -> BenchmarkRow:
    return BenchmarkRow(name, lambda: from_onnx(model()), (goal, goal), model, open, past)


BATCHES = (4, 16, 64)
ROWS: dict[str, BenchmarkRow] = {
    row.name: row
    for row in (
        _zoo("resnet18", 1.6),
        _zoo("resnet34", 1.6),
        _zoo("resnet50", 1.15),
        _zoo("resnet101", 1.15),
        _zoo("vgg16", 1.8),
        _zoo("mobilenet", 1.1),
        _zoo("squeezenet1.1", 1.2),
        _zoo("densenet121", 1.2),
        _zoo("inception_v3", 1.2),
        _zoo("dcgan", 1.2),
        _zoo("dqn", 1.2),
        _zoo("mlp", 1.5),
        _zoo("lstm", 3.0, 2.0),
        BenchmarkRow("encoder", encoder.get_workload, (1.25, 1.25)),
        BenchmarkRow("matmul", _matmul, (1.2, 1.2)),
        BenchmarkRow("toy", _toy, (5.0, None)),
        _zoo("unet", 1.25),
        _zoo("bert", 1.2),
        _zoo("llama", 1.2),
        _zoo("vit", 1.2),
        _zoo("gpt2_cached", 3.0),
        _zoo("mixture", 1.0),
        *(
            BenchmarkRow(f"{name}-{images}", batched(name, images), (goal, goal))
            for name, goal in (("resnet18", 1.6), ("mobilenet", 1.1))
            for images in BATCHES
        ),
        BenchmarkRow("matmul-inputs", two_inputs, (1.2, 1.2)),
        BenchmarkRow("bert-float16", halves(NETWORKS["bert"].build), (1.0, 1.0)),
        BenchmarkRow("resnet18-int8", quantized(NETWORKS["resnet18"].build), (1.0, 1.0)),
        BenchmarkRow("mobilenet-int8", quantized(NETWORKS["mobilenet"].build), (1.0, 1.0)),
        _onnx("decoder-open", open_decoder.model, 3.0, True, 64),
        _onnx("decoder-open-long", open_decoder.model, 3.0, True, 512),
        _onnx("super_resolution", images.super_resolution, 1.25),
        _onnx("efficientnet", images.efficientnet, 1.1),
        _onnx("mobilenet_v3", images.mobilenet_v3, 1.1),
        _onnx("convnext", images.convnext, 1.2),
        _onnx("swin", images.swin, 1.2),
        _onnx("detector", images.detector, 1.0, True),
        _onnx("wavenet", sequences.wavenet, 1.25),
        _onnx("whisper", sequences.whisper, 1.2),
        _onnx("t5", sequences.t5, 1.2),
        _onnx("gru", sequences.gru, 1.5),
        _onnx("bilstm", sequences.bilstm, 1.5),
        _onnx("topk", sequences.topk, 1.0),
        _onnx("loop", sequences.loop, 1.0, True),
        _onnx("experts", sequences.experts, 1.0, True),
    )
}


def chosen(names: str | None) -> list[BenchmarkRow]:
    """The rows named in a list with commas, all without one; RelayValueError for a name that is none."""
    wanted = list(ROWS) if names is None else [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in ROWS:
            raise RelayValueError(
                f"there is no row `{name}`",
                code="bench.row",
                help=did_you_mean(name, ROWS) or f"rows: {', '.join(ROWS)}",
            )
    return [ROWS[name] for name in dict.fromkeys(wanted)]
