"""Models of PyTorch in which data decides sizes: masks, experts, predicted lengths; compiled, torch's numbers."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

from relaylab import relay  # noqa: E402
from relaylab.codegen.open.staged import StagedForm  # noqa: E402


class Chosen(nn.Module):
    """Rows that a mask chooses, through a layer, back to where they were."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x):
        mask, out = x[:, 0] > 0, torch.zeros_like(x)
        out[mask] = torch.relu(self.layer(x[mask]))
        return out


class Experts(nn.Module):
    """Each of three experts takes the tokens that have it among their best two."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 3)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 9), nn.SiLU(), nn.Linear(9, 6)) for _ in range(3))

    def forward(self, x):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2)
        out = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            row, place = torch.where(chosen == k)
            out = out.index_add(0, row, expert(x[row]) * weights[row, place, None])
        return out


class Lengths(nn.Module):
    """A step is repeated as often as is predicted, then comes a convolution over what that gives."""

    def __init__(self):
        super().__init__()
        self.often, self.conv = nn.Linear(6, 1), nn.Conv1d(6, 4, 3, padding=1)

    def forward(self, x):
        count = (nn.functional.softplus(self.often(x)) * 3).round().long().squeeze(-1)
        return torch.tanh(self.conv(torch.repeat_interleave(x, count, dim=0).t()[None]))


class Places(nn.Module):
    def forward(self, x):
        at = torch.nonzero(x > 1.0)
        return at, x[at[:, 0], at[:, 1]].exp()


@pytest.mark.parametrize("kind", [Chosen, Experts, Lengths, Places])
def test_what_data_decides_is_compiled(kind):
    torch.manual_seed(0)
    model = kind().eval()
    mod, params = relay.frontend.from_pytorch(torch.export.export(model, (torch.randn(20, 6),), strict=False))
    exe = relay.vm.compile(mod, "llvm", params=params)
    vm, debug = relay.vm.VirtualMachine(exe), relay.create_executor("debug", mod=mod).evaluate()
    for seed in range(4):
        x = torch.randn(20, 6, generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            wanted = model(x)
        wanted = list(wanted) if isinstance(wanted, tuple) else [wanted]
        for got in (vm.invoke("main", x.numpy()), debug(x.numpy(), **params)):
            got = list(got) if len(wanted) > 1 else [got]
            for a, b in zip(got, wanted, strict=True):
                assert a.shape == tuple(b.shape)
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)
    assert isinstance(exe.specializations.open, StagedForm), exe.specializations.closed
