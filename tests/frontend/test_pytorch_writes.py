"""What PyTorch models write into tensors and views of them, against torch."""

from __future__ import annotations

import numpy as np
import pytest
from pytorch_tools import agree, torch, Wrapped

from relaylab import relay
from relaylab.frontend.pytorch import program as programs

A, B = (torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(k)) for k in (0, 1))


def rows(a, b):
    """Rows that are made from earlier ones, as the inverse of a triangular matrix is."""
    x = a.clone()
    for i in range(1, 4):
        row = x[..., i, :i].clone()
        x[..., i, :i] = row + (row.unsqueeze(-1) * x[..., :i, :i].clone()).sum(-2)
    return x + torch.eye(4, 6)


def views(a, b):
    x = a * 2
    v, w = x[:, 1], x.transpose(1, 2)
    x[:, 1:3] = b[:, :2]
    y = v + 1
    w[:, 0].mul_(3)
    x.unsqueeze(1)[:, 0, 2] = 7
    return x, y, v * 2, w + 0, x.reshape(2, 24)


def shapes(a, b):
    x = a + 1
    x.view(2, 24)[:, 3:9] += b.view(2, 24)[:, :6]
    x.permute(2, 0, 1)[1].relu_()
    return x


def places(a, b):
    x = torch.zeros(2, 4, 6)
    x[:, torch.tensor([0, 2])] = b[:, :2]
    x[a > 0] = 5
    x[1].masked_fill_(b[1] > 0, 9.0)
    return x


def results(a, b):
    x = a.clone()
    y = x.add_(b)
    x.mul_(2)
    return y + x, y


def cast(a, b):
    c = torch.zeros(2, 4, 6, dtype=torch.int64)
    c[:, 1] = a[:, 1].long()
    c[0, 0] = 3
    return c, c[0] + 1


def kept(a, b):
    x = a + 0
    parts = [x[i] for i in range(2)]
    x[0] = b[0]
    x[:, 1:] = x[:, :-1].clone()
    return torch.stack(parts), x


def nested(a, b):
    x = a + 0
    v = x[:, 1:]
    w = v[:, 1:]
    w[:, 0] = b[:, 0]
    v[:, 0] = w[:, 0] + 1
    return x, v + 0, w + 0


def several(a, b):
    weights, at = (a * b).softmax(-1).topk(2)
    weights /= weights.sum(-1, keepdim=True)
    return weights, at


def activations(a, b):
    return torch.nn.functional.silu(a @ b.mT, inplace=True), torch.nn.functional.hardswish(a * 3, inplace=True)


def composed(a, b):
    x = (a @ b.mT).softmax(-1)
    return x.masked_fill_(x > 0.5, 0)


def pooled(a, b):
    """torch's parts say how the result lies in memory."""
    x = torch.stack([a, b]).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    return torch.nn.functional.adaptive_avg_pool2d(x, 1), torch.nn.functional.adaptive_avg_pool2d(x, (1, 2))


def normed(a, b):
    """Results of composed operators, each a tensor of its own."""
    x = torch.nn.functional.instance_norm(a).relu_()
    y = torch.nn.functional.interpolate(a, scale_factor=2.0, mode="nearest")
    y += torch.nn.functional.interpolate(b, scale_factor=2.0, mode="linear").mul_(2)
    return x, y, torch.nn.functional.rms_norm(b, (6,)).add_(1)


def unclear(a, b):
    """A reshape may be a view: torch itself says what is written where."""
    x = a.clone()
    y = x.reshape(2, 24)
    x[:, 0] = 0
    return y + 1


BY_PARTS = (rows, views, shapes, places, results, cast, kept, nested, several, activations, composed, pooled, normed)


@pytest.mark.parametrize("function", [*BY_PARTS, unclear], ids=lambda f: f.__name__)
def test_as_torch(function, monkeypatch: pytest.MonkeyPatch) -> None:
    if function in BY_PARTS:  # torch does not trace the program again, which takes far longer
        monkeypatch.setattr(programs, "_decomposed", None)
    agree(Wrapped(function), A, B)


def overwritten(a, b):
    x = a * 2
    x[:, 1] = b[:, 0]
    x.mul_(b)
    return x


def shifted(a, b):
    """As decoders shift their words: a new tensor whose beginning is something else."""
    x = a.new_zeros(a.shape)
    x[:, 1:] = a[:, :-1]
    x[:, 0] = 2
    return x


def turned(a, b):
    """All but the last, through views that are turned and have an axis more."""
    x = b.clone()
    x[:, : a.shape[1] - 1].copy_(a[:, : a.shape[1] - 1])
    x.transpose(1, 2)[..., 1:].unsqueeze(0)[0, :, 3].div_(4)
    return x


@pytest.mark.parametrize("function", [overwritten, shifted, turned], ids=lambda f: f.__name__)
def test_open_sizes_of_what_is_written_into(function, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_decomposed", None)
    dims = {1: torch.export.Dim("length", min=3)}
    agree(Wrapped(function), A, B, dynamic=((dims, dims),), executor="vm")


def test_a_size_that_is_a_formula_of_the_value_one():
    """The number of blocks of 64 in up to 64 elements, as linear attention pads its sequences."""

    def padded(a):
        blocks = torch.nn.functional.pad(a, (0, 0, 0, -a.shape[1] % 64)).reshape(a.shape[0], -1, 64, a.shape[2])
        mask = torch.ones(1, 1, 64, 1)
        return [(blocks[:, i] * mask.expand(1, blocks.shape[1], 64, 1)[:, i]) for i in range(blocks.shape[1])][0]

    dims = {1: torch.export.Dim("length", min=3, max=60)}
    agree(Wrapped(padded), A, dynamic=((dims,),), executor="vm")


@pytest.mark.parametrize("opened", [False, True])
def test_caches_that_a_model_writes_to_are_outputs_behind_its_own(opened):
    """A decoder's step with a cache of fixed size: what the cache is afterwards is the next call's input."""

    class Step(torch.nn.Module):
        def forward(self, x, keys, values, at):
            keys.index_copy_(1, at, x)
            values[:, at] = x * 2
            return torch.softmax(x @ keys.transpose(1, 2), -1) @ values

    def given():
        return torch.randn(2, 1, 4), torch.randn(2, 6, 4), torch.randn(2, 6, 4), torch.tensor([3])

    batch = {0: torch.export.Dim("b", min=2, max=64)}
    program = torch.export.export(Step(), given(), dynamic_shapes=(batch, batch, batch, None) if opened else None)
    mod, params = relay.frontend.from_pytorch(program)
    vm = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    x, keys, values, at = given()
    for place in (3, 0, 5):
        at = torch.tensor([place])
        found = [v.numpy() for v in vm.invoke("main", *(t.numpy().copy() for t in (x, keys, values, at)))]
        wanted = Step()(x, keys, values, at)  # which writes to the caches
        for a, b in zip(found, (wanted, keys, values), strict=True):
            np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-6)


def test_many_planes_are_written_by_many_kernels() -> None:
    """Each write reads what the one before has written twice: as one kernel they would double with each."""

    def skew(v):
        out = torch.zeros(*v.shape[:-1], 3, 3)
        for place, (row, column) in enumerate([(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]):
            out[..., row, column] = v[..., place % 3] * (place + 1)
        return out @ out

    mod, _ = agree(Wrapped(skew), torch.linspace(-1, 1, 24).reshape(2, 4, 3))
    assert len(relay.build(mod, target="llvm").kernels()) > 3
