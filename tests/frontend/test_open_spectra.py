"""Fourier transforms of a number of points that only run time knows, against numpy's: from PyTorch and from ONNX."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.support.errors import RelayError

LENGTHS = (5, 8, 3, 13)


def machine_of(mod, params=None) -> relay.vm.VirtualMachine:
    return relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))


def signal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


class TestTorch:
    torch = pytest.importorskip("torch")

    def spectra(self):
        torch = self.torch
        fft = torch.fft

        def function(x):
            half = fft.rfft(x, dim=1, norm="ortho")
            whole = fft.fft2(x, dim=(1, 2), norm="forward")
            back = fft.irfft(half * 2, n=x.shape[1], dim=1, norm="ortho")
            again = fft.ifft(whole, dim=1)
            return torch.view_as_real(half), torch.view_as_real(whole), back, again.real, fft.hfft(half, dim=2)

        return function

    def test_every_transform(self) -> None:
        torch, function = self.torch, self.spectra()
        module = torch.nn.Module()
        module.forward = function
        given = torch.from_numpy(signal(2, 5, 3))
        dims = ({1: torch.export.Dim.AUTO},)
        mod, params = relay.frontend.from_pytorch(torch.export.export(module, (given,), dynamic_shapes=dims))
        machine = machine_of(mod, params)
        for n in LENGTHS:
            x = torch.from_numpy(signal(2, n, 3))
            for got, want in zip(machine.invoke("main", x.numpy()), function(x)):
                np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-5)

    def test_another_number_of_points_is_refused(self) -> None:
        torch = self.torch
        module = torch.nn.Module()
        module.forward = lambda x: torch.fft.rfft(x, n=5000).abs()
        with pytest.raises(RelayError, match="5000"):
            relay.frontend.from_pytorch(torch.export.export(module, (torch.rand(2, 5000),)))


onnx = pytest.importorskip("onnx")
helper = onnx.helper


def model_of(nodes, shape, opset: int = 20, **constants):
    given = [onnx.numpy_helper.from_array(np.array(v), name) for name, v in constants.items()]
    inputs = [helper.make_tensor_value_info("x", 1, shape)]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("onesided", [0, 1])
def test_onnx_transforms(onesided: int, inverse: int) -> None:
    parts = 2 if inverse else 1
    node = helper.make_node("DFT", ["x", "", "axis"], ["y"], onesided=onesided, inverse=inverse)
    mod, _ = relay.frontend.from_onnx(model_of([node], [2, "n", 3, parts], axis=np.int64(1)))
    machine = machine_of(mod)
    for n in LENGTHS:
        x = signal(2, n, 3, parts)
        number = x[..., 0] + 1j * x[..., 1] if inverse else x[..., 0]
        if onesided and inverse:
            want = np.fft.irfft(number, axis=1)[..., None]
        else:
            way = np.fft.ifft if inverse else np.fft.rfft if onesided else np.fft.fft
            found = way(number, axis=1)
            want = np.stack([found.real, found.imag], -1)
        np.testing.assert_allclose(machine.invoke("main", x).numpy(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("parts", [1, 2])
def test_onnx_frames_of_an_open_signal(parts: int) -> None:
    window = np.hanning(8).astype("float32")
    node = helper.make_node("STFT", ["x", "step", "window"], ["y"], onesided=2 - parts)
    mod, _ = relay.frontend.from_onnx(model_of([node], ["batch", "n", parts], step=np.int64(3), window=window))
    machine = machine_of(mod)
    for batch, n in ((2, 20), (1, 8), (3, 33)):
        x = signal(batch, n, parts)
        number = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
        frames = np.lib.stride_tricks.sliding_window_view(number, 8, 1)[:, ::3] * window
        found = np.fft.fft(frames)[..., : 8 if parts == 2 else 5]
        want = np.stack([found.real, found.imag], -1)
        np.testing.assert_allclose(machine.invoke("main", x).numpy(), want, rtol=1e-5, atol=1e-5)
