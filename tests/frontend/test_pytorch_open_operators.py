"""Operators of PyTorch whose batch, or the axis along which they go, only run time knows: each against torch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pytorch_tools import Wrapped, compare, program, torch, wanted

from relaylab import relay

LONG: dict[str, Callable] = {
    "logcumsumexp": lambda x: torch.logcumsumexp(x * 9, 1),
    "cummax": lambda x: torch.cummax(x.round(decimals=1), 1),
    "cummin": lambda x: torch.cummin(x, 1),
    "median": lambda x: x.median(1),
    "nanmedian": lambda x: torch.where(x > 0.5, torch.nan, x).nanmedian(1).values,
    "gcd": lambda x: torch.gcd((x * 60).int(), (x.flip(1) * 60).int().abs()[:, :, :1]),
}
MATRICES: dict[str, Callable] = {
    "inverse": lambda a: torch.linalg.inv(a),
    "solved": lambda a: torch.linalg.solve(a, a[..., 0] + 1),
    "symmetric": lambda a: torch.linalg.eigvalsh(a @ a.mT),
    "singular": lambda a: torch.linalg.svdvals(a),
    "turned": lambda a: torch.linalg.pinv(a[:, :, :2]),
    "exponential": lambda a: torch.matrix_exp(a),
}


def for_all(function: Callable, dims: dict, *cases, tolerance: float = 2e-4) -> None:
    model = Wrapped(function)
    mod, params = relay.frontend.from_pytorch(program(model, cases[0], dynamic=((dims,),)))
    exe = relay.vm.compile(mod, "llvm", params=params)
    machine = relay.vm.VirtualMachine(exe)
    for x in cases:
        got = machine.invoke("main", x.numpy())
        found = [v.numpy() for v in got] if hasattr(got, "fields") or isinstance(got, (tuple, list)) else [got.numpy()]
        compare(found, wanted(model, [x]), tolerance)


@pytest.mark.parametrize("name", LONG)
def test_along_an_open_axis(name: str) -> None:
    waves = lambda n: torch.linspace(0, n * 7.0, 2 * n * 3).sin().reshape(2, n, 3)
    for_all(LONG[name], {1: torch.export.Dim("n", min=2, max=512)}, *map(waves, (5, 16, 2, 33)))


@pytest.mark.parametrize("name", MATRICES)
def test_an_open_number_of_matrices(name: str) -> None:
    made = lambda n: torch.linspace(0, n * 11.0, n * 9).cos().reshape(n, 3, 3) + 2 * torch.eye(3)
    for_all(MATRICES[name], {0: torch.export.Dim("n", min=2, max=512)}, *map(made, (3, 2, 7)))


def test_exponentials_of_small_large_and_too_large_matrices() -> None:
    turned = torch.tensor([[0.0, -1], [1, 0]])
    scales = torch.tensor([0, 1e-3, 0.4, 1, 10, 100]).reshape(-1, 1, 1)
    function = lambda a: torch.matrix_exp(a)
    for_all(function, {}, turned * scales, tolerance=1e-4)
    mod, _ = relay.frontend.from_pytorch(program(Wrapped(function), turned))
    found = relay.create_executor("graph", mod=mod).evaluate()((turned * 2.0**25).numpy())
    assert np.isnan(found.numpy()).all()


@pytest.mark.parametrize("periodic", [False, True])
def test_windows_are_those_of_torch(periodic: bool) -> None:
    def weighted(x):
        kinds = torch.hamming_window, torch.blackman_window, torch.bartlett_window, torch.hann_window
        more = torch.kaiser_window(7, periodic, beta=9.0), torch.hamming_window(7, periodic, 0.5, 0.4)
        return (*(x * kind(7, periodic=periodic) for kind in kinds), *(x * w for w in more))

    for_all(weighted, {}, torch.linspace(1, 2, 7))


def test_what_quantization_leaves() -> None:
    scales, zeros = torch.tensor([0.02, 0.5, 0.1]), torch.tensor([0, 3, -2], dtype=torch.int32)

    def faked(x):
        whole = torch.fake_quantize_per_tensor_affine(x, 0.05, 3, 0, 255)
        told = torch.fake_quantize_per_tensor_affine(x, scales[1], zeros[1], -8, 7)
        return whole, told, torch.fake_quantize_per_channel_affine(x, scales, zeros, 1, -128, 127)

    for_all(faked, {}, torch.linspace(-9, 15, 60).reshape(4, 3, 5), tolerance=1e-6)


def test_a_spectrum_becomes_a_signal_again() -> None:
    window = torch.hann_window(8)

    def back(x):
        return torch.istft(torch.complex(x, x.flip(1)), 8, 2, window=window, center=True)

    waves = lambda n: torch.linspace(0, n * 3.0, n * 5 * 6).sin().reshape(n, 5, 6)
    for_all(back, {0: torch.export.Dim("n", min=2, max=64)}, waves(2), waves(5))


F = torch.nn.functional
one = lambda x: x.flatten(0, 1)[None]
GROUPS = {
    "modulated": (lambda x, w: F.conv2d(one(x), w, None, (2, 1), (1, 0), groups=x.shape[0]), (4, 3, 3, 3)),
    "rows": (lambda x, w: F.conv1d(one(x[..., 0]), w, w[:, 0, 0], groups=x.shape[0]), (2, 3, 5)),
    "images": (lambda x, w: F.conv2d(x.transpose(0, 1), w, dilation=2, groups=x.shape[0]), (4, 1, 2, 3)),
    "turned": (lambda x, w: F.conv_transpose2d(one(x), w, None, 2, 1, (1, 0), x.shape[0]), (3, 4, 3, 2)),
    "each channel": (lambda x, w: F.conv2d(one(x), w, groups=x.shape[0] * 3), (3, 1, 2, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_as_many_groups_as_an_input_says(name: str) -> None:
    grouped, weight = GROUPS[name]
    model, rows = Wrapped(lambda x, w: grouped(x, w.flatten(0, 1))), {0: torch.export.Dim("n", min=2, max=64)}
    waves = lambda n, *shape: torch.linspace(0, n * 31.0, n * int(np.prod(shape))).sin().reshape(n, *shape)
    cases = [(waves(n, 3, 7, 6), waves(n, *weight)) for n in (3, 2, 5)]
    mod, params = relay.frontend.from_pytorch(program(model, *cases[0], dynamic=((rows, rows),)))
    exe = relay.vm.compile(mod, "llvm", params=params)
    for case in cases:
        got = relay.vm.VirtualMachine(exe).invoke("main", *(v.numpy() for v in case))
        compare([got.numpy()], wanted(model, case), 2e-4)
    assert exe.specializations.form() is not None


SMOOTHED = {
    "smaller": lambda x: F.interpolate(x, (5, 4), mode="bilinear", antialias=True),
    "cubic": lambda x: F.interpolate(x, (3, 9), mode="bicubic", antialias=True),
    "a third": lambda x: F.interpolate(x, scale_factor=1 / 3, mode="bilinear", antialias=True),
    "as wide as high": lambda x: F.interpolate(x, (x.shape[3], x.shape[3]), mode="bicubic", antialias=True),
}


@pytest.mark.parametrize("name", SMOOTHED)
def test_open_images_are_made_smaller_without_patterns(name: str) -> None:
    made = lambda h, w: torch.linspace(0, h * w * 3.0, 6 * h * w).sin().reshape(2, 3, h, w)
    free = torch.export.Dim.DYNAMIC
    for_all(SMOOTHED[name], {2: free, 3: free}, made(11, 7), made(9, 16), made(33, 6), tolerance=1e-5)
