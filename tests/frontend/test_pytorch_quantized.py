"""What torch writes when it quantizes an exported program: the operators of `quantized_decomposed`."""

from __future__ import annotations

import pytest
from pytorch_tools import Wrapped, agree, program

from relaylab import relay

torch = pytest.importorskip("torch", reason="reads PyTorch models")
pytest.importorskip("torch.ao.quantization.fx._decomposed", reason="defines the operators")
Q = torch.ops.quantized_decomposed
INT8, UINT8 = (-128, 127, torch.int8), (0, 255, torch.uint8)


def data(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def per_tensor(x: torch.Tensor, low: int, high: int, dtype: torch.dtype) -> torch.Tensor:
    q = Q.quantize_per_tensor(x, 0.0325, 3, low, high, dtype)
    return q, Q.dequantize_per_tensor(q, 0.0325, 3, low, high, dtype)


def of_data(x: torch.Tensor) -> torch.Tensor:
    scale, zero = Q.choose_qparams(x, *INT8[:2], 1e-9, torch.int8)
    q = Q.quantize_per_tensor(x, scale, zero, *INT8)
    return q, Q.dequantize_per_tensor(q, scale, zero, *INT8), scale, zero


def symmetric(x: torch.Tensor) -> torch.Tensor:
    return Q.choose_qparams_symmetric(x, -127, 127, 1e-9, torch.int8)


def channels(x: torch.Tensor) -> torch.Tensor:
    scale, zero = torch.tensor([0.03, 0.02, 0.05, 0.011]), torch.tensor([0, 3, -5, 1])
    q = Q.quantize_per_channel(x, scale, zero, 1, *INT8)
    return q, Q.dequantize_per_channel(q, scale, zero, 1, *INT8), Q.dequantize_per_channel(q, scale, None, 1, *INT8)


def rows(x: torch.Tensor) -> torch.Tensor:
    scale, zero = Q.choose_qparams_per_token_asymmetric(x, torch.int8)
    q = Q.quantize_per_token(x, scale, zero, *INT8)
    back = Q.dequantize_per_token(q, scale, zero, *INT8, torch.float32)
    plain, _ = Q.choose_qparams_per_token(x, torch.int8)
    return q, back, scale, zero, plain.float()  # exported programs say float64


def groups(x: torch.Tensor) -> torch.Tensor:
    scale, zero = torch.tensor([[0.3, 0.2], [0.15, 0.4], [0.11, 0.25]]), torch.ones(3, 2)
    q = Q.quantize_per_channel_group(x, scale, zero, -8, 7, torch.int8, 4)
    return q, Q.dequantize_per_channel_group(q, scale, zero, -8, 7, torch.int8, 4, torch.float32)


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: per_tensor(x, *INT8), data(5, 7)),
        (lambda x: per_tensor(x, *UINT8), data(5, 7)),
        (lambda x: per_tensor(x, 0, 127, torch.uint8), data(5, 7) * 9),  # a narrower range than the type has
        (of_data, data(5, 7)),
        (symmetric, data(5, 7)),
        (channels, data(3, 4, 5)),
        (rows, data(6, 9)),
        (groups, data(3, 8)),
    ],
    ids=["int8", "uint8", "narrow", "of data", "symmetric", "channels", "rows", "groups"],
)
def test_values_are_those_of_torch(function, x):
    agree(Wrapped(function), x, executor="vm")


class Quantized(torch.nn.Module):
    """A layer as `convert_pt2e` leaves it: integers as its weight, floats between two roundings."""

    def __init__(self) -> None:
        super().__init__()
        weight = torch.randint(-127, 128, (16, 8), dtype=torch.int8, generator=torch.Generator().manual_seed(0))
        self.register_buffer("weight", weight)
        self.register_buffer("scale", torch.full((16,), 0.01))
        self.register_buffer("zero", torch.zeros(16, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = Q.dequantize_per_channel(self.weight, self.scale, self.zero, 0, -127, 127, torch.int8)
        x = Q.dequantize_per_tensor(Q.quantize_per_tensor(x, 0.02, 0, *INT8), 0.02, 0, *INT8)
        y = torch.relu(torch.nn.functional.linear(x, weight))
        return Q.dequantize_per_tensor(Q.quantize_per_tensor(y, 0.05, -128, *INT8), 0.05, -128, *INT8)


def test_a_layer_is_of_the_quantized_dialect():
    x = data(4, 8)
    agree(Quantized(), x, executor="vm", tolerance=1e-6)
    mod = relay.frontend.from_pytorch(program(Quantized(), x))[0]
    found = relay.analysis.list_op_freqs(mod)
    assert found["qnn.quantize"] == 2 and found["qnn.dequantize"] == 3
