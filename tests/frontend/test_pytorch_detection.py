"""The operators of torchvision, each against torchvision itself; also for open numbers of images and regions."""

from __future__ import annotations

import pytest
from tests.frontend.pytorch_tools import Wrapped, compare, program, torch, wanted

from relaylab import relay

ops = pytest.importorskip("torchvision").ops


def every(function, *cases, dynamic=None) -> None:
    """Import once and run for each of the inputs."""
    model = Wrapped(function)
    mod, params = relay.frontend.from_pytorch(program(model, *cases[0], dynamic=(dynamic,) if dynamic else None))
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    for inputs in cases:
        got = machine.invoke("main", *(x.numpy() for x in inputs))
        found = [v.numpy() for v in got] if isinstance(got, (tuple, list)) or hasattr(got, "fields") else [got.numpy()]
        compare(found, wanted(model, inputs), 1e-4)


def boxes(count: int, seed: int = 0):
    made = torch.Generator().manual_seed(seed)
    corner, size = (torch.rand(count, 2, generator=made) * 6 for _ in range(2))
    return torch.cat([corner, corner + 1 + size], 1), torch.rand(count, generator=made)


def test_boxes_that_overlap_more_are_removed() -> None:
    def kept(b, s):
        places = ops.nms(b, s, 0.5)
        return places, b[places]

    open_ = {0: torch.export.Dim("boxes", min=2, max=512)}
    every(kept, boxes(20), boxes(70, 1), dynamic=(open_, open_))


def test_what_overlaps_as_much_as_the_limit_stays() -> None:
    half = torch.tensor([[0.0, 0, 4, 4], [0, 0, 4, 2], [0, 0, 4, 1]])
    every(lambda b, s: ops.nms(b, s, 0.5), (half, torch.tensor([0.9, 0.8, 0.7])))


def test_regions_of_open_images() -> None:
    def pooled(x, r):
        aligned = ops.roi_align(x, r, (3, 2), 0.5, 2, True)
        return aligned, ops.roi_align(x, r, 3, 0.5, -1, False), ops.roi_pool(x, r, (2, 2), 0.5)

    def given(images: int, count: int):
        which = torch.arange(count).remainder(images).float()[:, None]
        x = torch.linspace(-1, 1, images * 3 * 64).sin().reshape(images, 3, 8, 8)
        return x, torch.cat([which, boxes(count, count)[0]], 1)

    dims = [{0: torch.export.Dim(name, min=2, max=64)} for name in ("images", "regions")]
    every(pooled, given(2, 5), given(3, 9), dynamic=tuple(dims))


def test_aligned_regions_have_as_many_samples_as_pixels() -> None:
    sides = torch.tensor([[1, 1, 7.5, 6], [2, 3, 2.5, 7], [4, 1, 4.3, 1.2], [3, 2, 3, 5], [5, 5, 2, 2], [-9, 0, 30, 2]])
    regions = torch.cat([torch.arange(6.0).remainder(2)[:, None], sides], 1)
    x = torch.linspace(-1, 1, 2 * 3 * 64).sin().reshape(2, 3, 8, 8)
    every(lambda x, r: tuple(ops.roi_align(x, r, (2, 3), s, 0, True) for s in (1.0, 0.5)), (x, regions))


@pytest.mark.parametrize("masked", [False, True])
def test_samples_that_lie_where_offsets_say(masked) -> None:
    weight, bias = torch.linspace(-1, 1, 6 * 2 * 9).reshape(6, 2, 3, 3), torch.arange(6.0)

    def moved(x, offset, mask):
        used = mask.sigmoid() if masked else None
        return ops.deform_conv2d(x, offset, weight, bias, stride=(1, 2), padding=(1, 2), dilation=(1, 2), mask=used)

    def given(count: int):
        waves = lambda *shape: torch.linspace(0, 9, shape[0] * shape[1] * shape[2] * shape[3]).sin().reshape(shape)
        return waves(count, 4, 6, 9), waves(count, 36, 6, 5), waves(count, 18, 6, 5)

    dim = {0: torch.export.Dim("images", min=2, max=64)}
    every(moved, given(2), given(3), dynamic=(dim, dim, dim))
