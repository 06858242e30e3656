"""Complex numbers inside PyTorch models against torch: rotary positions, spectra, windows; what is refused, and how."""

from __future__ import annotations

import pytest
from pytorch_tools import agree, agree_together, program, torch, Wrapped

from relaylab import relay
from relaylab.support.errors import RelayError

X, Y = (torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(k)) for k in (0, 1))
F, real, number = torch.fft, torch.view_as_real, torch.complex
WINDOW = torch.hann_window(8)


def rotary(x, y):
    """Positions as Llama has them: pairs of a head's features, turned."""
    turned = torch.polar(torch.ones(3, 4), torch.outer(y[0, :, 0], y[0, 0, :4]))
    return real(torch.view_as_complex(x.reshape(2, 3, 4, 2)) * turned[None]).flatten(2)


def frames(x, **more):
    return torch.stft(x.reshape(2, 24), 8, 2, window=WINDOW, return_complex=True, **more)


def modes(x, y):
    """A layer of a Fourier neural operator: the lowest bins of a spectrum are mixed, the others are 0."""
    spectrum = torch.fft.rfft(x)
    mixed, kept = torch.zeros_like(spectrum), torch.zeros(2, 3, 5, dtype=torch.cfloat)
    weight = number(y[0, :, None, :3], y[1, :, None, :3]).expand(3, 3, 3)
    mixed[:, :, :3] = torch.einsum("bim,iom->bom", spectrum[:, :, :3], weight)
    kept[:, 1] = spectrum[:, 0]
    return torch.fft.irfft(mixed + kept, n=8)


ARITHMETIC = {
    "rotary": rotary,
    "parts": lambda x, y: (number(x, y).abs(), number(x, y).angle(), number(x, y).conj().imag + 0, number(x, y).real),
    "four": lambda x, y: real((number(x, y) + 2j) / (number(y, x) - 1.5) * (x - 1) + 3 - x / number(y, y + 1)),
    "wide": lambda x, y: real(number(x * 1e25, y) / number(y * 1e25, x)),
    "exp": lambda x, y: real(torch.exp(number(x, y))),
    "powers": lambda x, y: real(number(x, y) ** 3 - -number(x, y)),
    "products": lambda x, y: real(torch.matmul(number(x, y), number(y, x).mT) + torch.matmul(number(x, y), x.mT + 0j)),
    "summed": lambda x, y: torch.einsum("bij,jk->bik", number(x, y), number(y[0], x[0]).T).real,
    "joined": lambda x, y: real(torch.cat([number(x, y), number(y, x)], 1)[:, 1:, ::2].cumsum(2).mean(1)),
    "chosen": lambda x, y: real(torch.where(x > 0, number(x, y), x).masked_fill(y > 1, 0)),
    "padded": lambda x, y: real(torch.nn.functional.pad(number(x, y), (1, 2), value=1.0)),
    "cast": lambda x, y: real(x.to(torch.complex64) * y + torch.zeros(8, dtype=torch.complex64) + 1j),
    "erfinv": lambda x, y: torch.erfinv(x.tanh()),
    "some modes": modes,
    "written": lambda x, y: real((number(x, y) * 0).index_put((torch.tensor([1]),), number(y, x)[:1])),
    "alike": lambda x, y: real(torch.ones_like(number(x, y)) + torch.zeros_like(number(x, y), dtype=torch.float32)),
}
SPECTRA = {
    "two axes": lambda x, y: F.fft(F.fft(x, dim=-1), dim=-2).real,
    "one side": lambda x, y: real(F.rfft(x)),
    "odd": lambda x, y: F.irfft(F.rfft(x[..., :7]) * number(y[..., :4], y[..., 1:5]), n=7),
    "inverse": lambda x, y: F.irfft(number(x, y)),
    "filter": lambda x, y: F.irfft2(F.rfft2(x, norm="ortho") * number(x, y)[..., :5], s=(3, 8), norm="ortho"),
    "all axes": lambda x, y: F.ifftn(F.fftn(number(x, y), norm="forward")).imag,
    "hermitian": lambda x, y: F.hfft(number(x, y)),
    "shifted": lambda x, y: F.fftshift(F.fft(x)).imag * F.fftfreq(8) + F.rfftfreq(14),
    "cut": lambda x, y: F.rfft(x, n=5, dim=1).abs(),
    "vector": lambda x, y: F.rfft(x.flatten()).abs(),
    "double": lambda x, y: F.rfft(x.double())[..., 1:4].angle(),
    "frames": lambda x, y: frames(x).abs(),
    "both sides": lambda x, y: real(frames(x, onesided=False, normalized=True, center=False)),
    "signal": lambda x, y: torch.istft(
        frames(x) * torch.polar(torch.ones(5, 13), y.flatten()[:13]), 8, 2, window=WINDOW
    ),
}


