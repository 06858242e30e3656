"""Pads that mirror or repeat, against torch: one operator, not elements by tables of places."""

from __future__ import annotations

import pytest
from pytorch_tools import Wrapped, agree, torch

F = torch.nn.functional
torch.manual_seed(0)
CASES = [
    ((1, 2, 5, 6), (1, 2, 3, 1)), ((1, 2, 5, 6), (-1, 2, 0, -2)), ((2, 5, 6), (-2, 1)),
    ((1, 2, 5, 6), (-1, -1, -1, -1)), ((1, 2, 3, 4, 5), (1, 2, 0, 1, 2, 1)), ((2, 6), (1, 3)), ((2, 6), (-3, 3)),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize(("shape", "pads"), CASES)
def test_pads(shape: tuple[int, ...], pads: tuple[int, ...], mode: str) -> None:
    """Widths below 0 cut what is mirrored."""
    for x in (torch.randn(shape), torch.randn(shape, dtype=torch.float64)):
        mod, _ = agree(Wrapped(lambda a: F.pad(a, pads, mode=mode)), x)
        assert "take" not in str(mod)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_pads_of_an_open_image(mode: str) -> None:
    height = torch.export.Dim("height", min=4, max=64)
    model = Wrapped(lambda a: F.pad(a, (2, -1, 1, 1), mode=mode) * 2)
    agree(model, torch.randn(1, 2, 7, 8), executor="vm", dynamic={"tensors": ({2: height},)})
