"""The programs that the lessons talk about: a block of a convolutional network, and attention."""

from __future__ import annotations

import numpy as np

from relaylab import relay
from relaylab.ir import IRModule, TensorType
from relaylab.transform.bind import bind_params_by_name

BLOCK = """#[version = "0.0.5"]
def @main(%data: Tensor[(1, 8, 16, 16), float32], %weight: Tensor[(8, 8, 3, 3), float32],
          %gamma: Tensor[(8), float32], %beta: Tensor[(8), float32],
          %mean: Tensor[(8), float32], %var: Tensor[(8), float32]) {
  %0 = nn.conv2d(%data, %weight, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
  %1 = nn.batch_norm(%0, %gamma, %beta, %mean, %var);
  nn.relu(%1.0)
}"""

ATTENTION = """#[version = "0.0.5"]
def @main(%x: Tensor[(8, 16), float32], %wq: Tensor[(16, 16), float32], %wk: Tensor[(16, 16), float32],
          %wv: Tensor[(16, 16), float32]) {
  %0 = nn.dense(%x, %wq, units=16);
  %1 = nn.dense(%x, %wk, units=16);
  %2 = nn.dense(%x, %wv, units=16);
  %3 = nn.dense(%0, %1, units=8);
  %4 = multiply(%3, 0.25f);
  %5 = nn.softmax(%4);
  %6 = transpose(%2, axes=[1, 0]);
  nn.dense(%5, %6, units=16)
}"""

TWO_CONVOLUTIONS = """#[version = "0.0.5"]
def @main(%data: Tensor[(1, 8, 16, 16), float32], %w1: Tensor[(8, 8, 3, 3), float32],
          %w2: Tensor[(8, 8, 3, 3), float32], %bias: Tensor[(8, 1, 1), float32]) {
  %0 = nn.conv2d(%data, %w1, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
  %1 = add(%0, %bias);
  %2 = nn.relu(%1);
  %3 = nn.conv2d(%2, %w2, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
  %4 = add(%3, %data);
  nn.relu(%4)
}"""

CLASSIFIER = """#[version = "0.0.5"]
def @main(%data: Tensor[(1, 8, 16, 16), float32], %weight: Tensor[(8, 8, 3, 3), float32],
          %last: Tensor[(10, 512), float32]) {
  %0 = nn.conv2d(%data, %weight, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
  %1 = nn.relu(%0);
  %2 = nn.max_pool2d(%1, pool_size=[2, 2], strides=[2, 2]);
  %3 = nn.batch_flatten(%2);
  %4 = nn.dense(%3, %last, units=10);
  nn.softmax(%4)
}"""


def block() -> IRModule:
    """Convolution, batch normalization, ReLU: 8 channels of 16 x 16 pixels, float32."""
    return relay.transform.InferType()(relay.parse(BLOCK))


def attention() -> IRModule:
    """Scaled dot-product attention, one head: 8 words of 16 numbers each, float32 (Vaswani and others, 2017)."""
    return relay.transform.InferType()(relay.parse(ATTENTION))


def two_convolutions() -> IRModule:
    """A residual block: two convolutions, each with what follows it, the second with the data added."""
    return relay.transform.InferType()(relay.parse(TWO_CONVOLUTIONS))


def classifier() -> IRModule:
    """A small network for images: convolution, ReLU, pooling, and a matrix that gives ten scores."""
    return relay.transform.InferType()(relay.parse(CLASSIFIER))


def shipped(*names: str) -> IRModule:
    """The block with its weights as constants, or those of them that are named."""
    mod = block()
    known = {name: array for name, array in weights(mod).items() if not names or name in names}
    return relay.transform.InferType()(relay.IRModule.from_expr(bind_params_by_name(mod["main"], known)))


def weights(mod: IRModule, seed: int = 0) -> dict[str, np.ndarray]:
    """Seeded values for every parameter of `main` but the first, positive, so that they may be variances."""
    rng = np.random.default_rng(seed)
    found: dict[str, np.ndarray] = {}
    for param in mod["main"].params[1:]:
        kind = param.checked_type
        assert isinstance(kind, TensorType)
        found[param.name_hint] = rng.uniform(0.5, 1.5, kind.concrete_shape).astype(kind.dtype)
    return found