@pytest.mark.parametrize("cases", [ARITHMETIC, SPECTRA], ids=["arithmetic", "spectra"])
def test_as_torch(cases) -> None:
    agree_together([(function, X, Y) for function in cases.values()])


LONG = {  # transforms in two steps
    "one side": lambda x, y: real(F.rfft(x, norm="ortho")),
    "two axes": lambda x, y: real(F.fft2(number(x, y))),
    "back": lambda x, y: real(F.ifft(number(x, y), dim=1)),
    "both sides": lambda x, y: real(F.fft(x, dim=1, norm="forward")),
    "frames": lambda x, y: torch.stft(x[:, :, 0], 30, 7, window=y[0, :30, 0], return_complex=True).abs(),
}


def test_long_transforms_are_those_of_torch() -> None:
    x, y = (torch.randn(2, 105, 64, generator=torch.Generator().manual_seed(k)) for k in (2, 3))
    agree_together([(function, x, y) for function in LONG.values()])


class Turned(torch.nn.Module):
    """A model that holds complex numbers."""

    def __init__(self):
        super().__init__()
        self.register_buffer("turns", torch.polar(torch.ones(16, 4), torch.arange(64.0).reshape(16, 4)))
        self.weight = torch.nn.Parameter(torch.randn(5, dtype=torch.complex64))

    def forward(self, x):
        turned = torch.view_as_complex(x.reshape(x.shape[0], -1, 4, 2)) * self.turns[: x.shape[1]]
        return real(turned).flatten(2), F.irfft(F.rfft(x, norm="ortho") * self.weight, norm="ortho")


def test_weights_and_open_sizes() -> None:
    agree(Turned(), X)
    mod, params = relay.frontend.from_pytorch(
        program(Turned(), X, dynamic=({1: torch.export.Dim("length", max=16)},)), [("x", (2, 5, 8))]
    )
    assert [str(t) for t in mod["main"].ret_type.fields] == ["Tensor[(2, 5, 8), float32]"] * 2


@pytest.mark.parametrize(
    ("function", "code", "words"),
    [
        (lambda x: F.rfft(x), "import.output", "view_as_real"),
        (lambda x: torch.linalg.inv(F.fft(x[0, :, :3])).real, "import.unsupported", ""),
        (lambda x: torch.tanh(F.fft(x)).real, "import.unsupported", "for complex numbers"),
        (lambda x: (F.fft(x) ** 0.5).real, "import.option", "the power 0.5"),
        (lambda x: F.rfft(x, n=5000).abs(), "import.shape", "5000 points"),
    ],
)
def test_what_is_refused(function, code, words) -> None:
    with pytest.raises(RelayError) as caught:
        relay.frontend.from_pytorch(program(Wrapped(function), X))
    assert caught.value.code == code and words in str(caught.value)


def test_inputs_are_real() -> None:
    with pytest.raises(RelayError, match="view_as_complex"):
        relay.frontend.from_pytorch(program(Wrapped(lambda x: x.real), number(X, Y)))
