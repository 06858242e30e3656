"""Convolutions of open images of which every channel has its own kernel: one form, the numbers of torch."""

import numpy as np
import pytest
from test_open_convolutions import H, RNG, W, agree, machine, weight

from relaylab import relay

LINES = (*range(1, 17), 31, 113, 240)


def kernels(vm) -> str:
    return " ".join(step.kernel for step in vm.exe.specializations.open.planned.plan.steps)


@pytest.mark.parametrize("channels", [2, 7, 16, 24, 33, 130])
def test_lines_of_all_lengths(channels):
    """Tiles of each height, whole vectors of channels and a rest."""
    x = relay.var("x", shape=(1, channels, 3, W))
    y = relay.nn.conv2d(x, weight(channels, 1, 3, 3), groups=channels, padding=(1, 1))
    vm = machine(x, relay.nn.relu(relay.nn.bias_add(y, weight(channels))))
    agree(vm, *((1, channels, 3, n) for n in LINES))
    assert "depthwise" in kernels(vm)


CASES = [
    ((3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "float32"),
    ((3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "float32"),
    ((5, 5), (1, 1), (1, 1), (2, 2, 2, 2), "float32"),
    ((7, 3), (1, 2), (1, 1), (0, 3, 2, 1), "float32"),
    ((3, 3), (1, 1), (2, 3), (2, 3, 2, 3), "float32"),
    ((1, 9), (1, 1), (1, 1), (0, 0, 0, 0), "float32"),
    ((3, 3), (2, 1), (1, 2), (3, 3, 3, 3), "float64"),
    ((2, 2), (3, 3), (1, 1), (5, 0, 0, 7), "float32"),
]


@pytest.mark.parametrize(("kernel", "strides", "dilation", "padding", "dtype"), CASES)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_kernels(kernel, strides, dilation, padding, dtype, layout):
    torch = pytest.importorskip("torch")
    last = layout == "NHWC"
    x = relay.var("x", shape=(2, H, W, 20) if last else (2, 20, H, W), dtype=dtype)
    w, bias = weight(20, 1, *kernel, dtype=dtype), weight(20, dtype=dtype)
    y = relay.nn.conv2d(
        x, w, groups=20, padding=padding, strides=strides, dilation=dilation, data_layout=layout, kernel_layout="OIHW"
    )
    y = relay.nn.relu(relay.nn.bias_add(y, bias, axis=3 if last else 1))
    vm = machine(x, relay.add(y, relay.tanh(y)))
    for high, wide in ((19, 31), (9, 11), (14, 14), (23, 10), (9, 130)):
        given = RNG.standard_normal((2, 20, high, wide)).astype(dtype)
        top, left, bottom, right = padding
        padded = torch.nn.functional.pad(torch.from_numpy(given), (left, right, top, bottom))
        wanted = torch.nn.functional.conv2d(
            padded,
            torch.from_numpy(w.data.numpy()),
            torch.from_numpy(bias.data.numpy()),
            stride=strides,
            dilation=dilation,
            groups=20,
        ).relu()
        wanted = (wanted + wanted.tanh()).numpy()
        got = vm.invoke("main", np.ascontiguousarray(given.transpose(0, 2, 3, 1)) if last else given).numpy()
        np.testing.assert_allclose(got.transpose(0, 3, 1, 2) if last else got, wanted, rtol=1e-4, atol=1e-5)
    assert vm.exe.specializations.open is not None and "depthwise" in kernels(vm)


@pytest.mark.parametrize("rank", [1, 3])
def test_sounds_and_volumes(rank):
    axes, space = "DHW"[3 - rank :], (W,) if rank == 1 else (4, H, W)
    x = relay.var("x", shape=(2, 18, *space))
    conv = getattr(relay.nn, f"conv{rank}d")
    body = conv(x, weight(18, 1, *(3,) * rank), groups=18, padding=(1,) * rank, data_layout=f"NC{axes}")
    vm = machine(x, relay.sigmoid(body))
    agree(vm, *((2, 18, *((n,) if rank == 1 else (4, 5, n))) for n in (1, 7, 113, 1000 if rank == 1 else 20)))
    assert "depthwise" in kernels(vm)


def test_a_block_with_a_residual():
    """Expansion, depthwise, projection and a sum, as in MobileNet v2."""
    x = relay.var("x", shape=(1, 12, H, W))
    y = relay.clip(relay.nn.conv2d(x, weight(40, 12, 1, 1)), 0.0, 6.0)
    y = relay.clip(relay.nn.conv2d(y, weight(40, 1, 3, 3), groups=40, padding=(1, 1)), 0.0, 6.0)
    vm = machine(x, relay.add(relay.nn.conv2d(y, weight(12, 40, 1, 1)), x))
    agree(vm, *((1, 12, *s) for s in ((14, 14), (7, 9), (1, 1), (33, 130))))
    assert "depthwise" in kernels(vm)
